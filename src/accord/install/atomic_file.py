"""Writing a host's file: atomically, next to a backup, and only if nobody else has written it since it was read.

    file = HostFileText.read(path)
    file.replace(new_text)            # raises TargetError, and nothing is lost, if the host wrote the file in between

The new content goes to a temporary file in the same folder, is forced to the disk, and takes the place of the old one
in one step: whoever reads sees one or the other, also if this process is killed. The mode, the owner and a symbolic
link are preserved.

The host does not know of a lock, so the comparison and the rename are two system calls: a write of the host exactly
between them is replaced, and is in neither file. All others are detected.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from accord.errors import TargetError
from accord.file_replacement import replace_file
from accord.host.documents import MAX_BYTES, decode_text, read_bytes
from accord.host.known_hosts import Syntax

_BACKUP = ".accord-backup"


class HostFileText(msgspec.Struct, frozen=True):
    """The text of a file as it was read; None if there was no file."""

    path: Path
    text: str | None
    syntax: Syntax

    def __repr__(self) -> str:
        return f"HostFileText({str(self.path)!r}, ...)"  # the text may contain secrets

    @classmethod
    def read(cls, path: Path, syntax: Syntax) -> HostFileText:
        """Return the text of a file. Raises `TargetError`."""
        content = _read(path, syntax)
        return cls(path, None if content is None else decode_text(content, path), syntax)

    @property
    def backup(self) -> Path:
        """The path of the content before the last change."""
        target = self._target
        return target.with_name(target.name + _BACKUP)

    @property
    def _target(self) -> Path:
        try:
            return self.path.resolve()  # a link stays a link
        except (OSError, RuntimeError) as exc:  # RuntimeError: links in a circle
            raise TargetError(f"{self.path}: {exc}") from exc

    def replace(self, text: str, *, private: bool = False) -> None:
        """Write the file, and the backup of an existing one. `private` is whether only its owner may read a new file.

        Raises `TargetError`; the file is then as it was.
        """
        target = self._target
        self._check_unchanged()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            like = target if self.text is not None else None
            if self.text is not None:
                replace_file(self.backup, self.text.encode(), like, private, self._check_unchanged)
            replace_file(target, text.encode(), like, private, self._check_unchanged)
        except OSError as exc:
            raise TargetError(f"{self.path} cannot be written: {exc.strerror or exc}; it is as it was") from exc

    def delete(self) -> None:
        """Delete the file. Raises `TargetError`; the file is then as it was."""
        self._check_unchanged()
        try:
            self._target.unlink()
        except OSError as exc:
            raise TargetError(f"{self.path} cannot be deleted: {exc.strerror or exc}") from exc

    def _check_unchanged(self) -> None:
        content = _read(self.path, self.syntax)
        if content != (None if self.text is None else self.text.encode()):
            raise TargetError(
                f"{self.path} was changed by another program meanwhile; nothing was written, run it again"
            )


def _read(path: Path, syntax: Syntax) -> bytes | None:
    """Return the content of a file; None if there is none. Raises `TargetError`."""
    if not os.path.lexists(path) or (path.is_symlink() and not path.exists()):
        return None
    return read_bytes(path, MAX_BYTES[syntax])
