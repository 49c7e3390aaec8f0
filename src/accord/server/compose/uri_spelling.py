"""The spellings of a URI: a rule for `docs://private/*` also covers `docs://%70rivate/x` and `docs://a/../private/x`.

A rule is compared with every reading that a handler, a file system or another server may have of a URI. So a rule may
cover more than its text, and never less.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from sys import getsizeof
from typing import Any

from accord.lazy_patterns import lazy_pattern
from accord.messages.bounds import normalize

_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_ESCAPE = lazy_pattern("%([0-9A-Fa-f]{2})")
_HOST = lazy_pattern(r"(?<![A-Za-z0-9+.-])[0-9+.-]*+[A-Za-z][A-Za-z0-9+.-]*+:(?://[^/?#]*)?")
"""Matches a scheme with its host. A match starts only where a run of scheme characters begins: linear time."""
_SEGMENT = r"[a-z0-9_~-](?:[a-z0-9._~-]*[a-z0-9_~-])?"
_ONE_SPELLING = lazy_pattern(rf"[a-z][a-z0-9+.-]*:(?://)?{_SEGMENT}(?:/{_SEGMENT})*")
"""Matches URIs with only one reading: most URIs, in one step."""
_CONTROL = lazy_pattern(r"[\x00-\x1f\x7f]")
_IGNORABLE = lazy_pattern(
    "[\u00ad\u034f\u180b-\u180f\u200b-\u200f\u2060-\u206f\ufe00-\ufe0f\ufeff\U0001bca0-\U0001bca3\U000e0000-\U000e0fff]"
)
"""Characters that IDNA drops."""
_USERS = (
    lazy_pattern(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#\\]*@"),
    lazy_pattern(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@"),
)
"""Match user information before a host. A browser ends the host at a backslash, `urllib.parse` does not."""
_PORT = lazy_pattern(r"^([A-Za-z][A-Za-z0-9+.-]*://(?:\[[^\]]*\]|[^/?#\\:\[]*)):[^/?#\\]*")
"""Matches the port after a host, also an invalid one: `hostname` of `urllib.parse` does not check it."""
_PARAMETERS = lazy_pattern(r";[^/?#\\]*")
_ROUNDS = 4
"""Rounds of decoding: `%252f` is `/` for a program that decodes twice."""
_ROOTS = 8
"""The most segments at which a handler may begin."""
MAX_SPELLINGS = 64
"""The most readings of one URI; see `is_misread`."""
_MAX_CHARACTERS = 65_536
"""The most characters in all readings of one URI, since each is compared with each rule."""


def canonical(uri: str) -> str:
    """Return the canonical form of a URI: scheme and host in lower case, escapes of unreserved characters decoded,
    other escapes in capitals (RFC 3986, 6.2.2.1 and 6.2.2.2). Equal URIs have one canonical form.
    """
    if _ONE_SPELLING.fullmatch(uri):
        return uri
    return _ESCAPE.sub(_normal_escape, _lower_host(_ESCAPE.sub(_normal_escape, uri)))


def spellings(name: str, *, whole: bool = False) -> tuple[str, ...]:
    """Return the readings of a URI that rules are compared with, the URI itself first; a name that is no URI has one.

    `whole` restricts them to readings with all parts of the URI, for a URI in a program whose port, parameters, query
    and fragment are intended. At most `MAX_SPELLINGS` are returned; a URI with that many has more, which are left out.
    """
    if ":" not in name or _ONE_SPELLING.fullmatch(name):
        return (name,)
    return (not whole and _LISTED.readings.get(name)) or _spellings(name, whole)


def is_misread(uri: str) -> bool:
    """Return whether a URI has too many readings to compare them with rules: it is made to be misread, and is hidden if
    there are rules.
    """
    readings = spellings(uri)
    return len(readings) >= MAX_SPELLINGS or sum(map(len, readings)) > _MAX_CHARACTERS


def cache_spellings(names: Iterable[str]) -> None:
    """Cache the spellings of listed names, which rules are compared with for each page of each list."""
    for name in names:
        if name not in _LISTED.readings and len(readings := spellings(name)) > 1:
            _LISTED.add(name, readings)


class SpellingCache:
    """The spellings of names, in about `most` bytes. Only names of lists are added: a client can evict none by its
    requests.
    """

    def __init__(self, most: int) -> None:
        self.readings: dict[str, tuple[str, ...]] = {}
        """The spellings, by name."""
        self._most = most
        self._size = 0

    def add(self, name: str, readings: tuple[str, ...]) -> None:
        """Add the spellings of a name. A full cache is emptied first."""
        size = sum(map(getsizeof, readings))
        if self._size + size > self._most:
            self.readings, self._size = {}, 0
        self.readings[name] = readings
        self._size += size


_LISTED = SpellingCache(32 << 20)


@lru_cache(maxsize=8)  # one request checks one URI several times; few URIs are long enough to matter
def _spellings(name: str, whole: bool) -> tuple[str, ...]:
    readings = dict.fromkeys((name, *decoded(name)))
    for form in list(readings):
        for parsed in _parse_variants(form, whole):
            if parsed not in readings:
                readings |= dict.fromkeys((parsed, *decoded(parsed)))  # some parsers decode each part after parsing
    for form in list(readings):
        path = form if whole else re.split("[?#]", form, maxsplit=1)[0]
        readings |= dict.fromkeys((path, *resolved(path)))
        if path != form:
            readings |= dict.fromkeys(resolved(form))  # in a file system, `?` and `#` are characters of a name
        if len(readings) >= MAX_SPELLINGS:
            break
    readings |= dict.fromkeys(map(with_ordered_query, readings))
    return tuple(readings)[:MAX_SPELLINGS]


def with_ordered_query(uri: str) -> str:
    """Return a URI with its query parameters in alphabetical order, as for a handler that reads them by name."""
    before, mark, query = uri.partition("?")
    if "&" not in query:
        return uri
    query, sign, fragment = query.partition("#")
    return before + mark + "&".join(sorted(query.split("&"))) + sign + fragment


def decoded(name: str) -> Iterator[str]:
    """Yield the canonical form, and the result of each round of decoding all escapes."""
    from urllib.parse import unquote

    yield canonical(name)
    for _ in range(_ROUNDS):
        text = unquote(name)
        yield _lower_host(normalize("NFC", text))
        if text == name:
            return
        name = text


def _parse_variants(uri: str, whole: bool) -> Iterator[str]:
    """Yield the URI as parsers read it: `urllib.parse.urlsplit` drops line breaks, tabs and characters before the
    scheme, `hostname` drops user and port, IDNA maps letters to one form (UTS 46), and parameters after `;` are not
    part of the path.
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
    """Yield a path without empty segments, `.` and `..`; with the host as a segment and without. A handler may begin at
    any of the segments before the first `..`, as that of a mounted server does, and may go no further up than that.

    For file systems of POSIX, a backslash is a character of a name; for URLs (RFC 3986, 5.2.4), `..` removes an empty
    segment too.
    """
    head = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?://)?", path)
    start = head[0] if head else ""
    segments = re.split(r"[/\\]", path[len(start) :])
    yield from _resolved(start, segments)
    if "\\" in path and ".." in segments:
        yield from _resolved(start, path[len(start) :].split("/"))


