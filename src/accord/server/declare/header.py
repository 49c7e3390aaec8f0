"""An argument that stands in a header of HTTP too, for those who route by it without reading the body (2026-07-28).

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
    """Mark a parameter of a tool, a `str`, `int` or `bool`, to be sent as `Mcp-Param-NAME` as well.

    Everybody on the way can read headers: "Server developers SHOULD NOT mark sensitive parameters (passwords, API keys,
    tokens, PII)". Raises `DeclarationError` for what cannot be in the name of a header.
    """

    name: str

    def __post_init__(self) -> None:
        try:
            check_name(self.name)
        except ValueError as exc:
            raise DeclarationError(f"Header({self.name[:100]!r}): {exc}") from exc

    @property
    def extra_json_schema(self) -> JSONObject:
        """What it adds to the schema of the parameter, as `msgspec.Meta` has it."""
        return {ANNOTATION: self.name}

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Callable[[Any], JSONObject]) -> JSONObject:
        """The same, for hints that pydantic reads."""
        return {**handler(core_schema), **self.extra_json_schema}
