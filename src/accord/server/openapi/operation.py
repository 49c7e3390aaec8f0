"""One operation of an API, as its document has it: its parameters, its body, and what it answers.

Little is read when an operation is found: its method, its path, its name. The rest is read when it is first listed or
called, so that a document of ten thousand operations is declared in a moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec

from accord.errors import SchemaError
from accord.messages.base import JSONObject
from accord.server.openapi.address import PathTemplate
from accord.server.openapi.document import OpenAPIDocument

_STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""How a parameter may be written, by where it stands; the first is meant where none is named."""
_IGNORED = {"accept", "content-type", "authorization"}
""" "the parameter definition SHALL be ignored" (OpenAPI, Parameter Object)."""
_CONNECTION_HEADERS = {
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "cookie",
    "upgrade",
    "te",
    "trailer",
}
_CONNECTION_HEADERS |= {"expect", "keep-alive", "proxy-authorization", "proxy-connection", "http2-settings", "via"}
_CONNECTION_HEADERS |= {"content-encoding", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"}
"""Headers that say how a request travels, from whom and to whom: no model chooses these."""
_METHOD_HEADERS = {"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"}
"""Headers by which many servers take a request for another operation, perhaps one that was skipped."""
_METHOD_IN_QUERY = "_method"
"""The parameter of a query that does the same."""
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
FORMS = (URLENCODED, MULTIPART)
_SUCCESS = re.compile(r"2([0-9][0-9]|XX|xx)")
_PREFERRED = (*FORMS, "text/plain")
"""Kinds of body in the order of how easily they are written, after JSON."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an operation when it is decided what becomes of it; see `RouteMap`."""

    method: str
    """In capitals: "GET"."""
    path: str
    """As the document has it: "/pets/{id}"."""
    id: str | None = None
    """Its `operationId`."""
    summary: str | None = None
    description: str | None = None
    tags: frozenset[str] = frozenset()
    deprecated: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class APIParameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter, and how its value is written."""

    name: str
    place: str
    required: bool = False
    description: str | None = None
    schema: Any = True
    style: str = "simple"
    explode: bool = False
    reserved: bool = False
    """Whether characters with a meaning in URLs stay as they are."""
    as_json: bool = False
    """Whether the value is written as JSON, whatever it is."""


class RequestBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a request."""

    media: str
    """Its media type."""
    schema: Any = True
    required: bool = False
    description: str | None = None
    encoding: JSONObject = {}
    """How the members of a form are written."""
    files: frozenset[str] = frozenset()
    """Those members of a form that are bytes."""


class APIOperation:
    """One operation. What its document says of it is read when asked for; each of that raises `SchemaError`."""

    def __init__(self, document: OpenAPIDocument, method: str, path: str, item: Any, content: Any) -> None:
        self.document: OpenAPIDocument = document
        self._item = item
        self._whole = isinstance(content, dict)
        self._content: JSONObject = content if isinstance(content, dict) else {}
        told = self._content.get("tags")
        self.route: Route = Route(
            method=method.upper(),
            path=path,
            id=_text(self._content, "operationId"),
            summary=_text(self._content, "summary") or _text(item, "summary"),
            description=_text(self._content, "description") or _text(item, "description"),
            tags=frozenset(tag for tag in told if isinstance(tag, str)) if isinstance(told, list) else frozenset(),
            deprecated=self._content.get("deprecated") is True,
        )

    def check(self) -> None:
        """Raise `SchemaError` for what is wrong at first sight: its path, and what stands in the operation's place."""
        _ = self.path
        self.document.resolve(self._item)
        if not self._whole:
            raise SchemaError("an operation must be an object")

    @cached_property
    def path(self) -> PathTemplate:
        """Its path, to be filled in."""
        return PathTemplate(self.route.path)

    @cached_property
    def parameters(self) -> list[APIParameter]:
        """Those of the operation, and those of its path that it does not have itself. A variable of the path that
        nobody declares is text.
        """
        variables = self.path.variables
        found = {
            ("path", name): APIParameter(name=name, place="path", required=True, schema={"type": "string"})
            for name in variables
        }
        for holder in (self.document.resolve(self._item), self._content):
            for node in _listed(holder, "parameters"):
                one = _parameter(self.document, self.document.resolve(node))
                if one is not None and (one.place != "path" or one.name in variables):
                    found[one.place, one.name] = one
        return list(found.values())

    @cached_property
    def body(self) -> RequestBody | None:
        """The body of a request, in the kind that is easiest to write."""
        if "requestBody" not in self._content:
            return None
        about = self.document.resolve(self._content["requestBody"])
        kinds = _kinds(about)
        if not kinds:
            return None
        media = min(kinds, key=_preference)
        content = self.document.resolve(kinds[media])
        schema = content.get("schema", True)
        return RequestBody(
            media="application/json" if media.strip() == "*/*" else media if is_json(media) else _kind(media),
            schema=schema,
            files=frozenset(_files(self.document, schema)) if _kind(media) == MULTIPART else frozenset(),
            required=about.get("required") is True,
            description=_text(about, "description"),
            encoding=_object(content, "encoding"),
        )

    @cached_property
    def result(self) -> Any:
        """The schema of what a call gives, or None: where that is no JSON, or differs from one status to another."""
        found = [_json_schema(self.document, answer) for answer in self._successes()]
        first = found[0] if found else None
        return first if first not in (None, {}, True) and all(one == first for one in found) else None

    @property
    def response_media_type(self) -> str | None:
        """The media type of what a call gives, as far as it is known."""
        return next((_kind(media) for answer in self._successes() for media in _kinds(answer)), None)

    def _successes(self) -> list[JSONObject]:
        """The answers with a status of 2xx."""
        told = _object(self._content, "responses").items()
        return [self.document.resolve(node) for status, node in told if _SUCCESS.fullmatch(str(status))]


def _kinds(holder: JSONObject) -> JSONObject:
    """What a body may be, by media type."""
    return {
        media: kind for media, kind in _object(holder, "content").items() if isinstance(media, str) and media.isascii()
    }


def _kind(media: str) -> str:
    """A media type without its parameters."""
    return media.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Whether a media type is JSON."""
    kind = _kind(media)
    return kind == "application/json" or kind.endswith("+json")


def _files(document: OpenAPIDocument, schema: Any) -> Iterator[str]:
    """The members that are bytes as they are, or lists of such."""
    if isinstance(schema, dict):
        for name, member in _object(document.resolve(schema), "properties").items():
            one = document.resolve(member) if isinstance(member, dict) else {}
            if _is_bytes(one) or (one.get("type") == "array" and _is_bytes(one.get("items"))):
                yield name


def _is_bytes(schema: Any) -> bool:
    """In 3.0 such a string has `format: binary`, in 3.1 a `contentMediaType` and no `contentEncoding`."""
    if not isinstance(schema, dict) or schema.get("type") != "string":
        return False
    return schema.get("format") == "binary" or ("contentMediaType" in schema and "contentEncoding" not in schema)


def _parameter(document: OpenAPIDocument, node: JSONObject) -> APIParameter | None:
    """One parameter; None for what no request can say of itself."""
    name, place = node.get("name"), node.get("in")
    if not isinstance(name, str) or not name or place not in tuple(_STYLES):
        raise SchemaError(f"a parameter needs a name and a location (`in`); one has {name!r:.100} and {place!r:.100}")
    if place == "header" and name.lower().replace("_", "-") in _IGNORED | _CONNECTION_HEADERS | _METHOD_HEADERS:
        return None
    if place == "query" and name.lower() == _METHOD_IN_QUERY:
        return None
    kinds = _kinds(node)
    schema = document.resolve(next(iter(kinds.values()))).get("schema", True) if kinds else node.get("schema", True)
    style = node.get("style", _STYLES[place][0])
    if style not in _STYLES[place]:
        raise SchemaError(f"the parameter {name!r:.100} has the style {style!r:.100}, which is not valid in a {place}")
    return APIParameter(
        name=name,
        place=place,
        required=node.get("required") is True or place == "path",
        description=_text(node, "description"),
        schema=_with_example(schema, node),
        style=style,
        explode=bool(node.get("explode", style in ("form", "deepObject"))),
        reserved=node.get("allowReserved") is True,
        as_json=bool(kinds),
    )


def _with_example(schema: Any, node: JSONObject) -> Any:
    if "example" in node and isinstance(schema, dict) and "$ref" not in schema:
        return {"example": node["example"], **schema}
    return schema


def _json_schema(document: OpenAPIDocument, answer: JSONObject) -> Any:
    kinds = _kinds(answer)
    found = next((kind for media, kind in kinds.items() if is_json(media)), None)
    return None if found is None else document.resolve(found).get("schema")


def _preference(media: str) -> int:
    if is_json(media) or media.strip() == "*/*":
        return -1
    kind = _kind(media)
    return _PREFERRED.index(kind) if kind in _PREFERRED else len(_PREFERRED)


def _text(holder: Any, key: str) -> str | None:
    found = holder.get(key) if isinstance(holder, dict) else None
    return found.encode(errors="replace").decode() if isinstance(found, str) and found else None


def _object(holder: JSONObject, key: str) -> JSONObject:
    found = holder.get(key)
    if found is not None and not isinstance(found, dict):
        raise SchemaError(f"`{key}` is an object, not {type(found).__name__}")
    return found or {}


def _listed(holder: JSONObject, key: str) -> list[Any]:
    found = holder.get(key)
    if found is not None and not isinstance(found, list):
        raise SchemaError(f"`{key}` is an array, not {type(found).__name__}")
    return found or []
