"""`RecordedServer`: a server that replays a recording, for tests of clients."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from accord.messages.base import JSONObject
from accord.schema.arguments import integers_of_floats
from accord.testing.recording import (
    PROGRESS,
    TranscriptMessage,
    decode_messages,
    is_deep,
    read_messages,
    request_label,
)
from accord.transport.base import MessageSink, Transport
from accord.visible_text import truncate

_ANY_PARAMS = ("initialize", "server/discover", "ping")
"""Requests that are answered whatever their params, because these describe the client."""

_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_LABELS = 2_000
"""Characters of the error that lists the recorded requests."""


class RecordedExchange(msgspec.Struct, frozen=True):
    """A recorded request, and the server's messages until and after its response."""

    request: TranscriptMessage
    responses: list[TranscriptMessage]

    @property
    def key(self) -> JSONObject:
        """Return the params without `_meta`, which describes the client."""
        return _params(self.request.message)

    @property
    def status(self) -> int:
        """Return the HTTP status of the response; 200 if it was not recorded."""
        return next((message.status for message in self.responses if message.is_answer), 200)


class RecordedExchanges:
    """The exchanges of a file, found by what identifies their requests."""

    def __init__(self, file: Path) -> None:
        self.all: list[RecordedExchange] = _group_by_request(read_messages(file))
        self._file = file
        self._by_key: dict[bytes, list[RecordedExchange]] = {}
        for exchange in self.all:
            self._by_key.setdefault(_key(exchange.request.message), []).append(exchange)
        self._methods = {exchange.request.method for exchange in self.all}
        labels = dict.fromkeys(request_label(exchange.request) for exchange in self.all)
        self._labels = truncate(", ".join(labels), _LABELS) or "none"

    def find(self, key: bytes) -> list[RecordedExchange]:
        """Return the exchanges of equal requests in their order."""
        return self._by_key.get(key, [])

    def unknown(self, request: JSONObject) -> RecordedExchange:
        """Return an exchange with an error that names the recorded requests."""
        message = TranscriptMessage(0, True, request)
        label = truncate(request_label(message), _LABELS)
        text = f"{self._file} has no such request: {label}; it has {self._labels}"
        code = INVALID_PARAMS if message.method in self._methods else METHOD_NOT_FOUND
        error = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": text}}
        return RecordedExchange(message, [TranscriptMessage(0, False, error)])


class RecordedServer:
    """A target for `Client` that answers from a recording (see `Recording`): `Client(RecordedServer(file))`.

    A request gets the response to the first unused recorded request with the same params, or else to the last one, and
    the notifications and requests that the server sent meanwhile. A request that was not recorded gets an error that
    says so. Raises `AssertionError` for a missing file, and `ValueError` for an invalid one.
    """

    def __init__(self, file: str | Path) -> None:
        self._file = Path(file)
        self._exchanges = RecordedExchanges(self._file)

    def __repr__(self) -> str:
        return f"<RecordedServer {str(self._file)!r}>"

    @property
    def exchanges(self) -> list[RecordedExchange]:
        """The recorded requests, with the messages that followed."""
        return self._exchanges.all

    def session(self) -> RecordedSession:
        """Return a new session, in which no recorded request is used yet."""
        return RecordedSession(self._exchanges)

    async def serve(self, transport: Transport) -> None:
        """Serve one connection until it ends."""
        session = self.session()
        async with asyncio.TaskGroup() as group:
            while received := await transport.receive():
                for message in (message for data in received for message in decode_messages(data)):
                    if session.is_request(message):
                        group.create_task(session.answer(session.find(message), message, transport))
            session.end()


