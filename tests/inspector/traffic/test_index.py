"""The index: what became of each request, and the spans of calls, streams and connections."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import pytest

from accord.inspector.traffic import index as traffic_index
from accord.inspector.traffic.index import KINDS, OUTCOMES, TrafficIndex
from accord.inspector.traffic.spans import SPAN_KINDS
from accord.transport.recording import new_header
from accord.wire.session_file import SessionFileError, StderrEntry, encode_line

from tests.inspector.traffic.sessions import Script, usual
from tests.measure import assert_linear


def kinds(index: TrafficIndex) -> list[str]:
    return [KINDS[kind] for kind in index.kinds]


def outcomes(index: TrafficIndex) -> list[str]:
    return [OUTCOMES[outcome] for outcome in index.outcomes]


def spans(index: TrafficIndex) -> list[tuple[str, str, int]]:
    table = index.spans
    return [
        (SPAN_KINDS[table.kinds[span]], OUTCOMES[table.outcomes[span]], table.rounds[span])
        for span in range(len(table))
    ]


async def test_requests_have_the_outcome_of_their_responses(tmp_path: Path) -> None:
    index = (await usual().open(tmp_path)).index
    assert kinds(index) == ["connected", *["request", "response"] * 3, "request", "lost"]
    assert outcomes(index) == ["", "ok", "ok", "ok", "ok", "error", "error", "lost", "lost"]
    assert [index.codes[row] for row in (5, 6)] == [-32602, -32602]
    assert index.duration(3) == pytest.approx(0.61)
    assert index.duration(7) is None
    assert [index.methods.text(row) for row in (2, 4, 6)] == ["tools/list", "tools/call", "tools/call"]
    assert [index.names.text(row) for row in (0, 3, 4, 6)] == ["python shop.py", "price", "price", "bake"]
    assert spans(index) == [
        ("connection", "lost", 1),
        ("call", "ok", 1),
        ("call", "ok", 1),
        ("call", "error", 1),
        ("call", "lost", 1),
    ]


async def test_the_rounds_of_a_call_are_one_span(tmp_path: Path) -> None:
    script = Script()
    script.connected()
    script.request(1, "tools/call", name="book")
    script.result(1, resultType="input_required", inputRequests={"a": {}}, requestState="s-1")
    script.request(2, "tools/call", name="other")
    script.result(2, content=[])
    script.request(3, "tools/call", name="book", inputResponses={"a": {}}, requestState="s-1")
    script.result(3, resultType="input_required", inputRequests={"b": {}}, requestState="s-2")
    script.request(4, "tools/call", name="book", inputResponses={"b": {}}, requestState="s-2")
    script.result(4, content=[])
    index = (await script.open(tmp_path)).index
    assert spans(index) == [("connection", "pending", 1), ("call", "ok", 3), ("call", "ok", 1)]
    assert list(index.rows_of_span(1)) == [1, 2, 5, 6, 7, 8]
    assert (index.spans.begins[1], index.spans.ends[1]) == (index.times[1], index.times[8])
    assert outcomes(index)[1] == "input"


async def test_requests_of_the_server_belong_to_the_call(tmp_path: Path) -> None:
    script = Script()
    script.connected()
    script.request(1, "tools/call", name="book")
    script.message({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}}, "received", request=1)
    script.message({"jsonrpc": "2.0", "id": 1, "result": {"action": "decline"}}, "sent", request=1)
    script.result(1, content=[])
    script.message({"jsonrpc": "2.0", "id": 2, "method": "roots/list"}, "received")
    script.message({"jsonrpc": "2.0", "id": 2, "result": {"roots": []}}, "sent")
    index = (await script.open(tmp_path)).index
    assert spans(index)[1:] == [("call", "ok", 1), ("server request", "ok", 1)]
    assert list(index.rows_of_span(1)) == [1, 2, 3, 4]
    assert [index.partners[row] for row in range(1, 7)] == [4, 3, 2, 1, 6, 5]


async def test_http_heads_streams_and_subscriptions_have_spans(tmp_path: Path) -> None:
    script = Script()
    script.connected()
    script.head(1, method="POST")
    script.request(1, "tools/call", name="price")
    script.entries[-1] = type(script.entries[-1])(**{**_fields(script.entries[-1]), "exchange": 1})
    script.head(1, status=200)
    script.result(1, content=[])
    script.head(2, method="GET")
    script.head(2, status=405)
    script.request(5, "subscriptions/listen")
    script.closed()
    index = (await script.open(tmp_path)).index
    assert spans(index) == [
        ("connection", "ok", 1),
        ("call", "ok", 1),
        ("stream", "error", 1),
        ("subscription", "ok", 1),
    ]
    assert list(index.rows_of_span(1)) == [1, 2, 3, 4]
    assert (index.codes[3], index.partners[1], index.partners[6]) == (200, 3, 5)


def _fields(entry: object) -> dict[str, object]:
    return {name: getattr(entry, name) for name in type(entry).__struct_fields__}  # type: ignore[attr-defined]


async def test_a_cancelled_request_is_cancelled_whatever_follows(tmp_path: Path) -> None:
    script = Script()
    script.connected()
    script.request(1, "tools/call", name="slow")
    script.message(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}, "sent", request=1
    )
    index = (await script.open(tmp_path)).index
    assert outcomes(index) == ["", "cancelled", ""]
    assert kinds(index)[2] == "notification"
    assert not isnan(index.spans.ends[1])


@pytest.mark.parametrize(
    "message",
    [
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b"3", b"null", b'"text"', b"not json", b"\xff\xfe", b"{}",
        b'{"id":{"a":1},"method":"ping","params":[1]}', b'{"method":3}', b'{"id":1,"result":null}',
        b'{"id":true,"method":"a","params":{"_meta":3,"name":{}}}', b'{"id":1.5,"error":"no"}', b"[" * 900 + b"]" * 900,
        b'{"id":99999999999999999999999999,"method":"tools/call","params":{"ref":[]}}',
    ],
    ids=repr,
)  # fmt: skip
async def test_any_message_is_one_row(message: bytes, tmp_path: Path) -> None:
    script = Script()
    script.message(message, "received")
    script.message(message, "sent", exchange=2)
    source = await script.open(tmp_path)
    assert len(source.index) == 2
    assert source.reader.message(1) == message
    assert source.reader.preview(1) is not None
    assert bool(source.types.mismatch(1)) is (message in (b"not json", b"\xff\xfe"))


async def test_a_preview_is_what_a_row_says_beside_its_method(tmp_path: Path) -> None:
    script = Script()
    script.add(StderrEntry, text="  File weather.py\tline 3")
    script.lost("the process ended with 1")
    script.head(1, method="POST")
    script.head(1, status=404)
    script.request(1, "tools/list", cursor="page 2")
    script.result(1, tools=[], ttlMs=0, cacheScope="public")
    script.request(2, "ping")
    script.error(1, -32602)
    script.message(b"listening on port 80", "received")
    script.message(b'{"jsonrpc":"2.0","id":3,"result":7}', "received")
    script.message(b'{"jsonrpc":"2.0","id":4,"result":{"text":"' + b"x" * 20_000 + b'"}}', "received")
    reader = (await script.open(tmp_path)).reader
    assert [reader.preview(row) for row in range(10)] == [
        "File weather.py line 3",
        "the process ended with 1",
        "/mcp",
        "",
        '{"cursor":"page 2"}',
        '{"tools":[]}',
        "",
        '{"code":-32602,"message":"no such item"}',
        "listening on port 80",
        '{"jsonrpc":"2.0","id":3,"result":7}',
    ]
    assert reader.preview(10).startswith('{"jsonrpc":"2.0","id":4,"result":{"text":"xxx')


def test_times_do_not_go_back() -> None:
    index = TrafficIndex()
    lines = [encode_line(new_header("x")), *(encode_line(StderrEntry(at=at, text="a")) for at in (2.0, 1.0, -5.0, 3.0))]
    for line in lines:
        index.add_line(line, 0)
    assert list(index.times) == [2.0, 2.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "line", [b"{}\n", b"[]\n", b'{"kind":"unheard"}\n', b'{"kind":"message","at":"x"}\n', b"\xff\n"]
)
def test_an_invalid_line_is_refused_and_adds_no_row(line: bytes) -> None:
    index = TrafficIndex()
    index.add_line(encode_line(new_header("x")), 0)
    with pytest.raises(SessionFileError):
        index.add_line(line, 0)
    assert len(index) == 0


def read(lines: list[bytes]) -> TrafficIndex:
    index = TrafficIndex()
    for line in (encode_line(new_header("")), *lines):
        index.add_line(line, 0)
    return index


@pytest.mark.parametrize("end", [b'{"kind":"lost","reason":""}', b'{"kind":"closed"}'])
@pytest.mark.parametrize(
    "part",
    [
        b'{"kind":"message","direction":"sent","exchange":%d,"message":{"id":%d,"method":"ping"}}',
        b'{"kind":"http","direction":"sent","exchange":%d,"method":"GET","url":"u%d"}',
        b'{"kind":"message","direction":"sent","message":{"id":"%d-%d","method":"ping"}}',
    ],
)
def test_a_connection_may_end_many_times(part: bytes, end: bytes) -> None:
    assert_linear(lambda size: read([part % (at + 1, at) for at in range(size)] + [end] * size), 500)


def test_sizes_that_no_message_has_are_bounded() -> None:
    line = b'{"kind":"skipped","direction":"sent","reason":"r","size":%d}'
    assert list(read([line % size for size in (-1, 7, 10**12)]).sizes) == [0, 7, 2**32 - 1]


def test_the_open_ends_of_few_connections_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic_index, "MAX_CONNECTIONS", 3)
    index = read([b'{"kind":"connected","connection":%d}' % number for number in range(10)])
    assert len(index) == 10
    assert len(index._connections) == 3
