"""What a server asks its client: of the person, of the model, and where it may work (client features).

Through 2025-11-25 these are requests of the server, taken by `handle`; from 2026-07-28 on they stand in a result,
and `rounds` takes them. Both read all that is asked before anybody is bothered (`read`), then let the handlers
answer (`IncomingQuestion.answer`). What is given decides what is declared: `capabilities`.

A model's answers (client, Sampling): from what a handler gives to a `CreateMessageResult`.

A handler gives the whole result, or the text alone; `None` declines, as does raising `SamplingDeclined`. What it is
asked goes to it as it came: `includeContext` too, which it may leave be. Nothing of other servers is added here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import Raw

from accord.client.elicitation import ElicitationHandler, Mode, check_url
from accord.client.handlers import ClientContext, HandlerThreads, UserHandler
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
"""The model, where a handler gives a text and does not say whose."""


class SamplingHandler:
    """Answers `sampling/createMessage` with a user's function. `tools`: it hands tools to the model."""

    method: ClassVar[str] = "sampling/createMessage"

    def __init__(self, function: Callable[..., Any], *, tools: bool, threads: HandlerThreads) -> None:
        self._handler = UserHandler("sampling", function, 2, threads)
        self._tools = tools

    @property
    def capability(self) -> SamplingCapability:
        """What is declared."""
        return SamplingCapability(tools={} if self._tools else None)

    def read(self, raw: Any, rules: Rules) -> CreateMessageParams:
        """The params of a question. Raises `InvalidParams`, and `NotSupported` for tools that are not offered."""
        params = codec.decode_params(CreateMessageParams, raw)
        if (params.tools or params.tool_choice is not None) and not (self._tools and rules.sampling_tools):
            # "The client MUST return an error if this field is provided but sampling.tools is not declared"
            raise NotSupported("this client has not declared sampling.tools, so its model cannot use tools")
        check_balanced(params.messages)
        return params

    async def answer(self, params: CreateMessageParams, context: ClientContext) -> CreateMessageResult:
        """What the model says. Raises what the handler raises, `SamplingDeclined`, `Mismatch` for what is no answer."""
        given = await self._handler(params, context)
        if given is None:
            raise SamplingDeclined
        if isinstance(given, str):
            given = CreateMessageResult(role="assistant", content=TextContent(text=given), model=_UNKNOWN_MODEL)
        if not isinstance(given, CreateMessageResult):
            raise Mismatch(f"a sampling handler must return a CreateMessageResult or a str, not {type(given).__name__}")
        return fit_blocks(given, RULES[context.revision])


log: logging.Logger = logging.getLogger("accord.client")

_OPTION_OF_METHOD = {
    ElicitationHandler.method: "elicitation",
    SamplingHandler.method: "sampling",
    RootsHandler.method: "roots",
}
"""By what is asked: what a client is given to answer it."""


class InputHandler(Protocol):
    """Answers one kind of question."""

    method: ClassVar[str]

    def read(self, raw: Any, rules: Rules) -> Any:
        """The params of a question, checked. Raises `InvalidParams`, `NotSupported`."""

    async def answer(self, params: Any, context: ClientContext) -> Any:
        """The answer. Raises what the handler raises."""


class IncomingQuestion(msgspec.Struct, frozen=True):
    """A question that was read, and who answers it."""

    params: Any
    handler: InputHandler
    rules: Rules
    timeout: float
    """Time for the answer."""

    async def answer(self, context: ClientContext) -> Raw:
        """The answer as this revision has it. Raises what the handler raises, `RequestTimeout` when it takes too long,
        `msgspec.ValidationError` for what the revision cannot say.
        """
        limit = asyncio.timeout(self.timeout)
        try:
            async with limit:
                given = await self.handler.answer(self.params, context)
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise RequestTimeout(f"nobody answered {self.handler.method} in {self.timeout:g} s") from exc
        # What a handler made is not validated yet, and an older revision may not have it.
        type_: Any = INPUT_RESPONSES[self.handler.method]
        whole = codec.decoder(type_).decode(codec.encode(given))
        return codec.raw(codec.narrow(whole, self.rules.revision))


