"""Each message is assigned to the request of the client that it belongs to, where that is known."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from accord.wire.request_tracker import RequestTracker


def message(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


CALL = message(id=7, method="tools/call", params={"_meta": {"progressToken": "a"}})
LISTEN = message(id=8, method="subscriptions/listen")


def after_a_call(exchange: int = 0) -> RequestTracker:
    tracker = RequestTracker()
    assert tracker.request_of(CALL, "sent", exchange) == 7
    return tracker


OVER_STDIO = [
    (message(id=7, result={}), "received", 7),
    (message(id=7, error={}), "received", 7),
    (message(method="notifications/progress", params={"progressToken": "a"}), "received", 7),
    (message(method="notifications/progress", params={"progressToken": "b"}), "received", None),
    (message(method="notifications/cancelled", params={"requestId": 7}), "sent", 7),
    (message(method="notifications/message", params={}), "received", None),
    (message(id=1, method="sampling/createMessage"), "received", None),
    (message(method="notifications/initialized"), "sent", None),
    (message(method="x", params={"_meta": {"io.modelcontextprotocol/subscriptionId": 8}}), "received", 8),
    (b"[]", "received", None),
    (b"{", "received", None),
    (b"\xff", "received", None),
    (message(id=None, error={}), "received", None),
    (message(id=True, method="ping"), "sent", None),
]


@pytest.mark.parametrize(("sent", "direction", "request_id"), OVER_STDIO)
def test_over_stdio(sent: bytes, direction: Any, request_id: int | None) -> None:
    assert after_a_call().request_of(sent, direction) == request_id


OVER_HTTP = [
    (message(method="notifications/message", params={}), 3, 7),
    (message(method="notifications/message", params={}), 4, None),
    (message(id=1, method="sampling/createMessage"), 3, 7),
    (b"[]", 3, 7),
]


@pytest.mark.parametrize(("sent", "exchange", "request_id"), OVER_HTTP)
def test_over_http_the_exchange_shows_it(sent: bytes, exchange: int, request_id: int | None) -> None:
    assert after_a_call(3).request_of(sent, "received", exchange) == request_id


def test_an_answer_of_the_client_belongs_to_the_same_request_as_the_question() -> None:
    tracker = after_a_call(3)
    tracker.request_of(message(id="q", method="elicitation/create"), "received", 3)
    cancelled = message(method="notifications/cancelled", params={"requestId": "q"})
    assert tracker.request_of(cancelled, "received", 9) == 7
    assert tracker.request_of(message(id="q", result={}), "sent", 4) == 7
    assert tracker.request_of(message(id="q", result={}), "sent", 5) is None


def test_a_recorded_server_receives_requests() -> None:
    tracker = RequestTracker("received")
    assert tracker.request_of(CALL, "received") == 7
    assert tracker.request_of(message(id=7, result={}), "sent") == 7


def test_the_number_of_requests_is_limited() -> None:
    tracker = after_a_call()
    for number in range(10_000):
        tracker.request_of(message(id=number, method="x", params={"_meta": {"progressToken": number}}), "sent")
    progress = message(method="notifications/progress", params={"progressToken": "a"})
    assert tracker.request_of(progress, "received") is None


def test_requests_of_the_server_take_little_memory_whatever_the_length_of_their_ids() -> None:
    tracker = RequestTracker()
    tracemalloc.start()
    try:
        for number in range(100):
            tracker.request_of(message(id=f"{number}" + "x" * 100_000, method="roots/list"), "received")
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert used < 1_000_000
