"""`EndpointError`: the error that an endpoint of the proxy answers with; `Report`: the log of what it does not say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Report: TypeAlias = Callable[[int, Callable[[], str]], None]
"""Takes the level of a log message, and a function that returns its text."""


class EndpointError(Exception):
    """A refused request of a client: `error` is its code (RFC 6749, 4.1.2.1 and 5.2; RFC 7591, 3.2.2).

    The peer receives the description, so it has no secrets.
    """

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(f"{error}: {description}")
        self.error: str = error
        self.description: str = description
        self.status: int = status
