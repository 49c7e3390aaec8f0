"""Whatever comes: exactly one error with the right code and id, or silence; and the next good message is answered."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import Raw

from accord.errors import InternalError, ProtocolError, RemoteProtocolError
from accord.limits import Limits
from accord.messages.bounds import RESULT_NODES
from accord.messages.revision import HANDSHAKE, REVISIONS
from accord.session.events import (
    CancelReceived,
    ErrorReceived,
    MessageIgnored,
    ReplyReady,
    RequestReceived,
    ResultReceived,
)
from accord.session.session import Session

from tests.session.pair import (
    ERAS,
    META,
    S26,
    SERVER_SAYS,
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

PARSE, INVALID, UNKNOWN, PARAMS = -32700, -32600, -32601, -32602
NOBODY = object()
"""In the place of an id that could not be read."""

PHASES = ["before", *REVISIONS]


def in_phase(phase: str) -> Session:
    """A server before anything is agreed, after a handshake, or after a request of 2026-07-28 and no handshake."""
    if phase == "before":
        return server()
    session = opened_server(phase)
    if phase == S26:
        assert "result" in replies(session, request(0, "tools/list", revision=S26))[0]
    return session


def unread(phase: str) -> Any:
    """The id of an error for a message whose id could not be read (traps, 10)."""
    return None if ERAS.get(phase) == "null" or phase == "before" else "absent"


def still_alive(session: Session, phase: str) -> bool:
    if phase == S26:
        return "result" in replies(session, request("alive", "tools/list", revision=S26))[0]
    return replies(session, request("alive", "ping")) == [{"jsonrpc": "2.0", "id": "alive", "result": {}}]


def with_params(params: bytes, method: bytes = b"tools/list", id: bytes = b"5") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (id, method, params)


BAD: list[tuple[bytes, Any, int]] = [
    # no JSON
    (b"", NOBODY, PARSE),
    (b" ", NOBODY, PARSE),
    (b"nonsense", NOBODY, PARSE),
    (b"{", NOBODY, PARSE),
    (b"[", NOBODY, PARSE),
    (b'[{"jsonrpc":"2.0"', NOBODY, PARSE),
    (b'{"jsonrpc":"2.0","id":5,"method":"ping"', NOBODY, PARSE),
    (b'{"jsonrpc":"2.0","id":5,"method":"ping"}}', NOBODY, PARSE),
    (b'{"jsonrpc":"2.0","id":5,"method":"ping",}', NOBODY, PARSE),
    (b"{'jsonrpc':'2.0','id':5,'method':'ping'}", NOBODY, PARSE),
    (b"Listening on port 8000", NOBODY, PARSE),
    (b"\xef\xbb\xbf" + request(5, "ping"), NOBODY, PARSE),
    # no UTF-8, also where the decoder itself never looks
    (with_params(b'{"name":"\xff"}'), NOBODY, PARSE),
    (with_params(b'{"\xc3\x28":1}'), NOBODY, PARSE),
    (with_params(b'{"a":{"b":["\xed\xa0\x80"]}}'), NOBODY, PARSE),
    (with_params(b"{}", method=b"\xff"), NOBODY, PARSE),
    (with_params(b"{}", id=b'"\xff"'), NOBODY, PARSE),
    (b'{"id":5,"method":"\xff"}', NOBODY, PARSE),
    (b'{"jsonrpc":"2.0","method":null,"\x80":1}', NOBODY, PARSE),
    (b'["\xff"]', NOBODY, PARSE),
    # no numbers
    (with_params(b'{"a":NaN}'), NOBODY, PARSE),
    (with_params(b'{"a":Infinity}'), NOBODY, PARSE),
    (with_params(b'{"a":-Infinity}'), NOBODY, PARSE),
    (with_params(b"{}", id=b"NaN"), NOBODY, PARSE),
    # too deep
    (with_params(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), NOBODY, PARSE),
    (with_params(b"[" * 100_000 + b"]" * 100_000), NOBODY, PARSE),
    (b"[" * 100_000 + b"]" * 100_000, NOBODY, PARSE),
    (b'{"a":' * 100_000, NOBODY, PARSE),
    (b'{"id":' + b"[" * 100_000 + b"]" * 100_000 + b"}", NOBODY, PARSE),
    # JSON, but no message
    (b"5", NOBODY, INVALID),
    (b'"ping"', NOBODY, INVALID),
    (b"null", NOBODY, INVALID),
    (b"{}", NOBODY, INVALID),
    (b'{"jsonrpc":"2.0"}', NOBODY, INVALID),
    (b'{"jsonrpc":"2.0","id":5}', 5, INVALID),
    (b'{"jsonrpc":"2.0","id":"a","params":{}}', "a", INVALID),
    # jsonrpc
    (b'{"id":5,"method":"ping"}', 5, INVALID),
    (b'{"jsonrpc":"1.0","id":5,"method":"ping"}', 5, INVALID),
    (b'{"jsonrpc":2.0,"id":5,"method":"ping"}', 5, INVALID),
    (b'{"jsonrpc":null,"id":"x","method":"ping"}', "x", INVALID),
    (b'{"jsonrpc":"2","id":5,"method":"ping"}', 5, INVALID),
    # id
    (request(None, "ping"), NOBODY, INVALID),
    (request(1.5, "ping"), NOBODY, INVALID),
    (request(1.0, "ping"), NOBODY, INVALID),
    (request(True, "ping"), NOBODY, INVALID),
    (request([], "ping"), NOBODY, INVALID),
    (request({}, "ping"), NOBODY, INVALID),
    (with_params(b"{}", id=b"1e400"), NOBODY, INVALID),
    (with_params(b"{}", id=b"9" * 5000), NOBODY, INVALID),
    # method
    (request(5, 7), 5, INVALID),  # type: ignore[arg-type]
    (request(5, None), 5, INVALID),  # type: ignore[arg-type]
    (request(5, ["ping"]), 5, INVALID),  # type: ignore[arg-type]
    # params
    (with_params(b"null"), 5, PARAMS),
    (with_params(b"5"), 5, PARAMS),
    (with_params(b'"x"'), 5, PARAMS),
    (with_params(b"[]"), 5, PARAMS),
    (with_params(b"true"), 5, PARAMS),
    (with_params(b'{"_meta":5}'), 5, PARAMS),
    (with_params(b'{"_meta":[]}'), 5, PARAMS),
    (with_params(b'{"_meta":{"progressToken":1.5}}'), 5, PARAMS),
    (with_params(b'{"_meta":{"progressToken":true}}'), 5, PARAMS),
    (with_params(b'{"_meta":{"progressToken":{}}}'), 5, PARAMS),
    (with_params(b'{"_meta":{"io.modelcontextprotocol/protocolVersion":5}}'), 5, PARAMS),
]


def short(value: Any) -> str:
    return "nobody" if value is NOBODY else repr(value)[:60]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(("message", "id", "code"), BAD, ids=short)
def test_a_bad_message_gets_exactly_one_error_and_the_next_good_one_is_answered(
    message: bytes, id: Any, code: int, phase: str
) -> None:
    session = in_phase(phase)
    before = session.stats.errors_sent
    (answer,) = replies(session, message)
    assert error_of(answer) == (unread(phase) if id is NOBODY else id, code)
    assert answer["error"]["message"]
    assert session.stats.errors_sent == before + 1
    assert not session.incoming
    assert still_alive(session, phase)


@pytest.mark.parametrize("phase", PHASES)
def test_a_line_that_could_not_be_read_at_all_gets_one_error(phase: str) -> None:
    session = in_phase(phase)
    (event,) = session.receive_unreadable("a line of more than 10 bytes was skipped")
    assert isinstance(event, ReplyReady)
    assert error_of(msgspec.json.decode(event.message)) == (unread(phase), INVALID)
    assert still_alive(session, phase)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", ["no/such", "", "rpc.x", "tools/LIST", "notifications/initialized", "roots/list"])
def test_an_unknown_method_is_refused(method: str, revision: str) -> None:
    session = opened_server(revision)
    (answer,) = replies(session, request(1, method, revision=revision))
    assert error_of(answer) == (1, UNKNOWN)
    assert revision in answer["error"]["message"]
    assert still_alive(session, revision)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("method", "capability"),
    [("tools/call", "tools"), ("prompts/get", "prompts"), ("resources/read", "resources")],
)
def test_a_method_whose_capability_was_not_advertised_is_refused(method: str, capability: str, revision: str) -> None:
    session = opened_server(revision, says={"logging": {}})
    (answer,) = replies(session, request(1, method, {"name": "x"}, revision=revision))
    assert error_of(answer) == (1, UNKNOWN)
    assert capability in answer["error"]["message"]


def test_a_part_of_a_capability_that_was_not_advertised_is_refused() -> None:
    cases: list[dict[str, Any]] = [{"resources": {}}, {"resources": {"subscribe": False}}]
    for says in cases:
        session = opened_server("2025-11-25", says=says)
        (answer,) = replies(session, request(1, "resources/subscribe", {"uri": "a:b"}))
        assert error_of(answer) == (1, UNKNOWN)
        assert "result" in replies(session, request(2, "resources/list"))[0]


def test_a_profile_may_change_and_what_it_offers_changes_with_it() -> None:
    session = opened_server("2025-11-25", says={})
    assert error_of(replies(session, request(1, "tools/list"))[0]) == (1, UNKNOWN)
    session.local_info = server().local_info
    assert "result" in replies(session, request(2, "tools/list"))[0]


# Silence

SILENT = [
    b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.5}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}',
    b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":99}}',
    b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"requestId":99}}',
    b'{"jsonrpc":"2.0","method":"$/cancelRequest"}',
    b'{"jsonrpc":"2.0","method":"notifications/progress"}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":"1"}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1e400}}',
    b'{"jsonrpc":"2.0","method":"notifications/no_such"}',
    b'{"jsonrpc":"2.0","method":"notifications/no_such","params":5}',
    b'{"jsonrpc":"2.0","method":"no/such"}',
    b'{"jsonrpc":"2.0","method":"tools/list"}',
    b'{"jsonrpc":"2.0","method":"initialize","params":{}}',
    b'{"jsonrpc":"1.0","method":"notifications/initialized"}',
    b'{"method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":"1","result":{}}',
    b'{"jsonrpc":"2.0","id":99,"result":{},"error":{"code":1,"message":"m"}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}',
    b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}',
    b'{"jsonrpc":"2.0","error":5}',
    b'{"jsonrpc":"2.0","result":5}',
    b'{"jsonrpc":"2.0","id":1.5,"result":{}}',
    b'{"jsonrpc":"2.0","id":true,"error":{}}',
    b'{"jsonrpc":"1.0","id":1,"result":{}}',
    b'{"id":1,"result":{}}',
    b'{"id":1,"error":{}}',
    b'{"result":{}}',
]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("message", SILENT, ids=short)
def test_what_must_not_be_answered_is_dropped_and_the_next_good_message_is_answered(message: bytes, phase: str) -> None:
    session = in_phase(phase)
    assert replies(session, message) == []
    assert still_alive(session, phase)


@pytest.mark.parametrize("phase", PHASES)
def test_what_is_dropped_is_logged_once_per_kind_and_counted_each_time(phase: str) -> None:
    session = in_phase(phase)
    ignored = session.stats.ignored
    firsts = [session.receive(notification("notifications/no_such"))[0] for _ in range(3)]
    assert [event.first for event in firsts if isinstance(event, MessageIgnored)] == [True, False, False]
    assert session.stats.ignored == ignored + 3


ORPHANS = [b'{"jsonrpc":"2.0"}', b'[{"jsonrpc":"2.0"']
"""Messages without a method and without an id that can be read: answers, to whatever request."""


@pytest.mark.parametrize("message", [bad for bad, id, _ in BAD if id is NOBODY and bad not in ORPHANS], ids=short)
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_client_says_nothing_to_garbage(message: bytes, revision: str) -> None:
    session = opened_client(revision)
    pending, _ = session.request("tools/list")
    assert replies(session, message) == []
    assert pending.stage == "active"
    assert session.stats.malformed >= 1


def test_a_client_says_nothing_to_a_line_that_could_not_be_read() -> None:
    assert isinstance(*client().receive_unreadable("too long"), MessageIgnored)


def test_a_client_refuses_a_broken_request_of_the_server_by_its_id() -> None:
    session = opened_client("2025-11-25")
    session.request("tools/list")  # whose id the server's own request happens to have
    (id,) = session.outgoing
    broken = msgspec.json.encode({"jsonrpc": "1.0", "id": id, "method": "roots/list"})
    (answer,) = replies(session, broken)
    assert error_of(answer) == (id, INVALID)
    assert session.outgoing


BROKEN_ANSWERS = [
    {"jsonrpc": "2.0"},
    {"result": {}},
    {"jsonrpc": "1.0", "result": {}},
    {"jsonrpc": "1.0", "error": {"code": 1, "message": "m"}},
    {"jsonrpc": "2.0", "result": {}, "error": {"code": 1, "message": "m"}},
    {"jsonrpc": "2.0", "error": None},
    {"jsonrpc": "2.0", "error": "broken"},
    {"jsonrpc": "2.0", "error": {"code": "E"}},
    {"jsonrpc": "2.0", "error": {"code": 1.5, "message": "m"}},
]


@pytest.mark.parametrize("broken", BROKEN_ANSWERS, ids=str)
@pytest.mark.parametrize("revision", REVISIONS)
def test_an_answer_that_is_none_fails_its_request_instead_of_leaving_it_waiting(
    broken: dict[str, Any], revision: str
) -> None:
    session = opened_client(revision)
    pending, _ = session.request("tools/list")
    (event,) = session.receive(msgspec.json.encode({**broken, "id": pending.id}))
    assert isinstance(event, ErrorReceived)
    assert event.pending is pending
    assert isinstance(event.error, RemoteProtocolError)
    assert pending.stage == "answered"
    assert not session.outgoing


UNREADABLE = [
    rb'{"jsonrpc":"2.0","id":%d,"result":{"text":"cut: \ud83d"}}',
    rb'{"jsonrpc":"2.0","id":%d,"result":{"text":"\uDE00 and on"}}',
    rb'{"result":{"text":"\ud83d"},"jsonrpc":"2.0","id":%d}',
    b'{"jsonrpc":"2.0","id":%d,"result":{"value":NaN}}',
    b'{"jsonrpc":"2.0","id":%d,"result":{"value":-Infinity}}',
    b'{"jsonrpc":"2.0","id":%d,"result":{"text":"\xff\xfe"}}',
    b'{"result":{"text":"\xff"},"jsonrpc":"2.0","id":%d}',
    b'{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"\xff"}}',
    b'{"jsonrpc":"2.0","id":%d,"result":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    b'{"result":' + b"[" * 50_000 + b"]" * 50_000 + b',"id":%d,"jsonrpc":"2.0"}',
    b'[{"jsonrpc":"2.0","id":%d,"result":{}}]',
    b'[{"jsonrpc":"2.0","id":77,"result":{}},{"jsonrpc":"2.0","id":%d,"result":{}},',
    b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"te',
    b'{"jsonrpc":"2.0","id":%d,"result":{},}',
    b'{"jsonrpc":"2.0","id":%d,"result":{}}{"jsonrpc":"2.0","method":"m"}',
    b'loading... {"jsonrpc":"2.0","id":%d,"result":{}}',
    b'{"jsonrpc":"2.0","id":%d,"result":{"a":1,"a":}}',
    b'{"jsonrpc":"2.0","id":%d}',
]


@pytest.mark.parametrize("message", UNREADABLE, ids=short)
@pytest.mark.parametrize("revision", [revision for revision in REVISIONS if revision != "2025-03-26"])
def test_an_answer_that_cannot_be_read_ends_the_call_that_it_names_and_no_other(message: bytes, revision: str) -> None:
    session = opened_client(revision)
    pending, _ = session.request("tools/list")
    other, _ = session.request("prompts/list")
    (event,) = session.receive(message.replace(b"%d", b"%d" % pending.id))
    assert isinstance(event, ErrorReceived)
    assert event.pending is pending
    assert isinstance(event.error, RemoteProtocolError)
    assert "tools/list" in str(event.error)
    assert "truncated" not in str(event.error) or b"\\u" not in message
    assert (pending.stage, other.stage) == ("answered", "active")
    assert list(session.outgoing) == [other.id]


@pytest.mark.parametrize(
    "message",
    [
        *ORPHANS,
        rb'{"jsonrpc":"2.0","result":{"text":"\ud83d"}}',
        b'{"jsonrpc":"2.0","id":[1],"result":{}}',
        b'{"jsonrpc":"2.0","id":1.5,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"result":{}}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","id":"\xff","result":{}}',
        b'{"jsonrpc":"2.0","res',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}',
        b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"what?"}}',
        b'{"jsonrpc":"2.0","error":5}',
    ],
    ids=short,
)
@pytest.mark.parametrize("revision", REVISIONS)
def test_an_answer_that_cannot_be_read_and_names_no_call_ends_all_calls(message: bytes, revision: str) -> None:
    session = opened_client(revision)
    first, _ = session.request("ping" if revision != S26 else "tools/list")
    session.receive(answer_to(first.id, result={}))
    calls = [session.request("tools/list")[0] for _ in range(3)]
    events = session.receive(message)
    assert [event.pending for event in events if isinstance(event, ErrorReceived)] == calls
    assert not session.outgoing
    assert replies(session, message) == []


@pytest.mark.parametrize("code", [-32700, -32600, -32601])
def test_an_error_without_an_id_may_answer_a_notification_and_ends_no_call_then(code: int) -> None:
    session = opened_client("2025-11-25")
    pending, _ = session.request("tools/list")
    error = {"code": code, "message": "what?"}
    assert isinstance(*session.receive(answer_to(None, error=error)), MessageIgnored)  # notifications/initialized
    assert pending.stage == "active"


def test_a_subscription_waits_for_no_answer_and_goes_on_when_one_cannot_be_read() -> None:
    session = opened_client(S26)
    listen, _ = session.request("subscriptions/listen", {"notifications": {}})
    pending, _ = session.request("tools/list")
    (event,) = session.receive(b'{"jsonrpc":"2.0","result":{"a":NaN}}')
    assert isinstance(event, ErrorReceived)
    assert event.pending is pending
    assert listen.stage == "active"


@given(
    cut=st.integers(0, 70),
    junk=st.binary(max_size=8) | st.sampled_from([rb"\ud800", b"NaN", b'"', b"{", b"[" * 3000, b"\xff"]),
    names=st.booleans(),
)
def test_any_bytes_in_the_place_of_an_answer_end_a_call_or_name_another(cut: int, junk: bytes, names: bool) -> None:
    """What is left of a message decides; `named` is read with the regular expressions of this test alone."""
    session = opened_client(S26)
    calls = [session.request("tools/list")[0] for _ in range(3)]
    id = b'"id":%d,' % calls[1].id if names else b""
    whole = b'{"jsonrpc":"2.0",' + id + b'"result":{"resultType":"complete","text":"a text that is long enough"}}'
    at = min(max(cut, 17 + len(id)), len(whole))
    message = whole[:at] + junk + whole[at:]
    events = session.receive(message)
    ended = [event.pending for event in events if isinstance(event, ErrorReceived | ResultReceived)]
    assert ended == ([calls[1]] if names else calls) or b'"method"' in message or b'"id"' in junk


@pytest.mark.parametrize(
    "message",
    [
        rb'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","arguments":{"text":"\ud83d"}}}',
        rb'{"method":"tools/call","params":{"name":"x","arguments":{"text":"\uDC00\ud83d\ude00"}},"id":5,"jsonrpc":"2.0"}',
    ],
)
@pytest.mark.parametrize("phase", PHASES)
def test_half_a_surrogate_pair_is_answered_under_the_id_of_its_request_and_named(message: bytes, phase: str) -> None:
    session = in_phase(phase)
    (answer,) = replies(session, message)
    assert error_of(answer) == (5, INVALID)
    assert "surrogate" in answer["error"]["message"]
    assert rb"\ud83d" in message
    assert still_alive(session, phase)


def test_an_id_with_half_a_surrogate_pair_is_not_repeated() -> None:
    (answer,) = replies(opened_server("2025-11-25"), rb'{"jsonrpc":"2.0","id":"\ud83d","method":"ping"}')
    assert error_of(answer) == (unread("2025-11-25"), INVALID)
    message = rb'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"\ud83d"}}'
    assert replies(opened_server("2025-11-25"), message) == []


@pytest.mark.parametrize(
    "message",
    [
        b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":%b}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"a":%b}}',
        b'{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"m","data":%b}}',
        b'{"jsonrpc":"2.0","id":2,"result":%b}',
        b'{"id":2,"result":%b}',
        b"[%b]",
    ],
    ids=short,
)
@pytest.mark.parametrize("role", ["client", "server"])
def test_depths_around_what_the_interpreter_takes_raise_nothing(message: bytes, role: str) -> None:
    session = opened_client("2025-03-26") if role == "client" else opened_server("2025-03-26")
    limit = sys.getrecursionlimit()
    for depth in range(limit - 150, limit + 50):
        assert len(session.receive(message % (b"[" * depth + b"]" * depth))) == 1


# Ids


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_number_and_a_text_are_different_ids(revision: str) -> None:
    session = opened_server(revision)
    sevens = [
        session.receive(request(7, "tools/list", revision=revision))[0],
        session.receive(request("7", "tools/list", revision=revision))[0],
    ]
    for id, event in zip((7, "7"), sevens, strict=True):
        assert isinstance(event, RequestReceived)
        answer = session.respond(event.pending, Raw(b"{}"))
        assert answer is not None
        assert msgspec.json.decode(answer)["id"] == id


@pytest.mark.parametrize("id", [0, -1, 2**63, 2**80, "", "é", "0" * 1000, '"\\\n'])
def test_an_id_comes_back_as_it_was(id: Any) -> None:
    session = opened_server("2025-11-25")
    assert replies(session, request(id, "ping")) == [{"jsonrpc": "2.0", "id": id, "result": {}}]
    (answer,) = replies(session, request(id, "no/such"))
    assert error_of(answer) == (id, UNKNOWN)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_duplicate_id_in_flight_is_refused_without_that_id_and_the_first_is_answered(revision: str) -> None:
    session = opened_server(revision)
    (first,) = session.receive(request(1, "tools/list", revision=revision))
    assert isinstance(first, RequestReceived)
    (refused,) = replies(session, request(1, "tools/call", {"name": "x"}, revision=revision))
    assert error_of(refused) == (unread(revision), INVALID)
    assert session.incoming == {1: first.pending}
    assert session.respond(first.pending, Raw(b"{}")) is not None
    assert "result" in replies(session, request(1, "tools/list", revision=revision))[0]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_malformed_message_with_an_id_in_flight_is_refused_without_that_id(revision: str) -> None:
    session = opened_server(revision)
    (first,) = session.receive(request(1, "tools/list", revision=revision))
    assert isinstance(first, RequestReceived)
    (refused,) = replies(session, b'{"jsonrpc":"1.0","id":1,"method":"ping"}')
    assert error_of(refused) == (unread(revision), INVALID)
    assert first.pending.stage == "active"


# Bounds


def test_requests_over_the_bound_are_refused_with_an_error_that_names_it_and_ping_is_answered() -> None:
    session = opened_server("2025-11-25", limits=Limits(requests_in_flight=2))
    events = [session.receive(request(id, "tools/list"))[0] for id in range(3)]
    assert [type(event) for event in events] == [RequestReceived, RequestReceived, ReplyReady]
    refused = events[-1]
    assert isinstance(refused, ReplyReady)
    answer = msgspec.json.decode(refused.message)
    assert error_of(answer) == (2, -32603)
    assert "the limit is 2" in answer["error"]["message"]
    assert "result" in replies(session, request(3, "ping"))[0]
    assert isinstance(events[0], RequestReceived)
    session.respond(events[0].pending, Raw(b"{}"))
    assert isinstance(session.receive(request(4, "tools/list"))[0], RequestReceived)


@pytest.mark.parametrize("revision", REVISIONS)
def test_while_draining_new_requests_are_refused_and_those_in_flight_are_answered(revision: str) -> None:
    session = opened_server(revision)
    (event,) = session.receive(request(1, "tools/list", revision=revision))
    session.draining = True
    (refused,) = replies(session, request(2, "tools/list", revision=revision))
    assert error_of(refused) == (2, -32603)
    assert "shutting down" in refused["error"]["message"]
    assert isinstance(event, RequestReceived)
    assert session.respond(event.pending, Raw(b"{}")) is not None


def test_an_error_that_cannot_be_written_is_sent_without_what_cannot() -> None:
    session = opened_server("2025-11-25")
    bad: list[ProtocolError] = [
        InternalError("a lone \ud800 surrogate"),
        InternalError("data", data={"of no": object()}),
        InternalError("text in data", data=["\udfff"]),
    ]
    cycle: list[Any] = []
    cycle.append(cycle)
    bad.append(InternalError("a cycle", data=cycle))
    for id, error in enumerate(bad):
        (event,) = session.receive(request(id, "tools/list"))
        assert isinstance(event, RequestReceived)
        message = session.fail(event.pending, error)
        assert message is not None
        answer = msgspec.json.decode(message)
        assert error_of(answer) == (id, -32603)
        assert "data" not in answer["error"]
    assert not session.incoming


# Batches


def batch(*items: bytes) -> bytes:
    return b"[" + b",".join(items) + b"]"


GOOD = batch(request(1, "tools/list"), request(2, "ping"))


@pytest.mark.parametrize("phase", [phase for phase in PHASES if phase != "2025-03-26"])
@pytest.mark.parametrize("message", [GOOD, b"[]", batch(notification("notifications/x")), b" \t\r\n[5]"], ids=short)
def test_a_batch_where_there_are_none_gets_one_error(message: bytes, phase: str) -> None:
    session = in_phase(phase)
    (answer,) = replies(session, message)
    assert error_of(answer) == (unread(phase), INVALID)
    assert "batch" in answer["error"]["message"]
    assert still_alive(session, phase)


@pytest.mark.parametrize("revision", [revision for revision in REVISIONS if revision != "2025-03-26"])
def test_a_client_says_nothing_to_a_batch_where_there_are_none(revision: str) -> None:
    assert replies(opened_client(revision), GOOD) == []


def batching() -> Session:
    return opened_server("2025-03-26")


def taken(session: Session, message: bytes) -> tuple[list[Any], list[RequestReceived]]:
    """What is said at once to a batch, and the requests that are to be answered."""
    events = session.receive(message)
    said = [msgspec.json.decode(event.message) for event in events if isinstance(event, ReplyReady)]
    return said, [event for event in events if isinstance(event, RequestReceived)]


def test_the_answers_to_a_batch_leave_together_when_the_last_is_there() -> None:
    session = batching()
    said, (first, second) = taken(session, batch(request(1, "tools/list"), request("2", "prompts/list")))
    assert not said
    assert session.respond(second.pending, Raw(b'{"a":1}')) is None
    whole = session.fail(first.pending, InternalError("no"))
    assert whole is not None
    answers = msgspec.json.decode(whole)
    assert [answer["id"] for answer in answers] == ["2", 1]
    assert answers[0]["result"] == {"a": 1}
    assert answers[1]["error"]["code"] == -32603
    assert not session.incoming


def test_a_batch_that_is_answered_at_once_is_answered_in_its_order() -> None:
    session = batching()
    message = batch(
        request(1, "ping"),
        b"5",
        notification("notifications/no_such"),
        request(2, "no/such"),
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        request(3, "ping"),
        b"[]",
        b'{"id":4,"method":"ping"}',
        request(5, "tools/list", revision=S26),
    )
    (answers,) = replies(session, message)
    assert [answer.get("id", "absent") for answer in answers] == [1, None, 2, 3, None, 4, 5]
    codes = [answer["error"]["code"] if "error" in answer else 0 for answer in answers]
    assert codes == [0, INVALID, UNKNOWN, 0, INVALID, INVALID, 0]
    assert still_alive(session, "2025-03-26")


def test_a_batch_without_requests_is_not_answered() -> None:
    session = batching()
    message = batch(notification("notifications/no_such"), b'{"jsonrpc":"2.0","id":99,"result":{}}')
    assert replies(session, message) == []
    assert replies(session, batch(notification("initialize"))) == []


def test_an_empty_batch_gets_one_error_that_is_no_array() -> None:
    (answer,) = replies(batching(), b" [ ] ")
    assert error_of(answer) == (None, INVALID)


def test_a_batch_that_is_no_json_gets_one_error_that_is_no_array() -> None:
    for message in (b"[", b'[{"jsonrpc":"2.0"},]', b'["\xff"]', b"[" * 100_000):
        (answer,) = replies(batching(), message)
        assert error_of(answer) == (None, PARSE)


def test_half_a_surrogate_pair_in_a_batch_is_an_error_for_its_item_alone() -> None:
    bad = rb'{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"a":"\ud83d"}}'
    lost = rb'{"jsonrpc":"2.0","id":"\uDC00","method":"ping"}'
    good = rb'{"jsonrpc":"2.0","id":6,"method":"ping","params":{"a":"\ud83d\ude00 \\ud83d"}}'
    (answers,) = replies(batching(), b" [\n" + b" ,\n".join([bad, good, lost, good.replace(b"6", b"7", 1), bad]) + b"]")
    assert [error_of(answers[at]) for at in (0, 2, 4)] == [(5, INVALID), (None, INVALID), (5, INVALID)]
    assert "surrogate" in answers[0]["error"]["message"]
    assert [answers[at] for at in (1, 3)] == [{"jsonrpc": "2.0", "id": id, "result": {}} for id in (6, 7)]


def test_initialize_inside_a_batch_is_an_error_for_that_item() -> None:
    session = batching()
    (answers,) = replies(session, batch(initialize("2024-11-05", 1), request(2, "ping")))
    assert error_of(answers[0]) == (1, INVALID)
    assert answers[1] == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert session.rules.revision == "2025-03-26"


def test_discover_inside_a_batch_is_answered_there() -> None:
    session = batching()
    (answers,) = replies(session, batch(request(1, "server/discover", revision=S26), request(2, "ping")))
    assert [answer["id"] for answer in answers] == [1, 2]
    (answers,) = replies(session, batch(request(3, "server/discover", revision=S26)))
    assert answers[0]["result"]["supportedVersions"] == [S26]
    _, (open_,) = taken(session, batch(request(4, "server/discover", revision=S26), request(5, "tools/list")))
    whole = session.respond(open_.pending, Raw(b"{}"))
    assert whole is not None
    assert [answer["id"] for answer in msgspec.json.decode(whole)] == [4, 5]


def test_duplicate_ids_inside_a_batch_are_refused_after_the_first() -> None:
    session = batching()
    _, (first,) = taken(session, batch(request(1, "tools/list"), request(1, "tools/list")))
    whole = session.respond(first.pending, Raw(b"{}"))
    assert whole is not None
    refused, answer = msgspec.json.decode(whole)
    assert error_of(refused) == (None, INVALID)
    assert answer["id"] == 1


def test_a_cancelled_item_is_left_out_and_the_rest_does_not_wait_for_it() -> None:
    session = batching()
    _, (first, second) = taken(session, batch(request(1, "tools/list"), request(2, "tools/list")))
    assert session.respond(first.pending, Raw(b"{}")) is None
    (event,) = session.receive(notification("notifications/cancelled", {"requestId": 2, "reason": "r"}))
    assert isinstance(event, CancelReceived)
    assert event.reason == "r"
    assert event.reply is not None
    assert [answer["id"] for answer in msgspec.json.decode(event.reply)] == [1]
    assert session.respond(second.pending, Raw(b"{}")) is None
    assert session.stats.dropped_results == 1


def test_the_answers_of_a_batch_are_no_larger_together_than_one_message_may_be() -> None:
    session = opened_server("2025-03-26", limits=Limits(line_bytes=1000))
    batch = [{"jsonrpc": "2.0", "id": id, "method": "tools/list"} for id in (1, 2, 3)]
    events = session.receive(msgspec.json.encode(batch))
    large = Raw(b'{"tools":[],"nextCursor":"' + b"x" * 600 + b'"}')
    whole = [session.respond(event.pending, large) for event in events if isinstance(event, RequestReceived)][-1]
    assert whole is not None
    answers = msgspec.json.decode(whole)
    assert ["result" in answer for answer in answers] == [True, False, False]
    assert "ask one by one" in answers[1]["error"]["message"]


@pytest.mark.parametrize(
    ("head", "fails"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{"content":[', True),
        (b' {"id" : 1 , "result":', True),
        (b'{"jsonrpc":"2.0","id":12,"result":{', False),
        (b'{"jsonrpc":"2.0","id":"1","result":{', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{', False),
        (b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":{"id":1', False),
        (b'{"jsonrpc":"2.0","result":{"id":1', False),
        (b"", False),
    ],
)
def test_an_answer_that_was_too_long_to_read_fails_its_request(head: bytes, fails: bool) -> None:
    session = opened_client("2025-11-25")
    pending, _ = session.request("tools/list")
    del session.outgoing[pending.id]
    session.outgoing[1] = pending
    (event,) = session.receive_unreadable("too long", head)
    assert isinstance(event, ErrorReceived) is fails
    assert (1 in session.outgoing) is not fails


ANSWERS = b'{"jsonrpc":"2.0","result":{"content":['


@pytest.mark.parametrize(
    ("head", "tail", "fails"),
    [
        (ANSWERS, b'"}]},"id":1}', True),
        (b'{"jsonrpc":"2.0","error":{"code":1,', b'..."}, "id" : 1 } \r', True),
        (ANSWERS, b'"}]},"id":1,"x":2}', True),  # no id that can be read: any request, and there is one
        (ANSWERS, b'"}]},"id":12}', False),
        (ANSWERS, b'"}]},"id":"1"}', False),
        (ANSWERS, b'"}]}}', True),
        (b'{"jsonrpc":"2.0","method":"sampling/createMessage","params":{"result":', b'"}]},"id":1}', False),
        (b'{"jsonrpc":"2.0","params":{"result":', b'},"method":"sampling/createMessage","id":1}', False),
        (b"garbage", b'"id":1}', False),
    ],
)
def test_an_answer_that_was_too_long_to_read_fails_its_request_also_when_its_id_is_last(
    head: bytes, tail: bytes, fails: bool
) -> None:
    session = opened_client("2025-11-25")
    pending, _ = session.request("tools/list")
    del session.outgoing[pending.id]
    session.outgoing[1] = pending
    assert isinstance(*session.receive_unreadable("too long", head), MessageIgnored)
    (event,) = session.receive_unreadable("too long", head, tail)
    assert isinstance(event, ErrorReceived) is fails
    assert isinstance(event, MessageIgnored) is not fails
    assert (1 in session.outgoing) is not fails
    assert (session.stats.received, session.stats.malformed) == (2, 1)


def test_a_server_says_nothing_more_when_a_line_that_it_could_not_read_ends() -> None:
    session = opened_server("2025-11-25")
    (event,) = session.receive_unreadable("too long", ANSWERS, b'"id":1}')
    assert isinstance(event, MessageIgnored)
    assert not event.first


def test_a_batch_of_more_messages_than_the_bound_gets_one_error() -> None:
    session = opened_server("2025-03-26", limits=Limits(batch_items=3))
    (answer,) = replies(session, batch(b"1", b"1", b"1", b"1"))
    assert error_of(answer) == (None, INVALID)
    assert "a batch of 4 messages; the limit is 3" in answer["error"]["message"]
    (answers,) = replies(session, batch(b"1", b"1", b"1"))
    assert len(answers) == 3


def test_a_megabyte_of_garbage_in_a_batch_costs_one_small_answer() -> None:
    session = batching()
    (event,) = session.receive(b"[" + b"1," * 500_000 + b"1]")
    assert isinstance(event, ReplyReady)
    assert len(event.message) < 200


def test_answers_given_at_once_count_for_the_size_of_a_batch_too() -> None:
    session = opened_server("2025-03-26", limits=Limits(line_bytes=1_000))
    id = "x" * 400
    (answers,) = replies(session, batch(*(request(id + str(n), "ping") for n in range(3)), b"5"))
    assert ["result" in answer for answer in answers] == [True, True, False, False]
    assert "ask one by one" in answers[2]["error"]["message"]
    assert answers[3]["id"] is None


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_error_repeats_no_more_of_a_name_than_a_person_would_read(revision: str) -> None:
    session = opened_server(revision)
    for length, code in ((1_000, UNKNOWN), (100_000, INVALID)):
        (answer,) = replies(session, request(1, "x" * length, revision=revision))
        assert error_of(answer) == (1, code)
        assert len(answer["error"]["message"]) < 300


# `_meta`

UNHEARD: list[dict[str, Any]] = [
    {"traceparent": 5},
    {"io.modelcontextprotocol/logLevel": 5},
    {"io.modelcontextprotocol/logLevel": "loud"},
    {"io.modelcontextprotocol/clientInfo": "me"},
    {"io.modelcontextprotocol/clientCapabilities": []},
]


@pytest.mark.parametrize("meta", UNHEARD, ids=str)
@pytest.mark.parametrize("revision", HANDSHAKE)
def test_keys_of_meta_that_a_revision_does_not_know_may_be_anything(meta: dict[str, Any], revision: str) -> None:
    session = opened_server(revision)
    (event,) = session.receive(request(1, "tools/list", {"_meta": {**meta, "progressToken": 7}}))
    assert isinstance(event, RequestReceived)
    assert event.pending.meta is not None
    assert event.pending.meta.progress_token == 7
    (answer,) = replies(session, request(2, "tools/list", {"_meta": {**meta, "progressToken": 1.5}}))
    assert error_of(answer) == (2, PARAMS)


@pytest.mark.parametrize("meta", UNHEARD, ids=str)
def test_keys_of_meta_that_the_revision_knows_must_be_what_they_should(meta: dict[str, Any]) -> None:
    session = opened_server(S26)
    (answer,) = replies(session, request(1, "tools/list", {"_meta": {**META, **meta}}))
    assert error_of(answer) == (1, PARAMS)
    assert next(iter(meta)) in answer["error"]["message"]


def test_a_batch_of_which_all_was_cancelled_is_not_answered() -> None:
    session = batching()
    _, (first,) = taken(session, batch(request(1, "tools/list")))
    (event,) = session.receive(notification("notifications/cancelled", {"requestId": 1}))
    assert isinstance(event, CancelReceived)
    assert event.reply is None
    assert session.respond(first.pending, Raw(b"{}")) is None


def test_an_item_may_cancel_another_of_its_batch() -> None:
    session = batching()
    cancel = notification("notifications/cancelled", {"requestId": 1})
    events = session.receive(batch(request(1, "tools/list"), cancel, request(2, "ping")))
    assert [type(event) for event in events] == [RequestReceived, CancelReceived, ReplyReady]
    reply = events[-1]
    assert isinstance(reply, ReplyReady)
    assert [answer["id"] for answer in msgspec.json.decode(reply.message)] == [2]
    assert not session.incoming


def test_a_client_takes_a_batch_of_answers_and_requests() -> None:
    pair = Pair(client(["2025-03-26"]), server(["2025-03-26"]))
    pair.open()
    one, two = pair.ask("tools/list"), pair.ask("prompts/list")
    pair.wire["server"].clear()
    answers = [answer_to(pending.id) for pending in (two, one)]
    pair.put("client", batch(*answers, request(1, "roots/list"), request(2, "ping"), b"5"))
    pair.run()
    assert not pair.client.outgoing
    whole = msgspec.json.decode(pair.transcript[-1].removeprefix("→ "))
    assert [answer["id"] for answer in whole] == [2, 1]  # what is known at once comes first


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_an_answer_comes_back_by_the_rules_of_its_own_revision(revision: str) -> None:
    session = opened_server(revision, says=SERVER_SAYS)
    (new,) = replies(session, request(1, "no/such", {"_meta": META}))
    assert S26 in new["error"]["message"]
    (old,) = replies(session, request(2, "no/such"))
    assert revision in old["error"]["message"]


# Messages that are too much to read

MANY = b"[" + b"[]," * RESULT_NODES + b"0]"


@pytest.mark.parametrize(
    "rest",
    [
        b'"result":{"content":[],"structuredContent":%b}' % MANY,
        b'"result":{"content":[],"structuredContent":{"a":[%b0]}}' % (b"0," * (2 * RESULT_NODES)),
        b'"error":{"code":1,"message":"no","data":%b}' % MANY,
        b'"result":{},"more":%b' % MANY,
        b'"more":%b,"result":{}' % MANY,
        b'"more":%b' % MANY,
    ],
)
def test_an_answer_with_too_much_structure_ends_its_request_unread(rest: bytes) -> None:
    session = opened_client("2025-11-25")
    call, _ = session.request("tools/list")
    (event,) = session.receive(b'{"jsonrpc":"2.0","id":%d,%b}' % (call.id, rest))
    assert isinstance(event, ErrorReceived)
    assert event.pending is call
    assert isinstance(event.error, RemoteProtocolError)
    assert "the answer to tools/list is invalid: more than 1,000,000 arrays, objects and members" in str(event.error)


@pytest.mark.parametrize(
    "message",
    [
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%b}}' % MANY,
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"_meta":{"a":%b}}}' % MANY,
        b'{"jsonrpc":"2.0","method":%b}' % MANY,
        MANY,
    ],
)
def test_what_else_has_too_much_structure_is_dropped_unread(message: bytes) -> None:
    is_dropped_unread(message)


def test_a_message_with_too_many_members_is_dropped_unread() -> None:
    is_dropped_unread(b"{%b}" % b",".join(map(b'"%d":1'.__mod__, range(RESULT_NODES + 1))))


def is_dropped_unread(message: bytes) -> None:
    session = opened_client("2025-11-25")
    (event,) = session.receive(message)
    assert isinstance(event, MessageIgnored)
    assert "more than 1,000,000 arrays" in event.detail


def test_a_question_with_too_much_structure_is_refused_under_its_id() -> None:
    session = opened_client("2025-11-25")
    (event,) = session.receive(b'{"jsonrpc":"2.0","id":"q","method":"roots/list","params":{"_meta":{"a":%b}}}' % MANY)
    assert isinstance(event, ReplyReady)
    assert error_of(msgspec.json.decode(event.message)) == ("q", INVALID)


def test_a_long_text_is_no_structure_and_much_of_it_is_read() -> None:
    session = opened_client("2025-11-25")
    text = b'"%b"' % (b"[{,:" * RESULT_NODES)
    for content in (text, b"[" + b"[]," * (RESULT_NODES // 2) + b"0]"):
        call, _ = session.request("tools/list")
        (event,) = session.receive(b'{"jsonrpc":"2.0","id":%d,"result":{"tools":%b}}' % (call.id, content))
        assert isinstance(event, ResultReceived)
