"""Writing session files, entry by entry; `session_queue` does it in a thread of its own.

The file is readable only by its user (mode 0600), and bounded in size. An error of the file, such as a full disk, ends
the recording with a warning, and never a connection. The file is open only while connections are.
"""

from __future__ import annotations

import logging
import os
import stat
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from accord.errors import ConnectError
from accord.wire.session_file import (
    HEADER_START,
    LINE_BYTES,
    ClosedEntry,
    Entry,
    LimitEntry,
    MessageEntry,
    SessionHeader,
    SkippedEntry,
    encode_line,
)
from accord.wire.session_redaction import SessionRedaction

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

log: logging.Logger = logging.getLogger("accord")

SESSION_FILE_BYTES = 64 << 20
"""The maximum size of a session file, in bytes."""
_LAST_LINE = 200
"""Bytes that stay free for the line that says that the limit was reached."""
_MODE = 0o600


class SessionFileWriter:
    """The writer of one session file.

    An existing session file is replaced; any other file is not. `redacted`: secrets are replaced. `limit` is the
    maximum size in bytes. `on_line` receives each line after it was written, with its place in the file; `on_error`
    receives the reason if the recording ends early.
    """

    def __init__(
        self,
        file: str | os.PathLike[str],
        *,
        redacted: bool = True,
        limit: int = SESSION_FILE_BYTES,
        on_line: Callable[[bytes, int], None] | None = None,
        on_error: Callable[[str], None] | None = None,
    ) -> None:
        self._file = Path(file)
        self._on_line = on_line
        self._on_error = on_error
        self._redaction = SessionRedaction() if redacted else None
        self._limit = limit
        self._size = 0
        self._connections: set[int] = set()
        self._descriptor: int | None = None
        self._finalizer: weakref.finalize[[int], SessionFileWriter] | None = None
        self._ended = False

    def begin(self, header: SessionHeader) -> None:
        """Create the file, and write the header. Raises `ConnectError` if that fails."""
        if self._file.suffix == ".transcript":
            raise ConnectError(
                f"cannot record to {self._file}: a session file has another suffix, such as .jsonl; "
                "accord.testing.Recording writes transcripts"
            )
        try:
            self._open(new=True)
        except OSError as exc:
            raise ConnectError(f"cannot record to {self._file}: {exc.strerror or exc}") from exc
        if self._redaction is not None:
            header = msgspec.structs.replace(header, target=self._redaction.text(header.target), redacted=True)
        self._append(encode_line(header))

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Replace these texts wherever they occur."""
        if self._redaction is not None:
            self._redaction.add_secrets(secrets)

    def write(self, entry: Entry) -> None:
        """Write one entry; nothing once the limit is reached."""
        if self._ended:
            return
        self._connections.add(entry.connection)
        line = encode_line(entry if self._redaction is None else self._redaction.entry(entry))
        if len(line) > LINE_BYTES and isinstance(entry, MessageEntry):
            line = encode_line(_too_long(entry))
        if self._size + len(line) > self._limit - _LAST_LINE:
            line = encode_line(LimitEntry(at=entry.at, size=self._limit))
            self._ended = True
        self._append(line)
        if isinstance(entry, ClosedEntry):
            self._connections.discard(entry.connection)
        if self._ended or not self._connections:
            self._close()

    @property
    def is_open(self) -> bool:
        """Return whether the file is open, as it is while connections are."""
        return self._descriptor is not None

    def close(self) -> None:
        """Close the file; a further entry opens it again."""
        self._connections.clear()
        self._close()

    def end(self) -> None:
        """End the recording: close the file, and write nothing more."""
        self._ended = True
        self._close()

    def _append(self, line: bytes) -> None:
        place = self._size
        try:
            if self._descriptor is None:
                self._open(new=False)
            self._write_all(line)
        except OSError as exc:
            self.end()
            log.warning("accord: the recording to %s ends: %s", self._file, exc.strerror or exc)
            if self._on_error is not None:
                self._on_error(f"the recording to {self._file} ends: {exc.strerror or exc}")
        else:
            if self._on_line is not None:
                self._on_line(line, place)

    def _write_all(self, line: bytes) -> None:
        assert self._descriptor is not None, "it is open"
        self._size += len(line)
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def _open(self, *, new: bool) -> None:
        """Open the file. Raises `OSError`, also for an existing file that is no session file."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        descriptor = _open_regular_or_pipe(self._file, flags)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                _lock(descriptor)
                if new:
                    _truncate(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self._finalizer = weakref.finalize(self, os.close, descriptor)
        self._finalizer.atexit = False  # what is in a queue then is still to be written

    def _close(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._descriptor = self._finalizer = None


def _open_regular_or_pipe(file: Path, flags: int) -> int:
    """Open a file to read and append, or a pipe, as of `>(jq .)`, to write."""
    if file.exists() and not file.is_file() and not file.is_dir():
        return os.open(file, os.O_WRONLY)
    return os.open(file, flags, _MODE)


def _lock(descriptor: int) -> None:
    """Lock a file until it is closed: two recordings in one file would be no session file. Raises `OSError`."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise OSError(exc.errno, "another client records to this file") from exc


def _truncate(descriptor: int) -> None:
    """Empty a session file, and let only its user read it. Raises `OSError` for another file."""
    start = os.pread(descriptor, len(HEADER_START), 0) if hasattr(os, "pread") else os.read(descriptor, 17)
    if start and not HEADER_START.startswith(start):
        raise OSError(0, "the file exists, and is no session file; it would be lost")
    os.ftruncate(descriptor, 0)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, _MODE)


def _too_long(entry: MessageEntry) -> SkippedEntry:
    reason = f"a message that takes more than {LINE_BYTES:,} bytes of a line was not recorded"
    return SkippedEntry(
        at=entry.at,
        connection=entry.connection,
        direction=entry.direction,
        reason=reason,
        size=len(entry.data),
        exchange=entry.exchange,
    )
