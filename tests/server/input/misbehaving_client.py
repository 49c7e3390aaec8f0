"""A client that answers in whole and in part, wrongly, twice and again; that cancels, replays, and hangs up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from tests.server.input.caller import JSON, Caller, asks, params_of, questions, retry, yes
from tests.server.input.programs import DECLARED, KINDS, ONCE, Program


@dataclass
class Logical:
    """One logical call: what runs, what it does, and how the client goes about it."""

    kind: str
    program: Program
    actions: list[str]
    token: str = ""
    done: list[str] = field(default_factory=list)
    """The actions that were taken."""
    ended: JSON | None = None
    """The answer that was no question."""

    @property
    def runs_once(self) -> bool:
        return self.kind in ONCE


class HungUp(Exception):
    """The client closes the connection."""


class Wayward:
    """Goes through one logical call."""

    def __init__(self, caller: Caller, call: Logical) -> None:
        self.call = call
        self.cancelled: list[int] = []
        self._caller = caller
        self._answered: dict[str, tuple[JSON, JSON]] = {}
        """By the state that was answered: how, and what came of it."""

    async def go(self) -> None:
        """Until the call has ended, or is given up."""
        said = await self._ask({})
        actions = iter(self.call.actions)
        for _ in range(60):
            if not asks(said):
                self.call.ended = said
                return
            action = next(actions, "complete")
            self.call.done.append(action)
            if action == "give up":
                return
            said = await ACTIONS[action](self, said)
        raise AssertionError("this never ends")

    def _send(self, more: JSON, token: str = "") -> int:
        kind, token = self.call.kind, token or self.call.token
        subject = kind + token if kind.endswith("/") else kind
        return self._caller.send(KINDS[kind], {**params_of(KINDS[kind], subject, {"token": token}), **more})

    async def _ask(self, more: JSON, token: str = "") -> JSON:
        return await self._caller.answer(self._send(more, token))

    async def _answer(self, more: JSON) -> JSON:
        found = await self._ask(more)
        self._answered[more["requestState"]] = more, found
        return found

    async def complete(self, said: JSON) -> JSON:
        return await self._answer(retry(said))

    async def decline(self, said: JSON) -> JSON:
        return await self._answer(retry(said, no))

    async def some(self, said: JSON) -> JSON:
        more = retry(said)
        more["inputResponses"].popitem()
        found = await self._ask(more)
        assert not set(questions(found)) & set(more["inputResponses"]), "what was answered is not asked again"
        return found

    async def none(self, said: JSON) -> JSON:
        found = await self._ask({"requestState": said["result"]["requestState"]})
        assert questions(found) == questions(said)
        return found

    async def wrong_keys(self, said: JSON) -> JSON:
        more = retry(said)
        more["inputResponses"] = {f"x{key}": answer for key, answer in more["inputResponses"].items()}
        found = await self._ask(more)
        assert questions(found) == questions(said)
        return found

    async def more_keys(self, said: JSON) -> JSON:
        more = retry(said)
        more["inputResponses"] |= {"": {"any": "thing"}, "ask-99": {"action": "accept"}}
        return await self._answer(more)

    async def malformed(self, said: JSON) -> JSON:
        found = await self._ask(retry(said, lambda _: {"action": 5, "roots": 5, "role": 5}))
        assert found["error"]["code"] == -32602
        return said

    async def twice_at_once(self, said: JSON) -> JSON:
        first, second = self._send(retry(said)), self._send(retry(said))
        found = await self._caller.answer(first)
        assert same(found, await self._caller.answer(second))
        return found

    async def again(self, said: JSON) -> JSON:
        """As if the answer to the first retry was lost."""
        lost, found = await self._answer(retry(said)), await self._answer(retry(said))
        assert same(lost, found)
        return found

    async def cancel(self, said: JSON) -> JSON:
        await self._cancel(self._send(retry(said)), turns=len(self._answered) + 1)
        return await self.complete(said)

    async def cancel_one_of_two(self, said: JSON) -> JSON:
        first, second = self._send(retry(said)), self._send(retry(said))
        await self._cancel(first, turns=3)
        return await self._caller.answer(second)

    async def _cancel(self, id: int, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        self._caller.cancel(id)
        self.cancelled.append(id)

    async def replay(self, said: JSON) -> JSON:
        """Answer what was answered before once more, and otherwise."""
        for more, found in list(self._answered.values()):
            other = json.loads(json.dumps(more).replace("answer to", "other answer to").replace("/tmp", "/other"))
            replayed = await self._ask(other)
            assert not self.call.runs_once or same(replayed, found)
        return said

    async def other_arguments(self, said: JSON) -> JSON:
        found = await self._ask(retry(said), self.call.token + "x")
        assert found["error"]["code"] == -32602
        return said

    async def other_tool(self, said: JSON) -> JSON:
        name = "declared" if self.call.kind == "body" else "body"
        params = params_of("tools/call", name, {"token": self.call.token})
        found = await self._caller.ask("tools/call", {**params, **retry(said)})
        assert found["error"]["code"] == -32602
        return said

    async def unasked(self, said: JSON) -> JSON:
        """Answers without a state answer nothing."""
        found = await self._ask({"inputResponses": retry(said)["inputResponses"]}, self.call.token + "x")
        assert asks(found) == (self.call.kind in DECLARED)
        return said

    async def hang_up(self, said: JSON) -> JSON:
        raise HungUp


ACTIONS: dict[str, Callable[[Wayward, JSON], Coroutine[Any, Any, JSON]]] = {
    "complete": Wayward.complete,
    "decline": Wayward.decline,
    "some": Wayward.some,
    "none": Wayward.none,
    "wrong keys": Wayward.wrong_keys,
    "more keys": Wayward.more_keys,
    "malformed": Wayward.malformed,
    "twice at once": Wayward.twice_at_once,
    "again": Wayward.again,
    "cancel": Wayward.cancel,
    "cancel one of two": Wayward.cancel_one_of_two,
    "replay": Wayward.replay,
    "other arguments": Wayward.other_arguments,
    "other tool": Wayward.other_tool,
    "unasked": Wayward.unasked,
    "hang up": Wayward.hang_up,
}


def no(question: JSON) -> JSON:
    """Decline what can be declined."""
    return {"action": "decline"} if question["method"] == "elicitation/create" else yes(question)


def same(one: JSON, two: JSON) -> bool:
    """Whether two answers say the same; a state differs in when it is over."""
    return _said(one) == _said(two)


def _said(message: JSON) -> JSON:
    result = {key: value for key, value in message.get("result", {}).items() if key != "requestState"}
    return {"error": message.get("error"), **result}
