"""What goes along with every request to an API: headers that are fixed, made for each call, or the caller's own.

What the server's author says stands above what the caller brings, and that above what a model chooses. Nothing of the
caller is passed on that is not named.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeAlias

from accord.errors import DeclarationError, InvalidArguments, TargetError, ToolError
from accord.redaction import describe_redacted
from accord.server.core.context import Context
from accord.transport.http.settings import validated_headers

HeaderSource: TypeAlias = (
    Mapping[str, str]
    | Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]
    | Callable[[Context], Mapping[str, str] | Awaitable[Mapping[str, str]]]
)
"""Headers; or a function, plain or async, that gives them for each call, and takes the `Context` if it wants it."""


class APIHeaders:
    """Those of one API. Raises `DeclarationError` for what cannot be sent."""

    def __init__(self, given: HeaderSource | None, forward: Collection[str]) -> None:
        self._fixed: dict[str, str] = {}
        self._source: Callable[..., Any] | None = None
        if callable(given):
            self._source = given
        elif isinstance(given, Mapping):
            self._fixed = _fixed(given)
        elif given is not None:
            raise DeclarationError(
                f"headers= must be a mapping of strings, or a function that returns one, not {given!r:.100}"
            )
        if isinstance(forward, str):
            raise DeclarationError(f'forward= must be a list of names: forward=["{forward}"]')
        self._forward = [name.lower() for name in forward]
        self._needs_context = self._source is not None and bool(inspect.signature(self._source).parameters)

    @property
    def context(self) -> bool:
        """Whether they depend on the call."""
        return self._needs_context or bool(self._forward)

    @property
    def names(self) -> set[str]:
        """Names, in small letters, that no model chooses."""
        return {*self._fixed, *self._forward}

    async def for_call(self, context: Context | None) -> dict[str, str]:
        """The headers for one call. Raises `ToolError` where the function fails."""
        passed_on: dict[str, str] = {}
        if self._forward and context is not None:
            brought = context.headers
            passed_on = {name: brought[name] for name in self._forward if name in brought}
        return {**sendable(passed_on), **self._fixed, **await self._made(context)}

    async def _made(self, context: Context | None) -> dict[str, str]:
        if self._source is None:
            return {}
        try:
            made = self._source(context) if self._needs_context else self._source()
            return validated_headers(await made if inspect.isawaitable(made) else made)
        except ToolError:
            raise
        except Exception as exc:
            raise ToolError(f"the function for headers failed: {describe_redacted(exc)}") from exc


def _fixed(given: Mapping[str, str]) -> dict[str, str]:
    try:
        return validated_headers(given)
    except TargetError as exc:
        raise DeclarationError(str(exc)) from exc


def sendable(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers that a caller chose. Raises `InvalidArguments` for one that cannot be sent: it would end its line."""
    try:
        return validated_headers(headers)
    except TargetError as exc:
        raise InvalidArguments(str(exc)) from exc
