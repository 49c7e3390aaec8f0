"""Requests of a server to its client: elicitation, sampling and roots (client features).

Through 2025-11-25 they are requests of the server, served by `handle`; from 2026-07-28 on they are part of a result,
and `multi_round_trip` serves them. Both validate all requests (`read`) before they call any handler
(`IncomingQuestion.answer`). The handlers decide the declared `capabilities`.

Sampling (client, Sampling): a handler returns a `CreateMessageResult`, or only its text; `None` declines, as does
raising `SamplingDeclined`. It receives the params unchanged, with `includeContext`, which it may ignore: this module
adds no context of other servers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import Raw

from accord.client.elicitation import ElicitationHandler, Mode, check_url
from accord.client.handlers import ClientContext, HandlerThreads, UserHandler
from accord.client.input_tasks import InputTasks, tasks_capability
from accord.client.roots import RootsHandler, RootsLike
from accord.errors import (
    DeclarationError,
    InternalError,
    InvalidParams,
    MethodNotFound,
    Mismatch,
    NotSupported,
    ProtocolError,
    RequestTimeout,
    SamplingDeclined,
    UrlElicitationRequired,
    describe,
    log_line,
)
from accord.limits import Limits
from accord.messages import codec
from accord.messages.capabilities import ClientCapabilities, SamplingCapability
from accord.messages.content import TextContent
from accord.messages.elicitation import ElicitationCompleteParams
from accord.messages.input_required import INPUT_RESPONSES
from accord.messages.revision import RULES, Rules
from accord.messages.sampling import CreateMessageParams, CreateMessageResult, check_balanced, fit_blocks
from accord.redaction import describe_redacted
from accord.session.pending_request import PendingRequest
from accord.session.session import Session
from accord.transport.connection import Connection

_UNKNOWN_MODEL = "unknown"
"""The model name when a handler returns only a text."""


class SamplingHandler:
    """A handler of `sampling/createMessage` that calls a user's function. `tools`: it passes tools to the model."""

    method: ClassVar[str] = "sampling/createMessage"

    def __init__(self, function: Callable[..., Any], *, tools: bool, threads: HandlerThreads) -> None:
        self._handler = UserHandler("sampling", function, 2, threads)
        self._tools = tools

    @property
    def capability(self) -> SamplingCapability:
        """Return the capability to declare."""
        return SamplingCapability(tools={} if self._tools else None)

    def read(self, raw: Any, rules: Rules) -> CreateMessageParams:
        """Return the validated params. Raises `InvalidParams`, and `NotSupported` for tools that are not declared."""
        params = codec.decode_params(CreateMessageParams, raw)
        if (params.tools or params.tool_choice is not None) and not (self._tools and rules.sampling_tools):
            # "The client MUST return an error if this field is provided but sampling.tools is not declared"
            raise NotSupported("this client has not declared sampling.tools, so its model cannot use tools")
        check_balanced(params.messages)
        return params

    async def answer(self, params: CreateMessageParams, context: ClientContext) -> CreateMessageResult | Raw:
        """Return the model's answer. Raises the handler's errors, `SamplingDeclined`, `Mismatch` for another value."""
        result = await self._handler(params, context)
        if isinstance(result, Raw):
            return result
        if result is None:
            raise SamplingDeclined
        if isinstance(result, str):
            result = CreateMessageResult(role="assistant", content=TextContent(text=result), model=_UNKNOWN_MODEL)
        if not isinstance(result, CreateMessageResult):
            raise Mismatch(
                f"a sampling handler must return a CreateMessageResult or a str, not {type(result).__name__}"
            )
        return fit_blocks(result, RULES[context.revision])


log: logging.Logger = logging.getLogger("accord.client")

_OPTION_OF_METHOD = {
    ElicitationHandler.method: "elicitation",
    SamplingHandler.method: "sampling",
    RootsHandler.method: "roots",
}
"""The `Client` option for each method."""


class InputHandler(Protocol):
    """A handler of one method."""

    method: ClassVar[str]

    def read(self, raw: Any, rules: Rules) -> Any:
        """Return the validated params of a request. Raises `InvalidParams`, `NotSupported`."""

    async def answer(self, params: Any, context: ClientContext) -> Any:
        """Return the answer. Raises the errors of the handler."""


class IncomingQuestion(msgspec.Struct, frozen=True):
    """A validated request and its handler."""

    params: Any
    handler: InputHandler
    rules: Rules
    timeout: float
    """The timeout of the answer in seconds."""
    raw: Raw | None = None
    """The params as the server sent them."""

    async def answer(self, context: ClientContext) -> Raw:
        """Return the encoded answer for this revision; a `Raw` of the handler is the answer itself, unchecked.

        Raises the errors of the handler, `RequestTimeout`, and `msgspec.ValidationError` for an answer that the
        revision does not support.
        """
        context = msgspec.structs.replace(context, params=self.raw)
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                answer = await self.handler.answer(self.params, context)
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise RequestTimeout(f"nobody answered {self.handler.method} in {self.timeout:g} s") from exc
        if isinstance(answer, Raw):
            return answer
        # A handler's result is not validated yet, and an older revision may not support it.
        type_: Any = INPUT_RESPONSES[self.handler.method]
        decoded = codec.decoder(type_).decode(codec.encode(answer))
        return codec.raw(codec.narrow(decoded, self.rules.revision))


