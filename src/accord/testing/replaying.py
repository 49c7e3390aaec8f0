"""A recorded conversation as a test: the client's half is said again, and the server must say the other half again.

What may be another each time is not compared: ids that the server gives its requests, what it seals for itself, and
progress, which depends on time. Messages are matched by what they answer, or by their method, so that answers may
come in another order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from accord.client.target import Target
from accord.messages.base import JSONObject
from accord.sync.background import Background
from accord.testing.differences import differences
from accord.testing.files import write_kept
from accord.testing.reach import reached
from accord.testing.said import PROGRESS, Said, asked, decoded, read_said, replaced
from accord.transport.base import Transport
from accord.transport.recorded import RecordedTransport
from accord.wire.transcript import Transcript

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
    path, background = Path(file), Background("replay")
    background.start()
    try:
        player = background.run(_played(read_said(path), target, None if update else ignore, timeout))
    finally:
        background.discard()
    if player.wrong:
        listed = "".join(f"\n{sentence}" for sentence in player.wrong)
        raise AssertionError(
            f"{path}: the server says something else than was recorded:{listed}{'' if update else _HOW}"
        )
    if update:
        write_kept(path, player.transcript.render())


async def _played(said: list[Said], target: Target, ignore: Sequence[str] | None, seconds: float) -> Player:
    async with reached(target) as transport:
        player = Player(transport, ignore)
        try:
            async with asyncio.timeout(seconds):
                await player.play(said)
        except TimeoutError:
            player.wrong.append(f"not heard again in {seconds:g} s: {player.waits_for}")
        return player


class Player:
    """Says the client's half over one transport, and hears the server's. With `ignore` None nothing is compared."""

    def __init__(self, transport: Transport, ignore: Sequence[str] | None) -> None:
        self.transcript: Transcript = Transcript()
        """What is said now."""
        self.wrong: list[str] = []
        """What is not as it was recorded, a sentence each."""
        self.waits_for: str = "nothing"
        """What was to be heard last."""
        self._transport = RecordedTransport(transport, self.transcript)
        self._ignore = ignore
        self._heard: list[Said] = []
        self._asked: dict[Any, str] = {}
        self._ids: dict[Any, Any] = {}
        self._opaque: dict[str, str] = {}

    async def play(self, said: list[Said]) -> None:
        """All of it, in order, unless the connection ends before."""
        for each in said:
            if each.by_client:
                self._say(each)
            elif each.method != PROGRESS and (self._ignore is not None or each.is_answer or each.is_request):
                now = await self._hear(each)
                if now is None:
                    self.wrong.append(f"{self._transport.lost()}; not heard again: {self.waits_for}")
                    return
                self._compare(each, now)
        if self._ignore is not None:
            beside = [_text(each.message) for each in self._heard if each.method != PROGRESS]
            self.wrong += [f"the server also says {text}, which is not recorded" for text in beside]

    def _say(self, said: Said) -> None:
        message = replaced(said.message, self._opaque)
        if said.is_answer:
            message["id"] = self._ids.get(message["id"], message["id"])
        elif said.is_request:
            self._asked[message["id"]] = asked(said)
        self._transport.send(msgspec.json.encode(message))
        self._transport.flush()

    async def _hear(self, said: Said) -> Said | None:
        """The next message of the same kind, whatever else comes before it; None where the connection ends."""
        self.waits_for = f"{self._name(said)}, {_text(said.message)}"
        while True:
            for each in self._heard:
                if each.kind == said.kind:
                    self._heard.remove(each)
                    return each
            received = await self._transport.receive()
            if not received:
                return None
            self._heard += [Said(0, False, message) for each in received for message in decoded(each)]

    def _compare(self, was: Said, now: Said) -> None:
        if was.is_request:
            self._ids[was.message["id"]] = now.message["id"]
        _learn(was.message, now.message, self._opaque)
        if self._ignore is not None:
            found = differences(replaced(was.message, self._opaque), now.message, ["id", *self._ignore])
            if found:
                self.wrong.append("\n  ".join([f"{self._name(was)}, is another:", *found]))

    def _name(self, said: Said) -> str:
        what = f"the answer to {self._asked.get(said.message.get('id'))}" if said.is_answer else said.method
        return f"message {said.number}, {what}"


def _learn(was: Any, now: Any, opaque: dict[str, str]) -> None:
    """Which opaque value stands now where another was recorded."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in was.keys() & now.keys():
            if key in OPAQUE and isinstance(was[key], str) and isinstance(now[key], str):
                opaque[was[key]] = now[key]
            _learn(was[key], now[key], opaque)
    elif isinstance(was, list) and isinstance(now, list):
        for one, other in zip(was, now, strict=False):
            _learn(one, other, opaque)


def _text(message: JSONObject) -> str:
    text = msgspec.json.encode(message).decode()
    return text if len(text) <= 300 else f"{text[:300]}…"
