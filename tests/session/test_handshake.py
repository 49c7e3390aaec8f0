"""How connections open: every combination of what the two sides speak, and every way in which a probe can fail."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from accord.errors import ConnectError, InvalidParams, InvalidRequest, NotConnected, RemoteProtocolError
from accord.messages.revision import HANDSHAKE, REVISIONS
from accord.session import negotiation
from accord.session.events import (
    ConnectionOpened,
    Event,
    HandshakeFailed,
    InitializedReceived,
    MessageIgnored,
    ReplyReady,
    RequestReceived,
)
from accord.session.handshake import ClientHandshake, ServerHandshake
from accord.session.session import Session
from accord.session.states import Phase

from tests.session.pair import (
    META,
    S26,
    VERSION,
    Pair,
    answer_to,
    client,
    error_of,
    initialize,
    notification,
    opened_client,
    opened_server,
    replies,
    request,
    server,
)

SPOKEN: list[tuple[str, ...]] = [
    REVISIONS,
    *[(revision,) for revision in REVISIONS],
    HANDSHAKE,
    ("2024-11-05", "2025-06-18"),
    ("2025-03-26", "2025-11-25"),
    ("2024-11-05", S26),
    ("2025-11-25", S26),
]


def expected(ours: tuple[str, ...], theirs: tuple[str, ...]) -> str | None:
    """The revision two sides come to, said another way than in the code: None where they do not."""
    if S26 in ours and S26 in theirs:
        return S26
    asked = max((revision for revision in ours if revision != S26), default=None)
    offered = [revision for revision in theirs if revision != S26]
    if asked is None or not offered:
        return None
    answered = asked if asked in offered else max(offered)
    return answered if answered in ours else None


@pytest.mark.parametrize(("ours", "theirs"), list(itertools.product(SPOKEN, SPOKEN)), ids=str)
def test_two_sides_open_in_the_newest_revision_they_share_or_say_why_not(
    ours: tuple[str, ...], theirs: tuple[str, ...]
) -> None:
    pair = Pair(client(ours), server(theirs))
    opened = pair.open()
    revision = expected(ours, theirs)
    if revision is None:
        assert isinstance(opened, HandshakeFailed)
        assert isinstance(opened.error, ConnectError)
        assert ours[-1] in str(opened.error) or theirs[-1] in str(opened.error)
        return
    assert isinstance(opened, ConnectionOpened)
    assert opened.revision == revision == pair.client.rules.revision
    assert pair.client.phase is Phase.OPEN
    assert pair.client.peer_info is not None
    assert pair.client.peer_info.instructions == "Be kind."
    assert pair.client.peer_info.info is not None
    assert pair.client.peer_info.info.name == "s"
    if revision != S26:
        assert pair.server.rules.revision == revision
        assert pair.server.phase is Phase.OPEN
    assert not pair.client.outgoing


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_known_older_server_is_not_probed(revision: str) -> None:
    pair = Pair(client(), server())
    opened = pair.open(handshake=True)
    assert isinstance(opened, ConnectionOpened)
    assert opened.revision == "2025-11-25"
    assert not any("discover" in line for line in pair.transcript)


def test_a_client_without_a_handshake_says_so_when_the_server_has_one() -> None:
    session = client([S26])
    opening = session.handshake
    assert isinstance(opening, ClientHandshake)
    opening.start()
    assert opening.on_probe_timeout() is None
    (failed,) = session.receive(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}')
    assert isinstance(failed, HandshakeFailed)
    assert "only 2026-07-28 is allowed" in str(failed.error)


# The server's side


@pytest.mark.parametrize("asked", [S26, "1999-01-01", "2099-01-01", "", "x"])
def test_initialize_with_what_has_no_handshake_or_is_unknown_is_answered_with_the_newest(asked: str) -> None:
    session = server()
    (answer,) = replies(session, initialize(asked))
    assert answer["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_initialize_is_answered_with_the_requested_revision(revision: str) -> None:
    session = server()
    (answer,) = replies(session, initialize(revision, "a"))
    assert answer["id"] == "a"
    assert answer["result"]["protocolVersion"] == revision
    assert "resultType" not in answer["result"]
    assert session.rules.revision == revision


def test_a_server_that_lacks_the_revision_asked_for_answers_with_its_own_newest() -> None:
    (answer,) = replies(server(["2024-11-05", "2025-03-26"]), initialize("2025-11-25"))
    assert answer["result"]["protocolVersion"] == "2025-03-26"


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_repeated_initialize_is_handed_up_and_its_answer_begins_the_handshake_again(confirmed: bool) -> None:
    session = opened_server("2025-03-26") if confirmed else server()
    if not confirmed:
        replies(session, initialize("2025-03-26"))
    (event,) = session.receive(initialize("2024-11-05", 9))
    assert isinstance(event, RequestReceived)
    assert session.rules.revision == "2025-03-26"
    assert isinstance(session.handshake, ServerHandshake)
    result = session.handshake.accept(event.pending, session.handshake.read_params(event.pending))
    answer = msgspec.json.decode(session.respond(event.pending, result) or b"")
    assert (answer["id"], answer["result"]["protocolVersion"]) == (9, "2024-11-05")
    assert (session.phase, session.rules.revision) == (Phase.INITIALIZING, "2024-11-05")
    assert isinstance(session.receive(notification("notifications/initialized"))[0], InitializedReceived)
    assert session.phase is Phase.OPEN


def test_a_repeated_initialize_that_cannot_be_read_changes_nothing() -> None:
    session = opened_server("2025-03-26")
    (event,) = session.receive(request(9, "initialize", {"protocolVersion": 5}))
    assert isinstance(event, RequestReceived)
    assert isinstance(session.handshake, ServerHandshake)
    with pytest.raises(InvalidParams):
        session.handshake.read_params(event.pending)
    assert (session.phase, session.rules.revision) == (Phase.OPEN, "2025-03-26")


def test_no_handshake_begins_on_a_connection_that_is_closed() -> None:
    session = opened_server("2025-03-26")
    session.close()
    (event,) = session.receive(initialize("2024-11-05", 9))
    assert isinstance(event, RequestReceived)
    assert isinstance(session.handshake, ServerHandshake)
    with pytest.raises(InvalidRequest, match="closed"):
        session.handshake.read_params(event.pending)


def test_an_initialize_that_cannot_be_read_leaves_the_way_open_for_a_good_one() -> None:
    session = server()
    (answer,) = replies(session, request(1, "initialize", {"protocolVersion": 5}))
    assert error_of(answer) == (1, -32602)
    assert session.phase is Phase.NEW
    (answer,) = replies(session, initialize("2025-11-25", 2))
    assert "result" in answer


def test_a_server_without_a_handshake_refuses_initialize_and_names_its_revisions() -> None:
    (answer,) = replies(server([S26]), initialize("2025-11-25", 3))
    assert error_of(answer) == (3, -32022)
    assert answer["error"]["data"] == {"supported": [S26], "requested": "2025-11-25"}


@pytest.mark.parametrize("asked", ["2025-11-25", "2099-01-01"])
def test_a_revision_in_meta_that_is_not_supported_there_is_refused_with_those_that_are(asked: str) -> None:
    message = request(1, "tools/list", {"_meta": {**META, VERSION: asked}})
    (answer,) = replies(server(), message)
    assert error_of(answer) == (1, -32022)
    assert answer["error"]["data"] == {"supported": [S26], "requested": asked}


def test_a_server_of_older_revisions_refuses_a_probe_naming_those() -> None:
    (answer,) = replies(server(["2024-11-05", "2025-03-26"]), request(1, "server/discover", revision=S26))
    assert error_of(answer) == (1, -32022)
    assert answer["error"]["data"] == {"supported": ["2024-11-05", "2025-03-26"], "requested": S26}


def test_a_request_that_names_its_revision_must_also_name_its_capabilities() -> None:
    (answer,) = replies(server(), request(1, "tools/list", {"_meta": {VERSION: S26}}))
    assert error_of(answer) == (1, -32602)
    assert "clientCapabilities" in answer["error"]["message"]


def test_discover_lists_the_revisions_that_need_no_handshake() -> None:
    (answer,) = replies(server(), request(1, "server/discover", revision=S26))
    result = answer["result"]
    assert result["supportedVersions"] == [S26]
    assert result["resultType"] == "complete"
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "private"
    assert result["instructions"] == "Be kind."
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "s"


@pytest.mark.parametrize("method", ["tools/list", "server/discover", "resources/read", "no/such", "x"])
def test_a_request_before_the_opening_is_refused_with_what_to_do(method: str) -> None:
    session = server()
    (answer,) = replies(session, request(1, method))
    assert error_of(answer) == (1, -32602)
    assert "initialize" in answer["error"]["message"]
    assert replies(session, initialize("2025-11-25", 2))


def test_ping_is_answered_before_the_opening_by_both_sides() -> None:
    pong = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert replies(server(), request(1, "ping")) == [pong]
    assert replies(client(), request(1, "ping")) == [pong]


def test_requests_are_served_as_soon_as_initialize_is_answered_but_our_own_wait() -> None:
    session = server()
    session.receive(initialize("2025-11-25"))
    assert "result" in replies(session, request(1, "tools/list"))[0]
    with pytest.raises(NotConnected, match="initializing"):
        session.request("roots/list")
    session.receive(notification("notifications/initialized"))
    session.request("roots/list")


def test_initialized_without_initialize_is_dropped() -> None:
    session = server()
    (event,) = session.receive(notification("notifications/initialized"))
    assert isinstance(event, MessageIgnored)
    assert session.phase is Phase.NEW
    assert session.stats.ignored == 1


def test_initialized_twice_is_dropped_the_second_time() -> None:
    session = opened_server("2025-11-25")
    assert session.stats.ignored == 0
    (event,) = session.receive(notification("notifications/initialized"))
    assert isinstance(event, MessageIgnored)
    assert session.phase is Phase.OPEN
    assert session.stats.ignored == 1


def test_initialized_means_nothing_to_a_client() -> None:
    session = client()
    (event,) = session.receive(notification("notifications/initialized"))
    assert isinstance(event, MessageIgnored)
    assert session.stats.ignored == 1


# Both ways on one connection


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_after_a_handshake_a_request_may_still_carry_its_own_revision(revision: str) -> None:
    session = opened_server(revision)
    (new,) = replies(session, request(1, "server/discover", revision=S26))
    assert new["result"]["resultType"] == "complete"
    (old,) = replies(session, request(2, "server/discover"))
    assert error_of(old) == (2, -32601)
    assert session.rules.revision == revision
    assert replies(session, request(3, "ping")) == [{"jsonrpc": "2.0", "id": 3, "result": {}}]


def test_after_requests_that_carry_their_revision_there_may_still_be_a_handshake() -> None:
    session = server()
    assert "result" in replies(session, request(1, "tools/list", revision=S26))[0]
    (answer,) = replies(session, initialize("2025-06-18", 2))
    assert answer["result"]["protocolVersion"] == "2025-06-18"
    assert "result" in replies(session, request(3, "tools/list"))[0]
    assert "result" in replies(session, request(4, "tools/list", revision=S26))[0]


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
)
@pytest.mark.parametrize("handshake", [True, False])
def test_methods_of_the_handshake_do_not_exist_in_a_request_that_carries_its_revision(
    method: str, handshake: bool
) -> None:
    session = opened_server("2025-11-25" if handshake else S26)
    (answer,) = replies(session, request(1, method, revision=S26))
    assert error_of(answer) == (1, -32601)


# The client's side: what answers to a probe mean

OLDER: list[dict[str, Any]] = [
    {"error": {"code": code, "message": "no"}} for code in (-32601, -32602, -32600, -32000, -32700, 0, 1)
]
OLDER += [
    {"error": {"code": -32022, "message": "no"}},
    {"error": {"code": -32022, "message": "no", "data": {"supported": "all"}}},
    {"error": {"code": -32022, "message": "no", "data": {"supported": [1]}}},
    {"error": {"code": -32022, "message": "no", "data": {"supported": ["2025-03-26"]}}},
    {"error": {"code": -32021, "message": "no"}},
    {"error": {"code": -32021, "message": "no", "data": {"requiredCapabilities": ["roots"]}}},
    {"error": "no"},
    {"error": {"code": "E", "message": 1}},
    {"error": None},
    {"result": {}},
    {"result": None},
    {"result": []},
    {"result": "hello"},
    {"result": {"supportedVersions": "2026-07-28", "capabilities": {}}},
    {"result": {"supportedVersions": ["2025-03-26"], "capabilities": {}}},
    {"result": {}, "error": {"code": 1, "message": "both"}},
    {},
]


def probing(revisions: tuple[str, ...] = REVISIONS) -> tuple[Session, ClientHandshake]:
    session = client(revisions)
    assert isinstance(session.handshake, ClientHandshake)
    session.handshake.start()
    return session, session.handshake


def only(events: list[Event]) -> Event:
    (event,) = events
    return event


def sent(event: Event | bytes | None) -> Any:
    """The one message that an event has to send."""
    message = event.message if isinstance(event, ReplyReady) else event
    assert isinstance(message, bytes), event
    return msgspec.json.decode(message)


INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "o", "version": "0"},
}
DISCOVERED = {"resultType": "complete", "supportedVersions": [S26], "capabilities": {"tools": {}}}


@pytest.mark.parametrize("refusal", OLDER, ids=str)
def test_whatever_else_answers_a_probe_is_an_older_server(refusal: dict[str, Any]) -> None:
    session, _ = probing()
    asked = sent(only(session.receive(answer_to(1, **refusal))))
    assert asked["method"] == "initialize"
    assert asked["params"]["protocolVersion"] == "2025-11-25"
    assert "_meta" not in asked["params"]
    opened = only(session.receive(answer_to(asked["id"], result=INITIALIZED)))
    assert isinstance(opened, ConnectionOpened)
    assert opened.revision == "2025-06-18"
    assert sent(opened.reply) == {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.mark.parametrize("refusal", OLDER, ids=str)
def test_a_refused_probe_changes_nothing_once_initialize_is_under_way(refusal: dict[str, Any]) -> None:
    session, opening = probing()
    opening.on_probe_timeout()
    assert isinstance(only(session.receive(answer_to(1, **refusal))), MessageIgnored)
    assert isinstance(only(session.receive(answer_to(2, result=INITIALIZED))), ConnectionOpened)


MISMATCH: dict[str, Any] = {"code": -32020, "message": "header"}
LACKING: dict[str, Any] = {"code": -32021, "message": "c", "data": {"requiredCapabilities": {"roots": {}}}}


def test_a_header_mismatch_in_answer_to_the_probe_leads_to_initialize_and_its_answer_opens() -> None:
    session, opening = probing()
    asked = sent(only(session.receive(answer_to(1, error=MISMATCH))))
    assert asked["method"] == "initialize"
    opened = only(session.receive(answer_to(asked["id"], result=INITIALIZED)))
    assert isinstance(opened, ConnectionOpened)
    assert opened.revision == "2025-06-18"
    assert opening.is_older


REFUSALS: list[dict[str, Any]] = [
    {"code": -32601, "message": "no initialize"},
    {"code": -32022, "message": "no", "data": {"supported": [S26], "requested": "2025-11-25"}},
    MISMATCH,
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
@pytest.mark.parametrize("silent", [True, False])
def test_a_server_that_refuses_initialize_after_a_header_mismatch_is_a_new_one(
    refusal: dict[str, Any], silent: bool
) -> None:
    session, opening = probing()
    if silent:
        opening.on_probe_timeout()
    session.receive(answer_to(1, error=MISMATCH))
    opened = only(session.receive(answer_to(2, error=refusal)))
    assert opened == ConnectionOpened(S26)
    assert not opening.is_older
    session.request("tools/list")


def test_a_header_mismatch_connects_a_client_without_a_handshake() -> None:
    session = client([S26])
    assert isinstance(session.handshake, ClientHandshake)
    session.handshake.start()
    assert only(session.receive(answer_to(1, error=MISMATCH))) == ConnectionOpened(S26)


@pytest.mark.parametrize("silent", [True, False])
def test_a_server_that_refuses_a_probe_for_want_of_a_capability_is_a_new_one(silent: bool) -> None:
    session, opening = probing()
    if silent:
        opening.on_probe_timeout()
    opened = only(session.receive(answer_to(1, error=LACKING)))
    assert isinstance(opened, ConnectionOpened)
    assert opened == ConnectionOpened(S26)
    assert session.peer_info is None
    session.request("tools/list")  # nothing is known of it, so nothing is forbidden


def test_a_server_that_refuses_its_own_revision_is_tried_once_more_and_then_it_is_an_error() -> None:
    session, _ = probing()
    refusal = {"code": -32022, "message": "no", "data": {"supported": [S26], "requested": S26}}
    again = only(session.receive(answer_to(1, error=refusal)))
    assert sent(again)["method"] == "server/discover"
    failed = only(session.receive(answer_to(2, error=refusal)))
    assert isinstance(failed, HandshakeFailed)
    assert isinstance(failed.error, RemoteProtocolError)


@pytest.mark.parametrize("offered", [["2099-01-01"], []])
@pytest.mark.parametrize("kind", ["error", "result"])
def test_a_new_server_with_no_revision_in_common_is_an_error_that_names_both(offered: list[str], kind: str) -> None:
    session, _ = probing()
    if kind == "error":
        message = answer_to(1, error={"code": -32022, "message": "no", "data": {"supported": offered}})
    else:
        message = answer_to(1, result={**DISCOVERED, "supportedVersions": offered})
    failed = only(session.receive(message))
    assert isinstance(failed, HandshakeFailed)
    assert isinstance(failed.error, ConnectError)
    assert "2025-11-25, 2026-07-28" in str(failed.error)
    assert (offered or ["nothing"])[0] in str(failed.error)


def test_after_silence_initialize_is_sent_and_its_answer_opens() -> None:
    session, opening = probing()
    assert sent(opening.on_probe_timeout())["method"] == "initialize"
    assert isinstance(only(session.receive(answer_to(2, result=INITIALIZED))), ConnectionOpened)
    assert session.rules.revision == "2025-06-18"
    late = only(session.receive(answer_to(1, result=DISCOVERED)))
    assert isinstance(late, MessageIgnored)
    assert session.stats.late_answers == 1
    assert session.rules.revision == "2025-06-18"


def test_after_silence_a_late_discover_result_still_opens() -> None:
    session, opening = probing()
    opening.on_probe_timeout()
    opened = only(session.receive(answer_to(1, result=DISCOVERED)))
    assert isinstance(opened, ConnectionOpened)
    assert opened.revision == S26
    late = only(session.receive(answer_to(2, error={"code": -32601, "message": "no initialize"})))
    assert isinstance(late, MessageIgnored)
    assert session.stats.late_answers == 1
    assert session.phase is Phase.OPEN


def test_silence_after_the_handshake_or_twice_causes_no_request() -> None:
    session, opening = probing()
    assert opening.on_probe_timeout() is not None
    assert opening.on_probe_timeout() is None
    session.receive(answer_to(2, result=INITIALIZED))
    assert opening.on_probe_timeout() is None


def test_an_unsupported_version_in_answer_to_initialize_leads_to_the_new_way() -> None:
    session, opening = probing()
    opening.on_probe_timeout()
    refusal = {"code": -32022, "message": "no", "data": {"supported": [S26], "requested": "2025-11-25"}}
    asked = sent(only(session.receive(answer_to(2, error=refusal))))
    assert asked["method"] == "server/discover"
    opened = only(session.receive(answer_to(asked["id"], result=DISCOVERED)))
    assert isinstance(opened, ConnectionOpened)
    assert opened.revision == S26
    assert not session.outgoing


def test_a_refused_initialize_still_waits_for_the_probe_that_is_out() -> None:
    session, opening = probing()
    opening.on_probe_timeout()
    waits = only(session.receive(answer_to(2, error={"code": -32600, "message": "no"})))
    assert not isinstance(waits, HandshakeFailed)
    opened = only(session.receive(answer_to(1, result=DISCOVERED)))
    assert isinstance(opened, ConnectionOpened)


def test_both_probes_refused_is_the_end_and_says_how_initialize_was_refused() -> None:
    session, opening = probing()
    opening.on_probe_timeout()
    session.receive(answer_to(2, error={"code": -32600, "message": "not today"}))
    failed = only(session.receive(answer_to(1, error={"code": -32601, "message": "no"})))
    assert isinstance(failed, HandshakeFailed)
    assert "not today" in str(failed.error)


def test_a_server_known_as_older_that_is_not_is_opened_in_the_new_way() -> None:
    pair = Pair(client(), server([S26]))
    opened = pair.open(handshake=True)
    assert isinstance(opened, ConnectionOpened)
    assert opened.revision == S26


def test_a_server_that_sends_the_client_back_and_forth_is_given_up() -> None:
    session, _ = probing()
    message = answer_to(1, error={"code": -32601, "message": "no"})
    for id in range(2, 12):
        event = only(session.receive(message))
        if isinstance(event, HandshakeFailed):
            assert isinstance(event.error, ConnectError)
            return
        asked = sent(event)
        if asked["method"] == "initialize":
            refusal = {"code": -32022, "message": "no", "data": {"supported": [S26]}}
            message = answer_to(id, error=refusal)
        else:
            message = answer_to(id, error={"code": -32601, "message": "no"})
    pytest.fail("the opening never ends")


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32000, -32022, -32603])
def test_a_refused_initialize_fails_the_connection_with_the_text_of_the_server(code: int) -> None:
    session, _ = probing(HANDSHAKE)
    failed = only(session.receive(answer_to(1, error={"code": code, "message": "not today"})))
    assert isinstance(failed, HandshakeFailed)
    assert isinstance(failed.error, ConnectError)
    assert "not today" in str(failed.error)


@pytest.mark.parametrize("revision", ["1999-01-01", "2099-01-01", S26, ""])
def test_a_server_that_answers_initialize_with_what_we_do_not_speak_there_fails_the_opening(revision: str) -> None:
    session, opening = probing()
    opening.on_probe_timeout()
    failed = only(session.receive(answer_to(2, result={**INITIALIZED, "protocolVersion": revision})))
    assert isinstance(failed, HandshakeFailed)
    assert isinstance(failed.error, ConnectError)
    assert repr(revision) in str(failed.error)


@pytest.mark.parametrize("result", [{}, None, [], {"protocolVersion": 1}, {**INITIALIZED, "capabilities": 1}], ids=str)
def test_an_answer_to_initialize_that_cannot_be_read_fails_the_opening(result: Any) -> None:
    session, opening = probing()
    opening.on_probe_timeout()
    failed = only(session.receive(answer_to(2, result=result)))
    assert isinstance(failed, HandshakeFailed)


def test_a_name_that_is_none_in_the_answer_to_a_probe_is_no_reason_to_fail() -> None:
    session, _ = probing()
    meta = {"io.modelcontextprotocol/serverInfo": {"name": 5}}
    opened = only(session.receive(answer_to(1, result={**DISCOVERED, "_meta": meta})))
    assert isinstance(opened, ConnectionOpened)
    assert session.peer_info is not None
    assert session.peer_info.info is None


def test_a_revision_can_be_assumed_without_asking() -> None:
    session = client()
    assert isinstance(session.handshake, ClientHandshake)
    session.handshake.assume(S26)
    _, message = session.request("tools/list")
    assert msgspec.json.decode(message)["params"]["_meta"][VERSION] == S26


def test_a_client_without_a_name_is_unnamed_where_the_handshake_wants_one_and_silent_elsewhere() -> None:
    session = client()
    session.local_info.info = None
    assert isinstance(session.handshake, ClientHandshake)
    probe = sent(session.handshake.start())
    assert set(probe["params"]["_meta"]) == set(META)
    shake = sent(session.handshake.on_probe_timeout())
    assert shake["params"]["clientInfo"] == {"name": "unnamed", "version": "0"}


def test_a_client_refuses_to_be_opened_by_its_peer() -> None:
    for session in (client(), opened_client("2025-11-25"), opened_client(S26)):
        (refused,) = replies(session, initialize("2025-11-25", 1))
        assert error_of(refused) == (1, -32601)


def test_an_unknown_revision_of_ours_is_refused_with_the_known_ones() -> None:
    for bad in (["2025-01-01"], []):
        with pytest.raises(ValueError, match="known are 2024-11-05"):
            negotiation.check_revisions(bad)
    assert negotiation.check_revisions([S26, "2024-11-05"]) == ("2024-11-05", S26)
