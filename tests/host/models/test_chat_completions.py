"""Requests to the Chat Completions API, and what only its answers have.

From OpenAI's API reference ("Create chat completion", "The chat completion chunk object"): all members of the requests
below, that messages of tools take only text, the formats of audio, the finish reasons, `[DONE]`. What other servers do
differently is known from reports of their users: Gemini sends calls without an index, Ollama the same index for all
calls of an answer, some send no id, or the arguments as an object.
"""

from __future__ import annotations

from typing import Any

import pytest

from accord.errors import ModelError
from accord.host import ChatCompletionsModel
from accord.messages.content import AudioContent, TextContent, ToolUseContent
from accord.messages.sampling import CreateMessageParams, ToolChoice

from tests.host.models.conversations import (
    CONVERSATION,
    PIXEL,
    SCHEMA,
    SEARCH,
    SOUND,
    SVG,
    message,
    sent,
    sent_result,
)
from tests.host.models.fake_provider import (
    MODEL,
    Answer,
    ChatCompletionsAPI,
    FakeProvider,
    FakeResponse,
    as_json,
    event,
    streamed,
)
from tests.host.models.providers import APIS, HELLO, KEY, ask, text_of

API = APIS[1]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1hZ2U="}}
chunk = ChatCompletionsAPI.chunk


async def answer_of(*responses: FakeResponse, **settings: Any) -> Any:
    async with FakeProvider(*responses) as provider:
        return await API.connect(provider, **settings).create_message(ask())


async def test_a_request_has_everything_in_its_place() -> None:
    body = await sent(API, CONVERSATION)
    alias = body["tools"][1]["function"]["name"]
    assert body == {
        "model": "fake-model",
        "max_tokens": 300,
        "temperature": 0.5,
        "stop": ["END"],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {"name": "search", "description": "Searches.", "parameters": SCHEMA},
            },
            {"type": "function", "function": {"name": alias, "parameters": {"type": "object"}}},
        ],
        "tool_choice": "required",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "search", "arguments": '{"q":"täa"}'}},
                    {"id": "t2", "type": "function", "function": {"name": alias, "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "t1", "content": "found"},
            {"role": "tool", "tool_call_id": "t2", "content": "The tool failed: no such file"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "What the tool returned for t1, besides text:"}, IMAGE],
            },
        ],
    }


async def test_a_small_request_has_nothing_else() -> None:
    assert await sent(API, ask("Hi"), stream=False) == {
        "model": "fake-model",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hi"}],
    }


async def test_openai_gets_the_limit_of_tokens_under_its_new_name() -> None:
    assert ChatCompletionsModel("m", api_key=KEY)._token_field == "max_completion_tokens"
    body = await sent(API, ask(), token_field="max_completion_tokens")
    assert body["max_completion_tokens"] == 100
    assert "max_tokens" not in body


async def test_metadata_is_sent_with_what_is_stored() -> None:
    params = ask(metadata={"user_id": "u", "long": "x" * 513, "number": 5})
    assert "metadata" not in await sent(API, params)
    assert (await sent(API, params, options={"store": True}))["metadata"] == {"user_id": "u"}


@pytest.mark.parametrize("mode", ["auto", "required", "none"])
async def test_the_choice_of_tools_has_the_same_name(mode: Any) -> None:
    assert (await sent(API, ask(tools=[SEARCH], tool_choice=ToolChoice(mode=mode))))["tool_choice"] == mode
    assert "tool_choice" not in await sent(API, ask(tool_choice=ToolChoice(mode=mode)))


async def test_audio_is_sent_in_its_format() -> None:
    wave = AudioContent(data="d2F2", mime_type="audio/wav")
    body = await sent(API, CreateMessageParams(messages=[message("user", SOUND, wave)], max_tokens=1))
    assert body["messages"][0]["content"] == [
        {"type": "input_audio", "input_audio": {"data": "c291bmQ=", "format": "mp3"}},
        {"type": "input_audio", "input_audio": {"data": "d2F2", "format": "wav"}},
    ]


@pytest.mark.parametrize(
    ("role", "block"),
    [("user", SVG), ("user", AudioContent(data="", mime_type="audio/ogg")), ("assistant", PIXEL)],
)
async def test_content_that_the_api_does_not_take_is_not_sent(role: Any, block: Any) -> None:
    async with FakeProvider() as provider:
        with pytest.raises(ModelError, match=r"takes (no|only) .*; nothing was sent"):
            await API.connect(provider).create_message(
                CreateMessageParams(messages=[message(role, block)], max_tokens=1)
            )
    assert provider.requests == []


