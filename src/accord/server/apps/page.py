"""A page of a server: its document with the bridge inside, its metadata, and what hosts would refuse of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urljoin, urlsplit

import msgspec

from accord.errors import DeclarationError
from accord.messages.apps import (
    APP_MIME_TYPE,
    CSP,
    MAX_PAGE_BYTES,
    PagePermissions,
    PageUI,
    Permission,
    is_domain,
    source_problem,
    split_sources,
)
from accord.messages.base import JSONObject
from accord.messages.content import EmbeddedResource, ResourceContents
from accord.messages.tool_ui import UI_SCHEME
from accord.server.apps.page_reader import BRIDGE, Load, PageReader, Source
from accord.server.core.content import AsContent

_MAX_PROBLEMS = 10
_INSIDE = ("data:", "blob:", "about:", "javascript:", "#")
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


class AppPage(AsContent):
    """A page that `Server.add_ui` declared: a tool shows its results in it with `@server.tool(ui=page)`."""

    def __init__(self, uri: str, document: str, ui: PageUI) -> None:
        self.uri: str = uri
        self.document: str = document
        """The HTML that clients get, with the bridge inside."""
        self.ui: PageUI = ui
        """Its `_meta.ui`."""

    def __repr__(self) -> str:
        return f"<AppPage {self.uri!r}: {len(self.document.encode()):,} bytes>"

    @property
    def meta(self) -> JSONObject | None:
        """The `_meta` of the page; None if it requests nothing."""
        ui: JSONObject = msgspec.to_builtins(self.ui)
        return {"ui": ui} if ui else None

    def to_contents(self, uri: str, mime_type: str | None = None) -> ResourceContents:
        """Return the contents of the resource at `uri`."""
        return ResourceContents(uri=uri, mime_type=APP_MIME_TYPE, text=self.document, meta=self.meta)

    def to_content(self) -> EmbeddedResource:
        """Return the page as a block of content."""
        return EmbeddedResource(resource=self.to_contents(self.uri))


def read_page(page: Path | str, place: str) -> tuple[str, str]:
    """Return the text of a page, and its name in errors. Raises `DeclarationError`."""
    if isinstance(page, str):
        if "<" not in page:
            raise DeclarationError(f"{place}: {page!r:.100} is not HTML: for a file write Path({page!r:.100})")
        return page, place
    try:
        return page.read_text("utf-8"), str(page)
    except OSError as exc:
        raise DeclarationError(f"{place}: {page} cannot be read: {exc.strerror or exc}") from exc
    except UnicodeDecodeError as exc:
        raise DeclarationError(f"{place}: {page} is not UTF-8: {exc}") from exc


def check_uri(uri: str) -> None:
    """Raise `DeclarationError` for a URI that no page can have."""
    if not uri.startswith(UI_SCHEME) or len(uri) == len(UI_SCHEME) or "{" in uri:
        raise DeclarationError(f"the URI of a page begins with ui:// and has no variables, not {uri!r:.200}")


def page_ui(
    uri: str, csp: CSP | None, permissions: Sequence[Permission], domain: str | None, border: bool | None
) -> PageUI:
    """Return the metadata of a page. Raises `DeclarationError`."""
    known = get_args(Permission)
    unknown = [each for each in permissions if each not in known]
    if isinstance(permissions, str) or unknown:
        given = permissions if isinstance(permissions, str) else unknown[0]
        raise DeclarationError(f"{uri}: permissions= is a list of {', '.join(known)}, not {given!r:.100}")
    if domain is not None and not is_domain(domain):
        raise DeclarationError(f"{uri}: domain={domain!r:.200} is not a domain, such as 'shop.example.com'")
    if csp is not None:
        check_csp(uri, csp)
    return PageUI(
        csp=csp,
        permissions=PagePermissions(**{each: {} for each in permissions}) if permissions else None,
        domain=domain,
        prefers_border=border,
    )


def check_csp(uri: str, csp: CSP) -> None:
    """Raise `DeclarationError` for a source that is not an origin that hosts allow."""
    if not isinstance(csp, CSP):
        raise DeclarationError(f"{uri}: csp={csp!r:.100} is no CSP: write csp=CSP(connect=['https://api.example.com'])")
    for option in get_args(Source):
        sources = getattr(csp, option)
        if isinstance(sources, str):
            raise DeclarationError(
                f"{uri}: csp=CSP({option}={sources!r:.100}) is no list: write {option}=[{sources!r}]"
            )
        for source in sources:
            problem = source_problem(source) if isinstance(source, str) else "it is no text"
            if problem:
                raise DeclarationError(f"{uri}: csp=CSP({option}=[{source!r:.200}]): {problem}")


def finished_document(text: str, place: str, csp: CSP | None) -> str:
    """Return the document with the bridge inside. Raises `DeclarationError` for all that hosts would refuse."""
    reader = PageReader(text)
    problems = [*_structure_problems(reader, text), *_load_problems(reader, csp or CSP())]
    if problems:
        more = [f"and {len(problems) - _MAX_PROBLEMS} more"] if len(problems) > _MAX_PROBLEMS else []
        raise DeclarationError("\n".join(f"{place}{each}" for each in [*problems[:_MAX_PROBLEMS], *more]))
    for start, end in reader.bridges:
        text = f"{text[:start]}<script>{bridge()}</script>{text[end:]}"
    size = len(text.encode())
    if size > MAX_PAGE_BYTES:
        raise DeclarationError(
            f"{place} has {size:,} bytes, more than {MAX_PAGE_BYTES:,}: load large parts from an origin in "
            "csp=CSP(resource=[...]), or get them with a tool"
        )
    return text


@cache
def bridge() -> str:
    """Return the script that connects a page with its host."""
    return static("bridge.js")


def static(name: str) -> str:
    """Return a file of the folder `static`, without indentation and lines that are comments."""
    text = resources.files("accord.server.apps").joinpath("static", name).read_text("utf-8")
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/*")))


def blocked_loads(text: str, csp: Mapping[str, Any]) -> Iterator[str]:
    """Yield the loads of a page that hosts block, given `_meta.ui.csp` as a server sent it; each with its line."""
    names = {each.encode_name: each.name for each in msgspec.structs.fields(CSP)}
    valid = {names[name]: split_sources(given)[0] for name, given in csp.items() if name in names}
    yield from _load_problems(PageReader(text), CSP(**valid))


def _structure_problems(reader: PageReader, text: str) -> Iterator[str]:
    if not reader.has_doctype:
        yield ": the page does not begin with <!doctype html>, so that it is no HTML5 document: add it"
    if len(reader.bridges) > 1:
        yield f": <script {BRIDGE}> is there {len(reader.bridges)} times: keep the first"
    if not reader.bridges and "ui/initialize" not in text and not reader.has_foreign_script:
        yield (
            ": the page does no handshake (ui/initialize), so that hosts keep it hidden: add "
            f"<script {BRIDGE}></script> to its <head>"
        )


def _load_problems(reader: PageReader, csp: CSP) -> Iterator[str]:
    base = next((load.url for load in reader.loads if load.source == "base_uri"), "")
    for load in reader.loads:
        problem = _load_problem(load, base if load.source != "base_uri" else "", csp)
        if problem:
            yield f", line {load.line}: {load.element} {problem}"


def _load_problem(load: Load, base: str, csp: CSP) -> str | None:
    """Return why hosts would block a load, and what to do; None if they would not."""
    if not load.url or (load.url.lower().startswith(_INSIDE) and (load.may_be_data or load.url.startswith("#"))):
        return None
    if load.source is None:
        return "is blocked by all hosts: use <img>, <video> or <iframe>"
    url = urljoin(base, load.url) if base else load.url
    if url.startswith("//"):
        url = f"https:{url}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "has a URL that is invalid"
    if not parts.hostname or parts.scheme.lower() not in _PORTS:
        return "loads something beside the page, which has no address: put it into the page"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    origin = f"{parts.scheme}://{host}{f':{port}' if port is not None else ''}"
    problem = source_problem(origin)
    if problem:
        return f"loads from {origin}: {problem}"
    if any(_allows(source, parts.scheme, host, port) for source in getattr(csp, load.source)):
        return None
    return f"loads from {origin}, which hosts block: add csp=CSP({load.source}=[{origin!r}])"


def _allows(source: str, scheme: str, host: str, port: int | None) -> bool:
    """Return whether a source of a policy allows an origin."""
    allowed = urlsplit(source.lower())
    name = allowed.hostname or ""
    same_host = host.endswith(name[1:]) if name.startswith("*.") else host.strip("[]") == name
    ports: Mapping[str, int] = _PORTS
    default = ports.get(scheme.lower())
    return allowed.scheme == scheme.lower() and same_host and (allowed.port or default) == (port or default)
