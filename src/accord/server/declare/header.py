"""Arguments that an HTTP header repeats, so that intermediaries can route by them without reading the body
(2026-07-28).

    @server.tool
    def run(query: str, region: Annotated[str, Header("Region")]) -> str: ...       # Mcp-Param-Region: us-west1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from accord.errors import DeclarationError
from accord.messages.base import JSONObject
from accord.wire.headers import ANNOTATION, check_name


class Header(msgspec.Struct, frozen=True):
    """The marker of a tool parameter, a `str`, `int` or `bool`, that is sent as the header `Mcp-Param-NAME` as well.

    Intermediaries can read headers: "Server developers SHOULD NOT mark sensitive parameters (passwords, API keys,
    tokens, PII)". Raises `DeclarationError` for an invalid header name.
    """

    name: str

    def __post_init__(self) -> None:
        try:
            check_name(self.name)
        except ValueError as exc:
            raise DeclarationError(f"Header({self.name[:100]!r}): {exc}") from exc

    @property
    def extra_json_schema(self) -> JSONObject:
        """The addition to the schema of the parameter, as in `msgspec.Meta`."""
        return {ANNOTATION: self.name}

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Callable[[Any], JSONObject]) -> JSONObject:
        """Return the schema of the parameter with the addition, for hints that pydantic reads."""
        return {**handler(core_schema), **self.extra_json_schema}
