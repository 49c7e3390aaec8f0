"""Which proxy a URL is reached through: the one that was given, or else that of the environment."""

from __future__ import annotations

import base64
import ipaddress
from typing import TYPE_CHECKING

import msgspec

from accord.transport.http.settings import validate_proxy

if TYPE_CHECKING:
    from yarl import URL


class Proxy(msgspec.Struct, frozen=True):
    """The URL of a proxy, and what it has to be told; no URL is no proxy."""

    url: str | None = None
    headers: dict[str, str] | None = None


NO_PROXY = Proxy()


def proxy_for(url: URL, given: str | None) -> Proxy:
    """The proxy for `url`; none for this machine itself, unless one was given, and none at all for "".

    Raises `TargetError` for one of the environment that is no HTTP proxy.
    """
    from aiohttp.helpers import get_env_proxy_for_url
    from yarl import URL

    if given is not None:
        return _with_credentials(URL(given)) if given else NO_PROXY
    if _is_loopback(url.host or ""):
        return NO_PROXY
    try:
        found, auth = get_env_proxy_for_url(url)
    except LookupError:
        return NO_PROXY
    validate_proxy(str(found))
    return _with_credentials(found if auth is None else found.with_user(auth.login).with_password(auth.password))


def _with_credentials(proxy: URL) -> Proxy:
    """A proxy with the name and password of its URL in a header, where it looks for them."""
    if proxy.user is None:
        return Proxy(str(proxy))
    return Proxy(str(proxy.with_user(None)), {"Proxy-Authorization": basic_auth(proxy.user, proxy.password or "")})


def basic_auth(user: str, password: str) -> str:
    """A name and a password as a header has them."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _is_loopback(host: str) -> bool:
    """Whether a name is that of this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
