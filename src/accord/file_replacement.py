"""Writing a file in one step.

Whoever reads it sees the old content or the new, also if the disk is full or this process is killed.
"""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_TEMPORARY = ".accord-new"
_LEFT_OVER_SECONDS = 60.0


def write_file(path: Path, content: bytes) -> None:
    """Write a file in one step, or a device or pipe directly. Raises `OSError`; a file is then as it was."""
    target = path.resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        target.write_bytes(content)
    else:
        replace_file(target, content, target if target.exists() else None)


def replace_file(
    target: Path,
    content: bytes,
    like: Path | None = None,
    private: bool = False,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Write a file in one step, with the mode and the owner of `like`; `check` is called right before.

    Raises `OSError`; the file is then as it was.
    """
    if like is not None and not os.access(like, os.W_OK):
        raise PermissionError(0, "it is read-only")
    _delete_left_over(target)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}{_TEMPORARY}")
    mode = 0o600 if private or like is not None else 0o666
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        if like is not None:
            _copy_owner(like, temporary)
            shutil.copymode(like, temporary)
        check()
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    flush_folder(target.parent)


def _delete_left_over(target: Path) -> None:
    """Delete temporary files of processes that were killed: they may contain secrets."""
    for each in target.parent.glob(f".{glob.escape(target.name)}.*{_TEMPORARY}"):
        with suppress(OSError):
            if time.time() - each.lstat().st_mtime > _LEFT_OVER_SECONDS:
                each.unlink()


def _copy_owner(like: Path, temporary: Path) -> None:
    found = like.stat()
    if hasattr(os, "chown") and (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(OSError):  # only root may give a file away
            os.chown(temporary, found.st_uid, found.st_gid)


def flush_folder(folder: Path) -> None:
    """Force the entries of a folder, such as a new or renamed file, to the disk; not every system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
