"""A blocking handle of a task."""

from __future__ import annotations

from accord.client import tasks
from accord.client.results import ToolResult
from accord.client.tasks import TaskState
from accord.sync.background_loop import BackgroundLoop


class TaskHandle:
    """A task of a server, by its id: `handle.result()` waits for the result of the call. As the handle of `Client`."""

    def __init__(self, background: BackgroundLoop, handle: tasks.TaskHandle, client: object) -> None:
        self._background = background
        self._handle = handle
        self._client = client  # keeps the client from being collected and closed

    @property
    def id(self) -> str:
        """The id of the task; empty for a call that was answered at once."""
        return self._handle.id

    def state(self) -> TaskState:
        """Return the current state. Raises as the method of `Client`'s handle."""
        return self._background.run(self._handle.state())

    def cancel(self) -> None:
        """Cancel the task; one that has ended stays as it is. Raises as the method of `Client`'s handle."""
        self._background.run(self._handle.cancel())

    def result(self, *, timeout: float | None = None, total_timeout: float | None = None) -> ToolResult:
        """Wait for the end of the task, and return its result. Raises as the method of `Client`'s handle."""
        return self._background.run(self._handle.result(timeout=timeout, total_timeout=total_timeout))
