"""Probes: sessions with a server under test, their logs, and functions that read the logs."""
