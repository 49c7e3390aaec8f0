"""Answers of all three APIs: text, uses of tools, counts; as a stream in any split of bytes, and as a whole."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord.host.models.answer import AnswerBuilder
from accord.host.models.completion_reader import CompletionReader
from accord.host.models.http import AnswerReader
from accord.host.models.limits import ModelLimits
from accord.host.models.message_reader import MessageReader
from accord.host.models.model import ModelResult
from accord.host.models.response_reader import ResponseReader
from accord.host.models.stop_sequences import StopSequences
from accord.host.models.tool_names import ToolNames
from accord.messages.content import TextContent, ToolUseContent
from accord.messages.sampling import CreateMessageResult
from accord.wire.sse import ServerSentEvent, SSEParser

from tests.host.models.fake_provider import MODEL, Answer, FakeProvider, as_json, streamed
from tests.host.models.providers import API, APIS, CALL, CALLS, HELLO, ask, each_api, text_of


@each_api
@pytest.mark.parametrize("answer", [HELLO, CALL, CALLS], ids=["text", "a call", "calls"])
async def test_an_answer_is_the_same_whether_it_is_streamed_or_not(api: API, answer: Answer) -> None:
    whole, stream = as_json(api.answers.whole(answer)), streamed(api.answers.stream(answer))
    async with FakeProvider(whole, stream) as provider:
        passed: list[str] = []
        at_once = await api.connect(provider, stream=False).create_message(ask())
        in_pieces = await api.connect(provider).create_message(ask(), on_text=passed.append)
    assert at_once == in_pieces == expected(answer)
    assert "".join(passed) == text_of(in_pieces.result)
    assert len(passed) > 1
    assert [request.body.get("stream") for request in provider.requests] == [None, True]


@each_api
async def test_text_is_passed_on_once_if_the_provider_does_not_stream(api: API) -> None:
    async with FakeProvider(as_json(api.answers.whole(HELLO))) as provider:
        passed: list[str] = []
        await api.connect(provider).create_message(ask(), on_text=passed.append)
    assert passed == ["Hello, wörld: 😀 tea"]


@each_api
async def test_a_stream_is_read_byte_by_byte(api: API) -> None:
    stream = b"".join(api.answers.stream(CALLS))
    async with FakeProvider(streamed([stream[at : at + 1] for at in range(len(stream))])) as provider:
        found = await api.connect(provider).create_message(ask())
    assert found == expected(CALLS)


@each_api
async def test_an_answer_without_content_is_an_empty_text(api: API) -> None:
    async with FakeProvider(streamed(api.answers.stream(Answer([])))) as provider:
        found = await api.connect(provider).create_message(ask())
    assert found.result.content == TextContent(text="")
    assert found.result.stop_reason == "endTurn"


@each_api
async def test_a_use_of_a_tool_that_the_limit_of_tokens_cut_off_is_left_out(api: API) -> None:
    cut = Answer([("text", "I look."), ("tool", "id_1", "search", '{"q": "te')], "limit")
    async with FakeProvider(streamed(api.answers.stream(cut))) as provider:
        found = await api.connect(provider).create_message(ask())
    assert found.result.content == TextContent(text="I look.")
    assert found.result.stop_reason == "maxTokens"


@each_api
async def test_a_use_of_a_tool_without_arguments_has_an_empty_object(api: API) -> None:
    async with FakeProvider(streamed(api.answers.stream(Answer([("tool", "id_1", "stop", "")], "tools")))) as provider:
        found = await api.connect(provider).create_message(ask())
    assert found.result.content == ToolUseContent(id="id_1", name="stop", input={})


@each_api
async def test_equal_ids_of_calls_become_different(api: API) -> None:
    twice = Answer([("tool", "id", "a", "{}"), ("tool", "id2", "b", "{}")], "tools")
    stream = b"".join(api.answers.stream(twice)).replace(b"id2", b"id")
    async with FakeProvider(streamed([stream])) as provider:
        found = await api.connect(provider).create_message(ask())
    assert [use.name for use in found.result.content] == ["a", "b"]
    assert len({use.id for use in found.result.content}) == 2


# --- any split of bytes --------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
arguments = st.dictionaries(texts, st.one_of(texts, st.integers(), st.booleans(), st.lists(texts, max_size=2)))


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    parts: list[tuple[str, ...]] = [("text", draw(texts))] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 3))):
        given_arguments = json.dumps(draw(arguments), ensure_ascii=draw(st.booleans()))
        parts.append(("tool", f"id_{number}", draw(st.sampled_from(["search", "stop"])), given_arguments))
    return Answer(parts, "tools" if len(parts) > 1 else "end", piece=draw(st.integers(1, 9)))


@given(api=st.sampled_from(APIS), answer=answers(), cuts=st.lists(st.integers(0, 20_000), max_size=30))
def test_any_split_of_a_stream_gives_the_same_answer(api: API, answer: Answer, cuts: list[int]) -> None:
    stream = b"".join(api.answers.stream(answer))
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    chunks = [stream[start:end] for start, end in pairwise(places)]
    assert read(api, chunks) == read(api, [stream]) == read_whole(api, answer)
    result, text = read(api, chunks)
    assert text == text_of(result.result)
    assert result == expected(answer)


def read(api: API, chunks: list[bytes]) -> tuple[ModelResult, str]:
    reader, parser, text = new_reader(api), SSEParser(1 << 20), ""
    for chunk in chunks:
        for event in parser.feed(chunk):
            assert isinstance(event, ServerSentEvent)
            text += reader.read_event(event)
    assert reader.complete
    text += reader.end()
    return reader.result(), text


def read_whole(api: API, answer: Answer) -> tuple[ModelResult, str]:
    reader = new_reader(api)
    text = reader.read_body(json.dumps(api.answers.whole(answer)).encode())
    return reader.result(), text + reader.end()


def new_reader(api: API) -> AnswerReader:
    answer = AnswerBuilder("fake-model", ModelLimits(), ToolNames([]))
    readers: list[Any] = [MessageReader, CompletionReader, lambda each: ResponseReader(each, StopSequences([]))]
    reader: AnswerReader = readers[APIS.index(api)](answer)
    return reader


def expected(answer: Answer) -> ModelResult:
    """The result for an answer: its parts as blocks, without empty texts."""
    blocks: list[Any] = [
        TextContent(text=part[1])
        if part[0] == "text"
        else ToolUseContent(id=part[1], name=part[2], input=json.loads(part[3]))
        for part in answer.parts
        if part != ("text", "")
    ]
    uses_tools = any(isinstance(block, ToolUseContent) for block in blocks)
    message = CreateMessageResult(
        role="assistant",
        content=blocks[0] if len(blocks) == 1 else blocks or TextContent(text=""),
        model=MODEL,
        stop_reason="toolUse" if uses_tools else "endTurn",
    )
    return ModelResult(result=message, input_tokens=answer.input_tokens, output_tokens=answer.output_tokens)
