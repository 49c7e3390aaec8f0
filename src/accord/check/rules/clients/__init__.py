"""Rules about clients, by area: what one does in the scenarios that are played to it."""
