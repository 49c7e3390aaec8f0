"""A user of another client: logs in, calls, calls after the access token has expired, and calls what needs more scopes.

    python on_clock.py CLOCK mcp2_client.py CLOCK URL

The clients differ in `connect`, which yields a `Client`. Printed is what happened, as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from browser import Browser

REDIRECT_URI = "http://127.0.0.1:33419/callback"
EXPIRY = 700
"""Seconds after which an access token has expired, and the minute for which clocks may differ."""


class Client(Protocol):
    async def tools(self) -> list[str]: ...

    async def call(self, name: str, arguments: dict[str, Any]) -> str: ...


Connect = Callable[[str], AbstractAsyncContextManager[Client]]


class User:
    """The user's browser, between the handlers of a client that are given the URL, and asked for the callback."""

    def __init__(self) -> None:
        self._browser = Browser()
        self._callback = ""

    async def visit(self, url: str) -> None:
        self._callback = await self._browser.login(url)

    def callback(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self._callback).query).items()}


class Memory:
    """A `TokenStorage` of the official SDK."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


async def play(connect: Connect, clock: Path, url: str) -> dict[str, Any]:
    async with connect(url) as client:
        seen: dict[str, Any] = {"tools": await client.tools(), "calls": [await client.call("who", {})]}
        advance(clock)
        seen["calls"].append(await client.call("who", {}))
        seen["calls"].append(await client.call("write_note", {"text": "milk"}))
    return seen


def advance(clock: Path) -> None:
    clock.write_text(str(float(clock.read_text()) + EXPIRY))


def main(connect: Connect) -> None:
    _, clock, url = sys.argv
    print(json.dumps(asyncio.run(play(connect, Path(clock), url))))
