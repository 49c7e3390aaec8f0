"""Rows of `HTTPLimits`."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import AsyncExitStack
from typing import Any

from accord.server.http.serving.asgi_server import budget_of
from accord.wire.http1.connection import HTTPConnection

from tests.bounds.server_rows import MOST, completing, proposing, shop
from tests.bounds.table import Outcome, drops, refuses
from tests.bounds.wires import ANN, JSON, KEYS, outcome
from tests.clock import Clock
from tests.limits import limits_of
from tests.server.http.http_clients import Here, Legacy, Modern, Stateful, encode, site
from tests.server.http.raw import Answer, Raw
from tests.server.http.test_connections import listening
from tests.waiting import until

FORMS = ("modern", "http", "sse")


async def said(message: Any, answer: Answer) -> Outcome:
    """Return what an HTTP response says; one of 4xx or 5xx refuses the request."""
    found = await answer.start()
    if found.status == 202:
        return Outcome()
    if found.streams and found.status == 200:
        await found.leave()
        return Outcome()
    body = await found.body()
    return Outcome("" if found.status < 400 else body.decode(), len(encode(message)), len(body))


async def client_of(over: str, raw: Raw, **headers: str) -> Any:
    if over == "modern":
        return Modern(raw, **headers)
    if over == "http":
        return await Stateful(raw, "2025-11-25", {}, **headers).open()
    return await (await Legacy.connect(raw, **headers)).open()


def echo_of(client: Any, size: int) -> bytes:
    """Return a call of so many bytes."""
    call = {"name": "echo", "arguments": {"text": ""}}
    message: JSON = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    if isinstance(client, Modern):
        message = client.calling("echo", {"text": ""})
    message["params"]["arguments"]["text"] = "x" * (size - len(encode(message)))
    return encode(message)


async def posted(client: Any, body: bytes) -> Outcome:
    headers = client.head(json.loads(body)) if isinstance(client, Modern) else client.headers
    path = client.address if isinstance(client, Legacy) else "/mcp"
    found = await said(body, await client.raw.begin("POST", path, headers, body))
    if isinstance(client, Legacy):
        await client.stream.leave()
    return found


@refuses("HTTPLimits.body_bytes", *FORMS)
async def body(over: str, extra: int) -> Outcome:
    async with site(shop(http_body_bytes=5_000)) as here:
        client = await client_of(over, here.raw)
        return await posted(client, echo_of(client, 5_000 + extra))


@refuses("HTTPLimits.body_nodes", "modern", "http")
async def structure_of_a_body(over: str, extra: int) -> Outcome:
    nodes = 30_000
    async with site(shop(http_body_nodes=nodes)) as here:
        client: Any = await client_of(over, here.raw)
        empty = json.dumps(client.calling("echo", {"text": []}))
        value = [0] * (2 * nodes + 1 - empty.count(",") + extra)  # commas are counted
        message = client.calling("echo", {"text": value})
        answer = await (await client.post(message)).json()
        found = outcome(message, answer)
        return found if "body_nodes" in found.refused else Outcome()  # the tool does not take a list


@refuses("HTTPLimits.body_seconds")
async def time_of_a_body(over: str, extra: int) -> Outcome:
    clock, server = Clock(), shop(http_body_seconds=30)
    async with site(server) as here:
        clock.move(0)
        sent: list[Any] = []
        rest: asyncio.Queue[Any] = asyncio.Queue()
        message = Modern(here.raw).calling("echo")
        body = encode(message)
        rest.put_nowait({"type": "http.request", "body": body[:10], "more_body": True})
        headers = [(name.encode(), value.encode()) for name, value in Modern(here.raw).head(message).items()]
        scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "path": "/mcp"}
        scope |= {"raw_path": b"/mcp", "query_string": b"", "headers": headers, "client": ("127.0.0.1", 1)}

        async def send(part: Any) -> None:
            sent.append(part)

        serving = asyncio.ensure_future(here.app(scope, rest.get, send))  # type: ignore[arg-type]
        await clock.jump(0)
        await clock.jump(29)
        assert not sent
        if extra:
            await clock.jump(2)
        rest.put_nowait({"type": "http.request", "body": body[10:], "more_body": False})
        await serving
    answer = b"".join(part.get("body", b"") for part in sent)
    return Outcome("" if sent[0]["status"] == 200 else answer.decode(), len(body), len(answer))


def head_of(size: int, fields: int) -> bytes:
    lines = [b"GET / HTTP/1.1", b"host: localhost", *(b"x-f%d: 1" % number for number in range(fields - 2)), b"x: "]
    head = b"\r\n".join([*lines, b"", b""])
    return head.replace(b"x: ", b"x: " + b"x" * (size - len(head))) if size else head


@refuses("HTTPLimits.head_bytes")
async def head(over: str, extra: int) -> Outcome:
    return received(head_of(2_000 + extra, 5), http_head_bytes=2_000)


@refuses("HTTPLimits.head_fields")
async def fields_of_a_head(over: str, extra: int) -> Outcome:
    return received(head_of(0, 20 + extra), http_head_fields=20)


def received(data: bytes, **limits: Any) -> Outcome:
    """Return how the HTTP/1.1 connection of a server takes these bytes."""
    connection = HTTPConnection(budget_of(limits_of(**limits)))
    events = connection.receive(data)
    refused = [str(getattr(event, "text", "")) for event in events if hasattr(event, "status")]
    return Outcome("".join(refused), len(data), len("".join(refused)))


@refuses("HTTPLimits.streams", "modern", "http")
async def streams(over: str, extra: int) -> Outcome:
    async with site(shop(http_streams=2, auth=KEYS)) as here, AsyncExitStack() as stack:
        client = await client_of(over, here.raw, authorization=ANN)
        for number in range(1 + extra):
            stream = await opened(client, number)
            assert stream.status == 200
            stack.push_async_callback(stream.leave)
        last = await opened(client, 9)
        if over == "http":
            found = await said("x" * 600, last)
            await (await client.delete()).end()
            return found
        return await said("x" * 600, last) if last.streams else outcome("", await last.json())


async def opened(client: Any, id: int) -> Answer:
    if isinstance(client, Stateful):
        call = client.calling("waits", id=id, progressToken=id)
        return await client.post(call) if id < 9 else await client.listen()
    wanted = {"notifications": {"toolsListChanged": True}}
    stream: Answer = await client.ask("subscriptions/listen", wanted, id=id)
    if stream.streams:
        await stream.message()
    return stream


async def used_sessions(here: Here, count: int, **headers: str) -> Outcome:
    """Open sessions that are all in use; return what the last one is told."""
    opened: list[Stateful] = []
    for _ in range(count - 1):
        client = await Stateful(here.raw, "2025-11-25", {}, **headers).open()
        await client.begin("POST", encode(client.calling("waits")))
        opened.append(client)
    await until(lambda: sum(map(len, here.busy())) == count - 1)
    last = Stateful(here.raw, "2025-11-25", {}, **headers)
    found = await said("x" * 300, await last.post(last.hello()))
    for each in opened:
        await (await each.delete()).end()
    return found


@refuses("HTTPLimits.sessions")
async def sessions(over: str, extra: int) -> Outcome:
    async with site(shop(http_sessions=MOST)) as here:
        return await used_sessions(here, MOST + extra)


@refuses("HTTPLimits.sessions_per_principal")
async def sessions_of_a_principal(over: str, extra: int) -> Outcome:
    async with site(shop(http_sessions_per_principal=MOST, auth=KEYS)) as here:
        return await used_sessions(here, MOST + extra, authorization=ANN)


@refuses("HTTPLimits.sessions_per_address")
async def sessions_of_an_address(over: str, extra: int) -> Outcome:
    async with site(shop(http_sessions_per_address=MOST)) as here:
        return await used_sessions(here, MOST + extra)


@refuses("HTTPLimits.requests", "modern")
@refuses("HTTPLimits.requests_per_address", "http")
async def requests(over: str, extra: int) -> Outcome:
    limit = {"http_requests": MOST} if over == "modern" else {"http_requests_per_address": MOST}
    auth, headers = (None, {}) if over == "modern" else (KEYS, {"authorization": ANN})
    async with site(shop(auth=auth, **limit)) as here, AsyncExitStack() as stack:
        client = await client_of(over, here.raw, **headers)
        for number in range(MOST - 1 + extra):
            call = client.calling("waits", id=number)
            begun = await (client.begin(call) if over == "modern" else client.begin("POST", encode(call)))
            stack.push_async_callback(begun.leave)
        await until(lambda: sum(map(len, here.busy())) == MOST - 1 + extra)
        call = client.calling("echo", id=99)
        found = outcome(call, await (await client.post(call)).json())
        if over == "http":
            await (await client.delete()).end()
        return found


@refuses("HTTPLimits.completions_per_second", "modern")
async def completions(over: str, extra: int) -> Outcome:
    async with site(proposing(http_completions_per_second=1e-6)) as here:
        client = Modern(here.raw)
        for _ in range(1 + extra):
            message = client.request("completion/complete", completing())
            found = outcome(message, await (await client.post(message)).json())
        return found


@refuses("HTTPLimits.tool_seconds", "modern")
async def time_of_a_tool(over: str, extra: int) -> Outcome:
    clock = Clock()
    async with site(shop(http_tool_seconds=60, http_patience_seconds=1_000)) as here:
        clock.move(0)
        client = Modern(here.raw)
        call = client.calling("waits")
        begun = await client.begin(call)
        await until(here.busy)
        await clock.jump(50)
        assert here.busy()
        if extra:
            await clock.jump(11)
            return outcome(call, await (await begun.start()).result())
        await begun.leave()
        return Outcome()


@refuses("HTTPLimits.auth_seconds")
async def time_of_authentication(over: str, extra: int) -> Outcome:
    clock, answered, caught = Clock(), asyncio.Event(), Caught()

    class Slow:
        async def authenticate(self, request: Any) -> Any:
            await answered.wait()
            return await KEYS.authenticate(request)

    async with caught, site(shop(auth=Slow(), http_auth_seconds=30)) as here:
        clock.move(0)
        client = Modern(here.raw, authorization=ANN)
        call = client.calling("echo")
        begun = await client.begin(call)
        await clock.jump(0)
        await clock.jump(29)
        if extra:
            await clock.jump(2)
        answered.set()
        found = await said(call, begun)
    # The client does not learn why; the log does.
    return found._replace(refused=found.refused and caught.text)


class Caught(logging.Handler):
    """What accord logs in a block."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage()

    async def __aenter__(self) -> None:
        logging.getLogger("accord").addHandler(self)

    async def __aexit__(self, *exc: object) -> None:
        logging.getLogger("accord").removeHandler(self)


