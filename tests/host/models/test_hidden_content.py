"""Reasoning goes back to its provider with the use of a tool that it led to, and to nobody else.

From the API references: Anthropic's "Extended thinking" (blocks `thinking` and `redacted_thinking`, deltas, and that
they must come back with the results of tools), OpenAI's `reasoning` items with `encrypted_content`. From reports of
users: `extra_content.google.thought_signature` of Gemini, behind its Chat Completions API.
"""

from __future__ import annotations

from typing import Any

import pytest

from accord.host.models.hidden_content import HiddenContent
from accord.host.models.model import ModelResult
from accord.messages.content import TextContent, ToolResultContent, ToolUseContent
from accord.messages.sampling import CreateMessageParams, blocks_of

from tests.host.models.conversations import message
from tests.host.models.fake_provider import (
    Answer,
    ChatCompletionsAPI,
    FakeProvider,
    MessagesAPI,
    ResponsesAPI,
    as_json,
    event,
    named,
    streamed,
)
from tests.host.models.providers import APIS, HELLO, ask

SECRET = "the hidden reasoning"
TWO = Answer([("text", "Both."), ("tool", "a", "search", "{}"), ("tool", "b", "search", "{}")], "tools")


async def go_on(api: Any, first: Any, change: Any = None) -> tuple[ModelResult, Any]:
    """The first answer, and the body of the request that returns the results of its tools."""
    async with FakeProvider(first, streamed(api.answers.stream(HELLO))) as provider:
        model = api.connect(provider)
        answer = await model.create_message(ask())
        blocks = blocks_of(answer.result) if change is None else change(blocks_of(answer.result))
        results = [
            ToolResultContent(tool_use_id=block.id, content=[TextContent(text="found")])
            for block in blocks
            if isinstance(block, ToolUseContent)
        ]
        messages = [*ask().messages, message("assistant", *blocks), message("user", *results)]
        await model.create_message(CreateMessageParams(messages=messages, max_tokens=1))
    assert SECRET not in repr(answer)
    return answer, provider.requests[1].body


def thinking_stream() -> list[bytes]:
    start, *events = MessagesAPI.stream(TWO)
    block = {"type": "thinking", "thinking": "", "signature": ""}
    deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": piece} for piece in (SECRET[:5], SECRET[5:])]
    deltas += [{"type": "signature_delta", "signature": "si"}, {"type": "signature_delta", "signature": "gned"}]
    more = [named({"type": "content_block_start", "index": 7, "content_block": block})]
    more += [named({"type": "content_block_delta", "index": 7, "delta": delta}) for delta in deltas]
    redacted = {"type": "redacted_thinking", "data": "encrypted"}
    more.append(named({"type": "content_block_start", "index": 8, "content_block": redacted}))
    unsigned = {"type": "thinking", "thinking": "not signed"}
    more.append(named({"type": "content_block_start", "index": 9, "content_block": unsigned}))
    place = next(at for at, each in enumerate(events) if b'"id": "b"' in each)
    between = {"type": "thinking", "thinking": "between", "signature": "s2"}
    later = [named({"type": "content_block_start", "index": 10, "content_block": between})]
    return [start, *more, *events[:place], *later, *events[place:]]


async def test_thinking_returns_to_its_place() -> None:
    _, body = await go_on(APIS[0], streamed(thinking_stream()))
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": SECRET, "signature": "signed"},
        {"type": "redacted_thinking", "data": "encrypted"},
        {"type": "text", "text": "Both."},
        {"type": "tool_use", "id": "a", "name": "search", "input": {}},
        {"type": "thinking", "thinking": "between", "signature": "s2"},
        {"type": "tool_use", "id": "b", "name": "search", "input": {}},
    ]


async def test_thinking_of_a_whole_answer_returns_too() -> None:
    whole = MessagesAPI.whole(TWO)
    whole["content"].insert(0, {"type": "thinking", "thinking": SECRET, "signature": "signed"})
    _, body = await go_on(APIS[0], as_json(whole))
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": SECRET, "signature": "signed"}


async def test_an_answer_that_was_changed_gets_nothing_back() -> None:
    def change(blocks: Any) -> Any:
        return [TextContent(text="Other."), *blocks[1:]]

    _, body = await go_on(APIS[0], streamed(thinking_stream()), change)
    assert "thinking" not in str(body)


async def test_another_model_gets_nothing() -> None:
    answer, _ = await go_on(APIS[0], streamed(thinking_stream()))
    async with FakeProvider(streamed(MessagesAPI.stream(HELLO))) as provider:
        said = message("assistant", *blocks_of(answer.result))
        await APIS[0].connect(provider).create_message(CreateMessageParams(messages=[said], max_tokens=1))
    assert "thinking" not in str(provider.requests[0].body)


async def test_encrypted_reasoning_returns_to_its_place() -> None:
    whole = ResponsesAPI.whole(TWO)
    reasoning = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": SECRET, "status": None}
    whole["output"].insert(0, reasoning)
    _, body = await go_on(APIS[2], as_json(whole))
    sent = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": SECRET}
    assert [item.get("type", "message") for item in body["input"]] == [
        "message", "reasoning", "message", "function_call", "function_call",
        "function_call_output", "function_call_output",
    ]  # fmt: skip
    assert body["input"][1] == sent
    items = [
        named({"type": "response.output_item.done", "output_index": index, "item": item})
        for index, item in enumerate(whole["output"])
    ]
    end = named({"type": "response.completed", "response": whole})
    assert (await go_on(APIS[2], streamed([*items, end])))[1] == body


async def test_reasoning_that_is_not_encrypted_is_left_out() -> None:
    whole = ResponsesAPI.whole(TWO)
    whole["output"].insert(0, {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": SECRET}]})
    _, body = await go_on(APIS[2], as_json(whole))
    assert "reasoning" not in str(body)


async def test_a_signature_of_gemini_returns_with_its_call() -> None:
    signature = {"google": {"thought_signature": SECRET}}
    function = {"name": "search", "arguments": "{}"}
    calls = [{"id": "a", "function": function}, {"id": "b", "function": function, "extra_content": signature}]
    events = [*(ChatCompletionsAPI.chunk({"tool_calls": [call]}) for call in calls)]
    first = streamed([*events, ChatCompletionsAPI.chunk({}, "stop"), event("[DONE]")])
    _, body = await go_on(APIS[1], first)
    sent = body["messages"][1]["tool_calls"]
    assert [call.get("extra_content") for call in sent] == [None, signature]


# --- limits --------------------------------------------------------------------------------------------------------


def blocks(number: int) -> list[Any]:
    return [TextContent(text=str(number))]


def test_the_oldest_parts_are_dropped() -> None:
    hidden = HiddenContent(most_bytes=1_000)
    for number in range(100):
        hidden.remember(blocks(number), {0: [{"data": "x" * 100}]})
        assert hidden._bytes == sum(map(len, hidden._answers.values())) <= 1_000
    assert hidden.recall(blocks(99)) == {0: [{"data": "x" * 100}]}
    assert hidden.recall(blocks(0)) == {}


def test_a_part_that_is_too_large_is_left_out() -> None:
    hidden = HiddenContent(most_bytes=100)
    hidden.remember(blocks(1), {0: [{"data": "x" * 100}]})
    assert hidden.recall(blocks(1)) == {}


@pytest.mark.parametrize("parts", [{}, {0: []}])
def test_an_answer_without_hidden_parts_takes_no_room(parts: Any) -> None:
    hidden = HiddenContent()
    hidden.remember(blocks(1), parts)
    assert not hidden._answers
