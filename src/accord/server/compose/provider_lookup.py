"""`ProviderLookup`: the lookup of one item in all providers of a server, those of mounted servers included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accord.errors import InternalError
from accord.messages.content import Resource
from accord.messages.prompts import Prompt
from accord.messages.tools import Tool
from accord.redaction import describe_redacted
from accord.server.core.registration import Registration

Sees = Callable[[Registration], bool]
"""Returns whether the client that asks may see a registration."""

EMPTY_DEFINITIONS: dict[str, Callable[[str], Any]] = {
    "tool": lambda name: Tool(name=name, input_schema={"type": "object"}),
    "prompt": lambda name: Prompt(name=name),
    "resource": lambda uri: Resource(uri=uri, name=uri),
}
"""A definition that stands for an invalid one of this name, to find out who may see it."""


class ProviderLookup:
    """The lookup of a "tool", a "prompt" or a "resource" (by its URI).

    An item that the client may not see is as one that does not exist: all other providers are asked, and none of their
    items takes its place. So neither an error nor a delay reveals it.
    """

    def __init__(self, kind: str, name: str, sees: Sees) -> None:
        self.kind: str = kind
        self.found: Registration | None = None
        """The registration that the client may use."""
        self._name = name
        self._sees = sees
        self._is_hidden = False
        self._failure: Exception | None = None

    def offer(self, registration: Registration, error: Exception | None) -> None:
        """Use a registration that the client may see; `error` is the reason why its item is invalid."""
        if self._is_hidden or not self._sees(registration):
            self._is_hidden = True
        elif error is not None:
            self.fail(error)
        else:
            self.found = registration

    def fail(self, exc: Exception) -> None:
        """Record the failure of a provider; the first is raised."""
        self._failure = self._failure or exc

    def result(self) -> Registration | None:
        """Return the registration, or None if there is none. Raises `InternalError` if there is none and a provider
        failed.
        """
        if self.found is not None or self._failure is None:
            return self.found
        if isinstance(self._failure, InternalError):
            raise self._failure
        reason = describe_redacted(self._failure)
        raise InternalError(f"access to the {self.kind} {self._name!r} could not be checked: {reason}")
