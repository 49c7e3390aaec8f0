"""Progress: tokens, values that grow, a bounded rate with the last one kept, and nothing after the end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from accord.limits import Limits
from accord.messages.revision import REVISIONS
from accord.session.events import MessageIgnored, ProgressReceived, RequestReceived
from accord.session.pending_request import PendingRequest
from accord.session.session import Session

from tests.session.pair import (
    META,
    S26,
    Pair,
    answer_to,
    client,
    later,
    notification,
    opened_client,
    opened_server,
    request,
    server,
)

TEN = Limits(progress_per_second=10)


def served(
    revision: str = "2025-11-25", token: Any = "t", id: Any = 1, limits: Limits = TEN
) -> tuple[Session, PendingRequest]:
    """A server with one request in flight that asks for progress."""
    session = opened_server(revision, limits=limits)
    return session, admitted(session, revision, token, id)


def admitted(session: Session, revision: str = "2025-11-25", token: Any = "t", id: Any = 1) -> PendingRequest:
    meta = {"progressToken": token, **(META if revision == S26 else {})}
    (event,) = session.receive(request(id, "tools/list", {"_meta": meta}))
    assert isinstance(event, RequestReceived)
    return event.pending


def report(session: Session, pending: PendingRequest, progress: float, now: float, **rest: Any) -> Any:
    message = session.report(pending, progress, rest.get("total"), rest.get("message"), now)
    return None if message is None else msgspec.json.decode(message)["params"]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("token", ["t", "", "7", 7, 0, -1, 2**70])
def test_a_token_comes_back_as_it_was(token: Any, revision: str) -> None:
    session, pending = served(revision, token)
    params = report(session, pending, 0.5, 0, total=2, message="half")
    expected = {"progressToken": token, "progress": 0.5, "total": 2, "message": "half"}
    if revision == "2024-11-05":
        del expected["message"]
    assert params == expected
    assert type(params["progressToken"]) is type(token)


def test_no_progress_is_reported_without_a_token() -> None:
    session = opened_server("2025-11-25")
    for id, params in ((1, None), (2, {"_meta": {}}), (3, {"_meta": {"progressToken": None}})):
        (event,) = session.receive(request(id, "tools/list", params))
        assert isinstance(event, RequestReceived)
        assert report(session, event.pending, 1, 0) is None
        assert session.pop_held_report(event.pending) is None
    assert session.stats.progress_held == session.stats.progress_sent == 0


@pytest.mark.parametrize("next", [5, 4.999, 0, -1, float("nan"), float("inf"), float("-inf")])
def test_what_does_not_increase_is_not_sent(next: float) -> None:
    session, pending = served()
    assert report(session, pending, 5, 0)["progress"] == 5
    assert report(session, pending, next, 100) is None
    assert session.stats.progress_held == 1
    assert session.pop_held_report(pending) is None
    assert report(session, pending, 5.5, 200)["progress"] == 5.5


@pytest.mark.parametrize("total", [float("nan"), float("inf")])
def test_a_total_that_json_cannot_say_is_left_out(total: float) -> None:
    session, pending = served()
    assert report(session, pending, 1, 0, total=total) == {"progressToken": "t", "progress": 1}


def test_reports_that_come_too_fast_are_coalesced_and_the_last_is_sent() -> None:
    session, pending = served(limits=Limits(progress_per_second=0.1))
    said = [report(session, pending, step, now=step) for step in range(25)]
    assert [params["progress"] for params in said if params] == [0, 10, 20]
    held = session.pop_held_report(pending)
    assert held is not None
    assert msgspec.json.decode(held)["params"]["progress"] == 24
    assert session.pop_held_report(pending) is None
    assert session.stats.progress_sent == 4
    assert session.stats.progress_held == 22


def test_a_report_that_may_go_replaces_the_one_held() -> None:
    session, pending = served(limits=Limits(progress_per_second=1))
    report(session, pending, 1, 0)
    assert report(session, pending, 2, 0.5) is None
    assert report(session, pending, 3, 2)["progress"] == 3
    assert session.pop_held_report(pending) is None


def test_one_seconds_worth_may_go_at_once_and_then_the_rate_holds() -> None:
    session, pending = served()
    said = [report(session, pending, step, now=0) is not None for step in range(20)]
    assert said == [True] * 10 + [False] * 10
    assert report(session, pending, 20, now=0.05) is None
    assert report(session, pending, 21, now=0.15) is not None
    assert report(session, pending, 22, now=0.15) is None


def test_what_is_held_goes_out_when_the_rate_allows_it() -> None:
    session, pending = served()
    for step in range(12):
        report(session, pending, step, now=0)
    wait = session.progress.delay(pending, 0)
    assert wait == pytest.approx(0.1)
    assert session.progress.release_held(pending, 0.05) is None
    released = session.progress.release_held(pending, wait)
    assert released is not None
    assert msgspec.json.decode(released)["params"]["progress"] == 11
    assert session.progress.release_held(pending, 100) is None
    assert session.stats.progress_sent == 11


def test_what_is_held_is_not_released_after_a_cancel() -> None:
    session, pending = served(limits=Limits(progress_per_second=1))
    report(session, pending, 1, 0)
    report(session, pending, 2, 0)
    session.receive(notification("notifications/cancelled", {"requestId": 1}))
    assert session.progress.release_held(pending, 100) is None
    assert pending.held_report is None


def test_a_rate_of_nothing_holds_all_but_the_last() -> None:
    session, pending = served(limits=Limits(progress_per_second=0))
    assert [report(session, pending, step, now=step) for step in range(3)] == [None] * 3
    assert session.pop_held_report(pending) is not None


def test_progress_without_a_token_is_dropped() -> None:
    session = opened_client("2025-11-25")
    pending, _ = session.request("tools/list")
    params = {"progressToken": pending.id, "progress": 1}
    (event,) = session.receive(notification("notifications/progress", params))
    assert isinstance(event, MessageIgnored)


def test_the_rate_is_that_of_one_request_not_of_all() -> None:
    session, first = served()
    second = admitted(session, token="u", id=2)
    assert report(session, first, 1, 0)
    assert report(session, second, 1, 0)


def test_nothing_is_reported_after_the_answer() -> None:
    session, pending = served()
    session.respond(pending, Raw(b"{}"))
    assert report(session, pending, 1, 0) is None
    assert session.stats.progress_held == 1


def test_nothing_is_reported_for_an_old_request_when_its_id_is_in_use_again() -> None:
    session, old = served()
    session.respond(old, Raw(b"{}"))
    new = admitted(session)
    assert report(session, old, 1, 0) is None
    assert report(session, new, 1, 0)


def test_nothing_is_reported_after_a_cancel_not_even_what_was_held() -> None:
    session, pending = served(limits=Limits(progress_per_second=1))
    report(session, pending, 1, 0)
    report(session, pending, 2, 0)
    session.receive(notification("notifications/cancelled", {"requestId": 1}))
    assert session.pop_held_report(pending) is None
    assert report(session, pending, 3, 100) is None
    assert session.stats.progress_sent == 1


# The other side


def asked(revision: str = "2025-11-25") -> tuple[Session, PendingRequest]:
    session = opened_client(revision)
    pending, _ = session.request("tools/list", progress=True)
    return session, pending


def progress(token: Any, value: Any, **rest: Any) -> bytes:
    return notification("notifications/progress", {"progressToken": token, "progress": value, **rest})


@pytest.mark.parametrize("revision", REVISIONS)
def test_progress_reaches_its_request(revision: str) -> None:
    session, pending = asked(revision)
    (event,) = session.receive(progress(pending.id, 1, total=3, message="one"))
    assert event == ProgressReceived(pending, 1, 3, "one")
    assert session.stats.progress_received == 1


@pytest.mark.parametrize(
    ("token", "value"),
    [("x", 1), ("2", 1), (99, 1), (None, 1), (1.5, 1), (True, 1), ([], 1), (2, "1"), (2, None), (2, True)],
)
def test_progress_of_nothing_or_of_no_shape_is_dropped(token: Any, value: Any) -> None:
    session, pending = asked()
    assert pending.id == 2
    (event,) = session.receive(progress(token, value))
    assert isinstance(event, MessageIgnored)
    assert session.stats.ignored == 1


def test_progress_that_does_not_increase_is_dropped() -> None:
    session, pending = asked()
    kept = [
        value
        for value in (0, 0, 1, 0.5, 1, 1.5, -3, 2)
        if isinstance(session.receive(progress(pending.id, value))[0], ProgressReceived)
    ]
    assert kept == [0, 1, 1.5, 2]
    assert session.stats.ignored == 4


def test_progress_after_the_answer_is_dropped() -> None:
    session, pending = asked()
    session.receive(answer_to(pending.id))
    (event,) = session.receive(progress(pending.id, 1))
    assert isinstance(event, MessageIgnored)


def test_a_client_may_report_progress_of_a_request_of_the_server() -> None:
    pair = Pair(client(), server(["2025-11-25"]), answer=later)
    pair.open()
    pending = pair.ask("roots/list", of="client", progress=True)
    pair.run()
    pair.send(pair.client, pair.client.report(pair.client.incoming[pending.id], 1, None, None, 0))
    (event,) = pair.run()
    assert event == ProgressReceived(pending, 1, None, None)
