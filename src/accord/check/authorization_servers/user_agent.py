"""The user of a checked authorization server: who opens an authorization URL, and what comes back.

Without a user, redirects are followed as by a browser, with cookies. With `forms`, each form is submitted as well: a
development server then logs in and consents. Any other text is a command with `{url}`: it prints the callback URL, or
opens a browser whose callback arrives at a port of this machine.
"""

from __future__ import annotations

import asyncio
import html
import shlex
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from accord.auth.callback import CallbackListener
from accord.errors import TargetError

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

FORMS = "forms"
URL = "{url}"

_PAGES = 20
_BODY_BYTES = 1 << 20
_COMMAND_SECONDS = 300.0
_NAMES = ("login", "user", "username", "email", "name")
_VALUE, _PASSWORD = "alice", "password"


class UserNeeded(Exception):
    """The authorization server shows a page for a user: its status and URL."""

    def __init__(self, status: int, url: str, text: str) -> None:
        super().__init__(f"HTTP {status} at {url.partition('?')[0]}, and no redirect to the client")
        self.status: int = status
        self.text: str = text


class UserAgent:
    """Opens authorization URLs. `mode` is "", `forms`, or a command; raises `TargetError` for an invalid one."""

    def __init__(self, mode: str) -> None:
        if mode and mode != FORMS and URL not in mode:
            raise TargetError(f"{mode!r} is not {FORMS!r}, and has no {URL}: write a command that opens {URL}")
        self._mode = mode
        self._listener: CallbackListener | None = None
        self.redirect_uri: str = "http://127.0.0.1:33418/callback"
        """The redirect URI of clients that are checked with."""

    @property
    def has_command(self) -> bool:
        """Whether a command opens the URLs, which may be a user with a browser."""
        return self._mode not in ("", FORMS)

    async def open(self) -> None:
        """Listen for callbacks, if a command may open a browser."""
        if self.has_command:
            self._listener = await CallbackListener().__aenter__()
            self.redirect_uri = self._listener.redirect_uri

    async def close(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            await self._listener.__aexit__(None, None, None)

    async def visit(self, url: str, redirect_uri: str) -> str:
        """Return the callback URL to which an authorization URL leads. Raises `UserNeeded`."""
        if self.has_command:
            return await self._run_command(url)
        return await self.follow(url, redirect_uri, submits=self._mode == FORMS)

    async def follow(self, url: str, redirect_uri: str, *, submits: bool = False) -> str:
        """Follow redirects to a callback; submit forms on the way if allowed. Raises `UserNeeded`."""
        import aiohttp

        jar = aiohttp.CookieJar(unsafe=True)  # also of addresses
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            form: dict[str, str] | None = None
            for _ in range(_PAGES):
                status, location, text = await _request(session, url, form)
                if location is not None:
                    url, form = urljoin(url, location), None
                    if url.partition("?")[0] == redirect_uri.partition("?")[0]:
                        return url
                    continue
                found = _Form.first(text) if submits and status < 400 else None
                if found is None:
                    raise UserNeeded(status, url, text)
                url, form = urljoin(url, found.action), found.values
        raise UserNeeded(status, url, f"{_PAGES} pages, and no callback")

    async def _run_command(self, url: str) -> str:
        """Run the command, and return the URL that it prints, or the callback of the browser that it opens."""
        assert self._listener is not None
        words = [part.replace(URL, url) for part in shlex.split(self._mode)]
        process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
        printed = asyncio.ensure_future(process.communicate())
        received = asyncio.ensure_future(self._listener.receive())
        try:
            async with asyncio.timeout(_COMMAND_SECONDS):
                await asyncio.wait([printed, received], return_when=asyncio.FIRST_COMPLETED)
                if printed.done() and (callback := _last_url(printed.result()[0])):
                    return callback
                answer = await received
                answer.answer("The check goes on", "You can close this page.")
                return f"{self.redirect_uri}?{answer.query}"
        except TimeoutError:
            raise UserNeeded(0, url, f"no callback within {_COMMAND_SECONDS:g} s") from None
        finally:
            received.cancel()
            if process.returncode is None:
                process.terminate()
            await asyncio.wait([printed])


def _last_url(output: bytes) -> str:
    lines = [line for line in output.decode(errors="replace").split() if "://" in line]
    return lines[-1] if lines else ""


async def _request(session: ClientSession, url: str, form: dict[str, str] | None) -> tuple[int, str | None, str]:
    method = "GET" if form is None else "POST"
    async with session.request(method, url, data=form, allow_redirects=False) as response:
        body = await read_body(response)
        return response.status, response.headers.get("Location"), body.decode(errors="replace")


async def read_body(response: ClientResponse) -> bytes:
    """Return the body of a response, cut at a limit."""
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > _BODY_BYTES:
            response.close()
            break
    return bytes(body[:_BODY_BYTES])


class _Form(HTMLParser):
    """The first form of a page, filled in."""

    def __init__(self) -> None:
        super().__init__()
        self.action = ""
        self.values: dict[str, str] = {}
        self._state = "before"

    @classmethod
    def first(cls, text: str) -> _Form | None:
        """Return the first form of a page, or None."""
        parser = cls()
        parser.feed(text)
        return None if parser._state == "before" else parser

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: html.unescape(value or "") for name, value in attrs}
        if tag == "form" and self._state == "before":
            self._state, self.action = "inside", found.get("action", "")
        elif tag in ("input", "button") and self._state == "inside" and found.get("name"):
            kind, name = found.get("type", "text"), found["name"]
            if kind == "password":
                self.values[name] = _PASSWORD
            elif kind in ("text", "email") and any(each in name.lower() for each in _NAMES):
                self.values[name] = _VALUE
            else:
                self.values.setdefault(name, found.get("value", "on"))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self._state == "inside":
            self._state = "after"
