"""The state of one connection while the index reads: open requests, exchanges, and calls that need input."""

from __future__ import annotations

from msgspec import UNSET

from accord.inspector.traffic.indexed_line import IndexedLine, IndexedMessage
from accord.inspector.traffic.spans import NO_SPAN
from accord.messages.revision import REVISIONS
from accord.wire.request_tracker import request_key

_MAX_INPUTS = 10_000
_MAX_EXCHANGES = 10_000


class ConnectionTraffic:
    """The open ends of one connection."""

    def __init__(self) -> None:
        self.client: int = 0
        """The direction of the client's messages: that of the first request."""
        self.revision: str = ""
        self.span: int = NO_SPAN
        self.pending: dict[tuple[int, object], int] = {}
        """The rows of requests without a response, by direction and id."""
        self.exchanges: dict[int, int] = {}
        """The spans of HTTP exchanges."""
        self.heads: dict[int, int] = {}
        """The rows of HTTP requests without a response."""
        self._calls: dict[object, int] = {}
        self._inputs: dict[object, int] = {}

    def note_revision(self, message: IndexedMessage) -> None:
        """Store the revision that a request names."""
        params = message.params
        if params is not None and params.meta is not None and params.meta.revision is not None:
            self.set_revision(params.meta.revision)

    def set_revision(self, revision: object) -> None:
        """Store the revision of what follows."""
        if isinstance(revision, str) and revision in REVISIONS:
            self.revision = revision

    def span_of(self, entry: IndexedLine) -> int:
        """Return the span that a message belongs to: that of its request, or of its exchange."""
        span = NO_SPAN if entry.request is None else self._calls.get(request_key(entry.request), NO_SPAN)
        return self.exchanges.get(entry.exchange, NO_SPAN) if span == NO_SPAN and entry.exchange else span

    def open_call(self, key: object, exchange: int, span: int) -> int | None:
        """Store the span of a request; return the row of the head of its exchange."""
        self._calls[key] = span
        if not exchange:
            return None
        if len(self.exchanges) > _MAX_EXCHANGES:
            del self.exchanges[next(iter(self.exchanges))]
        self.exchanges[exchange] = span
        return self.heads.get(exchange)

    def close_call(self, key: object, exchange: int) -> None:
        """Forget an answered request; its exchange may have further messages."""
        self._calls.pop(key, None)

    def take_open_spans(self) -> list[int]:
        """Return the spans that end with the connection, and forget them."""
        spans = [*self._calls.values(), *self.exchanges.values()]
        self._calls.clear()
        self.exchanges.clear()
        self.heads.clear()
        return spans

    def expect_input(self, state: object, method: str, name: str, span: int) -> None:
        """Store a call that needs input: the request that sends it belongs to the same span."""
        keys: list[object] = [(method, name)]
        if isinstance(state, str):
            keys.append(hash(state))
        for key in keys:
            if len(self._inputs) >= _MAX_INPUTS:
                del self._inputs[next(iter(self._inputs))]
            self._inputs[key] = span

    def continued(self, message: IndexedMessage, name: str) -> int:
        """Return the span of the call that a request continues, or `NO_SPAN`."""
        params = message.params
        if not self._inputs or params is None or (params.state is None and params.responses is UNSET):
            return NO_SPAN
        by_name = self._inputs.pop((message.method, name), NO_SPAN)
        by_state = self._inputs.pop(hash(params.state), NO_SPAN) if isinstance(params.state, str) else NO_SPAN
        return by_name if by_state == NO_SPAN else by_state
