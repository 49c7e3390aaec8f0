"""Rules of the protocol, and the cases that check them.

A rule is one function. The decorator has the id, the level, the section of the specification and, if the rule does not
hold in all revisions, `since` and `until`. The docstring is the sentence of the rule, as the report shows it. The name
of the function is the id in snake case, so that a traceback names the rule.

    @rule(
        "tools/unknown-name",
        "must",
        case="a name that no tool has",
        needs="tools",
        at="server/tools#error-handling",
        cause="The handler accepts every name.",
    )
    async def tools_unknown_name(probe: Probe) -> None:
        \"\"\"A call of an unknown tool does not succeed.\"\"\"
        answer = await probe.request("tools/call", {"name": probe.unknown_name, "arguments": {}})
        if answer.error is None:
            raise probe.violation(f"the call succeeded: {answer.result!r}")

An async function sends requests with a `Probe`. It passes when it returns. It raises `Violation` if the server breaks
the rule, `NotApplicable` if the server does not have the feature, and `NotObserved` if nothing happened that shows it.

A generator reads the recorded messages of all cases. It yields once for each item that it judges, and raises
`Violation` for the first one that is wrong. If it yields nothing, the rule is not observed.

    @rule("envelope/result-object", "must", case="all results", at="basic/index#result-responses")
    def envelope_result_object(logs: Sequence[MessageLog]) -> JudgedItems:
        \"\"\"A result is an object.\"\"\"
        for each in received_messages(logs):
            if "result" in each.message:
                yield
                if not isinstance(each.message["result"], dict):
                    raise each.violation(f"the result is {preview_json(each.message['result'])}")

A rule with several cases either has `variants`, which call the function with different arguments, or further functions:
`@tools_unknown_name.case("an empty name")`. Rules about clients are functions of a `ClientRun`: see `Scenario.rule`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from accord.check.engine.report import Level, PeerRole, TransportName
from accord.messages.base import JSONObject, Life
from accord.messages.revision import is_in_revision

Kind: TypeAlias = Literal["shared", "own", "raw", "reading", "generated", "access"]
"""Which session a case gets:

`shared`   one that other cases use before and after it: the case must not change its state
`own`      one of its own, after the handshake: the case may do anything
`raw`      one of its own, before the first message
`reading`  none: the case reads the recorded messages of all sessions of the visit
`generated` none: the case gets the results of the generated calls of the visit
`access`   none: the case gets the `Access` of the visit, and runs also if the server refuses to open a session
"""

Precondition: TypeAlias = Callable[[Any], Awaitable[None]]
"""Gets the shared session (`Probe`)."""

JudgedItems: TypeAlias = Iterator[Any]
"""The return type of a reading rule, which yields once for each item that it judged."""

_Run = TypeVar("_Run", bound=Callable[..., Any])


class EvidenceLine(str):
    """A line of evidence. `entries` are the numbers of the entries of the session file that it shows, which has them
    whole; none if the check is not recorded.
    """

    __slots__ = ("entries",)

    def __new__(cls, text: str, entries: Iterable[int] = ()) -> EvidenceLine:
        line = super().__new__(cls, text)
        line.entries = tuple(entries)
        return line

    entries: tuple[int, ...]


class Violation(Exception):
    """The peer breaks the rule: what the checker saw.

    Failures with the same cause share a `symptom`. `again` are command-line options that repeat only this failure.
    `during` are the cases (`LogEntry.case`) in which a message was recorded that a reading rule reports. `more` are
    further violations with other causes.
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
    """The peer does not have the feature that the rule is about: why."""


class NotObserved(Exception):
    """The records do not show whether the peer obeys the rule; the text names what was missing."""


class UnsupportedRevision(Exception):
    """The peer does not speak this revision: what it answered instead."""


class UnreachableServer(UnsupportedRevision):
    """No message of the protocol was received: what was received instead, if anything."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One way to check a rule. `needs` is a capability that the peer must declare: `tools`, `resources.subscribe`."""

    says: str
    kind: Kind
    run: Callable[..., Any]
    needs: str | None
    life: Life
    over: frozenset[TransportName]
    calls: bool = False
    """Whether the case calls a tool, which the settings must allow."""
    capabilities: JSONObject | None = None
    """The client capabilities of a session of its own; all, if None."""
    shares: bool = False
    """With `own`, over stdio: whether one process may serve several such cases in sequence. The case may send
    invalid messages, but the server must answer a request that follows them."""
    applies: Precondition | None = None
    """Raises `NotApplicable` or `NotObserved` for the shared session, so that no process is started in vain."""

    principals: int = 1
    """How many principals the case needs: with two, the second token of the settings is used as well."""

    depends_on_timing: bool = False
    """With `reading`: whether timing may be the reason of a violation. The case during which it occurred is repeated
    alone; if its messages are right then, the reading must not judge those of `MessageLog.unconfirmed`."""

    @property
    def concerns_process(self) -> bool:
        """Whether the case is about the process of the server and the same in every revision."""
        return self.kind in ("own", "raw") and self.over == STDIO and self.life == Life(None, None)


