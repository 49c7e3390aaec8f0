"""Settings of a check."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from accord.check.engine.report import Level, TransportName

LEVELS: tuple[Level, ...] = ("must", "should", "may")
"""The strictest first."""


class CheckSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to check. Times in seconds."""

    revisions: tuple[str, ...] = ()
    """Only these; every one that the peer speaks, if empty."""
    full: bool = False
    """Whether a server is checked in every revision that it speaks. Otherwise in the newest one with a handshake and in
    the one without; what concerns its process and no revision is tried once then. Revisions that are named are always
    tried in full."""
    transports: tuple[TransportName, ...] = ()
    """Only these; every one by which the target can be reached, if empty."""
    only: tuple[str, ...] = ()
    """Rules or areas of rules to try, `*` for any text: `tools`, `tools/unknown-name`, `http/*`."""
    skip: tuple[str, ...] = ()
    """Rules or areas that are not tried: their messages are not sent."""
    whole_traffic: bool = True
    """With `only` and `level`: whether the other cases run as well when a wanted rule reads what passed, so that it has
    the verdict of a whole run."""
    level: Level = "may"
    """Rules of this level and stricter ones."""
    passive: bool = False
    """Whether only requests that open, ping and list are sent."""
    timeout: float = 5.0
    """For one answer."""
    opening: float = 30.0
    """For a process to start, and to answer for the first time."""
    jobs: int = 2
    """Conversations at once."""
    headers: Mapping[str, str] | None = None
    """Sent with every HTTP request."""
    call_tools: bool | tuple[str, ...] = False
    """Whether tools may be called: all, or those named."""
    trusted: bool = False
    """Whether tools with `readOnlyHint` may be called."""
    again: tuple[str, ...] = ()
    """Options of the command line that a command which repeats a finding needs, without secrets."""
    seed: int = 0
    """Of the generated cases."""
    cases: int = 0
    """How many cases to generate, at most; only where tools may be called."""
    sequence: str = ""
    """Just these calls, as JSON (`generated.sequences`), in place of generated ones."""

    @property
    def brief(self) -> bool:
        """Whether older revisions are left out: neither `full` nor `revisions` is given."""
        return not (self.full or self.revisions)

    def includes_level(self, level: Level) -> bool:
        """Whether rules of this level are selected."""
        return LEVELS.index(level) <= LEVELS.index(self.level)

    def may_call(self, name: str, read_only: bool = False) -> bool:
        """Whether this tool may be called; `read_only` is its own `readOnlyHint`."""
        if isinstance(self.call_tools, bool):
            return self.call_tools or (self.trusted and read_only)
        return name in self.call_tools or (self.trusted and read_only)
