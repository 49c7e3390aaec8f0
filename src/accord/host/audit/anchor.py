"""The anchor of an audit log: its latest entry, in a second place.

A hash chain cannot show that its end was cut off, or that all of it was written anew. An anchor can, if whoever changes
the log cannot change the anchor: put it on another disk, or where another user owns it.

The file has two lines of fixed length, written in turn. So one of them is whole at any time, also after a loss of
power, and the newer one counts.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from accord.errors import StoreError
from accord.host.audit.chain import Link
from accord.host.audit.file_lock import locked, sync

_LINE_BYTES = 256
_BEGIN = b'{"id":"'


class Anchored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of an anchor: the id of the log, and the number and hash of its latest entry."""

    id: str
    number: int
    hash: str
    checksum: str = ""


class Anchor:
    """The anchor in the file `path`."""

    def __init__(self, path: Path) -> None:
        self.path: Path = path

    def read(self) -> Anchored | None:
        """Return the content; None without a file, or if a process ended while it wrote the first line. Raises
        `StoreError`.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise StoreError(f"the anchor {self.path} cannot be read: {exc.strerror}") from exc
        found = _newest(content)
        if found is None and not _is_begun(content):
            raise StoreError(f"{self.path} is not the anchor of an audit log, or is damaged")
        return found

    def check(self, log: Path, identifier: str, last: Link) -> None:
        """Raise `StoreError` unless a log ends where the anchor says, or after it: then a process ended in between."""
        found = self.read()
        if found is None or (found.id == identifier and found.number < last.number):
            return
        cure = f"see what happened: accord audit verify {log} --anchor {self.path}"
        if found.id != identifier:
            raise StoreError(f"the anchor {self.path} belongs to another audit log than {log}; {cure}")
        if (found.number, found.hash) != (last.number, last.hash):
            raise StoreError(f"{log} has lost or changed entries that the anchor {self.path} knows; {cure}")

    def write(self, identifier: str, last: Link) -> None:
        """Store an entry on the disk, unless the anchor has a later one. Raises `StoreError`."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            try:
                with locked(fd):
                    _write_line(fd, Anchored(identifier, last.number, last.hash))
            finally:
                os.close(fd)
        except OSError as exc:
            raise StoreError(f"the anchor {self.path} cannot be written: {exc.strerror or exc}") from exc


def _write_line(fd: int, content: Anchored) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    present = os.read(fd, 2 * _LINE_BYTES)
    newest = _newest(present)
    if newest is not None and newest.number >= content.number:
        return  # another process has appended more
    is_first = newest is not None and newest == _parse(present[:_LINE_BYTES])
    os.lseek(fd, _LINE_BYTES if is_first else 0, os.SEEK_SET)
    os.write(fd, _encode(content))
    sync(fd)


def _newest(content: bytes) -> Anchored | None:
    lines = [_parse(content[:_LINE_BYTES]), _parse(content[_LINE_BYTES : 2 * _LINE_BYTES])]
    return max((line for line in lines if line is not None), key=lambda line: line.number, default=None)


def _is_begun(content: bytes) -> bool:
    """Return whether this may be the beginning of the first line; a file system may fill the rest with zeros."""
    written = content.rstrip(b"\0")
    begin = _BEGIN[: len(written)]
    return len(content) <= _LINE_BYTES and written.startswith(begin) and not written.endswith(b"\n")


def _encode(content: Anchored) -> bytes:
    sealed = msgspec.structs.replace(content, checksum=_checksum(content))
    return msgspec.json.encode(sealed).ljust(_LINE_BYTES - 1) + b"\n"


def _parse(line: bytes) -> Anchored | None:
    """Return the content of a line, or None if it was not written whole."""
    try:
        content = msgspec.json.decode(line, type=Anchored)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return content if content.checksum == _checksum(content) else None


def _checksum(content: Anchored) -> str:
    return hashlib.sha256(f"{content.id} {content.number} {content.hash}".encode()).hexdigest()[:16]
