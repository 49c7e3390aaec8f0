"""Requests in flight that several sessions have together, and the bound on them."""

from __future__ import annotations

from accord.errors import InternalError

MANY = 256
"""Requests in flight from which on a part is refused more where the whole has too many: those with few go on."""


class RequestLoad:
    """The requests in flight of all sessions that share it: at most `most`, and no more than `whole` has room for."""

    __slots__ = ("__weakref__", "most", "running", "whole")

    def __init__(self, most: int, whole: RequestLoad | None = None) -> None:
        self.most: int = most
        self.whole: RequestLoad | None = whole
        self.running: int = 0
        """Requests in flight."""

    def check(self) -> None:
        """Raise `InternalError` where there is no room for one request more."""
        whole = self.whole
        if self.running >= self.most:
            whose = "yours" if whole is None else "this address"
            raise InternalError(f"too many requests in flight of {whose}: the limit is {self.most:,}")
        if whole is not None and self.running >= MANY and whole.running >= whole.most:
            raise InternalError("too many requests in flight of all clients together; come back later")

    def add(self, count: int) -> None:
        """Count requests that begin, or with a negative number those that end."""
        self.running += count
        if self.whole is not None:
            self.whole.running += count
