"""The callback of a login: a server on this machine that receives the browser, and the browser that is opened.

"the client ... listens on the loopback interface" (RFC 8252, 7.3). The port is bound before the client registers, so
that the registered redirect URI is the one in use. The page has no script, and shows nothing of the callback unescaped.
"""

from __future__ import annotations

import asyncio
import html
import logging
import os
import socket
import sys
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from accord.errors import AuthorizationError

if TYPE_CHECKING:
    from aiohttp.web import AppRunner, Request, Response

PATH = "/callback"
STEP = "callback"

_WAIT_FOR_OUTCOME_SECONDS = 60.0
_MAX_CALLBACKS = 100
"""Limit of the callbacks of one login; a page in the browser may send any number of them."""
_LINE_BYTES = 20_000
"""Limit of the first line of a callback, and of each header: more than the code grant reads of its query."""
_SILENT = logging.Logger("accord.callback", logging.CRITICAL + 1)
"""The log of errors in requests, which any program on this machine can cause, and which may have the code."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>accord</title>
<body style="font: 1.1rem system-ui; margin: 4rem auto; max-width: 40rem"><h1>{title}</h1><p>{text}</p></body></html>"""


class BrowserCallback:
    """One callback of the browser: its query, as it was sent, and the page that the browser is answered with."""

    def __init__(self, query: str) -> None:
        self.query: str = query
        self._page: asyncio.Future[tuple[int, str, str]] = asyncio.get_running_loop().create_future()

    def answer(self, title: str, text: str, status: int = 200) -> None:
        """Answer the browser."""
        if not self._page.done():
            self._page.set_result((status, title, text))

    async def page(self) -> tuple[int, str, str]:
        """Return status, title and text of the page, once the outcome is known."""
        try:
            return await asyncio.wait_for(self._page, _WAIT_FOR_OUTCOME_SECONDS)
        except TimeoutError:
            return 200, "Login received", "Return to the program that opened this page."


def _bind(port: int) -> socket.socket:
    """Return a socket at a port of 127.0.0.1, also if connections of an earlier login linger there."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        bound.listen()  # at once: until then, another program could bind the port, too
    except OSError:
        bound.close()
        raise
    return bound


class CallbackListener:
    """A server on 127.0.0.1 that receives the callbacks of one login. `port` 0 chooses a free port, if possible the
    one of `preferred`, a redirect URI.
    """

    def __init__(self, port: int = 0, preferred: str | None = None) -> None:
        self._port = port
        self._preferred_port = urlsplit(preferred or "").port or 0
        self._callbacks: asyncio.Queue[BrowserCallback] = asyncio.Queue(_MAX_CALLBACKS)
        self._runner: AppRunner | None = None
        self._unanswered: set[BrowserCallback] = set()
        self._is_over = False
        self.redirect_uri: str = ""
        """The redirect URI, set once the port is bound."""

    async def __aenter__(self) -> CallbackListener:
        from aiohttp import web

        bound = self._bind_preferred() or self._bind()
        application = web.Application(client_max_size=1)
        application.router.add_get(PATH, self._receive)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handle_signals=False,
            logger=_SILENT,
            max_line_size=_LINE_BYTES,
            lingering_time=0,  # the end of a login waits for no body
        )
        await self._runner.setup()
        await web.SockSite(self._runner, bound).start()
        self.redirect_uri = f"http://127.0.0.1:{bound.getsockname()[1]}{PATH}"
        return self

    def _bind_preferred(self) -> socket.socket | None:
        if self._port or not self._preferred_port:
            return None
        try:
            return _bind(self._preferred_port)
        except OSError:
            return None

    def _bind(self) -> socket.socket:
        try:
            return _bind(self._port)
        except OSError as exc:
            raise AuthorizationError(
                STEP,
                f"port {self._port} of this machine cannot be used: {exc.strerror}",
                "end the program that uses it, or choose another registered port: --port",
            ) from exc

    async def receive(self) -> BrowserCallback:
        """Wait for the next callback."""
        return await self._callbacks.get()

    async def _receive(self, request: Request) -> Response:
        from aiohttp import web

        callback = BrowserCallback(request.rel_url.raw_query_string)
        self._unanswered.add(callback)
        try:
            self._enqueue(callback)
            status, title, text = await callback.page()
        finally:
            self._unanswered.discard(callback)
        page = _PAGE.format(title=html.escape(title), text=html.escape(text))
        return web.Response(text=page, status=status, content_type="text/html", headers=_HEADERS)

    def _enqueue(self, callback: BrowserCallback) -> None:
        if self._is_over:
            _refuse(callback)
            return
        try:
            self._callbacks.put_nowait(callback)
        except asyncio.QueueFull:
            callback.answer("Too many callbacks", "Begin the login again.", 429)

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        for callback in self._unanswered:
            _refuse(callback)  # `cleanup` waits for them
        if self._runner is not None:
            await self._runner.cleanup()


def _refuse(callback: BrowserCallback) -> None:
    callback.answer("The login is over", "This page came too late. Return to the program that opened it.", 400)


async def open_browser(url: str, note: str = "") -> None:
    """Open a URL, which was checked, in the user's browser, never through a shell. Show it too, with a note: there may
    be none.

    Browsers in a terminal run until the user ends them.
    """
    import webbrowser

    ending = f"{note}\n\n" if note else ""
    sys.stderr.write(f"Log in with your browser. If it does not open, visit:\n\n    {url}\n\n{ending}")
    sys.stderr.flush()
    with suppress(webbrowser.Error, OSError):
        await asyncio.to_thread(webbrowser.open, url)
