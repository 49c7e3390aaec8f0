"""One API: where it is, what goes along with each request, and how an answer is had, in bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from accord.errors import ToolError
from accord.limits import Limits
from accord.messages.base import JSONObject
from accord.schema.validate import compile
from accord.server.context import Context
from accord.server.depends.dependencies import Dependencies
from accord.server.depends.markers import Dependency
from accord.server.openapi.address import BaseURL
from accord.server.openapi.document import OpenAPIDocument
from accord.server.openapi.headers import APIHeaders
from accord.server.openapi.messages import APIAnswer, APIRequest, Send
from accord.server.openapi.operation import Route
from accord.server.openapi.schemas import DocumentSchemas
from accord.server.openapi.skipped_paths import SkippedPaths
from accord.transport.http.redaction import SecretRedactor

_MOVED = (301, 302, 303, 307, 308)
_KEEPS_METHOD = (307, 308)
_REDIRECTS = 5

OpenSender = Callable[[], AsyncIterator[Send]]
"""What gives a `Send`, and closes it after: an async generator function."""


class API:
    """What all operations of one import share."""

    def __init__(
        self,
        document: OpenAPIDocument,
        base: BaseURL,
        opened: OpenSender,
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
        """Whether an answer that is not as described is an error."""
        self.structured: bool = structured
        """Whether answers are structured output where they are described."""
        self.limits: Limits = limits
        self.requests: DocumentSchemas = DocumentSchemas(document, limits, request=True)
        self.answers: DocumentSchemas = DocumentSchemas(document, limits, request=False)
        self.depends: Dependencies = Dependencies("an operation", {"send": Dependency(opened, "lifespan")}, {})
        """Has connections made with the first call, and closed with the server."""
        self.query: list[str] = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items()]
        """What stands in the query of every request."""
        self.slashes: Collection[str] = slashes
        """Parameters whose values may have slashes in the path."""
        self.skipped: SkippedPaths = SkippedPaths()
        """Operations that are not offered, and that no argument leads to."""
        self.fixed: set[tuple[str, str]] = {
            *(("query", name.lower()) for name in query),
            *(("header", name) for name in headers.names),
        }
        """Parameters that no caller chooses."""
        self._secret_values = [*query.values(), *(quote(value, safe="") for value in query.values())]
        self._timeout = timeout
        self._outputs: dict[str, JSONObject] = {}

    def output_schema(self, schema: Any) -> JSONObject:
        """The schema of answers that stands alone, and can be used. Raises `SchemaError`."""
        key = schema["$ref"] if isinstance(schema, dict) and schema.keys() == {"$ref"} else None
        key = key if isinstance(key, str) else None
        made = self._outputs.get(key) if key is not None else None
        if made is None:
            made = self.answers.self_contained(schema)
            if self.answers.is_object(schema):
                made = {**made, "type": "object"}
            compile(made, self.limits)  # now: some clients do so for all tools that are listed, and fail for all
            if key is not None:
                self._outputs[key] = made
        return made

    async def fetch(
        self, what: Route, request: APIRequest, send: Send, context: Context | None
    ) -> tuple[APIAnswer, SecretRedactor]:
        """The answer to a request for `what`, and what must not be told of it. Raises `ToolError`."""
        ours = await self.headers.for_call(context)
        secrets = SecretRedactor()
        secrets.add_permanent([*ours.values(), *self._secret_values])
        try:
            async with asyncio.timeout(self._timeout) as limit:
                sent = msgspec.structs.replace(request, headers={**request.headers, **ours})
                return await self._follow(what, sent, send), secrets
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise ToolError(f"{what} was not answered within {self._timeout:g} s") from exc
        except ToolError as exc:
            raise ToolError(secrets.redact(str(exc))) from exc

    async def _follow(self, what: Route, request: APIRequest, send: Send) -> APIAnswer:
        """The answer at the end of redirects, which are followed under the base, only with the same method, and not to
        an operation that was skipped: an argument may say where an API redirects to.
        """
        for _ in range(_REDIRECTS):
            answer = await send(request)
            location = answer.headers.get("location", "")
            if answer.status not in _MOVED or not location:
                return answer
            target = self.base.follow(request.url, location)
            if target is None:
                raise ToolError(f"{what}: HTTP {answer.status}, to where the API is not; that is not followed")
            if request.method not in ("GET", "HEAD") and answer.status not in _KEEPS_METHOD:
                raise ToolError(f"{what}: HTTP {answer.status}, which a {request.method} does not follow")
            _, _, path, query, _ = urlsplit(target)
            path = path.removeprefix(urlsplit(self.base.url).path)
            if self.skipped.reached_by(request.method, what.path, path) or self.skipped.chosen_by_query(query):
                raise ToolError(f"{what}: HTTP {answer.status}, to an operation that is not offered; not followed")
            request = msgspec.structs.replace(request, url=target)
        raise ToolError(f"{what}: redirected more than {_REDIRECTS} times")
