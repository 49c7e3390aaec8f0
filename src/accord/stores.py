"""Stores of events: what a client that was disconnected receives when it comes back."""

from accord.store.base import Events, Replay
from accord.store.memory import MemoryEvents
from accord.store.sqlite import SQLiteEvents
from accord.store.sqlite_tasks import SQLiteTasks
from accord.store.tasks import AskedQuestion, MemoryTasks, TaskInput, TaskRecord, Tasks

__all__ = [
    "AskedQuestion",
    "Events",
    "MemoryEvents",
    "MemoryTasks",
    "Replay",
    "SQLiteEvents",
    "SQLiteTasks",
    "TaskInput",
    "TaskRecord",
    "Tasks",
]
