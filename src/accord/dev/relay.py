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
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from msgspec import UNSET, Raw

from accord.dev import announcements, search
from accord.dev.actions import (
    Action,
    CallEnded,
    CallStarted,
    Finished,
    Restart,
    ShowLine,
    StartFailed,
    ToHost,
    TookOver,
    ToProcess,
)
from accord.dev.announcements import LISTENING
from accord.dev.host_session import Exchange, HostBatch, HostSession
from accord.dev.outcome import outcome
from accord.dev.preparation import LIST_METHODS, Preparation, PreparationFailed
from accord.dev.questions import CANCELLED, PROGRESS, Addressed, ProcessQuestions
from accord.dev.relayed_process import ProcessPhase, RelayedProcess
from accord.dev.rewriting import (
    LIST_KINDS,
    declaring_list_changes,
    edit_result,
    error_response,
    members,
    never_cached,
    notification,
    request,
    response,
    with_id,
)
from accord.dev.unavailable import acknowledgement, answer_without_process, failed_call, typed_result
from accord.errors import INVALID_REQUEST
from accord.messages import envelope
from accord.messages.base import JSONObject, RequestId
from accord.messages.envelope import Incoming, MalformedMessage
from accord.messages.meta import SUBSCRIPTION_ID

RELOADED = "reloaded"

REPEATABLE = frozenset(
    {"initialize", "server/discover", "ping", "prompts/get", "resources/read", "completion/complete", LISTENING}
    | {"logging/setLevel", "resources/subscribe", "resources/unsubscribe", *LIST_METHODS}
)
"""Requests that may be sent to a second process, because they change nothing that outlives the first."""

_MOST_STATES = 1_000

