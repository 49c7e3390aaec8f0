"""Requests to the Responses API, and what only its answers have.

From OpenAI's API reference ("Create a model response", "Streaming events"): all members of the requests below, the
items of input and output, the events, `status` and `incomplete_details`, the errors. It has no stop sequences, and
content of messages is text, images and files.
"""

from __future__ import annotations

from typing import Any

import pytest

from accord.errors import ModelError
from accord.messages.content import TextContent, ToolUseContent
from accord.messages.sampling import CreateMessageParams

from tests.host.models.conversations import CONVERSATION, PIXEL, SCHEMA, SOUND, message, sent, sent_result
from tests.host.models.fake_provider import Answer, FakeProvider, FakeResponse, ResponsesAPI, as_json, named, streamed
from tests.host.models.providers import APIS, CALLS, HELLO, ask, text_of

API = APIS[2]
IMAGE = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aW1hZ2U="}


async def answer_of(*responses: FakeResponse, **more: Any) -> Any:
    async with FakeProvider(*responses) as provider:
        return await API.connect(provider).create_message(ask(**more))


async def test_a_request_has_everything_in_its_place() -> None:
    body = await sent(API, CONVERSATION)
    alias = body["tools"][1]["name"]
    tool = {"type": "function", "strict": False}
    assert body == {
        "model": "fake-model",
        "max_output_tokens": 300,
        "instructions": "Be brief.",
        "temperature": 0.5,
        "metadata": {"user_id": "u-1"},
        "store": False,
        "stream": True,
        "tools": [
            {**tool, "name": "search", "description": "Searches.", "parameters": SCHEMA},
            {**tool, "name": alias, "parameters": {"type": "object"}},
        ],
        "tool_choice": "required",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "What is this?"}, IMAGE]},
            {"role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "t1", "name": "search", "arguments": '{"q":"täa"}'},
            {"type": "function_call", "call_id": "t2", "name": alias, "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "t1",
                "output": [{"type": "input_text", "text": "found"}, IMAGE],
            },
            {"type": "function_call_output", "call_id": "t2", "output": "The tool failed: no such file"},
        ],
    }


async def test_a_small_request_has_nothing_else() -> None:
    assert await sent(API, ask("Hi"), stream=False) == {
        "model": "fake-model",
        "max_output_tokens": 100,
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        "store": False,
    }


async def test_responses_are_stored_only_if_the_options_say_so() -> None:
    assert (await sent(API, ask(), options={"store": True}))["store"] is True


@pytest.mark.parametrize(("role", "block"), [("user", SOUND), ("assistant", PIXEL)])
async def test_content_that_the_api_does_not_take_is_not_sent(role: Any, block: Any) -> None:
    async with FakeProvider() as provider:
        with pytest.raises(ModelError, match=r"takes (no|only) .*; nothing was sent"):
            await API.connect(provider).create_message(
                CreateMessageParams(messages=[message(role, block)], max_tokens=1)
            )
    assert provider.requests == []


async def test_a_failed_tool_with_an_image_says_that_it_failed() -> None:
    (item,) = await sent_result(API, PIXEL, is_error=True)
    assert item["output"] == [{"type": "input_text", "text": "The tool failed: "}, IMAGE]


# --- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
async def test_text_ends_at_a_stop_sequence(stream: bool) -> None:
    answer = Answer([("text", "one EN two END three"), ("tool", "t", "search", "{}")], piece=2)
    response = streamed(ResponsesAPI.stream(answer)) if stream else as_json(ResponsesAPI.whole(answer))
    async with FakeProvider(response) as provider:
        passed: list[str] = []
        found = await API.connect(provider).create_message(ask(stop_sequences=["END"]), on_text=passed.append)
    assert found.result.content == TextContent(text="one EN two ")
    assert found.result.stop_reason == "stopSequence"
    assert "".join(passed) == "one EN two "
    assert (found.input_tokens, found.output_tokens) == (11, 7)


async def test_text_that_was_held_back_comes_before_a_call_and_at_the_end() -> None:
    answer = Answer([("text", "look EN"), ("tool", "t", "search", "{}"), ("text", "done E")], "tools")
    async with FakeProvider(streamed(ResponsesAPI.stream(answer))) as provider:
        passed: list[str] = []
        found = await API.connect(provider).create_message(ask(stop_sequences=["END"]), on_text=passed.append)
    assert found.result.content == [
        TextContent(text="look EN"),
        ToolUseContent(id="t", name="search", input={}),
        TextContent(text="done E"),
    ]
    assert "".join(passed) == "look ENdone E"


