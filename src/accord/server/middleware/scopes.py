"""`RequireScopes`: access control by name or by tag."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fnmatch import translate
from typing import Any

from accord.errors import DeclarationError, InvalidParams, ProtocolError, ResourceNotFound
from accord.server.compose.uri_spelling import decoded, is_misread, resolved, spellings, with_ordered_query
from accord.server.core.registration import definition_key
from accord.server.core.visibility import words
from accord.server.declare.templates import Template
from accord.server.middleware.chain import only_guards
from accord.server.middleware.request import CallNext, Request

_KINDS = {"tools/call": "tool", "prompts/get": "prompt"}

_HOW = 'say what asks for which scopes: RequireScopes({"delete_*": {"admin"}}, tags={"billing": {"finance"}})'


class RequireScopes:
    """A middleware that requires scopes by name or tag:

        RequireScopes({"delete_*": {"admin"}}, tags={"billing": {"finance"}})

    Names are those of tools and prompts, URIs, and texts of templates, as patterns (`*`, `?`, `[a-z]`). The scopes of
    several matching rules are all required. For a principal without them, the registration does not exist: it is not
    listed, and a call fails like that of an unknown name, since "forbidden" would reveal it. A client that started this
    server needs no scopes. Raises `DeclarationError` for scopes that are a single string.

    It is the same as `scopes=` of each registration, so its place among the middleware does not matter. A pattern
    covers a registration by all of its current and former names (in a mounted server, before a `ToolChange`) and a URI
    in every spelling; `docs://private/*` also covers `docs://private`, and the text of a template every URI that it
    matches.
    """

    def __init__(
        self,
        names: Mapping[str, Collection[str]] | None = None,
        *,
        tags: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        if not isinstance(names or {}, Mapping) or not isinstance(tags or {}, Mapping):
            raise DeclarationError(_HOW)
        self._names = [(NamePattern(pattern), words("scopes", scopes)) for pattern, scopes in (names or {}).items()]
        self._tags = {tag: words("scopes", scopes) for tag, scopes in (tags or {}).items()}
        if not self._names and not self._tags:
            raise DeclarationError(_HOW)

    def scopes_of(self, name: str, tags: Collection[str]) -> frozenset[str]:
        """Return the scopes that a registration requires: see `MiddlewareStep.guard`."""
        found = [scopes for pattern, scopes in self._names if pattern.covers(name)]
        found += [scopes for tag, scopes in self._tags.items() if tag in tags]
        return frozenset().union(*found)

    @only_guards
    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """Check a request that your own middleware passes on to this one. On a server, and around one tool, it is not
        called: `scopes_of` is called before. Raises `InvalidParams` and `ResourceNotFound`, as for a name that does not
        exist.
        """
        if request.local:
            return await call_next(request)
        granted = frozenset() if request.principal is None else request.principal.scopes
        if request.lists:
            listed = {definition_key(each): each for each in await call_next(request)}
            return [
                each for name, each in listed.items() if self._required_scopes(name, request.tags_of(name)) <= granted
            ]
        template = _template(request.declared_as)
        names = {request.name, request.declared_as, request.name if template is None else template.plain(request.name)}
        for name in names:
            if is_misread(name) or not self._required_scopes(name, request.tags) <= granted:
                raise _unknown(request)
        return await call_next(request)

    def _required_scopes(self, name: str, tags: Collection[str]) -> frozenset[str]:
        return frozenset().union(*(self.scopes_of(each, tags) for each in spellings(name)))


def _unknown(request: Request) -> ProtocolError:
    """Return the error for a name that does not exist."""
    kind, name = _KINDS.get(request.method), request.asked_for
    if request.method == "completion/complete":
        kind = "resource template" if ":" in name else "prompt"
    return ResourceNotFound(uri=name) if kind is None else InvalidParams(f"no {kind} {name!r:.200}")


class NamePattern:
    """A pattern of a rule: `delete_*`, `docs://private/*`, or the text of a template (`rows://{+table}`).

    `docs://private/*` and `docs://private/**` also cover `docs://private`, which lists its contents; the text of a
    template covers every URI that the template matches, whichever registration serves it.
    """

    def __init__(self, text: str) -> None:
        forms = {text: None}
        if ":" in text:
            for form in (text, *decoded(text)):
                forms |= dict.fromkeys((form, *resolved(form), with_ordered_query(form)))
            forms |= {form.rstrip("*")[:-1]: None for form in list(forms) if form.endswith(("/*", "/**"))}
        self._matches = re.compile("|".join(map(translate, forms))).match
        self._template = _template(text)

    def covers(self, name: str) -> bool:
        """Return whether the pattern matches a name, or a URI in this spelling; see `spellings`."""
        if self._matches(name):
            return True
        return self._template is not None and _is_matched(self._template, name)


def _template(text: str) -> Template | None:
    if ":" not in text or "{" not in text:
        return None
    try:
        return Template(text)
    except DeclarationError:  # a pattern that happens to have a brace
        return None


def _is_matched(template: Template, uri: str) -> bool:
    literal = template.text.partition("{")[0]
    if template.text == f"{literal}{{+{template.variables[0]}}}" and "%" not in literal:
        return uri.startswith(literal)  # such as the template of a directory with thousands of URIs
    return template.match(uri) is not None
