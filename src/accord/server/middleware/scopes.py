"""RequireScopes: what only some may see, by name or by tag."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from accord.errors import DeclarationError, InvalidParams, ProtocolError, ResourceNotFound
from accord.messages.prompts import Prompt
from accord.messages.tools import Tool
from accord.server.compose.visibility import words
from accord.server.listing import listed_as
from accord.server.middleware.request import CallNext, Request


class RequireScopes:
    """Ask for scopes by name or tag: `RequireScopes({"delete_*": {"admin"}}, tags={"billing": {"finance"}})`.

    Names are those of tools and prompts, URIs, and texts of templates, as patterns (`*`, `?`, `[a-z]`). What several
    ask for is asked for together. For whoever was not granted all of it, it does not exist: it is not listed, and a
    call is answered like that of an unknown name, since "forbidden" would say that it is there. A client that started
    this server is asked for no scopes. Raises `DeclarationError` for scopes that are a single text.

    A URI may be written in several ways, and a template may answer to all: name the whole template, not a URI in it.
    """

    def __init__(
        self,
        names: Mapping[str, Collection[str]] | None = None,
        *,
        tags: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self._names = {pattern: words("scopes", scopes) for pattern, scopes in (names or {}).items()}
        self._tags = {tag: words("scopes", scopes) for tag, scopes in (tags or {}).items()}
        if not self._names and not self._tags:
            raise DeclarationError('say what asks for which scopes: RequireScopes({"delete_*": {"admin"}})')

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`. Raises the error of an unknown name."""
        if request.local:
            return await call_next(request)
        granted = frozenset() if request.principal is None else request.principal.scopes
        if request.lists:
            items = await call_next(request)
            return [each for each in items if self._wanted(_known(each), request.tags_of(listed_as(each))) <= granted]
        if not self._wanted((request.name, request.declared_as), request.tags) <= granted:
            raise _unknown(request)
        return await call_next(request)

    def _wanted(self, names: Iterable[str], tags: Collection[str]) -> frozenset[str]:
        """The scopes that something asks for."""
        found = [scopes for pattern, scopes in self._names.items() if any(fnmatchcase(name, pattern) for name in names)]
        found += [scopes for tag, scopes in self._tags.items() if tag in tags]
        return frozenset().union(*found)


def _known(definition: Any) -> tuple[str]:
    return (listed_as(definition),)


def _unknown(request: Request) -> ProtocolError:
    """As for a name that was never there, see `server.finding`."""
    if isinstance(request.definition, Tool):
        return InvalidParams(f"no tool {request.asked_for!r}")
    if isinstance(request.definition, Prompt):
        return InvalidParams(f"no prompt {request.asked_for!r}")
    if request.method == "completion/complete":
        return InvalidParams(f"no resource template {request.asked_for!r}")
    return ResourceNotFound(uri=request.asked_for)
