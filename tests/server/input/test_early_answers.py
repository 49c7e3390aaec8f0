"""`Elicit(..., unasked=True)`: an answer with the first request counts, and nothing else is looser for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from accord import Context, Elicit, Server, ToolAnnotations

from tests.server.input.caller import JSON, asks, caller, questions, retry, texts

MARKS = [None, ToolAnnotations(read_only_hint=True)]


@dataclass
class Name:
    name: str


def answer(**content: object) -> JSON:
    return {"action": "accept", "content": content}


def params(tool: str, **answers: object) -> JSON:
    return {"name": tool, "arguments": {}, "inputResponses": answers}


@pytest.fixture(params=MARKS, ids=["runs once", "may run again"])
def server(request: pytest.FixtureRequest) -> Server:
    server = Server("test")

    @server.tool(annotations=request.param)
    def greet(who: Annotated[Name, Elicit("Who?", unasked=True)], sure: Annotated[bool, Elicit("Sure?")] = True) -> str:
        return f"{who.name} {sure}"

    @server.tool(annotations=request.param)
    def hello(who: Annotated[Name, Elicit("Who?", unasked=True)]) -> str:
        return f"Hello, {who.name}!"

    return server


async def test_it_counts_and_extra_keys_are_ignored(server: Server) -> None:
    async with caller(server) as client:
        said = await client.ask("tools/call", params("hello", who=answer(name="Ada"), other=answer(x=1)))
    assert texts(said) == "Hello, Ada!"


async def test_it_may_request_input_as_well(server: Server) -> None:
    async with caller(server) as client:
        said = await client.ask("tools/call", params("hello", wrong=answer(name="Ada")))
        assert [*questions(said)] == ["who"]
        again = {"name": "hello", "arguments": {}, **retry(said), "inputResponses": {"who": answer(name="Bob")}}
        assert texts(await client.ask("tools/call", again)) == "Hello, Bob!"


async def test_what_is_no_answer_is_refused(server: Server) -> None:
    async with caller(server) as client:
        said = await client.ask("tools/call", params("hello", who=12345))
    assert said["error"]["code"] == -32602


async def test_a_question_beside_it_is_sent_all_the_same(server: Server) -> None:
    async with caller(server) as client:
        said = await client.ask("tools/call", params("greet", who=answer(name="Ada"), sure=answer(value=False)))
        assert [*questions(said)] == ["sure"]
        again = {"name": "greet", "arguments": {}, **retry(said), "inputResponses": {"sure": answer(value=False)}}
        assert texts(await client.ask("tools/call", again)) == "Ada False"


async def test_an_answer_to_another_question_than_the_last_does_not_count() -> None:
    server = Server("test")
    asked = iter(["Who are you?", "Who is he?", "Who is he?"])

    @server.tool(annotations=MARKS[1])
    async def changing(ctx: Context) -> str:
        (who,) = await ctx.ask(Elicit(next(asked), Name, unasked=True))
        return str(who.data)

    async with caller(server) as client:
        first = await client.ask("tools/call", {"name": "changing", "arguments": {}})
        second = await client.ask("tools/call", {"name": "changing", "arguments": {}, **retry(first)})
    assert asks(second)
