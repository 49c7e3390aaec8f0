"""One request as middleware sees it, and what stands behind the next step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Raw

from accord.messages import codec
from accord.messages.meta import Params

if TYPE_CHECKING:
    from accord.messages.identity import Implementation
    from accord.messages.tools import Tool
    from accord.server.asking.call import Call
    from accord.server.calling import Calling
    from accord.server.context import Context
    from accord.server.http.auth import Principal
    from accord.server.lifetime import Lifetime
    from accord.server.offer import Offer
    from accord.server.peer import Peer
    from accord.session.exchange import Exchange

End = Callable[["Request"], Awaitable[Any]]


class Request:
    """What a client asks for, on its way to the handler. It is good for one call."""

    __slots__ = ("_arguments", "_call", "_calling", "_end", "_exchange", "_offer", "_peer", "_raw", "_state", "name")

    def __init__(
        self,
        end: End,
        calling: Calling,
        exchange: Exchange,
        peer: Peer,
        name: str,
        offer: Offer | None,
        arguments: Any,
        call: Call | None,
    ) -> None:
        self.name: str = name
        """The tool or the prompt, or the URI of the resource; empty for a list."""
        self._end = end
        self._calling = calling
        self._exchange = exchange
        self._peer = peer
        self._offer = offer
        self._raw = arguments
        self._arguments: dict[str, Any] | None = None
        self._call = call
        self._state: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.name}>"

    @property
    def method(self) -> str:
        """The method of the protocol: "tools/call"."""
        return self._exchange.method.name

    @property
    def arguments(self) -> dict[str, Any]:
        """What the client gave, as JSON has it; changes to it go no further, see `replace`."""
        if self._arguments is None:
            raw = self._raw
            self._arguments = msgspec.json.decode(raw) if isinstance(raw, Raw) else dict(raw or {})
        return self._arguments or {}

    def replace(self, *, arguments: dict[str, Any]) -> Request:
        """The same request with other arguments; they are checked as those of the client are."""
        changed = Request(
            self._end, self._calling, self._exchange, self._peer, self.name, self._offer, self._raw, self._call
        )
        changed._raw = Raw(codec.encode(arguments)) if isinstance(self._raw, Raw) else arguments
        changed._state = self.state
        return changed

    @property
    def tool(self) -> Tool | None:
        """The definition of the tool that is called."""
        if self._offer is None or self.method != "tools/call":
            return None
        return self._offer.define(self._exchange.rules)  # type: ignore[no-any-return]

    @property
    def tags(self) -> frozenset[str]:
        """The tags of what is called."""
        return frozenset() if self._offer is None else self._offer.marks.tags

    @property
    def principal(self) -> Principal | None:
        """Who asks; None where nobody was asked."""
        return self._exchange.who  # type: ignore[no-any-return]

    @property
    def revision(self) -> str:
        """The revision this request is served in."""
        return self._exchange.rules.revision

    @property
    def client(self) -> Implementation | None:
        """What the client says it is. For display and logs, never for decisions."""
        return self._peer.info(self._exchange)

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the request, as it came."""
        return codec.decode_params(Params, self._exchange.params).meta or {}

    @property
    def state(self) -> dict[str, Any]:
        """Whatever middleware and handler have to tell each other; the same as `ctx.state`."""
        if self._call is not None:
            return self._call.state
        if self._state is None:
            self._state = {}
        return self._state

    @property
    def context(self) -> Context:
        """The context of the call. See `chain`: only for middleware that has a parameter for it."""
        assert self._call is not None
        return self._calling.context(self._offer, self._call)

    def pack(self, value: Any) -> Any:
        """What a handler returned as the result that the client will get: a `CallToolResult`, `GetPromptResult`,
        `ReadResourceResult`. Raises `ToolError` for what cannot be sent.
        """
        return self._calling.packed(self, value)

    @property
    def lifetime(self) -> Lifetime:
        """What lasts as long as the server that is asked."""
        return self._calling.server.lifetimes.here()

    def run(self) -> Awaitable[Any]:
        """Call the handler."""
        return self._end(self)

    # For `calling`, which is on the other side of it.

    @property
    def inside(self) -> tuple[Offer | None, Any, Call | None, Exchange]:
        """The offer, its arguments as they stand now, the call and the exchange."""
        return self._offer, self._raw, self._call, self._exchange


CallNext: TypeAlias = Callable[[Request], Awaitable[Any]]
"""The rest of the way to the handler: what it returned, or what it raised."""

Middleware: TypeAlias = Callable[..., Awaitable[Any]]
"""`async def (request: Request, call_next: CallNext)`; with a third parameter annotated `Context`, that as well."""
