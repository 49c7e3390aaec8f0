"""The spellings of one URI: a rule about `docs://private/*` also covers `docs://%70rivate/x` and `docs://a/../private/x`.

A rule is compared with every reading that a handler, a file system or another server may have of a URI. So a rule may
cover more than it names, and never less.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/?#]*)?")
_SEGMENT = r"[a-z0-9_~-](?:[a-z0-9._~-]*[a-z0-9_~-])?"
_ONE_SPELLING = re.compile(rf"[a-z][a-z0-9+.-]*:(?://)?{_SEGMENT}(?:/{_SEGMENT})*")
"""URIs that have one reading only: most of them, recognized in one step."""
_ROUNDS = 4
"""How often escapes are decoded: `%252f` is `/` to whoever decodes twice."""


def canonical(uri: str) -> str:
    """Normalize a URI: scheme and host in lower case, escapes of unreserved characters decoded, the others in capitals
    (RFC 3986, 6.2.2.1 and 6.2.2.2). Equal URIs have one canonical form.
    """
    if _ONE_SPELLING.fullmatch(uri):
        return uri
    return _ESCAPE.sub(_normal_escape, _lower_host(_ESCAPE.sub(_normal_escape, uri)))


def spellings(name: str) -> tuple[str, ...]:
    """Return the readings of a URI that rules are compared with, itself first; a name that is no URI has one."""
    if ":" not in name or _ONE_SPELLING.fullmatch(name):
        return (name,)
    found = dict.fromkeys((name, *decoded(name)))
    for form in list(found):
        path = re.split("[?#]", form, maxsplit=1)[0]
        found |= dict.fromkeys((path, *resolved(path)))
    return tuple(found)


def decoded(name: str) -> Iterator[str]:
    """The canonical form, and what is left after decoding all escapes, once and more often."""
    yield canonical(name)
    for _ in range(_ROUNDS):
        decoded = unquote(name)
        yield _lower_host(unicodedata.normalize("NFC", decoded))
        if decoded == name:
            return
        name = decoded


def resolved(path: str) -> Iterator[str]:
    """The same without empty segments, `.` and `..`; a host counts as a segment once, and once not."""
    head = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?://)?", path)
    start = head[0] if head else ""
    segments = re.split(r"[/\\]", path[len(start) :])
    for host in (0, 1):
        kept = segments[:host]
        for segment in segments[host:]:
            if segment == "..":
                del kept[max(len(kept) - 1, host) :]
            elif segment not in ("", "."):
                kept.append(segment)
        path = start + "/".join(kept)
        yield path
        # as file systems that ignore case, and dots and blanks at the end of a name
        yield start + "/".join(segment.rstrip(". \t") for segment in kept).casefold()


def _normal_escape(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if character in _UNRESERVED else found[0].upper()


def _lower_host(uri: str) -> str:
    return _HOST.sub(lambda found: found[0].lower(), uri, count=1)


@lru_cache(maxsize=256)
def all_spellings(names: frozenset[str]) -> frozenset[str]:
    """Return the spellings of names that a program gave."""
    return frozenset(spelling for name in names for spelling in spellings(name))


@lru_cache(maxsize=256)
def all_canonical(names: frozenset[str]) -> frozenset[str]:
    """Return the canonical forms of names that a program gave."""
    return frozenset(map(canonical, names))


def canonical_index(held: dict[str, Any]) -> dict[str, Any]:
    """Return what is held by URI, by canonical URI; the first of two that are equal."""
    index: dict[str, Any] = {}
    for uri, each in held.items():
        index.setdefault(canonical(uri), each)
    return index
