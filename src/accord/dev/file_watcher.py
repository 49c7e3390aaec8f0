"""The files whose changes start a reload: those that the program imported, and paths that the user names.

They are polled: the time of the last change and the size, or for a directory those of all files in it. A poll may take
a twentieth of the time, so that many files are polled less often.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

Signature = tuple[int, int] | None
"""Time of the last change and size; None for a file that does not exist."""

POLL_SECONDS = 0.05
_SHARE = 20
_MOST_FILES = 10_000
_SKIPPED = frozenset({"__pycache__", "node_modules"})


class FileWatcher:
    """Watches `paths`, and the files that processes report in the file `report`."""

    def __init__(self, paths: Iterable[Path], report: Path | None = None) -> None:
        self.pause: float = POLL_SECONDS
        """The seconds until the next poll."""
        self._paths = [path.absolute() for path in paths]
        self._report = report
        self._position = 0
        self._signatures: dict[str, Signature] = {}
        self.poll()

    def poll(self) -> set[str]:
        """Return the files that have changed, appeared or disappeared since the last poll."""
        began = time.perf_counter()
        self._read_report()
        changed: set[str] = set()
        found = dict.fromkeys(self._files())
        for path in [*found, *(each for each in self._signatures if each not in found)]:
            signature = _signature(path)
            if path not in self._signatures or self._signatures[path] != signature:
                changed.add(path)
            self._signatures[path] = signature
        self.pause = max(POLL_SECONDS, _SHARE * (time.perf_counter() - began))
        return changed

    def _files(self) -> Iterator[str]:
        for path in self._paths:
            if path.is_dir():
                yield from _files_in(path)
            else:
                yield os.fspath(path)

    def _read_report(self) -> None:
        """Add the files of the report as they were when they were imported."""
        if self._report is None or not self._report.exists():
            return
        with self._report.open(encoding="utf-8", errors="surrogateescape") as lines:
            lines.seek(self._position)
            text = lines.read()
        complete = text.rpartition("\n")[0]
        self._position += len(complete.encode(errors="surrogateescape")) + bool(complete)
        for line in complete.splitlines():
            changed_at, size, path = line.split(" ", 2)
            imported, known = (int(changed_at), int(size)), self._signatures.get(path)
            if known is None or imported > known:
                self._signatures[path] = imported


def _signature(path: str) -> Signature:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _files_in(directory: Path) -> Iterator[str]:
    """Yield the files below a directory, without hidden ones."""
    count = 0
    for folder, folders, files in os.walk(directory):
        folders[:] = [each for each in folders if each not in _SKIPPED and not each.startswith(".")]
        for name in files:
            if not name.startswith(".") and count < _MOST_FILES:
                count += 1
                yield os.path.join(folder, name)
