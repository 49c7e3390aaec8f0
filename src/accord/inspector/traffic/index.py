"""`TrafficIndex`: a few numbers for each entry of a session file, whose bytes stay in the file.

    index.add_line(line, place)      # in the order of the file, by one thread
    index.times[row], index.methods.text(row), ...

A column for each property takes about 100 bytes a row. A response has the method, the name and the outcome of its
request; a request has the outcome of its response. Another thread may read while one writes: a row exists once
`len(index)` counts it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from msgspec import UNSET

from accord.inspector.traffic.connection_state import ConnectionTraffic
from accord.inspector.traffic.indexed_line import IndexedLine, IndexedMessage, content_size, decode_header, decode_line
from accord.inspector.traffic.spans import (
    CALL,
    CONNECTION,
    NO_SPAN,
    SERVER_REQUEST,
    STREAM,
    SUBSCRIPTION,
    SpanTable,
)
from accord.inspector.traffic.text_column import TextColumn
from accord.wire.request_tracker import request_key
from accord.wire.session_file import SessionFileError, SessionHeader

KINDS = (
    "request",
    "response",
    "notification",
    "other",
    "http",
    "stderr",
    "connected",
    "lost",
    "closed",
    "skipped",
    "unanswered",
    "remark",
    "limit",
)
"""What a row is; `other` is a message that is neither of JSON-RPC nor a single one, such as a batch."""
REQUEST, RESPONSE, NOTIFICATION, OTHER, HTTP = range(5)
LIMIT = KINDS.index("limit")
_EVENT_KINDS = frozenset(KINDS[HTTP:])
_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}

OUTCOMES = ("", "ok", "error", "pending", "input", "cancelled", "lost")
"""What became of a row: `input` is a result that requires input, `lost` a request whose connection ended."""
NONE, OK, ERROR, PENDING, INPUT, CANCELLED, LOST = range(7)

DIRECTIONS = ("", "sent", "received")
SENT, RECEIVED = 1, 2
_DIRECTION_NUMBERS = {direction: number for number, direction in enumerate(DIRECTIONS)}

NO_ROW = -1
MAX_ROWS = 5_000_000
"""The maximum number of rows; what follows is in the file, but is not shown."""
MAX_CONNECTIONS = 50_000
"""The maximum number of connections whose open requests are known; of further ones, the oldest is forgotten."""
_NAME_CHARACTERS = 200
_NEAR = 5_000
"""Rows among which the request of a call is found."""
_BY_SERVERS = {"sampling/createMessage", "elicitation/create", "roots/list"}
_STAYS = {"subscriptions/listen"}
_FAILED = {"lost": LOST, "skipped": ERROR, "unanswered": ERROR, "limit": ERROR}
_INTEGER = 2**31


class TrafficIndex:
    """The rows and spans of one session file."""

    def __init__(self) -> None:
        self.places: array[int] = array("Q")
        """Where the line begins in the file."""
        self.lengths: array[int] = array("I")
        self.times: array[float] = array("d")
        self.connections: array[int] = array("I")
        self.exchanges: array[int] = array("I")
        self.kinds: array[int] = array("B")
        self.directions: array[int] = array("B")
        self.outcomes: array[int] = array("B")
        self.codes: array[int] = array("i")
        """The status of an HTTP response, or the code of an error; 0 for none."""
        self.sizes: array[int] = array("I")
        """The size of the message in bytes."""
        self.partners: array[int] = array("i")
        """The row of the response to a request, and the other way round."""
        self.row_spans: array[int] = array("i")
        self.methods: TextColumn = TextColumn()
        self.names: TextColumn = TextColumn()
        """The tool, prompt or resource; of an HTTP request the URL, of a connection the peer."""
        self.ids: list[int | str | None] = []
        self.revisions: TextColumn = TextColumn()
        """The revision in which a message is to be read; empty if it is not known yet."""
        self.spans: SpanTable = SpanTable()
        self.header: SessionHeader | None = None
        self.is_complete: bool = True
        """Whether all entries of the file are rows."""
        self.changes: array[int] = array("I")
        """The rows whose outcome changed after they were added, in the order of the changes."""
        self._connections: dict[int, ConnectionTraffic] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def seconds(self) -> float:
        """Return the time of the last row, in seconds since the beginning."""
        return self.times[self._count - 1] if self._count else 0.0

    def duration(self, row: int) -> float | None:
        """Return the seconds between a request and its response, or None."""
        partner = self.partners[row]
        return None if partner < 0 else abs(self.times[partner] - self.times[row])

    def is_by_client(self, row: int) -> bool:
        """Return whether a message is one of the client, whose request was the first of its connection."""
        connection = self._connections.get(self.connections[row])
        return connection is not None and self.directions[row] == connection.client

    def rows_of_span(self, span: int) -> Iterator[int]:
        """Yield the rows of a span."""
        for row in range(self.spans.first_rows[span], self.spans.last_rows[span] + 1):
            if self.row_spans[row] == span:
                yield row

    # --- writing -----------------------------------------------------------------------------------------------

    def requests(self, first: int, method: str, name: str) -> Iterator[int]:
        """Yield the rows in which a method was first requested for a name, among the next rows from `first` on."""
        known: set[int] = set()
        for row in range(first, min(len(self), first + _NEAR)):
            span = self.row_spans[row]
            if (
                self.kinds[row] == REQUEST
                and self.methods.text(row) == method
                and self.names.text(row) == name[:_NAME_CHARACTERS]
                and span not in known
                and (span == NO_SPAN or self.spans.first_rows[span] >= first)
            ):
                known.add(span)
                yield row

    def add_line(self, line: bytes, place: int) -> None:
        """Add a line of the file. The first one is the header. Raises `SessionFileError` for an invalid one."""
        if self.header is None:
            self.header = decode_header(line)
            return
        entry = decode_line(line)
        if entry.kind != "message" and entry.kind not in _EVENT_KINDS:
            raise SessionFileError(f"unknown kind {entry.kind[:50]!r}")
        if self._count >= MAX_ROWS:
            self.is_complete = False
            return
        self._add(entry, line, place)
        self._count += 1

    def _add(self, entry: IndexedLine, line: bytes, place: int) -> None:
        row = self._count
        connection = self._connections.get(entry.connection)
        if connection is None:
            if len(self._connections) >= MAX_CONNECTIONS:
                del self._connections[next(iter(self._connections))]
            connection = self._connections[entry.connection] = ConnectionTraffic()
        entry.at = max(entry.at, self.times[-1] if row else 0.0)  # time does not go back
        self.places.append(place)
        self.lengths.append(len(line))
        self.times.append(entry.at)
        self.connections.append(entry.connection & 0xFFFFFFFF)
        self.exchanges.append(entry.exchange & 0xFFFFFFFF)
        self.directions.append(_DIRECTION_NUMBERS.get(entry.direction, 0))
        self.partners.append(NO_ROW)
        self.row_spans.append(NO_SPAN)
        self.outcomes.append(_FAILED.get(entry.kind, NONE))
        self.codes.append(0)
        if entry.kind == "message":
            self._add_message(row, entry, line, connection)
            return
        number = _KIND_NUMBERS[entry.kind]
        self.kinds.append(number)
        self.sizes.append(_unsigned(entry.size) if entry.kind == "skipped" else content_size(line))
        self.ids.append(_shortened_id(entry.request) if entry.kind == "unanswered" else None)
        self.methods.append(entry.method[:_NAME_CHARACTERS])
        self.names.append((entry.url or entry.name)[:_NAME_CHARACTERS])
        self.revisions.append(connection.revision)
        if number == HTTP:
            self._add_head(row, entry, connection)
        else:
            self._add_event(row, entry, connection)

    def _add_message(self, row: int, entry: IndexedLine, line: bytes, connection: ConnectionTraffic) -> None:
        message = entry.message if entry.message is not UNSET else IndexedMessage()
        self.sizes.append(content_size(line))
        self.ids.append(_shortened_id(message.id))
        if message.method is not None:
            connection.note_revision(message)
            self.methods.append(message.method[:_NAME_CHARACTERS])
            self.names.append(_name(message))
            self.revisions.append(connection.revision)
            self.kinds.append(NOTIFICATION if message.id is UNSET else REQUEST)
            self._add_request(row, entry, message, connection)
        elif message.result is not UNSET or message.error is not UNSET:
            self.kinds.append(RESPONSE)
            self._add_response(row, entry, message, connection)
        else:
            self.kinds.append(OTHER)
            self.methods.append("")
            self.names.append("")
            self.revisions.append(connection.revision)
            self._join(row, connection.span_of(entry))

    def _add_request(
        self, row: int, entry: IndexedLine, message: IndexedMessage, connection: ConnectionTraffic
    ) -> None:
        direction = self.directions[row]
        if message.id is UNSET:
            self._join(row, connection.span_of(entry))
            if message.method == "notifications/cancelled":
                self._cancel(entry, connection)
            return
        if not connection.client:
            connection.client = direction
        self.outcomes[row] = PENDING
        connection.pending[direction, request_key(message.id)] = row
        if direction != connection.client or message.method in _BY_SERVERS:
            span = connection.span_of(entry)
            if span == NO_SPAN:
                span = self.spans.begin(SERVER_REQUEST, self.connections[row], row, entry.at, PENDING)
        else:
            span = self._span_of_call(row, entry, message, connection)
        self._join(row, span)

    def _span_of_call(
        self, row: int, entry: IndexedLine, message: IndexedMessage, connection: ConnectionTraffic
    ) -> int:
        """Return the span of a request: that of the call that it continues, or a new one."""
        span = connection.continued(message, self.names.text(row))
        if span == NO_SPAN:
            kind = SUBSCRIPTION if message.method in _STAYS else CALL
            span = self.spans.begin(kind, self.connections[row], row, entry.at, PENDING)
        else:
            self.spans.add_round(span, PENDING)
        head = connection.open_call(request_key(message.id), entry.exchange, span)
        if head is not None:
            self.row_spans[head] = span
            self.spans.first_rows[span] = min(head, self.spans.first_rows[span])
        return span

    def _add_response(
        self, row: int, entry: IndexedLine, message: IndexedMessage, connection: ConnectionTraffic
    ) -> None:
        direction = self.directions[row]
        key = request_key(message.id)
        request = connection.pending.pop((SENT + RECEIVED - direction, key), NO_ROW)
        outcome, code = _outcome(message)
        self.outcomes[row] = outcome
        self.codes[row] = code
        span = NO_SPAN if request < 0 else self.row_spans[request]
        if request >= 0:
            self._pair(request, row)
            self.methods.append(self.methods.text(request))
            self.names.append(self.names.text(request))
            if self.methods.text(request) == "initialize" and message.result is not UNSET:
                connection.set_revision(message.result.revision)
        else:
            self.methods.append("")
            self.names.append("")
        self.revisions.append(connection.revision)
        if span == NO_SPAN:
            span = connection.span_of(entry)
        self._join(row, span)
        if request >= 0 and span != NO_SPAN and direction != connection.client:
            self.spans.end(span, entry.at, outcome)
            connection.close_call(key, entry.exchange)
            if outcome == INPUT and message.result is not UNSET:
                connection.expect_input(message.result.state, self.methods.text(row), self.names.text(row), span)
        elif request >= 0 and span != NO_SPAN and self.spans.kinds[span] == SERVER_REQUEST:
            self.spans.end(span, entry.at, outcome)

    def _pair(self, request: int, response: int) -> None:
        self.partners[request], self.partners[response] = response, request
        if self.outcomes[request] != CANCELLED:
            self.outcomes[request] = self.outcomes[response]
        self.codes[request] = self.codes[response]
        self.changes.append(request)

    def _cancel(self, entry: IndexedLine, connection: ConnectionTraffic) -> None:
        request = connection.pending.get((connection.client, request_key(entry.request)), NO_ROW)
        if request >= 0:
            self.outcomes[request] = CANCELLED
            self.changes.append(request)
            if self.row_spans[request] != NO_SPAN:
                self.spans.end(self.row_spans[request], entry.at, CANCELLED)

    def _add_head(self, row: int, entry: IndexedLine, connection: ConnectionTraffic) -> None:
        """Add the head of an HTTP request or response."""
        span = connection.exchanges.get(entry.exchange, NO_SPAN)
        if self.directions[row] == connection.client or (not entry.status and entry.method):
            self.outcomes[row] = PENDING
            connection.heads[entry.exchange] = row
            if entry.method == "GET":
                span = self.spans.begin(STREAM, self.connections[row], row, entry.at, PENDING)
                connection.exchanges[entry.exchange] = span
        else:
            self._answer_head(row, entry, connection, span)
        self._join(row, span)

    def _answer_head(self, row: int, entry: IndexedLine, connection: ConnectionTraffic, span: int) -> None:
        self.codes[row] = entry.status if 0 <= entry.status < _INTEGER else 0
        self.outcomes[row] = ERROR if entry.status >= 400 else OK
        head = connection.heads.pop(entry.exchange, NO_ROW)
        if head >= 0:
            self._pair(head, row)
            self.methods.set_last(self.methods.text(head))
            self.names.set_last(self.names.text(head))
        if entry.status >= 400 and span != NO_SPAN and self.spans.kinds[span] == STREAM:
            self.spans.end(span, entry.at, ERROR)

    def _add_event(self, row: int, entry: IndexedLine, connection: ConnectionTraffic) -> None:
        if entry.kind == "connected":
            connection.span = self.spans.begin(CONNECTION, self.connections[row], row, entry.at, PENDING)
        self._join(row, connection.span_of(entry) if entry.request is not None else connection.span)
        if entry.kind == "unanswered":
            self._fail(connection, request_key(entry.request), entry.at, ERROR)
        elif entry.kind in ("lost", "closed"):
            self._end_connection(row, entry, connection)

    def _end_connection(self, row: int, entry: IndexedLine, connection: ConnectionTraffic) -> None:
        outcome = LOST if entry.kind == "lost" else OK
        for (_, key), request in list(connection.pending.items()):
            stayed = entry.kind == "closed" and self.methods.text(request) in _STAYS
            self._fail(connection, key, entry.at, OK if stayed else LOST)
        for span in connection.take_open_spans():
            if self.spans.ends[span] != self.spans.ends[span]:
                self.spans.end(span, entry.at, outcome)
        if connection.span != NO_SPAN and self.spans.outcomes[connection.span] != LOST:
            self.spans.end(connection.span, entry.at, outcome)

    def _fail(self, connection: ConnectionTraffic, key: object, at: float, outcome: int) -> None:
        for direction in (SENT, RECEIVED):
            request = connection.pending.pop((direction, key), NO_ROW)
            if request >= 0 and self.outcomes[request] == PENDING:
                self.outcomes[request] = outcome
                self.changes.append(request)
                if (span := self.row_spans[request]) != NO_SPAN:
                    self.spans.end(span, at, outcome)

    def _join(self, row: int, span: int) -> None:
        if span != NO_SPAN:
            self.row_spans[row] = span
            self.spans.last_rows[span] = row


def _shortened_id(id: object) -> int | str | None:
    if isinstance(id, str):
        return id[:_NAME_CHARACTERS]
    return id if isinstance(id, int) and not isinstance(id, bool) else None


def _unsigned(size: int) -> int:
    return min(max(size, 0), 2 * _INTEGER - 1)


def _outcome(message: IndexedMessage) -> tuple[int, int]:
    """Return the outcome and the error code of a response."""
    if message.error is not UNSET:
        code = message.error.code
        return ERROR, code if isinstance(code, int) and -_INTEGER <= code < _INTEGER else 0
    result = message.result
    if result is not UNSET and result.is_error is True:
        return ERROR, 0
    return (INPUT if result is not UNSET and result.type == "input_required" else OK), 0


def _name(message: IndexedMessage) -> str:
    """Return the tool, prompt, resource or task of a request."""
    params = message.params
    if params is None:
        return ""
    reference = params.ref
    names = [params.name, params.uri, params.task, params.level]
    names += [reference.name, reference.uri] if reference is not None else []
    return next((name[:_NAME_CHARACTERS] for name in names if isinstance(name, str)), "")
