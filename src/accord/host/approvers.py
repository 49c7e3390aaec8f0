"""Approvers answer prompts: a callback, a queue that a web page can serve, or the client that makes a call; that of the
terminal is `accord.cli.approver`. No answer means no.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from accord.client.handlers import HandlerThreads, UserHandler
from accord.errors import AccordError, DeclarationError
from accord.host.consent import NotApproved
from accord.host.grants import check_pattern
from accord.host.prompts import Prompt
from accord.messages.sampling import CreateMessageParams, CreateMessageResult
from accord.server.core.context import Context

log: logging.Logger = logging.getLogger("accord.host")

_MAX_THREADS = 8
"""One that asks; others have returned and end."""


class GrantRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A grant that the user gives together with an approval, so that further calls are not asked about.

    Raises `DeclarationError` for an invalid pattern, and `ValueError` for a time that is none.
    """

    tool: str
    """The tool's name, or a pattern in which `*` stands for any text."""
    conversation: bool = False
    """Whether it ends with this conversation."""
    seconds: float | None = None
    """How long it is valid; None without an end."""
    same_arguments: bool = False
    """Whether it is only for calls with the arguments of this one."""

    def __post_init__(self) -> None:
        check_pattern(self.tool)
        if self.seconds is not None and not math.isfinite(self.seconds):  # JSON, in which it is stored, has neither
            raise ValueError(f"seconds={self.seconds} is not a time; None means without an end")


class PromptAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a prompt."""

    approved: bool
    by: str = ""
    """Who answered, for the audit log."""
    reason: str = ""
    """Why not."""
    grant: GrantRequest | None = None
    request: CreateMessageParams | None = None
    """For a sampling request: what to send instead."""
    result: CreateMessageResult | None = None
    """For the answer of a model: what to send instead."""


NO_ANSWER = PromptAnswer(approved=False, reason="nobody answered in time")

Approve: TypeAlias = Callable[[Prompt], Any]
"""A function, sync or async, that returns whether a prompt is approved: a bool, or a `PromptAnswer`."""


@runtime_checkable
class Approver(Protocol):
    """Answers prompts, one at a time or several at once."""

    is_waited_for: bool
    """Whether the host waits for its answers while it starts."""

    async def ask(self, prompt: Prompt, seconds: float) -> PromptAnswer:
        """Return the answer, `NO_ANSWER` after `seconds`."""


class CallbackApprover:
    """Asks a function. A plain one runs in a thread, because it may wait for a person, and is asked one thing at a
    time: of two questions in a terminal, each could take the other's answer.
    """

    is_waited_for = True

    def __init__(self, function: Approve) -> None:
        if not callable(function) or isinstance(function, type):
            raise DeclarationError(
                f"approve={function!r:.200} is neither a function nor an approver; "
                "TerminalApprover() asks at the terminal, ApprovalQueue() lets a page of the program ask"
            )
        self._name = _name(function)
        self._function = UserHandler("approve", function, 1, HandlerThreads(_MAX_THREADS))
        self._turn = asyncio.Lock()

    async def ask(self, prompt: Prompt, seconds: float) -> PromptAnswer:
        """See `Approver.ask`."""
        try:
            async with asyncio.timeout(seconds):
                answer = await (self._function(prompt) if self._function.is_async else self._in_turn(prompt))
        except TimeoutError:
            return NO_ANSWER
        return _prompt_answer(answer, self._name)

    async def _in_turn(self, prompt: Prompt) -> Any:
        """Ask a plain function. It has its turn until it returns, also if nobody waits for its answer any more."""
        await self._turn.acquire()
        asking = asyncio.get_running_loop().create_task(self._function(prompt))
        asking.add_done_callback(self._on_answered)
        return await asyncio.shield(asking)

    def _on_answered(self, asking: asyncio.Task[Any]) -> None:
        self._turn.release()
        if not asking.cancelled():
            asking.exception()  # nobody may wait for it any more


class DenyAll:
    """Denies everything: a host without an approver."""

    is_waited_for = True

    async def ask(self, prompt: Prompt, seconds: float) -> PromptAnswer:
        """See `Approver.ask`."""
        return PromptAnswer(approved=False, reason="the host has no approver: create it with Host(..., approve=...)")


class QueuedPrompt(msgspec.Struct, frozen=True):
    """A prompt that waits for an answer under its id, which cannot be guessed."""

    id: str
    prompt: Prompt


class ApprovalQueue:
    """Prompts that wait for `answer`, which any part of the program may call: a web page, a chat window.

    `on_change` is called when a prompt arrives or is answered.
    """

    is_waited_for = False

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._waiting: dict[str, tuple[QueuedPrompt, asyncio.Future[PromptAnswer]]] = {}
        self._on_change = on_change

    @property
    def waiting(self) -> list[QueuedPrompt]:
        """Return the prompts that wait, the oldest first."""
        return [prompt for prompt, _ in self._waiting.values()]

    def answer(self, id: str, answer: PromptAnswer | bool) -> None:
        """Answer the prompt of an id; only True and a `PromptAnswer` that says so approve it.

        Raises `NotApproved` if no prompt of that id waits.
        """
        found = self._waiting.pop(id, None)
        if found is None or found[1].done():
            raise NotApproved("no prompt of this id waits for an answer: it was answered, or its time is over")
        found[1].set_result(_prompt_answer(answer, "queue"))
        self._on_change()

    async def ask(self, prompt: Prompt, seconds: float) -> PromptAnswer:
        """See `Approver.ask`."""
        id = secrets.token_urlsafe(24)
        future: asyncio.Future[PromptAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[id] = QueuedPrompt(id, prompt), future
        try:
            self._on_change()
            return await asyncio.wait_for(future, seconds)
        except TimeoutError:
            return NO_ANSWER
        finally:
            if self._waiting.pop(id, None) is not None:
                self._on_change()


class ClientApproval(msgspec.Struct, frozen=True):
    """The form in which a client approves a call."""

    approve: bool


class ClientApprover:
    """Asks the client that calls a tool of a server, which calls a tool of a host in turn:
    `host.call_tool(name, arguments, approve=ClientApprover(ctx))`.

    The client sends the call and the approval, so it counts only if the configuration says `"approve": "client"`.
    """

    is_waited_for = False

    def __init__(self, context: Context) -> None:
        self._context = context

    async def ask(self, prompt: Prompt, seconds: float) -> PromptAnswer:
        """See `Approver.ask`."""
        try:
            async with asyncio.timeout(seconds):
                answer = await self._context.elicit(prompt.text(), ClientApproval)
        except TimeoutError:
            return NO_ANSWER
        except AccordError as exc:  # a client without elicitation, or one that is gone
            return PromptAnswer(approved=False, reason=f"the client could not be asked: {exc}")
        return PromptAnswer(approved=answer.action == "accept" and answer.data.approve)


def make_approver(approve: Approver | Approve | None) -> Approver:
    """Return the approver for the `approve` option of a host. Raises `DeclarationError`."""
    if approve is None:
        return DenyAll()
    is_approver = isinstance(approve, Approver) and not isinstance(approve, type)
    return approve if is_approver else CallbackApprover(approve)  # type: ignore[return-value, arg-type]


def _prompt_answer(answer: Any, by: str) -> PromptAnswer:
    """Return what was answered; whatever is neither True nor a `PromptAnswer` means no."""
    if isinstance(answer, PromptAnswer):
        return answer
    if not isinstance(answer, bool):
        log.warning("accord: %s answered a prompt with %.100r, which means no: return True or False", by, answer)
    return PromptAnswer(approved=answer is True, by=by)


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))
