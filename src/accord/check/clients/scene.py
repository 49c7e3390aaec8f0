"""A scene: what the scripted server does otherwise than usual, and the rules that are judged by what comes of it.

LATE = Scene("late-answer", "an answer comes after the client has given up")

@LATE.on("tools/call")
async def _(ask: Ask) -> Answer:
    await ask.cancelled()
    return await ask.usual()

@LATE.judges(IGNORED, "an answer to a call that was cancelled")
def _(run: Run) -> None:
    as_usual(run)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from accord.check.clients.offer import Offer
from accord.check.report import TransportName
from accord.check.rule import EVERYWHERE, Case, Rule
from accord.messages.base import JSONObject, Life
from accord.messages.revision import lives_in

if TYPE_CHECKING:
    from accord.check.clients.ask import Ask
    from accord.check.clients.run import Run
    from accord.check.clients.web import Exchange, Reply


class Whole(msgspec.Struct, frozen=True):
    """A message as it is, not the result in one."""

    message: Any


class Refuse(Exception):
    """Answer with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code: int = code
        self.message: str = message
        self.data: Any = data


Answer: TypeAlias = "JSONObject | bytes | Whole | None"
"""A result; or the bytes of an answer; or a whole message; or nothing at all."""

Handler: TypeAlias = "Callable[[Ask], Awaitable[Answer]]"
Telling: TypeAlias = "Callable[[Ask], Awaitable[None]]"
OnHTTP: TypeAlias = "Callable[[Any, Exchange, Reply], Awaitable[bool]]"
"""Answers an HTTP request in place of the server, which comes first: an `Endpoint`, or over HTTP+SSE `Streams`. False
leaves it to the server."""

Judge: TypeAlias = "Callable[[Run], Any]"

FIRST = "*"
"""In place of a method: the first request that belongs neither to the opening nor to what keeps a connection alive."""


class Scene:
    """One scene. It is played in the newest revision with a handshake that the client speaks, over HTTP+SSE too, and in
    2026-07-28, as far as it lives there.

    `path`: where it is over HTTP, if it is not the usual place. `stream`: answers over HTTP come as streams of events.
    `deaf`: over stdio the server stays when its stdin ends. `stderr`: what it says there. `asks`: the client is asked,
    so that there are answers to read. `patience`: seconds without a word after which the client is ended, at least.
    """

    def __init__(
        self,
        name: str,
        says: str,
        *,
        since: str | None = None,
        until: str | None = None,
        over: frozenset[TransportName] = EVERYWHERE,
        offer: Offer | None = None,
        stream: bool = False,
        deaf: bool = False,
        stderr: str = "",
        asks: bool = False,
        patience: float = 0.0,
        path: str = "",
    ) -> None:
        self.name: str = name
        self.says: str = says
        self.life: Life = Life(since, until)
        self.over: frozenset[TransportName] = over
        self.offer: Offer = offer or Offer()
        self.stream: bool = stream
        self.patience: float = patience
        self.path: str = path
        self.handlers: dict[str, Handler] = {}
        self.http: OnHTTP | None = None
        self.deaf: bool = deaf
        self.stderr: str = stderr
        self.asks: bool = asks
        self.judgements: list[tuple[Rule, Case]] = []

    def __repr__(self) -> str:
        return f"Scene({self.name!r})"

    def plays_in(self, revision: str, transport: TransportName) -> bool:
        """Whether it can be played there."""
        return lives_in(revision, *self.life) and transport in self.over

    def on(self, *methods: str) -> Callable[[Handler], Handler]:
        """Have requests of these methods answered by the function; `FIRST` stands for the first one of any."""

        def add(handler: Handler) -> Handler:
            self.handlers |= dict.fromkeys(methods, handler)
            return handler

        return add

    def over_http(self, handler: OnHTTP) -> OnHTTP:
        """Have HTTP requests go through the function first."""
        self.http = handler
        return handler

    def judges(self, rule: Rule, says: str, **where: Any) -> Callable[[Judge], Judge]:
        """Add a case to the rule that is judged by a run of this scene."""

        def add(judge: Judge) -> Judge:
            rule.case(says, kind="own", **{"over": self.over, **where})(judge)
            self.judgements.append((rule, rule.cases[-1]))
            return judge

        return add
