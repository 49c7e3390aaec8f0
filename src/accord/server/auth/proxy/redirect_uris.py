"""Redirect URIs of clients: which may be registered, and which one of a request is a registered one.

"Redirect URIs MUST be either `localhost` or use HTTPS" (Security Considerations, Communication Security); programs with
a scheme of their own (`cursor://`) are accepted where the server names it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlsplit

from accord.auth.urls import URL_CHARACTERS, check_url, is_loopback
from accord.errors import AuthorizationError, DeclarationError, visible
from accord.server.auth.proxy.endpoint_error import EndpointError

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*").fullmatch
_PRIVATE_URI = re.compile(r"[a-z][a-z0-9+.-]*:[!$%&'()*+,./0-9:;=?@A-Z\[\]_a-z~-]+").fullmatch
_UNSAFE = frozenset(
    {"about", "blob", "chrome", "data", "file", "filesystem", "ftp", "http", "https", "intent", "jar", "javascript"}
    | {"mailto", "resource", "sms", "tel", "vbscript", "view-source", "ws", "wss"}
)
_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?([/?].*)?").fullmatch
_ANY_PORT = re.compile(r"http://localhost(?::[0-9]{1,5})?([/?].*)?").fullmatch


def private_schemes(schemes: Collection[str]) -> frozenset[str]:
    """Return the schemes of an option. Raises `DeclarationError` for one that a browser handles itself."""
    found = frozenset((schemes,) if isinstance(schemes, str) else schemes)
    for scheme in sorted(found):
        if not _SCHEME(scheme) or scheme in _UNSAFE:
            raise DeclarationError(f"redirect_schemes=: {scheme!r} is not the scheme of a program, such as 'cursor'")
    return found


def check_redirect_uri(uri: str, schemes: Collection[str]) -> None:
    """Raise `EndpointError` unless a URI may be registered: https, http on loopback, or one of `schemes`."""
    if uri.partition(":")[0] in schemes:
        if len(uri) <= URL_CHARACTERS and _PRIVATE_URI(uri):
            return
        raise EndpointError("invalid_redirect_uri", f"{visible(uri)[:200]!r} is not a URI without a fragment")
    try:
        check_url(uri, "redirect_uris")
    except AuthorizationError as exc:
        raise EndpointError("invalid_redirect_uri", f"{exc.reason}: use https, or http on loopback") from None


def select_redirect_uri(requested: str | None, registered: Collection[str], *, any_localhost_port: bool) -> str:
    """Return the redirect URI of a request. It may be left out if the client has only one. Raises `EndpointError`.

    URIs are compared as texts, except for the port of loopback addresses: "The authorization server MUST allow any port
    to be specified at the time of the request for loopback IP redirect URIs" (RFC 8252, 7.3). With
    `any_localhost_port`, a registered `http://localhost` without a port stands for any: a metadata document is the same
    for every installation of a program, and cannot know the port.
    """
    if requested is None and len(registered) == 1:
        return next(iter(registered))
    if requested is None:
        raise EndpointError("invalid_request", "redirect_uri is missing, and the client has several")
    if len(requested) <= URL_CHARACTERS and (
        requested in registered or any(_same_but_port(each, requested, any_localhost_port) for each in registered)
    ):
        return requested
    raise EndpointError("invalid_request", f"redirect_uri {visible(requested)[:200]!r} is not one of the client")


def _same_but_port(registered: str, requested: str, any_localhost_port: bool) -> bool:
    one, other = _LOOPBACK(registered), _LOOPBACK(requested)
    if one is not None and other is not None:
        return one.groups() == other.groups() and _is_url(requested)
    if not any_localhost_port or not registered.startswith(("http://localhost/", "http://localhost?")):
        return False
    one, other = _ANY_PORT(registered), _ANY_PORT(requested)
    return one is not None and other is not None and one.groups() == other.groups() and _is_url(requested)


def _is_url(uri: str) -> bool:
    try:
        check_url(uri, "redirect_uri")
    except AuthorizationError:
        return False
    return True


def display_host(uri: str) -> str:
    """Return the host of a redirect URI with its port, or its scheme if a program has it."""
    parts = urlsplit(uri)
    return visible(parts.netloc if parts.scheme in ("http", "https") else f"{parts.scheme}:")


def is_local(uri: str) -> bool:
    """Return whether a redirect URI leads to a program on the user's machine."""
    parts = urlsplit(uri)
    return parts.scheme not in ("http", "https") or is_loopback(parts.hostname or "")
