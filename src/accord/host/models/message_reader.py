"""Answers of the Messages API of Anthropic, as a whole or as a stream.

"New event types may be added, and your code should handle unknown event types gracefully": unknown events and blocks
are ignored.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import field

from accord.host.models.answer import OTHER_API, AnswerBuilder, decode
from accord.host.models.event_reader import EventReader
from accord.host.models.failures import ProviderFailure, event_failure
from accord.host.models.model import ModelResult
from accord.messages.base import JSONObject

_STOP_REASONS = {
    "end_turn": "endTurn",
    "max_tokens": "maxTokens",
    "stop_sequence": "stopSequence",
    "tool_use": "toolUse",
}


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class _Message(msgspec.Struct):
    type: str = "message"
    model: str | None = None
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None
    error: Any = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class _MessageStart(msgspec.Struct):
    message: _Message


class _BlockStart(msgspec.Struct):
    index: int
    content_block: _Block


class _BlockDelta(msgspec.Struct):
    index: int
    delta: _Delta


class _MessageDelta(msgspec.Struct):
    delta: _Delta = field(default_factory=_Delta)
    usage: _Usage | None = None


_message = msgspec.json.Decoder(_Message)
_message_start = msgspec.json.Decoder(_MessageStart)
_block_start = msgspec.json.Decoder(_BlockStart)
_block_delta = msgspec.json.Decoder(_BlockDelta)
_message_delta = msgspec.json.Decoder(_MessageDelta)
_anything = msgspec.json.Decoder()


class _Thinking:
    """A block of thinking, which arrives in pieces."""

    def __init__(self, place: int, block: _Block) -> None:
        self.place = place
        self._data = block.data
        self._text = [block.thinking or ""]
        self._signature = [block.signature or ""]

    def extend(self, delta: _Delta) -> None:
        """Add a piece."""
        self._text.append(delta.thinking or "")
        self._signature.append(delta.signature or "")

    def part(self) -> JSONObject | None:
        """Return the block, or None if it is not signed: the API would refuse it."""
        if self._data:
            return {"type": "redacted_thinking", "data": self._data}
        signature = "".join(self._signature)
        return {"type": "thinking", "thinking": "".join(self._text), "signature": signature} if signature else None


class MessageReader(EventReader):
    """Reader of one message of the Messages API."""

    def __init__(self, answer: AnswerBuilder) -> None:
        handlers = {
            "message_start": self._start_message,
            "content_block_start": self._start_block,
            "content_block_delta": self._extend_block,
            "message_delta": self._extend_message,
            "message_stop": self._stop_message,
        }
        super().__init__(answer, handlers)
        self._usage = _Usage()
        self._thinking: dict[int, _Thinking] = {}

    def read_body(self, body: bytes) -> str:
        """See `AnswerReader.read_body`."""
        message = decode(_message, body)
        if message.type == "error" or message.error is not None:
            raise event_failure(decode(_anything, body))
        if message.content is None:
            raise ProviderFailure("its answer has no content", retry=True, advice=OTHER_API)
        self._answer.model = message.model or self._answer.model
        self._read_end(message.stop_reason, message.usage)
        return "".join(self._add_block(index, block) for index, block in enumerate(message.content))

    def end(self) -> str:
        """See `AnswerReader.end`."""
        return ""

    def result(self) -> ModelResult:
        """See `AnswerReader.result`."""
        for thinking in self._thinking.values():
            if (part := thinking.part()) is not None:
                self._answer.hide(part, thinking.place)
        return self._answer.result()

    def _start_message(self, data: bytes) -> str:
        message = decode(_message_start, data).message
        self._answer.model = message.model or self._answer.model
        self._read_end(None, message.usage)
        return ""

    def _start_block(self, data: bytes) -> str:
        event = decode(_block_start, data)
        return self._add_block(event.index, event.content_block)

    def _add_block(self, index: int, block: _Block) -> str:
        if block.type == "text":
            return self._answer.add_text(index, block.text or "")
        if block.type == "tool_use":
            given = block.input if isinstance(block.input, dict) else None
            self._answer.begin_tool_use(index, block.id or "", block.name or "", given)
        elif block.type in ("thinking", "redacted_thinking"):
            self._thinking[index] = _Thinking(self._answer.uses, block)
        return ""

    def _extend_block(self, data: bytes) -> str:
        event = decode(_block_delta, data)
        if event.delta.type == "text_delta":
            return self._answer.add_text(event.index, event.delta.text or "")
        thinking = self._thinking.get(event.index)
        if thinking is not None:
            thinking.extend(event.delta)
        use = self._answer.tool_use(event.index)
        if event.delta.type == "input_json_delta" and use is not None:
            use.pieces.append(event.delta.partial_json or "")
        return ""

    def _extend_message(self, data: bytes) -> str:
        event = decode(_message_delta, data)
        self._read_end(event.delta.stop_reason, event.usage)
        return ""

    def _stop_message(self, data: bytes) -> str:
        self._finish()
        return ""

    def _read_end(self, stop_reason: str | None, usage: _Usage | None) -> None:
        """Read the reason, and counts, which are cumulative: "Total input tokens in a request is the summation of
        `input_tokens`, `cache_creation_input_tokens`, and `cache_read_input_tokens`"."""
        if stop_reason is not None:
            self._answer.stop_reason = _STOP_REASONS.get(stop_reason, stop_reason[:100])
        for name in usage.__struct_fields__ if usage is not None else ():
            value = getattr(usage, name)
            if value is not None:
                setattr(self._usage, name, value)
        known = self._usage
        total = sum(
            each or 0 for each in (known.input_tokens, known.cache_creation_input_tokens, known.cache_read_input_tokens)
        )
        self._answer.set_usage(total, known.output_tokens)
