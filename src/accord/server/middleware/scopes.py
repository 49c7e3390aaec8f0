"""RequireScopes: what only some may see, by name or by tag."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

from accord.errors import DeclarationError, InvalidParams, ProtocolError, ResourceNotFound
from accord.messages.prompts import Prompt
from accord.messages.tools import Tool
from accord.server.compose.visibility import words
from accord.server.listing import listed_as
from accord.server.middleware.request import CallNext, Request

_HOW = 'say what asks for which scopes: RequireScopes({"delete_*": {"admin"}}, tags={"billing": {"finance"}})'


class RequireScopes:
    """Ask for scopes by name or tag: `RequireScopes({"delete_*": {"admin"}}, tags={"billing": {"finance"}})`.

    Names are those of tools and prompts, URIs, and texts of templates, as patterns (`*`, `?`, `[a-z]`). What several
    ask for is asked for together. For whoever was not granted all of it, it does not exist: it is not listed, and a
    call is answered like that of an unknown name, since "forbidden" would say that it is there. A client that started
    this server is asked for no scopes. Raises `DeclarationError` for scopes that are a single text.

    On a server it is the same as `scopes=` of each thing, so its place among the middleware does not matter. A URI may
    be written in several ways, and a template may answer to all: name the whole template, not a URI in it.
    """

    def __init__(
        self,
        names: Mapping[str, Collection[str]] | None = None,
        *,
        tags: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        if not isinstance(names or {}, Mapping) or not isinstance(tags or {}, Mapping):
            raise DeclarationError(_HOW)
        self._names = {pattern: words("scopes", scopes) for pattern, scopes in (names or {}).items()}
        self._tags = {tag: words("scopes", scopes) for tag, scopes in (tags or {}).items()}
        if not self._names and not self._tags:
            raise DeclarationError(_HOW)

    def scopes_of(self, name: str, tags: Collection[str]) -> frozenset[str]:
        """The scopes that something asks for: see `Around.guard`."""
        found = [scopes for pattern, scopes in self._names.items() if fnmatchcase(name, pattern)]
        found += [scopes for tag, scopes in self._tags.items() if tag in tags]
        return frozenset().union(*found)

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`. For what a provider lists, what a rule says of one URI of a template, and where
        this stands around one function. Raises the error of an unknown name.
        """
        if request.local:
            return await call_next(request)
        granted = frozenset() if request.principal is None else request.principal.scopes
        if request.lists:
            items = [(listed_as(each), each) for each in await call_next(request)]
            return [each for name, each in items if self.scopes_of(name, request.tags_of(name)) <= granted]
        wanted = [self.scopes_of(name, request.tags) for name in (request.name, request.declared_as)]
        if not frozenset().union(*wanted) <= granted:
            raise _unknown(request)
        return await call_next(request)


def _unknown(request: Request) -> ProtocolError:
    """As for a name that was never there, see `server.finding`."""
    if isinstance(request.definition, Tool):
        return InvalidParams(f"no tool {request.asked_for!r:.200}")
    if isinstance(request.definition, Prompt):
        return InvalidParams(f"no prompt {request.asked_for!r:.200}")
    if request.method == "completion/complete":
        return InvalidParams(f"no resource template {request.asked_for!r:.200}")
    return ResourceNotFound(uri=request.asked_for)