class CaseVariant:
    """One of several cases that share a function: its name, the arguments of the function, and narrower limits."""

    def __init__(
        self,
        says: str,
        *,
        since: str | None = None,
        until: str | None = None,
        over: frozenset[TransportName] | None = None,
        needs: str | None = None,
        **arguments: Any,
    ) -> None:
        self.says: str = says
        self.arguments: dict[str, Any] = arguments
        self.since: str | None = since
        self.until: str | None = until
        self.over: frozenset[TransportName] | None = over
        self.needs: str | None = needs

    def bind(self, check: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with the arguments of this case."""
        return partial(check, **self.arguments) if self.arguments else check


ALL_TRANSPORTS: frozenset[TransportName] = frozenset(("stdio", "http", "sse", "memory"))
LINE_TRANSPORTS: frozenset[TransportName] = frozenset(("stdio", "memory"))
STDIO: frozenset[TransportName] = frozenset(("stdio",))
HTTP: frozenset[TransportName] = frozenset(("http",))
SSE: frozenset[TransportName] = frozenset(("sse",))
HTTP_TRANSPORTS: frozenset[TransportName] = HTTP | SSE


class Rule:
    """One rule. `check` is its function, whose docstring is the sentence `says`. `at` are its sections in the
    specification, as `page#section`. `cause` is the likely cause of a failure.
    """

    def __init__(
        self,
        id: str,
        level: Level,
        check: Callable[..., Any],
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
        self.check: Callable[..., Any] = check
        self.says: str = " ".join((check.__doc__ or id).split())
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
        kind: Kind | None = None,
        needs: str | None = None,
        since: str | None = None,
        until: str | None = None,
        over: frozenset[TransportName] | None = None,
        calls: bool = False,
        capabilities: JSONObject | None = None,
        shares: bool = False,
        applies: Precondition | None = None,
        principals: int = 1,
        depends_on_timing: bool = False,
    ) -> Callable[[_Run], _Run]:
        """Return a decorator that adds a function as a further case.

        Without a `kind`, an async function of a `Probe` is `shared`, and a generator function of a list of
        `MessageLog` is `reading`.
        """

        def add(run: _Run) -> _Run:
            which = kind or ("shared" if iscoroutinefunction(run) else "reading")
            self.cases.append(
                Case(
                    says=says,
                    kind=which,
                    run=_count_items(run) if which == "reading" else run,
                    needs=needs,
                    life=Life(since or self.life.since, until or self.life.until),
                    over=self.over if over is None else over & self.over,
                    calls=calls,
                    capabilities=capabilities,
                    shares=shares,
                    applies=applies,
                    principals=principals,
                    depends_on_timing=depends_on_timing,
                )
            )
            return run

        return add

    def cases_in(self, revision: str, transport: TransportName) -> list[Case]:
        """Return the cases for a revision and a transport."""
        return [case for case in self.cases if is_in_revision(revision, *case.life) and transport in case.over]


def rule(
    id: str,
    level: Level,
    *,
    at: str | Sequence[str],
    cause: str = "",
    role: PeerRole = "server",
    since: str | None = None,
    until: str | None = None,
    over: frozenset[TransportName] = ALL_TRANSPORTS,
    case: str = "",
    variants: Sequence[CaseVariant] = (),
    **options: Any,
) -> Callable[[Callable[..., Any]], Rule]:
    """Return a decorator that makes a function a rule.

    `case` names its only case. `variants` are several cases of the same function. Without either, the function is
    called only by cases that are added later. `options` are those of `Rule.case`: `kind`, `needs`, `calls`, ...
    """

    def define(check: Callable[..., Any]) -> Rule:
        made = Rule(id, level, check, at=at, cause=cause, role=role, since=since, until=until, over=over)
        if case:
            made.case(case, **options)(check)
        for each in variants:
            own: dict[str, Any] = {**options, "since": each.since, "until": each.until, "over": each.over}
            if each.needs is not None:
                own["needs"] = each.needs
            made.case(each.says, **own)(each.bind(check))
        return made

    return define


RuleFamily: TypeAlias = Callable[..., Callable[[Callable[..., Any]], Rule]]
"""`rule` with the limits that the rules of a family share: `partial(rule, since="2025-11-25")`."""

client_rule: RuleFamily = partial(rule, role="client")
"""`rule` for a generator function that reads the records of all runs of a client, or is called by scenarios."""


def _count_items(read: Callable[..., JudgedItems]) -> Callable[..., int]:
    """Return a function that returns how many items a reading function judged."""
    return lambda logs: sum(1 for _ in read(logs))
