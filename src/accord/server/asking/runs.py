"""The runs of one server on one event loop: which nonces were used, which handlers wait, which outcomes are kept for a
repeated retry.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING

from accord.errors import ToolError
from accord.limits import Limits
from accord.server.asking.state import Expired, State

if TYPE_CHECKING:
    from accord.server.asking.parked import Run
    from accord.server.peer import Peer

_SPENT = 100_000
"""Nonces that are remembered; no more calls that may not run twice are begun beyond that."""

_SPENT_OF_ONE = 10_000
"""Those of one principal, where it is known who asks: nobody uses up what others need."""


class Runs:
    """What may not run twice, by the nonce of its state."""

    def __init__(self, limits: Limits) -> None:
        self.home: bytes = os.urandom(8)
        """States of another home are refused: what they did is remembered there."""
        self.seconds: float = limits.answer_seconds
        self._limits = limits
        self._alive: set[Run] = set()
        """Those whose handlers have not ended."""
        self._runs: dict[bytes, Run] = {}
        """Those whose nonce a client may have."""
        self._ended: OrderedDict[bytes, int] = OrderedDict()
        """Runs whose outcomes are kept, the first to end first, with the bytes of these."""
        self._spent: OrderedDict[bytes, float] = OrderedDict()
        """When each nonce, and with it each state that carries it, is over."""
        self._spent_by: dict[bytes, str] = {}
        self._spending: Counter[str] = Counter()
        """How many nonces each principal has used up."""
        self._held = 0
        self.waiting: Counter[str] = Counter()
        """Handlers that wait with no request in flight, by principal."""

    def find(self, state: State) -> Run | None:
        """The run that this state belongs to; None when none was begun. Raises `Expired` when it is gone."""
        if state.home != self.home:
            raise Expired(
                "the server that was running this call is gone, or does so in another process or on another event "
                "loop: send answers to the worker that asked, or mark the tool as read-only or idempotent and give all "
                "workers the same state_keys; whether it took effect is not known"
            )
        if time.monotonic() >= state.deadline:
            raise Expired("the answer came too late; whether the call took effect is not known")
        run = self._runs.get(state.nonce)
        if run is None and (state.nonce in self._spent or state.step):
            raise Expired("this call has ended, and its result is no longer kept")
        return run

    def claim(self, nonce: bytes, run: Run) -> None:
        """Use a nonce up: what carries it runs once. Raises `ToolError` when there is no room to remember it."""
        self._forget()
        whose = run.principal
        if len(self._spent) >= _SPENT or (whose and self._spending[whose] >= _SPENT_OF_ONE):
            raise ToolError("too many calls were answered of late; try again later")
        if nonce not in self._spent_by:
            self._spent_by[nonce] = whose
            self._spending[whose] += 1
        self._runs[nonce] = run
        self._spent[nonce] = time.monotonic() + self.seconds

    def park(self, run: Run) -> None:
        """A handler is about to wait with nothing in flight. Raises `ToolError` when too many do already."""
        waiting = self.waiting[run.principal]
        if waiting >= run.peer.line.session.limits.parked:
            raise ToolError(f"{waiting} calls wait for answers already, and that is the limit; answer one of them")
        if run.nonce not in self._runs:
            self.claim(run.nonce, run)
        self._spent[run.nonce] = time.monotonic() + self.seconds
        self._spent.move_to_end(run.nonce)

    def begun(self, run: Run) -> None:
        """A handler has begun."""
        self._alive.add(run)

    def count(self, principal: str, change: int) -> None:
        """One handler more that waits, or one less."""
        self.waiting[principal] += change
        if not self.waiting[principal]:
            del self.waiting[principal]

    def ended(self, run: Run) -> None:
        """A handler has ended; its outcomes are kept until no state that carries its nonce is good any more."""
        self._alive.discard(run)
        if self._runs.get(run.nonce) is not run:
            return
        self._ended[run.nonce] = run.size
        self._held += run.size
        self._forget()
        asyncio.get_running_loop().call_later(self.seconds, self._forget)

    def _forget(self) -> None:
        """Drop what is over, and the oldest outcomes when they take too much room, though not their nonces."""
        now = time.monotonic()
        while self._spent and next(iter(self._spent.values())) <= now:
            nonce, _ = self._spent.popitem(last=False)
            if self._runs.get(nonce) in self._alive:  # it may take its time; what was asked has a deadline of its own
                self._spent[nonce] = now + self.seconds
            else:
                self._unspend(nonce)
                self._drop(nonce)
        while self._held > self._limits.kept_bytes and self._ended:
            self._drop(next(iter(self._ended)))

    def _unspend(self, nonce: bytes) -> None:
        whose = self._spent_by.pop(nonce)
        self._spending[whose] -= 1
        if not self._spending[whose]:
            del self._spending[whose]

    def _drop(self, nonce: bytes) -> None:
        self._runs.pop(nonce, None)
        self._held -= self._ended.pop(nonce, 0)

    async def close(self, peer: Peer, seconds: float) -> None:
        """The client is gone: end what it has running, and wait for that, at most `seconds`."""
        gone = [run for run in self._alive if run.peer is peer]
        for run in gone:
            run.cancel()
        if tasks := [run.task for run in gone if run.task is not None]:
            await asyncio.wait(tasks, timeout=seconds)
        for run in [run for run in self._runs.values() if run.peer is peer]:
            self._drop(run.nonce)
