"""What a wire is: it carries whatever bytes it is given, and hands over whatever comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from accord.check.report import TransportName
from accord.wire.lines import SkippedMessage

OnMessage: TypeAlias = Callable[[bytes | SkippedMessage, int], None]
"""Is called with each message that comes, and the stream that it came on (HTTP; else 0)."""


class Wire(Protocol):
    """One connection to a peer. `on_message` is set before it is opened; `on_close` is called once, when all is
    over."""

    transport: TransportName
    on_message: OnMessage
    on_close: Callable[[], None]

    async def open(self) -> None:
        """Start. Raises `ConnectError`."""

    def send(self, message: bytes, headers: Mapping[str, str | None]) -> int:
        """Send one message as it is; the number of the stream on which its answer will come. Never raises.

        `headers` are for HTTP, and for nobody else.
        """

    async def close(self) -> None:
        """End it, in bounded time."""

    @property
    def close_reason(self) -> str:
        """Why it ended, in words; what is known now."""

    @property
    def stderr(self) -> str:
        """The last lines that the peer wrote there."""

    @property
    def exit_code(self) -> int | None:
        """How its process ended, if it has one and it did."""
