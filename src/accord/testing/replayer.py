"""Replay of a recorded connection: send the client's messages again and compare the server's.

Values that change in each run are not compared: the ids of the server's requests, opaque values, and progress, which
depends on time. Messages are matched by the request that they answer, or by their method, so that responses may come
in another order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from accord.client.target import Command, InProcessServer, Remote, Target, parse
from accord.limits import DEFAULT_LIMITS
from accord.messages.base import JSONObject
from accord.redaction import REDACTED
from accord.sync.background_loop import BackgroundLoop
from accord.testing.files import differences
from accord.testing.recording import (
    PROGRESS,
    Recording,
    TranscriptMessage,
    decode_messages,
    is_transcript,
    read_messages,
    read_recorded,
    replace_texts,
    request_label,
)
from accord.transport import memory
from accord.transport.base import Transport
from accord.transport.http.settings import HTTPSettings
from accord.transport.http.sse import SSETransport
from accord.transport.http.streamable import StreamableTransport
from accord.transport.subprocess import SubprocessTransport
from accord.visible_text import visible


@asynccontextmanager
async def open_transport(
    target: Target, record: Callable[[Transport], Transport] | None = None
) -> AsyncIterator[Transport]:
    """Open a transport to the target, recorded or not. Raises `TargetError`, `ConnectError`."""
    async with AsyncExitStack() as stack:
        transport = await _make_transport(target, stack)
        if record is not None:
            transport = record(transport)
        stack.push_async_callback(transport.close)
        await transport.open()
        yield transport


async def _make_transport(target: Target, stack: AsyncExitStack) -> Transport:
    parsed = parse(target)
    if isinstance(parsed, Command):
        return SubprocessTransport(
            parsed.argv, name=str(parsed), env=parsed.env, cwd=parsed.cwd, inherit_env=parsed.inherit_env
        )
    if isinstance(parsed, Remote):
        settings = HTTPSettings(headers=dict(parsed.headers or {}))
        kind = SSETransport if parsed.sse else StreamableTransport
        return kind(parsed.url, name=str(parsed), settings=settings, limits=DEFAULT_LIMITS)
    if isinstance(parsed, InProcessServer):
        ours, theirs = memory.pair()
        serving = asyncio.ensure_future(parsed.serve(theirs))
        # Runs after the transport is closed, which ends the server task.
        stack.push_async_callback(asyncio.wait, [serving])
        return ours
    return parsed


OPAQUE = ("requestState", "nextCursor", "elicitationId", "taskId")
"""Opaque values, which the server creates and the client returns unchanged."""

_HOW = "\n--accord-update, or update=True, records the new messages"


def replay(
    file: str | Path, target: Target, *, update: bool = False, ignore: Sequence[str] = (), timeout: float = 10
) -> None:
    """Raise `AssertionError` if the messages of a server differ from those recorded in `file` (see `Recording`).

    `update` writes the new messages to the file instead. `ignore` are paths in messages that may differ, `*` for any
    text: `result.content.*.text`. `timeout` (seconds) bounds the whole replay. Raises `ValueError` for an invalid
    file, `TargetError`, `ConnectError`.
    """
    __tracebackhide__ = True
    path, background, recording = Path(file), BackgroundLoop("replay"), Recording()
    background.start()
    try:
        mismatches = background.run(play(read_messages(path), target, None if update else ignore, timeout, recording))
    finally:
        background.discard()
    if mismatches:
        lines = "".join(f"\n{visible(sentence)}" for sentence in mismatches)
        raise AssertionError(
            f"{path}: the messages of the server differ from the recording:{lines}{'' if update else _HOW}"
        )
    if update:
        rewrite(path, recording)


def rewrite(file: Path, recording: Recording) -> None:
    """Write a recording in the form that the file has, or redacted as it is."""
    with file.open("rb") as stream:
        is_short = is_transcript(stream.peek(1))
    recording.write(file, short=is_short, redacted=is_short or read_recorded(file).header.redacted)


async def play(
    messages: list[TranscriptMessage],
    target: Target,
    ignore: Sequence[str] | None,
    seconds: float,
    record: Callable[[Transport], Transport] | None = None,
) -> list[str]:
    """Send the client's messages of each connection again; return the differences, a sentence each. Without `ignore`,
    nothing is compared. Raises `TargetError`, `ConnectError`.
    """
    mismatches: list[str] = []
    for _, connection in groupby(sorted(messages, key=_connection_of), key=_connection_of):
        async with open_transport(target, record) as transport:
            player = TranscriptPlayer(transport, ignore)
            try:
                async with asyncio.timeout(seconds):
                    await player.play(list(connection))
            except TimeoutError:
                player.mismatches.append(f"not received within {seconds:g} s: {player.awaited}")
            mismatches += player.mismatches
    return mismatches


def _connection_of(message: TranscriptMessage) -> int:
    return message.connection


class TranscriptPlayer:
    """A replay over one transport, which sends the client's messages and receives the server's. Without `ignore`, it
    compares nothing.
    """

    def __init__(self, transport: Transport, ignore: Sequence[str] | None) -> None:
        self.mismatches: list[str] = []
        """The differences from the recording, a sentence each."""
        self.awaited: str = "nothing"
        """The last message that the player waited for."""
        self._transport = transport
        self._ignore = ignore
        self._received: dict[Any, deque[TranscriptMessage]] = {}
        """The messages that were not expected yet, by their kind; their numbers are the order of their arrival."""
        self._count = 0
        self._requests: dict[Any, str] = {}
        self._ids: dict[Any, Any] = {}
        self._opaque: dict[str, str] = {}

    async def play(self, messages: list[TranscriptMessage]) -> None:
        """Replay all messages in order, until the connection ends."""
        for message in messages:
            await asyncio.sleep(0)  # a transport with much to receive never waits, and the time limit would not hold
            if message.by_client:
                self._send(message)
            elif message.method != PROGRESS and (self._ignore is not None or message.is_answer or message.is_request):
                received = await self._receive(message)
                if received is None:
                    self.mismatches.append(f"{self._transport.lost()}; not received: {self.awaited}")
                    return
                self._compare(message, received)
        if self._ignore is not None:
            self.mismatches += [
                f"unexpected message of the server: {_text(each.message)}" for each in self._unexpected()
            ]

    def _unexpected(self) -> list[TranscriptMessage]:
        """Return the messages that were not expected, in the order of their arrival."""
        left = [each for kind in self._received.values() for each in kind if each.method != PROGRESS]
        return sorted(left, key=lambda each: each.number)

    def _send(self, message: TranscriptMessage) -> None:
        body = replace_texts(message.message, self._opaque)
        if message.is_answer:
            body["id"] = self._ids.get(body["id"], body["id"])
        elif message.is_request:
            self._requests[body["id"]] = request_label(message)
        self._transport.send(msgspec.json.encode(body))
        self._transport.flush()

    async def _receive(self, expected: TranscriptMessage) -> TranscriptMessage | None:
        """Return the next message of the same kind and queue others; None when the connection ends."""
        self.awaited = f"{self._name(expected)}, {_text(expected.message)}"
        kind = _key(expected)
        while not self._received.get(kind):
            received = await self._transport.receive()
            if not received:
                return None
            for message in (message for data in received for message in decode_messages(data)):
                self._count += 1
                arrived = TranscriptMessage(self._count, False, message)
                self._received.setdefault(_key(arrived), deque()).append(arrived)
        return self._received[kind].popleft()

    def _compare(self, was: TranscriptMessage, now: TranscriptMessage) -> None:
        if was.is_request:
            self._ids[was.message["id"]] = now.message["id"]
        _map_opaque(was.message, now.message, self._opaque)
        if self._ignore is not None:
            expected = replace_texts(was.message, self._opaque)
            changes = differences(expected, _redacted_as(expected, now.message), ["id", *self._ignore])
            if changes:
                self.mismatches.append("\n  ".join([f"{self._name(was)}, differs:", *changes]))

    def _name(self, message: TranscriptMessage) -> str:
        description = (
            f"the response to {self._requests.get(message.message.get('id'))}" if message.is_answer else message.method
        )
        return f"message {message.number}, {description}"


def _key(message: TranscriptMessage) -> Any:
    """Return the kind of a message. No recorded message has an id that is an array or an object."""
    kind = message.kind
    return None if isinstance(kind[1], list | dict) else kind


def _map_opaque(was: Any, now: Any, opaque: dict[str, str]) -> None:
    """Map each recorded opaque value to the one of this replay."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in was.keys() & now.keys():
            if key in OPAQUE and isinstance(was[key], str) and isinstance(now[key], str):
                opaque[was[key]] = now[key]
            _map_opaque(was[key], now[key], opaque)
    elif isinstance(was, list) and isinstance(now, list):
        for was_item, now_item in zip(was, now, strict=False):
            _map_opaque(was_item, now_item, opaque)


def _redacted_as(was: Any, now: Any) -> Any:
    """Return a value with the recorded text in place of each that matches it: "[redacted]" stands for anything."""
    if isinstance(was, dict) and isinstance(now, dict):
        return {key: _redacted_as(was.get(key), value) for key, value in now.items()}
    if isinstance(was, list) and isinstance(now, list):
        return [_redacted_as(*items) for items in zip(was, now, strict=False)] + now[len(was) :]
    if was == REDACTED:
        return was
    if not isinstance(was, str) or not isinstance(now, str) or REDACTED not in was:
        return now
    return was if _matches(now, was.split(REDACTED)) else now


def _matches(text: str, parts: list[str]) -> bool:
    """Return whether a text has these parts in order, the first at its beginning and the last at its end."""
    first, *others, last = parts
    if not text.startswith(first):
        return False
    end = len(first)
    for part in others:
        start = text.find(part, end)
        if start < 0:
            return False
        end = start + len(part)
    return len(text) - len(last) >= end and text.endswith(last)


def _text(message: JSONObject) -> str:
    text = msgspec.json.encode(message).decode()
    return text if len(text) <= 300 else f"{text[:300]}…"
