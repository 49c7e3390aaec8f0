"""Middleware with a third parameter: it has the context, and may ask the client."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from accord import CallNext, Context, Elicit, Request, Server, ToolAnnotations, ToolError

from tests.server.input.caller import asks, caller, questions, retry
from tests.server.middleware.transports import WAYS, called, reached, text

ELICIT = ["2025-06-18", "2025-11-25", "2026-07-28"]
READ_ONLY, DESTRUCTIVE = ToolAnnotations(read_only_hint=True), ToolAnnotations(destructive_hint=True)


async def confirm(request: Request, call_next: CallNext, ctx: Context) -> Any:
    """Ask before what cannot be undone."""
    tool = request.tool
    if tool is not None and tool.annotations is not None and tool.annotations.destructive_hint:
        answer = await ctx.elicit(f"Really {request.name} {request.arguments['what']}?", bool)
        if answer.action != "accept" or not answer.data:
            raise ToolError("not confirmed")
    return await call_next(request)


def confirming(**options: Any) -> tuple[Server, list[str]]:
    server, done = Server("test", middleware=[confirm]), []

    @server.tool(annotations=DESTRUCTIVE)
    async def delete(what: str) -> str:
        done.append(what)
        return f"deleted {what}"

    @server.tool(annotations=READ_ONLY)
    def look(what: str) -> str:
        return f"looked at {what}"

    return server, done


@pytest.mark.parametrize("revision", ELICIT)
async def test_a_confirmation_is_requested_once_and_the_body_runs_once(revision: str) -> None:
    server, done = confirming()
    async with caller(server, revision) as client:
        assert text(await client.through(*called("delete", what="it"))) == "deleted it"
        assert done == ["it"]
        assert text(await client.ask(*called("look", what="it"))) == "looked at it"


async def test_in_2026_a_question_is_answered_with_the_next_request_and_a_repeated_one_changes_nothing() -> None:
    server, done = confirming()
    async with caller(server, "2026-07-28") as client:
        said = await client.call("delete", {"what": "it"})
        assert asks(said)
        assert not done
        (question,) = questions(said).values()
        assert question["params"]["message"] == "Really delete it?"
        for _ in range(2):
            assert text(await client.call("delete", {"what": "it"}, **retry(said))) == "deleted it"
        assert done == ["it"]
        other = await client.call("delete", {"what": "another"}, **retry(said))
        assert "error" in other
    assert done == ["it"]


@pytest.mark.parametrize("revision", ELICIT)
async def test_who_does_not_confirm_has_nothing_done(revision: str) -> None:
    server, done = confirming()

    def decline(question: Any) -> dict[str, Any]:
        return {"action": "decline"}

    async with caller(server, revision, reply=decline) as client:
        said = await client.through(*called("delete", what="it"), reply=decline)
    assert text(said) == "not confirmed"
    assert not done


@pytest.mark.parametrize("way", WAYS)
async def test_a_client_that_cannot_be_asked_gets_an_error_with_the_reason(way: str) -> None:
    server, done = confirming()
    async with reached(server, way) as ask:
        said = await ask(*called("delete", what="it"))
        assert "elicitation" in text(said)
        assert text(await ask(*called("look", what="it"))) == "looked at it"
    assert not done


@pytest.mark.parametrize("revision", ELICIT)
@pytest.mark.parametrize("annotations", [None, READ_ONLY])
async def test_middleware_handler_and_parameters_of_one_call_may_all_request_input(
    revision: str, annotations: ToolAnnotations | None
) -> None:
    server = Server("test")

    @server.middleware
    async def first(request: Request, call_next: CallNext, ctx: Context) -> Any:
        before = await ctx.elicit("before", str)
        value = await call_next(request)
        after = await ctx.elicit("after", str)
        return f"{before.data}, {value}, {after.data}"

    @server.tool(annotations=annotations)
    async def it(ctx: Context, name: Annotated[str, Elicit("name")]) -> str:
        return f"{name}, {(await ctx.elicit('body', str)).data}"

    async with caller(server, revision) as client:
        said = text(await client.through(*called("it")))
    assert said == ", ".join(f"answer to {each}" for each in ("before", "name", "body", "after"))


@pytest.mark.parametrize("revision", ELICIT)
async def test_prompts_and_resources_are_tested_as_well(revision: str) -> None:
    server = Server("test")

    @server.middleware
    async def who(request: Request, call_next: CallNext, ctx: Context) -> Any:
        return f"{await call_next(request)} for {(await ctx.elicit('who', str)).data}"

    server.prompt(name="tell")(lambda: "tell")
    server.resource("data://x")(lambda: "x")
    async with caller(server, revision) as client:
        assert text(await client.through("prompts/get", {"name": "tell"})) == "tell for answer to who"
        assert text(await client.through("resources/read", {"uri": "data://x"})) == "x for answer to who"
        listed = await client.ask("prompts/list", {})  # nobody can be asked there: it does not stand around lists
    assert [prompt["name"] for prompt in listed["result"]["prompts"]] == ["tell"]


@pytest.mark.parametrize("revision", ELICIT)
async def test_that_of_a_mounted_server_requests_input_too(revision: str) -> None:
    outer, (inner, done) = Server("outer"), confirming()
    outer.mount(inner, "acme")
    async with caller(outer, revision) as client:
        assert text(await client.through(*called("acme_delete", what="it"))) == "deleted it"
    assert done == ["it"]


async def test_its_context_can_report_and_log() -> None:
    server = Server("test")

    @server.middleware
    async def tell(request: Request, call_next: CallNext, ctx: Context) -> Any:
        ctx.report_progress(1, 2)
        ctx.info("on its way")
        return await call_next(request)

    server.tool(name="it")(lambda: "done")
    async with caller(server, "2025-11-25") as client:
        id = client.send("tools/call", {"name": "it", "arguments": {}}, progressToken="t")
        assert text(await client.answer(id)) == "done"
    assert [message["method"] for message in client.told] == ["notifications/progress", "notifications/message"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_context_is_that_of_the_server_that_the_middleware_belongs_to(revision: str) -> None:
    seen: list[tuple[str, Any]] = []

    async def look(request: Request, call_next: CallNext, ctx: Context) -> Any:
        seen.append((ctx.server.name, ctx.lifespan))
        return await call_next(request)

    def server_of(name: str) -> Server:
        async def lifespan(server: Server) -> Any:
            yield f"of {name}"

        return Server(name, lifespan=lifespan, middleware=[look])

    outer, inner = server_of("outer"), server_of("inner")
    inner.tool(name="it", middleware=[look])(lambda: "done")
    outer.mount(inner, "acme")
    async with caller(outer, revision) as client:
        assert text(await client.ask(*called("acme_it"))) == "done"
    assert seen == [("outer", "of outer"), ("inner", "of inner"), ("inner", "of inner")]
