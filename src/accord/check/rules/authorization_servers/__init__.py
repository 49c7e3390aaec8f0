"""Rules about authorization servers."""
