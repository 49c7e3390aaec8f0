"""A sampling request of a server passes through a model unchanged, tools included, in each revision that has it."""

from __future__ import annotations

from typing import Any

import pytest

from accord import REVISIONS, Client, Context, Server, choose_model
from accord.host import LanguageModel
from accord.messages.content import TextContent, ToolResultContent
from accord.messages.sampling import CreateMessageParams, CreateMessageResult, SamplingMessage

from tests.host.models.conversations import SEARCH
from tests.host.models.fake_provider import Answer, FakeProvider, streamed
from tests.host.models.providers import API, HELLO, each_api

server = Server("Asker")
USE = Answer([("tool", "id_1", "search", '{"q": "tea"}')], "tools")


@server.tool
async def ask_model(question: str, ctx: Context) -> str:
    answer = await ctx.sample(question, model="second", system_prompt="Be brief.", max_tokens=50)
    return f"{answer.model}: {answer.text}"


@server.tool
async def ask_with_tools(question: str, ctx: Context) -> str:
    first = SamplingMessage(role="user", content=TextContent(text=question))
    answer = await ctx.sample([first], tools=[SEARCH], tool_choice="required")
    (use,) = answer.tool_uses
    result = ToolResultContent(tool_use_id=use.id, content=[TextContent(text=f"7 kinds of {use.input['q']}")])
    used = SamplingMessage(role="assistant", content=[use])
    found = await ctx.sample([first, used, SamplingMessage(role="user", content=[result])], tools=[SEARCH])
    return found.text


def client_with(models: list[LanguageModel], **options: Any) -> Client:
    async def sample(params: CreateMessageParams) -> CreateMessageResult:
        return (await choose_model(params.model_preferences, models).create_message(params)).result

    return Client(server, sampling=sample, sampling_tools=True, **options)


@each_api
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_server_gets_the_answer_of_the_model_that_it_prefers(api: API, revision: str) -> None:
    async with FakeProvider(streamed(api.answers.stream(HELLO))) as provider:
        models = [api.model(name, api_key="k", base_url=provider.url) for name in ("first", "second")]
        async with client_with(models, revisions=[revision]) as client:
            result = await client.call_tool("ask_model", {"question": "Hello?"})
    assert result.text == "fake-model-1: Hello, wörld: 😀 tea"
    (request,) = provider.requests
    assert request.body["model"] == "second"
    assert "Be brief." in str(request.body)


@each_api
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_server_uses_its_own_tools_through_the_model(api: API, revision: str) -> None:
    async with FakeProvider(streamed(api.answers.stream(USE)), streamed(api.answers.stream(HELLO))) as provider:
        models = [api.model("first", api_key="k", base_url=provider.url)]
        async with client_with(models, revisions=[revision]) as client:
            result = await client.call_tool("ask_with_tools", {"question": "How many?"})
    assert result.text == "Hello, wörld: 😀 tea"
    assert "7 kinds of tea" in str(provider.requests[-1].body)
