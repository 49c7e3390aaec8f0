"""Clients that are wrong in rough weather, and where they meet a server of another revision."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, cast

from accord import AccordError, Client
from accord.transport.base import Message, Transport
from accord.transport.http.fetcher import Fetcher
from accord.transport.process import ProcessGroup
from accord.transport.recording import TranscriptTransport
from accord.wire.transcript import Transcript

from tests.check.clients.mutants import NEW, loses, on
from tests.check.clients.wrong import EXAMPLE, Change, Said, mutant

PATIENT = 60.0
"""Seconds: a client that waits so long waits in vain, for all that the checker can see."""


@mutant("client-opening/other-version", revision=NEW)
def takes_no_refusal_of_its_revision(change: Change) -> None:
    loses(change, lambda message: "1999-01-01" in json.dumps(message))


@mutant("client-opening/no-version-in-common", revision=NEW)
def waits_for_a_revision_in_common(change: Change) -> None:
    loses(change, lambda message: "2999-01-01" in json.dumps(message))


@mutant("client-opening/probe", revision=NEW)
def shakes_hands_before_it_asks(change: Change) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "wrong", "version": "1"}}
    early = {"jsonrpc": "2.0", "id": 5_000, "method": "initialize", "params": hello}

    @change.sends
    def _(message: Said) -> Any:
        return [early, message] if on("server/discover", message) else message


@mutant("client-changes/listen", revision=NEW)
def listens_again_and_again(change: Change) -> None:
    async def use(client: Client) -> None:
        for _ in range(40):
            with suppress(AccordError):
                async with client.subscribe(tools=True):
                    return

    change.use = use


@mutant("client-cancel/late-answer")
def ends_at_a_late_answer(change: Change) -> None:
    given_up: list[Any] = []
    late = asyncio.Event()

    @change.sends
    def _(message: Said) -> Any:
        given_up.extend([message["params"]["requestId"]] if on("notifications/cancelled", message) else [])
        return None if late.is_set() else message

    @change.hears
    def _(message: Any) -> Any:
        if message.get("id") in given_up and "method" not in message:
            late.set()
        return message

    async def use(client: Client) -> None:
        given_up.clear()
        if await _interrupted(EXAMPLE.use(client), late):
            await asyncio.Event().wait()

    change.use = use


async def _interrupted(work: Any, by: asyncio.Event) -> bool:
    """Do it until this happens; whether it did."""
    doing = [asyncio.create_task(cast(Any, each)) for each in (work, by.wait())]
    await asyncio.wait(doing, return_when=asyncio.FIRST_COMPLETED)
    for each in doing:
        each.cancel()
    await asyncio.gather(*doing, return_exceptions=True)
    return by.is_set()


@mutant("client-robust/schema-bombs")
def is_stopped_by_a_pattern(change: Change) -> None:
    loses(change, lambda message: "(a+)+$" in json.dumps(message))


@mutant("client-robust/structured")
def is_stopped_by_a_result_that_does_not_fit(change: Change) -> None:
    loses(change, lambda message: "seven" in json.dumps(message))


class _Stops(TranscriptTransport):
    """Hears nothing more after the first line that is no message, or after the end of all lines."""

    def __init__(self, inner: Transport, at_the_end: bool) -> None:
        super().__init__(inner, Transcript(limit=1 << 16))
        self._at_the_end = at_the_end

    async def receive(self) -> list[Message]:
        messages = await super().receive()
        stops = not messages if self._at_the_end else not all(map(_is_object, messages))
        if stops:
            await asyncio.Event().wait()
        return messages


def _is_object(line: Message) -> bool:
    try:
        return isinstance(line, bytes) and isinstance(json.loads(line), dict)
    except ValueError:
        return False


@mutant("client-robust/garbage")
def is_stopped_by_a_line_that_is_no_message(change: Change) -> None:
    change.options |= {"timeout": PATIENT, "record": lambda inner: _Stops(inner, at_the_end=False)}


@mutant("client-robust/server-gone")
def does_not_see_the_end(change: Change) -> None:
    change.options |= {"timeout": PATIENT, "record": lambda inner: _Stops(inner, at_the_end=True)}


@mutant("client-stdio/terminates")
def leaves_the_server_behind(change: Change) -> None:
    async def end(self: ProcessGroup, seconds: float) -> None:
        await self.wait_ended(seconds)

    def kill(self: ProcessGroup) -> None:
        return

    change.patches += [(ProcessGroup, "end", end), (ProcessGroup, "kill", kill)]


@mutant("client-stdio/stderr")
def ends_at_a_line_on_stderr(change: Change) -> None:
    async def main(target: str) -> None:
        loud = asyncio.Event()
        async with EXAMPLE.client_for(target, on_stderr=lambda line: loud.set()) as client:
            await _interrupted(EXAMPLE.use(client), loud)

    change.main = main


def _waits_after(change: Change, status: int, kind: str = "") -> None:
    """Have the client wait on for an answer after a response like this."""
    change.options["timeout"] = PATIENT
    send = Fetcher._send

    async def waits(self: Fetcher, *args: Any) -> Any:
        response = await send(self, *args)
        if response.status == status and kind in response.headers.get("Content-Type", ""):
            await asyncio.Event().wait()
        return response

    change.patches.append((Fetcher, "_send", waits))


@mutant("client-http/server-errors", over="http")
def takes_no_error_of_a_gateway(change: Change) -> None:
    _waits_after(change, 502)


@mutant("client-http/odd-answers", over="http", revision=NEW)
def waits_for_more_than_a_page(change: Change) -> None:
    _waits_after(change, 200, "html")


@mutant("client-http/cut", over="http")
def takes_no_end_of_a_connection(change: Change) -> None:
    change.options["timeout"] = PATIENT
    send = Fetcher._send

    async def waits(self: Fetcher, *args: Any) -> Any:
        try:
            return await send(self, *args)
        except AccordError:
            await asyncio.Event().wait()

    change.patches.append((Fetcher, "_send", waits))
