"""Operations that were skipped, and that no argument of another operation may reach.

`DELETE /{kind}/{id}` reaches a skipped `DELETE /tenants/{id}` when `kind` is "tenants". A filled path is compared with
the templates of all skipped operations, segment by segment, in every reading that a server may have of it: decoded once
and more often, in other case, without `.`, `..`, empty segments, parameters behind a `;`, what follows a decoded `?` or
`#`, and a format at the end (`/tenants.json`), which some frameworks take off.

A template that says more about a path than a skipped one keeps it: "concrete (non-templated) paths would be matched
before their templated counterparts" (OpenAPI, Paths Object). So `/users/{id}/posts` stays, where `/users/{id}/{part}`
is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import translate
from functools import cached_property
from glob import escape
from typing import Any
from urllib.parse import parse_qsl, unquote

from accord.messages.bounds import normalize
from accord.server.openapi.address import VARIABLE

_ROUNDS = 3
_SLASHES = re.compile(r"[/\\]")
_QUERY = re.compile(r"[?#]")
_FORMAT = re.compile(r"\.(?:json|xml|html?|txt|csv|ya?ml|js|pdf|rss|atom)?")
_OVERRIDE = re.compile(r"\s*[_. ]method\s*(?:[\[\0]|$)", re.IGNORECASE)
"""The member of a query or a body by which many frameworks choose the method; PHP takes a `.` for a `_`, and a NUL for
the end of a name.
"""
_ANYTHING, _PARTLY, _LITERAL = range(3)
"""How much a segment of a template says."""


class SkippedPaths:
    """The skipped operations of one API."""

    def __init__(self) -> None:
        self._templates: dict[str, dict[str, _PathPattern]] = {}

    def add(self, method: str, template: str) -> None:
        """Skip an operation."""
        self._templates.setdefault(_same(method), {})[template] = _PathPattern(template)

    def has(self, method: str) -> bool:
        """Return whether there are operations of a method that are skipped."""
        return _same(method.strip().upper()) in self._templates

    def reached_by(self, method: str, template: str, path: str) -> bool:
        """Return whether a path that `template` was filled to, or was redirected to, is one of a skipped operation."""
        skipped = self._templates.get(_same(method))
        if not skipped:
            return False
        offered, readings = _PathPattern(template), set(_readings(path))
        wider = [each for each in skipped.values() if offered.is_more_specific(each)]
        return any(
            each.matches(reading) and not (each in wider and offered.matches(reading))
            for each in skipped.values()
            for reading in readings
        )

    def chosen_by(self, members: Iterable[tuple[str, Any]]) -> bool:
        """Return whether a member of a query or a body has a server take a request for one of a skipped operation."""
        return any(_OVERRIDE.match(name) and any(map(self.has, _texts(value))) for name, value in members)

    def chosen_by_query(self, query: str) -> bool:
        """Return whether a query, or a form that is written like one, does so; some servers divide it at a `;` too."""
        return self.chosen_by(parse_qsl(query)) or (";" in query and self.chosen_by(parse_qsl(query, separator=";")))


class _PathPattern:
    """The path of an operation, by segments."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _segments(self) -> list[tuple[int, re.Pattern[str]]]:
        return [_compiled(segment) for segment in self._text.split("/") if segment]

    def matches(self, path: tuple[str, ...]) -> bool:
        """Return whether it is a template of a path; a variable at its end may stand for several segments."""
        segments = self._segments
        if len(path) > len(segments) and segments and segments[-1][0] == _ANYTHING:
            path = (*path[: len(segments) - 1], "/".join(path[len(segments) - 1 :]))
        if len(path) != len(segments):
            return False
        return all(pattern.fullmatch(part) for (_, pattern), part in zip(segments, path, strict=True))

    def is_more_specific(self, other: _PathPattern) -> bool:
        """Return whether it is chosen before another where both match: at no place it says less, and at one more."""
        pairs = [(mine[0], others[0]) for mine, others in zip(self._segments, other._segments, strict=False)]
        longer = len(self._segments) > len(other._segments)
        return all(mine >= others for mine, others in pairs) and (
            longer or any(mine > others for mine, others in pairs)
        )


def _compiled(segment: str) -> tuple[int, re.Pattern[str]]:
    parts = VARIABLE.split(segment)
    literals, is_variable = parts[::2], len(parts) > 1
    kind = _LITERAL if not is_variable else _PARTLY if any(literals) else _ANYTHING
    pattern = "?*".join(escape(_plain(literal)) for literal in literals)
    return kind, re.compile(translate(pattern))


def _readings(path: str) -> Iterator[tuple[str, ...]]:
    """The segments of a path, as a server may read it: an encoded slash is a slash, or is none; a `;` begins a
    parameter, or does not; a decoded `?` ends it, or does not; and so does a format.
    """
    for _ in range(_ROUNDS):
        for text in {path, _QUERY.split(path, maxsplit=1)[0]}:
            for segments in (text.split("/"), _SLASHES.split(text)):
                yield from _without_format(_resolved(segments))
                yield from _without_format(_resolved([segment.partition(";")[0] for segment in segments]))
        path = unquote(path)


def _without_format(segments: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the segments as they are, and without a format at their end."""
    yield segments
    if segments:
        name, dot, suffix = segments[-1].rpartition(".")
        if name and _FORMAT.fullmatch(dot + suffix):
            yield (*segments[:-1], name)


def _resolved(segments: list[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for segment in (_plain(each).strip() for each in segments):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    return tuple(kept)


def _plain(text: str) -> str:
    for _ in range(_ROUNDS):
        text = unquote(text)
    return normalize("NFKC", text).casefold()


def _texts(value: Any) -> list[str]:
    """Return a text, or those in a list."""
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _same(method: str) -> str:
    """Methods that reach one operation: many servers answer HEAD with what they have for GET."""
    return "GET" if method == "HEAD" else method
