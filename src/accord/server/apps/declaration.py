"""The declaration of pages, and of the tools that show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from accord.errors import DeclarationError
from accord.messages.apps import APP_MIME_TYPE, APPS, CSP, Permission
from accord.messages.base import Meta
from accord.messages.tool_ui import CALLERS, Caller
from accord.server.apps.page import AppPage, check_uri, finished_document, page_ui, read_page
from accord.server.core.extension_methods import ExtensionMethods
from accord.server.core.registry import Registry
from accord.server.declare.declaration import declare_resource, message_fields


class PageServer(Protocol):
    """A server, as far as its pages use it."""

    registry: Registry
    extension_methods: ExtensionMethods


class PageSource(Protocol):
    """A page that is written when it is declared: `Chart`, `Table` or `Form`."""

    @property
    def html(self) -> str:
        """The text of the page."""


def declare_page(
    server: PageServer,
    uri: str,
    page: Path | str | PageSource,
    *,
    csp: CSP | None = None,
    permissions: Sequence[Permission] = (),
    domain: str | None = None,
    border: bool | None = None,
    about: dict[str, Any],
) -> AppPage:
    """Declare a page, see `Server.add_ui`; `about` are options of a resource. Raises `DeclarationError`."""
    check_uri(uri)
    ui = page_ui(uri, csp, permissions, domain, border)
    text, place = read_page(page if isinstance(page, Path | str) else page.html, uri)
    made = AppPage(uri, finished_document(text, place, csp), ui)
    name = uri.rpartition("/")[2] or uri
    fields = message_fields({"title": about["title"], "mime_type": APP_MIME_TYPE, "meta": made.meta})
    declare_resource(
        server.registry,
        lambda: made,
        uri,
        name=name,
        description=about["description"],
        size=len(made.document.encode()),
        scopes=about["scopes"],
        **fields,
    )
    server.extension_methods.declare(APPS)
    return made


def tool_meta(registry: Registry, ui: AppPage | None, visibility: Sequence[Caller] | None, meta: Meta | None) -> Meta:
    """Return the `_meta` of a tool with a page or a visibility. Raises `DeclarationError`."""
    if meta is not None and "ui" in meta:
        raise DeclarationError("meta= has 'ui', which ui= and visibility= write: leave it out")
    made: dict[str, Any] = {}
    if ui is not None:
        if not isinstance(ui, AppPage):
            raise DeclarationError(f"ui={ui!r:.200} is no page: write ui=server.add_ui('ui://...', page)")
        if ui.uri not in registry.declared("resource"):
            raise DeclarationError(f"ui={ui!r} is a page of another server, or was removed: declare it on this one")
        made["resourceUri"] = ui.uri
    if visibility is not None:
        if isinstance(visibility, str) or not visibility or not set(visibility) <= set(CALLERS):
            raise DeclarationError(f"visibility= is a list of 'model' and 'app', or of one, not {visibility!r:.200}")
        made["visibility"] = [each for each in CALLERS if each in visibility]
    return {**(meta or {}), "ui": made}
