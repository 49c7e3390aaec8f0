"""The sessions that pages can show: the live recording, and files that were opened."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from accord.inspector.commands import InspectorError
from accord.inspector.traffic.recording import TrafficRecording
from accord.inspector.traffic.source import TrafficSource, open_source
from accord.visible_text import single_line, truncate
from accord.wire.session_file import SessionFileError

LIVE = "live"
MAX_SESSIONS = 20
"""The maximum number of open session files."""


class Sessions:
    """The live session and the open ones by id."""

    def __init__(self, recording: TrafficRecording, folder: Path, on_change: Callable[[], None]) -> None:
        self._folder = folder
        self._on_change = on_change
        self._recording = recording
        self._opened = 0
        self.sources: dict[str, TrafficSource] = {
            LIVE: TrafficSource("this session", recording.file, recording.index),
        }
        """All sessions by id."""

    def find(self, id: str) -> TrafficSource:
        """Return a session. Raises `InspectorError`."""
        source = self.sources.get(id)
        if source is None:
            raise InspectorError(f"there is no open session {id!r:.100}", "open its file again", status=404)
        return source

    def remark(self, source: TrafficSource) -> str:
        """Return what is missing in a session; empty if it is complete."""
        return self._recording.remark if source is self.sources[LIVE] else source.remark

    async def open(self, file: Path, name: str = "", *, owned: bool = False) -> str:
        """Open a session file, and return the id of the session. Raises `InspectorError`.

        A file that is `owned` is in the temporary folder, and is deleted with the session; another one is copied.
        """
        if len(self.sources) > MAX_SESSIONS:
            raise InspectorError(f"{MAX_SESSIONS} sessions are open", "close some of them")
        self._opened += 1
        id = str(self._opened)
        copy = self._folder / f"session-{id}.jsonl"
        try:
            await asyncio.to_thread(shutil.move if owned else shutil.copyfile, file, copy)
            self.sources[id] = await open_source(name or (f"file {id}" if owned else file.name), copy)
        except (SessionFileError, OSError) as exc:
            await asyncio.to_thread(copy.unlink, True)
            reason = exc.strerror if isinstance(exc, OSError) else str(exc)
            text = truncate(single_line(f"{'the file' if owned else file} cannot be opened: {reason}"), 1_000)
            raise InspectorError(text, "record one with --record FILE, or save one here", status=400) from exc
        self._on_change()
        return id

    async def close(self, id: str) -> None:
        """Close a session of a file. Raises `InspectorError`."""
        source = self.find(id)
        if id == LIVE:
            raise InspectorError("this session is not a file, and ends with the inspector")
        del self.sources[id]
        await asyncio.to_thread(source.file.unlink, True)
        self._on_change()
