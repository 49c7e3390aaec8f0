"""A request to an API, what it answers, and the contract of whoever carries the two.

`Send` is all that this package knows of HTTP: aiohttp, an application in this process, or a function of yours.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec

_CHARSETS = re.compile(
    r"(utf|iso|latin|windows|cp|koi8|mac|big5|gb|euc|shift_?jis|ks_c|tis|us-ascii)[\w.:-]*"
).fullmatch
"""What texts on the web are written in. Python has other codecs by name, some that fail and one that takes hours."""


class APIRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request, ready to be sent."""

    method: str
    url: str
    """Percent-encoded: to be sent as it is."""
    headers: Mapping[str, str] = {}
    """By their names in small letters."""
    body: bytes | None = None


class APIAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request, whole."""

    status: int
    headers: Mapping[str, str] = {}
    """By their names in small letters."""
    body: bytes = b""

    @property
    def media_type(self) -> str:
        """What its body is, without parameters; nothing where that is not said."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text, in the charset that is named."""
        _, _, said = self.headers.get("content-type", "").lower().partition("charset=")
        named = said.partition(";")[0].strip(" \"'")
        return self.body.decode(named if _CHARSETS(named) and _is_known(named) else "utf-8", errors="replace")


def _is_known(charset: str) -> bool:
    try:
        return bool(codecs.lookup(charset))
    except LookupError:
        return False


Send: TypeAlias = Callable[[APIRequest], Awaitable[APIAnswer]]
"""Sends a request and gives its answer, without following redirects. Raises `ToolError` where there is none."""
