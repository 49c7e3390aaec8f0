"""A recorded conversation as a test: the client's half is said again, and the server must say the other half again.

What may be another each time is not compared: ids that the server gives its requests, what it seals for itself, and
progress, which depends on time. Messages are matched by what they answer, or by their method, so that answers may
come in another order.

A bare transport to a target: for who plays a client, word by word.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from accord.client.target import Command, InProcessServer, Remote, Target, parse
from accord.limits import DEFAULT_LIMITS
from accord.messages.base import JSONObject
from accord.sync.background_loop import BackgroundLoop
from accord.testing.files import differences, write_expected
from accord.testing.recording import (
    PROGRESS,
    TranscriptMessage,
    decode_messages,
    read_messages,
    replace_texts,
    request_label,
)
from accord.transport import memory
from accord.transport.base import Transport
from accord.transport.http.settings import HTTPSettings
from accord.transport.http.streamable import StreamableTransport
from accord.transport.recording import RecordingTransport
from accord.transport.subprocess import SubprocessTransport
from accord.wire.transcript import Transcript


@asynccontextmanager
async def open_transport(target: Target) -> AsyncIterator[Transport]:
    """A transport to the target, open. Raises `TargetError`, `ConnectError`."""
    async with AsyncExitStack() as stack:
        transport = await _make_transport(target, stack)
        stack.push_async_callback(transport.close)
        await transport.open()
        yield transport


async def _make_transport(target: Target, stack: AsyncExitStack) -> Transport:
    where = parse(target)
    if isinstance(where, Command):
        return SubprocessTransport(where.argv, name=str(where), env=where.env, cwd=where.cwd)
    if isinstance(where, Remote):
        settings = HTTPSettings(headers=dict(where.headers or {}))
        return StreamableTransport(where.url, name=str(where), settings=settings, limits=DEFAULT_LIMITS)
    if isinstance(where, InProcessServer):
        ours, theirs = memory.pair()
        serving = asyncio.ensure_future(where.serve(theirs))
        stack.push_async_callback(asyncio.wait, [serving])  # after the transport is closed, which ends it
        return ours
    return where


OPAQUE = ("requestState", "nextCursor", "elicitationId", "taskId")
"""Values that a server makes up, and that come back to it as they are."""

_HOW = "\n--accord-update, or update=True, takes over what it says now"


def replay(
    file: str | Path, target: Target, *, update: bool = False, ignore: Sequence[str] = (), timeout: float = 10
) -> None:
    """Raise `AssertionError` when a server says something else than was recorded in `file` (see `Recording`).

    `update` writes down what it says now instead. `ignore` are places in messages that may differ, `*` for any text:
    `result.content.*.text`. `timeout` (seconds) bounds the whole. Raises `ValueError` for a file that is no
    transcript, `TargetError`, `ConnectError`.
    """
    __tracebackhide__ = True
    path, background = Path(file), BackgroundLoop("replay")
    background.start()
    try:
        player = background.run(_play(read_messages(path), target, None if update else ignore, timeout))
    finally:
        background.discard()
    if player.mismatches:
        listed = "".join(f"\n{sentence}" for sentence in player.mismatches)
        raise AssertionError(
            f"{path}: the messages of the server differ from the recording:{listed}{'' if update else _HOW}"
        )
    if update:
        write_expected(path, player.transcript.render())


async def _play(
    said: list[TranscriptMessage], target: Target, ignore: Sequence[str] | None, seconds: float
) -> TranscriptPlayer:
    async with open_transport(target) as transport:
        player = TranscriptPlayer(transport, ignore)
        try:
            async with asyncio.timeout(seconds):
                await player.play(said)
        except TimeoutError:
            player.mismatches.append(f"not heard again in {seconds:g} s: {player.awaited}")
        return player


class TranscriptPlayer:
    """Says the client's half over one transport, and hears the server's. With `ignore` None nothing is compared."""

    def __init__(self, transport: Transport, ignore: Sequence[str] | None) -> None:
        self.transcript: Transcript = Transcript()
        """What is said now."""
        self.mismatches: list[str] = []
        """What is not as it was recorded, a sentence each."""
        self.awaited: str = "nothing"
        """What was to be heard last."""
        self._transport = RecordingTransport(transport, self.transcript)
        self._ignore = ignore
        self._received: list[TranscriptMessage] = []
        self._requests: dict[Any, str] = {}
        self._ids: dict[Any, Any] = {}
        self._opaque: dict[str, str] = {}

    async def play(self, said: list[TranscriptMessage]) -> None:
        """All of it, in order, unless the connection ends before."""
        for each in said:
            if each.by_client:
                self._send(each)
            elif each.method != PROGRESS and (self._ignore is not None or each.is_answer or each.is_request):
                now = await self._receive(each)
                if now is None:
                    self.mismatches.append(f"{self._transport.lost()}; not heard again: {self.awaited}")
                    return
                self._compare(each, now)
        if self._ignore is not None:
            beside = [_text(each.message) for each in self._received if each.method != PROGRESS]
            self.mismatches += [f"the server also says {text}, which is not recorded" for text in beside]

    def _send(self, said: TranscriptMessage) -> None:
        message = replace_texts(said.message, self._opaque)
        if said.is_answer:
            message["id"] = self._ids.get(message["id"], message["id"])
        elif said.is_request:
            self._requests[message["id"]] = request_label(said)
        self._transport.send(msgspec.json.encode(message))
        self._transport.flush()

    async def _receive(self, said: TranscriptMessage) -> TranscriptMessage | None:
        """The next message of the same kind, whatever else comes before it; None where the connection ends."""
        self.awaited = f"{self._name(said)}, {_text(said.message)}"
        while True:
            for each in self._received:
                if each.kind == said.kind:
                    self._received.remove(each)
                    return each
            received = await self._transport.receive()
            if not received:
                return None
            self._received += [
                TranscriptMessage(0, False, message) for each in received for message in decode_messages(each)
            ]

    def _compare(self, was: TranscriptMessage, now: TranscriptMessage) -> None:
        if was.is_request:
            self._ids[was.message["id"]] = now.message["id"]
        _map_opaque(was.message, now.message, self._opaque)
        if self._ignore is not None:
            found = differences(replace_texts(was.message, self._opaque), now.message, ["id", *self._ignore])
            if found:
                self.mismatches.append("\n  ".join([f"{self._name(was)}, is another:", *found]))

    def _name(self, said: TranscriptMessage) -> str:
        what = f"the answer to {self._requests.get(said.message.get('id'))}" if said.is_answer else said.method
        return f"message {said.number}, {what}"


def _map_opaque(was: Any, now: Any, opaque: dict[str, str]) -> None:
    """Which opaque value stands now where another was recorded."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in was.keys() & now.keys():
            if key in OPAQUE and isinstance(was[key], str) and isinstance(now[key], str):
                opaque[was[key]] = now[key]
            _map_opaque(was[key], now[key], opaque)
    elif isinstance(was, list) and isinstance(now, list):
        for one, other in zip(was, now, strict=False):
            _map_opaque(one, other, opaque)


def _text(message: JSONObject) -> str:
    text = msgspec.json.encode(message).decode()
    return text if len(text) <= 300 else f"{text[:300]}…"
