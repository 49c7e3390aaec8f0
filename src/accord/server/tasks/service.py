"""Tasks on one server: which calls become tasks, and what the server declares about them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Raw

from accord.errors import InvalidParams, MethodNotFound
from accord.limits import Limits
from accord.messages import codec
from accord.messages.capabilities import (
    TOOL_TASKS,
    ClientCapabilities,
    ServerTaskRequests,
    ServerTasksCapability,
    ToolTasks,
    declares,
)
from accord.messages.methods import table
from accord.messages.revision import RULES
from accord.messages.task_extension import TASKS
from accord.messages.tasks import CreateTaskResult, TaskMetadata, to_seconds
from accord.server.core.dispatch import Dispatcher, RawToolCall, read_tool_call
from accord.server.core.peer import Peer
from accord.server.core.per_loop import PerLoop
from accord.server.core.principal import Principal
from accord.server.core.results import ResultEncoder
from accord.server.input.attempt import Attempt
from accord.server.input.call import HandlerCall
from accord.server.tasks.methods import TaskMethods
from accord.server.tasks.options import Task
from accord.server.tasks.runner import TaskRunner, TaskServer
from accord.server.tasks.running_task import Work
from accord.server.tasks.wire import core_task, created_task
from accord.session import peek
from accord.session.peer_info import PeerInfo, missing_capability
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.session.states import Phase
from accord.store.tasks import AskedQuestion, MemoryTasks, TaskRecord, Tasks
from accord.transport.base import NullSink
from accord.transport.session_driver import SessionDriver

if TYPE_CHECKING:
    from accord.server.core.extension_methods import ExtensionMethods
    from accord.server.core.registration import Registration
    from accord.server.input.multi_round_trip import MultiRoundTrip


class TaskServiceServer(TaskServer, Protocol):
    """A server as its tasks use it."""

    revisions: tuple[str, ...]
    extension_methods: ExtensionMethods

    @property
    def round_trips(self) -> MultiRoundTrip:
        """The calls that wait for input from the client."""

    def profile(self) -> PeerInfo:
        """Return the server info."""


class TaskService:
    """The tasks of one server, in a store."""

    def __init__(self, server: TaskServiceServer, store: Tasks | None) -> None:
        self._server = server
        self._store: Tasks = MemoryTasks(server.limits) if store is None else store
        self._runners: PerLoop[TaskRunner] = PerLoop()
        server.extension_methods.declare(TASKS)

    def capability(self, *, lists: bool) -> ServerTasksCapability:
        """Return the capability of 2025-11-25: "receivers that cannot identify requestors SHOULD NOT declare the
        `tasks.list` capability".
        """
        return ServerTasksCapability(
            list={} if lists else None, cancel={}, requests=ServerTaskRequests(tools=ToolTasks(call={}))
        )

    def runner(self, limits: Limits) -> TaskRunner:
        """Return the runner on the running loop, for the current lifetime of the server."""
        runner = self._runners.get(asyncio.get_running_loop())
        if runner is None or runner.closed:
            runner = self._runners.add(TaskRunner(self._server, self._store, limits))
        return runner

    def methods(self, dispatcher: Dispatcher, encoder: ResultEncoder, limits: Limits) -> TaskMethods:
        """Return the handlers of the methods about tasks, and run again what a process that has ended has left."""
        runner = self.runner(limits)
        runner.start(lambda record: self._recover(record, dispatcher, limits))
        return TaskMethods(runner, encoder, limits)

    def check_request(self, tool: str, registration: Registration, pending: PendingRequest, peer: Peer) -> None:
        """See `TaskCalls.check_request`: "Servers SHOULD return a `-32601` (Method not found) error"."""
        if registration.task is None and _requests_task(pending, peer):
            raise MethodNotFound(f"the tool {tool!r} does not run as a task: call it without `task`")

    # --- calls -------------------------------------------------------------------------------------------------

    async def run(
        self,
        sent: RawToolCall,
        attempt: Attempt,
        pending: PendingRequest,
        peer: Peer,
        encoder: ResultEncoder,
        work: Work,
    ) -> Any:
        """Return the result of a tool with `task=`, or the task that its call becomes. Raises `MissingClientCapability`
        or `MethodNotFound` where it must become one and cannot.
        """
        rules, options = pending.rules, attempt.registration.task
        assert options is not None
        round_trips, encode = self._server.round_trips, encoder.encode_input_required
        if rules.extension_tasks and declares(peer.capabilities(pending), TASKS.capability):
            attempt.becomes_task = True

            async def run_as_task(call: HandlerCall) -> Any:
                return await self._run_as_task(sent, options, call, encoder, work, None)

            return await round_trips.run(attempt, pending, peer, encode, run_as_task)
        if sent.task and _requests_task(pending, peer):
            call = HandlerCall(pending, peer)
            return await self._run_as_task(sent, options, call, encoder, work, _requested_ttl(sent.task))
        if options.required:
            if rules.extension_tasks:
                raise missing_capability(TASKS.capability, f"the tool {sent.name!r}")
            raise MethodNotFound(f"the tool {sent.name!r} runs only as a task, which this request does not ask for")
        return await round_trips.run(attempt, pending, peer, encode, work)

    async def _run_as_task(
        self,
        sent: RawToolCall,
        options: Task,
        call: HandlerCall,
        encoder: ResultEncoder,
        work: Work,
        requested_ttl: float | None,
    ) -> Any:
        rules, limits = call.pending.rules, self._server.limits
        record = _new_record(
            sent, options, call, min(options.ttl, limits.tasks.ttl_seconds, requested_ttl or options.ttl)
        )
        outcome = await self.runner(limits).run(call, record, options, work)
        if outcome is not record:
            return outcome
        if rules.requested_tasks:
            return CreateTaskResult(task=core_task(record))
        return encoder.encode_fields(msgspec.to_builtins(created_task(record)), rules)

    # --- tasks of processes that have ended --------------------------------------------------------------------

    def _recover(self, record: TaskRecord, dispatcher: Dispatcher, limits: Limits) -> tuple[HandlerCall, Work] | None:
        """Return what runs the handler of a task again; None if that is not safe, or if there is no such tool now."""
        registration = self._server.registry.tools.get(record.tool)
        if registration is None or registration.task is None:
            return None
        if not (registration.may_run_again or registration.task.restart):
            return None
        rules, principal = (
            RULES[record.revision],
            Principal(record.owner, frozenset(record.scopes)) if record.owner else None,
        )
        capabilities = msgspec.json.decode(record.capabilities, type=ClientCapabilities)
        params = Raw(record.params)
        pending = PendingRequest(
            record.id,
            table(record.revision, "client")["tools/call"],
            rules,
            params,
            peek.request_meta(params, peek.LastMeta()),
            None if rules.handshake else capabilities,
            principal=principal,
        )
        session = Session("server", self._server.profile(), revisions=self._server.revisions, limits=limits)
        session.rules, session.phase, session.peer_info = rules, Phase.OPEN, PeerInfo(None, capabilities)
        peer = Peer(SessionDriver(session, NullSink(), _no_requests, limits=limits), record.owner)
        peer.account, peer.identity, peer.local = record.account, principal, not record.account
        return HandlerCall(pending, peer), dispatcher.tool_work(read_tool_call(params), registration)


def _requests_task(pending: PendingRequest, peer: Peer) -> bool:
    """Return whether `task` in the params of a call has a meaning: otherwise it is ignored."""
    return pending.rules.requested_tasks and peer.channel.session.local_info.declares(TOOL_TASKS)


async def _no_requests(pending: PendingRequest, _: object) -> Any:
    raise MethodNotFound("this session has no client")


def _requested_ttl(task: Raw) -> float | None:
    """Return the ttl that a client of 2025-11-25 requests, in seconds. Raises `InvalidParams`."""
    ttl = codec.decode_params(TaskMetadata, task).ttl
    if ttl is not None and ttl <= 0:
        raise InvalidParams(f"task.ttl is {ttl} ms: it must be more than 0")
    return None if ttl is None else to_seconds(ttl)


def _new_record(sent: RawToolCall, options: Task, call: HandlerCall, ttl: float) -> TaskRecord:
    pending, peer = call.pending, call.peer
    answers: Mapping[str, tuple[bytes, bytes]] = call.declared_answers or {}
    principal: Principal | None = pending.principal
    return TaskRecord(
        id=secrets.token_urlsafe(32).replace("-", "_"),  # commands would take one that begins with `-` for an option
        owner=peer.principal,
        account=peer.account,
        revision=pending.rules.revision,
        tool=sent.name,
        params=codec.encode({"name": sent.name, "arguments": sent.arguments, "_meta": sent.meta or Raw(b"{}")}),
        capabilities=codec.encode(peer.capabilities(pending)),
        created_at=0,
        updated_at=0,
        ttl=ttl,
        poll=options.poll,
        asked=[AskedQuestion(key, *answer) for key, answer in answers.items()],
        scopes=[] if principal is None else sorted(principal.scopes),
    )
