"""The URL of a request to an API, always under the API's base URL.

A base URL has a scheme, a host, a port and the path prefix of all requests. A template contributes the segments of a
path. An argument never adds or ends a segment, and never turns one into "." or "..", neither as it is, nor decoded
once, nor decoded twice: some servers and proxies decode twice. So an argument controls one place of one URL only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote, urljoin, urlsplit

from accord.errors import DeclarationError, InvalidArguments, SchemaError
from accord.messages.bounds import URI_LENGTH, normalize
from accord.transport.http.redaction import without_credentials_malformed

VARIABLE = re.compile(r"\{([^{}]*)\}")
"""Matches a variable in a path or in the URL of a server."""
_PCHAR = "-._~!$&'()*+,;=:@%"
"""Characters allowed in a segment as they are (RFC 3986, pchar), and `%`: a document writes its own escapes."""
_NOT_IN_PATHS = re.compile(r"[?#\\{}]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SEPARATORS = re.compile(r"[/\\]")
_PORTS = {"http": 80, "https": 443}


class BaseURL:
    """The base URL of an API: `BaseURL("https://api.example.com/v1")`. Raises `DeclarationError` for an invalid base
    URL.
    """

    def __init__(self, url: str) -> None:
        location = _parse(url)
        if location is None or "{" in url:  # a variable without a default
            raise DeclarationError(
                f"{without_credentials_malformed(url)!r:.200} is not a valid base_url: "
                "write it as 'https://api.example.com/v1', "
                "without a name, a query or a fragment"
            )
        self._scheme, self._host, self._port, path = location
        if any(not segment or has_dot_segment(segment) for segment in path.rstrip("/").split("/")[1:]):
            raise DeclarationError(f"the path of {url!r:.200} has an empty segment, or one that leads elsewhere")
        self._prefix = quote(path.rstrip("/"), safe="/" + _PCHAR)
        host = f"[{self._host}]" if ":" in self._host else self._host
        port = "" if self._port == _PORTS[self._scheme] else f":{self._port}"
        self.url: str = f"{self._scheme}://{host}{port}{self._prefix}"
        """Without a trailing slash."""

    def join(self, path: str, query: str) -> str:
        """Return the URL of a path returned by `PathTemplate.fill`."""
        return f"{self.url}{path}?{query}" if query else f"{self.url}{path}"

    def follow(self, url: str, reference: str) -> str | None:
        """Return the target of a redirect from `url`, or None if it is not under this base URL."""
        try:
            target = urljoin(url, reference).partition("#")[0]
        except ValueError:
            return None
        location = _parse(target.partition("?")[0]) if _is_plain(target) else None
        if location is None or location[:3] != (self._scheme, self._host, self._port):
            return None
        path = location[3]
        inside = path == self._prefix or path.startswith(f"{self._prefix}/")
        return target if inside and not any(map(has_dot_segment, path.split("/"))) else None


def _parse(url: str) -> tuple[str, str, int, str] | None:
    """Return scheme, host, port and path of a URL, or None if it is invalid or has other parts."""
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        return None
    if not _is_plain(url) or split.scheme not in _PORTS or not split.hostname or "@" in split.netloc:
        return None
    if "?" in url or "#" in url:
        return None
    return split.scheme, split.hostname, port or _PORTS[split.scheme], split.path


def _is_plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and " " not in url and "\\" not in url


class PathTemplate:
    """A path of a document: `PathTemplate("/pets/{id}")`. Raises `SchemaError` for a path that could lead out of the
    base.
    """

    def __init__(self, template: str) -> None:
        self._template = template
        if not template.startswith("/"):
            raise SchemaError(f"the path {template!r:.200} does not begin with a slash")
        self.variables: tuple[str, ...] = tuple(dict.fromkeys(VARIABLE.findall(template)))
        segments = template[1:].split("/")
        for index, segment in enumerate(segments):
            if not segment and index < len(segments) - 1:
                raise SchemaError(f"the path {template!r:.200} has an empty segment")
            self._check(segment)
        self._segments = [VARIABLE.split(segment) for segment in segments]

    def _check(self, segment: str) -> None:
        literal = VARIABLE.sub("", segment)
        if _NOT_IN_PATHS.search(literal) or _CONTROL.search(unquote(literal)) or _BARE_PERCENT.search(literal):
            raise SchemaError(f"the path {self._template!r:.200} has a character that cannot stand in one")
        if has_dot_segment(segment) or _SEPARATORS.search(unquote(unquote(literal))):
            raise SchemaError(f"the path {self._template!r:.200} leads out of the base path")

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the path with its variables replaced by the percent-encoded `values`. Raises `InvalidArguments`."""
        return "".join("/" + self._fill_segment(parts, values) for parts in self._segments)

    def _fill_segment(self, parts: list[str], values: Mapping[str, str]) -> str:
        """Return one segment; `parts` alternates literals and names of variables, beginning with a literal."""
        pieces = [values[part] if index % 2 else quote(part, safe=_PCHAR) for index, part in enumerate(parts)]
        segment = "".join(pieces)
        if len(parts) == 1:
            return segment
        name = parts[1]
        if len(segment) > URI_LENGTH:
            raise InvalidArguments(
                f"{name!r} makes a part of the path {self._template} that has more than {URI_LENGTH:,} characters, "
                "percent-encoded"
            )
        if not all(pieces[1::2]):
            raise InvalidArguments(f"{name!r} is empty, but it is part of the path {self._template}: give a value")
        if has_dot_segment(segment) or any(map(has_dot_segment, pieces[1::2])):
            raise InvalidArguments(f"{name!r} has a part '.' or '..', which leads out of the path {self._template}")
        if _CONTROL.search(unquote(unquote(segment))):
            raise InvalidArguments(
                f"{name!r} has control characters, which are not allowed in the path {self._template}"
            )
        return segment


def has_slash(text: str) -> bool:
    """Return whether a percent-encoded text contains `/` or `\\` after one or two rounds of decoding."""
    return _SEPARATORS.search(unquote(unquote(text))) is not None


def has_dot_segment(segment: str) -> bool:
    """Return whether any reading of a segment is "." or "..": decoded, decoded twice, NFKC-normalized, with a backslash
    as a slash, or without the parameters after `;`.
    """
    if "." not in segment and "%" not in segment and segment.isascii():
        return False
    for _ in range(3):
        plain = normalize("NFKC", segment)
        if any(part.partition(";")[0].strip() in (".", "..") for part in _SEPARATORS.split(plain)):
            return True
        segment = unquote(segment)
    return False
