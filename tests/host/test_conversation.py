"""A model that calls tools: limits of turns, tokens and time, and errors that it can go on from."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from accord import Context, Server
from accord.errors import ModelError
from accord.host import Host, RunLimits, RunResult
from accord.messages.content import TextContent, ToolResultContent, ToolUseContent
from accord.messages.sampling import CreateMessageParams, SamplingMessage
from accord.testing import ScriptedModel

from tests.clock import Clock
from tests.waiting import until

CALLED: list[str] = []
"""The calls that do not end."""


def shop() -> Server:
    server = Server("shop")

    @server.tool
    async def price(item: str) -> int:
        """The price of an item."""
        if item == "slow":
            CALLED.append(item)
            await asyncio.sleep(1_000)
        if item == "broken":
            raise RuntimeError("no such item")
        return len(item)

    return server


def use(item: str = "tea", number: int = 1) -> ToolUseContent:
    return ToolUseContent(id=str(number), name="shop_price", input={"item": item})


async def run(tmp_path: Path, answers: Any, approve: Any = lambda prompt: True, **options: Any) -> Any:
    model = ScriptedModel(answers)
    async with Host({"shop": shop()}, approve=approve, state=tmp_path / "host.db") as host:
        return await host.run(model, "What is it?", **options), model


async def test_the_conversation_can_go_on(tmp_path: Path) -> None:
    texts: list[str] = []
    calls: list[str] = []
    result, model = await run(
        tmp_path,
        [use(), "It costs 3."],
        on_text=texts.append,
        on_call=lambda call: calls.append(call.name),
        system="Be short.",
    )
    assert (result.text, result.stopped, result.turns, result.tokens) == ("It costs 3.", "answered", 2, 30)
    assert "".join(texts) == "It costs 3."
    assert calls == ["shop_price"]
    assert [message.role for message in result.messages] == ["user", "assistant", "user", "assistant"]
    assert model.requests[0].system_prompt == "Be short."
    async with Host({"shop": shop()}, approve=lambda prompt: True, state=tmp_path / "host.db") as host:
        more = [*result.messages, SamplingMessage(role="user", content=TextContent(text="And coffee?"))]
        assert (await host.run(ScriptedModel(["6"]), more)).text == "6"


@pytest.mark.parametrize(
    ("item", "approved", "expected"),
    [("broken", True, "no such item"), ("tea", False, "the user did not approve it")],
)
async def test_errors_and_denials_are_results_for_the_model(
    tmp_path: Path, item: str, approved: bool, expected: str
) -> None:
    def approve(prompt: Any) -> bool:
        return approved or not hasattr(prompt, "arguments")

    result, _ = await run(tmp_path, [use(item), "I see."], approve)
    (block,) = result.messages[2].content
    assert isinstance(block, ToolResultContent)
    assert block.is_error
    assert expected in str(block.content)
    assert result.stopped == "answered"


@pytest.mark.parametrize(
    ("limits", "stopped", "turns"),
    [
        (RunLimits(turns=3), "turns", 3),
        (RunLimits(tokens=40), "tokens", 3),
        (RunLimits(seconds=100), "time", 1),
    ],
)
async def test_a_run_has_limits(tmp_path: Path, limits: RunLimits, stopped: str, turns: int) -> None:
    item = "slow" if stopped == "time" else "tea"
    running = asyncio.create_task(run(tmp_path, lambda params: use(item), limits=limits))
    if stopped == "time":
        await until(lambda: CALLED or running.done())
        await Clock().jump(101)
    result, _ = await running
    assert (result.stopped, result.turns) == (stopped, turns)
    assert result.messages[0].content.text == "What is it?"
    (last,) = result.messages[-1].content
    assert isinstance(last, ToolResultContent)  # a provider refuses a call without one
    assert last.tool_use_id == "1"
    assert ("it is unknown what the call did" in str(last.content)) == (stopped == "time")


async def test_tokens_of_sampling_requests_count(tmp_path: Path) -> None:
    server = Server("shop")

    @server.tool
    async def price(item: str, ctx: Context) -> str:
        """The price of an item, as the model of the host guesses it."""
        return (await ctx.sample(item, max_tokens=10)).text

    model = ScriptedModel(lambda params: use() if params.tools else "3")
    host = Host({"shop": server}, approve=lambda prompt: True, state=tmp_path / "host.db", models=[model])
    async with host:
        first = await host.run(model, "What is it?", limits=RunLimits(turns=2))
        assert first.tokens == host.sampling_tokens + 30 == 60  # 15 of each of four answers
        second = await host.run(model, "And now?", limits=RunLimits(tokens=31))
    assert (second.stopped, second.turns, second.tokens) == ("tokens", 2, 60)


def asking(**options: Any) -> Server:
    """A server whose tool asks the model of the host."""
    server = Server("shop", **options)

    @server.tool
    async def price(item: str, ctx: Context) -> str:
        """The price of an item, as the model of the host guesses it."""
        return (await ctx.sample(item, max_tokens=10)).text

    return server


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_concurrent_runs_count_only_the_sampling_requests_of_their_own_calls(
    tmp_path: Path, revision: str
) -> None:
    other_is_done = asyncio.Event()

    class Slow(ScriptedModel):
        async def create_message(self, params: CreateMessageParams, **options: Any) -> Any:
            await other_is_done.wait()
            return await super().create_message(params, **options)

    model = ScriptedModel([use(), "3", "It costs 3."])
    servers = {"shop": asking(revisions=[revision])}

    async def ask() -> RunResult:
        result = await host.run(model, "What is it?")
        other_is_done.set()
        return result

    async with Host(servers, approve=lambda prompt: True, state=tmp_path / "host.db", models=[model]) as host:
        first, second = await asyncio.gather(
            ask(), host.run(Slow(["It costs 3."]), "And this?", limits=RunLimits(tokens=15))
        )
        assert host.sampling_tokens == 15
    assert (first.stopped, first.tokens) == ("answered", 45)
    assert (second.stopped, second.tokens) == ("answered", 15)


async def test_a_sampling_request_without_a_call_counts_for_each_run(tmp_path: Path) -> None:
    host = Host({"shop": shop()}, approve=lambda prompt: True, state=tmp_path / "host.db", models=[ScriptedModel("3")])
    async with host:
        limits, server = host._sampling_limits, host._servers["shop"]
        with host.count_sampling() as first, host.count_sampling() as second:
            limits.pay(15, limits.payers(server))
        limits.pay(15, limits.payers(server))
    assert (first.tokens, second.tokens, host.sampling_tokens) == (15, 15, 30)


async def test_a_model_may_not_call_without_bound_in_one_turn(tmp_path: Path) -> None:
    answers = [[use(number=number) for number in range(40)], "Enough."]
    result, _ = await run(tmp_path, answers)
    errors = [block for block in result.messages[2].content if block.is_error]
    assert len(errors) == 8
    assert "at most 32 calls in one turn" in str(errors[0])


async def test_an_error_of_the_model_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="overloaded"):
        await run(tmp_path, [ModelError("overloaded")])


async def test_a_cancelled_run_cancels_the_running_call(tmp_path: Path) -> None:
    started = asyncio.Event()

    def answer(params: CreateMessageParams) -> Any:
        started.set()
        return use("slow")

    task = asyncio.create_task(run(tmp_path, answer))
    await started.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
