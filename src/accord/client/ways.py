"""Ways to a server at a URL, and which of them led there: so that the next client goes it at once.

Memory only says what to try first: a way that fails is forgotten, and after an hour it is looked for anew, as a server
may have learnt more.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from enum import Enum

_REMEMBERED = 1_000
_SECONDS = 3_600.0


class Way(Enum):
    """How a connection over HTTP is opened."""

    PROBE = "server/discover, and initialize if the server is an older one"
    HANDSHAKE = "initialize"
    SSE = "HTTP+SSE"


class Ways:
    """What is known of URLs; the one that was not used for the longest time goes first."""

    def __init__(self) -> None:
        self._ways: OrderedDict[str, tuple[Way, float]] = OrderedDict()

    def known(self, url: str) -> Way | None:
        """The way that led there."""
        way, ends_at = self._ways.get(url, (None, 0.0))
        if way is not None and time.monotonic() >= ends_at:
            self.forget(url)
            return None
        return way

    def remember(self, url: str, way: Way) -> None:
        """This way led there."""
        self._ways[url] = (way, time.monotonic() + _SECONDS)
        self._ways.move_to_end(url)
        if len(self._ways) > _REMEMBERED:
            self._ways.popitem(last=False)

    def forget(self, url: str) -> None:
        """The way that was known leads there no more."""
        self._ways.pop(url, None)


WAYS = Ways()
"""What this process knows, by the whole URL: two paths of one host may be two servers."""
