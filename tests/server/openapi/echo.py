"""An ASGI application that answers with what it was asked, and the documents that describe it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

JSON = dict[str, Any]
Answer = tuple[int, dict[str, str], bytes]

ANYTHING: JSON = {"200": {"description": "ok"}}


def document(paths: JSON, *, version: str = "3.1.0", **more: Any) -> JSON:
    """The least that a document is, and what a test is about."""
    return {"openapi": version, "info": {"title": "Echo", "version": "7"}, "paths": paths, **more}


def get(*parameters: JSON, **more: Any) -> JSON:
    """A GET with these parameters."""
    return {"parameters": list(parameters), "responses": ANYTHING, **more}


def parameter(name: str, place: str = "query", schema: Any = None, **more: Any) -> JSON:
    return {"name": name, "in": place, "required": place == "path", "schema": schema or {"type": "string"}, **more}


def body(schema: Any, media: str = "application/json", *, required: bool = True, **more: Any) -> JSON:
    return {
        "requestBody": {"required": required, "content": {media: {"schema": schema, **more}}},
        "responses": ANYTHING,
    }


def answering(schema: Any, media: str = "application/json", status: str = "200") -> JSON:
    return {"responses": {status: {"description": "ok", "content": {media: {"schema": schema}}}}}


class Echo:
    """Answers every request with what it was, or with what a test says; without a lifespan."""

    def __init__(self, paths: JSON, answer: Callable[[JSON], Answer] | None = None, **more: Any) -> None:
        self._document = document(paths, **more)
        self._answer = answer
        self.asked: list[JSON] = []
        """The requests so far."""

    def openapi(self) -> JSON:
        return self._document

    async def __call__(
        self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        assert scope["type"] == "http", "it has no lifespan"
        message = await receive()
        asked = {
            "method": scope["method"],
            "path": scope["raw_path"].decode(),
            "query": scope["query_string"].decode(),
            "headers": {name.decode(): value.decode() for name, value in scope["headers"]},
            "body": message["body"].decode("latin-1"),
        }
        self.asked.append(asked)
        status, headers, content = self._answer(asked) if self._answer else _echoed(asked)
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": content})


def _echoed(asked: JSON) -> Answer:
    return 200, {"content-type": "application/json"}, json.dumps(asked).encode()


def always(
    content: Any, status: int = 200, media: str = "application/json", **headers: str
) -> Callable[[JSON], Answer]:
    """An answer that is always the same."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: (status, {"content-type": media, **told}, data)
