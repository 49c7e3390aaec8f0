"""Hosts of URLs, and patterns of hosts.

Only a URL that all common parsers read alike has a host here. Anything else is unclear: a user name before the host
(`https://good.example@evil.example`), a backslash, blanks and control characters, an address in another than its usual
form (`0x7f.1`, `2130706433`, `[::ffff:127.0.0.1]`), a percent sign in the host, a name that is written differently
after its normalization, a scheme that is not one of the web.

Names are compared in lower case, without a final dot, in their ASCII form (`xn--`). No name is looked up in the DNS: a
name of an allowed host may lead to any address.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

from accord.host.policy.condition_result import ConditionResult

_MAX_CHARACTERS = 8_192
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443, "ftp": 21}
"""The schemes that are read, with their default ports: for others, parsers disagree about what a host is."""

_URL = re.compile(r"([A-Za-z]{2,5})://([^/?#]*)(.*)", re.DOTALL).fullmatch
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)").fullmatch
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+").fullmatch
_PORT = re.compile(r"[0-9]{1,5}").fullmatch


class UnclearHost(Exception):
    """A text that is not a URL whose host all parsers agree about, or not a pattern of hosts."""


class URLHost(NamedTuple):
    """A name or an address, in lower case, and a port."""

    name: str
    port: int


class HostPattern(NamedTuple):
    """A host, all names below it (`*.example.com`), or any host (`*`); without a port, with any port."""

    name: str
    is_parent: bool
    port: int | None

    def matches(self, host: URLHost) -> bool:
        """Return whether a host is one of the pattern."""
        if self.port not in (None, host.port):
            return False
        if self.is_parent:
            return not self.name or host.name.endswith(f".{self.name}")
        return host.name == self.name


def check_host(url: object, patterns: tuple[HostPattern, ...], shown: str) -> ConditionResult:
    """Return whether the host of a URL is one of the patterns; `shown` is the text of the patterns."""
    if not isinstance(url, str):
        return ConditionResult("unclear", "is not a text, so not a URL")
    try:
        host = parse_host(url)
    except UnclearHost as exc:
        return ConditionResult("unclear", f"cannot be read as a URL: {exc}")
    if any(pattern.matches(host) for pattern in patterns):
        return ConditionResult("met", f"has the host {host.name}, one of {shown}")
    return ConditionResult("unmet", f"has the host {host.name}, none of {shown}")


def parse_host(url: str) -> URLHost:
    """Return the host of a URL. Raises `UnclearHost`."""
    if len(url) > _MAX_CHARACTERS:
        raise UnclearHost(f"it is longer than {_MAX_CHARACTERS:,} characters")
    if "\\" in url or " " in url or not url.isprintable():
        raise UnclearHost("it has a backslash, a blank or a control character")
    match = _URL(url)
    if match is None or match[1].lower() not in _PORTS:
        raise UnclearHost(f"it does not begin with one of {', '.join(f'{scheme}://' for scheme in _PORTS)}")
    scheme, authority, rest = match[1].lower(), match[2], match[3]
    if "@" in authority or (rest[:1] in ("?", "#") and "@" in rest):
        raise UnclearHost("it has a user name, or an @ that may be the end of one")
    name, port = _split_port(authority)
    return URLHost(_canonical_name(name), _PORTS[scheme] if port is None else port)


def parse_pattern(text: str) -> HostPattern:
    """Return a pattern: `example.com`, `*.example.com`, `example.com:8443`, `*`. Raises `UnclearHost`."""
    name, port = _split_port(text)
    if name == "*":
        return HostPattern("", True, port)
    is_parent = name.startswith("*.")
    canonical = _canonical_name(name.removeprefix("*."))
    if is_parent and (canonical.startswith("[") or _is_address(canonical)):
        raise UnclearHost("an address has no names below it")
    return HostPattern(canonical, is_parent, port)


def _split_port(authority: str) -> tuple[str, int | None]:
    name, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        return authority, None
    if not _PORT(port) or not 0 < int(port) < 65_536:
        raise UnclearHost("its port is not a number from 1 to 65535")
    return name, int(port)


def _canonical_name(name: str) -> str:
    if name.startswith("[") and name.endswith("]"):
        return _canonical_ipv6(name[1:-1])
    if name.isascii():
        name = name.lower()
    labels = [_ascii_label(label) for label in name.removesuffix(".").split(".")]
    if not all(_LABEL(label) for label in labels) or len(".".join(labels)) > 253:
        raise UnclearHost("it has no valid host name")
    canonical = ".".join(labels)
    if _NUMBER(labels[-1]) and not _is_address(canonical):
        raise UnclearHost("its address is not in the usual form")
    return canonical


def _canonical_ipv6(text: str) -> str:
    try:
        address = IPv6Address(text)
    except ValueError:
        raise UnclearHost("it has no valid host name") from None
    if "%" in text or address.ipv4_mapped or address.sixtofour or address.teredo or _contains_ipv4(address):
        raise UnclearHost("its address contains another one, or a zone")
    return f"[{address}]"


def _contains_ipv4(address: IPv6Address) -> bool:
    """Return whether an address is one of NAT64 (RFC 6052), or an old form of an IPv4 address (RFC 4291, 2.5.5.1)."""
    return address in _NAT64 or 0xFFFF < int(address) <= 0xFFFFFFFF


_NAT64 = IPv6Network("64:ff9b::/96")


def _is_address(name: str) -> bool:
    try:
        return isinstance(ip_address(name), IPv4Address)
    except ValueError:
        return False


def _ascii_label(label: str) -> str:
    """Return a label of a name in ASCII. Raises `UnclearHost` for one that normalization changes.

    So do ß, ς and joiners, which IDNA 2003 and 2008 read differently.
    """
    if label.isascii():
        return label
    folded = unicodedata.normalize("NFKC", label).casefold()
    if folded != label or not label.replace("-", "").isalnum():
        raise UnclearHost("its host name is not in its normal form")
    return f"xn--{label.encode('punycode').decode()}"
