"""Stores of events: what a client that was disconnected receives when it comes back."""

from accord.store.base import Events, Replay
from accord.store.memory import MemoryEvents
from accord.store.sqlite import SQLiteEvents

__all__ = [
    "Events",
    "MemoryEvents",
    "Replay",
    "SQLiteEvents",
]
