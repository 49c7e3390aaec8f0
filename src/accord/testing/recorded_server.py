"""`RecordedServer`: a server that replays a recording, for tests of clients."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from accord.messages.base import JSONObject
from accord.testing.recording import (
    PROGRESS,
    TranscriptMessage,
    decode_messages,
    read_messages,
    request_label,
)
from accord.transport.base import Transport

_ANY_PARAMS = ("initialize", "server/discover", "ping")
"""Requests that are answered whatever their params, because these describe the client."""

_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class RecordedExchange(msgspec.Struct):
    """A recorded request, and the server's messages until and after its response."""

    request: TranscriptMessage
    responses: list[TranscriptMessage]
    used: bool = False

    @property
    def key(self) -> JSONObject:
        """Return the params without `_meta`, which describes the client."""
        return _key(self.request.message)


class RecordedServer:
    """A target for `Client` that answers from a recording (see `Recording`): `Client(RecordedServer(file))`.

    A request gets the response to the first unused recorded request with the same params, or else to the last one, and
    the notifications and requests that the server sent meanwhile. A request that was not recorded gets an error that
    says so. Raises `AssertionError` for a missing file, and `ValueError` for an invalid transcript.
    """

    def __init__(self, file: str | Path) -> None:
        self._file = Path(file)
        self._exchanges = _group_by_request(read_messages(self._file))

    def __repr__(self) -> str:
        return f"<RecordedServer {str(self._file)!r}>"

    async def serve(self, transport: Transport) -> None:
        """Serve one connection until it ends."""
        for exchange in self._exchanges:
            exchange.used = False
        answers: dict[Any, asyncio.Event] = {}
        async with asyncio.TaskGroup() as group:
            while received := await transport.receive():
                for message in (message for data in received for message in decode_messages(data)):
                    if "method" not in message:
                        answers.setdefault(message.get("id"), asyncio.Event()).set()
                    elif "id" in message:
                        group.create_task(self._answer(message, transport, answers))
            for answer in answers.values():
                answer.set()

    async def _answer(self, request: JSONObject, transport: Transport, answers: dict[Any, asyncio.Event]) -> None:
        exchange = self._find(request)
        for recorded in exchange.responses:
            message = _adapt(recorded, exchange.request.message, request)
            transport.send(msgspec.json.encode(message))
            transport.flush()
            if recorded.is_request:
                await answers.setdefault(message["id"], asyncio.Event()).wait()

    def _find(self, request: JSONObject) -> RecordedExchange:
        """Return the recorded exchange for a request, or one with an error response."""
        same_method = [exchange for exchange in self._exchanges if exchange.request.method == request["method"]]
        same_params = [exchange for exchange in same_method if exchange.key == _key(request)]
        match = next(
            (exchange for exchange in same_params if not exchange.used), same_params[-1] if same_params else None
        )
        if match is not None:
            match.used = True
            return match
        recorded = ", ".join(dict.fromkeys(request_label(exchange.request) for exchange in self._exchanges))
        label = request_label(TranscriptMessage(0, True, request))
        text = f"{self._file} has no such request: {label}; it has {recorded or 'none'}"
        code = INVALID_PARAMS if same_method else METHOD_NOT_FOUND
        error = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": text}}
        return RecordedExchange(TranscriptMessage(0, True, request), [TranscriptMessage(0, False, error)])


def _key(request: JSONObject) -> JSONObject:
    if request["method"] in _ANY_PARAMS:
        return {}
    return {key: value for key, value in (request.get("params") or {}).items() if key != "_meta"}


def _group_by_request(messages: list[TranscriptMessage]) -> list[RecordedExchange]:
    """Group the server's messages by the request that they answer, or else by the latest pending one."""
    exchanges: list[RecordedExchange] = []
    pending: dict[Any, RecordedExchange] = {}
    for message in messages:
        if message.by_client and message.is_request:
            exchanges.append(RecordedExchange(message, []))
            pending[message.message["id"]] = exchanges[-1]
        elif not message.by_client and exchanges:
            latest = next(reversed(pending.values()), exchanges[-1])
            (pending.pop(message.message.get("id"), latest) if message.is_answer else latest).responses.append(message)
    return exchanges


def _adapt(message: TranscriptMessage, recorded: JSONObject, request: JSONObject) -> JSONObject:
    """Return a server message with the id and progress token of this request in place of the recorded ones."""
    body = message.message
    if message.is_answer:
        return {**body, "id": request["id"]}
    params = dict(body.get("params") or {})
    if message.method == PROGRESS:
        token = ((request.get("params") or {}).get("_meta") or {}).get("progressToken", params.get("progressToken"))
        return {**body, "params": {**params, "progressToken": token}}
    meta = params.get("_meta") or {}
    if meta.get(_SUBSCRIPTION) == recorded["id"]:
        return {**body, "params": {**params, "_meta": {**meta, _SUBSCRIPTION: request["id"]}}}
    return body
