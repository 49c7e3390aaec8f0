"""SizeLimit: no result that is larger than a model, or a line, can take."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from accord.errors import DeclarationError, ToolError
from accord.messages import codec
from accord.messages.content import TextContent
from accord.messages.prompts import GetPromptResult
from accord.messages.resources import ReadResourceResult
from accord.messages.tools import CallToolResult
from accord.server.middleware.request import CallNext, Request

_NOTE = 60
"""Bytes of the note that something is missing, at most."""


class SizeLimit:
    """Refuse results of tools, prompts and resources above so many bytes of JSON: `SizeLimit(200_000)`.

    With `cut`, the text of a tool's result is cut at the end instead, with a note of how much is missing. Structured
    output is never cut: what is left would not be what the tool promises. Raises `DeclarationError` for a limit below
    1000 bytes, in which no result fits.
    """

    def __init__(self, bytes: int = 1_000_000, cut: bool = False) -> None:
        if not isinstance(bytes, int) or bytes < 1000:
            raise DeclarationError(
                f"a limit is a number of bytes, 1000 or more: SizeLimit(200_000), not {bytes!r:.200}"
            )
        self._bytes = bytes
        self._cut = cut

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`. Raises `ToolError` for what is too large."""
        value = await call_next(request)
        if request.over:
            return value
        result = request.pack(value)
        if not isinstance(result, CallToolResult | GetPromptResult | ReadResourceResult):
            return value
        size = len(codec.encode(result))
        if size <= self._bytes:
            return value
        if self._cut and isinstance(result, CallToolResult) and result.structured_content is UNSET:
            shorter = _shortened(result, size - self._bytes)
            if shorter is not None:
                return shorter
        raise ToolError(
            f"the result of {request.asked_for} has {size:,} bytes, and {self._bytes:,} are the most: "
            "ask for less, for instance for a part of it"
        )


def _shortened(result: CallToolResult, excess: int) -> CallToolResult | None:
    """A result that has `excess` bytes less, taken from its last texts; None where these are not enough."""
    content = list(result.content)
    missing = excess + _NOTE
    for index in reversed(range(len(content))):
        block = content[index]
        if isinstance(block, TextContent):
            text = block.text.encode()
            taken = min(missing, len(text))
            missing -= taken
            kept = text[: len(text) - taken].decode(errors="ignore")
            content[index] = msgspec.structs.replace(block, text=kept)
            if not missing:
                note = f"\n[{excess + _NOTE:,} bytes were left out here]"
                content[index] = msgspec.structs.replace(block, text=kept + note)
                return msgspec.structs.replace(result, content=content)
    return None
