"""One logical call: the state that its handler, its context and its questions share through all of its requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from msgspec import Raw

from accord.errors import NotSupported
from accord.messages.revision import NO_SESSIONS
from accord.server.core.peer import Peer
from accord.server.declare.parameters import calling_place
from accord.server.input.base import InputRequester
from accord.server.input.parameters import InputParameter
from accord.server.input.question import InputQuestion
from accord.server.input.questions import Elicit, ElicitUrl, Messages, Roots, Sample, Sampled
from accord.server.input.roots import RootList
from accord.session.pending_request import PendingRequest
from accord.transport.deadlines import with_deadline

if TYPE_CHECKING:
    from accord.server.notify.logs import ClientLog

log: logging.Logger = logging.getLogger("accord.server")

T = TypeVar("T")


class CallTask(Protocol):
    """The task that a call is or may become, as its context uses it; see `RunningTask`."""

    @property
    def is_task(self) -> bool:
        """Whether the call is a task, so that its request has been answered."""
        ...

    def set_status(self, message: str) -> None:
        """Set the status message. Callable from any thread."""

    async def try_create(self) -> bool:
        """Make the call a task if possible, and return whether it is one."""
        ...


class HandlerCall:
    """A running call. "A resumed run belongs to the retry": then `pending` and `peer` are those of the retry."""

    __slots__ = (
        "_limits",
        "_logs",
        "_open_requests",
        "_request_limits",
        "_roots",
        "_state",
        "_warned",
        "declared_answers",
        "input",
        "is_personal",
        "peer",
        "pending",
        "reads",
        "requested_input",
        "resolved_input",
        "task",
    )

    def __init__(self, pending: PendingRequest, peer: Peer) -> None:
        self.pending: PendingRequest = pending
        self.peer: Peer = peer
        self.input: InputRequester
        self.resolved_input: dict[str, Any] | None = None
        """Input that was requested before the handler started."""
        self.declared_answers: Mapping[str, tuple[bytes, bytes]] | None = None
        """The answers behind `resolved_input`: the digest of each question, and JSON."""
        self.task: CallTask | None = None
        """The task that the call is or may become; None for a tool without `task=`."""
        self.requested_input: bool = False
        """Whether input was requested; the result then depends on the answers."""
        self.is_personal: bool = False
        """Whether the call has used something that not every client may see: its result is then for this client
        alone.
        """
        self.reads: dict[str, int] = {}
        """The attributes of its client that the call has read, with the number of reads: "principal", "headers",
        "client", "meta", "roots", "session", "state". The result may depend on them; see `Caching`.
        """
        self._limits: dict[asyncio.Timeout, float] = {}
        """The timeouts of its handlers (a tool, the resources that it reads), with the remaining seconds while they are
        paused.
        """
        self._request_limits: set[asyncio.Timeout] = set()
        """Those of `_limits` that end once the call is a task."""
        self._roots: RootList | None = None
        self._open_requests = 0
        self._logs: ClientLog | None = None
        self._state: dict[str, Any] | None = None
        self._warned = False

    @property
    def state(self) -> dict[str, Any]:
        """The values that belong to this call alone."""
        if self._state is None:
            self._state = {}
        elif self._state:  # a value in it may depend on the client
            self.record("state")
        return self._state

    @property
    def peek_state(self) -> dict[str, Any] | None:
        """The state, without recording a read; None if there is none yet."""
        return self._state

    def record(self, what: str) -> None:
        """Record that the call has read an attribute of its client: see `reads`."""
        self.reads[what] = self.reads.get(what, 0) + 1

    def set_visibility(self, shown: bool, names: Sequence[str], tags: Iterable[str], only: bool) -> None:
        """Show or hide registrations for the client's session. Raises `NotSupported`, `DeclarationError`."""
        self.record("session")
        rules = self.pending.rules
        if not rules.sessions:
            why = NO_SESSIONS if rules.handshake else f"{rules.revision} knows no sessions"
            raise NotSupported(f"ctx.disable() needs a session: {why}; use scopes={{...}}")
        self.peer.set_visibility(shown, names, tags, only)

    @property
    def logs(self) -> ClientLog:
        """The log of its client, or a log of its own if many clients share a peer."""
        if not self.peer.shared:
            return self.peer.logs
        if self._logs is None:
            self._logs = self.peer.new_logs()
        return self._logs

    @property
    def has_ended(self) -> bool:
        """Whether its result was sent: "Progress notifications MUST stop after completion" (basic, Progress)."""
        return self.pending.stage == "answered" and not self.input.outlives

    @property
    def logs_end(self) -> bool:
        """Whether log messages end with the call: they do if each request states its log level, and if they are sent in
        its response.
        """
        return not self.pending.rules.handshake or self.pending.sink is not None

    def warn_ended(self) -> None:
        """Log once that the handler sends a message after the call has ended."""
        if not self._warned:
            self._warned = True
            log.warning(
                "accord: %s: a message for a call that has ended (%s, request %r) is not sent: "
                "let the handler return when all of its work is done",
                calling_place(),
                self.pending.method.name,
                self.pending.id,
            )

    def rebind(self, retry: HandlerCall) -> None:
        """Continue with another request."""
        self.pending, self.peer = retry.pending, retry.peer

    async def request_input(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """Return the answers in order, while the timeouts of the handlers are paused. Raises what
        `InputRequester.request` raises.
        """
        self.requested_input = self.requested_input or bool(questions)
        self._pause_deadlines()
        asked_for = self.pending
        try:
            return await self.input.request(questions, keys)
        finally:
            self._resume_deadlines()
            if self.pending is not asked_for and self.pending.on_resume is not None:
                self.pending.on_resume()

    async def resolve_input(
        self, declared: Sequence[InputParameter], arguments: Any, prefix: str = ""
    ) -> dict[str, Any]:
        """Return the values of declared questions, asked before a handler starts, by parameter. Raises `ToolError` if
        the client declines.

        `prefix` separates the keys of a handler that another handler calls.
        """
        filled, self.resolved_input = self.resolved_input, None
        if filled is not None:
            return filled
        self.record("client")  # its capabilities
        values = arguments or {}
        if isinstance(arguments, Raw):
            values = msgspec.json.decode(arguments) if any(one.uses_arguments for one in declared) else {}
        questions = [one.question_for(values) for one in declared]
        available = [one.is_available(question, self.input) for one, question in zip(declared, questions, strict=True)]
        answers = iter(
            await self.request_input(
                list(compress(questions, available)), [prefix + one.name for one in compress(declared, available)]
            )
        )
        return {
            one.name: one.value(next(answers)) if was_asked else one.default
            for one, was_asked in zip(declared, available, strict=True)
        }

    async def elicit(self, message: str, type: Any) -> Any:
        """Request a form from the user."""
        (answer,) = await self.request_input((Elicit(message, type),))
        return answer

    async def elicit_url(self, message: str, url: str, elicitation_id: str | None) -> Any:
        """Request that the user visit a page."""
        (answer,) = await self.request_input((ElicitUrl(message, url, elicitation_id),))
        return answer

    async def sample(self, messages: Messages, **options: Any) -> Sampled:
        """Request a completion from the client's model."""
        (answer,) = await self.request_input((Sample(messages, **options),))
        return answer  # type: ignore[no-any-return]

    async def roots(self) -> RootList:
        """Return the client's roots, requested once per call, and once per connection if the client notifies of
        changes.
        """
        self.record("roots")
        if self._roots is None:
            self._roots = self.peer.roots
        if self._roots is None:
            changed = self.peer.roots_changed
            (self._roots,) = await self.request_input((Roots(),))
            self.peer.cache_roots(self.pending, self._roots, changed)
        return self._roots

    async def with_deadline(
        self, seconds: float, work: Awaitable[T], limit: str = "", *, until_task: bool = False
    ) -> T:
        """Await `work` for at most `seconds`, not counting the time that the client takes to answer; with `until_task`,
        without limit once the call is a task.

        Raises `OutOfTime`, which names the `limit`.
        """
        own: asyncio.Timeout | None = None

        def register(timeout: asyncio.Timeout) -> None:
            nonlocal own
            own = timeout
            self._limits[timeout] = 0.0
            if until_task:
                self._request_limits.add(timeout)
            if self._open_requests:
                self._pause_deadline(timeout)

        try:
            return await with_deadline(seconds, work, register, limit)
        finally:
            if own is not None:
                self._limits.pop(own, None)
                self._request_limits.discard(own)

    def end_request_deadlines(self) -> None:
        """End the deadlines that apply only until the call is a task."""
        for limit in self._request_limits:
            self._limits.pop(limit, None)
            if not limit.expired():
                limit.reschedule(None)

    def _pause_deadlines(self) -> None:
        self._open_requests += 1
        if self._open_requests == 1:
            for limit in self._limits:
                self._pause_deadline(limit)

    def _pause_deadline(self, limit: asyncio.Timeout) -> None:
        if not limit.expired():
            self._limits[limit] = (limit.when() or 0.0) - asyncio.get_running_loop().time()
            limit.reschedule(None)

    def _resume_deadlines(self) -> None:
        self._open_requests -= 1
        if not self._open_requests:
            for limit, left in self._limits.items():
                if not limit.expired():
                    limit.reschedule(asyncio.get_running_loop().time() + left)
