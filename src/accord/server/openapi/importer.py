"""Import of a document's operations as tools, resources and templates of a server; all of them, or none.

An operation is named by its `operationId`, else by its method and path, with characters that are not allowed in names
replaced.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar

from accord.errors import DeclarationError, SchemaError
from accord.limits import Limits
from accord.server.core.registration import AccessMetadata
from accord.server.core.visibility import words
from accord.server.declare.imported import Imported
from accord.server.openapi.address import BaseURL
from accord.server.openapi.api import API, APICall
from accord.server.openapi.document import OpenAPIDocument, Source
from accord.server.openapi.headers import APIHeaders, HeaderSource
from accord.server.openapi.http_client import application, connections
from accord.server.openapi.messages import Send
from accord.server.openapi.operation import APIOperation, Route
from accord.server.openapi.routes import Routes, check_routes, decide
from accord.server.openapi.tools import ImportedResource, ImportedTool

if TYPE_CHECKING:
    from accord.server.core.registry import Registry

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 128
""" "Tool names SHOULD be between 1 and 128 characters in length" (Tools, Tool Names)."""


class OperationNames:
    """Unique names for operations. `chosen` are names by `operationId`."""

    def __init__(self, chosen: Mapping[str, str], prefix: str | None) -> None:
        self._chosen = chosen
        self._prefix = f"{_plain(prefix)}_" if prefix else ""
        self._used: set[str] = set()
        self._numbers: dict[str, int] = {}

    def name_for(self, route: Route) -> str:
        """Return the name of an operation. Raises `DeclarationError` if a chosen name is invalid."""
        chosen = self._chosen.get(route.id or "")
        if chosen is not None and (chosen != _plain(chosen) or not chosen):
            raise DeclarationError(f"{chosen!r:.100} is not a valid name: use letters, digits, `_`, `-` and `.`")
        wanted = self._prefix + (
            chosen or _plain(_short_id(route)) or _plain(f"{route.method.lower()}_{route.path.strip('/')}")
        )
        name = base = wanted[:_LONGEST]
        number = self._numbers.get(base, 1)
        while name in self._used:
            number += 1
            name = f"{wanted[: _LONGEST - len(str(number)) - 1]}_{number}"
        self._numbers[base] = number
        self._used.add(name)
        return name


def _short_id(route: Route) -> str:
    """Return the `operationId` without the path and method that FastAPI appends to the function's name."""
    if route.id is None:
        return ""
    appended = re.sub(r"\W", "_", route.path) + f"_{route.method.lower()}"
    return route.id.removesuffix(appended) or route.id


def _plain(text: str) -> str:
    return _NOT_IN_NAMES.sub("_", text).strip("_")


log: logging.Logger = logging.getLogger("accord.server")

_SECONDS = 30.0
_NOT_IN_SCHEMES = re.compile(r"[^A-Za-z0-9+.-]+")


class ImportingServer(Protocol):
    """The part of a server that an import uses."""

    registry: Registry
    limits: Limits


S = TypeVar("S", bound=ImportingServer)

SenderOpener = Callable[[], AbstractAsyncContextManager[Send]]


class OpenAPIOptions(TypedDict, total=False):
    """Options of an import; see `Server.add_openapi`."""

    base_url: str
    """The URL of the API. By default the document's first server URL, if it is absolute."""
    routes: Routes
    """What each operation becomes: `[RouteMap(...)]`, or a function. By default every operation becomes a tool."""
    names: Mapping[str, str]
    """Names by `operationId`."""
    prefix: str
    """A prefix of every name, and the scheme of resource URIs, which is "api" by default."""
    tags: Collection[str]
    """Tags of everything that is imported, in addition to the document's tags."""
    headers: HeaderSource
    """Headers of every request, or a function that returns them for each call."""
    forward: Collection[str]
    """Names of headers that are forwarded from the client's HTTP request. None by default."""
    slashes: Collection[str]
    """Names of parameters whose values may contain slashes in the path. None by default: many servers read an encoded
    slash as a path separator, and answer with another operation, perhaps a skipped one.
    """
    query: Mapping[str, str]
    """Query parameters of every request, such as an API key."""
    timeout: float
    """Seconds to wait for a response: 30 by default."""
    send: Send
    """A function that sends requests, in place of aiohttp."""
    structured: bool
    """Whether JSON responses become structured output where the document has a schema for them: True by default."""
    strict: bool
    """Whether a response that does not match the document is withheld from the client: False by default."""


def add_openapi(server: ImportingServer, source: Source | OpenAPIDocument, options: OpenAPIOptions) -> Imported:
    """Import the operations of a document. Raises `DeclarationError`."""
    document = source if isinstance(source, OpenAPIDocument) else OpenAPIDocument(source)
    address = options.get("base_url", document.address or "")
    if "base_url" not in options and not address.startswith(("http://", "https://")):
        raise DeclarationError(f"the document has no absolute server URL (it has {address!r:.200}): give base_url=")
    max_bytes = server.limits.upstream_bytes
    return _add(server, document, BaseURL(address), lambda: connections(max_bytes), options)


