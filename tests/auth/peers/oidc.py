"""The authorization server oidc-provider on a port of loopback, and a browser that fills its forms."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import aiohttp
import msgspec

from tests.interop.peers import oidc_provider

SECONDS = 100
"""For the server to begin; it takes half of one."""

_FORM = re.compile(r'<form[^>]* action="([^"]+)"')
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


@asynccontextmanager
async def serving_oidc(**options: Any) -> AsyncIterator[str]:
    """Serve oidc-provider; the value is its issuer. `options` are those of provider.mjs: `resource`, `scopes`,
    `lifetime`, `clients`, `documents`.
    """
    process = await asyncio.create_subprocess_exec(
        *oidc_provider(),
        msgspec.json.encode(options).decode(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(SECONDS):
            while b"serves at " not in (line := await process.stdout.readline()):
                assert line, "oidc-provider ended before it served"
        yield line.decode().rpartition(" ")[2].strip()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


class Browser:
    """A browser with cookies, whose user logs in and consents. `pages` counts the forms that were shown."""

    def __init__(self, user: str = "alice") -> None:
        self._user = user
        self._session: aiohttp.ClientSession | None = None
        self.pages: int = 0

    async def __aenter__(self) -> Browser:
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))  # also of addresses
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def login(self, url: str, callback: str = "/callback") -> str:
        """Open a URL, submit every form, and return the URL with this path to which the server redirects."""
        assert self._session is not None, "use `async with Browser()`"
        form: dict[str, str] | None = None
        for _ in range(20):
            method = "GET" if form is None else "POST"
            async with self._session.request(method, url, data=form, allow_redirects=False) as response:
                text = await response.text()
                if (location := response.headers.get("Location")) is not None:
                    url, form = urljoin(url, location), None
                    if url.partition("?")[0].endswith(callback):
                        return url
                    continue
                action = _FORM.search(text)
                assert action is not None, f"{response.status} at {url} without a form: {text[:500]}"
                self.pages += 1
                url = urljoin(url, html.unescape(action[1]))
                form = {name: html.unescape(value) for name, value in _HIDDEN.findall(text)}
                if 'name="login"' in text:
                    form |= {"login": self._user, "password": "password"}
        raise AssertionError(f"20 pages, and no callback: {url}")
