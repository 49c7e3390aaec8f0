"""Pages that people were sent to, and the news that they are done there (2025-11-25, Elicitation, URL mode)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from accord.messages.elicitation import ElicitationCompleteParams
from accord.messages.methods import table

if TYPE_CHECKING:
    from accord.server.peer import Peer

_COMPLETE = "notifications/elicitation/complete"
_REMEMBERED = 10_000
"""Visits that are remembered; the oldest is forgotten for one more."""


class URLElicitations:
    """Which client was asked to visit what, by the id of the elicitation."""

    def __init__(self) -> None:
        self._peers: OrderedDict[str, Peer] = OrderedDict()

    def add(self, elicitation_id: str, peer: Peer) -> None:
        """A client is sent to a page."""
        self._peers[elicitation_id] = peer
        if len(self._peers) > _REMEMBERED:
            self._peers.popitem(last=False)

    def complete(self, elicitation_id: str) -> bool:
        """Tell the client that was sent there, where its revision has words for it. Whether it was told."""
        peer = self._peers.pop(elicitation_id, None)
        if peer is None:
            return False
        rules = peer.channel.session.rules
        if _COMPLETE not in table(rules.revision, "server"):
            return False
        peer.channel.notify(_COMPLETE, ElicitationCompleteParams(elicitation_id=elicitation_id))
        return True

    def forget(self, peer: Peer) -> None:
        """A client is gone."""
        for id in [id for id, other in list(self._peers.items()) if other is peer]:  # other loops may add theirs
            self._peers.pop(id, None)
