"""The loads of a page: what a browser requests for its elements, styles and scripts, with the line of each.

It reads what is written in the page. A URL that a script puts together is not found here; the host blocks it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from typing import Literal, NamedTuple, TypeAlias

Source: TypeAlias = Literal["resource", "connect", "frame", "base_uri"]
"""The list of a `CSP` that must have the origin of a load."""

BRIDGE = "data-accord"

_ATTRIBUTES: Mapping[str, Mapping[str, Source]] = {
    "script": {"src": "resource"},
    "img": {"src": "resource", "srcset": "resource"},
    "source": {"src": "resource", "srcset": "resource"},
    "video": {"src": "resource", "poster": "resource"},
    "audio": {"src": "resource"},
    "track": {"src": "resource"},
    "input": {"src": "resource"},
    "image": {"href": "resource", "xlink:href": "resource"},
    "use": {"href": "resource", "xlink:href": "resource"},
    "iframe": {"src": "frame"},
    "base": {"href": "base_uri"},
}
_LINKS = {"stylesheet", "icon", "apple-touch-icon", "preload", "modulepreload", "prefetch", "manifest"}
_NEVER = {"object": "data", "embed": "src"}
_STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"'()\s;]+)""", re.IGNORECASE)
_URL = r"""["'`]((?:https?:|wss?:)?//[^"'`\s]+)["'`]"""
_CONNECT = re.compile(rf"\b(?:fetch|sendBeacon|WebSocket|EventSource|WebTransport)\s*\(\s*{_URL}")
_DYNAMIC_IMPORT = re.compile(rf"\bimport\s*\(\s*{_URL}")
_STATIC_IMPORT = re.compile(rf"\b(?:from|import)\s*{_URL}")
_MAP_URL = re.compile(r'"((?:https?:)?//[^"\s]+)"')
_JAVASCRIPT = {"", "module", "text/javascript", "application/javascript"}


class Load(NamedTuple):
    """A load of a page."""

    line: int
    element: str
    """The element as it is written, or the part of a script or style."""
    url: str
    source: Source | None
    """None if hosts always block it."""
    may_be_data: bool = True
    """Whether the load may be a `data:` or `blob:` URL."""


class BridgePlace(NamedTuple):
    """The place of `<script data-accord></script>`."""

    start: int
    end: int


class PageReader(HTMLParser):
    """Reads a page once. `loads` are its loads, `bridges` the places for the bridge."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.loads: list[Load] = []
        self.bridges: list[BridgePlace] = []
        self.has_doctype: bool = False
        self._text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._inside: Callable[[str, int], Iterator[Load]] | None = None
        self._bridge: int | None = None
        self.feed(text)
        self.close()

    def handle_decl(self, decl: str) -> None:
        """Note the document type."""
        self.has_doctype = self.has_doctype or decl.lower().split() == ["doctype", "html"]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the loads of an element, and what its text is."""
        given = {name: (value or "").strip() for name, value in reversed(attrs)}  # the first of a name applies
        line, column = self.getpos()
        element = _shortened(self.get_starttag_text() or f"<{tag}>")
        if tag == "script" and BRIDGE in given:
            self._bridge = self._starts[line - 1] + column
        self.loads += (Load(line, element, *found) for found in _loads_of(tag, given))
        self.loads += (Load(line, element, url, "resource") for url in _STYLE.findall(given.get("style", "")))
        if tag == "style":
            self._inside = _style_loads
        elif tag == "script" and "src" not in given:
            self._inside = _reader_of(given.get("type", "").lower())

    handle_startendtag = handle_starttag

    def handle_data(self, data: str) -> None:
        """Note the loads of a script or style."""
        if self._inside is not None:
            self.loads += self._inside(data, self.getpos()[0])

    def handle_endtag(self, tag: str) -> None:
        """Note the end of the place for the bridge."""
        self._inside = None
        if tag == "script" and self._bridge is not None:
            line, column = self.getpos()
            end = self._text.find(">", self._starts[line - 1] + column) + 1
            self.bridges.append(BridgePlace(self._bridge, end))
            self._bridge = None

    @property
    def has_foreign_script(self) -> bool:
        """Whether a script comes from elsewhere, which may do the handshake."""
        return any(load.source == "resource" and "script" in load.element for load in self.loads)


def _loads_of(tag: str, given: Mapping[str, str]) -> Iterator[tuple[str, Source | None, bool]]:
    """Yield the URL of each load of an element, the list that it needs, and whether it may be `data:`."""
    if tag in _NEVER and given.get(_NEVER[tag]):
        yield given[_NEVER[tag]], None, False
    if tag == "link" and not _LINKS.isdisjoint(given.get("rel", "").lower().split()):
        yield given.get("href", ""), "resource", "icon" in given["rel"].lower()
    for name, source in _ATTRIBUTES.get(tag, {}).items():
        if name == "srcset":
            yield from ((each.split()[0], source, True) for each in given.get(name, "").split(", ") if each.split())
        elif name in given:
            yield given[name], source, tag not in ("script", "iframe", "base")


def _reader_of(kind: str) -> Callable[[str, int], Iterator[Load]] | None:
    """Return the function that finds the loads of a script of a type; None for data."""
    if kind == "importmap":
        return _import_map_loads
    if kind == "module":
        return _module_loads
    return _script_loads if kind in _JAVASCRIPT else None


def _style_loads(text: str, line: int) -> Iterator[Load]:
    for match in _STYLE.finditer(text):
        yield Load(line + text.count("\n", 0, match.start()), f"<style> {_shortened(match[0])}", match[1], "resource")


def _script_loads(text: str, line: int) -> Iterator[Load]:
    yield from _found(_CONNECT, "connect", text, line)
    yield from _found(_DYNAMIC_IMPORT, "resource", text, line)


def _module_loads(text: str, line: int) -> Iterator[Load]:
    yield from _script_loads(text, line)
    yield from _found(_STATIC_IMPORT, "resource", text, line)


def _import_map_loads(text: str, line: int) -> Iterator[Load]:
    for match in _MAP_URL.finditer(text):
        yield Load(line + text.count("\n", 0, match.start()), '<script type="importmap">', match[1], "resource")


def _found(pattern: re.Pattern[str], source: Source, text: str, line: int) -> Iterator[Load]:
    for match in pattern.finditer(text):
        yield Load(line + text.count("\n", 0, match.start()), f"<script> {_shortened(match[0])}", match[1], source)


def _shortened(text: str) -> str:
    single = " ".join(text.split())
    return single if len(single) <= 120 else f"{single[:117]}..."