def _resolved(start: str, segments: Sequence[str]) -> Iterator[str]:
    before = segments.index("..") if ".." in segments else 0
    for removed in ({"", "."}, {"."}) if {"", ".."} <= {*segments} else ({"", "."},):
        for root in range(min(max(before, 1), _ROOTS) + 1):
            path = _resolved_below(segments, root, removed)
            yield start + "/".join(path)
            # file systems may ignore case, and trailing dots and blanks
            yield start + "/".join(segment.rstrip(". \t") for segment in path).casefold()


def _resolved_below(segments: Sequence[str], root: int, removed: Collection[str]) -> list[str]:
    """Return the segments of a path for a handler that begins at segment `root`."""
    found = list(segments[: min(root, 1)])
    top = len(found) + sum(segment not in removed for segment in segments[1:root])
    for segment in segments[len(found) :]:
        if segment == "..":
            del found[max(len(found) - 1, top) :]
        elif segment not in removed:
            found.append(segment)
    return found[:1] + [segment for segment in found[1:] if segment]


def _normal_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()


def _lower_host(uri: str) -> str:
    return _HOST.sub(lambda match: match[0].lower(), uri, count=1)


@lru_cache(maxsize=256)
def all_spellings(names: frozenset[str]) -> frozenset[str]:
    """Return the spellings of names in a program, where a port or a query is intended."""
    return frozenset(spelling for name in names for spelling in spellings(name, whole=True))


@lru_cache(maxsize=256)
def all_canonical(names: frozenset[str]) -> frozenset[str]:
    """Return the canonical forms of names in a program."""
    return frozenset(map(canonical, names))


def canonical_index(registrations: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a dict keyed by URI, keyed by canonical URI; the first of equal URIs counts."""
    index: dict[str, Any] = {}
    for uri, each in registrations.items():
        index.setdefault(canonical(uri), each)
    return index
