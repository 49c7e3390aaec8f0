"""Which variables a child process gets: what programs need to run, and none of the secrets beside them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

_POSIX = (
    "HOME LOGNAME PATH SHELL TERM USER TMPDIR LANG LANGUAGE LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION "
    "LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME"
)
"""The locale has these names and no others: ssh passes on any `LC_*`, and people use that for what they like."""
_WINDOWS = (
    "APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMDATA "
    "PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE WINDIR"
)
_SAFE = frozenset((_WINDOWS if sys.platform == "win32" else _POSIX).split())


def child_environment(given: Mapping[str, str] | None, *, inherit: bool) -> dict[str, str]:
    """The environment of a child: a safe subset of ours, or with `inherit` all of it, and what is given."""
    ours = {name: value for name, value in os.environ.items() if inherit or _is_safe(name, value)}
    return ours | dict(given or {})


def left_out(given: Mapping[str, str] | None) -> list[str]:
    """Return the names of our variables that a child does not get, unless it inherits all of them."""
    return sorted(name for name, value in os.environ.items() if not _is_safe(name, value) and name not in (given or {}))


def _is_safe(name: str, value: str) -> bool:
    # A value that begins with "()" is a shell function, which old shells run when they start.
    return name.upper() in _SAFE and not value.startswith("()")
