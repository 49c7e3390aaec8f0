"""The skipped operations of an API, and the check that no argument of another operation reaches one.

`DELETE /{kind}/{id}` reaches a skipped `DELETE /tenants/{id}` if `kind` is "tenants". So a filled path is compared with
the templates of all skipped operations, segment by segment, in every reading that a server may have of it: decoded once
or more, in another case, without `.`, `..`, empty segments, parameters after `;`, the text after a decoded `?` or `#`,
and a format suffix (`/tenants.json`), which some frameworks remove.

A more specific template than the skipped one remains callable: "concrete (non-templated) paths would be matched before
their templated counterparts" (OpenAPI, Paths Object). So `/users/{id}/posts` remains, where `/users/{id}/{part}` is
skipped.
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
"""Matches the member of a query or body by which many frameworks override the method. PHP reads `.` as `_`, and NUL as
the end of a name.
"""
_ANYTHING, _PARTLY, _LITERAL = range(3)
"""How specific a segment of a template is, in ascending order."""


class SkippedPaths:
    """The skipped operations of one API."""

    def __init__(self) -> None:
        self._templates: dict[str, dict[str, _PathPattern]] = {}

    def add(self, method: str, template: str) -> None:
        """Skip an operation."""
        self._templates.setdefault(_same(method), {})[template] = _PathPattern(template)

    def has(self, method: str) -> bool:
        """Return whether operations with this method are skipped."""
        return _same(method.strip().upper()) in self._templates

    def reached_by(self, method: str, template: str, path: str) -> bool:
        """Return whether a path, filled from `template` or the target of a redirect, may reach a skipped operation."""
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
        """Return whether a member of a query or body overrides the method with that of a skipped operation."""
        return any(_OVERRIDE.match(name) and any(map(self.has, _texts(value))) for name, value in members)

    def chosen_by_query(self, query: str) -> bool:
        """Return whether a query or URL-encoded form does so; some servers also split at `;`."""
        return self.chosen_by(parse_qsl(query)) or (";" in query and self.chosen_by(parse_qsl(query, separator=";")))


class _PathPattern:
    """The path template of an operation, by segments."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _segments(self) -> list[tuple[int, re.Pattern[str]]]:
        return [_compile(segment) for segment in self._text.split("/") if segment]

    def matches(self, path: tuple[str, ...]) -> bool:
        """Return whether the template matches a path; a trailing variable may match several segments."""
        segments = self._segments
        if len(path) > len(segments) and segments and segments[-1][0] == _ANYTHING:
            path = (*path[: len(segments) - 1], "/".join(path[len(segments) - 1 :]))
        if len(path) != len(segments):
            return False
        return all(pattern.fullmatch(part) for (_, pattern), part in zip(segments, path, strict=True))

    def is_more_specific(self, other: _PathPattern) -> bool:
        """Return whether this template takes precedence over `other`: no segment is less specific, and
        one is more so.
        """
        pairs = [(mine[0], others[0]) for mine, others in zip(self._segments, other._segments, strict=False)]
        longer = len(self._segments) > len(other._segments)
        return all(mine >= others for mine, others in pairs) and (
            longer or any(mine > others for mine, others in pairs)
        )


def _compile(segment: str) -> tuple[int, re.Pattern[str]]:
    parts = VARIABLE.split(segment)
    literals, is_variable = parts[::2], len(parts) > 1
    kind = _LITERAL if not is_variable else _PARTLY if any(literals) else _ANYTHING
    pattern = "?*".join(escape(_plain(literal)) for literal in literals)
    return kind, re.compile(translate(pattern))


def _readings(path: str) -> Iterator[tuple[str, ...]]:
    """Yield the segments of a path in every reading of a server: an encoded slash is a slash or not; `;` begins a
    parameter or not; a decoded `?` or `#` ends the path or not; a format suffix ends it or not.
    """
    for _ in range(_ROUNDS):
        for text in {path, _QUERY.split(path, maxsplit=1)[0]}:
            for segments in (text.split("/"), _SLASHES.split(text)):
                yield from _without_format(_resolve_segments(segments))
                yield from _without_format(_resolve_segments([segment.partition(";")[0] for segment in segments]))
        path = unquote(path)


def _without_format(segments: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the segments as they are, and without a format suffix."""
    yield segments
    if segments:
        name, dot, suffix = segments[-1].rpartition(".")
        if name and _FORMAT.fullmatch(dot + suffix):
            yield (*segments[:-1], name)


def _resolve_segments(segments: list[str]) -> tuple[str, ...]:
    path: list[str] = []
    for segment in (_plain(each).strip() for each in segments):
        if segment == "..":
            del path[-1:]
        elif segment not in ("", "."):
            path.append(segment)
    return tuple(path)


def _plain(text: str) -> str:
    for _ in range(_ROUNDS):
        text = unquote(text)
    return normalize("NFKC", text).casefold()


def _texts(value: Any) -> list[str]:
    """Return a string, or the strings of a list, as a list."""
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _same(method: str) -> str:
    """Return the canonical method: many servers answer HEAD with the operation of GET."""
    return "GET" if method == "HEAD" else method