def add_application(server: ImportingServer, app: Any, lifespan: bool, options: OpenAPIOptions) -> Imported:
    """Import the operations of an ASGI application with an `openapi()` method. Raises `DeclarationError`."""
    base, max_bytes = BaseURL(options.get("base_url", "http://localhost")), server.limits.upstream_bytes
    return _add(server, _document_of(app), base, lambda: application(app, max_bytes, lifespan), options)


def server_of(make: Callable[[str, str], S], source: Source, name: str | None, options: OpenAPIOptions) -> S:
    """Return a server of one document. Raises `DeclarationError`."""
    document = OpenAPIDocument(source)
    server = make(name or document.title, document.version)
    add_openapi(server, document, options)
    return server


def server_of_application(
    make: Callable[[str, str], S], app: Any, name: str | None, lifespan: bool, options: OpenAPIOptions
) -> S:
    """Return a server of one ASGI application. Raises `DeclarationError`."""
    document = _document_of(app)
    server = make(name or document.title, document.version)
    add_application(server, app, lifespan, options)
    return server


def _document_of(app: Any) -> OpenAPIDocument:
    if not callable(getattr(app, "openapi", None)):
        raise DeclarationError(f"{app!r:.200} has no openapi(): give its document to add_openapi, with send=")
    return OpenAPIDocument(app.openapi())


def _add(
    server: ImportingServer,
    document: OpenAPIDocument,
    base: BaseURL,
    open_sender: SenderOpener,
    options: OpenAPIOptions,
) -> Imported:
    _check_options(options)
    api = _api(document, base, open_sender, options, server.limits)
    operations = [APIOperation(document, *row) for row in document.operations()]
    _check_names(options.get("names", {}), operations)
    imported = Imported()
    registrations = list(_registrations(api, operations, options, imported.left_out))
    _check_free(server.registry, registrations)
    for kind, name, registration in registrations:
        server.registry.add(kind, name, registration)
        {"tool": imported.tools, "resource": imported.resources}.get(kind, imported.templates).append(name)
    return imported


def _registrations(
    api: API, operations: list[APIOperation], options: OpenAPIOptions, left_out: dict[str, str]
) -> Iterator[tuple[str, str, Any]]:
    """Yield kind, name and registration of each operation; record those that cannot be imported in `left_out`."""
    routes, prefix = check_routes(options.get("routes", ())), options.get("prefix")
    names = OperationNames(options.get("names", {}), prefix)
    scheme, tags = _NOT_IN_SCHEMES.sub("-", prefix or "api"), words("tags", options.get("tags", ()))
    for operation in operations:
        route = operation.route
        into = decide(routes, route)
        if into == "skip":
            api.skipped.add(route.method, route.path)
            continue
        try:
            yield _registration(APICall(operation, api), names, into, scheme, tags)
        except (SchemaError, DeclarationError) as exc:
            left_out[str(route)] = str(exc)
            log.warning("accord: %s of the OpenAPI document is left out: %s", route, exc)


def _check_options(options: OpenAPIOptions) -> None:
    known = OpenAPIOptions.__annotations__
    for name in options.keys() - known.keys():
        raise DeclarationError(f"unknown option {name!r}; the options are {', '.join(known)}")
    for name in ("names", "query"):
        if not isinstance(options.get(name, {}), Mapping):
            raise DeclarationError(f"{name}= is a mapping of texts, not {options[name]!r:.100}")  # type: ignore[literal-required]


def _check_names(chosen: Mapping[str, str], operations: list[APIOperation]) -> None:
    unknown = chosen.keys() - {operation.route.id for operation in operations}
    if unknown:
        raise DeclarationError(f"names= has unknown operations: {', '.join(sorted(unknown))}")


def _api(
    document: OpenAPIDocument, base: BaseURL, open_sender: SenderOpener, options: OpenAPIOptions, limits: Limits
) -> API:
    custom_send = options.get("send")

    async def sender() -> AsyncIterator[Send]:
        if custom_send is not None:
            yield custom_send
        else:
            async with open_sender() as send:
                yield send

    return API(
        document,
        base,
        sender,
        headers=APIHeaders(options.get("headers"), options.get("forward", ())),
        query=options.get("query", {}),
        slashes=options.get("slashes", ()),
        timeout=options.get("timeout", _SECONDS),
        strict=options.get("strict", False),
        structured=options.get("structured", True),
        limits=limits,
    )


def _registration(
    call: APICall, names: OperationNames, into: str, scheme: str, tags: Collection[str]
) -> tuple[str, str, Any]:
    """Return kind, name and registration. Raises `SchemaError` and `DeclarationError` for an invalid operation."""
    call.operation.check()
    name, metadata = names.name_for(call.route), AccessMetadata(tags=call.route.tags.union(tags))
    if into == "tool":
        return "tool", name, ImportedTool(name, call).registration(metadata)
    resource = ImportedResource(name, call, scheme, queried=into == "template")
    return resource.kind, resource.text, resource.registration(metadata)


def _check_free(registry: Registry, registrations: list[tuple[str, str, Any]]) -> None:
    """Raise `DeclarationError` if any name is already registered, before anything is added."""
    taken = {
        "tool": set(registry.tools),
        "resource": set(registry.resources),
        "resource template": set(registry.templates),
    }
    for kind, name, _ in registrations:
        if name in taken[kind]:
            raise DeclarationError(f"there is a {kind} {name!r} already; nothing was imported: give prefix=, or names=")
        taken[kind].add(name)
