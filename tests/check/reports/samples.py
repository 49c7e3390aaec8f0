"""Reports made by hand: a realistic one, a clean one, and one in which every text is the same hostile one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from accord.check.engine.fleet import CheckedServer, Fleet
from accord.check.engine.fleet_history import FleetChange, FleetChangeKind, FleetRun, ServerStatus, fleet_changes
from accord.check.engine.report import Finding, Outcome, Place, Report, Verdict, Visit, counts, score
from accord.messages.revision import REVISIONS

SPECIFICATION = "https://modelcontextprotocol.io/specification"

AREAS = {
    "envelope": ("ids-are-answered", "one-answer", "no-answer-to-notifications", "error-codes"),
    "lifecycle": ("answers-initialize", "ping-at-any-time", "refuses-unknown-revisions"),
    "stdio": ("only-messages", "ends-with-its-input"),
    "http": ("content-type", "origin", "session-404"),
    "tools": ("unknown-name", "invalid-arguments", "cursors", "list-changed", "annotations"),
    "resources": ("not-found", "subscribe"),
    "prompts": ("missing-arguments", "unknown-name"),
}


def outcome(rule: str, verdict: Verdict = "pass", **given: Any) -> Outcome:
    """One outcome; at 2025-11-25 over stdio, if nothing else is said."""
    defaults = {"case": "the usual way", "level": "must", "revision": "2025-11-25", "transport": "stdio"}
    return Outcome(rule=rule, verdict=verdict, **{**defaults, "seconds": 0.012, **given})


def finding(rule: str, *places: tuple[str, str], **given: Any) -> Finding:
    """One finding; at 2025-11-25 over stdio, if no place is given."""
    defaults: dict[str, Any] = {
        "verdict": "fail",
        "level": "must",
        "says": f"What {rule} wants, in one sentence.",
        "sources": (f"{SPECIFICATION}/2025-11-25/server/tools#error-handling",),
        "text": "something else was seen",
        "cause": "",
    }
    at = [Place(revision=revision, transport=transport) for revision, transport in places or [("2025-11-25", "stdio")]]  # type: ignore[arg-type]
    return Finding(rule=rule, places=tuple(at), **{**defaults, **given})


def report(outcomes: Iterable[Outcome], findings: Iterable[Finding] = (), **given: Any) -> Report:
    """A report of these, with its visits counted from the outcomes."""
    listed = tuple(outcomes)
    places = list(dict.fromkeys((each.revision, each.transport) for each in listed))
    visits = [_visit(place, [each for each in listed if (each.revision, each.transport) == place]) for place in places]
    defaults: dict[str, Any] = {
        "role": "server",
        "target": "python examples/weather.py",
        "name": "weather 1.4.2",
        "version": "0.1.0",
        "started": "2026-11-21T12:00:00Z",
        "seconds": 12.345,
        "score": score(listed),
        "visits": tuple(visits),
        "findings": tuple(findings),
        "outcomes": listed,
    }
    return Report(**{**defaults, **given})


def _visit(place: tuple[str, str], outcomes: list[Outcome]) -> Visit:
    revision, transport = place
    return Visit(
        revision=revision,
        transport=transport,  # type: ignore[arg-type]
        score=score(outcomes),
        seconds=round(sum(each.seconds for each in outcomes), 3),
        counts=counts(outcomes),
    )


EVIDENCE = (
    '→ {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"no-such-tool-5f1c","arguments":{}}}',
    '← {"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"Unknown tool: no-such-tool-5f1c"}]}}',
    "# 2.0 s passed, nothing else came",
)


def realistic() -> Report:
    """A server with a handful of faults, in five revisions over two transports, one visit of which ended early."""
    outcomes = [
        _fate(f"{area}/{name}", revision, transport)
        for revision in REVISIONS
        for transport in ("stdio", "http")
        for area, names in AREAS.items()
        for name in names
    ]
    everywhere = [(revision, transport) for revision in REVISIONS for transport in ("stdio", "http")]
    return msgspec.structs.replace(
        report(outcomes, _findings(everywhere), seed=7, generated=702),
        stale=("resources/not-found in 2025-06-18 over http",),
    )


def _fate(rule: str, revision: str, transport: str) -> Outcome:
    area, _, name = rule.partition("/")
    at: dict[str, Any] = {"revision": revision, "transport": transport}
    if area in ("stdio", "http") and area != transport:
        return outcome(rule, "not-applicable", text=f"it is about {area}", **at)
    if rule == "tools/unknown-name":
        return outcome(rule, "fail", case="a name that nobody has", text="a result came for 'no-such-tool-5f1c'", **at)
    if rule == "stdio/only-messages":
        return outcome(rule, "fail", case="all that passed", text="'Weather server ready' on stdout", **at)
    if rule == "http/origin" and revision == REVISIONS[-1]:
        return outcome(rule, "fail", text="403 was expected, 200 came", symptom="origin-ignored", **at)
    if rule == "tools/cursors":
        return outcome(
            rule, "warn", level="should", text="a cursor that nobody gave was taken for the first page", **at
        )
    if name in ("subscribe", "list-changed"):
        return outcome(rule, "not-observed", text="nothing changed while we watched", **at)
    return outcome(rule, **at)


def _findings(everywhere: list[tuple[str, str]]) -> list[Finding]:
    return [
        finding(
            "tools/cursors",
            *everywhere,
            verdict="warn",
            level="should",
            says="A cursor that the server did not give is refused as invalid params.",
            text="a cursor that nobody gave was taken for the first page",
        ),
        finding(
            "tools/unknown-name",
            *everywhere,
            says="A call of a tool that does not exist is answered with an error.",
            text="a result came for 'no-such-tool-5f1c'",
            cause="The handler answers whatever name it is given. Look the name up first, and answer -32602.",
            also=("prompts/unknown-name",),
            cases=("a name that nobody has",),
            evidence=EVIDENCE,
            repeat="accord check 'python examples/weather.py' --only tools/unknown-name --revision 2025-11-25",
        ),
        finding(
            "stdio/only-messages",
            *(each for each in everywhere if each[1] == "stdio"),
            says="Nothing but messages is written to stdout.",
            text="'Weather server ready on \x1b[32mstdio\x1b[0m' on stdout",
            cause="print() in the server, or a banner of its framework; write it to stderr.",
            evidence=("← Weather server ready on \x1b[32mstdio\x1b[0m", "← " + '{"k":"' + "long " * 300 + '"}'),
            repeat="accord check 'python examples/weather.py' --only stdio/only-messages",
            known=True,
        ),
        finding(
            "http/origin",
            (REVISIONS[-1], "http"),
            says="A request whose Origin is not allowed is refused with 403.",
            text="403 was expected, 200 came",
            cause="The Origin header is not looked at: any page that a person visits can speak to this server.",
            evidence=("→ POST /mcp  Origin: https://evil.example", "← 200 application/json"),
            repeat="accord check 'python examples/weather.py' --only http/origin --revision 2026-07-28",
        ),
    ]


def filled(text: str) -> Report:
    """A report every text of which is `text`, wherever a peer or a person could have written it."""
    at: dict[str, Any] = {"transport": "stdio", "revision": "2025-11-25"}
    told = outcome(text, "fail", case=text, text=text, symptom=text, cause=text, evidence=(text,), **at)
    warned = outcome("tools/warned", "warn", case=text, text=text, **at)
    passed = outcome("tools/passed", "not-observed", case=text, text=text, **at)
    found = finding(
        text,
        says=text,
        sources=(text,),
        text=text,
        cause=text,
        also=(text,),
        cases=(text,),
        evidence=(text,),
        repeat=text,
    )
    whole = report([told, warned, passed], [found], target=text, name=text, stale=(text,))
    ended = msgspec.structs.replace(whole.visits[0], error=text)
    return msgspec.structs.replace(whole, visits=(ended,))


def fleet() -> Fleet:
    """Five servers: one with faults, one with a warning, one clean, one that died, one that is new."""
    clean = report([outcome("tools/x"), outcome("tools/x", transport="http")], name="memory 0.6.3")
    warned = [outcome("tools/cursors", "warn", level="should", revision="2026-07-28"), outcome("tools/x")]
    slow = report(warned, [finding("tools/cursors", verdict="warn", level="should")], name="git 1.30")
    servers = (
        CheckedServer(name="weather", seconds=12.3, report=realistic()),
        CheckedServer(name="git", seconds=4.2, report=slow),
        CheckedServer(name="memory", seconds=3.1, report=clean),
        CheckedServer(
            name="broken", seconds=0.2, error="the server ended at once (exit code 1): no module named 'mcp'"
        ),
        CheckedServer(name="newcomer", seconds=1.0, report=clean),
    )
    scores = ((60, 100, 100, 90), (75, 75, 100, 95), (80, 75, 100, 95))
    history = tuple(_run(number, each) for number, each in enumerate(scores, 1))
    now = Fleet(started="2026-11-21T12:00:00Z", seconds=20.8, version="0.1.0", servers=servers, history=history)
    return msgspec.structs.replace(now, news=fleet_changes(history, now.run.servers))


def _run(day: int, scores: tuple[int, ...]) -> FleetRun:
    names = ("weather", "git", "memory", "broken")
    servers = {name: ServerStatus(score=score) for name, score in zip(names, scores, strict=True)}
    return FleetRun(started=f"2026-11-{day:02}T12:00:00Z", version="0.1.0", servers=servers)


def filled_fleet(text: str) -> Fleet:
    """A fleet every text of which is `text`."""
    servers = (
        CheckedServer(name=text, seconds=1.0, report=filled(text)),
        CheckedServer(name=f"{text} ", seconds=1.0, error=text),
    )
    kinds: tuple[FleetChangeKind, ...] = ("worse", "better", "new", "gone")
    told = tuple(FleetChange(server=text, kind=kind, text=text) for kind in kinds)
    return Fleet(started="2026-11-21T12:00:00Z", seconds=1.0, version="0.1.0", servers=servers, news=told)
