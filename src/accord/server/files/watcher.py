"""Watching of a tree: scans it when the system reports a change, or at intervals.

`watchfiles` (the extra `dev`) reports changes. It watches the folders of the last listing one by one: a recursive watch
would follow links out of the tree. Its reports only trigger a scan.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

log: logging.Logger = logging.getLogger("accord.server")

Scan = Callable[[], Mapping[str, int]]
"""Scans the tree, notifies of changes, and returns the folders to watch: paths with inodes, since a path may come to
name another folder while the watch stays on the old one.
"""

_SETTLE, _STEP, _ANYWAY = 100, 50, 60_000
"""Milliseconds: for changes to be combined; until `stop` takes effect; between scans without a report."""
_SHARE = 10
"""Scanning takes at most this fraction of the time, one in so many, however often the tree changes."""
_STOP_SECONDS = 2.0
"""The most seconds that `stop` waits for a running scan."""


class DirectoryWatcher:
    """A daemon thread that scans a tree between `start` and `stop`."""

    def __init__(self, scan: Scan, poll_seconds: float) -> None:
        self._scan = scan
        self._poll = poll_seconds
        self._notifier: Any = _notifier()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._folders: Mapping[str, int] = {}
        self._scan_seconds = 0.0
        self._failed = False

    def start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None:
            self._stopped = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._stopped,), name="accord files", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait briefly for a running scan."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopped.set()
            thread.join(_STOP_SECONDS)

    def _run(self, stopped: threading.Event) -> None:
        self._scan_safely()
        while not stopped.is_set():
            if self._notifier is None or not self._folders:
                stopped.wait(max(self._poll, _SHARE * self._scan_seconds))
                self._scan_safely()
            else:
                self._wait_and_scan(stopped)

    def _scan_safely(self) -> None:
        """Scan the tree. A failure is logged once, until a scan succeeds."""
        start = time.monotonic()
        try:
            self._folders = self._scan()
            self._failed = False
        except Exception:
            if not self._failed:
                log.exception("accord: the scan for changed files failed; it is repeated")
            self._failed = True
        self._scan_seconds = time.monotonic() - start

    def _wait_and_scan(self, stopped: threading.Event) -> None:
        """Scan at every report, until the folders to watch change."""
        folders = self._folders
        try:
            with self._notifier(list(folders), False, False, 0, False, False) as notifier:  # not recursively
                self._scan_safely()  # for changes before the watch began
                while self._folders == folders and notifier.watch(_SETTLE, _STEP, _ANYWAY, stopped) != "stop":
                    self._scan_safely()
                    stopped.wait(_SHARE * self._scan_seconds)
        except FileNotFoundError:  # a folder was removed meanwhile
            self._scan_safely()
            if self._folders == folders:
                stopped.wait(self._poll)
        except Exception as exc:  # the system limits the number of watched folders of all programs
            log.warning("accord: files are looked at every %g s: %s", self._poll, exc)
            self._notifier = None


def _notifier() -> Any:
    """Return the class of `watchfiles` that reports changes, or None if it is not installed."""
    try:
        from watchfiles._rust_notify import RustNotify
    except ImportError:
        return None
    return RustNotify
