"""Requests to the Messages API of Anthropic, and what only its answers have.

From the API reference ("Create a Message", "Streaming messages"): all members of the requests below, the media types
of images, the types of `tool_choice`, the stop reasons, the events, and that unknown events are to be ignored; from
"Versions", that version 2026-10-21 has no temperature. That empty text blocks are refused is known from its errors
("text content blocks must be non-empty").
"""

from __future__ import annotations

from typing import Any

import pytest

from accord.errors import ModelError
from accord.host import ModelLimits
from accord.messages.content import TextContent, ToolUseContent
from accord.messages.sampling import CreateMessageParams, ToolChoice

from tests.host.models.conversations import (
    CONVERSATION,
    DATA,
    DOTTED,
    LINK,
    NOTE,
    PHOTO,
    PIXEL,
    SCHEMA,
    SEARCH,
    SOUND,
    SVG,
    message,
    sent,
    sent_result,
)
from tests.host.models.fake_provider import Answer, FakeProvider, MessagesAPI, as_json, named, streamed
from tests.host.models.providers import APIS, HELLO, ask, text_of

API = APIS[0]
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aW1hZ2U="}}


async def test_a_request_has_everything_in_its_place() -> None:
    body = await sent(API, CONVERSATION)
    alias = body["tools"][1]["name"]
    assert body == {
        "model": "fake-model",
        "max_tokens": 300,
        "system": "Be brief.",
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u-1"},
        "stream": True,
        "tools": [
            {"name": "search", "description": "Searches.", "input_schema": SCHEMA},
            {"name": alias, "input_schema": {"type": "object"}},
        ],
        "tool_choice": {"type": "any"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "täa"}},
                    {"type": "tool_use", "id": "t2", "name": alias, "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [{"type": "text", "text": "found"}, IMAGE],
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "t2",
                        "content": [{"type": "text", "text": "no such file"}],
                        "is_error": True,
                    },
                ],
            },
        ],
    }


async def test_a_small_request_has_nothing_else() -> None:
    assert await sent(API, ask("Hi"), stream=False) == {
        "model": "fake-model",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    }


@pytest.mark.parametrize(("mode", "kind"), [("auto", "auto"), ("required", "any"), ("none", "none")])
async def test_the_choice_of_tools_has_another_name(mode: Any, kind: str) -> None:
    assert (await sent(API, ask(tools=[SEARCH], tool_choice=ToolChoice(mode=mode))))["tool_choice"] == {"type": kind}
    assert "tool_choice" not in await sent(API, ask(tool_choice=ToolChoice(mode=mode)))


async def test_a_temperature_is_sent_only_if_the_options_say_so() -> None:
    assert "temperature" not in await sent(API, ask(temperature=0.7))
    assert (await sent(API, ask(), options={"temperature": 0.7}))["temperature"] == 0.7


async def test_empty_texts_and_messages_are_left_out() -> None:
    empty, text = TextContent(text=""), TextContent(text="x")
    messages = [message("user", text), message("assistant", empty), message("user", empty, text)]
    body = await sent(API, CreateMessageParams(messages=messages, max_tokens=1))
    assert [each["content"] for each in body["messages"]] == [[{"type": "text", "text": "x"}]] * 2


@pytest.mark.parametrize("block", [SOUND, SVG])
async def test_content_that_the_api_does_not_take_is_not_sent(block: Any) -> None:
    async with FakeProvider() as provider:
        with pytest.raises(ModelError, match=rf"takes no content of kind .*{block.mime_type[-3:]}.*nothing was sent"):
            await API.connect(provider).create_message(
                CreateMessageParams(messages=[message("user", block)], max_tokens=1)
            )
    assert provider.requests == []


async def test_the_content_of_a_result_becomes_text_and_images() -> None:
    (found,) = await sent_result(API, LINK, NOTE, PHOTO, DATA, SOUND, SVG)
    (result,) = found["content"]
    photo = {"type": "base64", "media_type": "image/jpeg", "data": "anBn"}
    assert result["content"] == [
        {"type": "text", "text": "[a](https://example.com/a): An article"},
        {"type": "text", "text": "[resource note://1]\nremember"},
        {"type": "image", "source": photo},
        {"type": "text", "text": "[resource d://1 (application/zip) is not shown to the model]"},
        {"type": "text", "text": "[content of kind audio (audio/mpeg) is not shown to the model]"},
        {"type": "text", "text": "[content of kind image (image/svg+xml) is not shown to the model]"},
    ]


