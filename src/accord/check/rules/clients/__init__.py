"""Rules about clients, by area: what one does in the scenes that are played to it."""
