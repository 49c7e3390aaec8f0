"""`SizeLimit`, `Timeout` and `Retry`: how large, how long, how often."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import (
    CallToolResult,
    Context,
    DeclarationError,
    ImageContent,
    Retry,
    Server,
    SizeLimit,
    TextContent,
    Timeout,
    ToolAnnotations,
)
from accord.server.middleware import limits

from tests.clock import Clock
from tests.server.input.caller import Later, asks, caller, retry
from tests.server.middleware.transports import SOME, WAYS, called, reached, text
from tests.waiting import until

# --- how large -----------------------------------------------------------------------------------------------------


def sized(limit: SizeLimit) -> Server:
    server = Server("test", middleware=[limit])

    @server.tool
    async def words(count: int) -> str:
        return "x" * count

    @server.tool
    async def rows(count: int) -> list[str]:
        return ["x"] * count

    server.prompt(name="tell")(lambda: "x" * 5000)
    server.resource("data://x")(lambda: "x" * 5000)
    server.resource("data://bytes")(lambda: b"x" * 5000)
    return server


@pytest.mark.parametrize("way", WAYS)
async def test_a_result_that_is_too_large_is_an_error_that_says_what_to_do(way: str) -> None:
    async with reached(sized(SizeLimit(2000)), way) as ask:
        assert text(await ask(*called("words", count=1000))) == "x" * 1000
        for call in (called("words", count=2000), called("rows", count=2000)):
            said = await ask(*call)
            assert said["result"]["isError"]
            assert "bytes; the limit is 2,000: ask for less" in text(said)
        for method, params in (
            ("prompts/get", {"name": "tell"}),
            ("resources/read", {"uri": "data://x"}),
            ("resources/read", {"uri": "data://bytes"}),
        ):
            assert "the limit is 2,000" in (await ask(method, params))["error"]["message"]


@pytest.mark.parametrize("way", WAYS)
async def test_text_is_cut_and_structured_output_is_not(way: str) -> None:
    async with reached(sized(SizeLimit(2000, cut=True)), way) as ask:
        said = await ask(*called("words", count=5000))
        assert "isError" not in said["result"]
        assert text(said).startswith("xxx")
        assert "bytes were left out here]" in text(said)
        assert (await ask(*called("rows", count=2000)))["result"]["isError"]


@given(st.lists(st.text(alphabet=st.sampled_from('a"\n\u00e9\u20ac\U0001f600'), max_size=2000), min_size=1, max_size=4))
def test_what_was_cut_fits_and_begins_as_it_did(texts: list[str]) -> None:
    server = Server("test", middleware=[SizeLimit(1500, cut=True)])

    @server.tool
    async def it() -> CallToolResult:
        return CallToolResult(content=[TextContent(text=each) for each in texts])

    async def run() -> dict[str, Any]:
        async with reached(server, "memory 2026-07-28") as ask:
            return await ask(*called("it"))

    said = asyncio.run(run())["result"]
    assert "isError" not in said
    assert len(json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()) <= 1500
    for block, whole in zip(said["content"], texts, strict=True):
        assert whole.startswith(block["text"].partition("\n[")[0])


@pytest.mark.parametrize("character", ['"', "\x01", "\n", "e"])
async def test_text_that_is_escaped_in_json_is_cut_no_more_than_needed(character: str) -> None:
    server = Server("test", middleware=[SizeLimit(2000, cut=True)])

    @server.tool
    def it() -> CallToolResult:
        return CallToolResult(content=[TextContent(text=character * 5000)])

    async with reached(server, "memory 2026-07-28") as ask:
        said = (await ask(*called("it")))["result"]
    assert "isError" not in said
    assert 1900 < len(json.dumps(said, ensure_ascii=False, separators=(",", ":"))) <= 2000


@pytest.mark.parametrize("character", ['"', "\x01", "é", "e"])
def test_a_text_of_megabytes_is_cut_in_the_time_of_what_is_left(
    character: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []
    real = limits._json_bytes
    monkeypatch.setattr(limits, "_json_bytes", lambda text: encoded.append(len(text)) or real(text))
    beginning = limits._beginning(character * 1_000_000, 6_000)
    assert 5_995 <= real(beginning) <= 6_000
    assert sum(encoded) < 100_000


async def test_what_cannot_be_cut_enough_is_an_error() -> None:
    server = Server("test", middleware=[SizeLimit(1000, cut=True)])

    @server.tool
    async def it() -> list[Any]:
        return [TextContent(text="x" * 10), ImageContent(data="A" * 4000, mime_type="image/png")]

    async with reached(server, "memory 2026-07-28") as ask:
        assert (await ask(*called("it")))["result"]["isError"]


# --- how long ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ctx", [False, True])
async def test_what_takes_too_long_is_stopped_and_says_so(way: str, ctx: bool) -> None:
    server, ended = Server("test", middleware=[Timeout(1)]), asyncio.Event()

    async def waits() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async def waits_with(ctx: Context) -> str:
        return await waits()

    server.tool(name="waits")(waits_with if ctx else waits)
    server.tool(name="quick")(lambda: "done")
    async with reached(server, way) as ask:
        said = await ask(*called("waits"))
        assert said["result"]["isError"]
        assert text(said) == "took longer than 1 s and was stopped"
        assert ended.is_set()
        assert text(await ask(*called("quick"))) == "done"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("annotations", [None, ToolAnnotations(read_only_hint=True)])
async def test_the_time_of_a_question_does_not_count(
    clock: Clock, revision: str, annotations: ToolAnnotations | None
) -> None:
    server = Server("test", middleware=[Timeout(10)])

    @server.tool(annotations=annotations)
    async def it(ctx: Context) -> str:
        return str((await ctx.elicit("Sure?", str)).data)

    def later(question: Any) -> dict[str, Any]:
        raise Later

    async with caller(server, revision, reply=later) as client:
        id = client.send(*called("it"))
        if revision == "2026-07-28":
            said = await client.answer(id)
            assert asks(said)
            await clock.jump(60)
            again = {"name": "it", "arguments": {}, **retry(said)}
            assert text(await client.ask("tools/call", again)) == "answer to Sure?"
        else:
            await client.until(lambda: bool(client.asked))
            await clock.jump(60)
            (question,) = client.asked
            client.say({"id": question["id"], "result": {"action": "accept", "content": {"value": "late"}}})
            assert text(await client.answer(id)) == "late"


@pytest.mark.parametrize("wrong", [0, -1, float("nan")])
def test_a_time_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(DeclarationError):
        Timeout(wrong)


# --- how often -----------------------------------------------------------------------------------------------------


def failing(retry: Retry, *errors: BaseException) -> tuple[Server, list[str]]:
    """A server whose functions raise these, one after the other, and then are well."""
    server, ran, left = Server("test", middleware=[retry]), list[str](), list(errors)

    def run(name: str) -> str:
        ran.append(name)
        if left:
            raise left.pop(0)
        return f"done {len(ran)}"

    server.tool(name="reads", annotations=ToolAnnotations(read_only_hint=True))(lambda: run("reads"))
    server.tool(name="sets", annotations=ToolAnnotations(idempotent_hint=True))(lambda: run("sets"))
    server.tool(name="pays")(lambda: run("pays"))
    server.prompt(name="tell")(lambda: run("tell"))
    server.resource("data://x")(lambda: run("x"))
    return server, ran


@pytest.mark.parametrize("way", SOME)
async def test_what_may_run_twice_is_tried_again(way: str) -> None:
    for method, params in (
        called("reads"),
        called("sets"),
        ("prompts/get", {"name": "tell"}),
        ("resources/read", {"uri": "data://x"}),
    ):
        server, _ = failing(Retry(2, pause=0), ConnectionResetError(), TimeoutError())
        async with reached(server, way) as ask:
            assert text(await ask(method, params)) == "done 3"


@pytest.mark.parametrize("way", SOME)
async def test_what_may_have_done_something_is_not_unless_it_is_named(way: str) -> None:
    for middleware, runs in ((Retry(2, pause=0), 1), (Retry(2, pause=0, tools={"pays"}), 2)):
        server, ran = failing(middleware, ConnectionResetError("gone"))
        async with reached(server, way) as ask:
            said = await ask(*called("pays"))
        assert len(ran) == runs
        assert text(said) == ("ConnectionResetError: gone" if runs == 1 else "done 2")


async def test_the_last_error_is_raised_and_others_are_logged_at_once() -> None:
    server, ran = failing(Retry(2, pause=0), *(ConnectionError(str(n)) for n in range(5)))
    async with reached(server, "memory 2026-07-28") as ask:
        assert text(await ask(*called("reads"))) == "ConnectionError: 2"
    assert len(ran) == 3
    server, ran = failing(Retry(2, pause=0), ValueError("no"), ConnectionError())
    async with reached(server, "memory 2026-07-28") as ask:
        assert text(await ask(*called("reads"))) == "ValueError: no"
    assert len(ran) == 1


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_no_question_is_sent_twice(revision: str) -> None:
    server, ran = Server("test", middleware=[Retry(2, pause=0)]), []

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def it(ctx: Context) -> str:
        await ctx.elicit("Sure?", bool)
        ran.append(1)
        raise ConnectionError("gone")

    async with caller(server, revision) as client:
        assert text(await client.through(*called("it"))) == "ConnectionError: gone"
    assert len(ran) == 1


async def test_pauses_grow_at_random_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(random, "random", lambda: 1.0)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    server, _ = failing(Retry(5, pause=0.5, longest=3), *(ConnectionError() for _ in range(5)))
    async with reached(server, "memory 2026-07-28") as ask:
        assert text(await ask(*called("reads"))) == "done 6"
    assert slept == [0.5, 1, 2, 3, 3]


async def test_a_cancelled_call_is_not_tried_again() -> None:
    server, ran = failing(Retry(5, pause=600, longest=600), *(ConnectionError() for _ in range(5)))
    async with caller(server, "2025-11-25") as client:
        id = client.send(*called("reads"))
        await until(lambda: ran)
        client.cancel(id)
        server.tool(name="fine")(lambda: "fine")
        assert text(await client.ask(*called("fine"))) == "fine"
    assert len(ran) == 1


@pytest.mark.parametrize("wrong", [{"times": -1}, {"pause": -1}, {"longest": float("nan")}])
def test_numbers_below_nothing_are_refused(wrong: Any) -> None:
    with pytest.raises(DeclarationError):
        Retry(**wrong)
