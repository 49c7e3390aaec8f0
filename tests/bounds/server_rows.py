"""Rows of `Limits` for a server."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

from accord import Context, Server
from accord.errors import AccordError
from accord.server.notify.subscription_index import _cost
from accord.types import Tool

from tests.bounds.table import Outcome, drops, refuses
from tests.bounds.wires import EVERYWHERE, JSON, KEYS, LINES, Wire, error_of, outcome, wire
from tests.clock import Clock
from tests.limits import limits_of
from tests.server.http.http_clients import Modern, site
from tests.server.raw import raw_peer

MOST = 5
HELLO: JSON = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


def shop(*, auth: Any = None, **limits: Any) -> Server:
    server = Server("shop", version="1", limits=limits_of(**limits), auth=auth)
    server.resource("shop://{+name}")(lambda name: name)
    server.tool(name="echo")(lambda text="": "")

    @server.tool
    async def waits() -> None:
        await asyncio.Event().wait()

    return server


def padded(params: JSON, size: int) -> JSON:
    """Return params whose JSON, as the raw peer writes it, has this many bytes."""
    return {**params, "x": "x" * (size - len(json.dumps({**params, "x": ""})))}


async def several(client: Wire, method: str, each: Any, count: int) -> Outcome:
    """Send `count` requests, of which only the last may be refused; return its outcome."""
    for number in range(count - 1):
        before = await client.ask(method, each(number))
        assert not before.refused, before
    return await client.ask(method, each(count))


@refuses("Limits.uri_bytes", *EVERYWHERE)
async def uri(over: str, extra: int) -> Outcome:
    async with wire(over, shop(uri_bytes=300)) as client:
        return await client.ask("resources/subscribe", {"uri": "shop://".ljust(300 + extra, "x")})


@refuses("Limits.hello_bytes", *EVERYWHERE)
async def params_of_initialize(over: str, extra: int) -> Outcome:
    async with wire(over, shop(hello_bytes=900), opened=False) as client:
        return await client.ask("initialize", padded(HELLO, 900 + extra), id=1)


@refuses("Limits.subscriptions", *EVERYWHERE)
async def subscriptions(over: str, extra: int) -> Outcome:
    async with wire(over, shop(subscriptions=MOST)) as client:
        return await several(client, "resources/subscribe", lambda n: {"uri": f"shop://{n}"}, MOST + extra)


@refuses("Limits.subscribed_bytes", *EVERYWHERE)
async def bytes_of_subscriptions(over: str, extra: int) -> Outcome:
    async with wire(over, shop(subscribed_bytes=MOST * _cost("shop://0"))) as client:
        return await several(client, "resources/subscribe", lambda n: {"uri": f"shop://{n}"}, MOST + extra)


@refuses("Limits.subscribed_total_bytes", "memory")
async def bytes_of_all_subscriptions(over: str, extra: int) -> Outcome:
    server = shop(subscribed_total_bytes=MOST * _cost("shop://0"))
    async with raw_peer(server) as first, raw_peer(server) as second:
        assert not error_of(await first.ask("resources/subscribe", {"uri": "shop://9"}))
        each = Wire(over, second)
        return await several(each, "resources/subscribe", lambda n: {"uri": f"shop://{n}"}, MOST - 1 + extra)


@refuses("Limits.batch_items", *EVERYWHERE)
async def batch(over: str, extra: int) -> Outcome:
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(MOST + extra)]
    async with wire(over, shop(batch_items=MOST), revision="2025-03-26") as client:
        if over != "sse":
            return await client.send(batch)
        assert (await client.client.post(batch)).status == 202
        return outcome(batch, await client.client.stream.message())


@refuses("Limits.requests_in_flight", *EVERYWHERE)
async def requests_in_flight(over: str, extra: int) -> Outcome:
    async with wire(over, shop(requests_in_flight=MOST)) as client:
        begun = [await client.begin("tools/call", {"name": "waits"}) for _ in range(MOST - 1 + extra)]
        found = await client.ask("tools/list" if extra else "tools/call", {} if extra else {"name": "echo"})
        for each in filter(None, begun):
            await each.leave()
        return found


@refuses("Limits.workers", *LINES)
@refuses("Limits.worker_queue", *LINES)
async def calls_of_plain_functions(over: str, extra: int) -> Outcome:
    server, release = shop(workers=1, worker_queue=MOST - 2), threading.Event()
    server.tool(name="blocks")(lambda: release.wait(100) and "")
    async with wire(over, server) as client:
        try:
            for _ in range(MOST - 2 + extra):
                await client.begin("tools/call", {"name": "blocks"})
            if extra:
                return await client.ask("tools/call", {"name": "echo", "arguments": {}})
            await client.begin("tools/call", {"name": "blocks"})
            return await client.ask("ping")
        finally:
            release.set()


@refuses("Limits.tool_seconds", *LINES)
async def time_of_a_tool(over: str, extra: int) -> Outcome:
    clock = Clock()
    async with wire(over, shop(tool_seconds=60)) as client:
        clock.move(0)
        call = asyncio.ensure_future(client.ask("tools/call", {"name": "waits"}))
        await (await asyncio.sleep(0) or asyncio.sleep(0))
        for _ in range(20):
            await asyncio.sleep(0.001)
        await clock.jump(61 if extra else 50)
        if extra:
            return await call
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not call.done()
        call.cancel()
        return Outcome()


@refuses("Limits.tool_calls_per_second", "http", "modern")
async def tool_calls(over: str, extra: int) -> Outcome:
    async with site(shop(tool_calls_per_second=MOST / 1e6, auth=KEYS)) as here:
        client = Modern(here.raw, authorization="Bearer k-ann")
        if extra:
            assert not error_of(await (await client.call("echo")).json())
        call = client.calling("echo")
        return outcome(call, await (await client.post(call)).json())


def proposing(**limits: Any) -> Server:
    server = shop(**limits)

    @server.prompt
    def greet(who: str) -> str:
        return who

    greet.complete("who")(lambda typed: [str(number) for number in range(int(typed))])
    return server


def completing(typed: int = 1) -> JSON:
    return {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": str(typed)}}


@refuses("Limits.completions_per_second", *EVERYWHERE)
async def completions(over: str, extra: int) -> Outcome:
    async with wire(over, proposing(completions_per_second=1e-6)) as client:
        return await several(client, "completion/complete", lambda _: completing(), 1 + extra)


@drops("Limits.completions", *LINES)
async def values_of_a_completion(over: str, extra: int) -> Outcome:
    async with wire(over, proposing(completions=MOST)) as client:
        found = await client.client.ask("completion/complete", completing(MOST + extra))
    completion = found["result"]["completion"]
    assert completion["values"] == [str(number) for number in range(MOST)]
    return Outcome("there are more" if completion.get("hasMore") else "")


@drops("Limits.logs_per_second", *LINES)
async def log_messages(over: str, extra: int) -> Outcome:
    server = shop(logs_per_second=MOST)

    @server.tool
    async def talks(ctx: Context, times: int) -> str:
        for number in range(times):
            ctx.log("info", f"line {number}")
        return ""

    async with wire(over, server) as client:
        client.client.send("tools/call", {"name": "talks", "arguments": {"times": MOST + extra}})
        lines = []
        while "result" not in (message := await client.client.hear()):
            lines.append(message)
    heard = [each for each in lines if "line" in str(each)]
    assert len(heard) == MOST
    return Outcome("dropped" if len(heard) < MOST + extra else "")


@drops("Limits.progress_per_second", *LINES)
async def progress(over: str, extra: int) -> Outcome:
    server = shop(progress_per_second=MOST)

    @server.tool
    async def reports(ctx: Context, times: int) -> str:
        for number in range(times):
            ctx.report_progress(number)
        return ""

    async with wire(over, server) as client:
        arguments = {"times": MOST + 2 * extra}
        client.client.send("tools/call", {"name": "reports", "arguments": arguments, "_meta": {"progressToken": 1}})
        count = 0
        while "result" not in await client.client.hear():
            count += 1
    return Outcome("coalesced" if count < MOST + 2 * extra else "")


@drops("Limits.page_size", *EVERYWHERE)
async def page(over: str, extra: int) -> Outcome:
    server = shop(page_size=MOST)
    for number in range(MOST - 2 + extra):
        server.tool(name=f"t{number}")(lambda: "")
    async with wire(over, server) as client:
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}
        result = (await client._answer(message))["result"]
    assert len(result["tools"]) == MOST
    return Outcome("nextCursor" if "nextCursor" in result else "")


def nested_schema(depth: int) -> JSON:
    """A schema of so many subschemas, one inside the other."""
    schema: JSON = {"type": "integer"}
    for _ in range(depth - 1):
        schema = {"type": "array", "items": schema}
    return schema


def declared(schema: JSON, **limits: Any) -> Outcome:
    tool = Tool(name="deep", input_schema={"type": "object", "properties": {"value": schema}})
    try:
        shop(**limits).add_tool(tool, lambda arguments: "")
    except AccordError as error:
        return Outcome(str(error))
    return Outcome()


@refuses("Limits.schema_depth")
async def depth_of_a_schema(over: str, extra: int) -> Outcome:
    return declared(nested_schema(10 + extra), schema_depth=10)


@refuses("Limits.schema_nodes")
async def size_of_a_schema(over: str, extra: int) -> Outcome:
    parts = {"type": "object", "properties": {f"p{number}": True for number in range(50 + extra)}}
    return declared(parts, schema_nodes=52)


@refuses("Limits.depth", *EVERYWHERE)
async def depth_of_a_value(over: str, extra: int) -> Outcome:
    server = shop(depth=20)
    server.add_tool(Tool(name="deep", input_schema={"type": "object"}), lambda arguments: "")
    value: Any = 1
    for _ in range(19 + extra):
        value = [value]
    async with wire(over, server) as client:
        return await client.ask("tools/call", {"name": "deep", "arguments": {"value": value}})


@refuses("Limits.line_bytes", "stdio")
async def line(over: str, extra: int) -> Outcome:
    server = shop(line_bytes=2_000)
    async with wire(over, server) as client:
        message: JSON = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"x": ""}}
        message["params"]["x"] = "x" * (2_000 + extra - len(json.dumps(message)))
        client.client.say(message)
        answer = await client.client.hear()
        while "method" in answer:
            answer = await client.client.hear()
        return outcome(message, answer)
