"""`completion/complete`: proposals while a person types an argument (server, Completion)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sized
from itertools import islice
from typing import Any

import msgspec

from accord.errors import InternalError, InvalidParams, ProtocolError, describe
from accord.limits import Limits
from accord.messages import codec
from accord.messages.completion import CompleteParams, CompleteResult, Completion, PromptReference, Reference
from accord.server.compose.access import may_see
from accord.server.finding import Finding
from accord.server.offer import Offer
from accord.server.peer import Peer
from accord.server.proposals import Completer
from accord.server.registry import Registry
from accord.session.exchange import Exchange

log: logging.Logger = logging.getLogger("accord.server")

Call = Callable[[Offer, str, Any, Exchange, Peer], Awaitable[Any]]
"""Calls a function of the program for a request: the offer, its name, its arguments, and who asks."""


class Completions:
    """The verb, for one running server."""

    def __init__(self, registry: Registry, finding: Finding, limits: Limits, call: Call) -> None:
        self._registry = registry
        self._finding = finding
        self._limits = limits
        self._call = call

    async def complete(self, exchange: Exchange, peer: Peer) -> CompleteResult:
        """Proposals for one argument, none where nothing completes it.

        Raises `InvalidParams` for a prompt, template or argument that does not exist, `InternalError` for one that
        comes too soon, and for a function that fails.
        """
        params = codec.decode_params(CompleteParams, exchange.params)
        self._check_rate(peer)
        if self._registry.shown.provided and (found := await self._provided(params)) is not None:
            return CompleteResult(completion=bounded(found, self._limits.completions))
        offer, name = self._registry.completed(params.ref), params.argument.name
        self._check_seen(params.ref, offer, exchange, peer)
        if offer.proposals is None or not offer.proposals.has(name):
            raise InvalidParams(f"there is no argument {name!r} to complete")
        completer = offer.proposals.completers.get(name)
        if completer is not None:
            return CompleteResult(completion=await self._ask(completer, params, exchange, peer))
        choices = offer.proposals.choices(name, params.argument.value)
        return CompleteResult(completion=bounded(choices, self._limits.completions))

    async def _provided(self, params: CompleteParams) -> Any:
        """What a provider proposes; None where nobody does."""
        return await self._finding.provisions.complete(params.ref, params.argument.name, params.argument.value)

    def _check_seen(self, ref: Reference, offer: Offer, exchange: Exchange, peer: Peer) -> None:
        name = ref.name if isinstance(ref, PromptReference) else ref.uri
        if not may_see(offer, name, exchange, peer):
            raise InvalidParams(f"there is nothing named {name!r} to complete")

    def _check_rate(self, peer: Peer) -> None:
        """ "Servers SHOULD rate limit completion requests" """
        now = asyncio.get_running_loop().time()
        if not peer.completions.take(now):
            seconds = peer.completions.wait(now)
            raise InternalError(
                f"more than {self._limits.completions_per_second:g} completions a second; try again in {seconds:.3f} s",
                data={"retryAfterSeconds": seconds},
            )

    async def _ask(self, completer: Completer, params: CompleteParams, exchange: Exchange, peer: Peer) -> Completion:
        known = (params.context.arguments if params.context is not None else None) or {}
        if not completer.is_ready(known):
            return Completion(values=[], total=0, has_more=False)
        try:
            found = await self._call(completer.offer, completer.name, (params.argument.value, known), exchange, peer)
            return bounded(found, self._limits.completions)
        except ProtocolError:
            raise
        except Exception as exc:
            log.warning("accord: %s() failed to complete %r", completer.name, params.argument.name, exc_info=exc)
            raise InternalError(
                f"{completer.name}() failed to complete {params.argument.name!r}: {describe(exc)}"
            ) from exc


def bounded(found: Any, limit: int) -> Completion:
    """What was proposed, at most `limit` of it. Raises `TypeError` for what is no proposals."""
    if isinstance(found, Completion):
        within = bounded(found.values, limit)
        total = within.total if found.total is None else found.total
        return msgspec.structs.replace(within, total=total, has_more=bool(within.has_more or found.has_more))
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise TypeError(f"a completion is a list of str or a Completion, not {type(found).__name__}")
    values = list(islice(found, limit + 1))
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"a completion is a list of str, with no {type(value).__name__} in it")
    more = len(values) > limit
    total = len(found) if isinstance(found, Sized) else None if more else len(values)
    return Completion(values=values[:limit], total=total, has_more=more)
