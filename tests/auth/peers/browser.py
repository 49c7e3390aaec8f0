"""A browser whose user logs in and consents: it submits every form that an authorization server shows.

As a program it is the `$BROWSER` of others: `python browser.py URL` also opens the callback at the end, or prints it
with `--print`. Only the standard library is used.
"""

from __future__ import annotations

import asyncio
import html
import re
import sys
import time
import urllib.error
import urllib.request
from http.client import HTTPResponse
from http.cookiejar import CookieJar
from typing import IO, Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

SECONDS = 100
"""For one page, and for the callback to be listened at."""

_PAGES = 20
_FORM = re.compile(r'<form[^>]* action="([^"]*)"')
_FIELD = re.compile(r'<(?:input type="hidden"|button type="submit") name="([^"]+)" value="([^"]*)"')


class _WithoutRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *redirect: Any) -> None:
        return None


class Browser:
    """A browser with cookies. `pages` counts the forms that were shown."""

    def __init__(self, user: str = "alice") -> None:
        self._user = user
        handlers = (urllib.request.HTTPCookieProcessor(CookieJar()), urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(_WithoutRedirects, *handlers)
        self.pages: int = 0

    async def login(self, url: str) -> str:
        """Open the URL of an authorization request; return the URL of the callback to which the server redirects."""
        return await asyncio.to_thread(self.visit, url)

    def visit(self, url: str) -> str:
        """See `login`."""
        (callback,) = parse_qs(urlsplit(url).query)["redirect_uri"]
        found = self.submit(url, callback)
        assert found.partition("?")[0] == callback, f"a page without a form: {found[:500]}"
        return found

    def submit(self, url: str, callback: str | None = None) -> str:
        """Open a URL, and submit every form. Return the URL of the callback, or the last page."""
        form: dict[str, str] | None = None
        page = url
        for _ in range(_PAGES):
            _, location, text = self._open(url, form, page)
            if location is not None:
                url, form = urljoin(url, location), None
                if url.partition("?")[0] == callback:
                    return url
                continue
            if (action := _FORM.search(text)) is None:
                return text
            self.pages += 1
            page, url, form = url, urljoin(url, html.unescape(action[1])), self._fill(text)
        raise AssertionError(f"{_PAGES} pages, and no callback: {url}")

    def _open(self, url: str, form: dict[str, str] | None, page: str = "") -> tuple[int, str | None, str]:
        """Return status, location and text of a response. A form says which page it is of, as browsers do."""
        request = urllib.request.Request(url)
        if form is not None:
            request.data = urlencode(form).encode()
            own, other = urlsplit(page), urlsplit(url)
            request.add_header("Origin", f"{own.scheme}://{own.netloc}")
            request.add_header("Sec-Fetch-Site", "same-origin" if own[:2] == other[:2] else "cross-site")
        response: HTTPResponse | IO[bytes]
        try:
            response = self._opener.open(request, timeout=SECONDS)
            status, location = 200, None
        except urllib.error.HTTPError as exc:
            response, status, location = exc, exc.code, exc.headers.get("Location")
        with response:
            return status, location, response.read().decode()

    def _fill(self, page: str) -> dict[str, str]:
        """Return the values of the form of a page; of several buttons, the first is pressed."""
        form: dict[str, str] = {}
        for name, value in _FIELD.findall(page):
            form.setdefault(name, html.unescape(value))
        return form | ({"login": self._user, "password": "password"} if 'name="login"' in page else {})

    def get(self, url: str) -> tuple[int, str]:
        """Open a URL, such as that of a callback; return status and page. Some clients listen there only later."""
        until = time.monotonic() + SECONDS
        while True:
            try:
                status, _, text = self._open(url, None)
            except urllib.error.URLError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
            else:
                return status, text


if __name__ == "__main__":
    browser = Browser()
    callback = browser.visit(sys.argv[1])
    if "--print" in sys.argv:
        print(callback)
    else:
        status, page = browser.get(callback)
        assert status == 200, f"the callback was answered with {status}: {page[:500]}"
