"""Access control of the inspector: which requests are answered.

The page is at 127.0.0.1, and the frames of apps, whose code is a server's, are at `localhost` on the same port: another
origin, where no other route exists. A command needs the token, which is never in a cookie (every port of the machine
receives those), a query or a served page (every local user can load it).
"""

from __future__ import annotations

import hmac
import secrets

from accord.transport.asgi.request import ASGIRequest, RequestRejected
from accord.wire.hosts import HostPatterns

TOKEN_HEADER = b"accord-inspector-token"
PAGE_HOSTS = ("127.0.0.1:*",)
"""The page has one origin, so that no app has the same."""
FRAME_HOSTS = ("localhost:*",)

_JSON = b"application/json"
_MOVED = "open the inspector at 127.0.0.1 instead: localhost is for the frames of apps"


class InspectorAccess:
    """The decision about each request. `token` is the secret that commands need."""

    def __init__(self) -> None:
        self._page_hosts = HostPatterns("host", PAGE_HOSTS)
        self._frame_hosts = HostPatterns("host", FRAME_HOSTS)
        self.token: str = ""
        self.replace_token()

    def replace_token(self) -> None:
        """Make a new token; the old one, and what it opened, ends."""
        self.token = secrets.token_urlsafe(32)

    def check_page(self, request: ASGIRequest) -> None:
        """Raise `RequestRejected` unless a request may read a file of the page.

        A link of another site may open the page, which has no secrets; nothing else of another site may load anything.
        """
        self._check_host(request, self._page_hosts)
        self._check_method(request, b"GET")
        site, mode = _header(request, b"sec-fetch-site"), _header(request, b"sec-fetch-mode")
        if site in (b"", b"none", b"same-origin"):
            return
        if mode != b"navigate" or _header(request, b"sec-fetch-dest") != b"document":
            raise RequestRejected(403, "other sites cannot load parts of the inspector")

    def check_command(self, request: ASGIRequest, content_type: bytes = _JSON) -> None:
        """Raise `RequestRejected` unless a request comes from the page, or a program with the token."""
        self._check_host(request, self._page_hosts)
        self._check_method(request, b"POST")
        self._check_origin(request)
        if _header(request, b"content-type") != content_type:
            raise RequestRejected(415, f"the content type of a command is {content_type.decode()}")
        if not hmac.compare_digest(_header(request, TOKEN_HEADER), self.token.encode()):
            raise RequestRejected(401, "the token is missing or was replaced: open the link in the terminal again")

    def check_frame(self, request: ASGIRequest) -> None:
        """Raise `RequestRejected` unless a request is about the frame of an app, whose unguessable id is in the URL.

        The browser posts what the policy of the frame blocked; that is shown, and has no other effect.
        """
        self._check_host(request, self._frame_hosts)
        is_report = request.path.endswith("/blocked")
        self._check_method(request, b"POST" if is_report else b"GET")
        if _header(request, b"sec-fetch-dest") not in (b"", b"report" if is_report else b"iframe"):
            raise RequestRejected(403, "an app is shown in a frame of the inspector only")

    def _check_host(self, request: ASGIRequest, hosts: HostPatterns) -> None:
        if request.conflicting_header is not None:
            raise RequestRejected(400, "a header occurs twice with different values")
        host = _header(request, b"host")
        if not hosts.allows(host):
            is_moved = hosts is self._page_hosts and self._frame_hosts.allows(host)
            raise RequestRejected(403, _MOVED if is_moved else "the inspector does not answer to this Host")

    def _check_method(self, request: ASGIRequest, method: bytes) -> None:
        if request.method.encode() != method:
            raise RequestRejected(405, f"the method here is {method.decode()}", ((b"allow", method),))

    def _check_origin(self, request: ASGIRequest) -> None:
        origin = _header(request, b"origin")
        scheme = str(request.scope.get("scheme", "http")).encode()
        if origin and origin != scheme + b"://" + _header(request, b"host"):
            raise RequestRejected(403, "pages of another origin cannot use the inspector")
        if _header(request, b"sec-fetch-site") not in (b"", b"same-origin"):
            raise RequestRejected(403, "other sites cannot use the inspector")


def _header(request: ASGIRequest, name: bytes) -> bytes:
    return request.headers.get(name, b"")
