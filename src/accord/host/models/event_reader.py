"""Reading of streams whose events name their type: the Messages and the Responses API."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from accord.host.models.answer import AnswerBuilder, decode
from accord.host.models.failures import event_failure
from accord.wire.sse import ServerSentEvent


class _TypedEvent(msgspec.Struct):
    type: str = ""


_typed_event = msgspec.json.Decoder(_TypedEvent)
_anything = msgspec.json.Decoder()


class EventReader:
    """Base class of readers with a handler for each type of event, which returns the text that the event adds.

    Events of other types are ignored.
    """

    def __init__(self, answer: AnswerBuilder, handlers: Mapping[str, Callable[[bytes], str]]) -> None:
        self._answer = answer
        self._handlers = {**handlers, "error": self._raise_error}
        self.complete: bool = False
        self.finished: bool = False

    def read_event(self, event: ServerSentEvent) -> str:
        """See `AnswerReader.read_event`."""
        if not event.data or event.data.strip() == b"[DONE]":
            return ""
        handler = self._handlers.get(decode(_typed_event, event.data).type or event.event)
        return "" if handler is None else handler(event.data)

    def _finish(self) -> None:
        self.complete = self.finished = True

    def _raise_error(self, data: bytes) -> str:
        raise event_failure(decode(_anything, data))
