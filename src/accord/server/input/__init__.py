"""Asking the client from a handler: one way to write it, in every revision."""
