"""Looking again at a tree, when it has changed: told by the system, or every so often.

`watchfiles` (the extra `dev`) says when. It watches the folders of the last listing, one by one: left to find them by
itself it would follow links, out of the tree and through the whole machine. What it says is only a reason to look.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

log: logging.Logger = logging.getLogger("accord.server")

Scan = Callable[[], Mapping[str, int]]
"""Looks at the tree, tells what is different, and gives the folders to watch by their paths, each with its inode: what
is watched is the folder, not the path, and another one may have taken its place."""

_SETTLE, _STEP, _ANYWAY = 100, 50, 60_000
"""Milliseconds: what comes together is one change; how soon `stop` is heard; when to look though nothing was said."""
_SHARE = 10
"""Looking takes at most one part in so many of the time, however often the tree changes."""
_STOP_SECONDS = 2.0
"""Seconds that `stop` waits for a look that is going on."""


class DirectoryWatcher:
    """A thread that looks at a tree between `start` and `stop`. It keeps no process alive."""

    def __init__(self, look: Scan, poll_seconds: float) -> None:
        self._scan = look
        self._poll = poll_seconds
        self._notifier: Any = _notifier()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._folders: Mapping[str, int] = {}
        self._scan_seconds = 0.0
        self._failed = False

    def start(self) -> None:
        """Begin to look; once more does nothing."""
        if self._thread is None:
            self._over = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._over,), name="accord files", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Look no more, and wait a moment until nothing is watched."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._over.set()
            thread.join(_STOP_SECONDS)

    def _run(self, over: threading.Event) -> None:
        self._scan_safely()
        while not over.is_set():
            if self._notifier is None or not self._folders:
                over.wait(max(self._poll, _SHARE * self._scan_seconds))
                self._scan_safely()
            else:
                self._wait_and_scan(over)

    def _scan_safely(self) -> None:
        """Look. What fails is logged once, until it goes well again."""
        begun = time.monotonic()
        try:
            self._folders = self._scan()
            self._failed = False
        except Exception:
            if not self._failed:
                log.exception("accord: looking for files that changed failed; it is tried again")
            self._failed = True
        self._scan_seconds = time.monotonic() - begun

    def _wait_and_scan(self, over: threading.Event) -> None:
        """Look whenever something is said, until there are other folders."""
        folders = self._folders
        try:
            with self._notifier(list(folders), False, False, 0, False, False) as notifier:  # each folder, none below it
                self._scan_safely()  # at what happened before it was watched
                while self._folders == folders and notifier.watch(_SETTLE, _STEP, _ANYWAY, over) != "stop":
                    self._scan_safely()
                    over.wait(_SHARE * self._scan_seconds)
        except FileNotFoundError:  # a folder went meanwhile
            self._scan_safely()
            if self._folders == folders:
                over.wait(self._poll)
        except Exception as exc:  # the system watches no more than so many folders, of all its programs
            log.warning("accord: files are looked at every %g s: %s", self._poll, exc)
            self._notifier = None


def _notifier() -> Any:
    """What tells of changes, or None without `watchfiles`."""
    try:
        from watchfiles._rust_notify import RustNotify
    except ImportError:
        return None
    return RustNotify
