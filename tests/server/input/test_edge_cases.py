"""Rare interactions of a handler that requests input and its client; each was a defect once, or could be one."""

from __future__ import annotations

import asyncio
import gc
from decimal import Decimal
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from hypothesis import given, strategies as st

from accord import Context, Server
from accord.errors import ToolError
from accord.limits import Limits
from accord.messages.tools import ToolAnnotations
from accord.server.input import request_state, suspended_calls
from accord.server.input.questions import Elicit, Roots
from accord.server.input.request_state import StateStore, canonical
from accord.session.pending_request import PendingRequest

from tests.clock import Clock
from tests.server.input.caller import asks, caller, questions, retry, texts
from tests.waiting import turns

SAFE = ToolAnnotations(read_only_hint=True)
MARKS = [None, SAFE]


@pytest.mark.parametrize("marks", MARKS)
async def test_once_is_made_once_for_all_concurrent_calls(marks: ToolAnnotations | None) -> None:
    server = Server("test")
    made = 0

    async def make() -> int:
        nonlocal made
        made += 1
        await asyncio.sleep(0)
        return made

    @server.tool(annotations=marks)
    async def twice(ctx: Context) -> str:
        return str(await asyncio.gather(ctx.once("key", make), ctx.once("key", make)))

    for revision in ("2025-11-25", "2026-07-28"):
        made = 0
        async with caller(server, revision) as client:
            assert texts(await client.call("twice")) == "[1, 1]"


@pytest.mark.parametrize("marks", MARKS)
async def test_arguments_beyond_64_bits_can_be_asked_about(marks: ToolAnnotations | None) -> None:
    server = Server("test")

    @server.tool(annotations=marks)
    async def big(n: int, ctx: Context) -> str:
        await ctx.elicit("Sure?", bool)
        return str(n)

    async with caller(server) as client:
        said = await client.through("tools/call", {"name": "big", "arguments": {"n": 1 << 70}})
        assert texts(said) == str(1 << 70)


async def test_a_call_that_stopped_waiting_for_an_answer_gives_its_result_to_the_retry(clock: Clock) -> None:
    server = Server("test")

    @server.tool
    async def patient(ctx: Context) -> str:
        try:
            async with asyncio.timeout(30):
                await ctx.elicit("Name?", str)
        except TimeoutError:
            return "nobody"
        return "somebody"

    async with caller(server) as client:
        said = await client.call("patient")
        await clock.jump(31)
        assert texts(await client.call("patient", **retry(said))) == "nobody"
        assert texts(await client.call("patient", **retry(said))) == "nobody"


async def test_an_abandoned_request_is_not_sent_again(clock: Clock) -> None:
    server = Server("test")
    gave_up = asyncio.Event()

    @server.tool
    async def patient(ctx: Context) -> str:
        try:
            async with asyncio.timeout(30):
                await ctx.elicit("First?", str)
        except TimeoutError:
            gave_up.set()
        second = await ctx.elicit("Second?", str)
        return str(second.data)

    async with caller(server) as client:
        said = await client.call("patient")
        await clock.jump(31)
        assert gave_up.is_set()
        said = await client.call("patient", requestState=said["result"]["requestState"])
        assert [asked["params"]["message"] for asked in questions(said).values()] == ["Second?"]
        assert texts(await client.call("patient", **retry(said))) == "answer to Second?"


@pytest.mark.parametrize("marks", MARKS)
async def test_a_resource_that_requests_input_can_be_read_twice_at_once(marks: ToolAnnotations | None) -> None:
    server = Server("test")

    @server.resource("test://asks")
    async def resource(name: Annotated[str, Elicit("Name?")]) -> str:
        return name

    @server.tool(annotations=marks)
    async def twice(ctx: Context) -> str:
        both = await asyncio.gather(ctx.read_resource("test://asks"), ctx.read_resource("test://asks"))
        return " ".join(one[0].text or "" for one in both)

    async with caller(server) as client:
        said = await client.call("twice")
        assert len(questions(said)) == 1
        assert texts(await client.call("twice", **retry(said))) == "answer to Name? answer to Name?"


