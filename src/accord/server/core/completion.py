"""Serve `completion/complete`: propose values for an argument (server, Completion)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sized
from itertools import islice
from typing import Any

import msgspec

from accord.errors import DeclarationError, InternalError, InvalidParams, ProtocolError
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
from accord.server.core.context import RunningServer
from accord.server.core.mounted_registration import MountedRegistration, owner_of
from accord.server.core.peer import Peer
from accord.server.core.registration import Completer, Registration
from accord.server.core.registry import Registry
from accord.server.core.resolver import Resolver
from accord.server.middleware.request import Request, RunMiddleware
from accord.session.pending_request import PendingRequest

log: logging.Logger = logging.getLogger("accord.server")

_MAX_JUDGED = 65_536
"""Characters of all URIs of one completion that are compared with the visibility rules."""

CallFunction = Callable[[Registration, str, Any, PendingRequest, Peer], Awaitable[Any]]
"""Calls a function of the program: takes the registration, the subject, the arguments, the pending request and the
peer.
"""


class CompletionHandler:
    """The handler of `completion/complete` for one running server."""

    def __init__(
        self, registry: Registry, resolver: Resolver, limits: Limits, call: CallFunction, run_middleware: RunMiddleware
    ) -> None:
        self._registry = registry
        self._resolver = resolver
        self._limits = limits
        self._call = call
        self._run_middleware = run_middleware

    async def complete(self, pending: PendingRequest, peer: Peer) -> CompleteResult:
        """Return proposals for one argument; none if no function or type completes it.

        Raises `InvalidParams` for an unknown prompt, template or argument, `RateLimited` for too many requests, and
        `InternalError` for a function that fails.
        """
        params = codec.decode_params(CompleteParams, pending.params)
        self._check_rate(peer)
        registration, provided = await self._resolve(params, pending, peer)

        async def end(request: Request) -> Any:
            given = _with_arguments(params, request.inside[1])
            if registration is None:
                return provided
            if (owner := owner_of(registration)) is not None:  # it must run, as for a call
                await request.lifetime.start_mounted(owner.lifetimes)
            return await self._complete(registration, given, pending, peer)

        found = await self._run_middleware(end, _subject(params.ref), registration, _arguments(params), pending, peer)
        completion = bounded(found, self._limits.completions)
        return CompleteResult(completion=self._visible_values(completion, params, registration, pending, peer))

    async def _resolve(
        self, params: CompleteParams, pending: PendingRequest, peer: Peer
    ) -> tuple[Registration | None, Any]:
        """Return the registration to complete; for one that was not declared, None and the proposals of a provider.

        Raises `InvalidParams`, also for a target that this client may not see.
        """
        registration = await self._resolver.resolve_completion(params.ref, pending, peer)
        if registration is not None:
            return registration, None
        provided = await self._provided(params)
        if provided is None:
            raise _unknown(params.ref)
        return None, provided

    def _visible_values(
        self,
        found: Completion,
        params: CompleteParams,
        registration: Registration | None,
        pending: PendingRequest,
        peer: Peer,
    ) -> Completion:
        """Return only the values of a template that expand to a URI which this client may see."""
        view = self._registry.view
        if isinstance(params.ref, PromptReference) or not (
            view.requires_scopes or view.has_rules or peer.visibility is not None
        ):
            return found
        text = (
            params.ref.uri
            if registration is None
            else getattr(registration.define(pending.rules), "uri_template", None)
        )
        uri_of = _expanding(text, params, _defaults(registration, params.argument.name))
        uris = _judged((value, uri_of(value)) for value in found.values)
        values = [value for value, uri in uris if self._resolver.may_see_uri(uri, pending, peer)]
        if len(values) == len(found.values) and found.total in (None, len(values)):
            return found  # a larger total would count values that no rule has checked
        return Completion(values=values, total=None, has_more=found.has_more)

    async def _complete(
        self, registration: Registration, params: CompleteParams, pending: PendingRequest, peer: Peer
    ) -> Any:
        proposals, name = registration.completions, params.argument.name
        if proposals is None or not proposals.has(name):
            raise InvalidParams(f"there is no argument {name!r} to complete")
        completer = proposals.completers.get(name)
        if completer is not None:
            return await self._call_completer(completer, owner_of(registration), params, pending, peer)
        return proposals.choices(name, params.argument.value)

    async def _provided(self, params: CompleteParams) -> Any:
        """Return the proposals of a provider; None if no provider has any."""
        return await self._resolver.providers.complete(params.ref, params.argument.name, params.argument.value)

    def _check_rate(self, peer: Peer) -> None:
        """Raise `RateLimited` for too many requests: "Servers SHOULD rate limit completion requests"."""
        now = asyncio.get_running_loop().time()
        if not peer.completion_limiter.allow(now):
            limits = peer.channel.session.limits
            shared = limits.completions_per_second != self._limits.completions_per_second
            name = f"{'HTTPLimits' if shared else 'Limits'}.completions_per_second"
            what = f"too many completions: the limit is {limits.completions_per_second:g} a second ({name})"
            raise peer.completion_limiter.refusal(now, what)

    async def _call_completer(
        self,
        completer: Completer,
        owner: RunningServer | None,
        params: CompleteParams,
        pending: PendingRequest,
        peer: Peer,
    ) -> Completion:
        """Call a function for its proposals; `owner` is the mounted server that declares it."""
        known = (params.context.arguments if params.context is not None else None) or {}
        if not completer.is_ready(known):
            return Completion(values=[], total=0, has_more=False)
        function = completer.registration
        if owner is not None:
            function = MountedRegistration.of(function, owner)
        try:
            found = await self._call(function, completer.name, (params.argument.value, known), pending, peer)
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


def _defaults(registration: Registration | None, argument: str) -> dict[str, str]:
    """Return the defaults that the completer of an argument has for the other arguments."""
    completers = {} if registration is None or registration.completions is None else registration.completions.completers
    return completers[argument].defaults if argument in completers else {}


def _expanding(text: str | None, params: CompleteParams, defaults: Mapping[str, str]) -> Callable[[str], str | None]:
    """Return a function from a value to its URI, given the other known arguments; it returns None if there is no
    URI.
    """
    from accord.server.declare.templates import Template

    arguments = {**defaults, **_arguments(params)}
    try:
        template = Template(text or "")
    except DeclarationError:  # the text comes from the client
        return lambda value: None

    def expand(value: str) -> str | None:
        try:
            return template.expand({**arguments, params.argument.name: value})
        except UnicodeError:
            return None

    return expand


def _judged(uris: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str]]:
    """Yield the values that have a readable URI, until the URIs exceed `_MAX_JUDGED` characters."""
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
    """Return the arguments as middleware sees them: the known ones and the text typed so far."""
    known = params.context.arguments if params.context is not None else None
    return {**(known or {}), params.argument.name: params.argument.value}


def _with_arguments(params: CompleteParams, arguments: dict[str, Any]) -> CompleteParams:
    """Return the params with the arguments that middleware passed on."""
    if arguments == _arguments(params):
        return params
    known = dict(arguments)
    typed = CompletionArgument(name=params.argument.name, value=known.pop(params.argument.name, ""))
    return msgspec.structs.replace(params, argument=typed, context=CompletionContext(arguments=known))


def bounded(found: Any, limit: int) -> Completion:
    """Return at most `limit` of the proposals. Raises `TypeError` for a value that is not a list of proposals."""
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
