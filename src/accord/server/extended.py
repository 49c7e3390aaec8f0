"""Methods and notifications of extensions on the server: what answers them, and what hears them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accord.errors import DeclarationError, NotSupported, ToolError
from accord.messages.extension import Extension, results_of, rows_of
from accord.messages.meta import Result
from accord.messages.methods import Method
from accord.server.offer import Offer
from accord.server.signature import signature
from accord.session.exchange import Exchange
from accord.session.session import Session


class Extended:
    """What a server has of extensions."""

    def __init__(self, extensions: Sequence[Extension]) -> None:
        self.extensions: tuple[Extension, ...] = tuple(extensions)
        self.rows: list[Method] = rows_of(extensions)
        self.offers: dict[str, Offer] = {}
        self._by_kind = {kind: one for one in extensions for kind in one.results}
        self.kinds: tuple[type[Any], ...] = tuple(results_of(extensions).values())
        """The types of result that they bring."""

    def add(self, name: str, function: Callable[..., Any], context: type) -> None:
        """Answer a request, or hear a notification. Raises `DeclarationError` for a name that no extension has."""
        row = next((row for row in self.rows if row.name == name), None)
        if row is None:
            raise DeclarationError(f"no extension of this server has {name!r}; give it one that lists the method")
        if name in self.offers:
            raise DeclarationError(f"{name!r} is declared twice")
        offer = self.offers[name] = _offer(function, context)
        if row.notification and offer.context:
            raise DeclarationError(f"{name!r} is a notification: nobody waits for it, so there is no Context")

    def check(self, result: Result, exchange: Exchange, session: Session) -> None:
        """Whether the client may be given this kind of result. Raises `MissingClientCapability`, `NotSupported`.

        "The set of supported ResultType values MUST be created from the set defined in the core protocol and include
        any additional values of supported extensions" (2026-07-28, basic): a client that lacks it could not read it.
        """
        if not exchange.rules.result_type:
            raise NotSupported(f"{exchange.rules.revision} has no kinds of result")
        extension = self._by_kind.get(result.result_type or "")
        if extension is None:
            raise ToolError(f"no extension of this server has results of type {result.result_type!r}")
        session.check_client(exchange, extension.capability)


def _offer(function: Callable[..., Any], context: type) -> Offer:
    """A function that takes the params, and perhaps the context, as an offer. Raises `DeclarationError`."""
    read = signature(function, context=context)
    if len(read.names) > 1:
        raise DeclarationError(f"{read.name} answers a method: it takes its params, and a Context if it wants one")

    def bind(params: Any, ctx: Any) -> tuple[tuple[()], dict[str, Any]]:
        named = dict.fromkeys(read.names, params)
        if read.context is not None:
            named[read.context] = ctx
        return (), named

    return Offer(
        function,
        lambda _: None,
        bind=bind,
        context=read.context is not None,
        is_async=read.is_async,
    )
