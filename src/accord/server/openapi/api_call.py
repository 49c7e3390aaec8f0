"""One operation, ready to be called: arguments become a request. Worked out when it is first listed or called."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import unquote

from msgspec import UNSET

from accord.errors import InvalidArguments
from accord.messages.base import JSONObject
from accord.server.openapi.address import has_slash
from accord.server.openapi.api import API
from accord.server.openapi.arguments import ArgumentPlaces, OperationArguments
from accord.server.openapi.body import encode
from accord.server.openapi.headers import sendable
from accord.server.openapi.messages import APIRequest
from accord.server.openapi.operation import URLENCODED, APIOperation, Route
from accord.server.openapi.styles import in_cookie, in_header, in_path, in_query

_ACCEPTED = "application/json, */*;q=0.5"


class APICall:
    """An operation of an API; what is asked of it raises `SchemaError` where the document does not say enough."""

    def __init__(self, operation: APIOperation, api: API) -> None:
        self.operation: APIOperation = operation
        self.api: API = api

    @property
    def route(self) -> Route:
        """Which operation it is."""
        return self.operation.route

    @cached_property
    def arguments(self) -> OperationArguments:
        """What a caller gives."""
        return OperationArguments(self.operation, self.api.fixed)

    @cached_property
    def input_schema(self) -> JSONObject:
        """JSON Schema of the arguments."""
        return self.arguments.schema(self.api.requests)

    @cached_property
    def output_schema(self) -> JSONObject | None:
        """JSON Schema of the value that it gives; None where there is none to count on."""
        schema = self.operation.result
        return self.api.output_schema(schema) if self.api.structured and schema is not None else None

    def request(self, values: JSONObject) -> APIRequest:
        """The request for some arguments. Raises `InvalidArguments` for what cannot be sent."""
        places = self.arguments.split(values)
        path = self._path(places)
        query = [piece for one, value in places.query for piece in in_query(one, value)]
        self._check_free(query)
        headers = {one.name.lower(): in_header(one, value) for one, value in places.header if value is not None}
        headers = {**sendable(headers), "accept": _ACCEPTED, "user-agent": "accord"}
        if cookies := [piece for one, value in places.cookie for piece in in_cookie(one, value)]:
            headers["cookie"] = "; ".join(cookies)
        body = None
        if places.body is not UNSET and self.arguments.body is not None:
            body, headers["content-type"] = self._encoded(places.body)
        self._check_method("&".join(query), places.body, body)
        url = self.api.base.join(path, "&".join([*query, *self.api.query]))
        return APIRequest(method=self.route.method, url=url, headers=headers, body=body)

    def _path(self, places: ArgumentPlaces) -> str:
        """The path, which is one of this operation and of no other."""
        texts = {one.name: in_path(one, value) for one, value in places.path}
        for name, text in texts.items():
            if name not in self.api.slashes and has_slash(text):
                raise InvalidArguments(
                    f"{name!r} has a slash, which many servers take for the end of a part of the path; "
                    f"where this one does not, its author says so: slashes=[{name!r}]"
                )
        path = self.operation.path.fill(texts)
        if texts and self.api.skipped.reached_by(self.route.method, self.route.path, path):
            raise InvalidArguments(f"{unquote(path)!r:.200} is another operation of the API, which is not offered")
        return path

    def _check_free(self, query: list[str]) -> None:
        """No member of an argument is called as what the server's author has set."""
        for piece in query:
            name = unquote(piece.partition("=")[0])
            if ("query", name.lower()) in self.api.fixed:
                raise InvalidArguments(f"{name!r} in the query is set by the server: leave it out")

    def _check_method(self, query: str, value: Any, body: bytes | None) -> None:
        """No member of an argument has a server take the request for one of a method with skipped operations."""
        chosen = self.api.skipped.chosen_by_query(query)
        if body is not None and self.arguments.body is not None and self.arguments.body.media == URLENCODED:
            chosen = chosen or self.api.skipped.chosen_by_query(body.decode())
        elif isinstance(value, dict):
            chosen = chosen or self.api.skipped.chosen_by(value.items())
        if chosen:
            raise InvalidArguments("`_method` makes it another operation of the API, which is not offered")

    def _encoded(self, value: Any) -> tuple[bytes, str]:
        body = self.arguments.body
        assert body is not None, "there is one where a value for it is"
        content, media = encode(body, value)
        if not (media.isascii() and media.isprintable()):
            raise InvalidArguments(f"the media type {media!r:.200} of the body cannot be sent")
        return content, media
