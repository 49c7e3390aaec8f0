"""Make generated calls, one at a time, on a connection that reopens when the server ends; judge missing responses."""

from __future__ import annotations

from accord.check.engine.rule import UnsupportedRevision, Violation
from accord.check.engine.session_factory import SessionFactory
from accord.check.fuzz import response_checks
from accord.check.fuzz.response_checks import ResponseProblem
from accord.check.probes.pending_answer import CONNECTION_LOST, NO_ANSWER, Answer, PendingAnswer
from accord.check.probes.probe import Probe
from accord.check.wires.child import ChildWire
from accord.errors import ConnectError
from accord.messages.base import JSONObject

CASE_NAME = "generated calls"

_MAX_REOPENINGS = 150
"""The maximum number of connections to one server."""
_TIMEOUT_FACTOR = 2
"""A call without a response in time gets this many more timeouts if the server answers other requests meanwhile; none
while another failure is reduced.
"""


class FuzzStopped(Exception):
    """The run cannot continue; the message is the reason."""


class FuzzClient:
    """Makes calls. Raises `FuzzStopped` if the server cannot be opened again, or limits the rate of calls."""

    def __init__(self, factory: SessionFactory) -> None:
        self._factory = factory
        self._probe: Probe | None = None
        self._openings = 0
        self.calls: int = 0
        """The number of calls so far."""
        self.skips_late_answers: bool = False
        """Whether to treat a late response as a missing one."""
        self.slow_calls: dict[str, int] = {}
        """The number of late responses by the name of the target."""

    async def probe(self) -> Probe:
        """Return the connection, reopened if it has ended. The first opening also raises `Violation`,
        `UnsupportedRevision` and `ConnectError`.
        """
        if self._probe is not None and self._probe.alive:
            return self._probe
        await self.close()
        self._openings += 1
        if self._openings > _MAX_REOPENINGS:
            raise FuzzStopped("the server ended too often")
        try:
            self._probe = await self._factory.open("own", CASE_NAME)
            await self._probe.tools()
        except (Violation, ConnectError, UnsupportedRevision) as exc:
            if self._openings == 1:
                raise
            raise FuzzStopped(f"the server cannot be opened again: {exc}") from exc
        return self._probe

    async def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        if self._probe is not None:
            await self._probe.close()
        self._probe = None

    @property
    def log_length(self) -> int:
        """Return the number of entries in the message log of the connection."""
        return len(self._probe.log.entries) if self._probe is not None else 0

    @property
    def pid(self) -> int:
        """Return the id of the server's process, or 0 if the checker did not start it."""
        wire = self._probe.wire if self._probe is not None else None
        return wire.pid if isinstance(wire, ChildWire) else 0

    async def call(self, name: str, method: str, params: JSONObject) -> Answer | ResponseProblem | None:
        """Return the response, the problem if there is none, or None if it is late. `name` is that of the target."""
        probe = await self.probe()
        self.calls += 1
        pending = probe.begin(method, params)
        try:
            answer = await pending.wait()
        except Violation as exc:
            if exc.symptom.startswith(CONNECTION_LOST):
                return await self._crashed(probe)
            return await self._no_answer(probe, pending, name)
        if answer.code == 0 and not answer.status and await _server_state(probe):
            return await self._crashed(probe)
        if response_checks.is_rate_limited(answer):
            raise FuzzStopped("the server limits the rate of calls")
        return answer

    async def _crashed(self, probe: Probe) -> ResponseProblem:
        await self.close()
        last_lines = probe.log.stderr.strip().splitlines()[-1:] if probe.log.stderr else []
        code = "" if probe.log.exit_code is None else f" with exit code {probe.log.exit_code}"
        text = f"the server ends{code}" + "".join(f": {line[:200]}" for line in last_lines)
        return ResponseProblem(rule=response_checks.CRASH, text=text, detail=code)

    async def _no_answer(self, probe: Probe, pending: PendingAnswer, name: str) -> ResponseProblem | None:
        seconds = probe.settings.timeout
        extra = 0 if self.skips_late_answers else _TIMEOUT_FACTOR * seconds
        state = await _server_state(probe)
        if state == CONNECTION_LOST:
            return await self._crashed(probe)
        if state == NO_ANSWER:
            text = f"no response in {seconds:g} s, and none to other requests: the whole server hangs"
            await self.close()
            return ResponseProblem(rule=response_checks.HANG, text=text)
        self.slow_calls[name] = self.slow_calls.get(name, 0) + 1
        try:
            await pending.wait(extra)
        except Violation as exc:
            if exc.symptom.startswith(CONNECTION_LOST):
                return await self._crashed(probe)
            probe.notify("notifications/cancelled", {"requestId": pending.id})
            return ResponseProblem(rule=response_checks.UNANSWERED, text=f"no response in {seconds + extra:g} s")
        return None


async def _server_state(probe: Probe) -> str:
    """Return an empty text if the server answers a harmless request, or else `CONNECTION_LOST` or `NO_ANSWER`."""
    try:
        answer = await probe.request(probe.harmless_method)
    except Violation as exc:
        return CONNECTION_LOST if exc.symptom.startswith(CONNECTION_LOST) else NO_ANSWER
    return CONNECTION_LOST if answer.code == 0 and not answer.status else ""
