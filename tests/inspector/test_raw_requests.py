"""Raw requests: any bytes, sent unchanged, and what comes back as rows of the traffic."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accord import Server
from accord.check.wires.child import ChildWire
from accord.client.target import Command, parse
from accord.inspector import raw_requests
from accord.inspector.commands import InspectorError
from accord.inspector.raw_checks import message_problems
from accord.messages.revision import HANDSHAKE, REVISIONS

from tests.inspector.sender import Page, PlayedServer, page

EVERYTHING = "examples/everything.py"
PING = '{"jsonrpc": "2.0", "id": "raw-1", "method": "ping"}'
CALL = (
    '{"jsonrpc":"2.0","id":"raw-1","method":"tools/call","params":{"name":"test_simple_text","arguments":{},"_meta":'
    '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
)


async def rows(each: Page, filter: str, ready: Callable[[list[str]], bool]) -> list[str]:
    """The contents of the rows that match, in order, as soon as they are `ready`."""
    async with asyncio.timeout(100):
        while True:
            await each.workspace.recording.written()
            found = (await each.send("traffic/rows", filter=filter, count=500))["rows"]
            texts = [(await each.send("traffic/entry", row=row["row"]))["raw"] for row in found]
            if ready(texts):
                return texts
            await asyncio.sleep(0.02)


async def opened(each: Page, **params: Any) -> Any:
    return await each.send("raw/open", server="one", **params)


async def received(each: Page, connection: Any, part: str) -> list[str]:
    """The rows of a raw connection from the server, as soon as one has this text."""
    return await rows(
        each,
        f"connection:{connection['number']} direction:received",
        lambda texts: any(part in text for text in texts),
    )


# --- a connection of its own ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_message_reaches_a_process_of_its_own_after_a_handshake(revision: str) -> None:
    async with page(EVERYTHING) as each:
        own = await opened(each, handshake=revision)
        await received(each, own, "accord-inspector-initialize")
        sent = await each.send("raw/send", server="one", connection=own["id"], text=PING)
        assert sent["connection"] == own["number"]
        assert '"result":{}' in (await received(each, own, "raw-1"))[-1]
        await each.send("raw/close", connection=own["id"])
        (view,) = (await each.send("raw/list", server="one"))["connections"]
        assert (view["isOpen"], view["reason"]) == (False, "closed here")


@pytest.mark.parametrize(
    "data",
    [b"not json", b"\xff\xfe\x00", b'{"jsonrpc":"2.0","id":1e400}', b"[]", b'{"jsonrpc":"2.0", "id":1,\t"method":1.0}'],
)
async def test_bytes_are_sent_unchanged(data: bytes) -> None:
    got: list[bytes] = []
    done = asyncio.Event()

    class Listener:
        async def serve(self, transport: Any, **options: Any) -> None:
            got.extend(await transport.receive())
            done.set()
            await asyncio.Event().wait()

    async with page() as each:
        each.workspace.add("one", Listener(), "program")
        own = await opened(each)
        await each.send("raw/send", server="one", connection=own["id"], base64=base64.b64encode(data).decode())
        async with asyncio.timeout(100):
            await done.wait()
        assert got == [data]


async def test_an_error_of_the_server_is_a_row() -> None:
    async with page(EVERYTHING) as each:
        own = await opened(each)
        await each.send("raw/send", server="one", connection=own["id"], text="{oops")
        assert "-32700" in (await received(each, own, "error"))[0]


async def test_a_server_that_dies_closes_its_raw_connection_only() -> None:
    async with page(EVERYTHING) as each:
        own = await opened(each)
        wire: Any = each.workspace.raw.get(own["id"])._wire
        wire.kill()
        async with asyncio.timeout(100):
            while (view := (await each.send("raw/list", server="one"))["connections"][0])["isOpen"]:
                await asyncio.sleep(0.02)
        assert "SIGKILL" in view["reason"]
        with pytest.raises(InspectorError, match="closed"):
            await each.send("raw/send", server="one", connection=own["id"], text=PING)
        assert (await each.workspace.server("one").client.call_tool("test_simple_text")).text


async def test_raw_connections_are_bounded_and_closed_ones_make_room() -> None:
    async with page(Server("many")) as each:
        all = [await opened(each) for _ in range(10)]
        with pytest.raises(InspectorError, match="10 raw connections"):
            await opened(each)
        await each.send("raw/close", connection=all[3]["id"])
        await opened(each)
        assert len((await each.send("raw/list", server="one"))["connections"]) == 10


async def test_a_flood_closes_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_requests, "MAX_RECEIVED", 1 << 20)
    server = PlayedServer("2025-11-25")
    async with page() as each:
        each.workspace.add("one", parse(server), "program")
        await opened(each)
        await asyncio.sleep(0)
        for number in range(2_000):
            server.raw.say({"method": "notifications/message", "params": {"level": "info", "data": "x" * number}})
        async with asyncio.timeout(100):
            while (await each.send("raw/list", server="one"))["connections"][0]["isOpen"]:
                await asyncio.sleep(0.02)
        assert "more than 1 MB" in (await each.send("raw/list", server="one"))["connections"][0]["reason"]


# --- the open session ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_message_in_the_open_session_of_a_process(revision: str) -> None:
    async with page(EVERYTHING, revision=revision) as each:
        text = PING if revision in HANDSHAKE else CALL
        sent = await each.send("raw/send", server="one", text=text)
        assert sent["connection"] == 0
        found = await rows(each, "direction:received", lambda texts: any("raw-1" in text for text in texts))
        assert '"result"' in found[-1]
        assert (await each.workspace.server("one").client.call_tool("test_simple_text")).text


@pytest.mark.parametrize(
    "text", ["not json", "[]", "{}", '{"id":null}', f"[{PING}]", PING.replace(",", ",\n"), '{"id":"a","method":"ping"}']
)
async def test_what_a_server_cannot_read_is_for_a_connection_of_its_own(text: str) -> None:
    """Its error would have no id, and the client would take it for the response to its own request."""
    async with page(EVERYTHING) as each:
        with pytest.raises(InspectorError, match="disturb the client") as caught:
            await each.send("raw/send", server="one", text=text)
        assert "connection of its own" in caught.value.cure


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":5,"result":{}}',
        '{"jsonrpc":"2.0","id":"a","method":"unknown","params":{"x":[]}}',
        '{"jsonrpc":"2.0","method":"notifications/unknown"}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
    ],
)
async def test_what_is_sent_in_the_open_session_does_not_end_it(text: str) -> None:
    async with page(EVERYTHING) as each:
        await each.send("raw/send", server="one", text=text)
        for _ in range(3):
            assert (await each.workspace.server("one").client.call_tool("test_simple_text")).text


@pytest.mark.parametrize("id", ["1", "7", "99999"])
async def test_an_id_of_the_client_is_refused_on_its_pipe(id: str) -> None:
    async with page(EVERYTHING) as each:
        with pytest.raises(InspectorError, match="uses the id") as caught:
            await each.send("raw/send", server="one", text=f'{{"jsonrpc":"2.0","id":{id},"method":"ping"}}')
        assert "raw-1" in caught.value.cure


# --- HTTP ----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    """Serve everything.py over HTTP in a process, and yield its URL."""
    wire = ChildWire(Command((sys.executable, "-P", "-m", "accord", "run", EVERYTHING, "--http", "127.0.0.1:0")))
    await wire.open()
    try:
        async with asyncio.timeout(100):
            while not (found := re.search(r"(http://127\.0\.0\.1:\d+/mcp)", wire.stderr)):
                await asyncio.sleep(0.05)
        yield found[1]
    finally:
        await wire.close()


@pytest.mark.parametrize("revision", [each for each in REVISIONS if each != "2024-11-05"])
async def test_a_post_in_the_open_session_has_its_headers(revision: str) -> None:
    async with served() as url, page(url, revision=revision) as each:
        text = PING if revision in HANDSHAKE else CALL
        headers = {"mcp-method": "tools/call", "mcp-name": "test_simple_text", "mcp-protocol-version": revision}
        sent = await each.send("raw/send", server="one", text=text, headers=headers)
        found = await received(each, {"number": sent["connection"]}, "raw-1")
        assert '"result"' in found[-1]
        numbered = PING.replace('"raw-1"', "1") if revision in HANDSHAKE else CALL.replace('"raw-1"', "1")
        await each.send("raw/send", server="one", text=numbered, headers=headers)
        await received(each, {"number": sent["connection"]}, '"id":1')
        assert (await each.workspace.server("one").client.call_tool("test_simple_text")).text


async def test_any_method_and_headers_over_http_of_its_own() -> None:
    async with served() as url, page(url) as each:
        own = await opened(each)
        headers = {"accept": "", "x-any": "1"}
        await each.send("raw/send", server="one", connection=own["id"], text=PING, headers=headers)
        await each.send("raw/send", server="one", connection=own["id"], method="PUT", text="x")
        ready = lambda texts: sum('"status"' in text for text in texts) == 2  # noqa: E731
        found = [json.loads(text) for text in await rows(each, f"connection:{own['number']} kind:http", ready)]
        posted = next(entry for entry in found if entry.get("method") == "POST")
        assert "accept" not in posted["headers"]
        assert posted["headers"]["x-any"] == "[redacted]"
        assert all(400 <= entry["status"] < 500 for entry in found if "status" in entry)


@pytest.mark.parametrize("headers", [{"a b": "1"}, {"a": "1\r\nb: 2"}, {"": "1"}, {"ä": "1"}])
async def test_headers_that_no_client_can_send_are_refused(headers: dict[str, str]) -> None:
    async with page(EVERYTHING) as each:
        with pytest.raises(InspectorError, match="cannot be sent"):
            await each.send("raw/send", server="one", text=PING, headers=headers)


# --- checking ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_text_is_compared_with_the_types_of_the_revision(revision: str) -> None:
    fine = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    async with page() as each:
        assert await each.send("raw/check", text=fine, revision=revision) == {"problems": []}
        wrong = fine.replace('"requestId":1', '"requestId":[]')
        (problem,) = (await each.send("raw/check", text=wrong, revision=revision))["problems"]
        assert "$.requestId" in problem


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', "jsonrpc"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/guess"}', "not a method"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', "no batches"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', "name"),
        (b"3", ""),
    ],
)
def test_what_is_wrong_is_named(raw: bytes, problem: str) -> None:
    assert any(problem in found for found in message_problems(raw, "2025-11-25"))


def test_a_batch_is_checked_message_by_message() -> None:
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"id":2}]'
    (problem,) = message_problems(batch, "2025-03-26")
    assert problem.startswith("message 2 of the batch")


async def test_a_played_server_hears_exactly_what_was_sent_in_the_session() -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        await each.send("raw/send", server="one", text='  {"jsonrpc" : "2.0","id":"a",  "method":"x"} ')
        assert await server.raw.transport.receive() == [b'  {"jsonrpc" : "2.0","id":"a",  "method":"x"} ']
