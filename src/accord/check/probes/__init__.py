"""Probes: conversations with a server under test, their log, and what is read from it."""
