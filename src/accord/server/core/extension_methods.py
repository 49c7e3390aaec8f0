"""The handlers of extension methods and notifications on the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from accord.errors import DeclarationError, NotSupported, ToolError
from accord.messages.extension import Extension, results_of, rows_of
from accord.messages.meta import Result
from accord.messages.methods import Method
from accord.server.core.registration import Registration
from accord.server.declare.signature import signature
from accord.session.pending_request import PendingRequest
from accord.session.session import Session


class ExtensionMethods:
    """The extensions of one server, their methods and the handlers of these."""

    def __init__(self, extensions: Sequence[Extension]) -> None:
        self.extensions: tuple[Extension, ...] = tuple(extensions)
        self.methods: list[Method] = rows_of(extensions)
        self.registrations: dict[str, Registration] = {}
        self._by_result_type = {kind: one for one in extensions for kind in one.results}
        self.result_types: tuple[type[Any], ...] = tuple(results_of(extensions).values())
        """The result types that the extensions define."""

    def declare(self, extension: Extension) -> None:
        """Add an extension, unless it was added before."""
        if extension not in self.extensions:
            self.extensions = (*self.extensions, extension)
            self.methods = rows_of(self.extensions)

    def add(self, name: str, function: Callable[..., Any], context: type) -> None:
        """Register the handler of a method or notification. Raises `DeclarationError` for a name that no extension
        declares, and for one that has a handler.
        """
        row = next((row for row in self.methods if row.name == name), None)
        if row is None:
            raise DeclarationError(f"no extension of this server declares the method {name!r}")
        if name in self.registrations:
            raise DeclarationError(f"{name!r} is declared twice")
        registration = self.registrations[name] = _registration(function, context)
        if row.notification and registration.context:
            raise DeclarationError(f"{name!r} is a notification, so its handler gets no Context")

    def check(self, result: Result, pending: PendingRequest, session: Session) -> None:
        """Raise `MissingClientCapability` or `NotSupported` if the client does not support this result type.

        "The set of supported ResultType values MUST be created from the set defined in the core protocol and include
        any additional values of supported extensions" (2026-07-28, basic): other clients could not read it.
        """
        if not pending.rules.result_type:
            raise NotSupported(f"{pending.rules.revision} has no result types")
        extension = self._by_result_type.get(result.result_type or "")
        if extension is None:
            raise ToolError(f"no extension of this server has results of type {result.result_type!r}")
        session.require_client_capability(pending, extension.capability)


def _registration(function: Callable[..., Any], context: type) -> Registration:
    """Return the registration of a handler that takes the params and, optionally, the context. Raises
    `DeclarationError`.
    """
    read = signature(function, context=context)
    if len(read.names) > 1:
        raise DeclarationError(f"{read.name} must take the params of its method and, optionally, a Context")

    def bind(params: Any, ctx: Any) -> tuple[tuple[()], dict[str, Any]]:
        named = dict.fromkeys(read.names, params)
        if read.context is not None:
            named[read.context] = ctx
        return (), named

    return Registration(
        function,
        lambda _: None,
        bind=bind,
        context=read.context is not None,
        is_async=read.is_async,
    )
