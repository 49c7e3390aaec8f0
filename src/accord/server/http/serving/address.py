"""The address of a server: parsing, and binding of its sockets.

`127.0.0.1:8000`, `[::1]:8000`, `localhost:8000`, `0.0.0.0:8000`. A port alone, `:8000` or `8000`, means 127.0.0.1, so
that a server is open to a network only if its address says so. Port 0 is any free port.
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
_LOOPBACK_6 = "::1"
_MOST_PORTS = 10
"""Free ports of 127.0.0.1 that are tried, until one is free at ::1 too."""

_HOST_AND_PORT = re.compile(r"(?:(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^\s:/\[\]@]*)):)?(?P<port>[0-9]{1,5})")

_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""Errors for an address, or IPv6, that this machine lacks: other addresses of the host may still work."""


class Address(msgspec.Struct, frozen=True):
    """A host (a name, or an IP address without brackets) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Return the parsed address. Raises `DeclarationError`."""
    match = _HOST_AND_PORT.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise DeclarationError(f'{text!r} is not an address; write it as "127.0.0.1:8000", or ":8000"')
    host, port = match["six"] or match["host"] or _LOOPBACK, int(match["port"])
    if port > 65535:
        raise DeclarationError(f"{text!r}: the port {port} is not between 0 and 65535")
    if host == "*":
        raise DeclarationError(f"{text!r}: write 0.0.0.0:{port} to listen on all IPv4 addresses")
    return Address(host, port)


def bind(address: Address) -> list[socket.socket]:
    """Return sockets bound to each address of the host. Raises `OSError` with a readable message."""
    sockets: list[socket.socket] = []
    try:
        for family, host in _resolve(address):
            port = sockets[0].getsockname()[1] if sockets else address.port
            try:
                sockets.append(_bind_socket(family, host, port))
            except OSError as exc:
                if exc.errno not in _NOT_HERE:
                    raise
                missing = exc
        if not sockets:
            raise missing
    except OSError as exc:
        for each in sockets:
            each.close()
        raise OSError(exc.errno, _error_message(exc, address)) from exc
    return sockets


def bind_loopback(port: int) -> list[socket.socket]:
    """Return sockets at both addresses of `localhost`, 127.0.0.1 and, where there is IPv6, ::1, with one port.

    A browser connects to either of them; at an address that is left out, another user of the machine could answer.
    Raises `OSError` with a readable message.
    """
    attempts = 1 if port else _MOST_PORTS
    for left in reversed(range(attempts)):
        sockets = bind(Address(_LOOPBACK, port))
        other = Address(_LOOPBACK_6, sockets[0].getsockname()[1])
        try:
            return [*sockets, *bind(other)]
        except OSError as exc:
            if exc.errno in _NOT_HERE:
                return sockets
            sockets[0].close()
            if not left:
                raise
    raise AssertionError("there is an attempt")


def bound_address(address: Address, sockets: Sequence[socket.socket]) -> Address:
    """Return the address with the port that was assigned."""
    return Address(address.host, sockets[0].getsockname()[1])


def is_loopback(sockets: Sequence[socket.socket]) -> bool:
    """Return whether all sockets are reachable from this machine only."""
    return all(_ip(each).is_loopback for each in sockets)


def is_unspecified(sockets: Sequence[socket.socket]) -> bool:
    """Return whether a socket accepts connections to every address of the machine, so that its address
    is no host name.
    """
    return any(_ip(each).is_unspecified for each in sockets)


def _ip(bound: socket.socket) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(bound.getsockname()[0].partition("%")[0])


def _resolve(address: Address) -> list[tuple[int, str]]:
    infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # IPv4 first: for port 0, its port is used for all.
    return sorted({(int(family), str(sockaddr[0])) for family, _, _, _, sockaddr in infos})


def _bind_socket(family: int, host: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # on Windows it would let two programs share one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setblocking(False)
        listener.bind((host, port))
        listener.listen()  # listen now, to report a port in use
    except OSError:
        listener.close()
        raise
    return listener


def _error_message(exc: OSError, address: Address) -> str:
    if exc.errno == errno.EADDRINUSE:
        return f"{address} is in use by another program; stop that, or choose another port"
    if exc.errno == errno.EACCES:
        return f"{address} may not be used: ports below 1024 need permission; choose one above"
    if isinstance(exc, socket.gaierror) or exc.errno in _NOT_HERE:
        return f"{address}: {address.host} is not an address of this machine"
    return f"{address}: {exc.strerror or exc}"
