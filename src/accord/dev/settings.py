"""The settings of `accord dev`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from accord.limits import DEFAULT_LIMITS


class DevSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a program is watched and replaced."""

    watch: tuple[Path, ...] = ()
    """Files and directories that are watched besides the imported modules."""
    grace_seconds: float = 10.0
    """How long the calls of the process before may go on."""
    start_seconds: float = DEFAULT_LIMITS.client.connect_seconds
    """How long a new process may take until it takes over."""
    stop_first: bool = False
    """Whether the old process ends before the new one starts."""
    search: bool = False
    """Whether the host gets the tools `search_tools` and `call_tool`."""
