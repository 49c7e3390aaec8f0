"""Requests of ours: ids, what may be asked, cancelling, answers that come late, twice or to nothing, and the end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from accord.errors import (
    InternalError,
    MethodNotFound,
    MissingClientCapability,
    NotConnected,
    NotSupported,
    ProtocolError,
    ResourceNotFound,
)
from accord.messages import codec
from accord.messages.notifications import ProgressParams
from accord.messages.revision import HANDSHAKE, REVISIONS
from accord.messages.tools import CallToolParams, CallToolResult, ListToolsResult
from accord.session.events import (
    CancelReceived,
    ErrorReceived,
    MessageIgnored,
    NotificationReceived,
    RequestReceived,
    ResultReceived,
)
from accord.session.outgoing import MAX_ABANDONED_IDS
from accord.session.pending_request import PendingRequest
from accord.session.states import Phase

from tests.session.pair import (
    S26,
    VERSION,
    Pair,
    answer_to,
    client,
    done,
    error_of,
    later,
    notification,
    opened_client,
    opened_server,
    replies,
    request,
    server,
)


def opened(revision: str, *, answer: Any = done, says: Any = None) -> Pair:
    theirs = server([revision]) if says is None else server([revision], says=says)
    pair = Pair(client(), theirs, answer=answer)
    pair.open()
    assert pair.client.phase is Phase.OPEN
    return pair


# What is sent


@pytest.mark.parametrize("revision", REVISIONS)
def test_ids_are_numbers_that_grow_and_are_never_used_again(revision: str) -> None:
    pair = opened(revision)
    ids = []
    for turn in range(5):
        pending = pair.ask("tools/list")
        ids.append(pending.id)
        if turn % 2:
            pair.cancel(pair.client, pending)
        pair.run()
    assert ids == sorted(set(ids))
    assert all(type(id) is int for id in ids)


def test_a_request_in_a_revision_without_a_handshake_carries_revision_and_capabilities() -> None:
    session = opened_client(S26)
    _, message = session.request("tools/call", CallToolParams(name="x"), meta={"com.example/a": 1}, progress=True)
    sent = msgspec.json.decode(message)
    meta = sent["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == S26
    assert set(meta["io.modelcontextprotocol/clientCapabilities"]) == {"sampling", "elicitation", "roots"}
    assert meta["io.modelcontextprotocol/clientInfo"] == {"name": "c", "version": "1"}
    assert meta["com.example/a"] == 1
    assert meta["progressToken"] == sent["id"]
    assert sent["params"]["name"] == "x"


def test_the_meta_that_all_requests_have_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened_client(S26)
    _, first = session.request("tools/list")
    encoded: list[Any] = []
    monkeypatch.setattr(codec, "encode", encoded.append)
    _, second = session.request("tools/list")
    assert encoded == []
    assert msgspec.json.decode(second)["params"] == msgspec.json.decode(first)["params"]


def test_the_meta_of_a_request_has_each_key_once_and_the_current_capabilities() -> None:
    session = opened_client(S26)
    session.request("tools/list")
    session.local_info = client(says={"roots": {}}).local_info
    for given in (None, {VERSION: "2025-11-25", "com.example/a": 1}):
        _, message = session.request("tools/list", meta=given)
        assert message.count(VERSION.encode()) == 1
        meta = msgspec.json.decode(message)["params"]["_meta"]
        assert meta[VERSION] == S26
        assert set(meta["io.modelcontextprotocol/clientCapabilities"]) == {"roots"}


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_request_after_a_handshake_carries_meta_only_where_there_is_something_to_say(revision: str) -> None:
    session = opened_client(revision)
    assert msgspec.json.decode(session.request("tools/list")[1])["params"] == {}
    _, message = session.request("tools/list", progress=True)
    sent = msgspec.json.decode(message)
    assert sent["params"] == {"_meta": {"progressToken": sent["id"]}}
    _, message = session.request("tools/call", {"name": "x"}, meta={"a": 1})
    assert msgspec.json.decode(message)["params"] == {"_meta": {"a": 1}, "name": "x"}


@pytest.mark.parametrize("role", ["client", "server"])
def test_no_request_is_sent_before_the_handshake_or_after_the_end(role: str) -> None:
    fresh = client() if role == "client" else server()
    with pytest.raises(NotConnected, match="it is new"):
        fresh.request("ping")
    over = opened_client("2025-11-25") if role == "client" else opened_server("2025-11-25")
    over.request("ping")
    over.close()
    with pytest.raises(NotConnected, match="it is closed"):
        over.request("ping")


@pytest.mark.parametrize(
    ("revision", "method"),
    [
        (S26, "ping"),
        (S26, "logging/setLevel"),
        ("2025-11-25", "subscriptions/listen"),
        ("2025-11-25", "server/discover"),
        ("2025-11-25", "no/such"),
        ("2025-11-25", "notifications/progress"),
        ("2025-11-25", "roots/list"),
    ],
)
def test_requests_that_the_revision_lacks_are_not_sent(revision: str, method: str) -> None:
    session = opened_client(revision)
    with pytest.raises(NotSupported, match=revision):
        session.request(method)
    assert session.stats.requests_sent == 1  # the opening
    assert not session.outgoing


@pytest.mark.parametrize("revision", REVISIONS)
def test_undeclared_capabilities_are_not_requested(revision: str) -> None:
    pair = opened(revision, says={"tools": {}})
    pair.ask("tools/list")
    with pytest.raises(NotSupported, match="prompts"):
        pair.ask("prompts/list")
    pair.run()


def test_a_server_requests_only_declared_capabilities() -> None:
    session = opened_server("2025-11-25")
    session.request("roots/list")
    session.peer_info = client(says={}).local_info
    with pytest.raises(MissingClientCapability, match="roots") as raised:
        session.request("roots/list")
    assert raised.value.data == {"requiredCapabilities": {"roots": {}}}


def test_a_server_of_a_revision_without_server_requests_sends_none() -> None:
    session = opened_server(S26)
    session.receive(request(1, "tools/list", revision=S26))
    with pytest.raises(NotConnected):
        session.request("roots/list")


def test_a_server_request_in_a_revision_without_them_is_refused() -> None:
    session = opened_client(S26)
    (refused,) = replies(session, request(1, "roots/list"))
    assert error_of(refused) == (1, -32601)


def test_both_sides_may_use_the_same_id_at_once() -> None:
    pair = opened("2025-11-25", answer=later)
    ours = pair.ask("tools/list")
    pair.run()
    theirs = [pair.ask("roots/list", of="client") for _ in range(3)]
    pair.run()
    assert ours.id in {pending.id for pending in theirs}
    pair.respond(pair.server, pair.server.incoming[ours.id])
    for pending in list(pair.client.incoming.values()):
        pair.respond(pair.client, pending)
    pair.run()
    assert {pending.stage for pending in (ours, *theirs)} == {"answered"}


# Answers


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_error_comes_as_the_exception_of_its_code(revision: str) -> None:
    pair = opened(revision, answer=lambda *_: MethodNotFound("gone", data={"a": 1}))
    pending = pair.ask("tools/list")
    (*_, event) = pair.run()
    assert isinstance(event, ErrorReceived)
    assert event.pending is pending
    assert isinstance(event.error, MethodNotFound)
    assert event.error.data == {"a": 1}


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_resource_that_is_not_there_has_the_code_of_the_revision(revision: str) -> None:
    pair = opened(revision, answer=lambda *_: ResourceNotFound(uri="a:b"))
    pair.ask("resources/read", {"uri": "a:b"})
    (*_, event) = pair.run()
    assert isinstance(event, ErrorReceived)
    assert isinstance(event.error, ProtocolError)
    assert event.error.code == (-32602 if revision == S26 else -32002)


@pytest.mark.parametrize("code", [-32000, -32001, -32019, -32099, 0, 7, 1 << 40])
def test_a_code_without_meaning_stays_as_it_is(code: int) -> None:
    session = opened_client("2025-11-25")
    pending, _ = session.request("tools/list")
    message = {"jsonrpc": "2.0", "id": pending.id, "error": {"code": code, "message": "m"}}
    (event,) = session.receive(msgspec.json.encode(message))
    assert isinstance(event, ErrorReceived)
    assert type(event.error) is ProtocolError
    assert event.error.code == code


@pytest.mark.parametrize("result", [{}, None, 5, [1, {"a": 2}]], ids=str)
def test_a_result_is_handed_up_as_it_came(result: Any) -> None:
    session = opened_client("2025-11-25")
    pending, _ = session.request("tools/list")
    (event,) = session.receive(answer_to(pending.id, result=result))
    assert isinstance(event, ResultReceived)
    assert msgspec.json.decode(event.result) == result


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_typed_result_is_stamped_where_the_revision_stamps_and_narrowed_elsewhere(revision: str) -> None:
    pair = opened(revision, answer=lambda *_: ListToolsResult(tools=[]))
    pair.ask("tools/list")
    (*_, event) = pair.run()
    assert isinstance(event, ResultReceived)
    result = msgspec.json.decode(event.result)
    if revision == S26:
        assert result["resultType"] == "complete"
        assert result["ttlMs"] == 0
        assert result["cacheScope"] == "private"
        assert "io.modelcontextprotocol/serverInfo" in result["_meta"]
    else:
        assert result == {"tools": []}


def test_an_answer_that_cannot_be_written_leaves_the_request_open_for_an_error() -> None:
    session = opened_server("2025-11-25")
    (event,) = session.receive(request(1, "tools/list"))
    assert isinstance(event, RequestReceived)
    with pytest.raises(TypeError):
        session.respond(event.pending, {"no": object()})
    assert event.pending.stage == "active"
    assert session.fail(event.pending, InternalError("no")) is not None


@pytest.mark.parametrize("how", ["respond", "fail"])
def test_a_second_answer_is_dropped_and_counted(how: str) -> None:
    session = opened_server("2025-11-25")
    (event,) = session.receive(request(1, "tools/list"))
    assert isinstance(event, RequestReceived)
    assert session.respond(event.pending, Raw(b"{}")) is not None
    sent = session.stats.answers_sent, session.stats.errors_sent
    again = (
        session.respond(event.pending, Raw(b"{}"))
        if how == "respond"
        else session.fail(event.pending, InternalError("no"))
    )
    assert again is None
    assert session.stats.dropped_results == 1
    assert (session.stats.answers_sent, session.stats.errors_sent) == sent


STRAY = [
    ("late answer", lambda session, pending: session.cancel(pending), lambda id: id, "late_answers"),
    (
        "duplicate answer",
        lambda session, pending: session.receive(answer_to(pending.id)),
        lambda id: id,
        "duplicate_answers",
    ),
    ("unknown answer", lambda session, pending: None, lambda id: id + 1, "unknown_answers"),
    ("unknown answer", lambda session, pending: None, str, "unknown_answers"),
    ("unknown answer", lambda session, pending: None, lambda id: -id, "unknown_answers"),
    ("error without id", lambda session, pending: None, lambda id: None, "ignored"),
]


@pytest.mark.parametrize(
    ("kind", "before", "id", "counter"), STRAY, ids=lambda value: value if isinstance(value, str) else ""
)
@pytest.mark.parametrize("error", [True, False])
@pytest.mark.parametrize("revision", REVISIONS)
def test_an_answer_to_nothing_is_recognized_counted_and_dropped(
    kind: str, before: Any, id: Any, counter: str, error: bool, revision: str
) -> None:
    session = opened_client(revision)
    pending, _ = session.request("tools/list")
    before(session, pending)
    rest: dict[str, Any] = {"error": {"code": 1, "message": "m"}} if error or not id(1) else {"result": {}}
    count = getattr(session.stats, counter)
    (event,) = session.receive(answer_to(id(pending.id), **rest))
    assert isinstance(event, MessageIgnored)
    assert event.kind == kind
    assert event.first
    assert getattr(session.stats, counter) == count + 1
    pending, _ = session.request("tools/list")
    (event,) = session.receive(answer_to(pending.id))
    assert isinstance(event, ResultReceived)


def test_only_so_many_given_up_requests_are_remembered() -> None:
    session = opened_client("2025-11-25")
    first, _ = session.request("tools/list")
    session.cancel(first)
    for _ in range(MAX_ABANDONED_IDS):
        session.cancel(session.request("tools/list")[0])
    session.receive(answer_to(first.id))
    assert session.stats.late_answers == 0
    assert session.stats.duplicate_answers == 1


# Cancelling


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_cancelled_request_is_not_answered(revision: str) -> None:
    pair = opened(revision, answer=later)
    pending = pair.ask("tools/list")
    pair.run()
    served = pair.server.incoming[pending.id]
    pair.cancel(pair.client, pending, "changed my mind")
    (event,) = pair.run()
    assert isinstance(event, CancelReceived)
    assert event.pending is served
    assert event.reason == "changed my mind"
    pair.respond(pair.server, served)
    assert not pair.run()
    assert pair.server.stats.dropped_results == 1
    assert pending.stage == served.stage == "cancelled"


def test_the_answer_and_the_cancel_may_cross() -> None:
    pair = opened("2025-11-25", answer=later)
    pending = pair.ask("tools/list")
    pair.run()
    pair.respond(pair.server, pair.server.incoming[pending.id])
    pair.cancel(pair.client, pending)
    events = pair.run()
    assert [type(event) for event in events] == [MessageIgnored, MessageIgnored]
    assert pair.client.stats.late_answers == 1
    assert pair.server.stats.ignored == 1


def test_cancelling_twice_or_after_the_answer_says_nothing() -> None:
    pair = opened("2025-11-25")
    pending = pair.ask("tools/list")
    assert pair.client.cancel(pending) is not None
    assert pair.client.cancel(pending) is None
    answered = pair.ask("tools/list")
    pair.run()
    assert pair.client.cancel(answered) is None
    assert pair.client.stats.cancels_sent == 1


@pytest.mark.parametrize("revision", ["2025-11-25", S26])
def test_the_opening_is_never_cancelled_over_the_wire(revision: str) -> None:
    session = client([revision])
    session.handshake.start()  # type: ignore[union-attr]
    (pending,) = session.outgoing.values()
    assert session.cancel(pending) is None
    assert session.stats.cancels_sent == 0
    assert not session.outgoing


def test_a_server_cancels_its_own_requests_too() -> None:
    pair = opened("2025-11-25", answer=later)
    pending = pair.ask("roots/list", of="client")
    pair.run()
    pair.cancel(pair.server, pending)
    (event,) = pair.run()
    assert isinstance(event, CancelReceived)
    assert not pair.client.incoming


@pytest.mark.parametrize(("sent", "cancelled"), [(7, "7"), ("7", 7)])
def test_a_cancel_names_the_id_with_its_type(sent: Any, cancelled: Any) -> None:
    session = opened_server("2025-11-25")
    session.receive(request(sent, "tools/list"))
    (event,) = session.receive(notification("notifications/cancelled", {"requestId": cancelled}))
    assert isinstance(event, MessageIgnored)
    (event,) = session.receive(notification("notifications/cancelled", {"requestId": sent}))
    assert isinstance(event, CancelReceived)


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_older_form_of_a_cancel_is_understood(revision: str) -> None:
    session = opened_server(revision)
    session.receive(request("a", "tools/list", revision=revision))
    (event,) = session.receive(notification("$/cancelRequest", {"id": "a"}))
    assert isinstance(event, CancelReceived)
    assert event.reason is None
    assert not session.incoming


def test_a_cancelled_id_may_be_used_again_while_its_handler_still_runs() -> None:
    session = opened_server("2025-11-25")
    (first,) = session.receive(request(1, "tools/list"))
    session.receive(notification("notifications/cancelled", {"requestId": 1}))
    (second,) = session.receive(request(1, "tools/list"))
    assert isinstance(first, RequestReceived)
    assert isinstance(second, RequestReceived)
    assert session.respond(first.pending, Raw(b"{}")) is None
    assert session.respond(second.pending, Raw(b"{}")) is not None


# Notifications


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_notification_of_the_peer_is_handed_up(revision: str) -> None:
    pair = opened(revision)
    pair.send(pair.server, pair.server.notify("notifications/tools/list_changed"))
    (event,) = pair.run()
    assert isinstance(event, NotificationReceived)
    assert event.method.name == "notifications/tools/list_changed"
    assert event.rules.revision == revision
    assert event.params is msgspec.UNSET


def test_a_notification_is_written_as_the_revision_has_it() -> None:
    params = ProgressParams(progress_token=1, progress=2, message="new in 2025-03-26")
    old = opened_server("2024-11-05").notify("notifications/progress", params)
    new = opened_server("2025-11-25").notify("notifications/progress", params)
    assert b"message" not in old
    assert b"message" in new
    assert server().notify("notifications/progress", params) == new  # before anything is agreed
    assert server().notify("notifications/progress", {"a": 1}) == (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"a":1}}'
    )


@pytest.mark.parametrize("name", ["notifications/roots/list_changed", "notifications/no_such", "roots/list"])
def test_notifications_that_a_server_may_not_send_are_refused(name: str) -> None:
    with pytest.raises(NotSupported, match="2025-11-25"):
        opened_server("2025-11-25").notify(name)


@pytest.mark.parametrize("name", ["notifications/roots/list_changed", "notifications/progress", "tools/list"])
def test_notifications_that_a_client_may_not_send_in_a_revision_are_refused(name: str) -> None:
    with pytest.raises(NotSupported, match=S26):
        opened_client(S26).notify(name)


# The end


@pytest.mark.parametrize("revision", REVISIONS)
def test_when_the_connection_is_lost_every_request_ends_once(revision: str) -> None:
    pair = opened(revision, answer=later)
    waiting = [pair.ask("tools/list") for _ in range(3)]
    pair.cancel(pair.client, waiting[0])
    assert pair.client.close() == waiting[1:]
    assert [pending.stage for pending in waiting] == ["cancelled", "lost", "lost"]
    assert pair.client.close() == []
    assert pair.client.cancel(waiting[1]) is None
    assert not pair.client.outgoing


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_was_accepted_before_the_end_may_still_be_answered(revision: str) -> None:
    session = opened_server(revision)
    (event,) = session.receive(request(1, "tools/list", revision=revision))
    assert session.close() == []
    assert isinstance(event, RequestReceived)
    assert session.respond(event.pending, CallToolResult(content=[])) is not None
    assert not session.incoming


def test_an_exchange_shows_what_it_is() -> None:
    session = opened_client("2025-11-25")
    pending, _ = session.request("tools/list")
    assert repr(pending) == f"<PendingRequest tools/list id={pending.id} active>"
    assert pending.end("answer")
    assert not pending.end("cancel")
    assert isinstance(pending, PendingRequest)
