"""The state machine of a connection, without a socket: whatever way the bytes come, they mean the same."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings, strategies as st

from accord.errors import LocalProtocolError
from accord.wire.http1.connection import (
    BODY,
    CLOSED,
    COMPLETE,
    DRAINING,
    HEAD,
    BodyReceived,
    ConnectionBudget,
    Event,
    HTTPConnection,
    RequestComplete,
    RequestRefused,
)
from accord.wire.http1.head import HeadReceived

from tests.wire.http1.conversations import (
    BODY_BYTES,
    CONVERSATIONS,
    FIELDS,
    GOOD,
    HEAD_BYTES,
    Conversation,
    chunked,
    post,
    request,
)

BUDGET = ConnectionBudget(head_bytes=HEAD_BYTES, fields=FIELDS, body_bytes=BODY_BYTES, buffer_bytes=100)
OK = [(b"content-length", b"2")]


class Server:
    """Answers each request when it is complete, or when its head is there."""

    def __init__(self, budget: ConnectionBudget = BUDGET, *, early: bool = False) -> None:
        self.connection = HTTPConnection(budget)
        self.early = early
        self.events: list[Event] = []
        self.sent = b""

    def feed(self, *pieces: bytes) -> Server:
        for piece in pieces:
            self.handle(self.connection.receive(piece))
            assert self.connection.unparsed <= HEAD_BYTES + len(piece)
        return self

    def handle(self, events: list[Event]) -> None:
        self.events += events
        if any(isinstance(event, HeadReceived if self.early else RequestComplete) for event in events):
            self.answer()

    def answer(self) -> None:
        self.sent += self.connection.send_head(200, OK) + self.connection.send_body(b"ok", more=False)
        self.handle(self.connection.resume())

    def told(self) -> list[str | Event]:
        """What happened, whatever pieces the bodies came in."""
        told: list[str | Event] = []
        body = b""
        for event in self.events:
            if isinstance(event, BodyReceived):
                body += event.data
                continue
            if body:
                told.append("+" + body.decode("latin-1"))
                body = b""
            told.append(event)
        return [*told, "+" + body.decode("latin-1")] if body else told


def words(events: Iterable[str | Event]) -> list[str]:
    found = []
    for event in events:
        if isinstance(event, HeadReceived):
            found.append(f"{event.method} {event.target.decode()}")
        elif isinstance(event, RequestRefused):
            found.append(str(event.status))
        else:
            found.append(event if isinstance(event, str) else ".")
    return found


def test_there_are_two_hundred_conversations() -> None:
    assert len(CONVERSATIONS) == 200


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=range(len(CONVERSATIONS)))
def test_a_conversation_means_the_same_in_one_piece_at_each_split_and_byte_by_byte(conversation: Conversation) -> None:
    sent, meaning = conversation
    whole = Server().feed(sent)
    told = whole.told()
    assert words(told) == meaning
    for at in range(1, len(sent)):
        parts = Server().feed(sent[:at], sent[at:])
        assert (parts.told(), parts.sent) == (told, whole.sent), at
    bytewise = Server().feed(*(sent[at : at + 1] for at in range(len(sent))))
    assert (bytewise.told(), bytewise.sent) == (told, whole.sent)


@given(st.sampled_from(CONVERSATIONS), st.lists(st.integers(1, 60), min_size=1))
@settings(deadline=None, max_examples=300)
def test_and_in_any_pieces(conversation: Conversation, sizes: list[int]) -> None:
    sent = conversation.sent
    pieces = []
    while sent:
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(sent[:size])
        sent = sent[size:]
    assert Server().feed(*pieces).told() == Server().feed(conversation.sent).told()


@given(st.sampled_from(CONVERSATIONS), st.data())
@settings(deadline=None, max_examples=300)
def test_a_conversation_with_a_few_other_bytes_means_the_same_in_any_two_pieces(
    conversation: Conversation, data: st.DataObject
) -> None:
    sent = bytearray(conversation.sent)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(sent) - 1))
        sent[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b"\r\n", b"\n", b" ", b"0", b"\0", b":"])
        )
        sent = sent or bytearray(b"x")
    whole = Server().feed(bytes(sent)).told()
    at = data.draw(st.integers(0, len(sent)))
    assert Server().feed(bytes(sent[:at]), bytes(sent[at:])).told() == whole


@pytest.mark.parametrize("conversation", GOOD, ids=range(len(GOOD)))
def test_an_answer_before_the_body_has_come_is_followed_by_the_next_request(conversation: Conversation) -> None:
    sent = conversation.sent + request("GET", "/next")
    for at in range(len(sent) + 1):
        server = Server(early=True).feed(sent[:at], sent[at:])
        heads = words(event for event in server.events if isinstance(event, HeadReceived))
        if b"expect" in sent and server.sent.count(b"close"):
            assert heads == conversation.meaning[:1]  # nobody knows whether the body comes
        else:
            assert heads == [conversation.meaning[0], "GET /next"]


# --- one request at a time --------------------------------------------------------------------------------------


def test_a_pipeline_stays_bytes_until_its_turn_and_reading_ends_at_the_budget() -> None:
    connection = HTTPConnection(BUDGET)
    one = request("GET", "/")
    assert words(connection.receive(one * 3)) == ["GET /", "."]
    assert connection.unparsed == 2 * len(one)
    assert connection.reading
    while connection.reading:
        assert connection.receive(one) == []
    assert HEAD_BYTES <= connection.buffered_bytes < HEAD_BYTES + len(one)
    connection.release(0)
    assert not connection.reading, "an application that takes its body does not change it"
    assert connection.requests == 1
    left = connection.unparsed // len(one)
    for number in range(left):
        connection.send_head(200, OK)
        connection.send_body(b"ok", more=False)
        assert words(connection.resume()) == ["GET /", "."]
        assert connection.requests == number + 2
    assert connection.reading
    assert connection.unparsed == 0


def test_a_request_behind_an_answer_that_is_not_taken_waits() -> None:
    connection = HTTPConnection(BUDGET)
    connection.receive(request("GET", "/1"))
    connection.send_head(200, OK)
    connection.send_body(b"ok", more=False)
    connection.writable = False
    assert not connection.reading
    assert connection.receive(request("GET", "/2")) == []
    assert connection.resume() == []
    connection.writable = True
    assert words(connection.resume()) == ["GET /2", "."]


def test_a_body_that_nobody_takes_is_read_up_to_the_budget() -> None:
    connection = HTTPConnection(BUDGET)
    connection.receive(request("POST", "/", "content-length: 300"))
    connection.receive(b"x" * 99)
    assert connection.reading
    connection.receive(b"x")
    assert not connection.reading
    assert connection.buffered_bytes == 100
    connection.release(60)
    assert connection.reading


def test_trailers_are_nobodys_headers_neither_of_this_request_nor_of_the_next() -> None:
    trailers = "Authorization: Bearer x\r\nHost: evil\r\nMcp-Method: tools/list\r\nMcp-Name: x\r\n"
    server = Server().feed(chunked("/", "hi", trailers=trailers) + request("GET", "/next"))
    heads = [event for event in server.events if isinstance(event, HeadReceived)]
    assert [head.headers for head in heads] == [
        [(b"host", b"e"), (b"transfer-encoding", b"chunked")],
        [(b"host", b"e")],
    ]


@pytest.mark.parametrize("last", ["connection: close", "connection: upgrade\r\nupgrade: h2c"])
def test_what_follows_the_last_request_is_dropped_and_not_read_for_long(last: str) -> None:
    connection = HTTPConnection(BUDGET)
    connection.receive(post("/", "hi", last) + request("GET", "/2"))
    assert connection.requests == 1
    assert connection.unparsed == 0
    while connection.reading:
        assert connection.receive(request("GET", "/3")) == []
    assert connection.buffered_bytes == len("hi")
    assert b"connection: close" in connection.send_head(200, OK)
    connection.send_body(b"ok", more=False)
    assert connection.state == CLOSED
    assert connection.resume() == []
    assert connection.receive(b"more") == []


def test_the_states_are_those_of_the_table() -> None:
    connection = HTTPConnection(BUDGET)
    states = [connection.state]
    for piece in (request("POST", "/", "content-length: 2"), b"hi"):
        connection.receive(piece)
        states.append(connection.state)
    connection.send_head(200, OK)
    connection.send_body(b"ok", more=False)
    states.append(connection.state)
    connection.receive(request("POST", "/", "content-length: 2"))
    connection.send_head(200, OK)
    connection.send_body(b"ok", more=False)
    states.append(connection.state)
    connection.receive(b"hi")
    states.append(connection.state)
    connection.receive(b"\0")
    states.append(connection.state)
    assert states == [HEAD, BODY, COMPLETE, HEAD, DRAINING, HEAD, CLOSED]


def test_a_body_that_is_drained_has_the_same_bound() -> None:
    server = Server(early=True).feed(request("POST", "/", "content-length: 10000000"), b"x" * BODY_BYTES)
    assert server.connection.state == DRAINING
    server.feed(b"x")
    assert words(server.events) == ["POST /", "413"]
    assert server.connection.state == CLOSED


def test_what_is_malformed_behind_a_head_makes_the_response_the_last() -> None:
    connection = HTTPConnection(BUDGET)
    connection.receive(request("POST", "/", "transfer-encoding: chunked") + b"nonsense\r\n")
    assert connection.state == CLOSED
    assert b"connection: close" in connection.send_head(400, OK)


# --- 100 Continue -------------------------------------------------------------------------------------------------


def test_a_client_that_waits_for_100_gets_it_once_before_the_body() -> None:
    connection = HTTPConnection(BUDGET)
    connection.receive(request("POST", "/", "content-length: 2", "expect: 100-Continue"))
    assert connection.send_continue() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert connection.send_continue() == b""


@pytest.mark.parametrize(
    "sent", [post("/", "hi", "expect: 100-continue"), post("/", "hi"), post("/", "", "expect: 100-continue")]
)
def test_and_not_the_sender_or_a_client_without_a_subscription(sent: bytes) -> None:
    connection = HTTPConnection(BUDGET)
    connection.receive(sent)
    assert connection.send_continue() == b""


def test_an_answer_without_100_ends_the_connection() -> None:
    connection = HTTPConnection(BUDGET)
    connection.receive(request("POST", "/", "content-length: 2", "expect: 100-continue"))
    assert b"connection: close" in connection.send_head(401, OK)
    assert connection.send_continue() == b""
    connection.send_body(b"no", more=False)
    assert connection.state == CLOSED


# --- the end ------------------------------------------------------------------------------------------------------


def test_finish_closes_what_is_idle_and_makes_the_response_that_runs_the_last() -> None:
    idle = HTTPConnection(BUDGET)
    idle.finish()
    assert idle.state == CLOSED
    busy = HTTPConnection(BUDGET)
    busy.receive(request("GET", "/") + request("GET", "/2"))
    busy.finish()
    assert b"connection: close" in busy.send_head(200, OK)
    busy.send_body(b"ok", more=False)
    assert (busy.state, busy.unparsed) == (CLOSED, 0)


def test_an_idle_connection_keeps_no_bytes() -> None:
    server = Server(ConnectionBudget(head_bytes=1000, fields=10, body_bytes=10_000)).feed(post("/", "x" * 9_000))
    server.connection.release(0)
    assert server.connection.buffered_bytes == 0


def test_idle_is_between_two_requests() -> None:
    connection = HTTPConnection(BUDGET)
    assert not connection.idle
    server = Server().feed(request("GET", "/"))
    assert server.connection.idle
    assert not server.feed(b"G").connection.idle


def test_there_is_no_response_without_a_request() -> None:
    with pytest.raises(LocalProtocolError):
        HTTPConnection(BUDGET).send_head(200, OK)
    with pytest.raises(LocalProtocolError):
        HTTPConnection(BUDGET).send_body(b"", more=False)
