"""`Timing` and `MaskErrors`: what stands in the log, and what a client is told."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest

from accord import (
    CallToolResult,
    Context,
    InternalError,
    MaskErrors,
    Server,
    TextContent,
    Timing,
    ToolAnnotations,
    ToolError,
)
from accord.errors import DeclarationError, StoreError

from tests.server.input.caller import caller
from tests.server.middleware.transports import SOME, WAYS, called, reached, text
from tests.server.test_misbehaving_handlers import RAISED
from tests.telemetry.recorder import Recorder

LINE = re.compile(r"(\S+)( '.*'| \".*\")? \d+\.\d ms (.+)")


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    """Method, name and outcome of each line."""
    lines = [record.getMessage() for record in caplog.records if record.name == "accord.timing"]
    return [(found[1], (found[2] or "").strip(), found[3]) for line in lines if (found := LINE.fullmatch(line))]


@pytest.mark.parametrize("way", WAYS)
async def test_each_request_is_a_line_with_its_outcome(way: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "accord.timing")
    server = Server("test", middleware=[Timing()])
    server.tool(name="fine")(lambda: "fine")
    server.tool(name="wrong")(lambda: CallToolResult(content=[], is_error=True))
    server.resource("data://{+x}")(lambda x: x)

    @server.tool
    def fails() -> str:
        raise ValueError("secret")

    async with reached(server, way) as ask:
        for name in ("fine", "wrong", "fails"):
            await ask(*called(name))
        await ask("tools/list")
        await ask("resources/read", {"uri": "data://a%0Ab'" + "x" * 500})
    assert told(caplog)[:4] == [
        ("tools/call", "'fine'", "ok"),
        ("tools/call", "'wrong'", "error result"),
        ("tools/call", "'fails'", "ValueError"),
        ("tools/list", "", "ok"),
    ]
    assert len(told(caplog)) == 5
    assert "secret" not in "".join(record.getMessage() for record in caplog.records if record.name == "accord.timing")
    assert len(caplog.records[-1].getMessage()) < 300


async def test_a_secret_in_a_uri_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "accord.timing")
    server = Server("test", middleware=[Timing()])
    server.resource("data://x{?token}")(lambda token: "fine")
    for padding in (0, 150, 190):
        token = "s3cret" * 30
        async with reached(server, WAYS[0]) as ask:
            await ask("resources/read", {"uri": f"data://x?token={'-' * padding}{token}"})
    assert len(told(caplog)) == 3
    assert "s3cret" not in caplog.text


async def test_what_is_slow_is_a_warning_in_the_log_that_was_given(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("test", middleware=[Timing(logging.getLogger("mine"), slow=0)])
    server.tool(name="fine")(lambda: "fine")
    async with reached(server, "memory 2026-07-28") as ask:
        await ask(*called("fine"))
    (record,) = [record for record in caplog.records if record.name == "mine"]
    assert record.levelno == logging.WARNING
    with pytest.raises(DeclarationError):
        Timing(slow=-1)


async def test_a_cancelled_request_and_one_that_requires_input_have_their_outcome(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "accord.timing")
    server, began = Server("test", middleware=[Timing()]), asyncio.Event()

    @server.tool
    async def waits() -> None:
        began.set()
        await asyncio.Event().wait()

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def asks(ctx: Context) -> str:
        return str((await ctx.elicit("Sure?", bool)).action)

    async with caller(server, "2026-07-28") as client:
        id = client.send(*called("waits"))
        await began.wait()
        client.cancel(id)
        assert text(await client.through(*called("asks"))) == "accept"
    assert sorted(told(caplog)) == [
        ("tools/call", "'asks'", "asks"),
        ("tools/call", "'asks'", "ok"),
        ("tools/call", "'waits'", "cancelled"),
    ]


# --- what is masked ------------------------------------------------------------------------------------------------


class SecretError(Exception):
    pass


def failing(exc: BaseException, mask: MaskErrors) -> Server:
    server = Server("test", middleware=[mask])

    async def fails() -> str:
        raise exc.with_traceback(None)

    server.tool(name="it")(fails)
    server.prompt(name="it")(fails)
    server.resource("data://it")(fails)
    return server


ASKED = [called("it"), ("prompts/get", {"name": "it"}), ("resources/read", {"uri": "data://it"})]


@pytest.mark.parametrize("way", WAYS)
async def test_an_unexpected_error_is_a_reference_and_the_log_has_the_rest(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with reached(failing(SecretError("password hunter2"), MaskErrors()), way) as ask:
        for method, params in ASKED:
            caplog.clear()
            said = text(await ask(method, params))
            found = re.fullmatch(r"an internal error, reference ([0-9a-f]{8})", said)
            assert found, said
            (record,) = [record for record in caplog.records if found[1] in record.getMessage()]
            assert record.exc_info
            assert isinstance(record.exc_info[1], SecretError)


@pytest.mark.parametrize("exc", [exc for exc in RAISED if not isinstance(exc, ToolError)], ids=repr)
@pytest.mark.parametrize("way", SOME)
async def test_nothing_of_an_unexpected_error_is_sent_whatever_it_is(exc: BaseException, way: str) -> None:
    async with reached(failing(exc, MaskErrors()), way) as ask:
        for method, params in ASKED:
            assert re.fullmatch(r"an internal error, reference [0-9a-f]{8}", text(await ask(method, params)))


@pytest.mark.parametrize("exc", [StoreError("/srv/secret.db"), BaseExceptionGroup("hunter2", [ValueError("hunter2")])])
async def test_errors_of_this_library_that_are_not_for_clients_are_masked_too(exc: BaseException) -> None:
    async with reached(failing(exc, MaskErrors()), "memory 2026-07-28") as ask:
        assert text(await ask(*called("it"))).startswith("an internal error, reference ")


@pytest.mark.parametrize("way", SOME)
async def test_errors_for_the_client_are_not_masked(way: str) -> None:
    for exc, mask, said in (
        (ToolError("no such city"), MaskErrors(), "no such city"),
        (InternalError("too busy"), MaskErrors(), "too busy"),
        (SecretError("not so secret"), MaskErrors(show=(SecretError,)), "SecretError: not so secret"),
    ):
        async with reached(failing(exc, mask), way) as ask:
            assert text(await ask(*called("it"))) == said


@pytest.mark.parametrize("way", SOME)
async def test_invalid_arguments_and_a_timeout_are_reported(way: str) -> None:
    server = Server("test", middleware=[MaskErrors()])

    @server.tool(timeout=0.01)
    async def it(n: int) -> None:
        await asyncio.Event().wait()

    async with reached(server, way) as ask:
        assert "expected integer" in text(await ask(*called("it", n="x")))
        assert "took longer than 0.01 s" in text(await ask(*called("it", n=1)))


async def test_a_question_and_a_cancel_are_no_errors(caplog: pytest.LogCaptureFixture) -> None:
    server, began = Server("test", middleware=[MaskErrors()]), asyncio.Event()

    @server.tool
    async def waits() -> None:
        began.set()
        await asyncio.Event().wait()

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def asks(ctx: Context) -> Any:
        try:
            return TextContent(text=(await ctx.elicit("Sure?", bool)).action)
        except BaseException as exc:
            raise ValueError("in the way of the question") from exc

    async with caller(server, "2026-07-28") as client:
        id = client.send(*called("waits"))
        await began.wait()
        client.cancel(id)
        assert text(await client.through(*called("asks"))) == "accept"
    assert "reference" not in caplog.text


@pytest.mark.parametrize("way", SOME)
async def test_a_watched_server_has_its_middleware_too(way: str) -> None:
    server = Server("test", middleware=[MaskErrors()], telemetry=Recorder().telemetry)
    server.prompt(name="tell")(lambda city="": "tell").complete("city")(lambda typed: ["Oslo"])

    @server.tool
    async def fails() -> str:
        raise SecretError("hunter2")

    ref = {"ref": {"type": "ref/prompt", "name": "tell"}, "argument": {"name": "city", "value": ""}}
    async with reached(server, way) as ask:
        assert text(await ask(*called("fails"))).startswith("an internal error, reference ")
        assert (await ask("completion/complete", ref))["result"]["completion"]["values"] == ["Oslo"]
        assert "result" in await ask("tools/list")
