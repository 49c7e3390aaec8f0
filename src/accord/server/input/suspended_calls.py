"""The suspended calls of one server on one event loop: used nonces, waiting handlers, and outcomes stored for repeated
retries.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Coroutine
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from accord.errors import ToolError
from accord.limits import Limits
from accord.messages.bounds import AccountMemory
from accord.server.input.eager_task import EagerTask
from accord.server.input.request_state import RequestState, StateExpired

if TYPE_CHECKING:
    from accord.server.core.peer import Peer
    from accord.server.input.suspended_call import SuspendedCall

_MAX_NONCES = 100_000
"""Nonces that are stored; a new one evicts the oldest of the account with the most."""

_MAX_NONCES_PER_ACCOUNT = 10_000
"""Nonces per account, so that no account exhausts the table; a new one evicts the oldest of the account."""

_TAG = 4
"""Bytes at the beginning of a nonce that identify its account."""

_EVICTION_TRIES = 64
"""Nonces that are checked to find one whose handler has ended."""

_EVICTED = "the question was left open while newer calls needed its room; whether the call took effect is not known"


class SuspendedCalls:
    """The suspended calls, by the nonce of their state."""

    def __init__(self, limits: Limits) -> None:
        self.instance_id: bytes = os.urandom(8)
        """Identifies this table: states of another one are rejected, since only that one knows whether they were
        used.
        """
        self.seconds: float = limits.answer_seconds
        self._limits = limits
        self._running: set[SuspendedCall] = set()
        """The calls whose handlers have not ended."""
        self._runs: dict[bytes, SuspendedCall] = {}
        """The calls whose nonce a client may have."""
        self._ended: dict[bytes, OrderedDict[bytes, int]] = {}
        """By account tag: ended calls whose outcomes are stored, the first to end first, with the bytes of the
        outcomes.
        """
        self._nonces: OrderedDict[bytes, float] = OrderedDict()
        """The expiry of each nonce, and so of each state with it."""
        self._nonces_by_account: dict[bytes, OrderedDict[bytes, None]] = {}
        """The nonces by account tag, the oldest first."""
        self._forgotten: dict[bytes, float] = {}
        """By account tag: the latest expiry of the evicted nonces. States that expire before are rejected, since they
        may have been used.
        """
        self._held: Counter[bytes] = Counter()
        """The bytes of stored outcomes, by account tag."""
        self.waiting: dict[str, OrderedDict[SuspendedCall, None]] = {}
        """Handlers that wait with no request in flight, by account, the longest waiting first."""
        self._anonymous = 0
        """The number of waiting handlers of clients that are not authenticated."""
        self._cleanup: asyncio.TimerHandle | None = None
        self._memory = AccountMemory(limits.http.bodies_bytes, limits.http.bodies_bytes_per_address)
        """By account: bytes that handlers hold which have asked a question, until they have ended."""
        self._spare_task: EagerTask | None = None
        """The task of the next handler that waits."""

    def identify(self, state: RequestState, account: str) -> None:
        """Give the state of a new call of this account its nonce, and the id of this table."""
        tag = blake2b(account.encode(errors="replace"), key=self.instance_id, digest_size=_TAG)
        state.nonce, state.instance_id = tag.digest() + os.urandom(16 - _TAG), self.instance_id

    def find(self, state: RequestState) -> SuspendedCall | None:
        """Return the suspended call of this state; None if its handler has not started. Raises `StateExpired` if it is
        gone.
        """
        if state.instance_id != self.instance_id:
            raise StateExpired(
                "the server that was running this call is gone, or does so in another process or on another event "
                "loop: send answers to the worker that asked, or mark the tool as read-only or idempotent and give all "
                "workers the same state_keys; whether it took effect is not known"
            )
        if time.monotonic() >= state.deadline:
            raise StateExpired("the answer came too late; whether the call took effect is not known")
        call = self._runs.get(state.nonce)
        if call is None and (state.nonce in self._nonces or state.step):
            raise StateExpired("this call has ended, and its result is no longer kept")
        if call is None and state.deadline <= self._forgotten.get(state.nonce[:_TAG], 0):
            raise StateExpired(_EVICTED)
        return call

    def claim(self, nonce: bytes, call: SuspendedCall) -> None:
        """Record a nonce as used, so that its call runs once. Beyond the limits the oldest nonce is evicted, and states
        with it are rejected.
        """
        self._forget()
        own = self._nonces_by_account.setdefault(nonce[:_TAG], OrderedDict())
        if nonce not in own:
            if len(own) >= _MAX_NONCES_PER_ACCOUNT:
                self._evict_oldest(own)
            elif len(self._nonces) >= _MAX_NONCES:
                self._evict_oldest(max(self._nonces_by_account.values(), key=len))
            own = self._nonces_by_account.setdefault(nonce[:_TAG], own)
            own[nonce] = None
        self._runs[nonce] = call
        self._nonces[nonce] = time.monotonic() + self.seconds

    def _evict_oldest(self, nonces: OrderedDict[bytes, None]) -> None:
        """Evict the oldest of these nonces whose handler is not working; cancel the handler if it waits."""
        for _ in range(min(_EVICTION_TRIES, len(nonces))):
            nonce = next(iter(nonces))
            call = self._runs.get(nonce)
            if call in self._running and call not in self.waiting.get(call.account, ()):
                nonces.move_to_end(nonce)
                continue
            if call in self._running:
                self._evict(call)
            tag, over = nonce[:_TAG], self._nonces.pop(nonce)
            self._forgotten[tag] = max(self._forgotten.get(tag, 0), over)
            self._remove_nonce(nonce)
            self._drop(nonce)
            return

    def admit_waiting(self, call: SuspendedCall) -> None:
        """Make room for a handler that is about to wait with no request in flight. Beyond the limit, cancel the longest
        waiting one of its own account, or of the account with the most.
        """
        http, own = self._limits.http, self.waiting.get(call.account)
        most = min(http.parked, http.parked_per_address) if call.anonymous else self._limits.parked
        if own is not None and len(own) >= most:
            self._evict(next(iter(own)))
        elif call.anonymous and self._anonymous >= http.parked:
            accounts: list[OrderedDict[SuspendedCall, None]] = [
                calls for calls in self.waiting.values() if next(iter(calls)).anonymous
            ]
            largest = max(accounts, key=len)
            self._evict(next(iter(largest)))
        if call.nonce not in self._runs:
            self.claim(call.nonce, call)
        self._nonces[call.nonce] = time.monotonic() + self.seconds
        self._nonces.move_to_end(call.nonce)

    def hold(self, call: SuspendedCall, size: int) -> None:
        """Count `size` more bytes that a handler holds until it has ended, waiting or working. Without room, waiting
        handlers are cancelled. Raises `ToolError` if that is not enough.
        """
        self._make_room(call, size)
        call.memory += size
        self._memory.add(call.account, size)

    def _make_room(self, call: SuspendedCall, size: int) -> None:
        """Cancel other waiting handlers until `size` more bytes are within the limits. Raises `ToolError`."""
        held = self._memory
        while held.of_one(call.account) + size > held.most_of_one and self._evict_first(call.account, call):
            pass
        while held.by_account and held.total + size > held.most:
            if not self._evict_first(max(held.by_account, key=held.of_one), call):
                break
        if not held.has_room(call.account, size):
            raise ToolError("too many large calls are in progress (HTTPLimits.bodies_bytes); try again later")

    def _release(self, call: SuspendedCall) -> None:
        """Release the memory counted for a handler."""
        self._memory.add(call.account, -call.memory)
        call.memory = 0

    def _evict_first(self, account: str, but: SuspendedCall) -> bool:
        """Cancel the longest waiting handler of an account other than `but`; return whether there was one."""
        first = next((call for call in self.waiting.get(account, ()) if call is not but), None)
        if first is not None:
            self._evict(first)
        return first is not None

    def _evict(self, call: SuspendedCall) -> None:
        """Cancel a handler that waits for an answer."""
        self.set_waiting(call, False)
        self._release(call)
        call.cancel(_EVICTED)

    def set_waiting(self, call: SuspendedCall, resting: bool) -> None:
        """Record whether a handler waits with no request in flight."""
        own = self.waiting.setdefault(call.account, OrderedDict())
        change = resting - (call in own)
        self._anonymous += call.anonymous * change
        if resting:
            own[call] = None
        else:
            own.pop(call, None)
        if not own:
            del self.waiting[call.account]

    def start(self, call: SuspendedCall, work: Coroutine[Any, Any, None]) -> None:
        """Run the handler of a call in a task of its own, at once until it first waits."""
        self._running.add(call)
        spare, self._spare_task = self._spare_task, None
        if spare is None or spare.task.cancelling():
            spare = EagerTask()
        call.task = spare.task
        if spare.start(work):
            self._spare_task = spare

    def mark_ended(self, call: SuspendedCall) -> None:
        """Record that a handler has ended; its outcomes are stored until all states with its nonce have expired."""
        self._running.discard(call)
        if call.memory:
            self._release(call)
        if self._runs.get(call.nonce) is not call:
            return
        tag = call.nonce[:_TAG]
        self._ended.setdefault(tag, OrderedDict())[call.nonce] = call.size
        self._held[tag] += call.size
        self._forget()
        self._schedule_cleanup()

    def _schedule_cleanup(self) -> None:
        """Schedule the removal of expired entries, with one timer for all."""
        if self._cleanup is None and self._ended:
            self._cleanup = asyncio.get_running_loop().call_later(self.seconds, self._clean_up)

    def _clean_up(self) -> None:
        self._cleanup = None
        self._forget()
        self._schedule_cleanup()

    def _forget(self) -> None:
        """Drop expired entries. If the outcomes take too much memory, drop the oldest of the account with the most, but
        not their nonces.
        """
        now = time.monotonic()
        while self._nonces and next(iter(self._nonces.values())) <= now:
            nonce, _ = self._nonces.popitem(last=False)
            if (
                self._runs.get(nonce) in self._running
            ):  # a working handler stays; its question has a deadline of its own
                self._nonces[nonce] = now + self.seconds
            else:
                self._remove_nonce(nonce)
                self._drop(nonce)
        for tag in [tag for tag, over in self._forgotten.items() if over <= now]:
            del self._forgotten[tag]
        while self._held.total() > self._limits.kept_bytes:
            most = max(self._held, key=self._held.__getitem__)
            self._drop(next(iter(self._ended[most])))

    def _remove_nonce(self, nonce: bytes) -> None:
        tag = nonce[:_TAG]
        own = self._nonces_by_account[tag]
        del own[nonce]
        if not own:
            del self._nonces_by_account[tag]

    def _drop(self, nonce: bytes) -> None:
        self._runs.pop(nonce, None)
        tag = nonce[:_TAG]
        own = self._ended.get(tag)
        if own is not None and nonce in own:
            self._held[tag] -= own.pop(nonce)
            if not own:
                del self._ended[tag], self._held[tag]

    async def close(self, peer: Peer, seconds: float) -> None:
        """Cancel the calls of a client that has disconnected, and wait for them at most `seconds`."""
        closed = [call for call in self._running if call.peer is peer]
        for call in closed:
            call.cancel()
        tasks = [call.task for call in closed if call.task is not None]
        if self._spare_task is not None:
            self._spare_task.task.cancel()
            tasks.append(self._spare_task.task)
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for call in [call for call in self._runs.values() if call.peer is peer]:
            self._drop(call.nonce)
