"""Answers that no provider should send: whatever comes, a reader returns an answer or raises `ProviderFailure`."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings, strategies as st

from accord.host.models.failures import ProviderFailure, event_failure, model_error, response_failure
from accord.transport.http.redaction import SecretRedactor
from accord.wire.sse import ServerSentEvent

from tests.host.models.fake_provider import ChatCompletionsAPI, MessagesAPI, ResponsesAPI
from tests.host.models.providers import API, APIS, CALLS
from tests.host.models.test_answers import new_reader

STREAMS = [
    [json.loads(event.partition(b"data: ")[2]) for event in answers.stream(CALLS) if b"[DONE]" not in event]
    for answers in (MessagesAPI, ChatCompletionsAPI, ResponsesAPI)
]
EVENTS = [event for stream in STREAMS for event in stream]
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just({}), st.just([])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def broken_events(draw: st.DrawFn) -> Any:
    """An event of one of the APIs with some values replaced."""
    return spoil(draw, draw(st.sampled_from(EVENTS)), draw(st.integers(0, 3)))


def spoil(draw: st.DrawFn, value: Any, times: int) -> Any:
    for _ in range(times):
        if not isinstance(value, dict | list) or not value:
            return draw(values)
        key: Any = (
            draw(st.sampled_from(sorted(value))) if isinstance(value, dict) else draw(st.integers(0, len(value) - 1))
        )
        changed = spoil(draw, value[key], draw(st.integers(0, 3))) if draw(st.booleans()) else draw(values)
        value = {**value, key: changed} if isinstance(value, dict) else [*value[:key], changed, *value[key + 1 :]]
    return value


@st.composite
def streams(draw: st.DrawFn) -> tuple[API, list[Any]]:
    """An API, and events of any, or its own stream with a few events replaced."""
    place = draw(st.integers(0, len(APIS) - 1))
    if draw(st.booleans()):
        return APIS[place], draw(st.lists(broken_events(), max_size=8))
    events = list(STREAMS[place])
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(events) - 1))
        events[at] = spoil(draw, events[at], draw(st.integers(1, 2)))
    return APIS[place], events


@settings(max_examples=500)
@given(stream=streams())
def test_any_stream_is_an_answer_or_a_failure(stream: tuple[API, list[Any]]) -> None:
    api, events = stream
    reader, text = new_reader(api), ""
    with suppress(ProviderFailure):
        for event in events:
            text += reader.read_event(ServerSentEvent(json.dumps(event).encode()))
        text += reader.end()
        found = reader.result()
        blocks = found.result.content if isinstance(found.result.content, list) else [found.result.content]
        assert "".join(block.text for block in blocks if block.type == "text") == text
        ids = [block.id for block in blocks if block.type == "tool_use"]
        assert len(ids) == len(set(ids))


@settings(max_examples=300)
@given(api=st.sampled_from(APIS), body=st.one_of(values, broken_events()))
def test_any_body_is_an_answer_or_a_failure(api: API, body: Any) -> None:
    whole = api.answers.whole(CALLS)
    for each in (body, {**whole, **body} if isinstance(body, dict) else whole):
        reader = new_reader(api)
        with suppress(ProviderFailure):
            reader.read_body(json.dumps(each).encode())
            reader.result()


@given(body=values, status=st.integers(100, 599))
def test_any_error_has_a_text_that_can_be_shown(body: Any, status: int) -> None:
    failures = [
        response_failure(status, {"retry-after": "1", "location": "\n"}, json.dumps({"error": body}).encode()),
        response_failure(status, {}, json.dumps(body).encode()),
        event_failure(body),
    ]
    for failure in failures:
        error = model_error(failure, "m at h", SecretRedactor())
        assert str(error).isprintable()
        assert len(str(error)) < 2_000
