"""Pages of a server inside a conversation: MCP Apps, the extension `io.modelcontextprotocol/ui` (2026-01-26).

A page is a resource with the URI scheme `ui:`. `_meta.ui` of the resource says what the page may load, `_meta.ui` of a
tool says which page shows its results, and who may call it. Hosts declare the extension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import field

from accord.lazy_patterns import lazy_pattern
from accord.messages.base import JSONObject, Model
from accord.messages.extension import Extension
from accord.messages.tools import UI_EXTENSION

APP_MIME_TYPE = "text/html;profile=mcp-app"
"""The MIME type of a page: "other types reserved for future extensions"."""

APPS: Extension = Extension(name=UI_EXTENSION, settings={"mimeTypes": [APP_MIME_TYPE]})
"""The extension as hosts declare it: `Client(target, extensions=[APPS])`."""

MAX_PAGE_BYTES = 1 << 20
"""The largest page that a server declares."""

Permission: TypeAlias = Literal["camera", "microphone", "geolocation", "clipboard_write"]

_MAX_SOURCES = 100
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_SOURCE = lazy_pattern(
    rf"(?P<scheme>https|wss|http|ws)://(?P<wildcard>\*\.)?(?P<host>{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]{{2,45}}\])"
    r"(?::(?P<port>[0-9]{1,5}))?",
    2,  # re.IGNORECASE
)
_LOCAL = lazy_pattern(r"(?:.*\.)?localhost|127(?:\.[0-9]+){3}|0\.0\.0\.0|\[::1?\]|\[::ffff:127\..*\]", 2)
_NUMBER = lazy_pattern(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)", 2)
_IPV4 = lazy_pattern(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_DOMAIN = lazy_pattern(r"[A-Za-z0-9._:/-]{1,253}")


class CSP(Model):
    """The origins that a page may use; nothing outside of the page by default. Each is `https://example.com`, with a
    port or `*.` before the name if need be; connections may be `wss://` too.
    """

    connect: Sequence[str] = field(default=(), name="connectDomains")
    """For `fetch`, `XMLHttpRequest`, `WebSocket` and `EventSource`."""
    resource: Sequence[str] = field(default=(), name="resourceDomains")
    """For scripts, styles, images, fonts and media."""
    frame: Sequence[str] = field(default=(), name="frameDomains")
    """For frames inside the page."""
    base_uri: Sequence[str] = field(default=(), name="baseUriDomains")
    """For `<base href>`."""


class PagePermissions(Model):
    """`permissions` of a page: each that it requests is an empty object."""

    camera: JSONObject | None = None
    microphone: JSONObject | None = None
    geolocation: JSONObject | None = None
    clipboard_write: JSONObject | None = None


class PageUI(Model):
    """`_meta.ui` of a page."""

    csp: CSP | None = None
    permissions: PagePermissions | None = None
    domain: str | None = None
    prefers_border: bool | None = None


def source_problem(source: str) -> str | None:
    """Return what is wrong with a source of a content security policy; None for a valid one.

    Hosts write the sources into a header, so that nothing but an origin may be in them.
    """
    found = _SOURCE.fullmatch(source)
    if found is None or (_NUMBER.fullmatch(found["host"]) and not _IPV4.fullmatch(found["host"])):
        return "it is not an origin: write 'https://api.example.com', without path, quotes or blanks"
    if _LOCAL.fullmatch(found["host"]):
        return "hosts do not reach the user's machine: use the public HTTPS address"
    if found["scheme"].lower() in ("http", "ws"):
        secure = "https" if found["scheme"].lower() == "http" else "wss"
        return f"it is not encrypted: write {secure}:// in place of {found['scheme']}://"
    if found["wildcard"] and ("." not in found["host"] or found["host"].startswith("[")):
        return "the wildcard stands for all names of a domain: write 'https://*.example.com'"
    if found["port"] and not 0 < int(found["port"]) < 65_536:
        return f"{found['port']} is no port"
    return None


def is_domain(domain: str) -> bool:
    """Return whether a text can be the `domain` of a page, whose format each host defines: a name or an origin."""
    return _DOMAIN.fullmatch(domain) is not None


def split_sources(given: Any) -> tuple[tuple[str, ...], list[str]]:
    """Return the valid sources of a list that a server sent, and the others as text."""
    listed = given if isinstance(given, list) else []
    valid = tuple(each for each in listed[:_MAX_SOURCES] if isinstance(each, str) and source_problem(each) is None)
    return valid, [str(each) for each in listed if each not in valid]
