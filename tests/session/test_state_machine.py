"""Every state against every input, by hypothesis: two wired sessions with faults, and one session against any bytes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)
from msgspec import Raw

from accord.errors import InternalError, NotConnected, NotSupported
from accord.limits import Limits
from accord.messages.revision import REVISIONS
from accord.session.events import (
    CancelReceived,
    ConnectionOpened,
    ErrorReceived,
    Event,
    HandshakeFailed,
    InitializedReceived,
    MessageIgnored,
    NotificationReceived,
    ProgressReceived,
    ReplyReady,
    RequestReceived,
    ResultReceived,
    SubscriptionEnded,
)
from accord.session.handshake import ClientHandshake
from accord.session.pending_request import PendingRequest
from accord.session.session import Role, Session
from accord.session.states import Phase

from tests.session import pair as wired
from tests.session.pair import META, S26, Pair

LIMITS = Limits(requests_in_flight=4, subscriptions=2, progress_per_second=10, batch_items=4)

ROLES: list[Role] = ["client", "server"]
METHODS = ["tools/list", "tools/call", "ping", "roots/list", "logging/setLevel", "server/discover", "no/such"]
METHODS += ["subscriptions/listen"]

# Bytes that are nearly messages

ids: st.SearchStrategy[Any] = st.one_of(
    st.integers(-1, 8), st.sampled_from(["1", "2", "", None, 1.5, True, 1.0, [], {}, 2**70]), st.text(max_size=2)
)
params: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, 5, [], {}, "x", {"_meta": 5}, {"_meta": META}, {"_meta": {"progressToken": 1}}]),
    st.fixed_dictionaries({"requestId": ids}),
    st.fixed_dictionaries({"id": ids}),
    st.fixed_dictionaries({"progressToken": ids, "progress": st.floats() | st.integers()}),
    st.fixed_dictionaries(
        {
            "protocolVersion": st.sampled_from([*REVISIONS, "x"]),
            "capabilities": st.just({}),
            "clientInfo": st.just({"name": "n", "version": "v"}),
        }
    ),
)
notifications = ["notifications/cancelled", "notifications/progress", "notifications/initialized", "$/cancelRequest"]
results = st.sampled_from(
    [
        {},
        None,
        5,
        {"supportedVersions": [S26], "capabilities": {}},
        {"supportedVersions": ["2024-11-05"], "capabilities": {}},
        {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "n", "version": "v"}},
        {"protocolVersion": "x", "capabilities": {}, "serverInfo": {"name": "n", "version": "v"}},
    ]
)
errors: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, 5, {}]),
    st.fixed_dictionaries(
        {
            "code": st.sampled_from([-32700, -32601, -32602, -32002, -32020, -32021, -32022, 1, 1.5, "x"]),
            "message": st.sampled_from(["m", 5]),
        },
        optional={
            "data": st.sampled_from(
                [
                    None,
                    {"supported": [S26]},
                    {"supported": ["2024-11-05"]},
                    {"supported": []},
                    {"requiredCapabilities": {}},
                    {"uri": 5},
                ]
            )
        },
    ),
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "2.0", "1.0", 2, None]),
        "id": ids,
        "method": st.sampled_from([*METHODS, *notifications, "initialize", "resources/read"])
        | st.sampled_from([None, 5]),
        "params": params,
        "result": results,
        "error": errors,
    },
).map(lambda message: {"jsonrpc": "2.0", **message} if len(message) > 1 else message)
encoded = messages.map(msgspec.json.encode)
batches = st.lists(messages | st.sampled_from([5, None, []]), max_size=5).map(msgspec.json.encode)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A message of which some bytes were cut, repeated or changed."""
    message = bytearray(draw(encoded | batches))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(message)))
        message[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(message)


anything = st.one_of(st.binary(max_size=40), encoded, batches, mutated())

SINGLE = {
    RequestReceived,
    NotificationReceived,
    ResultReceived,
    ErrorReceived,
    ProgressReceived,
    CancelReceived,
    SubscriptionEnded,
    ReplyReady,
    ConnectionOpened,
    InitializedReceived,
    HandshakeFailed,
    MessageIgnored,
}


def answers_in(message: bytes | None) -> int:
    """How many answers there are in what a session sends."""
    if message is None:
        return 0
    value = msgspec.json.decode(message)
    found = value if isinstance(value, list) else [value]
    assert found
    for each in found:
        assert each["jsonrpc"] == "2.0"
        assert ("result" in each) + ("error" in each) == ("method" not in each)
    return sum("method" not in each for each in found)


# One session against any bytes


def fresh(role: Role, revision: str | None, phase: str) -> Session:
    """A session in one of its phases; without a revision, before anything is agreed."""
    session = wired.client(limits=LIMITS) if role == "client" else wired.server(limits=LIMITS)
    if isinstance(session.handshake, ClientHandshake) and phase != "new":
        session.handshake.start(handshake=phase == "initializing")
        if phase == "both":
            session.handshake.on_probe_timeout()
    if role == "server" and phase != "new":
        session.receive(wired.initialize("2025-03-26"))
    if revision is not None:
        session = (wired.opened_client if role == "client" else wired.opened_server)(revision, limits=LIMITS)
        if phase == "busy" and session.phase is Phase.OPEN:
            for _ in range(3):
                session.request("ping" if session.rules.handshake else "tools/list", progress=True)
    if phase == "closed":
        session.close()
    return session


PLACES = [
    *((role, None, phase) for role in ROLES for phase in ("new", "discovering", "initializing", "both", "closed")),
    *((role, revision, phase) for role in ROLES for revision in REVISIONS for phase in ("idle", "busy", "closed")),
]


@pytest.mark.parametrize(("role", "revision", "phase"), PLACES)
def test_whatever_bytes_come_nothing_is_raised_and_all_is_counted(role: Role, revision: str | None, phase: str) -> None:
    @settings(max_examples=30)  # in each of the 40 places
    @given(st.lists(anything, max_size=8))
    def check(arriving: list[bytes]) -> None:
        session = fresh(role, revision, phase)
        before = session.stats.received
        sent = session.stats.answers_sent
        said = 0
        for message in arriving:
            for event in session.receive(message):
                assert type(event) in SINGLE
                if isinstance(event, ReplyReady):
                    said += answers_in(event.message)
                elif isinstance(event, ConnectionOpened | CancelReceived):
                    said += answers_in(event.reply)
                elif isinstance(event, RequestReceived) and event.pending.stage == "active":
                    said += answers_in(session.respond(event.pending, Raw(b"{}")))
        assert session.stats.received == before + len(arriving)
        if all(message.lstrip()[:1] != b"[" for message in arriving):
            assert not session.incoming
            assert session.stats.answers_sent == sent + said

    check()


# Two sessions, and all that may go wrong between them


class TwoSessions(RuleBasedStateMachine):
    """Requests, answers, cancels, progress, faults and the end, on both sides, in any order."""

    asked: Bundle[tuple[Role, PendingRequest]] = Bundle("asked")

    @initialize(ours=st.sampled_from([REVISIONS, *[(r,) for r in REVISIONS]]), theirs=st.sampled_from(REVISIONS))
    def begin(self, ours: tuple[str, ...], theirs: str) -> None:
        client = wired.client([theirs] if theirs not in ours else ours, limits=LIMITS)
        self.pair = Pair(client, wired.server([theirs], limits=LIMITS), answer=self.answer)
        self.served: list[tuple[Session, PendingRequest]] = []
        self.ends: Counter[int] = Counter()
        self.cancelled: set[int] = set()
        self.all: list[tuple[Role, PendingRequest]] = []
        self.seen = 0
        self.noise = 0
        self.now = 0.0
        assert isinstance(self.pair.open(), ConnectionOpened)
        self.received = Counter({role: self.pair.side(role).stats.received for role in ROLES})

    def answer(self, session: Session, pending: PendingRequest) -> Any:
        if pending.stage == "active":
            self.served.append((session, pending))
        return wired.LATER

    def look(self) -> None:
        """Go through what happened since the last look."""
        for role, event in self.pair.happened[self.seen :]:
            if isinstance(event, ResultReceived | ErrorReceived | SubscriptionEnded):
                assert (role, event.pending) in self.all
                self.ends[id(event.pending)] += 1
            if isinstance(event, CancelReceived):
                self.cancelled.add(id(event.pending))
        self.seen = len(self.pair.happened)

    # What a side does

    @rule(target=asked, role=st.sampled_from(ROLES), method=st.sampled_from(METHODS), progress=st.booleans())
    def ask(self, role: Role, method: str, progress: bool) -> Any:
        session = self.pair.side(role)
        in_flight = set(session.outgoing)
        try:
            pending, message = session.request(method, progress=progress)
        except (NotSupported, NotConnected):
            return multiple()
        assert pending.id not in in_flight
        self.pair.send(session, message)
        self.all.append((role, pending))
        return (role, pending)

    @rule(asked=asked, reason=st.none() | st.text(max_size=3))
    def cancel(self, asked: tuple[Role, PendingRequest], reason: str | None) -> None:
        role, pending = asked
        active = pending.stage == "active"
        self.pair.cancel(self.pair.side(role), pending, reason)
        self.ends[id(pending)] += active

    @precondition(lambda self: self.served)
    @rule(data=st.data(), how=st.sampled_from(["result", "error", "unwritable"]))
    def respond(self, data: st.DataObject, how: str) -> None:
        session, pending = data.draw(st.sampled_from(self.served))
        was = pending.stage
        if how == "unwritable" and was == "active":
            with pytest.raises(TypeError):
                session.respond(pending, object())
            assert pending.stage == "active"
            return
        error = InternalError("no \ud800", data=object())
        message = session.respond(pending, Raw(b"{}")) if how == "result" else session.fail(pending, error)
        if was != "active":
            assert message is None
        self.pair.send(session, message)

    @precondition(lambda self: any(pending.method.stays for _, pending in self.served))
    @rule(data=st.data())
    def end_listen(self, data: st.DataObject) -> None:
        session, pending = data.draw(st.sampled_from([each for each in self.served if each[1].method.stays]))
        was = pending.stage
        messages = session.end_subscription(pending)
        assert len(messages) == (2 if was == "active" else 0)
        for message in messages:
            self.pair.send(session, message)

    @precondition(lambda self: self.served)
    @rule(data=st.data(), value=st.floats() | st.integers(0, 9), after=st.floats(0, 0.2))
    def report(self, data: st.DataObject, value: float, after: float) -> None:
        session, pending = data.draw(st.sampled_from(self.served))
        self.now += after
        reported = pending.last_progress
        message = session.report(pending, value, None, None, self.now)
        if message is not None:
            assert pending.stage == "active"
            assert reported is None or value > reported
        self.pair.send(session, message)

    # What the way between them does

    @rule(role=st.sampled_from(ROLES))
    def deliver(self, role: Role) -> None:
        if self.pair.wire[role]:
            self.pair.deliver(role)
            self.received[role] += 1
            self.look()

    @rule(role=st.sampled_from(ROLES), fault=st.sampled_from(["drop", "repeat", "reorder"]))
    def fail(self, role: Role, fault: str) -> None:
        if self.pair.wire[role]:
            getattr(self.pair, fault)(role)

    @rule(role=st.sampled_from(ROLES), message=anything)
    def garbage(self, role: Role, message: bytes) -> None:
        self.pair.put(role, message)

    @rule(role=st.sampled_from(ROLES))
    def oversized(self, role: Role) -> None:
        session = self.pair.side(role)
        self.received[role] += 1
        for event in session.receive_unreadable("too long"):
            self.pair.react(session, event)

    @rule(role=st.sampled_from(ROLES))
    def lose(self, role: Role) -> None:
        for pending in self.pair.side(role).close():
            self.ends[id(pending)] += 1
            assert pending.stage == "lost"

    @rule(role=st.sampled_from(ROLES))
    def drain(self, role: Role) -> None:
        self.pair.side(role).draining = True

    # What always holds

    @invariant()
    def requests_end_once(self) -> None:
        for role, pending in getattr(self, "all", []):
            waits = self.pair.side(role).outgoing.get(pending.id) is pending
            assert waits == (pending.stage == "active")
            assert self.ends[id(pending)] == (not waits)

    @invariant()
    def requests_in_flight_are_those_served(self) -> None:
        for session, pending in getattr(self, "served", []):
            assert (session.incoming.get(pending.id) is pending) == (pending.stage == "active")
            assert (id(pending) in self.cancelled) == (pending.stage == "cancelled")
        for role in ROLES if hasattr(self, "pair") else ():
            served = self.pair.side(role).incoming_requests
            staying = sum(pending.method.stays for pending in served.in_flight.values())
            assert staying == served.subscription_count <= LIMITS.subscriptions
            assert len(served.in_flight) - staying <= LIMITS.requests_in_flight

    @invariant()
    def every_message_is_counted_once(self) -> None:
        if not hasattr(self, "pair"):
            return
        for role in ROLES:
            session = self.pair.side(role)
            stats = session.stats
            assert stats.received == self.received[role]
            arrow = wired.ARROWS[session.peer_role]
            sent = [line[2:].encode() for line in self.pair.transcript if line[0] == arrow]
            waiting = {id(b): b for _, e in self.served if (b := e.batch) and e.stage != "cancelled"}
            held = sum(len(b.answers) for b in waiting.values() if b.pending)
            if held == 0 and not any(line[:1] == b"[" for line in sent):
                unfinished = any(e.batch is not None for _, e in self.served)
                assert unfinished or sum(map(answers_in, sent)) == stats.answers_sent
            assert stats.errors_sent <= stats.answers_sent
            asked = sum(1 for line in sent if b'"id"' in line[:22] and b'"method"' in line[:60])
            assert asked == stats.requests_sent

    def teardown(self) -> None:
        """When all is delivered, answered and lost, nothing is left."""
        if not hasattr(self, "pair"):
            return
        while any(self.pair.wire.values()) or any(pending.stage == "active" for _, pending in self.served):
            self.pair.run()
            for session, pending in self.served:
                if pending.stage == "active":
                    self.pair.respond(session, pending)
        self.look()
        for role in ROLES:
            self.lose(role)
        self.requests_end_once()
        assert not self.pair.client.outgoing
        assert not self.pair.server.outgoing
        assert not self.pair.client.incoming
        assert not self.pair.server.incoming


TwoSessions.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestTwoSessions = TwoSessions.TestCase


def test_every_kind_of_event_is_known_here() -> None:
    assert set(Event.__args__) == SINGLE
