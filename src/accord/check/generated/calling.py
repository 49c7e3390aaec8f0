"""Generated calls, one at a time, in a conversation that is opened again when the server has ended; and what it means
when no answer comes.
"""

from __future__ import annotations

from accord.check.generated import troubles as judged
from accord.check.generated.troubles import Trouble
from accord.check.opening import Doors
from accord.check.rule import Broken, Unspoken
from accord.check.talk import Talk
from accord.check.waiting import GONE, SILENT, Answer, Pending
from accord.check.wires.child import ChildWire
from accord.errors import ConnectError
from accord.messages.base import JSONObject

CASE = "generated calls"

_REOPENED = 150
"""How often a server is opened again."""
_PATIENCE = 2
"""A call that is not answered in time gets so many times longer, if the server answers others meanwhile; none longer
while something else is shrunk.
"""


class Stop(Exception):
    """There is no point in going on: why."""


class Caller:
    """Makes calls. Raises `Stop` where the server cannot be opened again, or has had enough."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._talk: Talk | None = None
        self._opened = 0
        self.calls: int = 0
        """All that were made."""
        self.hurried: bool = False
        """Whether a late answer is as good as none."""
        self.slow: dict[str, int] = {}
        """How often what has this name was not answered in time."""

    async def talk(self) -> Talk:
        """The conversation, opened again if it has ended. The first time it raises `Broken`, `Unspoken` and
        `ConnectError`, too.
        """
        if self._talk is not None and self._talk.alive:
            return self._talk
        await self.close()
        self._opened += 1
        if self._opened > _REOPENED:
            raise Stop("the server ended too often")
        try:
            self._talk = await self._doors.open("own", CASE)
            await self._talk.tools()
        except (Broken, ConnectError, Unspoken) as exc:
            if self._opened == 1:
                raise
            raise Stop(f"the server cannot be opened again: {exc}") from exc
        return self._talk

    async def close(self) -> None:
        """End the conversation: the next call begins a new one."""
        if self._talk is not None:
            await self._talk.close()
        self._talk = None

    @property
    def since(self) -> int:
        """How many entries the record of the conversation has."""
        return len(self._talk.record.entries) if self._talk is not None else 0

    @property
    def pid(self) -> int:
        """That of the process of the server; 0 where it is none of ours."""
        wire = self._talk.wire if self._talk is not None else None
        return wire.pid if isinstance(wire, ChildWire) else 0

    async def call(self, name: str, method: str, params: JSONObject) -> Answer | Trouble | None:
        """The answer, or what is wrong with its absence; None for one that comes late. `name` is of its subject."""
        talk = await self.talk()
        self.calls += 1
        pending = talk.begin(method, params)
        try:
            answer = await pending.answer()
        except Broken as exc:
            if exc.symptom.startswith(GONE):
                return await self._crashed(talk)
            return await self._silent(talk, pending, name)
        if answer.code == 0 and not answer.status and await _state(talk):
            return await self._crashed(talk)
        if judged.is_limited(answer):
            raise Stop("the server limits how often it is called")
        return answer

    async def _crashed(self, talk: Talk) -> Trouble:
        await self.close()
        words = talk.record.stderr.strip().splitlines()[-1:] if talk.record.stderr else []
        code = "" if talk.record.exit_code is None else f" with exit code {talk.record.exit_code}"
        text = f"the server ends{code}" + "".join(f": {word[:200]}" for word in words)
        return Trouble(rule=judged.CRASH, text=text, detail=code)

    async def _silent(self, talk: Talk, pending: Pending, name: str) -> Trouble | None:
        seconds = talk.settings.timeout
        patience = 0 if self.hurried else _PATIENCE * seconds
        state = await _state(talk)
        if state == GONE:
            return await self._crashed(talk)
        if state == SILENT:
            text = f"no answer in {seconds:g} s, nor to anything else: the whole server hangs"
            await self.close()
            return Trouble(rule=judged.HANG, text=text)
        self.slow[name] = self.slow.get(name, 0) + 1
        try:
            await pending.answer(patience)
        except Broken as exc:
            if exc.symptom.startswith(GONE):
                return await self._crashed(talk)
            talk.notify("notifications/cancelled", {"requestId": pending.id})
            return Trouble(rule=judged.UNANSWERED, text=f"no answer in {seconds + patience:g} s")
        return None


async def _state(talk: Talk) -> str:
    """Empty while the server answers something harmless; else whether it is gone, or silent."""
    try:
        answer = await talk.request(talk.harmless)
    except Broken as exc:
        return GONE if exc.symptom.startswith(GONE) else SILENT
    return GONE if answer.code == 0 and not answer.status else ""
