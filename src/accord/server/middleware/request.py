"""`Request`: a request as middleware sees it, and the types of middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from accord.messages import codec
from accord.messages.meta import Params
from accord.session.pending_request import headers_of

if TYPE_CHECKING:
    from accord.messages.identity import Implementation
    from accord.messages.tools import Tool
    from accord.server.core.context import Context, RunningServer
    from accord.server.core.lifetime import Lifetime
    from accord.server.core.peer import Peer
    from accord.server.core.principal import Principal
    from accord.server.core.registration import Registration
    from accord.server.input.call import HandlerCall
    from accord.session.pending_request import PendingRequest

T = TypeVar("T")

Handler = Callable[["Request"], Awaitable[Any]]
RunMiddleware = Callable[[Handler, str, "Registration | None", Any, "PendingRequest", "Peer"], Awaitable[Any]]
"""Runs a handler through middleware, with the parts of the request. See `Invoker.run_middleware`."""


class RequestInvoker(Protocol):
    """The invoker of a server, as a request uses it."""

    server: RunningServer

    def context(self, offer: Registration | None, call: HandlerCall) -> Context:
        """Return the context of a call for a registered function."""

    def invoke_registration(
        self, offer: Registration, arguments: Any, call: HandlerCall | None, prefix: str = ""
    ) -> Awaitable[Any]:
        """Call a registered function without its middleware."""

    def decode_result(self, request: Request, value: Any) -> Any:
        """Return the value of a handler as the result to send."""

    def with_deadline(self, seconds: float, work: Awaitable[T], call: HandlerCall | None) -> Awaitable[T]:
        """Await `work` for at most `seconds`. Raises `OutOfTime`."""


class Request:
    """A client's request on its way to the handler. It is valid for one call."""

    __slots__ = (
        "_arguments",
        "_call",
        "_handler",
        "_inner",
        "_invoker",
        "_peer",
        "_pending",
        "_raw",
        "_reads",
        "_registration",
        "_state",
        "asked_for",
        "name",
    )

    def __init__(
        self,
        end: Handler | None,
        invoker: RequestInvoker,
        pending: PendingRequest,
        peer: Peer,
        name: str,
        offer: Registration | None,
        arguments: Any,
        call: HandlerCall | None,
    ) -> None:
        self.name: str = name
        """The tool or the prompt, or the URI of the resource, by its name in the server that this middleware belongs
        to; empty for a list.
        """
        self.asked_for: str = name
        """The name that the client used: a different one if the server is mounted."""
        self._handler = end
        self._invoker = invoker
        self._pending = pending
        self._peer = peer
        self._registration = offer
        self._inner: Registration | None = None
        self._raw = arguments
        self._arguments: dict[str, Any] | None = None
        self._call = call
        self._reads: dict[str, int] = {} if call is None else call.reads
        self._state: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.name}>"

    @property
    def method(self) -> str:
        """The method of the request: "tools/call"."""
        return self._pending.method.name

    @property
    def lists(self) -> bool:
        """Whether the method is a list: then the result is a list of definitions."""
        return self.method.endswith("/list")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the client, decoded; changes to them have no effect, see `replace`."""
        if self._arguments is None:
            raw = self._raw
            self._arguments = msgspec.json.decode(raw) if isinstance(raw, Raw) else dict(raw or {})
        return self._arguments or {}

    def replace(self, *, arguments: dict[str, Any]) -> Request:
        """Return the request with other arguments; they are validated like those of the client."""
        changed = self._copied()
        changed._raw = Raw(codec.encode(arguments)) if isinstance(self._raw, Raw) else arguments
        return changed

    def called(self, name: str, offer: Registration, arguments: Any) -> Request:
        """Return the request as a mounted server or a changed tool sees it."""
        changed = self._copied()
        changed.name, changed._registration, changed._inner = name, offer, offer
        changed._raw = arguments
        return changed

    def _copied(self) -> Request:
        made = Request(
            self._handler,
            self._invoker,
            self._pending,
            self._peer,
            self.name,
            self._registration,
            self._raw,
            self._call,
        )
        made.asked_for, made._inner, made._reads = self.asked_for, self._inner, self._reads
        if self._call is None:
            if self._state is None:
                self._state = {}
            made._state = self._state
        return made

    @property
    def definition(self) -> Any:
        """The definition of its target: a `Tool`, a `Prompt`, a `Resource`, a `ResourceTemplate`; None for lists, and
        for what a provider completes.
        """
        return None if self._registration is None else self._registration.define(self._pending.rules)

    @property
    def tool(self) -> Tool | None:
        """The definition of the called tool; None for other methods."""
        return self.definition if self.method == "tools/call" else None

    @property
    def version(self) -> str | None:
        """The version of the target, if it has one."""
        return None if self._registration is None else self._registration.metadata.version

    @property
    def tags(self) -> frozenset[str]:
        """The tags of the target."""
        return frozenset() if self._registration is None else self._registration.metadata.tags

    def tags_of(self, name: str) -> frozenset[str]:
        """Return the tags of an item in the requested list: a name, a URI, or the text of a template."""
        registration = self._invoker.server.registry.view.listed(self.method).get(name)
        return frozenset() if registration is None else registration.metadata.tags

    @property
    def declared_as(self) -> str:
        """The name; for the URI of a template, the text of the template."""
        return getattr(self.definition, "uri_template", self.name)

    @property
    def may_run_again(self) -> bool:
        """Whether it is safe to run it twice: it is not a tool, or one marked `readOnlyHint` or `idempotentHint`."""
        return self._registration is None or self._registration.may_run_again

    @property
    def may_ask(self) -> bool:
        """Whether the call can request input from the client."""
        return self._call is not None

    @property
    def asked(self) -> bool:
        """Whether the call has requested input: the result then depends on the answers."""
        return self._call is not None and self._call.requested_input

    @property
    def over(self) -> bool:
        """Whether a question ended the run, so that the call runs again: its return value or exception is then
        ignored.
        """
        return self._call is not None and self._call.input.is_interrupted

    @property
    def local(self) -> bool:
        """Whether the client started this server or shares its process; it may then do all that the server can."""
        return self._peer.local

    @property
    def principal(self) -> Principal | None:
        """The authenticated sender; None without authentication."""
        who: Principal | None = self._pending.principal
        self._record("principal")
        return who

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the HTTP request, as in `ctx.headers`."""
        self._record("headers")
        return headers_of(self._pending)

    @property
    def revision(self) -> str:
        """The protocol revision of the request."""
        return self._pending.rules.revision

    @property
    def client(self) -> Implementation | None:
        """The name and version that the client sent. For display and logs, never for decisions."""
        self._record("client")
        return self._peer.info(self._pending)

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the request, unchanged."""
        self._record("meta")
        return codec.decode_params(Params, self._pending.params).meta or {}

    @property
    def state(self) -> dict[str, Any]:
        """Values that middleware and handler share; the same as `ctx.state`."""
        if self._call is not None:
            return self._call.state
        if self._state is None:
            self._state = {}
        elif self._state:
            self._record("state")
        return self._state

    @property
    def reads(self) -> Mapping[str, int]:
        """The attributes of its client that the call has read so far, with the number of reads: "principal", "headers",
        "client", "meta", "roots", "session", "state" (values that others had put into it). The result may depend on
        them.
        """
        return self._reads

    @property
    def apart(self) -> tuple[bool, bool]:
        """Whether its session hides registrations, and whether its state has values already: the call is then not equal
        to one without, whatever it reads.
        """
        state = self._state if self._call is None else self._call.peek_state
        return self._peer.visibility is not None, bool(state)

    def _record(self, what: str) -> None:
        self._reads[what] = self._reads.get(what, 0) + 1

    @property
    def context(self) -> Context:
        """The context of the call, of the server that the middleware belongs to. Only for middleware with a parameter
        for it, see `chain`.
        """
        assert self._call is not None
        return self._invoker.context(self._inner, self._call)

    def pack(self, value: Any) -> Any:
        """Return the value of a handler as the result that the client will receive: a `CallToolResult`,
        `GetPromptResult`, `ReadResourceResult`. Raises `ToolError` for a value that cannot be sent.
        """
        return self._invoker.decode_result(self, value)

    def within(self, seconds: float, work: Awaitable[T]) -> Awaitable[T]:
        """Await `call_next(request)` for at most `seconds`, not counting the time that the client takes to answer.

        Raises `OutOfTime`, which is a `TimeoutError`.
        """
        return self._invoker.with_deadline(seconds, work, self._call)

    @property
    def server(self) -> RunningServer:
        """The server that received the request; for a mounted server, its outer server."""
        return self._invoker.server

    @property
    def lifetime(self) -> Lifetime:
        """The lifetime of the server that received the request."""
        return self._invoker.server.lifetimes.current()

    def run(self) -> Awaitable[Any]:
        """Call the handler, or its replacement."""
        if self._handler is not None:
            return self._handler(self)
        return self._invoker.invoke_registration(self._registration, self._raw, self._call)  # type: ignore[arg-type]  # without a handler there is a registration

    # For the invoker.

    @property
    def inside(self) -> tuple[Registration | None, Any, HandlerCall | None, PendingRequest]:
        """The registration, its current arguments, the call and the pending request."""
        return self._registration, self._raw, self._call, self._pending


CallNext: TypeAlias = Callable[[Request], Awaitable[Any]]
"""Calls the rest of the middleware and the handler; returns or raises what these do."""

Middleware: TypeAlias = (
    Callable[[Request, CallNext], Awaitable[Any]] | Callable[[Request, CallNext, "Context"], Awaitable[Any]]
)
"""`async def (request: Request, call_next: CallNext)`, optionally with a third parameter annotated `Context`."""
