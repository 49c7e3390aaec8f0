"""Notifications of a server: subscriptions, changes of lists, and log messages."""
