"""Pages of a server, as a host reads them: the document, and what it may use (extension MCP Apps).

A server is not trusted: what is invalid in the metadata of a page is left out, so that a host can write the rest into
a content security policy.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec

from accord.errors import LocalProtocolError, RemoteProtocolError
from accord.messages.apps import APP_MIME_TYPE, CSP, Permission, is_domain, split_sources
from accord.messages.content import ResourceContents
from accord.messages.tools import Tool


class AppDocument(msgspec.Struct, frozen=True):
    """A page of a server. All of its sources are origins; `ignored` are those that were not."""

    uri: str
    html: str
    csp: CSP
    permissions: tuple[Permission, ...]
    domain: str | None
    border: bool | None
    ignored: tuple[str, ...]


def page_of(tool: Tool) -> str:
    """Return the URI of a tool's page. Raises `LocalProtocolError`."""
    ui = tool.ui
    if ui is None or ui.resource_uri is None:
        raise LocalProtocolError(
            f"the tool {tool.name!r:.200} has no page: use one whose `ui.resource_uri` is not None"
        )
    return ui.resource_uri


def read_document(name: str, uri: str, contents: Sequence[ResourceContents]) -> AppDocument:
    """Return the page in the contents of a resource. Raises `RemoteProtocolError` if it is none; `name` is that of the
    server.
    """
    found = next((each for each in contents if _is_page(each)), None)
    if found is None:
        kinds = ", ".join(repr(each.mime_type) for each in contents) or "nothing"
        raise RemoteProtocolError(f"{name}: {uri!r:.200} is not a page: it has {kinds:.200}, not {APP_MIME_TYPE!r}")
    given = (found.meta or {}).get("ui")
    ui: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    csp, ignored = _csp(ui.get("csp"))
    permissions, domain, border = ui.get("permissions"), ui.get("domain"), ui.get("prefersBorder")
    return AppDocument(
        uri=uri,
        html=_html(name, found),
        csp=csp,
        permissions=_permissions(permissions if isinstance(permissions, Mapping) else {}),
        domain=domain if isinstance(domain, str) and is_domain(domain) else None,
        border=border if isinstance(border, bool) else None,
        ignored=tuple(ignored),
    )


def _is_page(contents: ResourceContents) -> bool:
    return (contents.mime_type or "").replace(" ", "").lower() == APP_MIME_TYPE


def _csp(given: Any) -> tuple[CSP, list[str]]:
    csp: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    ignored: list[str] = []
    valid: dict[str, tuple[str, ...]] = {}
    for each in msgspec.structs.fields(CSP):
        valid[each.name], others = split_sources(csp.get(each.encode_name))
        ignored += others
    return CSP(**valid), ignored


def _permissions(given: Mapping[str, Any]) -> tuple[Permission, ...]:
    sent = {"clipboardWrite": "clipboard_write"}
    names = {sent.get(name, name) for name, value in given.items() if isinstance(value, Mapping)}
    return tuple(each for each in get_args(Permission) if each in names)


def _html(name: str, contents: ResourceContents) -> str:
    if contents.text is not None:
        return contents.text
    try:
        return base64.b64decode(contents.blob or "", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as exc:
        raise RemoteProtocolError(f"{name}: {contents.uri!r:.200} is not UTF-8 in Base64: {exc}") from exc
