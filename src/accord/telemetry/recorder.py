"""Telling a telemetry, which never harms what it is told of: what it raises is logged, the first time.

What a request that comes says of itself: whom or what it is about, and the trace it belongs to. Read with tolerance:
what is wrong with a request is said by whoever serves it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.errors import DeclarationError
from accord.session.pending_request import PendingRequest
from accord.telemetry.base import Operation, SessionOver, Telemetry

log: logging.Logger = logging.getLogger("accord.telemetry")

_current: ContextVar[Operation | None] = ContextVar("accord_operation", default=None)


class TelemetryRecorder:
    """Tells one telemetry on behalf of one server or client. Raises `DeclarationError` for what is none."""

    def __init__(self, telemetry: Telemetry) -> None:
        if isinstance(telemetry, type) or not isinstance(telemetry, Telemetry):
            raise DeclarationError(f"{telemetry!r:.200} is not a telemetry object: write telemetry=OpenTelemetry()")
        self._telemetry = telemetry
        self._has_logged = False

    @contextmanager
    def operation(self, operation: Operation) -> Iterator[Operation]:
        """As long as a request is served, or its answer awaited."""
        token = _current.set(operation)
        self._call(self._telemetry.begin, operation)
        try:
            yield operation
        except BaseException as exc:
            operation.error = exc
            raise
        finally:
            self._call(self._telemetry.end, operation)
            _current.reset(token)

    @property
    def current(self) -> Operation | None:
        """The request that is served in this context."""
        return _current.get()

    def continue_operation(self, operation: Operation) -> None:
        """The handler that runs in this context has waited for another request, and goes on on behalf of that."""
        before = self.current
        _current.set(operation)
        if before is not None:
            operation.began = True
            self._call(self._telemetry.go_on, operation, before)

    @contextmanager
    def handling(self) -> Iterator[None]:
        """As long as a handler of the request that is served in this context runs: it may raise."""
        operation = self.current
        if operation is not None:
            operation.began = True
        try:
            yield
        except Exception as error:
            self._record_error(self.current, error)
            raise

    def _record_error(self, operation: Operation | None, error: BaseException) -> None:
        """Tell of an error once, however many functions it passes through."""
        if operation is not None and operation.raised is not error:
            operation.raised = error
            self._call(self._telemetry.raised, operation, error)

    def session(self, over: SessionOver) -> None:
        """A session has ended."""
        self._call(self._telemetry.session, over)

    def _call(self, told: Callable[..., None], *about: Any) -> None:
        try:
            told(*about)
        except Exception as exc:  # it may raise anything: that is its own affair
            if not self._has_logged:
                self._has_logged = True
                log.error("accord: the telemetry failed; this is said once: %r", exc, exc_info=exc)


MAX_FIELD_LENGTH = 8192
"""Characters of a field of the trace context that are read; a longer one is none. Baggage, the longest, has so many."""


class RequestFields(msgspec.Struct):
    """The params of any request."""

    name: Any = None
    uri: Any = None
    arguments: Raw | UnsetType = UNSET
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")

    @property
    def carrier(self) -> dict[str, str]:
        """Its trace context, and what else may be one."""
        return trace_context(self.meta or {})


_decoder = msgspec.json.Decoder(RequestFields)
_NOTHING = RequestFields()


def read(exchange: PendingRequest) -> RequestFields:
    """The params of a request, as far as they can be read."""
    if exchange.params is UNSET:
        return _NOTHING
    try:
        return _decoder.decode(exchange.params)
    except (msgspec.MsgspecError, RecursionError):
        return _NOTHING


def text_or_empty(value: Any) -> str:
    """A text, or an empty one for whatever else stands in its place."""
    return value if isinstance(value, str) else ""


def trace_context(fields: Mapping[str, Any]) -> dict[str, str]:
    """What may be a trace context: texts of a reasonable length, under names without a prefix (SEP-414)."""
    return {
        key: value
        for key, value in fields.items()
        if isinstance(value, str) and "/" not in key and len(value) <= MAX_FIELD_LENGTH
    }