async def test_a_run_that_takes_long_is_neither_stopped_nor_forgotten(clock: Clock) -> None:
    server = Server("test", limits=Limits(answer_seconds=600))
    ended = asyncio.Event()

    @server.tool
    async def long(ctx: Context) -> str:
        await ctx.ask(Elicit("A?", str), Elicit("B?", str))
        await ended.wait()
        return "done"

    @server.tool
    async def short(sure: Annotated[bool, Elicit("Sure?")]) -> str:
        return "short"

    async with caller(server) as client:
        said = await client.call("long")
        await clock.jump(590)
        said = await client.call("long", requestState=said["result"]["requestState"])
        ids = [client.send("tools/call", {"name": "long", "arguments": {}, **retry(said)})]
        await clock.jump(100)
        assert texts(await client.through("tools/call", {"name": "short", "arguments": {}})) == "short"
        ids.append(client.send("tools/call", {"name": "long", "arguments": {}, **retry(said)}))
        await clock.jump(0)
        ended.set()
        assert [texts(await client.answer(id)) for id in ids] == ["done", "done"]


async def test_a_handler_may_clean_up_before_its_server_has_ended() -> None:
    server = Server("test", limits=Limits(close_seconds=100))  # a slow machine tidies up in time, too
    tidied: list[bool] = []

    @server.tool
    async def tidy(ctx: Context) -> str:
        try:
            await ctx.elicit("Sure?", bool)
        finally:
            await turns(100)
            tidied.append(True)
        return "done"

    async with caller(server) as client:
        assert asks(await client.call("tidy"))
    assert tidied


@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_resource_with_a_question_does_not_spoil_the_time_of_its_tool(
    marks: ToolAnnotations | None, revision: str
) -> None:
    server = Server("test", limits=Limits(tool_seconds=5))

    @server.resource("test://asks")
    async def resource(ctx: Context) -> str:
        return str((await ctx.elicit("Name?", str)).data)

    @server.tool(annotations=marks)
    async def both(ctx: Context) -> str:
        first = await ctx.read_resource("test://asks")
        second = await ctx.elicit("Second?", str)
        return f"{first[0].text} {second.data}"

    async with caller(server, revision) as client:
        said = await client.through("tools/call", {"name": "both", "arguments": {}})
        assert texts(said) == "answer to Name? answer to Second?"


async def test_the_end_of_a_handler_ends_what_it_left_waiting() -> None:
    server = Server("test")
    left: list[asyncio.Task[Any]] = []

    @server.tool
    async def careless(ctx: Context) -> str:
        left.append(asyncio.create_task(ctx.elicit("Forgotten?", str)))
        await ctx.elicit("Asked?", str)
        left.append(asyncio.create_task(ctx.elicit("Late?", str)))
        await asyncio.sleep(0)
        return "done"

    async with caller(server) as client:
        said = await client.call("careless")
        assert len(questions(said)) == 2
        assert texts(await client.call("careless", **retry(said))) == "done"
        await asyncio.wait(left, timeout=100)
        assert all(task.done() for task in left)


async def test_parts_of_a_round_do_not_pile_up() -> None:
    server = Server("test")

    @server.tool
    async def pair(ctx: Context) -> str:
        await ctx.ask(Elicit("A?", str), Roots())
        return "done"

    async with caller(server) as client:
        said = first = await client.call("pair")
        for _ in range(50):
            said = await client.call("pair", requestState=said["result"]["requestState"], inputResponses={})
            assert asks(said)
        (run,) = server.round_trips.suspended_calls._runs.values()
        assert len(run._steps) == 1
        assert texts(await client.call("pair", **retry(first))) == "done"
        assert texts(await client.call("pair", **retry(said))) == "done"


def exchanges() -> list[PendingRequest]:
    """Every request that something in this process still holds; other tests may have left some."""
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, PendingRequest)]


async def test_what_ended_holds_no_more_than_its_outcomes() -> None:
    server = Server("test")

    @server.tool
    async def take(text: str, sure: Annotated[bool, Elicit("Sure?")]) -> str:
        return str(len(text))

    before = exchanges()
    async with caller(server) as client:
        said = await client.call("take", {"text": "x" * 100_000})
        assert texts(await client.call("take", {"text": "x" * 100_000}, **retry(said))) == "100000"
        left = [one for one in exchanges() if not any(one is other for other in before)]
        assert not left, "the requests are let go of"
        assert texts(await client.call("take", {"text": "x" * 100_000}, **retry(said))) == "100000"


async def test_a_handler_that_requests_input_after_the_disconnect_ends() -> None:
    server = Server("test", limits=Limits(close_seconds=0.2))
    heard: list[str] = []

    @server.tool
    async def stubborn(ctx: Context) -> str:
        try:
            await ctx.elicit("First?", str)
        except asyncio.CancelledError:
            try:
                await ctx.elicit("Really?", str)
            except ToolError as no:
                heard.append(str(no))
        return "done"

    async with caller(server) as client:
        assert asks(await client.call("stubborn"))
    assert len(heard) == 1


