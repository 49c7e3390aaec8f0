"""Standard streams while stdout belongs to the protocol: prints go to stderr, `input()` ends at once.

This is the Python half, which can say where a print stands; the descriptors themselves are moved by
`stdio`, so that what bypasses `sys.stdout` (C code, child processes) lands on stderr as well.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TextIO, cast

_STDLIB = os.path.dirname(os.__file__) + os.sep
_MOST_SITES = 1000


class GuardedStdout:
    """Stands in for `sys.stdout`: passes text to stderr, and reports each place that prints once."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, int]] = set()

    def write(self, text: str) -> int:
        target = sys.stderr
        if target is None:  # closed, or a program without a console
            return len(text)
        if site := self._new_site(sys._getframe(1)):
            target.write(f"accord: print() at {site} went to stderr; stdout belongs to the protocol\n")
        return target.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)

    def _new_site(self, frame: FrameType) -> str | None:
        # `logging`, `pprint` and their like only print what someone asked them to.
        while frame.f_back is not None and _is_stdlib(frame.f_code.co_filename):
            frame = frame.f_back
        site = (frame.f_code.co_filename, frame.f_lineno)
        if site in self._seen or len(self._seen) >= _MOST_SITES:
            return None
        self._seen.add(site)
        return f"{os.path.basename(site[0])}:{site[1]}"


def guard_streams() -> Callable[[], None]:
    """Replace `sys.stdout` and `sys.stdin`; call what comes back to have them as they were.

    Descriptor 0 must be at its end already (/dev/null): what `sys.stdin` had read ahead is not given out.
    """
    before = sys.stdin, sys.stdout
    empty = io.TextIOWrapper(io.FileIO(0, closefd=False)) if sys.stdin is not None else None
    guarded = cast(TextIO, GuardedStdout())
    sys.stdin, sys.stdout = cast(TextIO, empty), guarded

    def restore() -> None:
        if sys.stdout is guarded:  # else someone has redirected it since, and puts back what they found
            sys.stdout = before[1]
        if sys.stdin is empty:
            sys.stdin = before[0]

    return restore


def _is_stdlib(filename: str) -> bool:
    return filename.startswith(_STDLIB) and "site-packages" not in filename
