"""The settings of a check."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from accord.check.engine.report import Level, TransportName
from accord.transport.recording import SessionRecorder

LEVELS: tuple[Level, ...] = ("must", "should", "may")
"""The levels, the strictest first."""


class CheckSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a check. Times are in seconds."""

    revisions: tuple[str, ...] = ()
    """The revisions to check in; empty for all that the peer supports."""
    full: bool = False
    """Whether to check a server in every revision that it supports, instead of the newest one with a handshake and the
    one without; in these, rules about the process run once. `revisions` are always checked in full."""
    transports: tuple[TransportName, ...] = ()
    """The transports to check over; empty for all that reach the target."""
    only: tuple[str, ...] = ()
    """The rules or areas of rules to check, `*` for any text: `tools`, `tools/unknown-name`, `http/*`."""
    skip: tuple[str, ...] = ()
    """The rules or areas to skip; their messages are not sent."""
    whole_traffic: bool = True
    """With `only` and `level`: whether to run the other cases as well for a selected rule that only reads messages, and
    those that show the SDK of the server, so that a finding has the verdict and the owner of a whole run."""
    level: Level = "may"
    """The lowest level of rules to check."""
    passive: bool = False
    """Whether to send only requests that open a session, ping and list."""
    timeout: float = 5.0
    """The timeout of a response."""
    opening: float = 30.0
    """The timeout for a process to start and send its first response."""
    jobs: int = 2
    """The number of concurrent connections."""
    headers: Mapping[str, str] | None = None
    """Headers of every HTTP request."""
    tokens: tuple[str, ...] = ()
    """Bearer tokens of one or two principals. The first is sent with every HTTP request; rules about principals send
    the second, too."""
    issuer: str = ""
    """Where the checker serves as the issuer of the server's tokens, on loopback: `:9400`. Without it, it issues none.
    Its tokens replace `tokens`."""
    audience: str = ""
    """The audience of the tokens of `issuer`; the server's metadata has it, if it is empty."""
    call_tools: bool | tuple[str, ...] = False
    """Whether tools may be called: all, or those named."""
    trusted: bool = False
    """Whether tools with `readOnlyHint` may be called."""
    again: tuple[str, ...] = ()
    """The command line options for the command that repeats a finding, without secrets."""
    seed: int = 0
    """The seed of the generated cases."""
    cases: int = 0
    """The maximum number of generated cases; none unless tools may be called."""
    sequence: str = ""
    """Calls as JSON (`accord.check.fuzz.sequences`) to make in place of generated ones."""
    record: SessionRecorder | None = None
    """What records all sessions of the check, in a session file."""

    def __repr__(self) -> str:
        return "CheckSettings(...)"  # without the values of headers

    @property
    def brief(self) -> bool:
        """Return whether older revisions are left out: neither `full` nor `revisions` is set."""
        return not (self.full or self.revisions)

    def includes_level(self, level: Level) -> bool:
        """Return whether rules of this level are selected."""
        return LEVELS.index(level) <= LEVELS.index(self.level)

    def may_call(self, name: str, read_only: bool = False) -> bool:
        """Return whether a tool may be called; `read_only` is its `readOnlyHint`."""
        if isinstance(self.call_tools, bool):
            return self.call_tools or (self.trusted and read_only)
        return name in self.call_tools or (self.trusted and read_only)
