"""Runs a Python program on the clock of a test: `python on_clock.py CLOCK PROGRAM.py|-m MODULE [ARGUMENT...]`.

The file CLOCK has the seconds by which the time of all programs on it is ahead. Only the standard library is used:
other people's SDKs run on it too.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path

_true_time = time.time


def set_clock(file: Path) -> None:
    """Replace the time of this process, before anything else is imported."""
    time.time = lambda: _true_time() + float(file.read_text() or 0)


if __name__ == "__main__":
    _, clock, *arguments = sys.argv
    set_clock(Path(clock))
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
        runpy.run_path(arguments[0], run_name="__main__")
