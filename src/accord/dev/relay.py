"""The relay between one host and the processes of a program, one after the other, without I/O.

Rules:

1. A new process starts beside the active one. It receives the host's handshake, log level and subscriptions, and lists
   its surface; then it takes over. If it fails before that, the active one continues.
2. New requests go to the active process. The one before it retires: it finishes its requests, until `expire`.
3. Each request of the host gets exactly one answer. If its process ends, a request that changes nothing is sent to the
   next one; any other fails with the reason, because it may have taken effect. While a process is expected, requests
   wait; if none runs, the relay answers.
4. Requests of the processes to the host have ids of the relay, so that those of two processes cannot be mixed up.
5. A subscription (`subscriptions/listen`) moves to the process that takes over, under its own id.

Each method returns the actions for the driver, in order. Messages that need no change keep their bytes.

This module routes messages. `process_lifecycle` has rules 1 and 2, `host_requests` rules 3 and 5, `questions` rule 4.
"""

from __future__ import annotations

from msgspec import UNSET

from accord.dev.actions import Action, ShowLine, ToHost
from accord.dev.exchange import HostBatch
from accord.dev.host_requests import STATEFUL, HostRequests
from accord.dev.process_lifecycle import ProcessLifecycle
from accord.dev.questions import CANCELLED, PROGRESS
from accord.dev.relay_state import RelayState
from accord.dev.relayed_process import ProcessPhase, RelayedProcess
from accord.dev.rewriting import LIST_KINDS
from accord.messages import envelope
from accord.messages.base import JSONObject
from accord.messages.envelope import Incoming, MalformedMessage

