"""One request as middleware sees it, and what stands behind the next step."""

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
"""Does something through middleware: what stands at the end, and what the request says. See
`Invoker.invoke_registration_middleware`."""


class RequestInvoker(Protocol):
    """What calls the functions of a server, as a request on its way to one uses it."""

    server: RunningServer

    def context(self, offer: Registration | None, call: HandlerCall) -> Context:
        """What a function may know of the call it serves."""

    def invoke_registration(
        self, offer: Registration, arguments: Any, call: HandlerCall | None, prefix: str = ""
    ) -> Awaitable[Any]:
        """Call a function, without its middleware."""

    def decode_result(self, request: Request, value: Any) -> Any:
        """What a handler returned as the result that is sent."""

    def with_deadline(self, seconds: float, work: Awaitable[T], call: HandlerCall | None) -> Awaitable[T]:
        """Await `work` for so long. Raises `OutOfTime`."""


class Request:
    """What a client asks for, on its way to the handler. It is good for one call."""

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
        calling: RequestInvoker,
        exchange: PendingRequest,
        peer: Peer,
        name: str,
        offer: Registration | None,
        arguments: Any,
        call: HandlerCall | None,
    ) -> None:
        self.name: str = name
        """The tool or the prompt, or the URI of the resource, as the server that this middleware belongs to calls it;
        empty for a list."""
        self.asked_for: str = name
        """The same as the client calls it: another name where the server is mounted."""
        self._handler = end
        self._invoker = calling
        self._pending = exchange
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
        """The method of the protocol: "tools/call"."""
        return self._pending.method.name

    @property
    def lists(self) -> bool:
        """Whether it asks for a list: then there is a list of definitions to give."""
        return self.method.endswith("/list")

    @property
    def arguments(self) -> dict[str, Any]:
        """What the client gave, as JSON has it; changes to it go no further, see `replace`."""
        if self._arguments is None:
            raw = self._raw
            self._arguments = msgspec.json.decode(raw) if isinstance(raw, Raw) else dict(raw or {})
        return self._arguments or {}

    def replace(self, *, arguments: dict[str, Any]) -> Request:
        """The same request with other arguments; they are checked as those of the client are."""
        changed = self._copied()
        changed._raw = Raw(codec.encode(arguments)) if isinstance(self._raw, Raw) else arguments
        return changed

    def called(self, name: str, offer: Registration, arguments: Any) -> Request:
        """The same request as a mounted server knows it, or a tool that is changed where it is shown."""
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
        """The definition of what it is about: a `Tool`, a `Prompt`, a `Resource`, a `ResourceTemplate`; None for lists
        and for what a provider completes.
        """
        return None if self._registration is None else self._registration.define(self._pending.rules)

    @property
    def tool(self) -> Tool | None:
        """The definition of the tool that is called."""
        return self.definition if self.method == "tools/call" else None

    @property
    def version(self) -> str | None:
        """The version of what is called, where it has one."""
        return None if self._registration is None else self._registration.metadata.version

    @property
    def tags(self) -> frozenset[str]:
        """The tags of what is called."""
        return frozenset() if self._registration is None else self._registration.metadata.tags

    def tags_of(self, name: str) -> frozenset[str]:
        """The tags of an item of the list that is asked for: a name, a URI, or the text of a template."""
        offer = self._invoker.server.registry.view.listed(self.method).get(name)
        return frozenset() if offer is None else offer.metadata.tags

    @property
    def declared_as(self) -> str:
        """The name; where a template answers for a URI, the text of the template."""
        return getattr(self.definition, "uri_template", self.name)

    @property
    def may_run_again(self) -> bool:
        """Whether doing it twice does no harm: it is no tool, or one marked `readOnlyHint` or `idempotentHint`."""
        return self._registration is None or self._registration.may_run_again

    @property
    def may_ask(self) -> bool:
        """Whether what is called can ask the client for something."""
        return self._call is not None

    @property
    def asked(self) -> bool:
        """Whether it has asked the client: what comes of the call then depends on the answers."""
        return self._call is not None and self._call.requested_input

    @property
    def over(self) -> bool:
        """Whether it was ended at a question, to be run again: what it returns or raises now does not count."""
        return self._call is not None and self._call.input.is_interrupted

    @property
    def local(self) -> bool:
        """Whether the client started this server, or shares its process: then it may do all that the server can."""
        return self._peer.local

    @property
    def principal(self) -> Principal | None:
        """Who asks; None where nobody was asked."""
        who: Principal | None = self._pending.principal
        self._record("principal")
        return who

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the HTTP request that brought it, as `ctx.headers` has them."""
        self._record("headers")
        return headers_of(self._pending)

    @property
    def revision(self) -> str:
        """The revision this request is served in."""
        return self._pending.rules.revision

    @property
    def client(self) -> Implementation | None:
        """What the client says it is. For display and logs, never for decisions."""
        self._record("client")
        return self._peer.info(self._pending)

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the request, as it came."""
        self._record("meta")
        return codec.decode_params(Params, self._pending.params).meta or {}

    @property
    def state(self) -> dict[str, Any]:
        """Whatever middleware and handler have to tell each other; the same as `ctx.state`."""
        if self._call is not None:
            return self._call.state
        if self._state is None:
            self._state = {}
        elif self._state:
            self._record("state")
        return self._state

    @property
    def reads(self) -> Mapping[str, int]:
        """What the call has read of its client by now, and how often: "principal", "headers", "client", "meta",
        "roots", "session", "state" (what others had put into it). What comes of it may depend on that.
        """
        return self._reads

    @property
    def apart(self) -> tuple[bool, bool]:
        """Whether its session hides things, and whether something is in its state already: then the call is not equal
        to one of which that is not so, whatever it reads.
        """
        state = self._state if self._call is None else self._call.peek_state
        return self._peer.visibility is not None, bool(state)

    def _record(self, what: str) -> None:
        self._reads[what] = self._reads.get(what, 0) + 1

    @property
    def context(self) -> Context:
        """The context of the call, of the server that the middleware belongs to. See `chain`: only for middleware that
        has a parameter for it.
        """
        assert self._call is not None
        return self._invoker.context(self._inner, self._call)

    def pack(self, value: Any) -> Any:
        """What a handler returned as the result that the client will get: a `CallToolResult`, `GetPromptResult`,
        `ReadResourceResult`. Raises `ToolError` for what cannot be sent.
        """
        return self._invoker.decode_result(self, value)

    def within(self, seconds: float, work: Awaitable[T]) -> Awaitable[T]:
        """Await the rest of the way, `call_next(request)`, for so long; the time of questions does not count.

        Raises `OutOfTime`, which is a `TimeoutError`.
        """
        return self._invoker.with_deadline(seconds, work, self._call)

    @property
    def server(self) -> RunningServer:
        """The server that is asked; where that is mounted, the one that it is mounted in."""
        return self._invoker.server

    @property
    def lifetime(self) -> Lifetime:
        """What lasts as long as the server that is asked."""
        return self._invoker.server.lifetimes.current()

    def run(self) -> Awaitable[Any]:
        """Call the handler, or do what stands at the end in its place."""
        if self._handler is not None:
            return self._handler(self)
        return self._invoker.invoke_registration(self._registration, self._raw, self._call)  # type: ignore[arg-type]  # there is an offer

    # For `calling`, which is on the other side of it.

    @property
    def inside(self) -> tuple[Registration | None, Any, HandlerCall | None, PendingRequest]:
        """The offer, its arguments as they stand now, the call and the exchange."""
        return self._registration, self._raw, self._call, self._pending


CallNext: TypeAlias = Callable[[Request], Awaitable[Any]]
"""The rest of the way to the handler: what it returned, or what it raised."""

Middleware: TypeAlias = (
    Callable[[Request, CallNext], Awaitable[Any]] | Callable[[Request, CallNext, "Context"], Awaitable[Any]]
)
"""`async def (request: Request, call_next: CallNext)`; with a third parameter annotated `Context`, that as well."""
