"""Answers of the Chat Completions API, as a whole or as a stream.

Other servers than OpenAI's deviate; what is known of them is accepted: calls without an index or with the same index
for all, without an id, arguments that are an object, a stream without `[DONE]`, `stop` as the reason for the use of a
tool.
"""

from __future__ import annotations

from typing import Any

import msgspec

from accord.host.models.answer import OTHER_API, AnswerBuilder, PartialToolUse, decode
from accord.host.models.failures import ProviderFailure, event_failure
from accord.host.models.model import ModelResult
from accord.wire.sse import ServerSentEvent

_STOP_REASONS = {"stop": "endTurn", "length": "maxTokens", "tool_calls": "toolUse", "function_call": "toolUse"}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: Any = None


class _Content(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Content | None = None
    message: _Content | None = None
    finish_reason: str | None = None


class _Tokens(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Tokens | None = None
    error: Any = None


_completion = msgspec.json.Decoder(_Completion)
_TEXT = "text"
"""The key of the text; calls have their number as key."""


class CompletionReader:
    """Reader of one completion of the Chat Completions API, of which only the first choice counts."""

    def __init__(self, answer: AnswerBuilder) -> None:
        self._answer = answer
        self._calls: dict[int | None, PartialToolUse] = {}
        """The call to which a piece without an id belongs, by its index; None is the last call."""
        self._count = 0
        self.complete: bool = False
        self.finished: bool = False
        self._refused = False

    def read_event(self, event: ServerSentEvent) -> str:
        """See `AnswerReader.read_event`."""
        if not event.data:
            return ""
        if event.data.strip() == b"[DONE]":
            self.finished = True
            return ""
        return self._read(event.data)

    def read_body(self, body: bytes) -> str:
        """See `AnswerReader.read_body`."""
        text = self._read(body)
        if not self.complete:
            raise ProviderFailure("its answer has no choices", retry=True, advice=OTHER_API)
        return text

    def end(self) -> str:
        """See `AnswerReader.end`."""
        return ""

    def result(self) -> ModelResult:
        """See `AnswerReader.result`."""
        if self._refused:
            self._answer.stop_reason = "refusal"
        return self._answer.result()

    def _read(self, data: bytes) -> str:
        found = decode(_completion, data)
        if found.error is not None:
            raise event_failure({"error": found.error})
        self._answer.model = found.model or self._answer.model
        if found.usage is not None:
            self._answer.set_usage(found.usage.prompt_tokens, found.usage.completion_tokens)
        return "".join(self._read_choice(choice) for choice in found.choices or () if choice.index == 0)

    def _read_choice(self, choice: _Choice) -> str:
        text = ""
        content = choice.delta or choice.message
        if content is not None:
            self._refused |= bool(content.refusal)
            for part in filter(None, (content.content, content.refusal)):
                text += self._answer.add_text(_TEXT, part)
            for call in content.tool_calls or ():
                self._read_call(call)
        if choice.finish_reason or choice.message is not None:
            self.complete = True
            reason = choice.finish_reason or "stop"
            self._answer.stop_reason = _STOP_REASONS.get(reason, reason[:100])
        return text

    def _read_call(self, call: _ToolCall) -> None:
        function = call.function or _Function()
        use = self._find_call(call, function)
        use.id = use.id or call.id or ""
        use.name = use.name or function.name or ""
        if isinstance(call.extra_content, dict):  # the signature of Gemini's thoughts
            self._answer.hide({"extra_content": call.extra_content}, use.number)
        if isinstance(function.arguments, dict):
            use.pieces.append(msgspec.json.encode(function.arguments).decode())
        elif function.arguments:
            use.pieces.append(function.arguments)

    def _find_call(self, call: _ToolCall, function: _Function) -> PartialToolUse:
        """Return the call to which a piece belongs: that with its index, unless the piece has another id."""
        known = self._calls.get(call.index)
        belongs = known is not None and (not call.id or not known.id or known.id == call.id)
        if call.index is None and not call.id and function.name:
            belongs = False
        if known is None or not belongs:
            known = self._answer.begin_tool_use(self._count, "", "")
            self._count += 1
        self._calls[call.index] = self._calls[None] = known
        return known
