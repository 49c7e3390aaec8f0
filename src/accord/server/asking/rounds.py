"""One call from its first request to its result: which way it asks, and what each of its requests is answered.

handler may send requests (through 2025-11-25)     direct     a request and its answer
handler may run again                              journal    run to the question; run again with the answer
anything else                                      parked     declared questions first; then it runs, once
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from accord.limits import Limits
from accord.messages.revision import Rules
from accord.server.asking.asker import Asked, Refusing
from accord.server.asking.call import Call
from accord.server.asking.direct import Direct
from accord.server.asking.journal import Journal, RunEnded
from accord.server.asking.parked import Run
from accord.server.asking.runs import Runs
from accord.server.asking.state import State, States, canonical, digest
from accord.server.seal import Keyring

Work = Callable[[Call], Coroutine[Any, Any, Any]]
Pack = Callable[[Mapping[str, Raw], str, Rules], Any]
"""Makes the result that asks: the questions by key, and the state."""


class Request(msgspec.Struct):
    """What one request of a call says."""

    subject: str
    """The name of the tool or prompt, or the URI."""
    arguments: bytes
    definition: Callable[[], bytes]
    """The digest of what the client was told of the subject."""
    may_run_again: bool
    fill: Callable[[Call], Coroutine[Any, Any, dict[str, Any]]] | None
    """Asks what the handler declares, if it declares anything."""
    state: str | None
    answers: dict[str, bytes]


class Rounds:
    """The calls of one server that may ask."""

    def __init__(self, audience: str, keyring: Keyring, limits: Limits) -> None:
        self.runs: Runs = Runs(limits)
        self._audience = audience.encode()
        self._states = States(keyring, limits)
        self._seconds = limits.answer_seconds

    async def answer(self, request: Request, call: Call, work: Work, pack: Pack) -> Any:
        """How this request ends: the result of the work, or a question.

        Raises `InvalidParams` for a state or answers that are not what they should be, `ToolError` for a call that is
        over, and what the work raises.
        """
        rules, method = call.exchange.rules, call.exchange.method
        if rules.server_requests:
            call.asker = Direct(call.exchange, call.peer, self._seconds)
            return await work(call)
        if not method.may_ask:
            call.asker = Refusing(call.exchange)
            return await work(call)
        state = None if request.state is None else self._states.open(request.state, self._binding(request, call))
        ask = partial(self._ask, request, call, pack)
        if request.may_run_again:
            return await self._run_again(request, call, state or State(b"", 0, b""), work, ask)
        return await self._run_once(request, call, state, work, ask)

    def _binding(self, request: Request, call: Call) -> bytes:
        return digest(
            call.peer.principal.encode(),
            self._audience,
            call.exchange.method.name.encode(),
            request.subject.encode(),
            canonical(request.arguments),
            request.definition(),
        )

    def _ask(self, request: Request, call: Call, pack: Pack, state: State, missing: Mapping[str, Asked]) -> Any:
        state.binding = state.binding or self._binding(request, call)
        state.asked = {key: asked.digest for key, asked in missing.items()}
        return pack({key: asked.wire for key, asked in missing.items()}, self._states.seal(state), call.exchange.rules)

    async def _run_again(self, request: Request, call: Call, state: State, work: Work, ask: Any) -> Any:
        journal = call.asker = Journal(call.exchange, call.peer, state, request.answers)
        try:
            result = await work(call)
        except asyncio.CancelledError:
            raise
        except BaseException:
            if not journal.over:
                raise
        return ask(state, journal.missing) if journal.over else result

    async def _run_once(self, request: Request, call: Call, state: State | None, work: Work, ask: Any) -> Any:
        known = state or State(b"", 0, os.urandom(16), home=self.runs.home)
        run = None if state is None else self.runs.find(known)
        if run is not None:
            return await run.resume(known.step, request.answers, call)
        if request.fill is not None:
            journal = call.asker = Journal(call.exchange, call.peer, known, request.answers)
            try:
                call.filled = await request.fill(call)
            except RunEnded:
                return ask(known, journal.missing)
            known.answers, known.asked = {}, {}
        run = call.asker = Run(call, known, ask, self.runs)
        if state is not None:
            self.runs.claim(known.nonce, run)
        return await run.begin(work)
