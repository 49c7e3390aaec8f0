"""The connection of a view with a running `accord dev`."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from accord.client.target import Command
from accord.dev.attach_socket import check_private, default_folder, identity, peer_user
from accord.dev.view_messages import Dropped, EndedCall, Hello, Line, ReloadCommand, StartedCall, ToView
from accord.errors import TargetError

_CONNECT_SECONDS = 5.0
_READ_BYTES = 1 << 16

_decode = msgspec.json.Decoder(Hello | StartedCall | EndedCall | Line | Dropped).decode


class Attachment:
    """One view. `hello` tells what it is attached to."""

    def __init__(self, connection: socket.socket) -> None:
        self.is_closed: bool = False
        """Whether `accord dev` has ended."""
        self._connection = connection
        self._rest = b""
        self.hello: Hello = self._read_hello()

    def fileno(self) -> int:
        """Return the descriptor, for `select`."""
        return self._connection.fileno()

    def receive(self) -> list[ToView]:
        """Return the next messages, after a wait for one; none at the end."""
        while not self.is_closed:
            if found := self._read():
                return found
        return []

    def reload(self) -> None:
        """Ask for a reload."""
        with suppress(OSError):
            self._connection.sendall(msgspec.json.encode(ReloadCommand()) + b"\n")

    def close(self) -> None:
        """Detach the view."""
        self._connection.close()

    def _read(self) -> list[ToView]:
        try:
            data = self._connection.recv(_READ_BYTES)
        except OSError:
            data = b""
        self.is_closed = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [_decode(line) for line in lines]

    def _read_hello(self) -> Hello:
        line = b""
        while not line.endswith(b"\n"):
            byte = self._connection.recv(1)
            if not byte:
                raise ConnectionResetError("it has ended, or has too many views")  # not refused: its socket stays
            line += byte
        hello = _decode(line)
        assert isinstance(hello, Hello)
        return hello


def attach(command: Command, *, folder: Path | None = None) -> Attachment:
    """Attach a view to the newest `accord dev` of a program. Raises `TargetError` if none runs."""
    if os.name == "nt":
        raise TargetError("--attach needs Unix sockets, which Python does not have on Windows")
    found = default_folder() if folder is None else folder
    try:
        check_private(found)
    except OSError as exc:
        raise TargetError(str(exc)) from exc
    others = []
    for attachment in _running(found):
        if attachment.hello.identity == identity(command):
            return attachment
        others.append(attachment.hello.target)
        attachment.close()
    running = f"; these run: {', '.join(sorted(set(others)))}" if others else ""
    raise TargetError(f"no `accord dev {command}` of this user runs; its host starts it{running}")


def _running(folder: Path) -> Iterator[Attachment]:
    """Yield a view of each `accord dev` that runs, the newest first. Remove the sockets of those that were killed."""
    for path in sorted(folder.glob("*.sock"), key=_created, reverse=True):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_CONNECT_SECONDS)
        try:
            connection.connect(os.fspath(path))
            if peer_user(connection) not in (None, os.getuid()):
                raise PermissionError(f"another user listens at {path}")
            attachment = Attachment(connection)
        except ConnectionRefusedError:
            connection.close()
            path.unlink(missing_ok=True)
        except (OSError, msgspec.DecodeError):
            connection.close()
        else:
            connection.settimeout(None)
            yield attachment


def _created(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0
