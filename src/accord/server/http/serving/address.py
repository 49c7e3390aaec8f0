"""Where a server listens: an address as a person writes it, and the sockets that it means.

`127.0.0.1:8000`, `[::1]:8000`, `localhost:8000`, `0.0.0.0:8000`; `:8000` or `8000` alone mean 127.0.0.1, so that nobody
opens a server to a network without having written it. Port 0 is a free one.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
from collections.abc import Sequence

import msgspec

from accord.errors import DeclarationError

_LOOPBACK = "127.0.0.1"

_HOST_AND_PORT = re.compile(r"(?:(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^\s:/\[\]@]*)):)?(?P<port>[0-9]{1,5})")

_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""This machine does not have that address, or no IPv6: what else the name means will do."""


class Address(msgspec.Struct, frozen=True):
    """A host (a name, or an IP address without brackets) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read an address. Raises `DeclarationError`."""
    found = _HOST_AND_PORT.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise DeclarationError(f'{text!r} is not an address; write it as "127.0.0.1:8000", or ":8000"')
    host, port = found["six"] or found["host"] or _LOOPBACK, int(found["port"])
    if port > 65535:
        raise DeclarationError(f"{text!r}: the port {port} is not between 0 and 65535")
    if host == "*":
        raise DeclarationError(f"{text!r}: write 0.0.0.0:{port} to listen on all IPv4 addresses")
    return Address(host, port)


def bind(address: Address) -> list[socket.socket]:
    """Sockets bound to each address that the host means. Raises `OSError` with a sentence."""
    sockets: list[socket.socket] = []
    try:
        for family, host in _resolve(address):
            port = sockets[0].getsockname()[1] if sockets else address.port
            try:
                sockets.append(_bound(family, host, port))
            except OSError as exc:
                if exc.errno not in _NOT_HERE:
                    raise
                missing = exc
        if not sockets:
            raise missing
    except OSError as exc:
        for each in sockets:
            each.close()
        raise OSError(exc.errno, _sentence(exc, address)) from exc
    return sockets


def bound_address(address: Address, sockets: Sequence[socket.socket]) -> Address:
    """The address with the port that it was really given."""
    return Address(address.host, sockets[0].getsockname()[1])


def is_loopback(sockets: Sequence[socket.socket]) -> bool:
    """Whether only programs of this machine can reach these."""
    return all(_ip(each).is_loopback for each in sockets)


def is_unspecified(sockets: Sequence[socket.socket]) -> bool:
    """Whether they take connections to every address of the machine, which has then no name in particular."""
    return any(_ip(each).is_unspecified for each in sockets)


def _ip(bound: socket.socket) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(bound.getsockname()[0].partition("%")[0])


def _resolve(address: Address) -> list[tuple[int, str]]:
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # IPv4 first: its port is the one that counts where port 0 asks for any.
    return sorted({(int(family), str(where[0])) for family, _, _, _, where in found})


def _bound(family: int, host: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let two programs have one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setblocking(False)
        listener.bind((host, port))
        listener.listen()  # taken here, so that a port somebody else listens at is told now
    except OSError:
        listener.close()
        raise
    return listener


def _sentence(exc: OSError, address: Address) -> str:
    if exc.errno == errno.EADDRINUSE:
        return f"{address} is in use by another program; stop that, or choose another port"
    if exc.errno == errno.EACCES:
        return f"{address} may not be used: ports below 1024 need permission; choose one above"
    if isinstance(exc, socket.gaierror) or exc.errno in _NOT_HERE:
        return f"{address}: {address.host} is not an address of this machine"
    return f"{address}: {exc.strerror or exc}"
