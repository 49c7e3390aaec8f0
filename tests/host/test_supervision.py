"""A server's life: it starts when it should, is tried again after pauses, and never after the end."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from accord.client.retry import Reconnect
from accord.host.supervision import Action, Supervision

RECONNECT = Reconnect(first_seconds=1, most_seconds=8)


def supervision(lazy: bool = False) -> Supervision:
    return Supervision(lazy=lazy, reconnect=RECONNECT, pick=lambda low, high: high)


class SupervisionMachine(RuleBasedStateMachine):
    """A host, a connection that comes and goes, and users of a server, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.server = supervision()
        self.now = 0.0
        self.connects = 0
        self.refused = False

    def did(self, action: Action) -> None:
        self.connects += action == "connect"
        assert (self.server.state == "connecting") or action != "connect"

    @rule(seconds=st.floats(0, 20))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def start(self) -> None:
        self.did(self.server.start())

    @rule()
    def use(self) -> None:
        before = self.server.state
        self.did(self.server.use(self.now))
        assert (before, self.server.state) not in (("invalid", "connecting"), ("unapproved", "connecting"))

    @rule()
    def wake(self) -> None:
        due = self.server.retry_at is not None and self.now >= self.server.retry_at
        before = self.server.state
        self.did(self.server.wake(self.now))
        assert (self.server.state != before) == (due and before == "failed")

    @precondition(lambda self: self.server.state in ("connecting", "connected", "reconnecting"))
    @rule(state=st.sampled_from(["connecting", "connected", "reconnecting", "lost", "closed"]))
    def change(self, state: str) -> None:
        self.did(self.server.change(state, "because", self.now))  # type: ignore[arg-type]

    @rule()
    def refuse(self) -> None:
        self.server.refuse("unapproved", "its command waits")

    @rule()
    def allow(self) -> None:
        self.server.allow()

    @rule()
    def close(self) -> None:
        self.server.close()

    @invariant()
    def a_server_that_failed_is_tried_again_and_one_that_is_not_connected_says_why(self) -> None:
        if self.server.state == "failed":
            assert self.server.retry_at is not None
            assert self.server.reason
        else:
            assert self.server.retry_at is None


TestSupervisionMachine = SupervisionMachine.TestCase


def test_a_lazy_server_starts_when_it_is_used_and_again_only_when_it_is_used() -> None:
    server = supervision(lazy=True)
    assert server.start() == "nothing"
    assert server.use(0) == "connect"
    assert server.change("closed", "exited", 1) == "nothing"
    assert server.retry_at is None
    assert server.use(1.1) == "nothing"  # so that it does not start in a loop
    assert server.use(2) == "connect"


def test_pauses_grow_and_a_use_does_not_wait_for_them() -> None:
    server, now = supervision(), 0.0
    assert server.start() == "connect"
    pauses = []
    for _ in range(6):
        assert server.change("closed", "exited", now) == "wait"
        assert server.retry_at is not None
        pauses.append(server.retry_at - now)
        assert server.wake(server.retry_at - 0.01) == "nothing"
        now = server.retry_at
        assert server.wake(now) == "connect"
    assert pauses == [1, 2, 4, 8, 8, 8]
    server.change("closed", "exited", now)
    assert server.use(now + 0.6) == "connect"


def test_a_server_that_lived_long_is_started_again_soon() -> None:
    server = supervision()
    server.start()
    for _ in range(5):
        server.change("closed", "exited", 0)
        server.wake(server.retry_at or 0)
    server.change("connected", "", 0)
    assert server.change("lost", "exited", 100, lived=RECONNECT.settled_seconds) == "wait"
    assert server.retry_at == 101


def test_nothing_starts_a_closed_server() -> None:
    server = supervision()
    server.start()
    server.close()
    assert server.change("connected", "", 0) == "nothing"
    assert (server.use(1), server.wake(1), server.start(), server.state) == ("nothing", "nothing", "nothing", "closed")
