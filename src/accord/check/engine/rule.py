"""A rule of the protocol, and the cases that try whether a peer keeps it.

    UNKNOWN_NAME = Rule(
        "tools/unknown-name",
        "must",
        "A call of a tool that does not exist is answered with an error.",
        at="server/tools#error-handling",
        cause="The handler answers whatever name it is given.",
    )

    @UNKNOWN_NAME.case("a name that nobody has", needs="tools")
    async def check_unknown_name(talk: Probe) -> None:
        answer = await talk.request("tools/call", {"name": talk.unknown_name, "arguments": {}})
        if answer.error is None:
            raise Violation(f"a result came for {talk.unknown_name!r}")

A case passes when it returns. It raises `Violation` when the rule is broken, `NotApplicable` where the peer has no such
thing, `NotObserved` where nothing happened by which it could be judged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from accord.check.engine.report import Level, PeerRole, TransportName
from accord.messages.base import JSONObject, Life
from accord.messages.revision import is_in_revision

Kind: TypeAlias = Literal["shared", "own", "raw", "reading", "generated"]
"""Which conversation a case gets:

`shared`   one that other cases use before and after it: it must leave everything as it was
`own`      one of its own, opened: it may do what it likes
`raw`      one of its own to which nothing was said yet
`reading`  none: it reads what passed in all conversations of the visit
`generated` none: it is told what came of the generated calls of the visit
"""

Precondition: TypeAlias = Callable[[Any], Awaitable[None]]
"""Is given the shared conversation (`Probe`)."""

_Run = TypeVar("_Run", bound=Callable[..., Any])


class Violation(Exception):
    """The rule is broken: what was seen. `symptom` is shared by failures that have one cause; `again` are options of
    the command line that repeat just this; `during` says, of what was only read, in the course of which cases it was
    said: words of `LogEntry.case`; `more` is what was found besides, each for a cause of its own.
    """

    def __init__(
        self,
        text: str,
        *,
        symptom: str = "",
        cause: str = "",
        evidence: Sequence[str] = (),
        again: Sequence[str] = (),
        during: Iterable[str] | None = None,
    ) -> None:
        super().__init__(text)
        self.symptom: str = symptom
        self.cause: str = cause
        self.evidence: tuple[str, ...] = tuple(evidence)
        self.again: tuple[str, ...] = tuple(again)
        self.during: tuple[str, ...] | None = None if during is None else tuple(sorted({*during} - {""}))
        self.more: tuple[Violation, ...] = ()


class NotApplicable(Exception):
    """The peer does not have what the rule is about: why."""


class NotObserved(Exception):
    """Nothing happened by which the rule could be judged: what was missing."""


class UnsupportedRevision(Exception):
    """The peer does not speak this revision: what it said instead."""


class UnreachableServer(UnsupportedRevision):
    """Nothing came that is a message of the protocol: what came instead, or that nothing did."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One way to try a rule. `needs` is what the peer must have declared: `tools`, `resources.subscribe`."""

    says: str
    kind: Kind
    run: Callable[..., Any]
    needs: str | None
    life: Life
    over: frozenset[TransportName]
    calls: bool = False
    """Whether the case calls a tool, which the settings must allow."""
    capabilities: JSONObject | None = None
    """What we declare in a conversation of its own; all, if None."""
    shares: bool = False
    """With `own`, over stdio: whether one process may serve several such cases, one after the other. The case may send
    wrong messages, and a request that follows them must be answered."""
    applies: Precondition | None = None
    """Raises `NotApplicable` or `NotObserved`, from what the shared conversation shows: no process is started then."""

    @property
    def concerns_process(self) -> bool:
        """Whether the case is about the process of the server and the same in every revision."""
        return self.kind in ("own", "raw") and self.over == STDIO and self.life == Life(None, None)


ALL_TRANSPORTS: frozenset[TransportName] = frozenset(("stdio", "http", "sse", "memory"))
LINE_TRANSPORTS: frozenset[TransportName] = frozenset(("stdio", "memory"))
STDIO: frozenset[TransportName] = frozenset(("stdio",))
HTTP: frozenset[TransportName] = frozenset(("http",))
SSE: frozenset[TransportName] = frozenset(("sse",))
HTTP_TRANSPORTS: frozenset[TransportName] = HTTP | SSE


class Rule:
    """One rule. `says` is its sentence in our own words, `at` its places: `page#section`, as the specification names
    them from `since` up to, but not with, `until`. `cause` is the likely cause of a failure, in words.
    """

    def __init__(
        self,
        id: str,
        level: Level,
        says: str,
        *,
        at: str | Sequence[str],
        cause: str = "",
        role: PeerRole = "server",
        since: str | None = None,
        until: str | None = None,
        over: frozenset[TransportName] = ALL_TRANSPORTS,
    ) -> None:
        self.id: str = id
        self.level: Level = level
        self.says: str = says
        self.at: tuple[str, ...] = (at,) if isinstance(at, str) else tuple(at)
        self.cause: str = cause
        self.role: PeerRole = role
        self.life: Life = Life(since, until)
        self.over: frozenset[TransportName] = over
        self.cases: list[Case] = []

    def __repr__(self) -> str:
        return f"Rule({self.id!r})"

    @property
    def area(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]

    def case(
        self,
        says: str,
        *,
        kind: Kind = "shared",
        needs: str | None = None,
        since: str | None = None,
        until: str | None = None,
        over: frozenset[TransportName] | None = None,
        calls: bool = False,
        capabilities: JSONObject | None = None,
        shares: bool = False,
        applies: Precondition | None = None,
    ) -> Callable[[_Run], _Run]:
        """Add a case: an async function of a `Probe`; for `reading`, a plain one of a list of `MessageLog`; for
        `generated`, a plain one of what was `FuzzResult`, which returns every `Violation`.
        """

        def add(run: _Run) -> _Run:
            life = Life(since or self.life.since, until or self.life.until)
            reach = self.over if over is None else over & self.over
            self.cases.append(
                Case(
                    says=says,
                    kind=kind,
                    run=run,
                    needs=needs,
                    life=life,
                    over=reach,
                    calls=calls,
                    capabilities=capabilities,
                    shares=shares,
                    applies=applies,
                )
            )
            return run

        return add

    def reading(self, says: str, **where: Any) -> Callable[[_Run], _Run]:
        """Add a case that reads what passed; it takes the records of the visit, and returns how much it judged."""
        return self.case(says, kind="reading", **where)

    def cases_in(self, revision: str, transport: TransportName) -> list[Case]:
        """Return the cases that can be tried there."""
        return [case for case in self.cases if is_in_revision(revision, *case.life) and transport in case.over]
