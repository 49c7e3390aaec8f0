"""Calls of a telemetry, which never affect the request: the first exception of the telemetry is logged.

The fields of a received request that telemetry needs: its name or URI, and its trace context. Invalid fields are
ignored, because the code that serves the request reports them.
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
    """The caller of one telemetry for one server or client. Raises `DeclarationError` for another object."""

    def __init__(self, telemetry: Telemetry) -> None:
        if isinstance(telemetry, type) or not isinstance(telemetry, Telemetry):
            raise DeclarationError(f"{telemetry!r:.200} is not a telemetry object: write telemetry=OpenTelemetry()")
        self._telemetry = telemetry
        self._has_logged = False

    @contextmanager
    def operation(self, operation: Operation) -> Iterator[Operation]:
        """Report the beginning and end of a request around a `with` block."""
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
        """Return the request that is served in this context."""
        return _current.get()

    def continue_operation(self, operation: Operation) -> None:
        """Continue the handler of this context on behalf of another request, which it waited for."""
        before = self.current
        _current.set(operation)
        if before is not None:
            operation.began = True
            self._call(self._telemetry.go_on, operation, before)

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Report the exceptions of a handler around a `with` block."""
        operation = self.current
        if operation is not None:
            operation.began = True
        try:
            yield
        except Exception as error:
            self._record_error(self.current, error)
            raise

    def _record_error(self, operation: Operation | None, error: BaseException) -> None:
        """Report an error once, however many functions it passes through."""
        if operation is not None and operation.raised is not error:
            operation.raised = error
            self._call(self._telemetry.raised, operation, error)

    def session(self, session: SessionOver) -> None:
        """Report the end of a session."""
        self._call(self._telemetry.session, session)

    def _call(self, method: Callable[..., None], *arguments: Any) -> None:
        try:
            method(*arguments)
        except Exception as exc:  # a telemetry may raise anything
            if not self._has_logged:
                self._has_logged = True
                log.error("accord: the telemetry failed; this is said once: %r", exc, exc_info=exc)


MAX_FIELD_LENGTH = 8192
"""The maximum length of a trace context field in characters, that of baggage, the longest; longer fields are ignored.
"""


class RequestFields(msgspec.Struct):
    """The params of any request."""

    name: Any = None
    uri: Any = None
    arguments: Raw | UnsetType = UNSET
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")

    @property
    def carrier(self) -> dict[str, str]:
        """Return the trace context in `_meta`, with other fields that may belong to it."""
        return trace_context(self.meta or {})


_decoder = msgspec.json.Decoder(RequestFields)
_NOTHING = RequestFields()


def read(pending: PendingRequest) -> RequestFields:
    """Return the params of a request, or empty ones if they cannot be decoded."""
    if pending.params is UNSET:
        return _NOTHING
    try:
        return _decoder.decode(pending.params)
    except (msgspec.MsgspecError, RecursionError):
        return _NOTHING


def text_or_empty(value: Any) -> str:
    """Return a string, or an empty one for any other value."""
    return value if isinstance(value, str) else ""


def trace_context(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that may be a trace context: short strings under names without a prefix (SEP-414)."""
    return {
        key: value
        for key, value in fields.items()
        if isinstance(value, str) and "/" not in key and len(value) <= MAX_FIELD_LENGTH
    }
