"""Servers made of others: mounted, changed, shown to some and not to others."""
