"""Scopes that imply others: "Servers MUST account for scope hierarchies, where a broader scope implies narrower ones"
(Authorization, Step-Up Authorization Flow).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from accord.errors import DeclarationError
from accord.server.core.visibility import words

_SETS = 1_024
"""Limit of the sets of scopes that are shared."""
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+").fullmatch


def scope_set(option: str, scopes: Iterable[str]) -> frozenset[str]:
    """Return the scopes of an option. Raises `DeclarationError` for what is no scope (RFC 6749, 3.3), and for
    `offline_access`.

    "MCP Servers (Protected Resources) SHOULD NOT include `offline_access` in `WWW-Authenticate` scope or Protected
    Resource Metadata `scopes_supported`" (Authorization, Refresh Tokens).
    """
    found = words(option, scopes)
    for scope in found:
        if not isinstance(scope, str) or not _SCOPE(scope):
            raise DeclarationError(f"{option}=: {scope!r} is not a scope: printable ASCII without blanks and quotes")
    if "offline_access" in found:
        raise DeclarationError(
            f"{option}= has offline_access: that is for clients that want a refresh token, no server needs it"
        )
    return found


class ScopeHierarchy:
    """The scopes that each scope implies, directly or through others: `{"admin": {"read", "write"}}`.

    Raises `DeclarationError`.
    """

    __slots__ = ("_expanded", "_implied")

    def __init__(self, implies: Mapping[str, Collection[str]] | None = None) -> None:
        if not isinstance(implies or {}, Mapping):
            raise DeclarationError('implies= must be a mapping: implies={"admin": {"read", "write"}}')
        direct = {scope: scope_set("implies", implied) for scope, implied in (implies or {}).items()}
        scope_set("implies", direct)
        self._implied = {scope: _reachable(scope, direct) for scope in direct}
        self._expanded: dict[frozenset[str], frozenset[str]] = {}

    def expand(self, scopes: Iterable[str]) -> frozenset[str]:
        """Return scopes with all that they imply. Equal sets are mostly one object, since a server caches many."""
        granted = frozenset(scopes)
        expanded = self._expanded.get(granted)
        if expanded is None:
            if len(self._expanded) >= _SETS:
                self._expanded.clear()
            expanded = granted.union(*(self._implied.get(scope, ()) for scope in granted))
            self._expanded[granted] = expanded
        return expanded


def _reachable(scope: str, direct: Mapping[str, frozenset[str]]) -> frozenset[str]:
    found: set[str] = set()
    following = list(direct[scope])
    while following:
        each = following.pop()
        if each not in found:
            found.add(each)
            following.extend(direct.get(each, ()))
    return frozenset(found)
