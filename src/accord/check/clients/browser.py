"""The browser of a tested client: it opens a URL of this machine, follows redirects on this machine, and ends.

    python browser.py URL

The checker puts it into the environment variable BROWSER of a client that logs in. It returns at once, so that the
client can receive the callback. Only the standard library: it starts in 20 ms.
"""

from __future__ import annotations

import os
import sys
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

_REDIRECTS = 5
_SECONDS = 10.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _ManualRedirects(HTTPRedirectHandler):
    """Follows no redirect."""

    def redirect_request(self, *arguments: object) -> None:
        return None


def main(url: str) -> None:
    """Open a URL in the background."""
    if hasattr(os, "fork") and os.fork():
        return
    opener = build_opener(_ManualRedirects)
    for _ in range(_REDIRECTS):
        if urlsplit(url).scheme not in ("http", "https") or urlsplit(url).hostname not in _LOOPBACK:
            return
        try:
            opener.open(url, timeout=_SECONDS).close()
            return
        except HTTPError as answer:
            answer.close()
            if "Location" not in answer.headers:
                return
            url = urljoin(url, answer.headers["Location"])


if __name__ == "__main__":
    main(sys.argv[1])
