"""An imported API and the calls of its operations.

`API` sends requests and follows redirects, within a timeout. `APICall` turns arguments into a request; it reads its
operation when it is first listed or called.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec import UNSET

from accord.errors import InvalidArguments, ToolError
from accord.limits import Limits
from accord.messages.base import JSONObject
from accord.schema.validate import compile
from accord.server.core.context import Context
from accord.server.depends.dependencies import Dependencies
from accord.server.depends.markers import Dependency
from accord.server.openapi.address import BaseURL, has_slash
from accord.server.openapi.arguments import ArgumentPlaces, OperationArguments
from accord.server.openapi.body import encode, in_cookie, in_header, in_path, in_query
from accord.server.openapi.document import OpenAPIDocument
from accord.server.openapi.headers import APIHeaders, sendable
from accord.server.openapi.messages import APIAnswer, APIRequest, Send
from accord.server.openapi.operation import URLENCODED, APIOperation, Route
from accord.server.openapi.schemas import DocumentSchemas
from accord.server.openapi.skipped_paths import SkippedPaths
from accord.transport.http.redaction import SecretRedactor

_MOVED = (301, 302, 303, 307, 308)
_KEEPS_METHOD = (307, 308)
_REDIRECTS = 5

OpenSender = Callable[[], AsyncIterator[Send]]
"""An async generator function that yields a `Send` and closes it afterwards."""


class API:
    """The state that all operations of one import share."""

    def __init__(
        self,
        document: OpenAPIDocument,
        base: BaseURL,
        open_sender: OpenSender,
        *,
        headers: APIHeaders,
        query: Mapping[str, str],
        slashes: Collection[str],
        timeout: float,
        strict: bool,
        structured: bool,
        limits: Limits,
    ) -> None:
        self.base: BaseURL = base
        self.headers: APIHeaders = headers
        self.strict: bool = strict
        """Whether a response that does not match the document is an error."""
        self.structured: bool = structured
        """Whether responses with a schema become structured output."""
        self.limits: Limits = limits
        self.requests: DocumentSchemas = DocumentSchemas(document, limits, request=True)
        self.answers: DocumentSchemas = DocumentSchemas(document, limits, request=False)
        self.depends: Dependencies = Dependencies(
            "an operation", {"send": Dependency(open_sender, "lifespan")}, {}, (Context,)
        )
        """Opens connections for the first call, and closes them with the server."""
        self.query: list[str] = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items()]
        """The query of every request."""
        self.slashes: Collection[str] = slashes
        """Parameters whose values may contain slashes in the path."""
        self.skipped: SkippedPaths = SkippedPaths()
        """Operations that are not offered, and that no argument may reach."""
        self.fixed: set[tuple[str, str]] = {
            *(("query", name.lower()) for name in query),
            *(("header", name) for name in headers.names),
        }
        """Parameters that a client cannot set, by place and name in lower case."""
        self._secret_values = [*query.values(), *(quote(value, safe="") for value in query.values())]
        self._timeout = timeout
        self._outputs: dict[str, JSONObject] = {}

    def output_schema(self, schema: Any) -> JSONObject:
        """Return the self-contained schema of responses, compiled once as a check. Raises `SchemaError`."""
        key = schema["$ref"] if isinstance(schema, dict) and schema.keys() == {"$ref"} else None
        key = key if isinstance(key, str) else None
        output = self._outputs.get(key) if key is not None else None
        if output is None:
            output = self.answers.self_contained(schema)
            if self.answers.is_object(schema):
                output = {**output, "type": "object"}
            compile(output, self.limits)  # now: some clients do so for all tools that are listed, and fail for all
            if key is not None:
                self._outputs[key] = output
        return output

    async def fetch(
        self, route: Route, request: APIRequest, send: Send, context: Context | None
    ) -> tuple[APIAnswer, SecretRedactor]:
        """Return the response to a request, and a redactor for the secrets sent with it. Raises `ToolError`."""
        fixed_headers = await self.headers.for_call(context)
        secrets = SecretRedactor()
        secrets.add_permanent([*fixed_headers.values(), *self._secret_values])
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                sent = msgspec.structs.replace(request, headers={**request.headers, **fixed_headers})
                return await self._follow(route, sent, send), secrets
        except TimeoutError as exc:
            if not deadline.expired():
                raise
            raise ToolError(f"{route} was not answered within {self._timeout:g} s") from exc
        except ToolError as exc:
            raise ToolError(secrets.redact(str(exc))) from exc

    async def _follow(self, route: Route, request: APIRequest, send: Send) -> APIAnswer:
        """Send a request and follow its redirects: only under the base URL, with the same method, and not to a skipped
        operation, since an argument may control where an API redirects to.
        """
        for _ in range(_REDIRECTS):
            answer = await send(request)
            location = answer.headers.get("location", "")
            if answer.status not in _MOVED or not location:
                return answer
            target = self.base.follow(request.url, location)
            if target is None:
                raise ToolError(f"{route}: HTTP {answer.status}: redirected outside the API; not followed")
            if request.method not in ("GET", "HEAD") and answer.status not in _KEEPS_METHOD:
                raise ToolError(f"{route}: HTTP {answer.status}, which a {request.method} does not follow")
            _, _, path, query, _ = urlsplit(target)
            path = path.removeprefix(urlsplit(self.base.url).path)
            if self.skipped.reached_by(request.method, route.path, path) or self.skipped.chosen_by_query(query):
                raise ToolError(
                    f"{route}: HTTP {answer.status}: redirected to an operation that is not offered; not followed"
                )
            request = msgspec.structs.replace(request, url=target)
        raise ToolError(f"{route}: redirected more than {_REDIRECTS} times")


_ACCEPTED = "application/json, */*;q=0.5"


class APICall:
    """An operation of an API. Its properties raise `SchemaError` if the document is invalid or incomplete."""

    def __init__(self, operation: APIOperation, api: API) -> None:
        self.operation: APIOperation = operation
        self.api: API = api

    @property
    def route(self) -> Route:
        """The method and path of the operation, and its metadata."""
        return self.operation.route

    @cached_property
    def arguments(self) -> OperationArguments:
        """The arguments of the operation."""
        return OperationArguments(self.operation, self.api.fixed)

    @cached_property
    def input_schema(self) -> JSONObject:
        """The JSON Schema of the arguments."""
        return self.arguments.schema(self.api.requests)

    @cached_property
    def output_schema(self) -> JSONObject | None:
        """The JSON Schema of the structured output, or None if the document does not describe it."""
        schema = self.operation.result
        return self.api.output_schema(schema) if self.api.structured and schema is not None else None

    def request(self, values: JSONObject) -> APIRequest:
        """Return the request for the arguments `values`. Raises `InvalidArguments` for values that cannot be sent."""
        places = self.arguments.split(values)
        path = self._path(places)
        query = [piece for parameter, value in places.query for piece in in_query(parameter, value)]
        self._check_free(query)
        headers = {
            parameter.name.lower(): in_header(parameter, value)
            for parameter, value in places.header
            if value is not None
        }
        headers = {**sendable(headers), "accept": _ACCEPTED, "user-agent": "accord"}
        if cookies := [piece for parameter, value in places.cookie for piece in in_cookie(parameter, value)]:
            headers["cookie"] = "; ".join(cookies)
        body = None
        if places.body is not UNSET and self.arguments.body is not None:
            body, headers["content-type"] = self._encode_body(places.body)
        self._check_method("&".join(query), places.body, body)
        url = self.api.base.join(path, "&".join([*query, *self.api.query]))
        return APIRequest(method=self.route.method, url=url, headers=headers, body=body)

    def _path(self, places: ArgumentPlaces) -> str:
        """Return the path. Raise `InvalidArguments` if it could reach another operation."""
        texts = {parameter.name: in_path(parameter, value) for parameter, value in places.path}
        for name, text in texts.items():
            if name not in self.api.slashes and has_slash(text):
                raise InvalidArguments(
                    f"{name!r} has a slash, which many servers read as a path separator; "
                    f"if yours does not, set slashes=[{name!r}]"
                )
        path = self.operation.path.fill(texts)
        if texts and self.api.skipped.reached_by(self.route.method, self.route.path, path):
            raise InvalidArguments(
                f"{unquote(path)!r:.200} would call another operation of the API, which is not offered"
            )
        return path

    def _check_free(self, query: list[str]) -> None:
        """Raise `InvalidArguments` if an argument sets a query parameter that the server's author has set."""
        for piece in query:
            name = unquote(piece.partition("=")[0])
            if ("query", name.lower()) in self.api.fixed:
                raise InvalidArguments(f"{name!r} in the query is set by the server: leave it out")

    def _check_method(self, query: str, value: Any, body: bytes | None) -> None:
        """Raise `InvalidArguments` if an argument overrides the method (`_method`) and so reaches a
        skipped operation.
        """
        chosen = self.api.skipped.chosen_by_query(query)
        if body is not None and self.arguments.body is not None and self.arguments.body.media == URLENCODED:
            chosen = chosen or self.api.skipped.chosen_by_query(body.decode())
        elif isinstance(value, dict):
            chosen = chosen or self.api.skipped.chosen_by(value.items())
        if chosen:
            raise InvalidArguments("`_method` makes it another operation of the API, which is not offered")

    def _encode_body(self, value: Any) -> tuple[bytes, str]:
        body = self.arguments.body
        assert body is not None, "there is one where a value for it is"
        content, media = encode(body, value)
        if not (media.isascii() and media.isprintable()):
            raise InvalidArguments(f"the media type {media!r:.200} of the body cannot be sent")
        return content, media