class RecordedSession:
    """One session with a client, over any transport."""

    def __init__(self, exchanges: RecordedExchanges) -> None:
        self._exchanges = exchanges
        self._used: Counter[bytes] = Counter()
        self._answers: dict[Any, asyncio.Event] = {}
        self._has_ended = False

    def is_request(self, message: JSONObject) -> bool:
        """Return whether a message of the client needs an answer; a response continues the exchange that waits."""
        if "method" not in message:
            self._answered(message.get("id")).set()
        return "method" in message and "id" in message

    def end(self) -> None:
        """Wait for no further response of the client."""
        self._has_ended = True
        for answer in self._answers.values():
            answer.set()

    async def answer(
        self,
        exchange: RecordedExchange,
        request: JSONObject,
        sink: MessageSink,
        later: MessageSink | None = None,
    ) -> None:
        """Send the recorded messages, those after the response to `later`, if given. After a request of the server, the
        rest follows the client's response.
        """
        for recorded in exchange.responses:
            message = _adapt(recorded, exchange.request.message, request)
            sink.send(msgspec.json.encode(message))
            sink.flush()
            if recorded.is_answer and later is not None:
                sink = later
            if recorded.is_request and not self._has_ended:
                await self._answered(message["id"]).wait()

    def _answered(self, id: Any) -> asyncio.Event:
        return self._answers.setdefault(id if isinstance(id, int | str) else None, asyncio.Event())

    def find(self, request: JSONObject) -> RecordedExchange:
        """Return the recorded exchange for a request, or one with an error response."""
        key = _key(request)
        matches = self._exchanges.find(key)
        if not matches:
            return self._exchanges.unknown(request)
        self._used[key] += 1
        return matches[min(self._used[key], len(matches)) - 1]


def _key(request: JSONObject) -> bytes:
    """Return what identifies a request: its method and its params. No recorded request is as deep as `is_deep` says."""
    if is_deep(request):
        return b""
    # Clients write 1 and 1.0.
    return msgspec.json.encode([request["method"], integers_of_floats(_params(request))], order="sorted")


def _params(request: JSONObject) -> JSONObject:
    params = request.get("params")
    if request["method"] in _ANY_PARAMS or not isinstance(params, dict):
        return {}
    # Clients write "no arguments" and "no cursor" in several ways.
    return {key: value for key, value in params.items() if key != "_meta" and value not in (None, {})}


def _group_by_request(messages: list[TranscriptMessage]) -> list[RecordedExchange]:
    """Group the server's messages by the request that they belong to, or else by the latest pending one.

    An unanswered attempt to open a connection is left out: the client tried another way.
    """
    exchanges: list[RecordedExchange] = []
    pending: dict[Any, RecordedExchange] = {}
    opened: list[Any] = []
    for message in messages:
        if message.by_client and message.is_request:
            exchanges.append(RecordedExchange(message, []))
            opened.append((message.connection, message.message["id"]))
            pending[opened[-1]] = exchanges[-1]
        elif not message.by_client and exchanges:
            connection = message.connection
            while opened and opened[-1] not in pending:
                opened.pop()
            newest = pending[opened[-1]] if opened else exchanges[-1]
            latest = pending.get((connection, message.request)) or newest
            answered = pending.pop((connection, message.message.get("id")), latest) if message.is_answer else latest
            answered.responses.append(message)
    return [exchange for exchange in exchanges if exchange.responses or exchange.request.method not in _ANY_PARAMS]


def _progress_token(request: JSONObject, default: Any) -> Any:
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get("progressToken", default) if isinstance(meta, dict) else default


def _adapt(message: TranscriptMessage, recorded: JSONObject, request: JSONObject) -> JSONObject:
    """Return a server message with the id and progress token of this request in place of the recorded ones."""
    body = message.message
    if message.is_answer:
        return {**body, "id": request["id"]}
    params = dict(body.get("params") or {})
    if message.method == PROGRESS:
        token = _progress_token(request, params.get("progressToken"))
        return {**body, "params": {**params, "progressToken": token}}
    meta = params.get("_meta") or {}
    if meta.get(_SUBSCRIPTION) == recorded["id"]:
        return {**body, "params": {**params, "_meta": {**meta, _SUBSCRIPTION: request["id"]}}}
    return body