async def test_a_result_with_structured_content_alone_is_sent_as_text() -> None:
    (found,) = await sent_result(API, structured_content={"n": 1})
    assert found["content"][0]["content"] == [{"type": "text", "text": '{"n":1}'}]


async def test_a_use_of_a_tool_has_the_name_of_the_tool_again() -> None:
    body = await sent(API, ask(tools=[DOTTED]))
    answer = Answer([("tool", "t", body["tools"][0]["name"], "{}")], "tools")
    async with FakeProvider(streamed(MessagesAPI.stream(answer))) as provider:
        found = await API.connect(provider).create_message(ask(tools=[DOTTED]))
    assert found.result.content == ToolUseContent(id="t", name="files.read/all", input={})


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "endTurn"),
        ("max_tokens", "maxTokens"),
        ("stop_sequence", "stopSequence"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
    ],
)
async def test_stop_reasons_are_those_of_the_protocol_or_its_own(reason: str, expected: str) -> None:
    async with FakeProvider(as_json({**MessagesAPI.whole(HELLO), "stop_reason": reason})) as provider:
        found = await API.connect(provider).create_message(ask())
    assert found.result.stop_reason == expected


async def test_thinking_and_unknown_blocks_and_events_are_ignored() -> None:
    start, *events = MessagesAPI.stream(HELLO)
    delta = {"type": "thinking_delta", "thinking": "hmm"}
    more = [
        named({"type": "content_block_start", "index": 7, "content_block": {"type": "thinking", "thinking": ""}}),
        named({"type": "content_block_delta", "index": 7, "delta": delta}),
        named({"type": "content_block_stop", "index": 7}),
        named({"type": "content_block_start", "index": 8, "content_block": {"type": "new", "id": None}}),
        named({"type": "new_event", "index": "seven", "delta": 8}),
        b": comment\n\n",
        b"event: ping\ndata: {}\n\n",
    ]
    async with FakeProvider(streamed([start, *more, *events])) as provider:
        found = await API.connect(provider).create_message(ask())
    assert text_of(found.result) == HELLO.parts[0][1]


async def test_texts_next_to_each_other_are_one_block() -> None:
    async with FakeProvider(streamed(MessagesAPI.stream(Answer([("text", "a"), ("text", "b")])))) as provider:
        found = await API.connect(provider).create_message(ask())
    assert found.result.content == TextContent(text="ab")


async def test_a_surrogate_is_an_error_and_nothing_is_sent() -> None:
    async with FakeProvider() as provider:
        with pytest.raises(ModelError, match="fake-model at 127"):
            await API.connect(provider).create_message(ask("\ud800"))
    assert provider.requests == []


async def test_results_only_are_a_message_of_the_user() -> None:
    (found,) = await sent_result(API, PIXEL)
    assert found == {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": [IMAGE]}],
    }


async def test_a_block_of_an_unknown_kind_is_no_content_of_a_message_but_of_a_result() -> None:
    new: Any = {"type": "video", "data": "x"}
    async with FakeProvider() as provider:
        with pytest.raises(ModelError, match="takes no content of kind video; nothing was sent"):
            await API.connect(provider).create_message(
                CreateMessageParams(messages=[message("user", new)], max_tokens=1)
            )
    (found,) = await sent_result(API, new)
    text = "[content of kind video is not shown to the model]"
    assert found["content"][0]["content"] == [{"type": "text", "text": text}]


async def test_text_inside_a_use_of_a_tool_is_an_error() -> None:
    events = MessagesAPI.stream(Answer([("tool", "t", "search", "{}")], "tools"))
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}
    async with FakeProvider(streamed([*events[:4], named(text)])) as provider:
        with pytest.raises(ModelError, match="mixed text and a use of a tool"):
            await API.connect(provider, limits=ModelLimits(retries=0)).create_message(ask())


async def test_the_number_of_texts_is_limited() -> None:
    start, *_ = MessagesAPI.stream(HELLO)
    block = {"type": "text", "text": "x"}
    blocks = [named({"type": "content_block_start", "index": at, "content_block": block}) for at in range(10_001)]
    async with FakeProvider(streamed([start, b"".join(blocks)])) as provider:
        with pytest.raises(ModelError, match="more than 10,000 blocks of text"):
            await API.connect(provider).create_message(ask())
