"""A span for each request, current while the request runs.

A received request has the sender's span as its parent, from `_meta`; "SHOULD link current ambient context": over HTTP
that is the span of the HTTP request, which is the parent if `_meta` has none. On other transports the context is that
of the code that opened the connection, and is unrelated to its requests.
"""

from __future__ import annotations

from collections.abc import Collection
from contextvars import Token
from typing import Any, NamedTuple

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.propagate import get_global_textmap
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    StatusCode,
    TracerProvider,
    get_current_span,
    get_tracer,
    set_span_in_context,
)

from accord.errors import ProtocolError
from accord.telemetry import conventions
from accord.telemetry.base import Operation

ASKS = "accord.asks_for_input"
"""On the span of a request whose result asks for input, so that it will be sent again (2026-07-28)."""


class ActiveSpan(NamedTuple):
    """The span of a running request."""

    span: Span
    token: Token[Context]


class SpanRecorder:
    """A recorder of spans. `record` enables content beyond names and numbers: "arguments", "results"."""

    def __init__(
        self,
        version: str,
        provider: TracerProvider | None,
        propagator: TextMapPropagator | None,
        record: Collection[str],
    ) -> None:
        self._tracer = get_tracer("accord", version, provider)
        self._propagator = propagator
        self._record = frozenset(record)

    @property
    def _active_propagator(self) -> TextMapPropagator:
        """Return the propagator, by default the global one, which a program may set after the server was made."""
        return self._propagator or get_global_textmap()

    def begin(self, operation: Operation) -> None:
        """Begin a span, and make it current."""
        span, context = self._server_span(operation) if operation.side == "server" else self._client_span(operation)
        operation.state = ActiveSpan(span, contexts.attach(context))
        if "arguments" in self._record and span.is_recording():
            span.set_attributes(conventions.argument_attributes(operation))

    def _server_span(self, operation: Operation) -> tuple[Span, Context]:
        ambient = contexts.get_current() if operation.place.protocol else Context()
        parent = self._active_propagator.extract(operation.carrier, ambient)
        ambient_span = get_current_span(ambient).get_span_context()
        parent_span = get_current_span(parent).get_span_context()
        links = [Link(ambient_span)] if ambient_span.is_valid and ambient_span != parent_span else []
        span = self._start(operation, SpanKind.SERVER, parent, links)
        return span, set_span_in_context(span, parent)

    def _client_span(self, operation: Operation) -> tuple[Span, Context]:
        span = self._start(operation, SpanKind.CLIENT, contexts.get_current(), [])
        context = set_span_in_context(span)
        self._active_propagator.inject(operation.carrier, context)
        return span, context

    def _start(self, operation: Operation, kind: SpanKind, parent: Context, links: list[Link]) -> Span:
        return self._tracer.start_span(
            conventions.span_name(operation),
            parent,
            kind,
            conventions.start_attributes(operation),
            links,
            record_exception=False,
            set_status_on_exception=False,
        )

    def go_on(self, operation: Operation, before: Operation) -> None:
        """Make another span current, unless the handler has begun one itself."""
        current, previous = operation.state, before.state
        if isinstance(current, ActiveSpan) and isinstance(previous, ActiveSpan) and get_current_span() is previous.span:
            contexts.attach(set_span_in_context(current.span))

    def raised(self, operation: Operation, error: BaseException) -> None:
        """Record an exception of the handler."""
        if isinstance(operation.state, ActiveSpan):
            _record_exception(operation.state.span, error)

    def end(self, operation: Operation) -> None:
        """End the span and leave its context, unless it has ended before."""
        active = operation.state
        if not isinstance(active, ActiveSpan):
            return
        try:
            if active.span.is_recording():
                self._finish(operation, active.span)
        finally:
            active.span.end()
            contexts.detach(active.token)

    def _finish(self, operation: Operation, span: Span) -> None:
        outcome = conventions.outcome_attributes(operation)
        span.set_attributes({**_late_attributes(operation), **outcome})
        if not conventions.is_name_known(operation):
            span.update_name(conventions.span_name(operation, known=False))
        if conventions.ERROR_TYPE in outcome:
            # "The status description SHOULD match the JSONRPCError.message if the message is available."
            error = operation.error
            message = error.message if isinstance(error, ProtocolError) else None
            span.set_status(StatusCode.ERROR, message and conventions.redacted(message, conventions.MAX_ERROR_LENGTH))
            if error is not None and operation.raised is None:
                _record_exception(span, error)
        if "results" in self._record:
            span.set_attributes(conventions.result_attributes(operation))


def _record_exception(span: Span, error: BaseException) -> None:
    """Record an exception with secrets redacted, which `Span.record_exception` would take from the exception itself."""
    if span.is_recording():
        span.add_event("exception", conventions.exception_attributes(error))


def _late_attributes(operation: Operation) -> dict[str, Any]:
    """Return the attributes that were unknown at the beginning."""
    attributes: dict[str, Any] = {}
    if operation.side == "client" and operation.id is not None:
        attributes[conventions.REQUEST_ID] = str(operation.id)
        attributes[conventions.REVISION] = operation.revision
    if operation.asks:
        attributes[ASKS] = True
    return attributes
