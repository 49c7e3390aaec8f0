"""`RecordedServer`: a stand-in for a server, made of what it once said. For tests of clients, without the server."""

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
"""Requests that are answered whatever their params: these say who asks."""

_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class RecordedExchange(msgspec.Struct):
    """A request that was recorded, and all that the server said until it had answered it, and after that."""

    request: TranscriptMessage
    responses: list[TranscriptMessage]
    used: bool = False

    @property
    def key(self) -> JSONObject:
        """What it asks for: `_meta` says who asks, and how."""
        return _key(self.request.message)


class RecordedServer:
    """A target for `Client` that answers what was recorded in `file` (see `Recording`): `Client(RecordedServer(file))`.

    A request gets the answer of the first recorded one with the same params that was not used yet, or else of the last
    one; with it comes what the server told and asked meanwhile. A request that was never recorded gets an error that
    says so. Raises `AssertionError` where there is no file, `ValueError` for what is no transcript.
    """

    def __init__(self, file: str | Path) -> None:
        self._file = Path(file)
        self._exchanges = _group_by_request(read_messages(self._file))

    def __repr__(self) -> str:
        return f"<RecordedServer {str(self._file)!r}>"

    async def serve(self, transport: Transport) -> None:
        """Serve one connection until it ends."""
        for each in self._exchanges:
            each.used = False
        answers: dict[Any, asyncio.Event] = {}
        async with asyncio.TaskGroup() as group:
            while received := await transport.receive():
                for message in (message for each in received for message in decode_messages(each)):
                    if "method" not in message:
                        answers.setdefault(message.get("id"), asyncio.Event()).set()
                    elif "id" in message:
                        group.create_task(self._answer(message, transport, answers))
            for answer in answers.values():
                answer.set()

    async def _answer(self, request: JSONObject, transport: Transport, answers: dict[Any, asyncio.Event]) -> None:
        found = self._find(request)
        for said in found.responses:
            message = _adapt(said, found.request.message, request)
            transport.send(msgspec.json.encode(message))
            transport.flush()
            if said.is_request:
                await answers.setdefault(message["id"], asyncio.Event()).wait()

    def _find(self, request: JSONObject) -> RecordedExchange:
        """What was recorded for such a request; else an error that says that nothing was."""
        of_method = [each for each in self._exchanges if each.request.method == request["method"]]
        fitting = [each for each in of_method if each.key == _key(request)]
        found = next((each for each in fitting if not each.used), fitting[-1] if fitting else None)
        if found is not None:
            found.used = True
            return found
        recorded = ", ".join(dict.fromkeys(request_label(each.request) for each in self._exchanges))
        label = request_label(TranscriptMessage(0, True, request))
        text = f"{self._file} has no such request: {label}; it has {recorded or 'none'}"
        code = INVALID_PARAMS if of_method else METHOD_NOT_FOUND
        error = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": text}}
        return RecordedExchange(TranscriptMessage(0, True, request), [TranscriptMessage(0, False, error)])


def _key(request: JSONObject) -> JSONObject:
    if request["method"] in _ANY_PARAMS:
        return {}
    return {key: value for key, value in (request.get("params") or {}).items() if key != "_meta"}


def _group_by_request(said: list[TranscriptMessage]) -> list[RecordedExchange]:
    """What the server said goes to the request that it answers, or that waited for an answer last."""
    found: list[RecordedExchange] = []
    open_: dict[Any, RecordedExchange] = {}
    for each in said:
        if each.by_client and each.is_request:
            found.append(RecordedExchange(each, []))
            open_[each.message["id"]] = found[-1]
        elif not each.by_client and found:
            latest = next(reversed(open_.values()), found[-1])
            (open_.pop(each.message.get("id"), latest) if each.is_answer else latest).responses.append(each)
    return found


def _adapt(said: TranscriptMessage, recorded: JSONObject, request: JSONObject) -> JSONObject:
    """A message of the server with the id and the progress token of this request in the place of the recorded ones."""
    message = said.message
    if said.is_answer:
        return {**message, "id": request["id"]}
    params = dict(message.get("params") or {})
    if said.method == PROGRESS:
        token = ((request.get("params") or {}).get("_meta") or {}).get("progressToken", params.get("progressToken"))
        return {**message, "params": {**params, "progressToken": token}}
    meta = params.get("_meta") or {}
    if meta.get(_SUBSCRIPTION) == recorded["id"]:
        return {**message, "params": {**params, "_meta": {**meta, _SUBSCRIPTION: request["id"]}}}
    return message
