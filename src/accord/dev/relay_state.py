"""What the parts of the relay share: the session, the processes, and the actions for the driver."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from accord.dev.actions import Action, ToProcess
from accord.dev.host_session import HostSession
from accord.dev.questions import Addressed, ProcessQuestions
from accord.dev.relayed_process import ProcessPhase, RelayedProcess
from accord.dev.retry_owners import RetryOwners
from accord.dev.rewriting import request
from accord.messages.base import JSONObject, RequestId


class RelayState:
    """The state of one connection of a host. `prefix` begins the ids of the relay's own requests."""

    def __init__(self, target: str, prefix: str) -> None:
        self.target: str = target
        self.session: HostSession = HostSession()
        self.surface: JSONObject | None = None
        """The surface of the active process, once it is known."""
        self.processes: dict[int, RelayedProcess] = {}
        self.active: RelayedProcess | None = None
        self.is_expected: bool = True
        """Whether a process is about to become active."""
        self.failure: str = f"{target} does not run"
        """Why no process is active."""
        self.questions: ProcessQuestions = ProcessQuestions()
        self.retry_owners: RetryOwners = RetryOwners()
        self._ids = count(1)
        self._prefix = prefix
        self._actions: list[Action] = []

    @property
    def starting(self) -> list[RelayedProcess]:
        """Return the processes that have not taken over."""
        return [each for each in self.processes.values() if each.phase is ProcessPhase.STARTING]

    def new_id(self) -> RequestId:
        """Return an id for a request of the relay."""
        return f"{self._prefix}-{next(self._ids)}"

    def emit(self, action: Action) -> None:
        """Add an action for the driver."""
        self._actions.append(action)

    def take_actions(self) -> list[Action]:
        """Return the actions since the last call."""
        actions, self._actions = self._actions, []
        return actions

    def send(self, process: RelayedProcess, message: bytes) -> None:
        """Send a message to a process."""
        self.emit(ToProcess(process.generation, message))

    def send_all(self, process: RelayedProcess, messages: Iterable[bytes]) -> None:
        """Send messages to a process."""
        for message in messages:
            self.send(process, message)

    def send_addressed(self, addressed: Addressed | None) -> None:
        """Send a message to the process that it is for, if it still runs."""
        if addressed is not None and addressed[0] in self.processes:
            self.emit(ToProcess(*addressed))

    def send_ignored(self, process: RelayedProcess, method: str, params: object) -> None:
        """Send a request whose answer does not matter."""
        id = self.new_id()
        process.ignored.add(id)
        self.send(process, request(id, method, params))
