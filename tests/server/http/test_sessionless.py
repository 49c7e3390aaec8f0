"""`HTTPOptions(stateless=True)`: 2025-03-26 to 2025-11-25 without sessions, each POST alone."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any

import pytest

from accord import Client, Context, Elicit, HTTPOptions, Server
from accord.errors import AccordError, DeclarationError
from accord.server.auth.api_keys import APIKeys
from accord.store.memory import MemoryEvents

from tests.server.http.http_clients import LATEST, Modern, Stateful, both_ways, notification, quick, request, site, text
from tests.server.http.raw import BASIC, JSON, served
from tests.waiting import until

OLDER = ["2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = HTTPOptions(stateless=True)


class Desk(Server):
    def __init__(self, **options: Any) -> None:
        super().__init__("desk", "1", **{"limits": quick(), **options})
        self.gone = asyncio.Event()
        self.ended: list[str] = []

        @self.tool
        async def echo(text: str) -> str:
            return text

        @self.tool
        async def steps(ctx: Context, count: int) -> str:
            for step in range(count):
                ctx.report_progress(step + 1, count)
                ctx.info("not heard")
            return "done"

        @self.tool
        async def ask(ctx: Context) -> str:
            await ctx.elicit("which?", str)
            return "answered"

        @self.tool
        async def roots(ctx: Context) -> str:
            return str(await ctx.list_roots())

        @self.tool
        async def hide(ctx: Context) -> str:
            ctx.disable("echo")
            return "hidden"

        @self.tool
        async def slow() -> str:
            try:
                await self.gone.wait()
            except asyncio.CancelledError:
                self.ended.append("cancelled")
                raise
            self.ended.append("done")
            return "done"

        @self.resource("note://one")
        def one() -> str:
            return "one"


def plain(raw: Any, revision: str = "2025-06-18") -> Stateful:
    client = Stateful(raw, revision)
    client.headers["mcp-protocol-version"] = revision
    return client


@both_ways
@pytest.mark.parametrize("revision", OLDER)
async def test_initialize_is_answered_and_forgotten_and_each_request_is_served_alone(revision: str, way: str) -> None:
    async with site(Desk(), way, STATELESS) as here:
        client = plain(here.raw, revision)
        del client.headers["mcp-protocol-version"]
        answer = await client.post(client.hello())
        assert "mcp-session-id" not in answer.headers
        result = (await answer.json())["result"]
        assert result["protocolVersion"] == revision
        assert result["capabilities"] == {"tools": {}, "resources": {}}
        client = plain(here.raw, revision)
        assert await client.tell("notifications/initialized") == 202
        said = await client.call("echo", {"text": "hello"})
        assert "mcp-session-id" not in said.headers
        assert text(await said.json()) == "hello"
        assert (await (await client.ask("ping")).json())["result"] == {}
        assert len((await (await client.ask("tools/list")).json())["result"]["tools"]) == 6
        assert len(here.endpoint.sessions) == 0


async def test_without_a_header_a_request_is_one_of_2025_03_26_with_batches() -> None:
    async with site(Desk(), options=STATELESS) as here:
        client = Stateful(here.raw)
        batch = [client.calling("echo", {"text": "a"}, id=1), client.calling("echo", {"text": "b"}, id=2)]
        answers = await (await client.post([*batch, notification("notifications/initialized")])).json()
        assert sorted(map(text, answers)) == ["a", "b"]
        batch = [client.calling("steps", {"count": 1}, id=3, progressToken=1), request("resources/subscribe", {}, 4)]
        stream = await client.post(batch)
        assert (await stream.message())["method"] == "notifications/progress"
        refused, done = sorted(await stream.message(), key=lambda each: "result" in each)
        assert (refused["error"]["code"], text(done)) == (-32601, "done")
        assert (await client.post([notification("notifications/initialized")])).status == 202
        assert (await plain(here.raw).post(batch)).status == 400


async def test_progress_is_sent_on_the_stream_of_its_post_and_nothing_is_logged() -> None:
    async with site(Desk(), options=STATELESS) as here:
        stream = await plain(here.raw, "2025-11-25").call("steps", {"count": 2}, progressToken="p")
        methods = [(await stream.message()).get("method", "answer") for _ in range(3)]
        assert methods == ["notifications/progress", "notifications/progress", "answer"]


async def test_a_session_that_a_client_still_names_is_not_looked_at() -> None:
    async with site(Desk(), options=STATELESS) as here:
        client = plain(here.raw).join("of-before")
        assert text(await (await client.call("echo", {"text": "x"})).json()) == "x"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/subscribe", {"uri": "note://one"}),
        ("resources/unsubscribe", {"uri": "note://one"}),
        ("logging/setLevel", {"level": "info"}),
    ],
)
async def test_requests_that_change_a_session_are_refused_with_the_name_of_the_option(
    method: str, params: JSON
) -> None:
    async with site(Desk(), options=STATELESS) as here:
        answer = await plain(here.raw).ask(method, params)
        error = (await answer.json())["error"]
        assert (answer.status, error["code"]) == (200, -32601)
        assert "HTTPOptions(stateless=True)" in error["message"]


@pytest.mark.parametrize("tool", ["ask", "roots", "hide"])
async def test_handlers_that_need_a_session_fail_with_the_name_of_the_option(tool: str) -> None:
    async with site(Desk(), options=STATELESS) as here:
        said = await (await plain(here.raw).call(tool)).json()
        assert said["result"]["isError"]
        assert "HTTPOptions(stateless=True)" in text(said)


async def test_a_declared_question_fails_with_the_name_of_the_option() -> None:
    server = Desk()

    @server.tool
    def order(size: Annotated[str, Elicit("Which size?")]) -> str:
        return str(size)

    async with site(server, options=STATELESS) as here:
        assert "HTTPOptions(stateless=True)" in text(await (await plain(here.raw).call("order")).json())


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_get_and_delete_are_405_with_the_name_of_the_option(method: str) -> None:
    async with site(Desk(), options=STATELESS) as here:
        answer = await plain(here.raw).join("x").send(method)
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert "HTTPOptions(stateless=True)" in (await answer.json())["error"]["message"]


async def test_http_and_sse_is_refused_with_the_name_of_the_option() -> None:
    async with site(Desk(), options=STATELESS) as here:
        for method, path in (("GET", "/sse"), ("POST", "/messages?session_id=x")):
            answer = await here.raw.send(method, path, BASIC, b"{}")
            assert answer.status == 404
            assert "HTTPOptions(stateless=True)" in (await answer.json())["error"]["message"]


async def test_an_answer_to_an_unknown_question_is_400() -> None:
    async with site(Desk(), options=STATELESS) as here:
        answer = await plain(here.raw).post({"jsonrpc": "2.0", "id": 4, "result": {}})
        assert answer.status == 400
        assert (await answer.json())["id"] == 4


@pytest.mark.parametrize(
    ("header", "named", "code"),
    [(None, LATEST, -32020), ("2025-06-18", LATEST, -32020), ("1999-01-01", None, -32022)],
)
async def test_headers_are_checked_as_with_sessions(header: str | None, named: str | None, code: int) -> None:
    async with site(Desk(), options=STATELESS) as here:
        meta = {} if named is None else {"io.modelcontextprotocol/protocolVersion": named}
        answer = await plain(here.raw).post(request("tools/list", {"_meta": meta}), mcp_protocol_version=header)
        assert (answer.status, (await answer.json())["error"]["code"]) == (400, code)


async def test_a_client_that_goes_away_cancels_nothing() -> None:
    server = Desk()
    async with site(server, "socket", STATELESS) as here:
        call = await plain(here.raw).begin("POST", json.dumps(plain(here.raw).calling("slow")).encode())
        await until(here.busy)
        await call.leave()
        server.gone.set()
        await until(lambda: server.ended)
        assert server.ended == ["done"]


async def test_2026_07_28_is_served_as_ever() -> None:
    async with site(Desk(), options=STATELESS) as here:
        client = Modern(here.raw, {"elicitation": {}})
        assert (await (await client.call("ask")).json())["result"]["resultType"] == "input_required"
        listening = await client.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=7)
        assert (await listening.message())["params"]["notifications"] == {"toolsListChanged": True}
        await listening.leave()


async def test_the_principal_is_known_as_ever() -> None:
    async with site(Desk(auth=APIKeys({"k-ann": "ann"})), options=STATELESS) as here:
        assert (await plain(here.raw).call("echo", {"text": "x"})).status == 401


def test_a_store_of_sessions_and_no_sessions_exclude_each_other() -> None:
    with pytest.raises(DeclarationError, match="stateless"):
        HTTPOptions(stateless=True, events=MemoryEvents())


@pytest.mark.parametrize("revision", [*OLDER, LATEST])
async def test_our_client_works_with_it_and_gets_errors_for_what_does_not(revision: str) -> None:
    async with served(Desk().asgi(STATELESS)) as socket:
        url = f"http://127.0.0.1:{socket.port}/mcp"
        async with (
            asyncio.timeout(100),
            Client(url, revisions=[revision], elicitation=lambda _: {"value": "x"}) as client,
        ):
            assert client.revision == revision
            assert (await client.call_tool("echo", {"text": "x"})).text == "x"
            asked = await client.call_tool("ask")
            assert ("HTTPOptions" in asked.text) == (revision != LATEST)
            if revision != LATEST:
                with pytest.raises(AccordError):
                    await client.set_log_level("info")


# --- two processes behind a load balancer ------------------------------------------------------------------------

PROGRAM = """
import os
from accord import HTTPOptions, Server
server = Server("one-of-two")

@server.tool
def pid() -> int:
    return os.getpid()

server.run(http="127.0.0.1:0", options=HTTPOptions(stateless=True))
"""


@contextmanager
def worker() -> Iterator[str]:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            yield line.partition(" at ")[2].partition(";")[0]
        finally:
            process.terminate()


def post(url: str, message: Any, **headers: str) -> Any:
    head = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    asked = urllib.request.Request(url, json.dumps(message).encode(), head)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def test_two_processes_share_every_client_between_them() -> None:
    with ExitStack() as stack:
        workers = itertools.cycle([stack.enter_context(worker()) for _ in range(2)])
        pids = set()
        for _ in range(4):
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            version = post(next(workers), request("initialize", hello))["result"]["protocolVersion"]
            named = {"mcp-protocol-version": version}
            post(next(workers), notification("notifications/initialized"), **named)
            for _ in range(3):
                said = post(next(workers), request("tools/call", {"name": "pid", "arguments": {}}), **named)
                pids.add(text(said))
        assert len(pids) == 2
