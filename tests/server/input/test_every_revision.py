"""One handler, every revision: the same server asks by request, or by result, or says why it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import pytest

from accord import Context, Server
from accord.errors import AnswerError
from accord.messages.revision import REVISIONS, RULES
from accord.messages.tools import Tool, ToolAnnotations
from accord.server.input.questions import Accepted, Cancelled, Declined, Elicit, ElicitUrl, Roots, Sample, Sampled
from accord.server.input.roots import RootList

from tests.clock import Clock
from tests.server.input.caller import JSON, Later, Refused, asks, caller, params_of, questions, retry, texts, yes

SAFE = ToolAnnotations(read_only_hint=True)
ELICIT = ["2025-06-18", "2025-11-25", "2026-07-28"]
NO_ELICIT = ["2024-11-05", "2025-03-26"]
BY_REQUEST, BY_RESULT = REVISIONS[:-1], REVISIONS[-1]

Name = Annotated[str, Elicit("Name for {what}?")]


def asking_server() -> Server:
    """The same questions, declared and in the body, from tools, prompts and resources."""
    server = Server("everywhere")

    async def in_the_body(what: str, ctx: Context) -> str:
        name = await ctx.elicit(f"Name for {what}?", str)
        said = await ctx.sample(f"About {name.data}")
        return f"{name.data} | {said.text} | {(await ctx.list_roots())[0].uri}"

    async def declared(what: str, name: Name, folders: Annotated[RootList, Roots()]) -> str:
        return f"{name} | {folders[0].uri}"

    async def with_default(what: str, name: Name = "nobody") -> str:
        return f"{name} for {what}"

    async def sampled(what: str, whole: Annotated[Sampled, Sample("Say")], text: Annotated[str, Sample("Say")]) -> str:
        return f"{whole.model}: {text}"

    def plain(what: str, name: Name) -> str:
        return f"{name} for {what}"

    for function in (in_the_body, declared, with_default, sampled, plain):
        name = function.__name__
        server.tool(name=name)(function)
        server.tool(name=f"safe_{name}", annotations=SAFE)(function)
        server.prompt(name=name)(function)
        server.resource(f"test://{name}/{{what}}")(function)
    return server


def places(name: str) -> list[tuple[str, JSON]]:
    """Where a handler is: as a tool, a tool that may run again, a prompt, a resource."""
    arguments = {"what": "it"}
    return [
        ("tools/call", params_of("tools/call", name, arguments)),
        ("tools/call", params_of("tools/call", f"safe_{name}", arguments)),
        ("prompts/get", params_of("prompts/get", name, arguments)),
        ("resources/read", {"uri": f"test://{name}/it"}),
    ]


async def everywhere(name: str, revision: str, **options: Any) -> list[JSON]:
    """What the handler gives, in each place."""
    async with caller(asking_server(), revision, **options) as client:
        found = [await client.through(method, params) for method, params in places(name)]
        assert bool(client.asked) == (RULES[revision].server_requests and any("result" in one for one in found))
    return found


def why(said: JSON) -> str:
    """Why it failed, as the model or the client is told."""
    if "error" in said:
        return str(said["error"]["message"])
    assert said["result"]["isError"]
    return texts(said)


@pytest.mark.parametrize("revision", ELICIT)
@pytest.mark.parametrize(
    ("name", "gives"),
    [
        ("in_the_body", "answer to Name for it? | answer to About answer to Name for it? | file:///tmp"),
        ("declared", "answer to Name for it? | file:///tmp"),
        ("with_default", "answer to Name for it? for it"),
        ("sampled", "m: answer to Say"),
        ("plain", "answer to Name for it? for it"),
    ],
)
async def test_one_handler_requests_input_in_every_revision_that_has_it(name: str, gives: str, revision: str) -> None:
    assert [texts(said) for said in await everywhere(name, revision)] == [gives] * 4


@pytest.mark.parametrize("revision", NO_ELICIT)
@pytest.mark.parametrize("name", ["in_the_body", "declared", "plain"])
async def test_where_there_is_no_such_question_the_error_names_the_revision(name: str, revision: str) -> None:
    async with caller(asking_server(), revision) as client:
        for method, params in places(name):
            said = await client.ask(method, params)
            assert f"{revision} has no elicitation/create" in why(said)
            assert ("error" in said) == (method != "tools/call")
        assert not client.asked


@pytest.mark.parametrize("revision", NO_ELICIT)
async def test_where_there_is_no_such_question_a_default_is_taken(revision: str) -> None:
    async with caller(asking_server(), revision) as client:
        for method, params in places("with_default"):
            assert texts(await client.ask(method, params)) == "nobody for it"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_sampling_and_roots_are_requested_in_every_revision(revision: str) -> None:
    assert [texts(said) for said in await everywhere("sampled", revision)] == ["m: answer to Say"] * 4


@pytest.mark.parametrize("revision", ELICIT)
async def test_a_capability_that_is_not_declared_is_not_used(revision: str) -> None:
    async with caller(asking_server(), revision, capabilities={"roots": {}}) as client:
        for name in ("in_the_body", "declared"):
            for method, params in places(name):
                said = await client.ask(method, params)
                if revision == BY_RESULT:
                    assert said["error"]["code"] == -32021
                    assert said["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
                else:
                    assert "elicitation" in why(said)
        for method, params in places("with_default"):
            assert texts(await client.ask(method, params)) == "nobody for it"
        assert not client.asked


@pytest.mark.parametrize("revision", ELICIT)
async def test_a_declared_parameter_is_not_the_models_to_give(revision: str) -> None:
    async with caller(asking_server(), revision) as client:
        listed = (await client.ask("tools/list", {}))["result"]["tools"]
        assert all(set(tool["inputSchema"]["properties"]) == {"what"} for tool in listed)
        for name in ("declared", "safe_declared", "plain"):
            given = {"what": "it", "name": "mine", "folders": []}
            said = await client.through("tools/call", params_of("tools/call", name, given))
            assert "mine" not in texts(said)
        said = await client.call("declared", {"what": "it"}, inputResponses={"name": {"action": "decline"}})
        assert asks(said) == (revision == BY_RESULT), "answers to nothing"


# --- kinds of question -------------------------------------------------------------------------------------------


def one_tool(function: Callable[..., Any], marks: ToolAnnotations | None = None, **options: Any) -> Server:
    server = Server("one")
    server.tool(name="one", annotations=marks, **options)(function)
    return server


@pytest.mark.parametrize("marks", [None, SAFE])
async def test_a_page_is_visited_where_the_revision_has_that(marks: ToolAnnotations | None) -> None:
    async def page(ctx: Context) -> str:
        return str(await ctx.elicit_url("Log in", "https://example.com/login"))

    for revision in REVISIONS:
        async with caller(one_tool(page, marks), revision) as client:
            said = await client.call("one")
            asked = questions(said).values() if asks(said) else client.asked
            for question in asked:
                assert question["params"]["mode"] == "url"
                assert question["params"]["url"] == "https://example.com/login"
                assert ("elicitationId" in question["params"]) == (revision == "2025-11-25")
            said = await client.call("one", **retry(said)) if asks(said) else said
            if RULES[revision].elicitation_urls:
                assert texts(said).startswith("Accepted")
            else:
                assert revision in why(said)
        without: JSON = {"elicitation": {"form": {}}}
        async with caller(one_tool(page, marks), revision, capabilities=without) as client:
            said = await client.call("one")
            if revision == BY_RESULT:
                assert said["error"]["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}
            else:
                assert why(said)
            assert not client.asked


@pytest.mark.parametrize("marks", [None, SAFE])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_model_is_given_tools_where_the_revision_has_that(revision: str, marks: ToolAnnotations | None) -> None:
    tool = Tool(name="add", input_schema={"type": "object"})

    async def think(ctx: Context) -> str:
        return (await ctx.sample("Think", tools=[tool], tool_choice="auto")).text

    async with caller(one_tool(think, marks), revision) as client:
        said = await client.through("tools/call", {"name": "one"})
        if RULES[revision].sampling_tools:
            assert texts(said) == "answer to Think"
        else:
            assert f"{revision} has no tools in sampling" in why(said)
    async with caller(one_tool(think, marks), revision, capabilities={"sampling": {}}) as client:
        said = await client.ask("tools/call", {"name": "one"})
        if revision == BY_RESULT:
            assert said["error"]["data"] == {"requiredCapabilities": {"sampling": {"tools": {}}}}
        else:
            assert why(said)
        assert not client.asked


@pytest.mark.parametrize("revision", ELICIT)
@pytest.mark.parametrize("marks", [None, SAFE])
async def test_every_outcome_of_a_form_is_the_same_everywhere(revision: str, marks: ToolAnnotations | None) -> None:
    async def ask(ctx: Context) -> str:
        return str(await ctx.elicit("Sure?", bool))

    async def whole(sure: Annotated[Accepted[bool] | Declined | Cancelled, Elicit("Sure?")]) -> str:
        return str(sure)

    for function in (ask, whole):
        for action, outcome in [("accept", Accepted(True)), ("decline", Declined()), ("cancel", Cancelled())]:
            answer: JSON = {"action": action, **({"content": {"value": True}} if action == "accept" else {})}
            async with caller(one_tool(function, marks), revision, reply=partial(just, answer)) as client:
                said = await client.through("tools/call", {"name": "one"}, client.reply)
                assert texts(said) == str(outcome)


def just(answer: JSON, question: JSON) -> JSON:
    return answer


@pytest.mark.parametrize("revision", BY_REQUEST)
async def test_an_error_of_the_client_is_an_answer_error(revision: str) -> None:
    async def ask(ctx: Context) -> str:
        with pytest.raises(AnswerError, match="not now"):
            await ctx.sample("Say")
        return "went on"

    def refuse(question: JSON) -> JSON:
        raise Refused("not now")

    async with caller(one_tool(ask), revision, reply=refuse) as client:
        assert texts(await client.call("one")) == "went on"


# --- several at once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ELICIT)
@pytest.mark.parametrize("marks", [None, SAFE])
async def test_concurrent_requests_are_sent_at_once(revision: str, marks: ToolAnnotations | None) -> None:
    async def together(ctx: Context) -> str:
        a, b, c = await ctx.ask(Elicit("A?", str), Sample("B?"), Roots())
        return f"{a.data} {b.text} {len(c)}"

    async def gathered(ctx: Context) -> str:
        a, b, c = await asyncio.gather(ctx.elicit("A?", str), ctx.sample("B?"), ctx.list_roots())
        return f"{a.data} {b.text} {len(c)}"

    for function in (together, gathered):
        async with caller(one_tool(function, marks), revision) as client:
            said = await client.call("one")
            if asks(said):
                assert len(questions(said)) == 3
                said = await client.call("one", **retry(said))
            else:
                assert len(client.asked) == 3
            assert texts(said) == "answer to A? answer to B? 1"


async def test_a_question_that_cannot_be_sent_holds_the_others_back() -> None:
    async def ask(ctx: Context) -> str:
        await ctx.ask(Elicit("A?", str), ElicitUrl("B?", "https://example.com"))
        return "never"

    async with caller(one_tool(ask), "2025-06-18") as client:
        assert "2025-06-18" in why(await client.call("one"))
        assert not client.asked


# --- time, progress, log -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ELICIT)
async def test_the_time_of_a_user_is_not_the_time_of_a_tool(revision: str, clock: Clock) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def slow(ctx: Context) -> str:
        try:
            await ctx.elicit("Sure?", bool)
            answered.set()
            await asyncio.Event().wait()
        finally:
            asked.set()
        return "never"

    held: list[JSON] = []

    def hold(question: JSON) -> JSON:
        held.append(question)
        raise Later

    async with caller(one_tool(slow, timeout=30), revision, reply=hold) as client:
        id = client.send("tools/call", {"name": "one", "arguments": {}})
        await client.until(lambda: bool(held) or id in client.heard)
        await clock.jump(300)
        assert not asked.is_set(), "the person may take their time"
        if held:
            client.say({"id": held[0]["id"], "result": yes(held[0])})
        else:
            said = await client.answer(id)
            id = client.send("tools/call", {"name": "one", "arguments": {}, **retry(said)})
        await answered.wait()
        await clock.jump(29)
        assert not asked.is_set(), "it has the rest of its time"
        await clock.jump(2)
        assert "took longer than 30 s" in texts(await client.answer(id))


async def test_a_resumed_run_belongs_to_the_retry() -> None:
    parked, told = asyncio.Event(), asyncio.Event()
    seen: list[tuple[Any, str | None]] = []

    async def tell(ctx: Context) -> None:
        await parked.wait()
        ctx.report_progress(2)
        ctx.info("parked")
        told.set()

    async def work(ctx: Context) -> str:
        seen.append((ctx.request_id, ctx.trace.get("traceparent")))
        ctx.report_progress(1)
        ctx.info("first")
        telling = asyncio.create_task(tell(ctx))
        await ctx.elicit("Go on?", bool)
        await telling
        seen.append((ctx.request_id, ctx.trace.get("traceparent")))
        ctx.report_progress(3)
        ctx.info("second")
        return "done"

    async with caller(one_tool(work)) as client:
        level = {"io.modelcontextprotocol/logLevel": "info"}
        params = {"name": "one", "arguments": {}}
        said = await client.ask("tools/call", params, progressToken="one", traceparent="a", **level)
        parked.set()
        await told.wait()
        said = await client.ask("tools/call", {**params, **retry(said)}, progressToken="two", traceparent="b", **level)
        assert texts(said) == "done"
        assert seen == [(1, "a"), (2, "b")]
        progress = [one["params"] for one in client.told if one["method"] == "notifications/progress"]
        assert [(one["progressToken"], one["progress"]) for one in progress] == [("one", 1), ("two", 3)]
        logged = [one["params"]["data"] for one in client.told if one["method"] == "notifications/message"]
        assert logged == ["first", "second"]


async def test_a_retry_without_a_token_receives_no_progress() -> None:
    async def work(ctx: Context) -> str:
        ctx.report_progress(1)
        await ctx.elicit("Go on?", bool)
        ctx.report_progress(2)
        ctx.info("never")
        return "done"

    async with caller(one_tool(work)) as client:
        params = {"name": "one", "arguments": {}}
        said = await client.ask("tools/call", params, progressToken=5)
        heard = len(client.told)
        assert texts(await client.ask("tools/call", {**params, **retry(said)})) == "done"
        assert len(client.told) == heard == 1
