"""Answers of the Responses API, as a whole or as a stream.

Unknown items and events are ignored. The last event of a stream repeats the whole answer.
"""

from __future__ import annotations

from typing import Any

import msgspec

from accord.host.models.answer import OTHER_API, AnswerBuilder, convert, decode
from accord.host.models.event_reader import EventReader
from accord.host.models.failures import ProviderFailure, event_failure
from accord.host.models.model import ModelResult
from accord.host.models.stop_sequences import StopSequences

_INCOMPLETE = {"max_output_tokens": "maxTokens"}


class _OutputContent(msgspec.Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    """An item of the output: a message, a call, or another kind, which is ignored."""

    type: str = ""
    content: Any = None
    call_id: str | None = None
    name: str | None = None
    arguments: Any = None
    id: Any = None
    summary: Any = None
    encrypted_content: Any = None


class _Details(msgspec.Struct):
    reason: str | None = None


class _UsedTokens(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Response(msgspec.Struct):
    model: str | None = None
    status: str | None = None
    output: list[_Item] | None = None
    usage: _UsedTokens | None = None
    incomplete_details: _Details | None = None
    error: Any = None


class _ResponseEvent(msgspec.Struct):
    response: _Response


class _ItemEvent(msgspec.Struct):
    item: _Item
    output_index: int = 0


class _DeltaEvent(msgspec.Struct):
    delta: str
    output_index: int = 0
    content_index: int = 0


_response = msgspec.json.Decoder(_Response)
_response_event = msgspec.json.Decoder(_ResponseEvent)
_item_event = msgspec.json.Decoder(_ItemEvent)
_delta_event = msgspec.json.Decoder(_DeltaEvent)


class ResponseReader(EventReader):
    """Reader of one response of the Responses API; `stop` ends its text."""

    def __init__(self, answer: AnswerBuilder, stop: StopSequences) -> None:
        handlers = {
            "response.output_item.added": self._begin_item,
            "response.output_text.delta": self._extend_text,
            "response.refusal.delta": self._extend_refusal,
            "response.function_call_arguments.delta": self._extend_arguments,
            "response.output_item.done": self._end_item,
            "response.completed": self._end_response,
            "response.incomplete": self._end_response,
            "response.failed": self._end_response,
        }
        super().__init__(answer, handlers)
        self._stop = stop
        self._last_text: tuple[int, int] = (0, 0)
        self._items: set[int] = set()
        """The output items of which the text, or the reasoning, is known."""
        self._refused = False

    def read_body(self, body: bytes) -> str:
        """See `AnswerReader.read_body`."""
        response = decode(_response, body)
        if response.output is None and response.error is None:
            raise ProviderFailure("its answer has no output", retry=True, advice=OTHER_API)
        return self._read_response(response)

    def end(self) -> str:
        """See `AnswerReader.end`."""
        return self._answer.add_text(self._last_text, rest) if (rest := self._stop.flush()) else ""

    def result(self) -> ModelResult:
        """See `AnswerReader.result`."""
        if self._refused:
            self._answer.stop_reason = "refusal"
        if self._stop.found is not None:
            self._answer.stop_reason = "stopSequence"
        return self._answer.result()

    # --- items -------------------------------------------------------------------------------------------------

    def _begin_item(self, data: bytes) -> str:
        event = decode(_item_event, data)
        return self._begin_call(event.output_index, event.item)

    def _begin_call(self, index: int, item: _Item) -> str:
        """Begin the use of a tool, unless the text has ended; return the text before it that was held back."""
        if item.type != "function_call" or self._stop.found is not None or self._answer.tool_use(index) is not None:
            return ""
        text = self.end()
        self._answer.begin_tool_use(index, item.call_id or "", item.name or "")
        return text

    def _extend_text(self, data: bytes) -> str:
        event = decode(_delta_event, data)
        return self._add_text(event.output_index, event.content_index, event.delta)

    def _extend_refusal(self, data: bytes) -> str:
        self._refused = True
        return self._extend_text(data)

    def _add_text(self, index: int, part: int, text: str) -> str:
        self._items.add(index)
        self._last_text = (index, part)
        passed = self._stop.feed(text)
        return self._answer.add_text(self._last_text, passed) if passed else ""

    def _extend_arguments(self, data: bytes) -> str:
        event = decode(_delta_event, data)
        use = self._answer.tool_use(event.output_index)
        if use is not None:
            use.pieces.append(event.delta)
        return ""

    def _end_item(self, data: bytes) -> str:
        event = decode(_item_event, data)
        return self._read_item(event.output_index, event.item)

    def _read_item(self, index: int, item: _Item) -> str:
        """Read a complete item: all of a call, and a text of which no piece came."""
        if item.type == "function_call":
            text = self._begin_call(index, item)
            use = self._answer.tool_use(index)
            if use is not None:
                use.id, use.name = item.call_id or use.id, item.name or use.name
                if isinstance(item.arguments, str) and item.arguments:
                    use.pieces = [item.arguments]
            return text
        if index in self._items:
            return ""
        if item.type == "reasoning" and item.encrypted_content:
            self._items.add(index)
            reasoning = {"type": "reasoning", "id": item.id, "summary": item.summary or []}
            self._answer.hide({**reasoning, "encrypted_content": item.encrypted_content}, self._answer.uses)
        if item.type != "message":
            return ""
        parts = convert(item.content or [], list[_OutputContent])
        self._refused |= any(part.refusal for part in parts)
        return "".join(
            self._add_text(index, place, part.text or part.refusal or "") for place, part in enumerate(parts)
        )

    # --- response ----------------------------------------------------------------------------------------------

    def _end_response(self, data: bytes) -> str:
        self._finish()
        return self._read_response(decode(_response_event, data).response)

    def _read_response(self, response: _Response) -> str:
        if response.status == "failed" or response.error is not None:
            raise event_failure({"error": response.error or "the response failed"})
        self._answer.model = response.model or self._answer.model
        if response.usage is not None:
            self._answer.set_usage(response.usage.input_tokens, response.usage.output_tokens)
        if response.status not in (None, "completed", "incomplete"):
            raise ProviderFailure(f"the status of its response is {response.status[:50]!r}", retry=True)
        if response.status == "incomplete":
            reason = response.incomplete_details.reason if response.incomplete_details else None
            self._answer.stop_reason = _INCOMPLETE.get(reason or "", (reason or "incomplete")[:100])
        return "".join(self._read_item(index, item) for index, item in enumerate(response.output or ()))
