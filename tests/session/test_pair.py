"""The two wired sessions themselves, and the story that all others are variations of."""

from __future__ import annotations

import pytest

from accord.messages.revision import REVISIONS
from accord.session.events import ConnectionOpened, ResultReceived

from tests.session.pair import LATER, Pair, client, later, server


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_request_is_answered_in_every_revision(revision: str) -> None:
    pair = Pair(client(), server([revision]))
    opened = pair.open()
    assert isinstance(opened, ConnectionOpened)
    assert opened.revision == pair.client.rules.revision == revision
    pending = pair.ask("tools/list")
    (_, result) = pair.run()
    assert isinstance(result, ResultReceived)
    assert result.pending is pending
    assert pending.stage == "answered"
    assert not pair.client.outgoing
    assert not pair.server.incoming


def test_what_was_sent_can_be_dropped_repeated_and_reordered() -> None:
    pair = Pair(answer=later)
    pair.open()
    for _ in range(3):
        pair.ask("tools/list")
    pair.reorder("server")
    pair.drop("server")
    pair.repeat("server", 1)
    pair.run()
    assert [pending.id for pending in pair.server.incoming.values()] == [3, 2]
    assert pair.server.stats.errors_sent == 1  # the repeated one
    assert pair.answer(pair.server, pair.server.incoming[2]) is LATER
    assert [line[0] for line in pair.transcript] == ["→", "←", "→", "→", "→", "←"]