async def test_the_text_of_a_declared_question_shows_defaults_too() -> None:
    server = Server("test")

    @server.tool
    async def wipe(sure: Annotated[bool, Elicit("Delete {path} {n}?")], path: str = "/tmp", n: int = 3) -> str:
        return path

    async with caller(server) as client:
        (asked,) = questions(await client.call("wipe")).values()
        assert asked["params"]["message"] == "Delete /tmp 3?"


async def test_a_value_in_the_text_of_a_question_cannot_pass_for_the_text() -> None:
    server = Server("test")

    @server.tool
    async def wipe(path: str, sure: Annotated[bool, Elicit("Delete {path}?\nThis cannot be undone.")]) -> str:
        return path

    async with caller(server) as client:
        path = "a.txt?\r\n\nNo, keep \u202etxt.a\u2066\x1b[2J é"
        (asked,) = questions(await client.call("wipe", {"path": path})).values()
        text, _, rest = asked["params"]["message"].partition("\n")
        assert text == r"Delete a.txt?\r\n\nNo, keep \u202etxt.a\u2066\x1b[2J é?"
        assert rest == "This cannot be undone."
        (asked,) = questions(await client.call("wipe", {"path": "x" * 5_000})).values()
        assert asked["params"]["message"] == f"Delete {'x' * 1_000}… (5,000 characters)?\nThis cannot be undone."


async def test_a_round_can_be_answered_in_parts() -> None:
    server = Server("test")

    @server.tool
    async def pair(ctx: Context) -> str:
        a, b, c = await ctx.ask(*(Elicit(text, str) for text in ("A?", "B?", "C?")))
        return f"{a.data} {b.data} {c.data}"

    async with caller(server) as client:
        said = await client.call("pair")
        for left in (2, 1):
            more = retry(said)
            key = next(iter(more["inputResponses"]))
            said = await client.call("pair", **{**more, "inputResponses": {key: more["inputResponses"][key]}})
            assert len(questions(said)) == left
        assert texts(await client.call("pair", **retry(said))) == "answer to A? answer to B? answer to C?"


def slow_server() -> tuple[Server, asyncio.Event, asyncio.Event]:
    """A tool `slow` that asks, says that it has begun, and waits until it may go on."""
    server = Server("test")
    began, go_on = asyncio.Event(), asyncio.Event()

    @server.tool
    async def slow(ctx: Context) -> str:
        await ctx.elicit("Sure?", bool)
        began.set()
        await go_on.wait()
        return "done"

    return server, began, go_on


@pytest.mark.parametrize("both", [True, False])
async def test_the_request_that_is_cancelled_last_takes_the_handler_with_it(both: bool) -> None:
    server, began, go_on = slow_server()

    async with caller(server) as client:
        more = retry(await client.call("slow"))
        ids = [client.send("tools/call", {"name": "slow", "arguments": {}, **more}) for _ in range(2)]
        await began.wait()
        for id in ids if both else ids[:1]:
            client.cancel(id)
        await client.ask("tools/list", {})
        await asyncio.sleep(0)
        go_on.set()
        if both:
            assert "was cancelled while it ran" in texts(await client.call("slow", **more))
        else:
            assert texts(await client.answer(ids[1])) == "done"
            assert texts(await client.call("slow", **more)) == "done"
        assert not set(client.heard) & set(ids[: 1 + both])


async def test_a_call_that_goes_on_over_another_connection_outlives_the_first() -> None:
    server, began, go_on = slow_server()

    async with caller(server) as second:
        async with caller(server) as first:
            more = retry(await first.call("slow"))
            id = second.send("tools/call", {"name": "slow", "arguments": {}, **more})
            await began.wait()
        go_on.set()
        assert texts(await second.answer(id)) == "done"


async def test_the_time_of_what_begins_during_an_elicitation_is_paused_too(clock: Clock) -> None:
    server = Server("test", limits=Limits(tool_seconds=30))
    read = asyncio.Event()

    @server.resource("test://slow")
    async def slow() -> str:
        await read.wait()
        return "read"

    @server.tool
    async def both(ctx: Context) -> str:
        async def later() -> str:
            await asyncio.sleep(0)
            return (await ctx.read_resource("test://slow"))[0].text or ""

        answer, text = await asyncio.gather(ctx.elicit("Sure?", str), later())
        return f"{answer.data} {text}"

    async with caller(server) as client:
        said = await client.call("both")
        await clock.jump(100)
        read.set()
        await clock.jump(0)
        assert texts(await client.call("both", **retry(said))) == "answer to Sure? read"


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
