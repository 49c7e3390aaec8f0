"""A middleware may do anything: it ends its own call, and nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from accord import CallNext, Context, Request, Server, ToolError
from accord.errors import InvalidParams

from tests.clock import without_waiting
from tests.server.input.caller import caller
from tests.server.middleware.transports import SOME, WAYS, called, reached, text
from tests.server.test_misbehaving_handlers import RAISED

ASKED: list[tuple[str, dict[str, Any]]] = [
    called("it"),
    ("prompts/get", {"name": "it"}),
    ("resources/read", {"uri": "data://it"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "it"}, "argument": {"name": "a", "value": ""}}),
    ("tools/list", {}),
    ("prompts/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
]
"""A request of every method that goes through middleware."""


def server_with(*middleware: Any) -> Server:
    server = Server("test", middleware=middleware)

    async def it(a: str = "") -> str:
        return "it"

    server.tool(it)
    server.tool(name="fine")(it)
    server.prompt(it).complete("a")(lambda typed: ["a"])
    server.resource("data://it")(lambda: "it")
    return server


def raising(exc: BaseException, when: str, armed: list[bool]) -> Any:
    async def middleware(request: Request, call_next: CallNext) -> Any:
        if armed and when == "before":
            raise exc.with_traceback(None)
        if when == "after waiting":
            await asyncio.sleep(0)
        value = await call_next(request)
        if armed:
            raise exc.with_traceback(None)
        return value

    return middleware


@pytest.mark.parametrize("when", ["before", "after", "after waiting"])
@pytest.mark.parametrize("exc", RAISED, ids=lambda exc: type(exc).__name__)
@pytest.mark.parametrize("way", WAYS)
async def test_whatever_it_raises_ends_only_its_own_request(exc: BaseException, when: str, way: str) -> None:
    armed: list[bool] = []
    async with reached(server_with(raising(exc, when, armed)), way) as ask:
        for method, params in ASKED:
            armed[:] = [True]
            said = await ask(method, params)
            failed = said["error"]["message"] if "error" in said else said["result"]["isError"] and text(said)
            assert failed, (method, said)
            armed.clear()
            assert "error" not in await ask(method, params), method


@pytest.mark.parametrize("way", WAYS)
async def test_an_error_of_the_protocol_is_answered_as_it_is(way: str) -> None:
    async def refuse(request: Request, call_next: CallNext) -> Any:
        raise InvalidParams("not like this", data={"why": request.method})

    async with reached(server_with(refuse), way) as ask:
        for method, params in ASKED:
            error = (await ask(method, params))["error"]
            assert error == {"code": -32602, "message": "not like this", "data": {"why": method}}


@pytest.mark.parametrize("way", SOME)
async def test_what_is_no_list_is_an_error_of_the_list(way: str) -> None:
    for instead in (None, 7, ["text"]):

        async def wrong(request: Request, call_next: CallNext, instead: Any = instead) -> Any:
            return instead if request.lists else await call_next(request)

        async with reached(server_with(wrong), way) as ask:
            assert (await ask("tools/list"))["error"]["code"] == -32603
            assert text(await ask(*called("it"))) == "it"


@pytest.mark.parametrize("way", SOME)
async def test_it_may_catch_what_the_handler_raised(way: str) -> None:
    async def calm(request: Request, call_next: CallNext) -> Any:
        try:
            return await call_next(request)
        except ValueError as exc:
            return f"caught {exc}"

    server = server_with(calm)

    @server.tool
    async def fails() -> str:
        raise ValueError("it failed")

    async with reached(server, way) as ask:
        assert text(await ask(*called("fails"))) == "caught it failed"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("ctx", [False, True])
async def test_a_cancelled_call_that_is_swallowed_is_not_answered_and_holds_up_nothing(
    revision: str, ctx: bool
) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def swallow(request: Request, call_next: CallNext) -> Any:
        try:
            return await call_next(request)
        except asyncio.CancelledError:
            ended.set()
            return "as if nothing had been"

    server = server_with(swallow)

    async def waits() -> str:
        began.set()
        await asyncio.Event().wait()
        return "never"

    async def waits_with(ctx: Context) -> str:
        return await waits()

    server.tool(name="waits")(waits_with if ctx else waits)
    async with caller(server, revision) as client:
        id = client.send(*called("waits"))
        await began.wait()
        client.cancel(id)
        await ended.wait()
        assert text(await client.ask(*called("it"))) == "it"
        assert id not in client.heard


@without_waiting
async def test_the_end_of_a_connection_ends_what_a_middleware_waits_for() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def waits(request: Request, call_next: CallNext) -> Any:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with caller(server_with(waits), "2025-11-25") as client:
        client.send(*called("it"))
        await began.wait()
    assert ended.is_set()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_what_it_raises_after_a_question_ends_the_call(revision: str) -> None:
    async def fails(request: Request, call_next: CallNext) -> Any:
        await call_next(request)
        raise ToolError("changed my mind")

    server = server_with(fails)

    @server.tool
    async def asks(ctx: Context) -> str:
        return str(await ctx.elicit("Sure?", bool))

    async with caller(server, revision) as client:
        said = await client.through(*called("asks"))
    assert text(said) == "changed my mind"
    assert said["result"]["isError"]
