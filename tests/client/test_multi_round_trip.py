"""Requests whose answer asks for input (2026-07-28): the rounds they take, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from accord import Client, ClientLimits, Limits
from accord.client.handlers import ClientContext
from accord.errors import (
    InternalError,
    InvalidResult,
    Mismatch,
    NotSupported,
    ProtocolError,
    RemoteProtocolError,
    RequestTimeout,
    SamplingDeclined,
)
from accord.messages.elicitation import ElicitParams, ElicitResult

from tests.client.raw import Message, RawServer, raw_server
from tests.clock import Clock

S26 = "2026-07-28"

CALLS: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "tools/call": lambda client: client.call_tool("book", {"city": "Oslo"}, meta={"com.example/a": 1}),
    "prompts/get": lambda client: client.get_prompt("plan", {"city": "Oslo"}),
    "resources/read": lambda client: client.read_resource("res://a"),
}
RESULTS: dict[str, Message] = {
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "done"}}]},
    "resources/read": {"contents": [{"uri": "res://a", "text": "done"}], "ttlMs": 1, "cacheScope": "public"},
}


def elicit(message: str = "Who?", **more: Any) -> Message:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema, **more}}


def sample(text: str = "Hi", **more: Any) -> Message:
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 9, **more}}


ROOTS: Message = {"method": "roots/list"}


def answers(**more: Any) -> dict[str, Any]:
    """Options of a client that answers everything."""
    return {"elicitation": lambda params: "Ada", "sampling": lambda params: "Hello", "roots": ["/a"], **more}


def bare(message: Message) -> Message:
    """The params of a request without what the revision adds to each."""
    params = dict(message["params"])
    params["_meta"] = {key: value for key, value in params["_meta"].items() if not key.startswith("io.")}
    return params


@pytest.mark.parametrize("method", CALLS)
async def test_all_questions_are_answered_in_one_retry_with_the_state_as_it_came(method: str) -> None:
    state = 'as it came: é \u2028 \\ "quoted" 🎉 =='
    async with raw_server(S26, **answers()) as (server, client):
        call = asyncio.ensure_future(CALLS[method](client))
        first = await server.hear()
        asked = {"a": elicit(), "b": sample(), "c": ROOTS, "": elicit("Again?")}
        server.require(first, inputRequests=asked, requestState=state)
        second = await server.hear()
        server.answer(second, **RESULTS[method])
        result = await call
    assert (second["method"], second["id"] != first["id"]) == (method, True)
    params = bare(second)
    assert params.pop("requestState") == state
    assert params.pop("inputResponses") == {
        "a": {"action": "accept", "content": {"name": "Ada"}},
        "b": {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "unknown"},
        "c": {"roots": [{"uri": "file:///a"}]},
        "": {"action": "accept", "content": {"name": "Ada"}},
    }
    assert params == bare(first), "nothing else differs"
    assert "done" in str(result)


async def test_a_retry_carries_the_last_round_only_and_a_state_only_when_there_is_one() -> None:
    async with raw_server(S26, **answers()) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book"))
        server.require(await server.hear(), inputRequests={"a": elicit()}, requestState="one")
        second = await server.hear()
        server.require(second, inputRequests={"b": ROOTS})
        third = await server.hear()
        server.require(third, requestState="")
        fourth = await server.hear()
        server.require(fourth, inputRequests={}, requestState="two")
        fifth = await server.hear()
        server.done(fifth)
        assert (await call).text == "done"
    carried = [
        (sorted(each["params"].get("inputResponses", ())), each["params"].get("requestState"))
        for each in (second, third, fourth, fifth)
    ]
    assert carried == [(["a"], "one"), (["b"], None), ([], ""), ([], "two")]
    assert "inputResponses" not in fourth["params"]
    assert len({each["id"] for each in (second, third, fourth, fifth)}) == 4


async def test_declined_and_cancelled_questions_are_answers_too() -> None:
    given = {"Who?": None, "Really?": ElicitResult(action="cancel")}
    async with raw_server(S26, elicitation=lambda params: given[params.message]) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book"))
        server.require(await server.hear(), inputRequests={"a": elicit(), "b": elicit("Really?")})
        retry = await server.hear()
        server.done(retry)
        await call
    assert retry["params"]["inputResponses"] == {"a": {"action": "decline"}, "b": {"action": "cancel"}}


async def test_questions_of_one_answer_are_handled_concurrently() -> None:
    gate = asyncio.Barrier(3)

    async def together(params: ElicitParams) -> str:
        await gate.wait()
        return params.message

    async with raw_server(S26, elicitation=together) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book"))
        server.require(await server.hear(), inputRequests={key: elicit(key) for key in "abc"})
        retry = await server.hear()
        server.done(retry)
        await call
    assert {key: each["content"]["name"] for key, each in retry["params"]["inputResponses"].items()} == {
        key: key for key in "abc"
    }


async def test_the_context_names_the_request_that_waits() -> None:
    seen: list[ClientContext] = []
    async with raw_server(S26, elicitation=lambda params, context: seen.append(context)) as (server, client):
        call = asyncio.ensure_future(client.get_prompt("plan"))
        server.require(await server.hear(), inputRequests={"a": elicit()})
        server.answer(await server.hear(), **RESULTS["prompts/get"])
        await call
    assert [(context.method, context.revision) for context in seen] == [("prompts/get", S26)]


async def test_each_round_reports_its_progress() -> None:
    steps: list[float] = []
    async with raw_server(S26, **answers()) as (server, client):
        call = asyncio.ensure_future(
            client.call_tool("book", on_progress=lambda done, total, message: steps.append(done))
        )
        for number in (1, 2):
            request = await server.hear()
            token = request["params"]["_meta"]["progressToken"]
            server.say({"method": "notifications/progress", "params": {"progressToken": token, "progress": number}})
            if number == 1:
                server.require(request, inputRequests={"a": elicit()})
        server.done(request)
        await call
    assert steps == [1, 2]


# --- what cannot be answered -----------------------------------------------------------------------------------------


async def ended(server: RawServer, client: Client, error: type[Exception], match: str, **asks: Any) -> Exception:
    """A call that ends with an error: nothing is sent again, and the next call goes well."""
    call = asyncio.ensure_future(client.call_tool("book"))
    server.require(await server.hear(), **asks)
    with pytest.raises(error, match=match) as caught:
        await call
    call = asyncio.ensure_future(client.call_tool("fine"))
    request = await server.hear()
    assert request["params"]["name"] == "fine", "something was sent again"
    server.done(request)
    await call
    return caught.value


@pytest.mark.parametrize("asked", [elicit(), sample(), ROOTS, {"method": "tasks/dream", "params": 5}])
async def test_what_nobody_answers_is_not_supported_and_affects_nothing_else(asked: Message) -> None:
    given = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
    bothered: list[Any] = []
    options = answers(elicitation=bothered.append, sampling=bothered.append, roots=lambda: bothered.append(1))
    options.pop(given.get(asked["method"], ""), None)
    other = elicit() if asked["method"] != "elicitation/create" else ROOTS
    async with raw_server(S26, **options) as (server, client):
        match = f"memory asks for {asked['method']}, which"
        await ended(server, client, NotSupported, match, inputRequests={"a": other, "b": asked})
    assert not bothered


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        (elicit(mode="url", url="https://example.com"), "elicitation by url"),
        (sample(tools=[{"name": "t", "inputSchema": {}}]), "cannot use tools"),
    ],
)
async def test_what_was_not_declared_is_not_supported(asked: Message, match: str) -> None:
    async with raw_server(S26, **answers()) as (server, client):
        await ended(server, client, NotSupported, match, inputRequests={"a": asked}, requestState="s")


@pytest.mark.parametrize(
    "asks",
    [
        {},
        {"inputRequests": {}},
        {"inputRequests": None, "requestState": None},
        {"inputRequests": 5},
        {"inputRequests": [elicit()]},
        {"inputRequests": {"a": 5}},
        {"inputRequests": {"a": {"method": 5}}},
        {"inputRequests": {"a": {"method": "elicitation/create"}}},
        {"inputRequests": {"a": elicit(mode="voice")}},
        {"inputRequests": {"a": {"method": "roots/list", "params": 5}}},
        {"inputRequests": {"a": {"method": "elicitation/create", "params": {"message": "no form"}}}},
        {"inputRequests": {"a": sample(messages=5)}},
        {"inputRequests": {"a": elicit()}, "requestState": 5},
        {"inputRequests": {"a": elicit()}, "requestState": "s" * 65_537},
        {"requestState": "s" * 65_537},
        {"inputRequests": {"a" * 1_025: elicit()}},
        {"inputRequests": {"a": {"method": "m" * 1_025}}},
        {"inputRequests": {str(number): elicit() for number in range(300)}},
    ],
)
async def test_an_invalid_input_request_is_an_invalid_result(asks: Message) -> None:
    bothered: list[Any] = []
    async with raw_server(S26, **answers(elicitation=bothered.append)) as (server, client):
        error = await ended(server, client, InvalidResult, "not as it should", **asks)
        assert isinstance(error, InvalidResult)
        assert b"input_required" in error.raw
    assert not bothered


async def test_an_input_request_where_there_may_be_none_is_an_invalid_result() -> None:
    async with raw_server(S26, **answers()) as (server, client):
        listing = asyncio.ensure_future(client.list_tools())
        server.require(await server.hear(), inputRequests={"a": elicit()})
        with pytest.raises(InvalidResult, match="tools/list"):
            await listing
    async with raw_server("2025-11-25", **answers()) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book"))
        server.require(await server.hear(), inputRequests={"a": elicit()})
        with pytest.raises(InvalidResult, match="asking for input"):
            await call


def refuse(params: Any) -> Any:
    raise SamplingDeclined


def fail(*params: Any) -> Any:
    raise ValueError("no disk")


@pytest.mark.parametrize(
    ("asked", "options", "error", "match"),
    [
        (sample(), {"sampling": refuse}, SamplingDeclined, "rejected"),
        (sample(), {"sampling": lambda params: None}, SamplingDeclined, "rejected"),
        (ROOTS, {"roots": fail}, ValueError, "no disk"),
        (elicit(), {"elicitation": fail}, ValueError, "no disk"),
        (elicit(), {"elicitation": lambda params: {"name": 5}}, Mismatch, "name"),
        (elicit(), {"elicitation": fail, "limits": Limits(close_seconds=0.1)}, ValueError, "no disk"),
    ],
)
async def test_a_handler_that_refuses_ends_the_call_with_its_error(
    asked: Message, options: dict[str, Any], error: type[Exception], match: str
) -> None:
    async with raw_server(S26, **answers(**options)) as (server, client):
        await ended(server, client, error, match, inputRequests={"a": asked, "b": ROOTS, "c": sample()})


async def test_the_first_handler_that_fails_ends_the_others() -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def wait(params: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def fail_later(params: Any) -> None:
        await begun.wait()
        raise ValueError("no model")

    async with raw_server(S26, elicitation=wait, sampling=fail_later) as (server, client):
        await ended(server, client, ValueError, "no model", inputRequests={"a": elicit(), "b": sample()})
        assert stopped.is_set()


async def test_a_handler_that_fails_while_it_is_ended_does_not_hide_the_first_error() -> None:
    begun = asyncio.Event()

    async def fail_late(params: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("late")

    async def fail_first(params: Any) -> None:
        await begun.wait()
        raise ValueError("no model")

    async with raw_server(S26, elicitation=fail_late, sampling=fail_first) as (server, client):
        await ended(server, client, ValueError, "no model", inputRequests={"a": elicit(), "b": sample()})


async def test_handlers_that_fail_together_are_one_error() -> None:
    gate = asyncio.Barrier(2)

    async def fail_together(params: Any) -> None:
        await gate.wait()
        raise ValueError("no disk")

    async with raw_server(S26, elicitation=fail_together) as (server, client):
        await ended(server, client, ValueError, "no disk", inputRequests={"a": elicit(), "b": elicit()})


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()], ids=repr)
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_handler_that_wants_to_end_the_program_ends_its_call(error: BaseException, is_async: bool) -> None:
    def leave(params: Any) -> Any:
        raise error

    async def leave_async(params: Any) -> Any:
        raise error

    options = answers(elicitation=leave_async if is_async else leave)
    async with raw_server(S26, **options) as (server, client):
        raised = await ended(server, client, InternalError, "the elicitation handler", inputRequests={"a": elicit()})
        assert raised.__cause__ is error


async def test_a_handler_that_cancels_itself_is_an_error_and_not_a_cancelled_call() -> None:
    async def cancel(params: Any) -> None:
        raise asyncio.CancelledError

    async with raw_server(S26, elicitation=cancel) as (server, client):
        await ended(server, client, InternalError, "cancelled its own task", inputRequests={"a": elicit()})


async def test_a_handler_that_will_not_end_does_not_hold_up_the_call() -> None:
    release = asyncio.Event()

    async def stubborn(params: Any) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    options = answers(elicitation=stubborn, sampling=fail, limits=Limits(close_seconds=0.05))
    async with raw_server(S26, **options) as (server, client):
        await ended(server, client, ValueError, "no disk", inputRequests={"a": elicit(), "b": sample()})
        release.set()


async def test_an_error_that_answers_the_retry_is_raised() -> None:
    async with raw_server(S26, **answers()) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book"))
        server.require(await server.hear(), inputRequests={"a": elicit()})
        server.refuse(await server.hear(), -32602, "this state is not mine")
        with pytest.raises(ProtocolError, match="not mine"):
            await call


# --- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asks", [{"inputRequests": {"a": elicit(), "b": ROOTS}}, {"requestState": "s"}])
async def test_endless_questions_of_a_server_are_an_error_that_names_them(asks: Message) -> None:
    async with raw_server(S26, **answers(limits=Limits(client=ClientLimits(rounds=3)))) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book"))
        for _ in range(4):
            server.require(await server.hear(), **asks)
        named = "elicitation/create, roots/list" if "inputRequests" in asks else "nothing but to be sent again"
        with pytest.raises(RemoteProtocolError, match=rf"after 3 rounds \(ClientLimits.rounds\).*{named}"):
            await call


async def test_the_time_of_a_user_counts_for_no_bound() -> None:
    asked, free = asyncio.Event(), asyncio.Event()

    async def ponder(params: Any) -> str:
        asked.set()
        await free.wait()
        return "Ada"

    async with raw_server(S26, elicitation=ponder) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book", timeout=30, total_timeout=30))
        server.require(await server.hear(), inputRequests={"a": elicit()})
        await asked.wait()
        await Clock().jump(31)
        free.set()
        server.done(await server.hear())
        assert (await call).text == "done"


@pytest.mark.parametrize("bound", ["timeout", "total_timeout"])
async def test_each_round_trip_has_its_time_and_all_of_them_have_one(bound: str) -> None:
    async with raw_server(S26, **answers()) as (server, client):
        times: dict[str, Any] = {bound: 30}
        call = asyncio.ensure_future(client.call_tool("book", **times))
        server.require(await server.hear(), inputRequests={"a": elicit()})
        retry = await server.hear()
        assert retry["params"]["inputResponses"]
        await Clock().jump(31)
        with pytest.raises(RequestTimeout):
            await call


async def test_the_first_round_trip_counts_too() -> None:
    clock = Clock()
    async with raw_server(S26, **answers()) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book", total_timeout=50))
        first = await server.hear()
        await clock.jump(26)
        server.require(first, inputRequests={"a": elicit()})
        retry = await server.hear()
        await clock.jump(26)
        server.done(retry)
        with pytest.raises(RequestTimeout):
            await call


async def test_a_server_that_is_never_ready_is_bounded_by_the_total_time() -> None:
    async def never_ready(server: RawServer) -> None:
        while True:
            server.require(await server.hear(), requestState="s")

    async with raw_server(S26, **answers()) as (server, client):
        busy = asyncio.ensure_future(never_ready(server))
        with pytest.raises(RequestTimeout):
            await client.call_tool("book", total_timeout=0.1)
        busy.cancel()


async def test_an_answer_that_never_comes_is_bounded() -> None:
    async def wait(params: Any) -> None:
        await asyncio.Event().wait()

    async with raw_server(S26, elicitation=wait, limits=Limits(answer_seconds=0.01)) as (server, client):
        await ended(server, client, RequestTimeout, "nobody answered", inputRequests={"a": elicit()})


async def test_a_cancelled_call_cancels_its_handlers_and_sends_nothing() -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def wait(params: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with raw_server(S26, elicitation=wait) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book"))
        server.require(await server.hear(), inputRequests={"a": elicit()}, requestState="s")
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert stopped.is_set()
        call = asyncio.ensure_future(client.call_tool("fine"))
        request = await server.hear()
        assert request["params"]["name"] == "fine"
        server.done(request)
        await call


# --- any program of rounds -------------------------------------------------------------------------------------------

KEYS = st.text(max_size=3)
ASKED = st.one_of(st.builds(elicit, st.text(max_size=5)), st.builds(sample, st.text(max_size=5)), st.just(ROOTS))
ROUND = st.tuples(st.dictionaries(KEYS, ASKED, max_size=3), st.none() | st.text(max_size=5)).filter(
    lambda each: each[0] or each[1] is not None
)


@settings(max_examples=60)
@given(st.lists(ROUND, max_size=3))
def test_each_retry_answers_exactly_the_round_before_it(rounds: list[Any]) -> None:
    asyncio.run(play(rounds))


async def play(rounds: list[tuple[dict[str, Message], str | None]]) -> None:
    async def echo(params: ElicitParams) -> str:
        return params.message

    async def speak(params: Any) -> str:
        return str(params.messages[0].content.text)

    async with raw_server(S26, elicitation=echo, sampling=speak, roots=["/a"]) as (server, client):
        call = asyncio.ensure_future(client.call_tool("book"))
        request = await server.hear()
        ids = {request["id"]}
        for asked, state in rounds:
            given = {"requestState": state} if state is not None else {}
            server.require(request, inputRequests=asked, **given)
            request = await server.hear()
            params = request["params"]
            assert params.get("requestState") == state
            assert {key: said(each) for key, each in params.get("inputResponses", {}).items()} == {
                key: expected(each) for key, each in asked.items()
            }
            assert request["id"] not in ids
            ids.add(request["id"])
        server.done(request)
        assert (await call).text == "done"


def said(answer: Message) -> str:
    if "roots" in answer:
        return str(answer["roots"][0]["uri"])
    return str(answer["content"]["name" if "action" in answer else "text"])


def expected(asked: Message) -> str:
    params = asked.get("params", {})
    if "message" in params:
        return str(params["message"])
    return str(params["messages"][0]["content"]["text"]) if params else "file:///a"
