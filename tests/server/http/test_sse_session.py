"""2024-11-05 over HTTP+SSE: one stream, and an address to post to."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from accord import Context, Server
from accord.server.auth.api_keys import APIKeys

from tests.server.http.http_clients import Legacy, both_ways, encode, notification, quick, request, site, text, until
from tests.server.http.raw import BASIC, Ended

KEYS = {"k-ann": "ann", "k-bob": "bob"}


class Desk(Server):
    """A server with a tool that waits."""

    def __init__(self, **options: Any) -> None:
        super().__init__("desk", "1", **{"limits": quick(), **options})
        self.release = asyncio.Event()
        self.ends: list[str] = []

        @self.tool
        async def echo(text: str) -> str:
            return text

        @self.tool
        async def steps(ctx: Context, count: int) -> str:
            for step in range(count):
                ctx.report_progress(step + 1, count)
            return "done"

        @self.tool
        async def waits() -> str:
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.ends.append("cancelled")
                raise
            self.ends.append("done")
            return "done"

        @self.tool
        async def roots(ctx: Context) -> str:
            return str((await ctx.list_roots())[0].uri)


def calling(tool: str, arguments: Any = None, id: Any = 1, **meta: Any) -> Any:
    return request("tools/call", {"name": tool, "arguments": arguments or {}, "_meta": meta}, id)


@both_ways
async def test_the_stream_begins_with_the_address_and_carries_every_answer(way: str) -> None:
    async with site(Desk(), way) as here:
        client = await Legacy.connect(here.raw)
        assert client.stream.headers["content-type"] == "text/event-stream"
        assert re.fullmatch(r"/messages\?session_id=[\w-]{55}", client.address)
        said = await client.ask(
            "initialize",
            {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
        )
        assert said["result"]["protocolVersion"] == "2024-11-05"
        posted = await client.post(notification("notifications/initialized"))
        assert (posted.status, await posted.body()) == (202, b"")
        assert text(await client.ask("tools/call", {"name": "echo", "arguments": {"text": "hello"}})) == "hello"
        await client.post(calling("steps", {"count": 2}, id=2, progressToken=2))
        kinds = [(await client.stream.message()).get("method", "answer") for _ in range(3)]
        assert kinds == ["notifications/progress"] * 2 + ["answer"]
        await client.stream.leave()


async def test_a_question_is_sent_on_the_stream_and_answered_by_a_post() -> None:
    async with site(Desk(), "socket") as here:
        client = await Legacy.connect(here.raw)
        hello = {
            "protocolVersion": "2024-11-05",
            "capabilities": {"roots": {}},
            "clientInfo": {"name": "r", "version": "1"},
        }
        await client.ask("initialize", hello)
        await client.post(notification("notifications/initialized"))
        question = await client.ask("tools/call", {"name": "roots", "arguments": {}}, id=2)
        assert question["method"] == "roots/list"
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///mine"}]}}
        assert (await client.post(answer)).status == 202
        assert text(await client.stream.message()) == "file:///mine"
        await client.stream.leave()


async def test_a_slow_call_holds_nothing_up_and_can_be_cancelled() -> None:
    server = Desk()
    async with site(server) as here:
        client = await (await Legacy.connect(here.raw)).open()
        await client.post(calling("waits", id=5))
        assert text(await client.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}}, id=6)) == "x"
        await client.post(notification("notifications/cancelled", {"requestId": 5}))
        await until(lambda: server.ends == ["cancelled"])
        assert (await client.ask("ping", id=7)) == {"jsonrpc": "2.0", "id": 7, "result": {}}
        await client.stream.leave()


@pytest.mark.parametrize("body", [b"", b"not JSON", b"[]", b"{}", b"7", b'{"jsonrpc":"2.0","id":{},"method":"ping"}'])
async def test_what_is_no_request_is_an_error_on_the_stream_and_the_next_one_is_served(body: bytes) -> None:
    async with site(Desk()) as here:
        client = await (await Legacy.connect(here.raw)).open()
        assert (await client.post(body)).status == 202
        assert "error" in await client.stream.message()
        assert (await client.ask("ping", id=7)) == {"jsonrpc": "2.0", "id": 7, "result": {}}
        await client.stream.leave()


@both_ways
async def test_going_away_ends_the_session_and_what_it_runs(way: str) -> None:
    server = Desk()
    async with site(server, way) as here:
        client = await (await Legacy.connect(here.raw)).open()
        await client.post(calling("waits"))
        await until(here.busy)
        await client.stream.leave()
        await until(lambda: server.ends == ["cancelled"])
        assert (await client.post(request("ping"))).status == 404


async def test_the_address_of_another_is_the_same_404_as_one_that_never_was() -> None:
    async with site(Desk(auth=APIKeys(KEYS))) as here:
        anns = await (await Legacy.connect(here.raw, authorization="Bearer k-ann")).open()
        answers = []
        for address in (anns.address, "/messages?session_id=" + "x" * 43, "/messages?session_id=", "/messages"):
            headers = {**BASIC, "authorization": "Bearer k-bob"}
            answer = await here.raw.send("POST", address, headers, b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
            answers.append((answer.status, answer.headers, await answer.body()))
        assert answers[0][0] == 404
        assert answers == [answers[0]] * 4
        assert (await here.raw.send("POST", anns.address, BASIC, b"{}")).status == 401
        assert (await anns.ask("ping", id=3))["result"] == {}
        await anns.stream.leave()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("POST", "/sse", "GET"), ("DELETE", "/sse", "GET"), ("GET", "/messages", "POST"), ("DELETE", "/messages", "POST")],
)
async def test_other_methods_are_405(method: str, path: str, allowed: str) -> None:
    async with site(Desk()) as here:
        answer = await here.raw.send(method, path, BASIC)
        assert (answer.status, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize("query", ["", "?", "?session_id", "?session_id=", "?" + "a=1&" * 21, "?session_id=%ff%00"])
async def test_an_address_that_names_no_session_is_404(query: str) -> None:
    async with site(Desk()) as here:
        assert (await here.raw.send("POST", "/messages" + query, BASIC, b"{}")).status == 404


async def test_a_body_of_another_type_is_415() -> None:
    async with site(Desk()) as here:
        client = await (await Legacy.connect(here.raw)).open()
        client.headers["content-encoding"] = "gzip"
        answer = await client.post(request("ping"))
        assert (answer.status, answer.headers["accept-encoding"]) == (415, "identity")
        assert b"Content-Encoding is 'gzip'" in await answer.body()
        client.headers |= {"content-encoding": "identity", "content-type": "text/plain"}
        assert (await client.post(request("ping"))).status == 415
        await client.stream.leave()


async def test_too_many_are_503_with_a_time_to_come_back() -> None:
    async with site(Desk(limits=quick(http_sessions=2))) as here:
        clients = [await Legacy.connect(here.raw) for _ in range(2)]
        answer = await here.raw.send("GET", "/sse", BASIC)
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) > 0
        await clients[0].stream.leave()
        await until(lambda: len(here.endpoint.sse) == 1)
        await (await (await Legacy.connect(here.raw)).open()).stream.leave()
        await clients[1].stream.leave()


async def test_an_open_stream_is_not_idle_but_ends_when_it_is_too_old() -> None:
    server = Desk()
    async with site(server) as here:
        client = await (await Legacy.connect(here.raw)).open()
        (session,) = here.endpoint.sse
        session.created_at -= 1801
        session.last_used_at -= 1801
        await here.endpoint.sse.sweep()
        assert (await client.ask("ping"))["result"] == {}
        session.created_at -= 86_400
        await here.endpoint.sse.sweep()
        with pytest.raises(Ended):
            await client.stream.event()
        assert client.stream.whole


async def test_changes_are_notified_on_the_stream() -> None:
    server = Desk()
    async with site(server) as here:
        client = await (await Legacy.connect(here.raw)).open()
        server.tool(name="new")(lambda: "x")
        assert (await client.stream.message())["method"] == "notifications/tools/list_changed"
        await client.stream.leave()


async def test_a_quiet_stream_says_now_and_then_that_it_lives() -> None:
    async with site(Desk(limits=quick(http_keep_alive_seconds=0.01))) as here:
        client = await (await Legacy.connect(here.raw)).open()
        await until(lambda: b":\n\n" in client.stream._buffer)
        await client.stream.leave()


async def test_a_message_whose_session_ends_while_it_is_read_is_404_and_runs_nothing() -> None:
    server, ran = Server("desk", "1", limits=quick()), []

    @server.tool
    async def acts() -> str:
        ran.append(True)
        return ""

    async with site(server) as here:
        client = await (await Legacy.connect(here.raw)).open()
        body, status = asyncio.Event(), []

        async def receive() -> dict[str, Any]:
            await body.wait()
            return {"type": "http.request", "body": encode(request("tools/call", {"name": "acts", "arguments": {}}))}

        async def send(message: Any) -> None:
            status.append(message.get("status"))

        path, _, query = client.address.partition("?")
        headers = [(name.encode(), value.encode()) for name, value in client.headers.items()]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": query.encode(), "headers": headers}
        posting = asyncio.create_task(here.app(scope, receive, send))
        await asyncio.sleep(0)
        await client.stream.leave()
        await until(lambda: not len(here.endpoint.sse))
        body.set()
        await posting
        assert status[0] == 404
        assert not ran


# --- 2026-07-28, from behind a bridge ----------------------------------------------------------------------------

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
}


def modern(method: str, params: Any = None, id: Any = 1) -> Any:
    return request(method, {**(params or {}), "_meta": META}, id)


async def test_a_request_that_names_2026_07_28_in_its_meta_is_served_without_a_header_or_a_handshake() -> None:
    async with site(Desk()) as here:
        client = await Legacy.connect(here.raw)
        discovered = await client.ask("server/discover", {"_meta": META})
        assert discovered["result"]["supportedVersions"] == ["2026-07-28"]
        said = await client.ask("tools/call", {"name": "echo", "arguments": {"text": "hi"}, "_meta": META}, id=2)
        assert (text(said), said["result"]["resultType"]) == ("hi", "complete")
        asked = await client.ask("tools/call", {"name": "roots", "arguments": {}, "_meta": META}, id=3)
        assert asked["result"]["resultType"] == "input_required"
        await client.stream.leave()


async def test_both_eras_are_served_on_one_stream() -> None:
    async with site(Desk()) as here:
        client = await (await Legacy.connect(here.raw)).open()
        said = await client.ask("tools/list", {"_meta": META}, id=2)
        assert said["result"]["resultType"] == "complete"
        assert "resultType" not in (await client.ask("tools/list", id=3))["result"]
        await client.stream.leave()


async def test_a_subscription_of_2026_07_28_receives_changes_on_the_stream_until_the_client_cancels_it() -> None:
    server = Desk()
    async with site(server) as here:
        client = await Legacy.connect(here.raw)
        await client.post(modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=7))
        acknowledged = await client.stream.message()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        server.tool(name="new")(lambda: "new")
        changed = await client.stream.message()
        assert changed["method"] == "notifications/tools/list_changed"
        assert changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 7
        await client.post(notification("notifications/cancelled", {"requestId": 7}))
        await until(lambda: not here.busy())
        await client.stream.leave()


async def test_when_the_server_ends_a_subscription_of_2026_07_28_ends_with_its_result_and_then_the_stream() -> None:
    async with site(Desk()) as here:
        client = await Legacy.connect(here.raw)
        await client.post(modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=7))
        await client.stream.message()
        assert await here.app.drain(5)
        assert (await client.stream.message())["method"] == "notifications/cancelled"
        assert (await client.stream.message())["id"] == 7
        with pytest.raises(Ended):
            await client.stream.message()
