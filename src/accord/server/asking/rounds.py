"""One call from its first request to its result: which way it asks, and what each of its requests is answered.

handler may send requests (through 2025-11-25)     direct     a request and its answer
handler may run again                              journal    run to the question; run again with the answer
anything else                                      parked     declared questions first; then it runs, once
a revision with a handshake, without sessions      refusing   nothing may be asked
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from accord.limits import Limits
from accord.messages import codec
from accord.messages.revision import Rules
from accord.server.asking.asker import Asked, Refusing
from accord.server.asking.call import Call
from accord.server.asking.direct import Direct
from accord.server.asking.journal import Journal, RunEnded
from accord.server.asking.parked import Ask, Run
from accord.server.asking.runs import Runs
from accord.server.asking.seal import Keyring
from accord.server.asking.state import State, States, canonical, digest
from accord.server.asking.visits import Visits

if TYPE_CHECKING:
    from accord.server.asking.turn import Turn
    from accord.server.offer import Offer
    from accord.server.peer import Peer
    from accord.session.exchange import Exchange

Work = Callable[[Call], Awaitable[Any]]
Pack = Callable[[Mapping[str, Raw], str, Rules], Any]
"""Makes the result that asks: the questions by key, and the state."""


class Rounds:
    """The calls of one server that may ask."""

    def __init__(self, audience: str, keyring: Keyring, limits: Limits) -> None:
        self._limits = limits
        self._runs: dict[asyncio.AbstractEventLoop, Runs] = {}
        self.visits: Visits = Visits()
        self._audience = audience.encode()
        self._states = States(keyring, limits)
        self._seconds = limits.answer_seconds

    @property
    def runs(self) -> Runs:
        """Those of this loop, with a home of their own: a handler waits on its loop, and goes on nowhere else."""
        loop = asyncio.get_running_loop()
        runs = self._runs.get(loop)
        if runs is None:
            for closed in [each for each in list(self._runs) if each.is_closed()]:
                self._runs.pop(closed, None)
            runs = self._runs[loop] = Runs(self._limits)
        return runs

    async def close(self, peer: Peer, seconds: float) -> None:
        """A client is gone: end what it has running, and wait for that, at most `seconds`."""
        self.visits.forget(peer)
        self._states.forget()
        await self.runs.close(peer, seconds)

    async def answer(self, turn: Turn, exchange: Exchange, peer: Peer, pack: Pack, work: Work) -> Any:
        """How this request ends: the result of the work, or a question.

        Raises `InvalidParams` for a state or answers that are not what they should be, `ToolError` for a call that is
        over, and what the work raises.
        """
        call = Call(exchange, peer)
        if exchange.rules.server_requests:
            call.asker = Direct(exchange, peer, self._seconds, self.visits)
            return await work(call)
        if not exchange.method.may_ask or exchange.rules.handshake:
            call.asker = Refusing(exchange)
            return await work(call)
        state = None if turn.state is None else self._states.open(turn.state, self._binding(turn, call))
        ask = partial(self._ask, turn, call, pack)
        if turn.offer.may_run_again:
            return await self._run_again(turn, call, state or State(), work, ask)
        return await self._run_once(turn, call, state, work, ask)

    def _binding(self, turn: Turn, call: Call) -> bytes:
        return digest(
            call.peer.principal.encode(),
            self._audience,
            call.exchange.method.name.encode(),
            turn.subject.encode(),
            canonical(turn.arguments_json()),
            self._definition(turn.offer, call.exchange.rules),
        )

    def _definition(self, offer: Offer, rules: Rules) -> bytes:
        """The digest of what the client was told of the subject."""
        found = offer.digests.get(rules.revision)
        if found is None:
            found = offer.digests[rules.revision] = digest(
                codec.encode(codec.narrow(offer.define(rules), rules.revision))
            )
        return found

    def _ask(self, turn: Turn, call: Call, pack: Pack, state: State, missing: Mapping[str, Asked]) -> Any:
        state.binding = state.binding or self._binding(turn, call)
        state.asked = {key: asked.digest for key, asked in missing.items()}
        return pack({key: asked.wire for key, asked in missing.items()}, self._states.seal(state), call.exchange.rules)

    async def _run_again(self, turn: Turn, call: Call, state: State, work: Work, ask: Ask) -> Any:
        journal = call.asker = Journal(call.exchange, call.peer, state, turn.answers_json())
        try:
            result = await work(call)
        except asyncio.CancelledError:
            raise
        except BaseException:
            if not journal.over:
                raise
        return ask(state, journal.missing()) if journal.over else result

    async def _run_once(self, turn: Turn, call: Call, state: State | None, work: Work, ask: Ask) -> Any:
        known = state or State(nonce=self.runs.new_nonce(call.peer.account), home=self.runs.home)
        run = None if state is None else self.runs.find(known)
        if run is not None:
            return await run.resume(known.step, turn.answers_json(), call)
        if turn.offer.declared:
            turn.offer.bind(turn.arguments, None)  # nobody is asked about a call that cannot be made
            journal = call.asker = Journal(call.exchange, call.peer, known, turn.answers_json())
            try:
                call.filled = await call.fill(turn.offer.declared, turn.arguments)
            except RunEnded:
                return ask(known, journal.missing())
            known.answers, known.asked = {}, {}
        run = call.asker = Run(call, known, ask, self.runs)
        if state is not None:
            self.runs.claim(known.nonce, run)
        return await run.begin(work)
