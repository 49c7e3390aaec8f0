"""The spellings of one URI: a rule about `docs://private/*` also covers `docs://%70rivate/x` and `docs://a/../private/x`.

A rule is compared with every reading that a handler, a file system or another server may have of a URI. So a rule may
cover more than it names, and never less.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from accord.messages.bounds import normalize

_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_HOST = re.compile(r"(?<![A-Za-z0-9+.-])[0-9+.-]*+[A-Za-z][A-Za-z0-9+.-]*+:(?://[^/?#]*)?")
"""A scheme, with the host behind it. It is looked for only where a run of its characters begins: linear time."""
_SEGMENT = r"[a-z0-9_~-](?:[a-z0-9._~-]*[a-z0-9_~-])?"
_ONE_SPELLING = re.compile(rf"[a-z][a-z0-9+.-]*:(?://)?{_SEGMENT}(?:/{_SEGMENT})*")
"""URIs that have one reading only: most of them, recognized in one step."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u180b-\u180f\u200b-\u200f\u2060-\u206f\ufe00-\ufe0f\ufeff\U0001bca0-\U0001bca3\U000e0000-\U000e0fff]"
)
"""Characters that IDNA drops."""
_USERS = (
    re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#\\]*@"),
    re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@"),
)
"""A user before a host. A browser ends the host at a backslash, `urllib.parse` does not."""
_PORT = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://(?:\[[^\]]*\]|[^/?#\\:\[]*)):[^/?#\\]*")
"""A port behind a host, also one that is no number: `hostname` of `urllib.parse` does not look at it."""
_PARAMETERS = re.compile(r";[^/?#\\]*")
_ROUNDS = 4
"""How often escapes are decoded: `%252f` is `/` to whoever decodes twice."""
MAX_SPELLINGS = 64
"""Readings of one URI; what has more is written to be misread, and is hidden wherever there are rules."""


def canonical(uri: str) -> str:
    """Normalize a URI: scheme and host in lower case, escapes of unreserved characters decoded, the others in capitals
    (RFC 3986, 6.2.2.1 and 6.2.2.2). Equal URIs have one canonical form.
    """
    if _ONE_SPELLING.fullmatch(uri):
        return uri
    return _ESCAPE.sub(_normal_escape, _lower_host(_ESCAPE.sub(_normal_escape, uri)))


def spellings(name: str, *, whole: bool = False) -> tuple[str, ...]:
    """Return the readings of a URI that rules are compared with, itself first; a name that is no URI has one. `whole`:
    only those with all of its parts, of a URI whose port, parameters, query and fragment a program names and means.

    There are at most `MAX_SPELLINGS`; a URI with that many has more, which are left out.
    """
    if ":" not in name or _ONE_SPELLING.fullmatch(name):
        return (name,)
    return _spellings(name, whole)


@lru_cache(maxsize=8)  # one request asks about one URI many times, and few are long enough to be felt
def _spellings(name: str, whole: bool) -> tuple[str, ...]:
    found = dict.fromkeys((name, *decoded(name)))
    for form in list(found):
        for parsed in _parsed(form, whole):
            if parsed not in found:
                found |= dict.fromkeys((parsed, *decoded(parsed)))  # whoever parses first decodes each part
    for form in list(found):
        path = form if whole else re.split("[?#]", form, maxsplit=1)[0]
        found |= dict.fromkeys((path, *resolved(path)))
        if path != form:
            found |= dict.fromkeys(resolved(form))  # as a file system, where `?` and `#` are letters of a name
        if len(found) >= MAX_SPELLINGS:
            break
    found |= dict.fromkeys(map(with_ordered_query, found))
    return tuple(found)[:MAX_SPELLINGS]


def with_ordered_query(uri: str) -> str:
    """Return a URI with the parameters of its query in alphabetical order, for whoever reads them by their names."""
    before, mark, query = uri.partition("?")
    if "&" not in query:
        return uri
    query, sign, fragment = query.partition("#")
    return before + mark + "&".join(sorted(query.split("&"))) + sign + fragment


def decoded(name: str) -> Iterator[str]:
    """The canonical form, and what is left after decoding all escapes, once and more often."""
    yield canonical(name)
    for _ in range(_ROUNDS):
        decoded = unquote(name)
        yield _lower_host(normalize("NFC", decoded))
        if decoded == name:
            return
        name = decoded


def _parsed(uri: str, whole: bool) -> Iterator[str]:
    """Yield what the parser of a URL makes of a URI: `urllib.parse.urlsplit` drops line breaks, tabs and what stands
    before the scheme, `hostname` has no user and no port, IDNA has one form of a letter (UTS 46), and parameters behind
    a `;` are not part of the path.
    """
    plain = _CONTROL.sub("", uri).strip()
    if not plain.isascii():
        plain = _IGNORABLE.sub("", normalize("NFKC", plain)).replace("\u3002", ".")
    plain = _lower_host(plain)
    for user in _USERS:
        alone = _lower_host(user.sub(r"\1", plain))
        yield alone
        if not whole:
            yield _PARAMETERS.sub("", _PORT.sub(r"\1", alone))


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
    """Return the spellings of names that a program gave; a port or a query that it names is meant."""
    return frozenset(spelling for name in names for spelling in spellings(name, whole=True))


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
