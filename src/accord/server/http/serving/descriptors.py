"""How many connections this process may have: each is a file descriptor, and a server needs others."""

from __future__ import annotations

from contextlib import suppress

from accord.limits import Limits

try:
    import resource
except ImportError:  # Windows, where the number is not bounded in this way
    resource = None  # type: ignore[assignment]

_ENOUGH = 65_536


def raise_descriptor_limit() -> None:
    """Take what the system grants: many shells begin a process at 1,024, for programs that call `select`."""
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with suppress(OSError, ValueError):  # less is granted than was said: as it was
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connection_cap(limits: Limits) -> int:
    """`limits.http_connections`, or what leaves some descriptors: handlers open files, too."""
    if resource is None:
        return limits.http_connections
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        limits.http_connections
        if soft == resource.RLIM_INFINITY
        else min(limits.http_connections, soft - min(soft // 2, 256))
    )