_CALLS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_STATEFUL = frozenset({"initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
_LIST_CHANGES = frozenset(f"notifications/{kind}/list_changed" for kind in LIST_KINDS)
_FROM_ACTIVE_ONLY = _LIST_CHANGES | {"notifications/resources/updated"}
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Relay:
    """The state of one connection of a host. `target` is the name of the program, `prefix` that of the relay's ids;
    with `search`, the host gets the tools `search_tools` and `call_tool`.
    """

    def __init__(self, target: str, *, prefix: str = "accord-dev", search: bool = False) -> None:
        self._search = search
        self.target: str = target
        self.session: HostSession = HostSession()
        self.list_requests: int = 0
        """The number of lists that the host has requested."""
        self.surface: JSONObject | None = None
        """The surface of the active process, once it is known."""
        self._ids = count(1)
        self._prefix = prefix
        self._processes: dict[int, RelayedProcess] = {}
        self._active: RelayedProcess | None = None
        self._exchanges: dict[RequestId, Exchange] = {}
        self._states: dict[str, int] = {}
        """The process that waits for the answers to its last `input_required`, by `requestState`."""
        self._questions = ProcessQuestions()
        self._waiting: list[Exchange | bytes] = []  # requests and notifications, until a process takes over
        self._is_expected = True
        self._failure = f"{target} does not run"
        self._actions: list[Action] = []

    @property
    def is_idle(self) -> bool:
        """Return whether no request of the host waits for its answer, except subscriptions."""
        return all(each.cancelled or each.method == LISTENING for each in self._exchanges.values())

    # --- processes ----------------------------------------------------------------------------------------------

    def start(self, generation: int) -> list[Action]:
        """Note that a process was started."""
        process = self._processes[generation] = RelayedProcess(generation)
        self._is_expected = True
        if self.session.is_known:
            self._prepare(process, replays=True)
        elif self._active is None or not self._exchanges:
            self._take_over(process)  # nothing to replay
        return self._take()

    def retire(self) -> list[Action]:
        """Stop sending requests to the active process before the next one is started (`--stop-first`)."""
        active, self._active, self._is_expected = self._active, None, True
        if active is not None:
            self._detach_subscriptions(active)
            self._retire(active)
        return self._take()

    def expire(self, generation: int, reason: str = RELOADED) -> list[Action]:
        """End the requests of a retiring process, whose grace is over. The driver ends the process."""
        if (process := self._processes.pop(generation, None)) is not None:
            self._release(process, f"{reason}: the process of the earlier version was ended during this call; whether "
                          "it took effect is unknown")  # fmt: skip
        return self._take()

    def process_ended(self, generation: int, reason: str) -> list[Action]:
        """Note that a process has ended, or that it is given up: it failed to start, or took too long."""
        process = self._processes.pop(generation, None)
        if process is None:
            return self._take()
        if process.phase is ProcessPhase.ACTIVE:
            self._active = None
            self._end_of_active(process, reason)
        elif process.phase is ProcessPhase.STARTING:
            self._end_of_start(process, reason)
            return self._take()
        self._release(process, f"the program ended during this call; whether it took effect is unknown: {reason}")
        return self._take()

    def abandon(self, generation: int) -> list[Action]:
        """Forget a process that has not taken over, because a newer version is about to start. The driver ends it."""
        if (process := self._processes.pop(generation, None)) is not None:
            self._release(process, "a newer version has started")
        return self._take()

    def _end_of_start(self, process: RelayedProcess, reason: str) -> None:
        self._emit(StartFailed(process.generation, reason))
        if self._active is None and not self._starting():
            self._fail_waiting(reason)
        self._release(process, reason)

    def _starting(self) -> list[RelayedProcess]:
        return [each for each in self._processes.values() if each.phase is ProcessPhase.STARTING]

    def _end_of_active(self, process: RelayedProcess, reason: str) -> None:
        if starting := self._starting():
            if starting[-1].preparation is None:
                self._take_over(starting[-1])
        elif process.answered:
            self._is_expected = True
            self._emit(Restart(reason))
        else:
            self._emit(StartFailed(process.generation, reason))
            self._fail_waiting(reason)

    def _fail_waiting(self, reason: str) -> None:
        """Answer what waits for a process, as none is expected."""
        self._is_expected, self._failure, self.surface = False, f"{self.target} does not run: {reason}", None
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if isinstance(each, Exchange) and each.id in self._exchanges:
                self._answer_alone(each)

    def _release(self, process: RelayedProcess, reason: str) -> None:
        """End all that depends on a process that is gone."""
        self._states = {state: owner for state, owner in self._states.items() if owner != process.generation}
        for message in self._questions.release(process.generation, reason):
            self._emit(ToHost(message))
        for exchange in list(self._exchanges.values()):
            if exchange.owner != process.generation:
                continue
            if exchange.cancelled:
                self._drop(exchange)
            elif exchange.method in REPEATABLE:
                exchange.owner = None
                self._dispatch(exchange)
            else:
                self._reply(exchange, failed_call(exchange, reason))

    def _prepare(self, process: RelayedProcess, *, replays: bool) -> None:
        process.preparation = Preparation(self.session, self._new_id, replays=replays)
        process.is_stale = False
        self._send_all(process, process.preparation.begin())
        self._check_prepared(process)

    def _check_prepared(self, process: RelayedProcess) -> None:
        preparation = process.preparation
        if preparation is None or not preparation.done:
            return
        process.preparation = None
        if process.phase is ProcessPhase.STARTING:
            process.level, process.uris = preparation.level, preparation.uris
            process.is_initialized = True
            self._take_over(process, preparation.surface)
        elif process is self._active:
            before, self.surface = self.surface, preparation.surface
            if process.is_unannounced:
                self._announce(announcements.compare(before, self.surface)[1])
                process.is_unannounced = process.is_stale
        if process.is_stale and process is self._active:
            self._prepare(process, replays=False)

    def _take_over(self, process: RelayedProcess, surface: JSONObject | None = None) -> None:
        old, self._active = self._active, process
        process.phase, self._is_expected, process.preparation = ProcessPhase.ACTIVE, False, None
        before, self.surface = self.surface, surface
        changes, changed = announcements.compare(before, surface) if self.session.is_known else ((), ())
        self._move_subscriptions(old, process)
        self._restore_state(process)
        held, process.held = process.held, []
        for message in held:
            self._emit(ToHost(message))
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if isinstance(each, bytes):
                self._send(process, each)
            else:
                self._dispatch(each)
        announced = changed if self._announce(changed) else ()
        self._emit(TookOver(process.generation, None if old is None else old.generation, changes, announced))
        if old is not None:
            self._retire(old)

    def _announce(self, kinds: Iterable[str]) -> bool:
        """Notify the host of changed lists. Return whether it has asked for notifications."""
        handshake = self.session.handshake
        listening = [each for each in self._exchanges.values() if each.method == LISTENING and not each.cancelled]
        is_ready = handshake is not None and handshake.ready
        for message in announcements.notifications(kinds, session=is_ready, listening=listening):
            self._emit(ToHost(message))
        return is_ready or bool(listening)

    def _retire(self, process: RelayedProcess) -> None:
        process.phase = ProcessPhase.RETIRING
        process.preparation = None
        self._check_finished(process)

    def _check_finished(self, process: RelayedProcess) -> None:
        """Let a retiring process end that has no requests, and no call that waits for answers to its questions."""
        if process.phase is not ProcessPhase.RETIRING or process.generation in self._states.values():
            return
        if not any(each.owner == process.generation and not each.cancelled for each in self._exchanges.values()):
            self._emit(Finished(process.generation))

    def _subscriptions(self, owner: int | None) -> list[Exchange]:
        """Return the open subscriptions that a process serves, or with None that no process serves."""
        found = (each for each in self._exchanges.values() if each.method == LISTENING and not each.cancelled)
        return [each for each in found if each.owner == owner]

    def _detach_subscriptions(self, process: RelayedProcess) -> None:
        for exchange in self._subscriptions(process.generation):
            self._send(process, notification(CANCELLED, {"requestId": exchange.id}))
            exchange.owner = None

    def _move_subscriptions(self, old: RelayedProcess | None, process: RelayedProcess) -> None:
        if old is not None:
            self._detach_subscriptions(old)
        for exchange in self._subscriptions(None):
            exchange.owner = process.generation
            self._send(process, exchange.message)
        self._waiting = [each for each in self._waiting if isinstance(each, bytes) or each.owner is None]

    def _restore_state(self, process: RelayedProcess) -> None:
        """Send the difference between the state that a process knows and that of the session."""
        if self.session.handshake is None:
            return
        if self.session.log_level not in (None, process.level):
            self._send_ignored(process, "logging/setLevel", {"level": self.session.log_level})
        for uri in process.uris.keys() - self.session.uris.keys():
            self._send_ignored(process, "resources/unsubscribe", {"uri": uri})
        for uri in [each for each in self.session.uris if each not in process.uris]:
            self._send_ignored(process, "resources/subscribe", {"uri": uri})
        process.level, process.uris = self.session.log_level, dict(self.session.uris)

    # --- messages of the host ------------------------------------------------------------------------------------

    def receive_host(self, message: bytes) -> list[Action]:
        """Process a message of the host."""
        items = envelope.items(message) if self.session.has_batches and envelope.is_array(message) else None
        if items is None:
            self._receive_host(message, None)
        else:
            batch = HostBatch(1)
            for item in items:
                self._receive_host(bytes(item), batch)
            self._complete(batch)
        return self._take()

    def _receive_host(self, message: bytes, batch: HostBatch | None) -> None:
        try:
            incoming = envelope.read(message)
        except MalformedMessage as exc:
            self._receive_malformed(message, exc)
            return
        if incoming.method is UNSET:
            self._send_addressed(self._questions.answer(incoming))
        elif incoming.id is UNSET:
            self._receive_notification(message, incoming)
        else:
            assert incoming.id is not None
            self._receive_request(incoming.id, incoming.method, message, incoming, batch)

    def _receive_malformed(self, message: bytes, exc: MalformedMessage) -> None:
        """Let the active process answer, whose error says what is wrong."""
        if self._active is not None:
            if exc.answerable and exc.id is not None and exc.id not in self._exchanges:
                self._exchanges[exc.id] = Exchange(exc.id, "", message, Raw(b"{}"), False, self._active.generation)
            self._send(self._active, message)
        elif exc.answerable and exc.id is not None:
            self._emit(ToHost(error_response(exc.id, exc.error.code or INVALID_REQUEST, exc.error.message)))

    def _receive_request(
        self, id: RequestId, method: str, message: bytes, incoming: Incoming, batch: HostBatch | None
    ) -> None:
        if id in self._exchanges:
            self._emit(ToHost(error_response(id, INVALID_REQUEST, f"the id {id!r} is in use by a request in progress")))
            return
        per_request = self.session.note_request(message, incoming)
        params = incoming.params if incoming.params is not UNSET else Raw(b"{}")
        exchange = self._exchanges[id] = Exchange(id, method, message, params, per_request, batch=batch)
        if batch is not None:
            batch.missing += 1
        if method in LIST_METHODS:
            self.list_requests += 1
        elif method in _CALLS:
            name = members(params).get(_CALLS[method])
            self._emit(CallStarted(id, f"{method} {name}", message))
        if self._search and method == "tools/call" and self._is_search_call(exchange, incoming):
            return
        if b'"requestState"' in message:
            exchange.owner = self._states.pop(str(members(params).get("requestState")), None)
        if exchange.owner is not None and exchange.owner in self._processes:
            self._send(self._processes[exchange.owner], exchange.message)
        else:
            self._dispatch(exchange)

    def _is_search_call(self, exchange: Exchange, incoming: Incoming) -> bool:
        """Answer `search_tools`, and turn `call_tool` into the call that it asks for. Return whether it is answered."""
        params = members(exchange.params)
        if params.get("name") == search.SEARCH:
            tools = {} if self.surface is None else self.surface["tools"]
            found = search.search(tools, params.get("arguments"))
            self._reply(exchange, response(exchange.id, typed_result(exchange, found)))
            return True
        if params.get("name") == search.CALL and (inner := search.called(params)) is not None:
            exchange.message = with_id(incoming, exchange.id, inner)
        return False

    def _dispatch(self, exchange: Exchange) -> None:
        """Send a request to the active process, or let it wait for one, or answer it."""
        if self._active is not None:
            exchange.owner = self._active.generation
            self._send(self._active, exchange.message)
        elif self._is_expected:
            self._waiting.append(exchange)
        else:
            self._answer_alone(exchange)

    def _answer_alone(self, exchange: Exchange) -> None:
        """Answer a request while no process runs. A subscription stays open, for the next process."""
        if exchange.method == LISTENING:
            if not exchange.acknowledged:
                self._acknowledge(exchange, {})
            return
        answer = answer_without_process(exchange, self._failure, self.target)
        self._reply(exchange, self._note_result(exchange, answer))

    def _receive_notification(self, message: bytes, incoming: Incoming) -> None:
        method = incoming.method
        if method == CANCELLED:
            self._cancel(message, incoming)
        elif method == PROGRESS:
            self._send_addressed(self._questions.progress(incoming))
        elif method == "notifications/initialized" and self.session.handshake is not None:
            self.session.handshake.ready = True
            if self._active is not None and not self._active.is_initialized:
                self._active.is_initialized = True
                self._send(self._active, message)
                self._prepare(self._active, replays=False)
        elif self._active is not None:
            self._send(self._active, message)
        elif self._is_expected:
            self._waiting.append(message)

    def _cancel(self, message: bytes, incoming: Incoming) -> None:
        id = members(incoming.params).get("requestId")
        exchange = self._exchanges.get(id) if isinstance(id, int | str) else None
        if exchange is None:
            return
        exchange.cancelled = True
        self._leave_batch(exchange)  # it may stay without an answer, for which the others do not wait
        process = self._processes.get(exchange.owner) if exchange.owner is not None else None
        if process is None:
            self._drop(exchange)
        else:
            self._send(process, message)
            self._check_finished(process)

    # --- messages of a process -----------------------------------------------------------------------------------

    def receive_process(self, generation: int, message: bytes) -> list[Action]:
        """Process a message of a process."""
        process = self._processes.get(generation)
        if process is not None:
            items = envelope.items(message) if self.session.has_batches and envelope.is_array(message) else None
            for each in [message] if items is None else map(bytes, items):
                self._receive_process(process, each)
        return self._take()

    def _receive_process(self, process: RelayedProcess, message: bytes) -> None:
        try:
            incoming = envelope.read(message)
        except MalformedMessage as exc:
            line = message[:100].decode(errors="replace")
            self._emit(ShowLine(f"the program wrote a line to stdout that is no message ({exc}): {line}"))
            return
        if incoming.method is UNSET:
            self._receive_response(process, message, incoming)
        elif incoming.id is UNSET:
            self._notification_of_process(process, message, incoming)
        else:
            assert incoming.id is not None
            self._emit(ToHost(self._questions.ask(process.generation, incoming.id, incoming)))

    def _receive_response(self, process: RelayedProcess, message: bytes, incoming: Incoming) -> None:
        id = incoming.id
        if id is UNSET or id is None:
            self._emit(ToHost(message))  # an error for a message whose id could not be read
            return
        if id in process.ignored:
            process.ignored.discard(id)
            return
        if process.preparation is not None and process.preparation.owns(id):
            self._receive_preparation(process, process.preparation, incoming)
            return
        exchange = self._exchanges.get(id)
        if exchange is None or exchange.owner != process.generation:
            return
        process.answered = True
        if incoming.error is UNSET:
            message = self._note_result(exchange, message)
        self._reply(exchange, message)
        if exchange.method in _STATEFUL:
            self._note_state(process)
        self._prepare_waiting()
        succeeded = exchange.per_request and incoming.error is UNSET
        if succeeded and self.surface is None and process is self._active and process.preparation is None:
            self._prepare(process, replays=False)
        self._check_finished(process)

    def _receive_preparation(self, process: RelayedProcess, preparation: Preparation, incoming: Incoming) -> None:
        try:
            self._send_all(process, preparation.receive(incoming))
        except PreparationFailed as exc:
            self._processes.pop(process.generation)
            self._end_of_start(process, str(exc))
        else:
            self._check_prepared(process)

    def _note_result(self, exchange: Exchange, message: bytes) -> bytes:
        """Remember what an answer means for the session. Return the answer for the host."""
        method = exchange.method
        if method in _STATEFUL:
            return self.session.note_result(method, exchange.params, message)
        if method == "server/discover":
            message = edit_result(message, declaring_list_changes)
        if b'"input_required"' in message and exchange.owner is not None:
            self._note_request_state(message, exchange.owner)
        if self._search and method == "tools/list":
            message = edit_result(message, search.with_search_tools)
        if b'"ttlMs"' in message and (method in LIST_METHODS or method in ("server/discover", "resources/read")):
            message = edit_result(message, never_cached)
        return message

    def _note_request_state(self, message: bytes, generation: int) -> None:
        """Remember that the retry with this state, which holds the answers, belongs to this process."""
        result = members(message).get("result")
        state = result.get("requestState") if isinstance(result, dict) else None
        if isinstance(state, str):
            self._states[state] = generation
            if len(self._states) > _MOST_STATES:
                del self._states[next(iter(self._states))]

    def _note_state(self, process: RelayedProcess) -> None:
        """Note that a process knows the state of the session; tell the active one if it is another."""
        process.level, process.uris = self.session.log_level, dict(self.session.uris)
        if self._active is not None and self._active is not process:
            self._restore_state(self._active)

    def _prepare_waiting(self) -> None:
        """Begin with a process that was started before the host had said who it is."""
        for each in self._starting() if self.session.is_known else ():
            if each.preparation is None:
                self._prepare(each, replays=True)

    def _notification_of_process(self, process: RelayedProcess, message: bytes, incoming: Incoming) -> None:
        method = incoming.method
        if method == _ACKNOWLEDGED:
            self._acknowledged(process, incoming)
            return
        if method == CANCELLED:
            message = self._questions.cancel(process.generation, incoming)
        if method in _LIST_CHANGES and process is self._active:
            self._lists_changed(process)
        if process.phase is ProcessPhase.STARTING and method in _LIST_CHANGES:
            process.is_stale = process.is_unannounced = True
        elif process.phase is ProcessPhase.STARTING and message:
            process.held.append(message)
        elif message and (process is self._active or method not in _FROM_ACTIVE_ONLY):
            self._emit(ToHost(message))

    def _lists_changed(self, process: RelayedProcess) -> None:
        """List the surface again, because the process has changed it itself."""
        if process.preparation is not None:
            process.is_stale = True
        elif self.surface is not None:
            self._prepare(process, replays=False)

    def _acknowledged(self, process: RelayedProcess, incoming: Incoming) -> None:
        params = members(incoming.params)
        meta = params.get("_meta")
        id = meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None
        exchange = self._exchanges.get(id) if isinstance(id, int | str) else None
        if exchange is not None and exchange.owner == process.generation and not exchange.acknowledged:
            found = params.get("notifications")
            self._acknowledge(exchange, found if isinstance(found, dict) else {})

    def _acknowledge(self, exchange: Exchange, found: JSONObject) -> None:
        requested = members(exchange.params).get("notifications")
        exchange.acknowledged = True
        granted = announcements.granted(requested if isinstance(requested, dict) else {}, found)
        self._emit(ToHost(acknowledgement(exchange, granted)))

    # --- output ----------------------------------------------------------------------------------------------------

    def _reply(self, exchange: Exchange, message: bytes) -> None:
        """Answer a request of the host: at once, or with the rest of its batch."""
        self._exchanges.pop(exchange.id, None)
        if exchange.method in _CALLS:
            self._emit(CallEnded(exchange.id, outcome(message), message))
        if exchange.batch is None:
            self._emit(ToHost(message))
        else:
            exchange.batch.answers.append(message)
            self._complete(exchange.batch)

    def _drop(self, exchange: Exchange) -> None:
        """Forget a request that the host has cancelled."""
        del self._exchanges[exchange.id]
        self._waiting = [each for each in self._waiting if each is not exchange]

    def _leave_batch(self, exchange: Exchange) -> None:
        batch, exchange.batch = exchange.batch, None
        if batch is not None:
            self._complete(batch)

    def _complete(self, batch: HostBatch) -> None:
        batch.missing -= 1
        if not batch.missing and batch.answers:
            self._emit(ToHost(b"[" + b",".join(batch.answers) + b"]"))

    def _send(self, process: RelayedProcess, message: bytes) -> None:
        self._emit(ToProcess(process.generation, message))

    def _send_addressed(self, addressed: Addressed | None) -> None:
        if addressed is not None and addressed[0] in self._processes:
            self._emit(ToProcess(*addressed))

    def _send_all(self, process: RelayedProcess, messages: Iterable[bytes]) -> None:
        for message in messages:
            self._send(process, message)

    def _send_ignored(self, process: RelayedProcess, method: str, params: object) -> None:
        id = self._new_id()
        process.ignored.add(id)
        self._send(process, request(id, method, params))

    def _new_id(self) -> RequestId:
        return f"{self._prefix}-{next(self._ids)}"

    def _emit(self, action: Action) -> None:
        self._actions.append(action)

    def _take(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions
