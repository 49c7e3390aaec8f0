"""The requests of the host that wait for an answer: each gets exactly one.

A request goes to the active process, waits for one while one is expected, or is answered by the relay. If its process
ends, a request that changes nothing is sent to the next one; any other fails with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET, Raw

from accord.dev import announcements, search
from accord.dev.actions import CallEnded, CallStarted, ToHost
from accord.dev.exchange import Exchange, HostBatch
from accord.dev.outcome import outcome
from accord.dev.questions import CANCELLED
from accord.dev.relay_state import RelayState
from accord.dev.relayed_process import RelayedProcess
from accord.dev.rewriting import (
    LIST_METHODS,
    error_response,
    members,
    notification,
    response,
    result_for_host,
    with_id,
)
from accord.dev.unavailable import acknowledgement, answer_without_process, failed_call, typed_result
from accord.errors import INVALID_REQUEST, InvalidRequest
from accord.messages.base import JSONObject, RequestId
from accord.messages.envelope import Incoming, MalformedMessage
from accord.messages.meta import SUBSCRIPTION_ID
from accord.session.incoming import error_bytes

STATEFUL = frozenset({"initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Requests whose success changes the state of the session."""


class HostRequests:
    """The requests of one host. With `search`, the host gets the tools `search_tools` and `call_tool`."""

    def __init__(self, state: RelayState, *, search: bool) -> None:
        self.list_requests: int = 0
        """The number of lists that the host has requested."""
        self._state = state
        self._search = search
        self._exchanges: dict[RequestId, Exchange] = {}
        self._waiting: list[Exchange | bytes] = []  # requests and notifications, until a process takes over

    @property
    def is_empty(self) -> bool:
        """Return whether no request waits for its answer."""
        return not self._exchanges

    @property
    def is_idle(self) -> bool:
        """Return whether no request waits for its answer, except subscriptions."""
        return all(each.cancelled or each.is_listening for each in self._exchanges.values())

    def is_answered_by(self, process: RelayedProcess) -> bool:
        """Return whether a process has a request to answer."""
        return any(each.owner == process.generation and not each.cancelled for each in self._exchanges.values())

    def owned(self, process: RelayedProcess, id: object) -> Exchange | None:
        """Return the request with an id that a process has to answer."""
        exchange = self._exchanges.get(id) if isinstance(id, int | str) else None
        return exchange if exchange is not None and exchange.owner == process.generation else None

    # --- a new request --------------------------------------------------------------------------------------------

    def add(self, id: RequestId, method: str, message: bytes, incoming: Incoming, batch: HostBatch | None) -> None:
        """Send a request of the host to the process that shall answer it."""
        if id in self._exchanges:
            error = InvalidRequest(f"a request with id {id!r:.100} is in flight")
            self._state.emit(ToHost(error_bytes(None, error, self._state.session.rules)))  # its id would end the other
            return
        per_request = self._state.session.note_request(message, incoming)
        params = incoming.params if incoming.params is not UNSET else Raw(b"{}")
        exchange = self._exchanges[id] = Exchange(id, method, message, params, per_request, batch=batch)
        if batch is not None:
            batch.missing += 1
        if method in LIST_METHODS:
            self.list_requests += 1
        elif exchange.is_call:
            self._state.emit(CallStarted(id, exchange.title, message))
        if self._search and method == "tools/call" and self._answer_search(exchange, incoming):
            return
        exchange.owner = self._state.retry_owners.claim(message, params)
        owner = self._state.processes.get(exchange.owner) if exchange.owner is not None else None
        if owner is not None:
            self._state.send(owner, exchange.message)
        else:
            self._dispatch(exchange)

    def add_malformed(self, message: bytes, exc: MalformedMessage) -> None:
        """Let the active process answer, whose error says what is wrong."""
        active = self._state.active
        if active is not None:
            if exc.answerable and exc.id is not None and exc.id not in self._exchanges:
                self._exchanges[exc.id] = Exchange(exc.id, "", message, Raw(b"{}"), False, active.generation)
            self._state.send(active, message)
        elif exc.answerable and exc.id is not None:
            self._state.emit(ToHost(error_response(exc.id, exc.error.code or INVALID_REQUEST, exc.error.message)))

    def forward(self, message: bytes) -> None:
        """Send a notification of the host to the active process, or let it wait for one."""
        if self._state.active is not None:
            self._state.send(self._state.active, message)
        elif self._state.is_expected:
            self._waiting.append(message)

    def _answer_search(self, exchange: Exchange, incoming: Incoming) -> bool:
        """Answer `search_tools`, and turn `call_tool` into the call that it asks for. Return whether it is answered."""
        params, surface = members(exchange.params), self._state.surface
        if (found := search.answer(params, {} if surface is None else surface["tools"])) is not None:
            self.reply(exchange, response(exchange.id, typed_result(exchange, found)))
            return True
        if (inner := search.called(params)) is not None:
            exchange.message = with_id(incoming, exchange.id, inner)
        return False

    def _dispatch(self, exchange: Exchange) -> None:
        """Send a request to the active process, or let it wait for one, or answer it."""
        if self._state.active is not None:
            exchange.owner = self._state.active.generation
            self._state.send(self._state.active, exchange.message)
        elif self._state.is_expected:
            self._waiting.append(exchange)
        else:
            self._answer_alone(exchange)

    def _answer_alone(self, exchange: Exchange) -> None:
        """Answer a request while no process runs. A subscription stays open, for the next process."""
        if exchange.is_listening:
            if not exchange.acknowledged:
                self._acknowledge(exchange, {})
            return
        answer = answer_without_process(exchange, self._state.failure, self._state.target)
        self.reply(exchange, self._note_result(exchange, answer))

    # --- the end of a request -------------------------------------------------------------------------------------

    def answer(self, exchange: Exchange, message: bytes, *, succeeded: bool) -> None:
        """Give the host the answer of a process."""
        self.reply(exchange, self._note_result(exchange, message) if succeeded else message)

    def cancel(self, message: bytes, incoming: Incoming) -> RelayedProcess | None:
        """Cancel a request. Return the process that was notified of it."""
        id = members(incoming.params).get("requestId")
        exchange = self._exchanges.get(id) if isinstance(id, int | str) else None
        if exchange is None:
            return None
        if exchange.is_call and not exchange.cancelled:
            self._state.emit(CallEnded(exchange.id, "cancelled", b""))
        exchange.cancelled = True
        self._leave_batch(exchange)  # it may stay without an answer, for which the others do not wait
        process = self._state.processes.get(exchange.owner) if exchange.owner is not None else None
        if process is None:
            self._drop(exchange)
        else:
            self._state.send(process, message)
        return process

    def release(self, process: RelayedProcess, reason: str) -> None:
        """Send the requests of a process that is gone to the next one, or let them fail."""
        for exchange in [each for each in self._exchanges.values() if each.owner == process.generation]:
            if exchange.cancelled:
                self._drop(exchange)
            elif exchange.is_repeatable:
                exchange.owner = None
                self._dispatch(exchange)
            else:
                self.reply(exchange, failed_call(exchange, reason))

    def fail_waiting(self) -> None:
        """Answer what waits for a process, as none is expected."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if isinstance(each, Exchange) and each.id in self._exchanges:
                self._answer_alone(each)

    def send_waiting(self, process: RelayedProcess) -> None:
        """Send what waits for a process to the one that has taken over."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if isinstance(each, bytes):
                self._state.send(process, each)
            else:
                self._dispatch(each)

    def _note_result(self, exchange: Exchange, message: bytes) -> bytes:
        """Remember what an answer means for the session. Return the answer for the host."""
        if exchange.method in STATEFUL:
            return self._state.session.note_result(exchange.method, exchange.params, message)
        if exchange.owner is not None:
            self._state.retry_owners.note(exchange.owner, message)
        return result_for_host(exchange.method, message, search=self._search)

    def reply(self, exchange: Exchange, message: bytes) -> None:
        """Answer a request of the host: at once, or with the rest of its batch."""
        self._exchanges.pop(exchange.id, None)
        if exchange.is_call and not exchange.cancelled:
            self._state.emit(CallEnded(exchange.id, outcome(message), message))
        if exchange.batch is None:
            self._state.emit(ToHost(message))
        else:
            exchange.batch.answers.append(message)
            self.complete(exchange.batch)

    def _drop(self, exchange: Exchange) -> None:
        """Forget a request that the host has cancelled."""
        del self._exchanges[exchange.id]
        self._waiting = [each for each in self._waiting if each is not exchange]

    def _leave_batch(self, exchange: Exchange) -> None:
        batch, exchange.batch = exchange.batch, None
        if batch is not None:
            self.complete(batch)

    def complete(self, batch: HostBatch) -> None:
        """Note that one part of a batch is complete, and send the answers after the last."""
        batch.missing -= 1
        if not batch.missing and batch.answers:
            self._state.emit(ToHost(b"[" + b",".join(batch.answers) + b"]"))

    # --- subscriptions --------------------------------------------------------------------------------------------

    @property
    def subscriptions(self) -> list[Exchange]:
        """Return the open subscriptions."""
        return [each for each in self._exchanges.values() if each.is_listening and not each.cancelled]

    def detach_subscriptions(self, process: RelayedProcess) -> None:
        """End the subscriptions of a process; they wait for the next one."""
        for exchange in self.subscriptions:
            if exchange.owner == process.generation:
                self._state.send(process, notification(CANCELLED, {"requestId": exchange.id}))
                exchange.owner = None

    def attach_subscriptions(self, process: RelayedProcess) -> None:
        """Send the subscriptions that no process serves to one."""
        for exchange in [each for each in self.subscriptions if each.owner is None]:
            exchange.owner = process.generation
            self._state.send(process, exchange.message)
        self._waiting = [each for each in self._waiting if isinstance(each, bytes) or each.owner is None]

    def acknowledge(self, process: RelayedProcess, incoming: Incoming) -> None:
        """Give the host the acknowledgement of a subscription, unless it has one of an earlier process."""
        params = members(incoming.params)
        meta = params.get("_meta")
        exchange = self.owned(process, meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None)
        if exchange is not None and not exchange.acknowledged:
            found = params.get("notifications")
            self._acknowledge(exchange, found if isinstance(found, dict) else {})

    def _acknowledge(self, exchange: Exchange, found: JSONObject) -> None:
        requested = members(exchange.params).get("notifications")
        exchange.acknowledged = True
        granted = announcements.granted(requested if isinstance(requested, dict) else {}, found)
        self._state.emit(ToHost(acknowledgement(exchange, granted)))

    def announce(self, kinds: Iterable[str]) -> bool:
        """Notify the host of changed lists. Return whether it has asked for notifications."""
        handshake, listening = self._state.session.handshake, self.subscriptions
        is_ready = handshake is not None and handshake.ready
        for message in announcements.notifications(kinds, session=is_ready, listening=listening):
            self._state.emit(ToHost(message))
        return is_ready or bool(listening)
