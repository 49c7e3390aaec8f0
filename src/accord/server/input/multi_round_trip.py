"""A call from its first request to its result: selects how it requests input, and answers each of its requests.

handler may send requests (through 2025-11-25)     direct          a request and its response
handler may run again                              replay          run to the question; run again with the answer
any other handler                                  suspended_call  declared questions first; then it runs, once
a revision with a handshake, without sessions      unavailable     no questions
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
from accord.server.core.per_loop import PerLoop
from accord.server.input.base import EncodedQuestion, UnavailableInput
from accord.server.input.call import HandlerCall
from accord.server.input.direct import DirectInput, URLElicitations
from accord.server.input.replay import ReplayInput, RunInterrupted
from accord.server.input.request_state import Keyring, RequestState, RequestStates, canonical, digest
from accord.server.input.suspended_call import MakeInputRequired, SuspendedCall
from accord.server.input.suspended_calls import SuspendedCalls

if TYPE_CHECKING:
    from accord.server.core.peer import Peer
    from accord.server.core.registration import Registration
    from accord.server.input.attempt import Attempt
    from accord.session.pending_request import PendingRequest

Work = Callable[[HandlerCall], Awaitable[Any]]
PackInputRequired = Callable[[Mapping[str, Raw], str, Rules], Any]
"""Encodes an `input_required` result from the questions by key, and the state."""


class MultiRoundTrip:
    """The calls of one server that may request input."""

    def __init__(self, audience: str, keyring: Keyring, limits: Limits) -> None:
        self._limits = limits
        self._suspended_by_loop: PerLoop[SuspendedCalls] = PerLoop()
        self.url_elicitations: URLElicitations = URLElicitations()
        self._audience = audience.encode()
        self._states = RequestStates(keyring, limits)
        self._seconds = limits.answer_seconds

    @property
    def suspended_calls(self) -> SuspendedCalls:
        """The suspended calls of the running loop: a handler cannot continue on another loop."""
        calls = self._suspended_by_loop.get(asyncio.get_running_loop())
        return self._suspended_by_loop.add(SuspendedCalls(self._limits)) if calls is None else calls

    async def close(self, peer: Peer, seconds: float) -> None:
        """Cancel the suspended calls of a client that has disconnected, and wait for them at most `seconds`."""
        self.url_elicitations.forget(peer)
        self._states.forget()
        await self.suspended_calls.close(peer, seconds)

    def run(
        self, attempt: Attempt, pending: PendingRequest, peer: Peer, encode: PackInputRequired, work: Work
    ) -> Awaitable[Any]:
        """Return the answer to this request: the result of the work, or an `input_required` result; await it at once.

        Raises `InvalidParams` for an invalid state or answer, `ToolError` for a call that has ended, and what the work
        raises.
        """
        call = HandlerCall(pending, peer)
        if pending.rules.server_requests:
            call.input = DirectInput(pending, peer, self._seconds, self.url_elicitations)
            return work(call)
        if not pending.method.may_ask or pending.rules.handshake:
            call.input = UnavailableInput(pending)
            return work(call)
        state = None if attempt.state is None else self._states.open(attempt.state, self._binding(attempt, call))
        if attempt.becomes_task and state is None and not attempt.registration.input_parameters:
            return work(call)  # it asks as a task
        ask = partial(self._input_required, attempt, call, encode)
        if attempt.registration.may_run_again and not attempt.becomes_task:
            return self._replay(attempt, call, state or RequestState(), work, ask)
        return self._suspend(attempt, call, state, work, ask)

    def _binding(self, attempt: Attempt, call: HandlerCall) -> bytes:
        return digest(
            call.peer.principal.encode(),
            self._audience,
            call.pending.method.name.encode(),
            attempt.subject.encode(),
            canonical(attempt.arguments_json()),
            (attempt.registration.metadata.version or "").encode(),
            self._definition(attempt.registration, call.pending.rules),
        )

    def _definition(self, registration: Registration, rules: Rules) -> bytes:
        """Return the digest of the definition that the client knows."""
        found = registration.digests.get(rules.revision)
        if found is None:
            found = registration.digests[rules.revision] = digest(
                codec.encode(codec.narrow(registration.define(rules), rules.revision))
            )
        return found

    def _input_required(
        self,
        attempt: Attempt,
        call: HandlerCall,
        encode: PackInputRequired,
        state: RequestState,
        missing: Mapping[str, EncodedQuestion],
    ) -> Any:
        state.binding = state.binding or self._binding(attempt, call)
        state.outstanding = {key: asked.digest for key, asked in missing.items()}
        sealed = self._states.seal(state, call.peer.account)
        return encode({key: asked.wire for key, asked in missing.items()}, sealed, call.pending.rules)

    async def _replay(
        self, attempt: Attempt, call: HandlerCall, state: RequestState, work: Work, ask: MakeInputRequired
    ) -> Any:
        replay = call.input = ReplayInput(call.pending, call.peer, state, attempt.answers_json())
        try:
            result = await work(call)
        except asyncio.CancelledError:
            raise
        except BaseException:
            if not replay.is_interrupted:
                raise
        return ask(state, replay.missing()) if replay.is_interrupted else result

    async def _suspend(
        self, attempt: Attempt, call: HandlerCall, state: RequestState | None, work: Work, ask: MakeInputRequired
    ) -> Any:
        table, known = self.suspended_calls, state or RequestState()
        suspended = None if state is None else table.find(known)
        if suspended is not None:
            return await suspended.resume(known.step, attempt.answers_json(), call)
        if attempt.registration.input_parameters:
            if state is None:
                table.identify(known, call.peer.account)
            attempt.registration.bind(attempt.arguments, None)  # invalid arguments fail before the user is asked
            replay = call.input = ReplayInput(call.pending, call.peer, known, attempt.answers_json())
            try:
                call.resolved_input = await call.resolve_input(attempt.registration.input_parameters, attempt.arguments)
            except RunInterrupted:
                return ask(known, replay.missing())
            call.declared_answers = known.answers
            known.answers, known.outstanding = {}, {}
        suspended = call.input = SuspendedCall(call, known, ask, table)
        if state is not None:
            table.claim(known.nonce, suspended)
        return await suspended.start(work)
