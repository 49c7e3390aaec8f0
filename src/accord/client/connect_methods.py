"""Ways to a server, and which of them led there: so that the next client goes it at once.

Of a command it is remembered that its server said nothing to `server/discover`, which costs seconds at each start.

Memory only says what to try first: a way that fails is forgotten, and after an hour it is looked for anew, as a server
may have learnt more.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from enum import Enum

from accord.errors import AccordError, ConnectionLost, HTTPError

_MAX_SERVERS = 1_000
_TTL_SECONDS = 3_600.0


class ConnectMethod(Enum):
    """How a connection is opened."""

    PROBE = "server/discover, and initialize if the server is an older one"
    HANDSHAKE = "initialize"
    SSE = "HTTP+SSE"


class ConnectMethodCache:
    """What is known of servers; the one that was not used for the longest time goes first."""

    def __init__(self) -> None:
        self._methods: OrderedDict[Hashable, tuple[ConnectMethod, float]] = OrderedDict()

    def get(self, server: Hashable) -> ConnectMethod | None:
        """The way that led there."""
        way, ends_at = self._methods.get(server, (None, 0.0))
        if way is not None and time.monotonic() >= ends_at:
            self.forget(server)
            return None
        return way

    def set(self, server: Hashable, way: ConnectMethod) -> None:
        """This way led there."""
        self._methods[server] = (way, time.monotonic() + _TTL_SECONDS)
        self._methods.move_to_end(server)
        if len(self._methods) > _MAX_SERVERS:
            self._methods.popitem(last=False)

    def forget(self, server: Hashable) -> None:
        """The way that was known leads there no more."""
        self._methods.pop(server, None)


CONNECT_METHODS = ConnectMethodCache()
"""What this process knows, by `target.identity`: two paths of one host may be two servers."""


def may_try_other_method(error: AccordError) -> bool:
    """Whether a server was there, so that another way may lead to it."""
    return not any(
        isinstance(each, ConnectionLost | TimeoutError) or (isinstance(each, HTTPError) and each.final)
        for each in _causes(error)
    )


def may_be_sse(error: AccordError) -> bool:
    """Whether to try that: "400 Bad Request", "404 Not Found" or "405 Method Not Allowed": Issue a GET request"."""
    return any(isinstance(each, HTTPError) and each.status in (400, 404, 405) for each in _causes(error))


def have_same_response(first: AccordError, second: AccordError) -> bool:
    """Return whether two errors come from HTTP responses with the same status and body."""
    responses = [
        [(each.status, each.body) for each in _causes(error) if isinstance(each, HTTPError)]
        for error in (first, second)
    ]
    return bool(responses[0]) and responses[0][-1:] == responses[1][-1:]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
