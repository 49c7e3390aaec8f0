"""The request to an API, its response, and the function type that sends requests.

`Send` is the only interface to HTTP here: aiohttp, an application in this process, or a custom function.
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
"""Matches charsets that are used on the web. Python has other codecs: some fail, and one takes hours."""


class APIRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to an API."""

    method: str
    url: str
    """Percent-encoded, and sent without changes."""
    headers: Mapping[str, str] = {}
    """By lower-case name."""
    body: bytes | None = None

    def __repr__(self) -> str:
        return f"APIRequest({self.method} {self.url.partition('?')[0]})"  # the rest may be secret


class APIAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A complete response of an API."""

    status: int
    headers: Mapping[str, str] = {}
    """By lower-case name."""
    body: bytes = b""

    @property
    def media_type(self) -> str:
        """The media type of the body without parameters, or an empty string if the response has none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text, decoded with the response's charset, or UTF-8 if that is missing or unknown."""
        _, _, parameter = self.headers.get("content-type", "").lower().partition("charset=")
        charset = parameter.partition(";")[0].strip(" \"'")
        return self.body.decode(charset if _CHARSETS(charset) and _is_known(charset) else "utf-8", errors="replace")


def _is_known(charset: str) -> bool:
    try:
        return bool(codecs.lookup(charset))
    except LookupError:
        return False


Send: TypeAlias = Callable[[APIRequest], Awaitable[APIAnswer]]
"""Sends a request and returns its response, without following redirects. Raises `ToolError` if there is none."""
