"""The private Unix sockets on which each running `accord dev` accepts views.

They are in a folder that only their user can enter, at a fixed path: a host starts programs with few environment
variables, so that one that names a folder would be missing. Where the system tells who is at the other end of a
connection, another user is refused as well.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from pathlib import Path

from accord.client.target import Command

_LOCAL_PEERCRED = 1
"""The option of macOS and FreeBSD, which `socket` does not name."""


def default_folder() -> Path:
    """Return the folder of the sockets of this user."""
    if sys.platform == "win32":
        raise OSError("views need Unix sockets")
    return Path("/tmp") / f"accord-dev-{os.getuid()}"


def check_private(folder: Path) -> None:
    """Create the folder if it does not exist. Raise `OSError` if another user owns it, or may enter it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise OSError(f"{folder} is not a folder that only you can enter; remove it")


def peer_user(connection: socket.socket) -> int | None:
    """Return the id of the user at the other end, or None if the system does not tell."""
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[1])
    if sys.platform == "darwin" or sys.platform.startswith("freebsd"):
        credentials = connection.getsockopt(0, _LOCAL_PEERCRED, struct.calcsize("2I"))
        return int(struct.unpack("2I", credentials)[1])
    return None


def identity(command: Command) -> str:
    """Return what identifies a program in any terminal: its file, or its command line with its directory."""
    if command.is_file:
        return os.path.realpath(command.argv[-1])
    return "\0".join((os.path.realpath(command.cwd or "."), *command.argv))
