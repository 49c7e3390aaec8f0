"""The state that the parts of a session share: the two sides, the agreed revision, and the counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from accord.errors import NotSupported
from accord.limits import Limits
from accord.messages.methods import Method, extended_table
from accord.messages.revision import BEFORE_OPENING, Rules
from accord.session.events import Event, MessageIgnored
from accord.session.method_table import MethodTable
from accord.session.negotiation import check_revisions
from accord.session.peer_info import PeerInfo, missing_capability
from accord.session.states import Phase
from accord.session.stats import Stats

Role = Literal["client", "server"]


class SessionState:
    """The state of one side of one connection. The arguments are those of `Session`."""

    def __init__(
        self, role: Role, profile: PeerInfo, *, revisions: Sequence[str], limits: Limits, methods: Sequence[Method]
    ) -> None:
        self.role: Role = role
        self.peer_role: Role = "server" if role == "client" else "client"
        self.revisions: tuple[str, ...] = check_revisions(revisions)
        self.limits = limits
        self.phase: Phase = Phase.NEW
        self.rules: Rules = BEFORE_OPENING
        self.last_request_rules: Rules = BEFORE_OPENING
        """The rules of the last request with a revision of its own."""
        self.peer_info: PeerInfo | None = None
        self.stats: Stats = Stats()
        self.draining: bool = False
        """Whether the server is shutting down and refuses new requests."""
        self.allows_revision_in_meta: bool = True
        """Whether a request may state its revision only in `_meta`; over HTTP a header must state it too."""
        self._table = extended_table(methods)
        self.local_info = profile
        self._logged_kinds: set[str] = set()

    @property
    def local_info(self) -> PeerInfo:
        """The identity and capabilities of this side; set a new value when tools are added or removed."""
        return self._local_info

    @local_info.setter
    def local_info(self, profile: PeerInfo) -> None:
        self._local_info = profile
        self.method_table: MethodTable = MethodTable(self._table, self.role, profile)

    @property
    def agreed(self) -> Rules:
        """Return the rules for a message without a revision: the agreed ones, or else those of the last request."""
        return self.rules if self.rules.revision else self.last_request_rules

    def require_peer_capability(self, name: str, needs: str | None) -> None:
        """Raise the errors of `request` unless the peer declared the capability that `name` needs in the handshake."""
        if self.peer_info is None or self.peer_info.declares(needs):
            return
        if self.role == "server":
            raise missing_capability(str(needs), name)
        raise NotSupported(f"the server does not offer {needs!r}, which {name} needs")

    # --- dropped messages --------------------------------------------------------------------------------------

    def drop(self, kind: str, detail: str, *, log: bool = True) -> Event:
        """Count and ignore a message."""
        self.stats.ignored += 1
        return self.ignore(kind, detail, log=log)

    def ignore(self, kind: str, detail: str, *, log: bool = True) -> MessageIgnored:
        """Return the event of an ignored message; the first of its kind is to be logged."""
        first = log and kind not in self._logged_kinds
        self._logged_kinds.add(kind)
        return MessageIgnored(kind, detail, first)
