"""One process of the program, as the relay sees it."""

from __future__ import annotations

from enum import Enum

from accord.dev.preparation import Preparation
from accord.messages.base import RequestId


class ProcessPhase(Enum):
    """The life of a process: the host's new requests go to the active one."""

    STARTING = "starting"
    ACTIVE = "active"
    RETIRING = "retiring"


class RelayedProcess:
    """A process that runs. `generation` counts them."""

    def __init__(self, generation: int) -> None:
        self.generation: int = generation
        self.phase: ProcessPhase = ProcessPhase.STARTING
        self.preparation: Preparation | None = None
        self.ping: RequestId | None = None
        """The id of the ping that it has to answer before it takes over, if the host has sent nothing yet."""
        self.is_initialized: bool = False
        """Whether it has received `notifications/initialized`."""
        self.is_stale: bool = False
        """Whether its lists changed after the preparation asked for them."""
        self.is_unannounced: bool = False
        """Whether the host was not notified of these changes."""
        self.held: list[bytes] = []
        """Notifications that the host receives when the process takes over."""
        self.answered: bool = False
        """Whether it has answered a request of the host."""
        self.level: str | None = None
        self.uris: dict[str, None] = {}
        """The log level and the subscriptions that the process knows."""
        self.ignored: set[RequestId] = set()
        """Requests of the relay whose answers do not matter."""
