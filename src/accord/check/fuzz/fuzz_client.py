"""Generated calls, one at a time, in a conversation that is opened again when the server has ended; and what it means
when no answer comes.
"""

from __future__ import annotations

from accord.check.engine.rule import UnsupportedRevision, Violation
from accord.check.engine.session_factory import SessionFactory
from accord.check.fuzz import response_checks as judged
from accord.check.fuzz.response_checks import ResponseProblem
from accord.check.probes.pending_answer import CONNECTION_LOST, NO_ANSWER, Answer, PendingAnswer
from accord.check.probes.probe import Probe
from accord.check.wires.child import ChildWire
from accord.errors import ConnectError
from accord.messages.base import JSONObject

CASE_NAME = "generated calls"

_MAX_REOPENINGS = 150
"""How often a server is opened again."""
_TIMEOUT_FACTOR = 2
"""A call that is not answered in time gets so many times longer, if the server answers others meanwhile; none longer
while something else is shrunk.
"""


class FuzzStopped(Exception):
    """There is no point in going on: why."""


class FuzzClient:
    """Makes calls. Raises `FuzzStopped` where the server cannot be opened again, or has had enough."""

    def __init__(self, factory: SessionFactory) -> None:
        self._factory = factory
        self._probe: Probe | None = None
        self._openings = 0
        self.calls: int = 0
        """All that were made."""
        self.skips_late_answers: bool = False
        """Whether a late answer is as good as none."""
        self.slow_calls: dict[str, int] = {}
        """How often what has this name was not answered in time."""

    async def probe(self) -> Probe:
        """The conversation, opened again if it has ended. The first time it raises `Violation`, `UnsupportedRevision`
        and `ConnectError`, too.
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
        """End the conversation: the next call begins a new one."""
        if self._probe is not None:
            await self._probe.close()
        self._probe = None

    @property
    def log_length(self) -> int:
        """How many entries the record of the conversation has."""
        return len(self._probe.log.entries) if self._probe is not None else 0

    @property
    def pid(self) -> int:
        """That of the process of the server; 0 where it is none of ours."""
        wire = self._probe.wire if self._probe is not None else None
        return wire.pid if isinstance(wire, ChildWire) else 0

    async def call(self, name: str, method: str, params: JSONObject) -> Answer | ResponseProblem | None:
        """The answer, or what is wrong with its absence; None for one that comes late. `name` is of its subject."""
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
        if judged.is_rate_limited(answer):
            raise FuzzStopped("the server limits how often it is called")
        return answer

    async def _crashed(self, probe: Probe) -> ResponseProblem:
        await self.close()
        words = probe.log.stderr.strip().splitlines()[-1:] if probe.log.stderr else []
        code = "" if probe.log.exit_code is None else f" with exit code {probe.log.exit_code}"
        text = f"the server ends{code}" + "".join(f": {word[:200]}" for word in words)
        return ResponseProblem(rule=judged.CRASH, text=text, detail=code)

    async def _no_answer(self, probe: Probe, pending: PendingAnswer, name: str) -> ResponseProblem | None:
        seconds = probe.settings.timeout
        patience = 0 if self.skips_late_answers else _TIMEOUT_FACTOR * seconds
        state = await _server_state(probe)
        if state == CONNECTION_LOST:
            return await self._crashed(probe)
        if state == NO_ANSWER:
            text = f"no answer in {seconds:g} s, nor to anything else: the whole server hangs"
            await self.close()
            return ResponseProblem(rule=judged.HANG, text=text)
        self.slow_calls[name] = self.slow_calls.get(name, 0) + 1
        try:
            await pending.wait(patience)
        except Violation as exc:
            if exc.symptom.startswith(CONNECTION_LOST):
                return await self._crashed(probe)
            probe.notify("notifications/cancelled", {"requestId": pending.id})
            return ResponseProblem(rule=judged.UNANSWERED, text=f"no answer in {seconds + patience:g} s")
        return None


async def _server_state(probe: Probe) -> str:
    """Empty while the server answers something harmless; else whether it is gone, or silent."""
    try:
        answer = await probe.request(probe.harmless_method)
    except Violation as exc:
        return CONNECTION_LOST if exc.symptom.startswith(CONNECTION_LOST) else NO_ANSWER
    return CONNECTION_LOST if answer.code == 0 and not answer.status else ""
