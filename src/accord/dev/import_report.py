"""The files that a program imports, reported to the watcher of `accord dev` while the program runs.

An audit hook sees each module before its code runs, so that a file with an error is reported too. A line of the report
has the time of the last change, the size and the path of a file. Files of the standard library, of installed packages
and of accord are left out.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from contextlib import suppress

VARIABLE = "ACCORD_DEV_IMPORTS"
"""The environment variable with the path of the report."""

_EXCLUDED_PARTS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def report_imports(report: str) -> None:
    """Append each imported file to the report, from now on."""
    seen: set[str] = set()
    paths = (sysconfig.get_path("stdlib"), os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    excluded = tuple(each + os.sep for each in paths)
    out = open(report, "a", buffering=1, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115  # until the end

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "exec":
            name = getattr(arguments[0], "co_filename", None)
        elif event == "compile":
            name = arguments[1]
        else:
            return
        if not isinstance(name, str) or name in seen or not name.endswith(".py"):
            return
        seen.add(name)
        path = os.path.abspath(name)
        if path.startswith(excluded) or any(part in path for part in _EXCLUDED_PARTS):
            return
        with suppress(OSError, ValueError):
            status = os.stat(path)
            out.write(f"{status.st_mtime_ns} {status.st_size} {path}\n")

    sys.addaudithook(hook)