class InputHandlers:
    """The handlers of one client. `server` is what it was pointed at, as the person knows it."""

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
        given = (self.elicitation, self.sampling, self.roots)
        self._handlers: dict[str, InputHandler] = {each.method: each for each in given if each is not None}

    @property
    def capabilities(self) -> ClientCapabilities:
        """What the client declares."""
        return ClientCapabilities(
            elicitation=self.elicitation.capability if self.elicitation else None,
            sampling=self.sampling.capability if self.sampling else None,
            roots=self.roots.capability if self.roots else None,
        )

    def set_roots(self, places: RootsLike) -> None:
        """Take other folders. Raises `NotSupported` where none were declared, `LocalProtocolError` for no folder."""
        if self.roots is None:
            raise NotSupported("this client has not declared roots; create it with Client(..., roots=[...])")
        self.roots.set(places)

    def expect_pages(self, error: UrlElicitationRequired) -> None:
        """The server has named pages in an error; it may tell when the person is done with them. A page that no person
        may be sent to is left out.
        """
        named, error.elicitations, why = error.elicitations, [], None
        for page in named:
            try:
                check_url(page.get("url"))
            except InvalidParams as exc:
                why = why or exc
            else:
                error.elicitations.append(page)
        if why is not None:
            log.warning("accord: %s: pages to visit are left out, the first because: %s", self._server, log_line(why))
        if self.elicitation is not None:
            for page in error.elicitations:
                self.elicitation.expect_page(page.get("elicitationId"))

    def on_elicitation_complete(self, told: ElicitationCompleteParams) -> Any:
        """The person is done with a page: what the callback for that gives."""
        return self.elicitation.complete_page(told) if self.elicitation is not None else None

    def read(self, method: str, params: Any, rules: Rules) -> IncomingQuestion:
        """A question, checked. Raises `NotSupported` for what nobody here answers, `InvalidParams`."""
        answers = self._handlers.get(method)
        if answers is None:
            option = _OPTION_OF_METHOD.get(method)
            raise NotSupported(
                f"{self._server} asks for {method}, which this client does not answer"
                + (f"; make it with Client(..., {option}=...)" if option else "")
            )
        return IncomingQuestion(answers.read(params, rules), answers, rules, self._limits.answer_seconds)

    def context(self, session: Session, method: str | None = None) -> ClientContext:
        """What the handlers may know; `method` is the request of ours that the answer is for."""
        info = session.peer_info.info if session.peer_info is not None else None
        return ClientContext(server=self._server, server_info=info, revision=session.rules.revision, method=method)

    async def handle(self, exchange: PendingRequest, connection: Connection) -> Raw:
        """Answer a request of the server. Raises `ProtocolError`, or CancelledError when it was cancelled."""
        method = exchange.method.name
        if method not in self._handlers:
            raise MethodNotFound(f"this client does not answer {method}")
        try:
            question = self.read(method, exchange.params, exchange.rules)
        except NotSupported as exc:  # "a mode not declared in client capabilities: -32602 (Invalid params)"
            raise InvalidParams(str(exc)) from exc
        with connection.pause_timers():
            return await self._answer(question, self.context(connection.session))

    async def _answer(self, question: IncomingQuestion, context: ClientContext) -> Raw:
        try:
            return await question.answer(context)
        except ProtocolError:
            raise
        except Exception as exc:  # a handler may raise anything: that ends its question and nothing else
            method = question.handler.method
            log.warning("accord: %s: %s could not be answered: %s", self._server, method, log_line(describe(exc)))
            log.debug("accord: %s was not answered here", method, exc_info=exc)
            raise InternalError(f"{method} failed: {describe_redacted(exc)}") from exc
