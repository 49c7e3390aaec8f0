"""The headers of every request to an API: fixed, returned by a function for each call, or forwarded from the client.

Headers set by the server's author override forwarded ones, and forwarded ones override those set by a model. Only
headers named in `forward` are forwarded.
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
"""Headers; or a function, plain or async, that returns them for each call and may take the `Context`."""


class APIHeaders:
    """The headers of one API. Raises `DeclarationError` for headers that cannot be sent."""

    def __init__(self, headers: HeaderSource | None, forward: Collection[str]) -> None:
        self._fixed: dict[str, str] = {}
        self._source: Callable[..., Any] | None = None
        if callable(headers):
            self._source = headers
        elif isinstance(headers, Mapping):
            self._fixed = _validate_fixed(headers)
        elif headers is not None:
            raise DeclarationError(
                f"headers= must be a mapping of strings, or a function that returns one, not {headers!r:.100}"
            )
        if isinstance(forward, str):
            raise DeclarationError(f'forward= must be a list of names: forward=["{forward}"]')
        self._forward = [name.lower() for name in forward]
        self._needs_context = self._source is not None and bool(inspect.signature(self._source).parameters)

    @property
    def context(self) -> bool:
        """Whether the headers depend on the call."""
        return self._needs_context or bool(self._forward)

    @property
    def names(self) -> set[str]:
        """The lower-case names of headers that a model cannot set."""
        return {*self._fixed, *self._forward}

    async def for_call(self, context: Context | None) -> dict[str, str]:
        """Return the headers for one call. Raises `ToolError` if the function fails."""
        forwarded: dict[str, str] = {}
        if self._forward and context is not None:
            request_headers = context.headers
            forwarded = {name: request_headers[name] for name in self._forward if name in request_headers}
        return {**sendable(forwarded), **self._fixed, **await self._from_source(context)}

    async def _from_source(self, context: Context | None) -> dict[str, str]:
        if self._source is None:
            return {}
        try:
            headers = self._source(context) if self._needs_context else self._source()
            return validated_headers(await headers if inspect.isawaitable(headers) else headers)
        except ToolError:
            raise
        except Exception as exc:
            raise ToolError(f"the function for headers failed: {describe_redacted(exc)}") from exc


def _validate_fixed(headers: Mapping[str, str]) -> dict[str, str]:
    try:
        return validated_headers(headers)
    except TargetError as exc:
        raise DeclarationError(str(exc)) from exc


def sendable(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers if all can be sent. Raises `InvalidArguments` for one that cannot, such as one with a line
    break.
    """
    try:
        return validated_headers(headers)
    except TargetError as exc:
        raise InvalidArguments(str(exc)) from exc