class InputHandlers:
    """The handlers of one client. `server` is the server under the name of the target."""

    def __init__(
        self,
        server: str,
        limits: Limits,
        *,
        elicitation: Callable[..., Any] | None = None,
        elicitation_modes: Sequence[Mode] = ("form",),
        on_elicitation_complete: Callable[[str], Any] | None = None,
        sampling: Callable[..., Any] | None = None,
        sampling_tools: bool = False,
        roots: RootsLike | None = None,
    ) -> None:
        self._server = server
        self._limits = limits
        threads = HandlerThreads(limits.workers)
        self.elicitation: ElicitationHandler | None = None
        if elicitation is not None:
            self.elicitation = ElicitationHandler(
                elicitation, elicitation_modes, on_elicitation_complete, threads=threads, limits=limits
            )
        elif on_elicitation_complete is not None:
            raise DeclarationError("on_elicitation_complete needs an elicitation handler")
        self.sampling: SamplingHandler | None = None
        if sampling is not None:
            self.sampling = SamplingHandler(sampling, tools=sampling_tools, threads=threads)
        self.roots: RootsHandler | None = RootsHandler(roots, threads=threads) if roots is not None else None
        handlers = (self.elicitation, self.sampling, self.roots)
        self._handlers: dict[str, InputHandler] = {
            handler.method: handler for handler in handlers if handler is not None
        }
        self._tasks: InputTasks | None = None
        """The tasks of the last connection."""

    @property
    def capabilities(self) -> ClientCapabilities:
        """Return the capabilities to declare."""
        return ClientCapabilities(
            elicitation=self.elicitation.capability if self.elicitation else None,
            sampling=self.sampling.capability if self.sampling else None,
            roots=self.roots.capability if self.roots else None,
            tasks=tasks_capability(elicitation=self.elicitation is not None, sampling=self.sampling is not None),
        )

    def set_roots(self, places: RootsLike) -> None:
        """Replace the roots. Raises `NotSupported` if not declared, `LocalProtocolError` for an invalid root."""
        if self.roots is None:
            raise NotSupported("this client has not declared roots; create it with Client(..., roots=[...])")
        self.roots.set(places)

    def expect_pages(self, error: UrlElicitationRequired) -> None:
        """Expect the completion of the URL elicitations in an error, and drop URLs that a user must not be sent to."""
        pages, error.elicitations, problem = error.elicitations, [], None
        for page in pages:
            try:
                check_url(page.get("url"))
            except InvalidParams as exc:
                problem = problem or exc
            else:
                error.elicitations.append(page)
        if problem is not None:
            log.warning(
                "accord: %s: pages to visit are left out, the first because: %s", self._server, log_line(problem)
            )
        if self.elicitation is not None:
            for page in error.elicitations:
                self.elicitation.expect_page(page.get("elicitationId"))

    def on_elicitation_complete(self, params: ElicitationCompleteParams) -> Any:
        """Return the result of the callback for a completed URL elicitation."""
        return self.elicitation.complete_page(params) if self.elicitation is not None else None

    def read(self, method: str, params: Any, rules: Rules) -> IncomingQuestion:
        """Return a validated request. Raises `NotSupported` without a handler, `InvalidParams`."""
        handler = self._handlers.get(method)
        if handler is None:
            option = _OPTION_OF_METHOD.get(method)
            raise NotSupported(
                f"{self._server} asks for {method}, which this client does not answer"
                + (f"; make it with Client(..., {option}=...)" if option else "")
            )
        raw = params if isinstance(params, Raw) else None
        return IncomingQuestion(handler.read(params, rules), handler, rules, self._limits.answer_seconds, raw)

    def context(self, session: Session, method: str | None = None) -> ClientContext:
        """Return the context of the handlers; `method` is the client's request that the answer is for."""
        info = session.peer_info.info if session.peer_info is not None else None
        return ClientContext(server=self._server, server_info=info, revision=session.rules.revision, method=method)

    async def handle(self, request: PendingRequest, connection: Connection) -> Any:
        """Answer a request of the server. Raises `ProtocolError`, or CancelledError when it was cancelled."""
        method = request.method.name
        tasks = self._tasks_of(connection) if request.rules.requested_tasks else None
        if tasks is not None and (about_tasks := tasks.methods.get(method)) is not None:
            return await about_tasks(request)
        if method not in self._handlers:
            raise MethodNotFound(f"this client does not answer {method}")
        try:
            question = self.read(method, request.params, request.rules)
        except NotSupported as exc:  # "a mode not declared in client capabilities: -32602 (Invalid params)"
            raise InvalidParams(str(exc)) from exc
        answer = partial(self._answer, question, self.context(connection.session))
        task = getattr(question.params, "task", None)
        if task is not None and tasks is not None:
            return tasks.create(task, answer)
        with connection.pause_timers():
            return await answer()

    def _tasks_of(self, connection: Connection) -> InputTasks:
        if self._tasks is None or self._tasks.connection is not connection:
            self._tasks = InputTasks(connection, self._limits)
        return self._tasks

    async def _answer(self, question: IncomingQuestion, context: ClientContext) -> Raw:
        try:
            return await question.answer(context)
        except ProtocolError:
            raise
        except Exception as exc:  # a handler may raise anything; only its own request fails
            method = question.handler.method
            log.warning("accord: %s: %s could not be answered: %s", self._server, method, log_line(describe(exc)))
            log.debug("accord: %s was not answered here", method, exc_info=exc)
            raise InternalError(f"{method} failed: {describe_redacted(exc)}") from exc
