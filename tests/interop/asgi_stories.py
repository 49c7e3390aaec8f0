"""What must work wherever accord's application is hosted, told by clients that know no more than HTTP."""

from __future__ import annotations

import asyncio

from tests.interop.hosting import Under
from tests.server.http.http_clients import META, Legacy, Modern, Stateful, encode, request, text
from tests.server.http.raw import BASIC, SECONDS, Answer, request_bytes


async def said(client: Modern | Stateful, tool: str, **arguments: object) -> str:
    """What a tool says."""
    return text(await (await client.call(tool, arguments)).result())


async def leave(answer: Answer) -> None:
    """Go away, and return when the connection is closed."""
    await answer.leave()
    await answer.end()


def calling(raw: Under, tool: str, name: str) -> bytes:
    """The bytes of a call, of 2026-07-28."""
    client = Modern(raw)
    params = {"name": tool, "arguments": {"name": name}, "_meta": client.meta(progressToken="p")}
    message = request("tools/call", params)
    return request_bytes("POST", raw.root + "/mcp", client.head(message), encode(message))


async def until_fate(raw: Under, name: str, fate: str) -> None:
    """Return once a call has come to this."""
    async with asyncio.timeout(SECONDS):
        while await said(Modern(raw), "fate", name=name) != fate:
            await asyncio.sleep(0.02)


async def one_exchange_each(raw: Under) -> None:
    """2026-07-28: a body of JSON, one that is large, and one that is streamed while the call runs."""
    client = Modern(raw)
    answer = await client.call("echo", {"text": "hi"})
    assert answer.headers["content-type"] == "application/json"
    assert text(await answer.json()) == "hi"
    assert len(await said(client, "large", size=3_000_000)) == 3_000_000
    held = await client.call("held", progressToken="p")
    assert held.headers["x-accel-buffering"] == "no"
    assert (await held.message())["params"]["progress"] == 1  # and the call has not ended: it waits for this
    await said(client, "go_on")
    assert text(await held.message()) == "went on"
    await held.end()
    assert held.whole


async def listening(raw: Under) -> None:
    """`subscriptions/listen`: acknowledged, then told of a change."""
    client = Modern(raw)
    stream = await client.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="mine")
    assert (await stream.message())["method"] == "notifications/subscriptions/acknowledged"
    await said(client, "grow")
    told = await stream.message()
    assert told["method"] == "notifications/tools/list_changed"
    assert told["params"]["_meta"][META + "subscriptionId"] == "mine"
    await leave(stream)


async def going_away_cancels(raw: Under, name: str) -> None:
    """2026-07-28: "Closing the SSE response stream MUST be treated by the server as cancellation"; a pending answer
    the same.
    """
    pending = await raw.bytes(calling(raw, "hang", name))
    await until_fate(raw, name, "hangs")
    await leave(pending)
    await until_fate(raw, name, "cancelled")


async def a_session(raw: Under) -> None:
    """2025-11-25: the handshake, a question, the GET stream, resumption, and the end."""
    client = await Stateful(raw).open()
    general = await client.listen()
    await said(client, "grow")
    assert (await general.message())["method"] == "notifications/tools/list_changed"
    asking = await client.call("ask", id=7)
    question = await asking.message()
    assert question["method"] == "elicitation/create"
    field = next(iter(question["params"]["requestedSchema"]["properties"]))
    assert await client.answer(question["id"], {"action": "accept", "content": {field: "Ann"}}) == 202
    assert text(await asking.result()) == "hello Ann"
    held = await client.call("held", id=8, progressToken="p")
    first = await held.event()
    while first.data is None:
        first = await held.event()
    await leave(held)  # no cancel: the call runs on
    await said(client, "go_on")
    assert first.id is not None
    assert text(await (await client.listen(first.id)).result()) == "went on"
    await leave(general)
    assert (await client.delete()).status == 200
    assert (await client.call("echo", {"text": "late"})).status == 404


async def one_stream_for_all(raw: Under) -> None:
    """2024-11-05: the address that a client is told is one that it can post to, wherever the application is."""
    client = await Legacy.connect(raw)
    assert client.address.startswith(f"{raw.root}/messages?session_id=")
    await client.open()
    assert text(await client.ask("tools/call", {"name": "echo", "arguments": {"text": "old"}})) == "old"
    await leave(client.stream)


async def strangers_stay_out(raw: Under) -> None:
    """`Host` and `Origin` are checked on every route."""
    for stranger in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
        for method, path in [
            ("POST", "/mcp"),
            ("GET", "/mcp"),
            ("GET", "/sse"),
            ("POST", "/messages"),
            ("GET", "/health"),
        ]:
            answer = await raw.send(method, path, {**BASIC, **stranger}, b"{}" if method == "POST" else b"")
            assert (path, answer.status) == (path, 403)
            assert b"evil.example" in await answer.body()
    assert (await raw.send("GET", "/health", BASIC)).status == 200


async def all_of_it(raw: Under) -> None:
    """One story after the other: a change that one makes is told to all who listen."""
    for story in (one_exchange_each, listening, a_session, one_stream_for_all, strangers_stay_out):
        await story(raw)
