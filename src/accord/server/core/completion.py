"""`completion/complete`: proposals while a person types an argument (server, Completion)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sized
from itertools import islice
from typing import Any

import msgspec

from accord.errors import DeclarationError, InternalError, InvalidParams, ProtocolError, RateLimited
from accord.limits import Limits
from accord.messages import codec
from accord.messages.bounds import URI_LENGTH
from accord.messages.completion import (
    CompleteParams,
    CompleteResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    Reference,
)
from accord.redaction import describe_redacted
from accord.server.core.peer import Peer
from accord.server.core.registration import Completer, Registration
from accord.server.core.registry import Registry
from accord.server.core.resolver import Resolver
from accord.server.declare.templates import Template
from accord.server.middleware.request import Request, RunMiddleware
from accord.session.pending_request import PendingRequest

log: logging.Logger = logging.getLogger("accord.server")

_MAX_JUDGED = 65_536
"""Characters of all URIs of one completion that are compared with the rules of who may see them."""

CallFunction = Callable[[Registration, str, Any, PendingRequest, Peer], Awaitable[Any]]
"""Calls a function of the program for a request: the offer, its name, its arguments, and who asks."""


class CompletionHandler:
    """The verb, for one running server."""

    def __init__(
        self, registry: Registry, finding: Resolver, limits: Limits, call: CallFunction, surround: RunMiddleware
    ) -> None:
        self._registry = registry
        self._resolver = finding
        self._limits = limits
        self._call = call
        self._surround = surround

    async def complete(self, exchange: PendingRequest, peer: Peer) -> CompleteResult:
        """Proposals for one argument, none where nothing completes it.

        Raises `InvalidParams` for a prompt, template or argument that does not exist, `InternalError` for one that
        comes too soon, and for a function that fails.
        """
        params = codec.decode_params(CompleteParams, exchange.params)
        self._check_rate(peer)
        offer, provided = await self._resolve(params, exchange, peer)

        async def end(request: Request) -> Any:
            given = _with_arguments(params, request.inside[1])
            return provided if offer is None else await self._complete(offer, given, exchange, peer)

        found = await self._surround(end, _subject(params.ref), offer, _arguments(params), exchange, peer)
        made = bounded(found, self._limits.completions)
        return CompleteResult(completion=self._visible_values(made, params, offer, exchange, peer))

    async def _resolve(
        self, params: CompleteParams, exchange: PendingRequest, peer: Peer
    ) -> tuple[Registration | None, Any]:
        """What is completed; or, where it was not declared, what a provider proposes.

        Raises `InvalidParams`, also for what this client may not see.
        """
        offer = await self._resolver.resolve_completion(params.ref, exchange, peer)
        if offer is not None:
            return offer, None
        provided = await self._provided(params)
        if provided is None:
            raise _unknown(params.ref)
        return None, provided

    def _visible_values(
        self,
        found: Completion,
        params: CompleteParams,
        offer: Registration | None,
        exchange: PendingRequest,
        peer: Peer,
    ) -> Completion:
        """Of the values for a template, those that lead to no URI that this client may not see."""
        shown = self._registry.view
        if isinstance(params.ref, PromptReference) or not (
            shown.requires_scopes or shown.has_rules or peer.visibility is not None
        ):
            return found
        text = params.ref.uri if offer is None else getattr(offer.define(exchange.rules), "uri_template", None)
        uri_of = _expanding(text, params, _defaults(offer, params.argument.name))
        uris = _judged((value, uri_of(value)) for value in found.values)
        values = [value for value, uri in uris if self._resolver.may_see_uri(uri, exchange, peer)]
        if len(values) == len(found.values) and found.total in (None, len(values)):
            return found  # a total beyond these counts values that nobody has judged
        return Completion(values=values, total=None, has_more=found.has_more)

    async def _complete(self, offer: Registration, params: CompleteParams, exchange: PendingRequest, peer: Peer) -> Any:
        proposals, name = offer.completions, params.argument.name
        if proposals is None or not proposals.has(name):
            raise InvalidParams(f"there is no argument {name!r} to complete")
        completer = proposals.completers.get(name)
        if completer is not None:
            return await self._call_completer(completer, params, exchange, peer)
        return proposals.choices(name, params.argument.value)

    async def _provided(self, params: CompleteParams) -> Any:
        """What a provider proposes; None where nobody does."""
        return await self._resolver.providers.complete(params.ref, params.argument.name, params.argument.value)

    def _check_rate(self, peer: Peer) -> None:
        """ "Servers SHOULD rate limit completion requests" """
        now = asyncio.get_running_loop().time()
        if not peer.completion_limiter.allow(now):
            seconds = peer.completion_limiter.delay(now)
            what = f"more than {self._limits.completions_per_second:g} completions a second"
            raise RateLimited(f"{what}; try again in {seconds:.3f} s", retry_after=seconds)

    async def _call_completer(
        self, completer: Completer, params: CompleteParams, exchange: PendingRequest, peer: Peer
    ) -> Completion:
        known = (params.context.arguments if params.context is not None else None) or {}
        if not completer.is_ready(known):
            return Completion(values=[], total=0, has_more=False)
        try:
            found = await self._call(
                completer.registration, completer.name, (params.argument.value, known), exchange, peer
            )
            return bounded(found, self._limits.completions)
        except ProtocolError:
            raise
        except Exception as exc:
            log.warning("accord: %s() failed to complete %r", completer.name, params.argument.name, exc_info=exc)
            raise InternalError(
                f"{completer.name}() failed to complete {params.argument.name!r}: {describe_redacted(exc)}"
            ) from exc


def _unknown(ref: Reference) -> InvalidParams:
    if isinstance(ref, PromptReference):
        return InvalidParams(f"no prompt {ref.name!r:.200}")
    return InvalidParams(f"no resource template {ref.uri!r:.200}")


def _defaults(offer: Registration | None, argument: str) -> dict[str, str]:
    """What the function that completes an argument takes for the others where a client gives none."""
    completers = {} if offer is None or offer.completions is None else offer.completions.completers
    return completers[argument].defaults if argument in completers else {}


def _expanding(text: str | None, params: CompleteParams, defaults: Mapping[str, str]) -> Callable[[str], str | None]:
    """What makes the URI of a value, with the other arguments as far as they are known; None where it makes none."""
    arguments = {**defaults, **_arguments(params)}
    try:
        template = Template(text or "")
    except DeclarationError:  # what a client took for a template
        return lambda value: None

    def expand(value: str) -> str | None:
        try:
            return template.expand({**arguments, params.argument.name: value})
        except UnicodeError:
            return None

    return expand


def _judged(uris: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str]]:
    """Yield the values with a URI that can be read, as long as all of these can be judged in a moment."""
    size = 0
    for value, uri in uris:
        if uri is None or len(uri) > URI_LENGTH:
            continue
        size += len(uri)
        if size > _MAX_JUDGED:
            return
        yield value, uri


def _subject(ref: Reference) -> str:
    return ref.name if isinstance(ref, PromptReference) else ref.uri


def _arguments(params: CompleteParams) -> dict[str, str]:
    """As middleware has them: what is known, and what was typed so far."""
    known = params.context.arguments if params.context is not None else None
    return {**(known or {}), params.argument.name: params.argument.value}


def _with_arguments(params: CompleteParams, arguments: dict[str, Any]) -> CompleteParams:
    """The params with what middleware made of the arguments."""
    if arguments == _arguments(params):
        return params
    known = dict(arguments)
    typed = CompletionArgument(name=params.argument.name, value=known.pop(params.argument.name, ""))
    return msgspec.structs.replace(params, argument=typed, context=CompletionContext(arguments=known))


def bounded(found: Any, limit: int) -> Completion:
    """What was proposed, at most `limit` of it. Raises `TypeError` for what is no proposals."""
    if isinstance(found, Completion):
        within = bounded(found.values, limit)
        total = within.total if found.total is None and not found.has_more else found.total
        return msgspec.structs.replace(within, total=total, has_more=bool(within.has_more or found.has_more))
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise TypeError(f"a completer must return a list of str or a Completion, not {type(found).__name__}")
    values = list(islice(found, limit + 1))
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"a completer must return a list of str, without {type(value).__name__} in it")
    more = len(values) > limit
    total = len(found) if isinstance(found, Sized) else None if more else len(values)
    return Completion(values=values[:limit], total=total, has_more=more)
