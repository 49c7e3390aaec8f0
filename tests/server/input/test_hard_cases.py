"""What a review found: questions that cannot be made, clocks that are set back, cancels before the answer is heard."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from hypothesis import given, strategies as st

from accord import Context, Server
from accord.messages.tools import ToolAnnotations
from accord.server.input import request_state, suspended_calls
from accord.server.input.questions import Elicit
from accord.server.input.request_state import StateStore, canonical

from tests.server.input.caller import asks, caller, questions, retry, texts

SAFE = ToolAnnotations(read_only_hint=True)


async def test_a_question_that_cannot_be_made_fails_its_call_and_hangs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("test")

    @server.tool
    async def broken(ctx: Context) -> str:
        return str(await ctx.elicit("Name?", str))

    def fails(*_: Any) -> bytes:
        raise TypeError("no definition")

    monkeypatch.setattr(server.round_trips, "_definition", fails)
    async with caller(server) as client:
        said = (await client.call("broken"))["result"]
    assert said["isError"]
    assert "no definition" in said["content"][0]["text"]


async def test_an_effect_does_not_happen_again_when_the_wall_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = SimpleNamespace(monotonic=0.0, time=0.0)
    real = request_state.time
    fake = SimpleNamespace(
        monotonic=lambda: real.monotonic() + ahead.monotonic,
        time=lambda: real.time() + ahead.time,
    )
    for module in (suspended_calls, request_state):
        monkeypatch.setattr(module, "time", fake)
    server, effects = Server("test"), []

    @server.tool
    def pay(sure: Annotated[bool, Elicit("Pay?")]) -> str:
        effects.append(sure)
        return "paid"

    async with caller(server) as client:
        again = retry(await client.call("pay"))
        assert texts(await client.call("pay", **again)) == "paid"
        ahead.monotonic += 601
        ahead.time += 1  # 600 s were taken back
        other = retry(await client.call("pay"))
        assert texts(await client.call("pay", **other)) == "paid"  # what is over is forgotten here
        late = (await client.call("pay", **again))["result"]
    assert late["isError"]
    assert len(effects) == 2


async def test_a_call_that_is_cancelled_before_its_question_was_received_does_not_wait_for_an_answer() -> None:
    server = Server("test")

    @server.tool
    async def waits(ctx: Context) -> str:
        return str(await ctx.elicit("Name?", str))

    async with caller(server) as client:
        for turns in range(12):
            id = client.send("tools/call", {"name": "waits", "arguments": {}})
            for _ in range(turns):
                await asyncio.sleep(0)
            client.cancel(id)
        asked = await client.call("waits")
        assert questions(asked)
        heard = sum(1 for said in client.heard.values() if asks(said[0]))
        assert len(server.round_trips.suspended_calls.waiting.get("", ())) == heard


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1234567890123456700.5", "1234567890123456789.5"),
        ("1e400", "null"),
        ("1e400", "1e401"),
        ("0.1", "0.10000000000000001"),
        ("1.5", '"1.5"'),
        ("1e1000000", "1e2000000"),
        ("1e99999999999999999999", "1"),
    ],
)
def test_numbers_that_differ_are_bound_apart(one: str, other: str) -> None:
    assert canonical(f'{{"n":{one}}}'.encode()) != canonical(f'{{"n":{other}}}'.encode())


@pytest.mark.parametrize(("one", "other"), [("3.0", "3"), ("1e2", "100"), ("0.50", "5e-1"), ("-0.0", "0")])
def test_numbers_that_are_one_are_bound_as_one(one: str, other: str) -> None:
    assert canonical(f'{{"n":{one}}}'.encode()) == canonical(f'{{"n":{other}}}'.encode())


@given(st.integers(-(10**18), 10**18), st.integers(0, 25), st.integers(0, 9))
def test_a_number_is_bound_as_one_with_and_without_an_exponent(digits: int, places: int, zeros: int) -> None:
    plain = f"{Decimal(digits).scaleb(-places):f}"
    plain += "0" * zeros if "." in plain else "." + "0" * (zeros + 1)
    assert canonical(plain.encode()) == canonical(f"{digits}e-{places}".encode())
    assert Decimal(canonical(plain.encode()).decode()) == Decimal(plain)


async def test_a_decimal_that_was_changed_between_two_rounds_is_refused() -> None:
    server = Server("test")

    @server.tool
    def pay(amount: Decimal, sure: Annotated[bool, Elicit("Pay {amount}?")]) -> str:
        return str(amount)

    async with caller(server) as client:
        asked = await client.ask_raw("tools/call", '{"name": "pay", "arguments": {"amount": 1234567890123456700.5}}')
        again = retry(asked)
        answers = f'"requestState": "{again["requestState"]}", "inputResponses": {{}}'
        arguments = '{"amount": 1234567890123456789.5}'
        said = await client.ask_raw("tools/call", f'{{"name": "pay", "arguments": {arguments}, {answers}}}')
    assert said["error"]["code"] == -32602


async def test_a_state_on_the_shelf_goes_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(request_state, "time", SimpleNamespace(monotonic=lambda: now))
    shelf = StateStore(1_000, 10)
    token = shelf.put(b"x" * 100, "account")
    assert shelf.get(token) == b"x" * 100
    now = 11.0
    shelf.forget()
    with pytest.raises(request_state.StateExpired):
        shelf.get(token)


async def test_a_call_of_many_rounds_keeps_its_last_outcomes_only() -> None:
    server = Server("test")

    @server.tool
    async def goes_on(ctx: Context) -> str:
        for round in range(30):
            await ctx.elicit(f"Round {round}?", bool)
        return "done"

    async with caller(server) as client:
        first = said = await client.call("goes_on")
        while asks(said):
            said = await client.call("goes_on", **retry(said))
        assert texts(said) == "done"
        late = (await client.call("goes_on", **retry(first)))["result"]
        (run,) = server.round_trips.suspended_calls._runs.values()
    assert late["isError"]
    assert "already been answered" in late["content"][0]["text"]
    assert len(run._steps) <= 9


@pytest.mark.parametrize("marks", [None, SAFE])
async def test_once_within_itself_is_an_error_and_no_hang(marks: ToolAnnotations | None) -> None:
    server = Server("test")

    @server.tool(annotations=marks)
    async def loops(ctx: Context) -> str:
        async def make() -> int:
            return await ctx.once("key", make)

        return str(await ctx.once("key", make))

    async with caller(server) as client:
        said = (await client.call("loops"))["result"]
    assert said["isError"]
    assert "calls itself" in said["content"][0]["text"]