async def test_a_result_without_text_is_an_empty_message_of_the_tool() -> None:
    tool, user = await sent_result(API, PIXEL)
    assert tool == {"role": "tool", "tool_call_id": "t", "content": ""}
    assert user["content"][1] == IMAGE


async def test_an_assistant_without_text_has_null_as_content() -> None:
    use = message("assistant", ToolUseContent(id="t", name="search", input={}))
    body = await sent(API, CreateMessageParams(messages=[use], max_tokens=1))
    assert body["messages"][0]["content"] is None


# --- answers of other servers --------------------------------------------------------------------------------------


def call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "search", "arguments": arguments}, **more}


@pytest.mark.parametrize(
    "chunks",
    [
        [[call('{"n": 1}', index=0, id="a"), call('{"n": 2}', index=1, id="b")]],
        [[call('{"n": 1}', id="a")], [call('{"n": 2}', id="b")]],
        [[call('{"n": 1}', index=0, id="a")], [call('{"n": 2}', index=0, id="b")]],
        [[call({"n": 1}, index=0, id="a"), call({"n": 2}, index=1, id="b")]],
        [[call('{"n"', index=0, id="a")], [call(": 1}", index=0, id="a")], [call('{"n": 2}', index=1, id="b")]],
        [
            [call('{"n"', index=0, id="a"), call('{"n"', index=1, id="b")],
            [{"index": 0, "function": {"arguments": ": 1}"}}, {"index": 1, "function": {"arguments": ": 2}"}}],
        ],
        [
            [call("", id="a")],
            [{"function": {"arguments": '{"n": 1}'}}],
            [call('{"n": 2}', id="b")],
        ],
    ],
    ids=["indexes", "no index", "same index", "objects", "repeated id", "interleaved", "pieces without an index"],
)
async def test_each_piece_belongs_to_its_call(chunks: list[list[dict[str, Any]]]) -> None:
    events = [*(chunk({"tool_calls": calls}) for calls in chunks), chunk({}, "tool_calls"), event("[DONE]")]
    found = await answer_of(streamed(events))
    assert found.result.content == [
        ToolUseContent(id="a", name="search", input={"n": 1}),
        ToolUseContent(id="b", name="search", input={"n": 2}),
    ]


async def test_calls_without_ids_get_some() -> None:
    events = [chunk({"tool_calls": [call("{}"), call("{}")]}), chunk({}, "stop"), event("[DONE]")]
    found = await answer_of(streamed(events))
    first, second = found.result.content
    assert first.id.startswith("call_")
    assert first.id != second.id
    assert found.result.stop_reason == "toolUse"


async def test_a_call_without_a_name_is_an_error() -> None:
    nameless = chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]})
    events = [nameless, chunk({}, "tool_calls"), event("[DONE]")]
    with pytest.raises(ModelError, match="uses a tool without a name"):
        await answer_of(*[streamed(events)] * 5)


async def test_a_stream_may_end_without_done_and_without_counts() -> None:
    found = await answer_of(streamed([chunk({"content": "x"}), chunk({}, "stop")]))
    assert found.result.content == TextContent(text="x")
    assert (found.input_tokens, found.output_tokens) == (0, 0)


async def test_a_stream_without_a_reason_to_end_is_broken() -> None:
    broken = streamed([chunk({"content": "x"})])
    found = await answer_of(broken, streamed(ChatCompletionsAPI.stream(HELLO)))
    assert text_of(found.result) == HELLO.parts[0][1]


async def test_only_the_first_choice_counts() -> None:
    other = event({"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]})
    found = await answer_of(streamed([other, *ChatCompletionsAPI.stream(HELLO)]))
    assert text_of(found.result) == HELLO.parts[0][1]


async def test_a_refusal_is_text_with_its_own_reason() -> None:
    events = [chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk({}, "stop"), event("[DONE]")]
    found = await answer_of(streamed(events))
    assert found.result.content == TextContent(text="I cannot.")
    assert found.result.stop_reason == "refusal"


@pytest.mark.parametrize(
    ("reason", "expected"), [("stop", "endTurn"), ("length", "maxTokens"), ("content_filter", "content_filter")]
)
async def test_stop_reasons_are_those_of_the_protocol_or_its_own(reason: str, expected: str) -> None:
    whole = ChatCompletionsAPI.whole(Answer([("text", "x")]))
    whole["choices"][0]["finish_reason"] = reason
    found = await answer_of(as_json(whole))
    assert found.result.stop_reason == expected
    assert found.result.model == MODEL


async def test_an_error_with_status_200_is_an_error() -> None:
    with pytest.raises(ModelError, match="model 'x' not found"):
        await answer_of(as_json({"error": "model 'x' not found"}))