async def age_of_a_session(seconds: float, extra: int, *, used: bool, busy: bool = False, **limits: Any) -> Outcome:
    """Return how a session is answered just before its time is over, or just after."""
    clock = Clock()
    async with site(shop(**limits)) as here, AsyncExitStack() as stack:
        clock.move(0)
        client = Stateful(here.raw, "2025-11-25", {})
        await (await client.initialize()).end()
        if used:
            assert (await client.ask("ping")).status == 200
        if busy:
            stack.push_async_callback((await client.listen()).leave)
        await clock.jump(seconds + extra)
        if extra:
            await until(lambda: not len(here.endpoint.sessions))
        for _ in range(50):
            await asyncio.sleep(0)
        return await said("x" * 300, await client.ask("ping"))


@drops("HTTPLimits.session_idle_seconds")
async def idle_session(over: str, extra: int) -> Outcome:
    return await age_of_a_session(600, 40 * extra, used=True, http_session_idle_seconds=620)


@drops("HTTPLimits.session_unused_seconds")
async def unused_session(over: str, extra: int) -> Outcome:
    return await age_of_a_session(50, 40 * extra, used=False, http_session_unused_seconds=60)


@drops("HTTPLimits.session_seconds")
async def old_session(over: str, extra: int) -> Outcome:
    return await age_of_a_session(600, 40 * extra, used=True, busy=True, http_session_seconds=620)


@refuses("HTTPLimits.connections")
@refuses("HTTPLimits.connections_per_address")
async def connections(over: str, extra: int) -> Outcome:
    async def waiting(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    async with listening(waiting, http_connections=MOST, http_connections_per_address=MOST) as (port, served):
        first = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST - 1 + extra)]
        await until(lambda: len(served.connections) == MOST - 1 + extra)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if extra:
            async with asyncio.timeout(100):
                answer = await reader.read()
        else:
            await until(lambda: len(served.connections) == MOST)
            answer = b""
        for each in (*(writer for _, writer in first), writer):
            each.close()
    return Outcome(answer.decode())