_LIST_CHANGES = frozenset(f"notifications/{kind}/list_changed" for kind in LIST_KINDS)
_FROM_ACTIVE_ONLY = _LIST_CHANGES | {"notifications/resources/updated"}
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Relay:
    """One connection of a host. `target` is the name of the program, `prefix` that of the relay's ids; with `search`,
    the host gets the tools `search_tools` and `call_tool`.
    """

    def __init__(self, target: str, *, prefix: str = "accord-dev", search: bool = False) -> None:
        self._state = RelayState(target, prefix)
        self._requests = HostRequests(self._state, search=search)
        self._lifecycle = ProcessLifecycle(self._state, self._requests)

    @property
    def surface(self) -> JSONObject | None:
        """Return the surface of the active process, once it is known."""
        return self._state.surface

    @property
    def list_requests(self) -> int:
        """Return the number of lists that the host has requested."""
        return self._requests.list_requests

    @property
    def is_idle(self) -> bool:
        """Return whether no request of the host waits for its answer, except subscriptions."""
        return self._requests.is_idle

    @property
    def is_retiring(self) -> bool:
        """Return whether a process that was replaced, or stopped, has requests to answer or waits for answers."""
        return any(each.phase is ProcessPhase.RETIRING for each in self._state.processes.values())

    # --- processes ------------------------------------------------------------------------------------------------

    def start(self, generation: int) -> list[Action]:
        """Note that a process was started."""
        self._lifecycle.start(generation)
        return self._state.take_actions()

    def retire(self) -> list[Action]:
        """Stop sending requests to the active process before the next one is started (`--stop-first`)."""
        self._lifecycle.retire()
        return self._state.take_actions()

    def expire(self, generation: int) -> list[Action]:
        """End the requests of a retiring process, whose grace is over. The driver ends the process."""
        self._lifecycle.expire(generation)
        return self._state.take_actions()

    def process_ended(self, generation: int, reason: str) -> list[Action]:
        """Note that a process has ended, or that it is given up: it failed to start, or took too long."""
        self._lifecycle.end(generation, reason)
        return self._state.take_actions()

    def abandon(self, generation: int) -> list[Action]:
        """Forget a process that has not taken over, because a newer version is about to start. The driver ends it."""
        self._lifecycle.abandon(generation)
        return self._state.take_actions()

    # --- messages of the host -------------------------------------------------------------------------------------

    def receive_host(self, message: bytes) -> list[Action]:
        """Process a message of the host."""
        items = self._items(message)
        if items is None:
            self._receive_host(message, None)
        else:
            batch = HostBatch(1)
            for item in items:
                self._receive_host(item, batch)
            self._requests.complete(batch)
        return self._state.take_actions()

    def _receive_host(self, message: bytes, batch: HostBatch | None) -> None:
        try:
            incoming = envelope.read(message)
        except MalformedMessage as exc:
            self._requests.add_malformed(message, exc)
            return
        if incoming.method is UNSET:
            self._state.send_addressed(self._state.questions.answer(incoming))
        elif incoming.id is UNSET:
            self._notification_of_host(message, incoming)
        else:
            assert incoming.id is not None
            self._requests.add(incoming.id, incoming.method, message, incoming, batch)

    def _notification_of_host(self, message: bytes, incoming: Incoming) -> None:
        handshake, active = self._state.session.handshake, self._state.active
        if incoming.method == CANCELLED:
            if (process := self._requests.cancel(message, incoming)) is not None:
                self._lifecycle.check_finished(process)
        elif incoming.method == PROGRESS:
            self._state.send_addressed(self._state.questions.progress(incoming))
        elif incoming.method == "notifications/initialized" and handshake is not None:
            handshake.ready = True
            if active is not None and not active.is_initialized:
                active.is_initialized = True
                self._state.send(active, message)
                self._lifecycle.prepare(active, replays=False)
        else:
            self._requests.forward(message)

    # --- messages of a process ------------------------------------------------------------------------------------

    def receive_process(self, generation: int, message: bytes) -> list[Action]:
        """Process a message of a process."""
        process = self._state.processes.get(generation)
        if process is not None:
            items = self._items(message)
            for each in [message] if items is None else items:
                self._receive_process(process, each)
        return self._state.take_actions()

    def _receive_process(self, process: RelayedProcess, message: bytes) -> None:
        try:
            incoming = envelope.read(message)
        except MalformedMessage as exc:
            line = message[:100].decode(errors="replace")
            text = f"the program wrote a line to stdout that is no message ({exc}): {line}"
            self._state.emit(ShowLine(text))
            return
        if incoming.method is UNSET:
            self._receive_response(process, message, incoming)
        elif incoming.id is UNSET:
            self._notification_of_process(process, message, incoming)
        else:
            assert incoming.id is not None
            self._state.emit(ToHost(self._state.questions.ask(process.generation, incoming.id, incoming)))

    def _receive_response(self, process: RelayedProcess, message: bytes, incoming: Incoming) -> None:
        id = incoming.id
        if id is UNSET or id is None:
            self._state.emit(ToHost(message))  # an error for a message whose id could not be read
        elif id in process.ignored:
            process.ignored.discard(id)
        elif id == process.ping:
            self._lifecycle.answered_ping(process)
        elif process.preparation is not None and process.preparation.owns(id):
            self._lifecycle.receive_preparation(process, process.preparation, incoming)
        else:
            self._receive_answer(process, message, incoming)

    def _receive_answer(self, process: RelayedProcess, message: bytes, incoming: Incoming) -> None:
        """Process the answer to a request of the host."""
        exchange = self._requests.owned(process, incoming.id)
        if exchange is None:
            return
        process.answered, succeeded = True, incoming.error is UNSET
        self._requests.answer(exchange, message, succeeded=succeeded)
        if exchange.method in STATEFUL:
            self._note_state(process)
        self._lifecycle.prepare_waiting()
        is_unlisted = self._state.surface is None and process is self._state.active and process.preparation is None
        if exchange.per_request and succeeded and is_unlisted:
            self._lifecycle.prepare(process, replays=False)
        self._lifecycle.check_finished(process)

    def _note_state(self, process: RelayedProcess) -> None:
        """Note that a process knows the state of the session; tell the active one if it is another."""
        process.level, process.uris = self._state.session.log_level, dict(self._state.session.uris)
        active = self._state.active
        if active is not None and active is not process:
            self._lifecycle.restore_state(active)

    def _notification_of_process(self, process: RelayedProcess, message: bytes, incoming: Incoming) -> None:
        method, is_active = incoming.method, process is self._state.active
        if method == _ACKNOWLEDGED:
            self._requests.acknowledge(process, incoming)
            return
        if method == CANCELLED:
            message = self._state.questions.cancel(process.generation, incoming)
        if method in _LIST_CHANGES and is_active:
            self._lifecycle.lists_changed(process)
        if process.phase is ProcessPhase.STARTING and method in _LIST_CHANGES:
            process.is_stale = process.is_unannounced = True
        elif process.phase is ProcessPhase.STARTING and message:
            process.held.append(message)
        elif message and (is_active or method not in _FROM_ACTIVE_ONLY):
            self._state.emit(ToHost(message))

    def _items(self, message: bytes) -> list[bytes] | None:
        """Return the messages of a batch, or None if the message is no batch of the session's revision."""
        if not (self._state.session.rules.batches and envelope.is_array(message)):
            return None
        items = envelope.items(message)
        return None if items is None else [bytes(each) for each in items]
