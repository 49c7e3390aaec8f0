"""Subscriptions (2026-07-28): a request that stays open, what belongs to it, and its end from either side."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from accord.errors import InternalError
from accord.limits import Limits
from accord.messages.meta import SUBSCRIPTION_ID
from accord.messages.resources import ResourceUpdatedParams
from accord.messages.revision import RULES
from accord.session.events import (
    CancelReceived,
    MessageIgnored,
    NotificationReceived,
    RequestReceived,
    ResultReceived,
    SubscriptionEnded,
)
from accord.session.pending_request import PendingRequest

from tests.session.pair import (
    S26,
    Pair,
    answer_to,
    client,
    error_of,
    later,
    notification,
    opened_client,
    opened_server,
    replies,
    request,
    server,
)

UPDATED = "notifications/resources/updated"
WISH = {"notifications": {"toolsListChanged": True}}


def listening(limits: Limits | None = None) -> tuple[Pair, PendingRequest, PendingRequest]:
    """A client and a server, and one subscription as each of them sees it."""
    pair = Pair(client([S26]), server([S26], limits=limits or Limits()), answer=later)
    pair.open()
    ours = pair.ask("subscriptions/listen", WISH)
    pair.run()
    return pair, ours, pair.server.incoming[ours.id]


def tagged(id: Any, name: str = UPDATED, **rest: Any) -> bytes:
    return notification(name, {"uri": "a:b", "_meta": {SUBSCRIPTION_ID: id}, **rest})


def test_subscriptions_take_no_room_from_other_requests() -> None:
    session = opened_server(S26, limits=Limits(requests_in_flight=1, subscriptions=2))
    ids = ["l1", "l2", "l3"]
    asked = [session.receive(request(id, "subscriptions/listen", WISH, revision=S26))[0] for id in ids]
    assert [type(event) for event in asked[:2]] == [RequestReceived] * 2
    assert b"too many subscriptions: the limit is 2" in asked[2].message  # type: ignore[union-attr]
    assert isinstance(session.receive(request(1, "tools/list", revision=S26))[0], RequestReceived)
    (refused,) = replies(session, request(2, "tools/list", revision=S26))
    assert "too many requests in flight" in refused["error"]["message"]


@pytest.mark.parametrize("how", ["cancel", "end", "fail"])
def test_the_room_of_a_subscription_is_free_again_when_it_has_ended(how: str) -> None:
    session = opened_server(S26, limits=Limits(subscriptions=1))
    for round in range(3):
        (event,) = session.receive(request(round, "subscriptions/listen", WISH, revision=S26))
        assert isinstance(event, RequestReceived), event
        if how == "cancel":
            session.receive(notification("notifications/cancelled", {"requestId": round}))
        elif how == "end":
            assert len(session.end_subscription(event.pending)) == 2
        else:
            session.fail(event.pending, InternalError("no"))
        assert session.incoming_requests.subscription_count == 0
        assert not session.incoming


def test_a_server_that_is_leaving_takes_no_subscriptions() -> None:
    session = opened_server(S26)
    session.draining = True
    (refused,) = replies(session, request(1, "subscriptions/listen", WISH, revision=S26))
    assert error_of(refused) == (1, -32603)


def test_a_subscription_cannot_be_part_of_a_batch_which_would_wait_for_it() -> None:
    session = opened_server("2025-03-26")
    inside = msgspec.json.decode(request(1, "subscriptions/listen", WISH, revision=S26))
    ((refused,),) = replies(session, msgspec.json.encode([inside]))
    assert error_of(refused) == (1, -32600)


# What belongs to it


def test_a_notification_carries_the_id_of_its_subscription_and_is_handed_up_with_it() -> None:
    pair, ours, _ = listening()
    message = pair.server.notify(
        UPDATED, ResourceUpdatedParams(uri="a:b"), meta={SUBSCRIPTION_ID: ours.id}, rules=RULES[S26]
    )
    assert msgspec.json.decode(message)["params"] == {"uri": "a:b", "_meta": {SUBSCRIPTION_ID: ours.id}}
    pair.send(pair.server, message)
    (event,) = pair.run()
    assert isinstance(event, NotificationReceived)
    assert event.subscription == ours.id
    assert event.rules.revision == S26


def test_meta_is_added_to_what_the_params_carry() -> None:
    session = opened_server(S26)
    message = session.notify(
        UPDATED, {"uri": "a:b", "_meta": {"com.example/x": 1, "b": 1}}, meta={"b": 2}, rules=RULES[S26]
    )
    assert msgspec.json.decode(message)["params"] == {"uri": "a:b", "_meta": {"com.example/x": 1, "b": 2}}
    bare = session.notify("notifications/tools/list_changed", meta={SUBSCRIPTION_ID: "7"}, rules=RULES[S26])
    assert msgspec.json.decode(bare)["params"] == {"_meta": {SUBSCRIPTION_ID: "7"}}


@pytest.mark.parametrize("other", [str, lambda id: id + 1, lambda id: -id])
def test_what_belongs_to_no_subscription_of_ours_is_dropped_and_counted(other: Any) -> None:
    pair, ours, _ = listening()
    ignored = pair.client.stats.ignored
    (event,) = pair.client.receive(tagged(other(ours.id)))
    assert isinstance(event, MessageIgnored)
    assert event.kind == "notification of no subscription"
    assert event.first
    assert pair.client.stats.ignored == ignored + 1
    (event,) = pair.client.receive(tagged(ours.id))
    assert isinstance(event, NotificationReceived)


def test_the_id_of_another_kind_of_request_is_no_subscription() -> None:
    session = opened_client(S26)
    pending, _ = session.request("tools/list")
    assert isinstance(session.receive(tagged(pending.id))[0], MessageIgnored)


@pytest.mark.parametrize("id", [1.5, True, [], {}])
def test_what_is_tagged_with_no_id_at_all_is_malformed(id: Any) -> None:
    pair, _, _ = listening()
    (event,) = pair.client.receive(tagged(id))
    assert isinstance(event, MessageIgnored)
    assert event.kind == f"malformed {UPDATED}"


@pytest.mark.parametrize("params", [None, {}, {"_meta": None}, {"_meta": {}}])
def test_what_is_not_tagged_is_handed_up_as_belonging_to_none(params: Any) -> None:
    session = opened_client(S26)
    (event,) = session.receive(notification("notifications/message", params))
    assert isinstance(event, NotificationReceived)
    assert event.subscription is None


def test_a_tag_means_nothing_in_a_revision_that_has_none() -> None:
    session = opened_client("2025-11-25")
    (event,) = session.receive(tagged(99))
    assert isinstance(event, NotificationReceived)
    assert event.subscription is None


# Its end


def test_a_server_ends_it_with_the_cancel_and_then_the_result() -> None:
    pair, ours, theirs = listening()
    messages = pair.server.end_subscription(theirs, "bye")
    cancelled, result = map(msgspec.json.decode, messages)
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"] == {"requestId": ours.id, "reason": "bye"}
    assert result["id"] == ours.id
    assert result["result"]["resultType"] == "complete"
    assert result["result"]["_meta"][SUBSCRIPTION_ID] == ours.id
    assert pair.server.end_subscription(theirs) == []
    for message in messages:
        pair.send(pair.server, message)
    ended, late = pair.run()
    assert ended == SubscriptionEnded(ours, "bye")
    assert isinstance(late, MessageIgnored)
    assert late.kind == "late answer"
    assert not pair.client.outgoing


def test_a_server_that_ends_a_subscription_sends_the_id_as_it_came() -> None:
    session = opened_server(S26)
    (event,) = session.receive(request("7", "subscriptions/listen", WISH, revision=S26))
    assert isinstance(event, RequestReceived)
    cancelled, result = map(msgspec.json.decode, session.end_subscription(event.pending))
    assert cancelled["params"] == {"requestId": "7"}
    assert result["result"]["_meta"][SUBSCRIPTION_ID] == "7"


@given(st.permutations(["cancelled", "result"]), st.integers(1, 2))
def test_a_client_takes_the_end_in_any_order_and_either_alone(order: list[str], count: int) -> None:
    session = opened_client(S26)
    pending, _ = session.request("subscriptions/listen", WISH)
    said = {
        "cancelled": notification("notifications/cancelled", {"requestId": pending.id}),
        "result": answer_to(pending.id),
    }
    first, *rest = [session.receive(said[which])[0] for which in order[:count]]
    assert isinstance(first, SubscriptionEnded if order[0] == "cancelled" else ResultReceived)
    assert first.pending is pending
    assert all(isinstance(event, MessageIgnored) for event in rest)
    assert not session.outgoing
    assert session.cancel(pending) is None


def test_notifications_after_the_end_are_dropped_without_a_line_in_the_log() -> None:
    session = opened_client(S26)
    pending, _ = session.request("subscriptions/listen", WISH)
    session.cancel(pending)
    (event,) = session.receive(tagged(pending.id))
    assert isinstance(event, MessageIgnored)
    assert not event.first


def test_a_server_cannot_cancel_another_kind_of_request() -> None:
    session = opened_client(S26)
    pending, _ = session.request("tools/list")
    (event,) = session.receive(notification("notifications/cancelled", {"requestId": pending.id}))
    assert isinstance(event, MessageIgnored)
    assert pending.stage == "active"


def test_a_client_cancels_a_subscription_like_any_request() -> None:
    pair, ours, theirs = listening()
    pair.cancel(pair.client, ours)
    (event,) = pair.run()
    assert isinstance(event, CancelReceived)
    assert event.pending is theirs
    assert pair.server.end_subscription(theirs) == []