async def test_too_many_stop_sequences_are_an_error_and_nothing_is_sent() -> None:
    async with FakeProvider() as provider:
        with pytest.raises(ModelError, match=r"no stop sequences of its own.*nothing was sent"):
            await API.connect(provider).create_message(ask(stop_sequences=["x"] * 17))
    assert provider.requests == []


async def test_reasoning_and_unknown_items_and_events_are_ignored() -> None:
    start, *events = ResponsesAPI.stream(HELLO)
    reasoning = {"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "h"}]}
    new = {"type": "new_item", "content": "text", "call_id": None, "name": None, "arguments": {"a": 1}}
    more = [
        named({"type": "response.output_item.added", "output_index": 8, "item": reasoning}),
        named({"type": "response.reasoning_text.delta", "output_index": 8, "content_index": 0, "delta": "h"}),
        named({"type": "response.output_item.done", "output_index": 8, "item": reasoning}),
        named({"type": "response.output_item.done", "output_index": 9, "item": new}),
        named({"type": "response.new_event", "delta": {"a": 1}, "output_index": "x"}),
    ]
    found = await answer_of(streamed([start, *more, *events]))
    assert text_of(found.result) == HELLO.parts[0][1]


async def test_an_answer_that_comes_only_at_the_end_of_the_stream_is_read() -> None:
    stream = ResponsesAPI.stream(CALLS)
    found = await answer_of(streamed([stream[0], stream[-1]]))
    assert [block.type for block in found.result.content] == ["text", "tool_use", "tool_use"]
    whole_items = [each for each in stream if b"delta" not in each.partition(b"\n")[0]]
    assert await answer_of(streamed(whole_items)) == found


async def test_a_refusal_is_text_with_its_own_reason() -> None:
    deltas = [
        named({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": piece})
        for piece in ("I can", "not.")
    ]
    end = ResponsesAPI.stream(Answer([]))[-1]
    found = await answer_of(streamed([*deltas, end]))
    assert (text_of(found.result), found.result.stop_reason) == ("I cannot.", "refusal")
    whole = ResponsesAPI.whole(Answer([]))
    content = [{"type": "refusal", "refusal": "I cannot."}]
    whole["output"] = [{"type": "message", "role": "assistant", "content": content}]
    assert await answer_of(as_json(whole)) == found


@pytest.mark.parametrize(
    ("reason", "expected"), [("max_output_tokens", "maxTokens"), ("content_filter", "content_filter")]
)
async def test_an_incomplete_response_has_its_reason(reason: str, expected: str) -> None:
    whole = {**ResponsesAPI.whole(HELLO), "status": "incomplete", "incomplete_details": {"reason": reason}}
    found = await answer_of(as_json(whole))
    assert found.result.stop_reason == expected


async def test_a_failed_response_is_an_error_and_tried_again_if_it_may_pass() -> None:
    error = {"code": "server_error", "message": "The server had an error"}
    failed = {**ResponsesAPI.whole(Answer([])), "status": "failed", "error": error}
    stream = streamed([named({"type": "response.failed", "response": failed})])
    for response in (stream, as_json(failed)):
        found = await answer_of(response, streamed(ResponsesAPI.stream(HELLO)))
        assert text_of(found.result) == HELLO.parts[0][1]
    lasting = as_json({**failed, "error": {"code": "invalid_prompt", "message": "No"}})
    with pytest.raises(ModelError, match="invalid_prompt: No"):
        await answer_of(lasting)


async def test_another_status_is_an_error() -> None:
    queued = as_json({**ResponsesAPI.whole(HELLO), "status": "queued"})
    with pytest.raises(ModelError, match="the status of its response is 'queued'"):
        await answer_of(*[queued] * 5)


async def test_content_of_another_shape_is_an_error() -> None:
    whole = ResponsesAPI.whole(HELLO)
    whole["output"][0]["content"] = [5]
    with pytest.raises(ModelError, match="its answer does not have the shape of this API"):
        await answer_of(*[as_json(whole)] * 5)
