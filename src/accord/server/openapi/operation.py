"""One operation of an OpenAPI document: its parameters, its body and its responses.

The constructor reads only method, path and metadata. The rest is read when the operation is first listed or called, so
that a document of ten thousand operations loads quickly.
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
"""The styles of a parameter, by its place; the first is the default."""
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
"""Headers of the connection and of proxies, which a model cannot set."""
_METHOD_HEADERS = {"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"}
"""Headers that many servers read as a method or URL override, and so could reach a skipped operation."""
_METHOD_IN_QUERY = "_method"
"""The query parameter with the same effect."""
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
FORMS = (URLENCODED, MULTIPART)
_SUCCESS = re.compile(r"2([0-9][0-9]|XX|xx)")
_PREFERRED = (*FORMS, "text/plain")
"""Media types of bodies in the order of preference, after JSON."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """The method, path and metadata of an operation, by which a `RouteMap` selects it."""

    method: str
    """In capitals: "GET"."""
    path: str
    """As in the document: "/pets/{id}"."""
    id: str | None = None
    """Its `operationId`."""
    summary: str | None = None
    description: str | None = None
    tags: frozenset[str] = frozenset()
    deprecated: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class APIParameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter, and how its value is encoded."""

    name: str
    place: str
    required: bool = False
    description: str | None = None
    schema: Any = True
    style: str = "simple"
    explode: bool = False
    reserved: bool = False
    """Whether reserved characters of URLs stay unencoded (`allowReserved`)."""
    as_json: bool = False
    """Whether any value is encoded as JSON."""


class RequestBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a request."""

    media: str
    """The media type."""
    schema: Any = True
    required: bool = False
    description: str | None = None
    encoding: JSONObject = {}
    """How the members of a form are encoded."""
    files: frozenset[str] = frozenset()
    """The members of a form that are bytes."""


class APIOperation:
    """One operation. Its properties read the document on first use, and raise `SchemaError` if it is invalid."""

    def __init__(self, document: OpenAPIDocument, method: str, path: str, item: Any, content: Any) -> None:
        self.document: OpenAPIDocument = document
        self._item = item
        self._whole = isinstance(content, dict)
        self._content: JSONObject = content if isinstance(content, dict) else {}
        tags = self._content.get("tags")
        self.route: Route = Route(
            method=method.upper(),
            path=path,
            id=_text(self._content, "operationId"),
            summary=_text(self._content, "summary") or _text(item, "summary"),
            description=_text(self._content, "description") or _text(item, "description"),
            tags=frozenset(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else frozenset(),
            deprecated=self._content.get("deprecated") is True,
        )

    def check(self) -> None:
        """Raise `SchemaError` if the path or the operation is invalid at first sight."""
        _ = self.path
        self.document.resolve(self._item)
        if not self._whole:
            raise SchemaError("an operation must be an object")

    @cached_property
    def path(self) -> PathTemplate:
        """The template of the path."""
        return PathTemplate(self.route.path)

    @cached_property
    def parameters(self) -> list[APIParameter]:
        """The parameters of the operation, and those of its path item that it does not override. An undeclared path
        variable is a string.
        """
        variables = self.path.variables
        parameters = {
            ("path", name): APIParameter(name=name, place="path", required=True, schema={"type": "string"})
            for name in variables
        }
        for holder in (self.document.resolve(self._item), self._content):
            for node in _list_of(holder, "parameters"):
                parameter = _parameter(self.document, self.document.resolve(node))
                if parameter is not None and (parameter.place != "path" or parameter.name in variables):
                    parameters[parameter.place, parameter.name] = parameter
        return list(parameters.values())

    @cached_property
    def body(self) -> RequestBody | None:
        """The body, in the media type that is easiest to write."""
        if "requestBody" not in self._content:
            return None
        request_body = self.document.resolve(self._content["requestBody"])
        kinds = _kinds(request_body)
        if not kinds:
            return None
        media = min(kinds, key=_preference)
        content = self.document.resolve(kinds[media])
        schema = content.get("schema", True)
        return RequestBody(
            media="application/json" if media.strip() == "*/*" else media if is_json(media) else _kind(media),
            schema=schema,
            files=frozenset(_files(self.document, schema)) if _kind(media) == MULTIPART else frozenset(),
            required=request_body.get("required") is True,
            description=_text(request_body, "description"),
            encoding=_object(content, "encoding"),
        )

    @cached_property
    def result(self) -> Any:
        """The schema of the result, or None if the result is not JSON, or differs between status codes."""
        schemas = [_json_schema(self.document, answer) for answer in self._successes()]
        first = schemas[0] if schemas else None
        return first if first not in (None, {}, True) and all(schema == first for schema in schemas) else None

    @property
    def response_media_type(self) -> str | None:
        """The media type of the result, or None if it is unknown."""
        return next((_kind(media) for answer in self._successes() for media in _kinds(answer)), None)

    def _successes(self) -> list[JSONObject]:
        """Return the responses with a 2xx status."""
        responses = _object(self._content, "responses").items()
        return [self.document.resolve(node) for status, node in responses if _SUCCESS.fullmatch(str(status))]


def _kinds(holder: JSONObject) -> JSONObject:
    """Return the media types of a body, each with its content."""
    return {
        media: kind for media, kind in _object(holder, "content").items() if isinstance(media, str) and media.isascii()
    }


def _kind(media: str) -> str:
    """Return a media type without its parameters."""
    return media.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Return whether a media type is JSON."""
    kind = _kind(media)
    return kind == "application/json" or kind.endswith("+json")


def _files(document: OpenAPIDocument, schema: Any) -> Iterator[str]:
    """Yield the names of members that are bytes, or lists of bytes."""
    if isinstance(schema, dict):
        for name, member in _object(document.resolve(schema), "properties").items():
            schema_of_member = document.resolve(member) if isinstance(member, dict) else {}
            if _is_bytes(schema_of_member) or (
                schema_of_member.get("type") == "array" and _is_bytes(schema_of_member.get("items"))
            ):
                yield name


def _is_bytes(schema: Any) -> bool:
    """Return whether a schema describes bytes: `format: binary` in 3.0, `contentMediaType` without `contentEncoding` in
    3.1.
    """
    if not isinstance(schema, dict) or schema.get("type") != "string":
        return False
    return schema.get("format") == "binary" or ("contentMediaType" in schema and "contentEncoding" not in schema)


def _parameter(document: OpenAPIDocument, node: JSONObject) -> APIParameter | None:
    """Return a parameter, or None for a header or query parameter that a request must not set."""
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
    content = next((kind for media, kind in kinds.items() if is_json(media)), None)
    return None if content is None else document.resolve(content).get("schema")


def _preference(media: str) -> int:
    if is_json(media) or media.strip() == "*/*":
        return -1
    kind = _kind(media)
    return _PREFERRED.index(kind) if kind in _PREFERRED else len(_PREFERRED)


def _text(holder: Any, key: str) -> str | None:
    value = holder.get(key) if isinstance(holder, dict) else None
    return value.encode(errors="replace").decode() if isinstance(value, str) and value else None


def _object(holder: JSONObject, key: str) -> JSONObject:
    value = holder.get(key)
    if value is not None and not isinstance(value, dict):
        raise SchemaError(f"`{key}` is an object, not {type(value).__name__}")
    return value or {}


def _list_of(holder: JSONObject, key: str) -> list[Any]:
    value = holder.get(key)
    if value is not None and not isinstance(value, list):
        raise SchemaError(f"`{key}` is an array, not {type(value).__name__}")
    return value or []
