"""The traffic over every transport, as entries of a session file, in the order and at the time in which it went."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord import Client, ConnectError, ConnectionLost, HTTPSettings, Limits
from accord.client.target import Command, Remote
from accord.sync import Client as BlockingClient
from accord.testing import served_over_http
from accord.testing.recording import read_recorded
from accord.transport.base import is_observable
from accord.transport.http.streamable import StreamableTransport
from accord.transport.recording import SessionRecorder
from accord.wire.session_file import (
    ClosedEntry,
    ConnectedEntry,
    Entry,
    HTTPEntry,
    LostEntry,
    MessageEntry,
    SessionFile,
    SessionHeader,
    SkippedEntry,
    StderrEntry,
    UnansweredEntry,
)

from tests.testing.shops import shop
from tests.transport.http.site import Visit, modern, older, quiet, site

PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from tests.testing.shops import shop
print("ready, token=abcdefgh12345", file=sys.stderr, flush=True)
shop().run()
"""
ROOT = str(Path(__file__).parents[2])
BEARER = "the-bearer-token-of-ann"


@contextmanager
def over(kind: str, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    """A target with the shop over a transport, and the name of the transport."""
    if kind == "memory":
        yield shop(), "MemoryTransport"
    elif kind == "stdio":
        program = tmp_path / "program.py"
        program.write_text(PROGRAM.format(root=ROOT))
        yield Command((sys.executable, str(program))), "SubprocessTransport"
    else:
        with served_over_http(shop()) as url:
            if kind == "sse":
                yield Remote(url.replace("/mcp", "/sse"), None, True), "SSETransport"
            else:
                yield url, "StreamableTransport"


def of_kind(session: SessionFile, kind: type[Any]) -> list[Any]:
    return [entry for entry in session.entries if isinstance(entry, kind)]


def json_of(entry: MessageEntry) -> Any:
    return msgspec.json.decode(entry.data)


WAYS = [
    ("memory", "2025-11-25"),
    ("memory", "2026-07-28"),
    ("stdio", "2024-11-05"),
    ("stdio", "2026-07-28"),
    ("http", "2025-11-25"),
    ("http", "2026-07-28"),
    ("sse", "2024-11-05"),
]


@pytest.mark.parametrize(("kind", "revision"), WAYS)
async def test_a_session_over_any_transport_is_recorded(kind: str, revision: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    with over(kind, tmp_path) as (target, transport):
        async with Client(target, revisions=[revision], record=file) as client:
            await client.call_tool("price", {"item": "bread"})
            await client.call_tool("bake", {"breads": 2}, on_progress=lambda *_: None)
    session = read_recorded(file)
    assert session.header.redacted
    assert not session.incomplete
    entries = session.entries
    assert entries[0] == ConnectedEntry(at=entries[0].at, connection=1, name=session.header.target, transport=transport)
    assert isinstance(entries[-1], ClosedEntry)
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    check_calls(session)
    check_exchanges(session, has_http=kind in ("http", "sse"))


def check_calls(session: SessionFile) -> None:
    """Each call has its progress and its response, under its id."""
    messages = of_kind(session, MessageEntry)
    calls = [entry for entry in messages if json_of(entry).get("method") == "tools/call"]
    assert [entry.direction for entry in calls] == ["sent", "sent"]
    for call in calls:
        assert call.request == json_of(call)["id"]
        received = [entry for entry in messages if entry.request == call.request and entry.direction == "received"]
        progress = [entry for entry in received if json_of(entry).get("method") == "notifications/progress"]
        assert len(progress) == (2 if json_of(call)["params"]["name"] == "bake" else 0)
        assert "result" in json_of(received[-1])


def check_exchanges(session: SessionFile, *, has_http: bool) -> None:
    """Over HTTP, each message belongs to an exchange, whose heads stand before it."""
    heads: set[tuple[str, int]] = set()
    for entry in session.entries:
        if isinstance(entry, HTTPEntry):
            heads.add((entry.direction, entry.exchange))
            assert entry.headers
        elif isinstance(entry, MessageEntry):
            assert bool(entry.exchange) is has_http
            assert not has_http or (entry.direction, entry.exchange) in heads
    assert bool(heads) is has_http


async def test_bytes_are_recorded_as_they_are(tmp_path: Path) -> None:
    odd = b'{ "jsonrpc":"2.0",  "id":%d, "result":{"tools":[ ] , "x":1.50, "x":"\\u00e9"} }'

    async def play(visit: Visit) -> None:
        await visit.respond(200, odd % visit.message["id"], "application/json")

    async with site(modern(play)) as server, Client(server.url, record=tmp_path / "f.jsonl") as client:
        await client.list_tools()
    received = of_kind(read_recorded(tmp_path / "f.jsonl"), MessageEntry)[-1]
    assert received.data == odd % received.request


async def test_stderr_is_recorded_and_still_passed_on(tmp_path: Path) -> None:
    seen: list[str] = []
    with over("stdio", tmp_path) as (target, _):
        async with Client(target, record=tmp_path / "f.jsonl", on_stderr=seen.append) as client:
            await client.ping()
    recorded = [entry.text for entry in of_kind(read_recorded(tmp_path / "f.jsonl"), StderrEntry)]
    assert recorded == ["ready, token=[redacted]"]
    assert seen == ["ready, token=abcdefgh12345"]


async def test_the_values_of_secret_variables_are_not_recorded(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, sys\nsys.exit('I have ' + os.environ['SHOP_API_KEY'] + ' ' + os.environ['PLACE'])")
    env = {"SHOP_API_KEY": "a plain secret", "PLACE": "the place"}
    with pytest.raises((ConnectError, ConnectionLost)):
        await Client(Command((sys.executable, str(program)), env), record=tmp_path / "f.jsonl").connect()
    text = (tmp_path / "f.jsonl").read_text()
    assert "a plain secret" not in text
    assert "I have [redacted] the place" in text


async def test_a_lost_connection_and_the_next_one_are_recorded(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys; sys.stdin.readline(); sys.exit('not today')")
    with pytest.raises((ConnectError, ConnectionLost)):
        await Client(Command((sys.executable, str(program))), record=tmp_path / "f.jsonl").connect()
    session = read_recorded(tmp_path / "f.jsonl")
    assert [entry.connection for entry in of_kind(session, ConnectedEntry)] == [1, 2]
    assert [entry.connection for entry in of_kind(session, ClosedEntry)] == [1, 2]
    lost = of_kind(session, LostEntry)
    assert "exited with code 1; last lines of stderr:\nnot today" in lost[0].reason


async def test_a_client_that_connects_again_continues_its_file(tmp_path: Path) -> None:
    client = Client(shop(), record=tmp_path / "f.jsonl")
    for _ in range(2):
        await client.connect()
        await client.close()
    assert [entry.connection for entry in of_kind(read_recorded(tmp_path / "f.jsonl"), ConnectedEntry)] == [1, 2]


async def test_a_redirect_repeats_an_exchange(tmp_path: Path) -> None:
    async def play(visit: Visit) -> None:
        if visit.path == "/mcp":
            await visit.respond(307, Location="/other?key=of-the-redirect")
        else:
            await visit.done()

    async with site(modern(play)) as server, Client(server.url, record=tmp_path / "f.jsonl") as client:
        await client.call_tool("echo")
    session = read_recorded(tmp_path / "f.jsonl")
    redirect = next(entry for entry in of_kind(session, HTTPEntry) if entry.status == 307)
    repeated = next(entry for entry in of_kind(session, HTTPEntry) if entry.repeats)
    assert (repeated.repeats, repeated.method) == (redirect.exchange, "POST")
    assert repeated.url.endswith("/other?key=[redacted]")
    calls = [entry for entry in of_kind(session, MessageEntry) if b"tools/call" in entry.data]
    assert [entry.exchange for entry in calls] == [redirect.exchange]


async def test_credentials_and_session_ids_are_not_recorded(tmp_path: Path) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            credentials = f"{visit.headers['authorization']} {visit.headers['x-shop']} session-1234"
            await visit.done(f"you sent {credentials}")
        else:
            await quiet(visit)

    http = HTTPSettings(headers={"X-Shop": "key of the shop"})
    file = tmp_path / "f.jsonl"
    async with (
        site(older(play, "session-1234")) as server,
        Client(server.url, auth=BEARER, http=http, record=file) as client,
    ):
        assert BEARER in (await client.call_tool("echo")).text
    text = file.read_text()
    assert not [secret for secret in (BEARER, "key of the shop", "session-1234") if secret in text]
    assert "you sent [redacted] [redacted] [session 1]" in text
    assert '"mcp-session-id":"[session 1]"' in text
    assert '"authorization":"[redacted]"' in text


async def test_a_second_sink_receives_the_entries_of_its_connections_only() -> None:
    class Entries(list[Entry]):
        """A sink."""

        def write(self, entry: Entry) -> None:
            self.append(entry)

        def begin(self, header: SessionHeader) -> None:
            """There is no file."""

        def add_secrets(self, secrets: Iterable[str]) -> None:
            """Nothing is redacted."""

    whole, own = Entries(), Entries()
    recorder = SessionRecorder(whole)
    async with Client(shop(), record=recorder) as first, Client(shop(), record=recorder.with_sink(own)) as second:
        await first.ping()
        await second.ping()
    assert {entry.connection for entry in whole} == {1, 2}
    assert own == [entry for entry in whole if entry.connection == 2]
    assert any(isinstance(entry, MessageEntry) for entry in own)


async def test_a_request_without_an_answer_is_recorded(tmp_path: Path) -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(500, b"<p>an error</p>", "text/html")

    async with site(modern(play)) as server, Client(server.url, record=tmp_path / "f.jsonl") as client:
        with pytest.raises(Exception, match="500"):
            await client.call_tool("echo")
    session = read_recorded(tmp_path / "f.jsonl")
    unanswered = of_kind(session, UnansweredEntry)[-1]
    assert "HTTP 500" in unanswered.reason
    body = next(entry for entry in of_kind(session, MessageEntry) if entry.text is not None)
    assert (body.text, body.request) == ("<p>an error</p>", unanswered.request)


async def test_a_message_that_is_too_long_is_recorded_as_skipped(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('x' * 3_000_000, flush=True); input()")
    command, limits = Command((sys.executable, str(program))), Limits(line_bytes=1 << 20)
    with pytest.raises(ConnectionLost):
        await Client(command, limits=limits, record=tmp_path / "f.jsonl").connect()
    skipped = of_kind(read_recorded(tmp_path / "f.jsonl"), SkippedEntry)
    assert skipped[0].direction == "received"
    assert skipped[0].size > 1 << 20


async def test_a_client_that_does_not_record_is_not_observed() -> None:
    with served_over_http(shop()) as url:
        async with Client(url) as client:
            connection = client._connection
            transport: Any = connection._connection.transport  # type: ignore[attr-defined,union-attr]
            assert isinstance(transport, StreamableTransport)
            assert is_observable(transport)
            assert transport.observer is None
            assert transport._fetcher._exchanges is None
            assert not transport._fetcher._session._trace_configs  # type: ignore[union-attr]


def test_a_client_that_does_not_record_loads_nothing() -> None:
    program = """
import asyncio, sys
from accord import Client, Server
async def main():
    async with Client(Server("shop")) as client:
        await client.ping()
asyncio.run(main())
assert not [name for name in sys.modules if "session_" in name and "accord.wire" in name or "recording" in name]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


async def test_several_clients_may_record_at_once(tmp_path: Path) -> None:
    async def visit(number: int) -> None:
        async with Client(shop(), record=tmp_path / f"{number}.jsonl") as client:
            await client.call_tool("price", {"item": f"bread {number}"})

    await asyncio.gather(*(visit(number) for number in range(3)))
    for number in range(3):
        text = (tmp_path / f"{number}.jsonl").read_text()
        assert [f"bread {other}" in text for other in range(3)] == [other == number for other in range(3)]


def test_entries_are_a_closed_set() -> None:
    assert {kind.__struct_config__.tag for kind in Entry.__args__} == {  # type: ignore[attr-defined]
        *("connected", "message", "skipped", "unanswered", "http", "stderr", "lost", "closed", "remark", "limit")
    }


async def test_a_connection_that_cannot_be_opened_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="no such file"):
        await Client(["/nowhere/server"], record=tmp_path / "f.jsonl").connect()
    entries = read_recorded(tmp_path / "f.jsonl").entries
    assert [type(entry) for entry in entries[:3]] == [ConnectedEntry, LostEntry, ClosedEntry]
    assert "no such file" in entries[1].reason  # type: ignore[union-attr]


def test_a_blocking_client_records(tmp_path: Path) -> None:
    with BlockingClient(shop(), record=tmp_path / "f.jsonl") as client:
        client.call_tool("price", {"item": "bread"})
    check = [entry for entry in of_kind(read_recorded(tmp_path / "f.jsonl"), MessageEntry) if b"bread" in entry.data]
    assert check
