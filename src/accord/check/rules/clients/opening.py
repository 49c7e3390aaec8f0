"""How a client opens a connection, and what it makes of what the server is and has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from accord.check.clients.ask import Ask
from accord.check.clients.conversation import Conversation
from accord.check.clients.offer import Offer, hello
from accord.check.clients.run import Message, Run
from accord.check.clients.scene import Answer, Refuse, Scene
from accord.check.rule import Broken, Rule
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.methods import table
from accord.messages.revision import HANDSHAKE, lives_in

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SLOW = 0.4
"""Seconds that a slow server takes for `initialize`."""
_NOBODYS = "1999-01-01"
"""A revision that no client speaks."""

FIRST_OF_ALL = Rule(
    "client-opening/first",
    "must",
    "The first request of a connection is initialize; only a try of a newer revision, and pings, may come before.",
    at="basic/lifecycle#initialization",
    role="client",
    until="2026-07-28",
    cause="Requests are sent as soon as the transport is open.",
)

INITIALIZE = Rule(
    "client-opening/initialize",
    "must",
    "initialize says which revision the client wants, what it can do, and who it is.",
    at="basic/lifecycle#initialization",
    role="client",
    until="2026-07-28",
    cause="protocolVersion, capabilities or clientInfo (with name and version) is left out.",
)

INITIALIZED = Rule(
    "client-opening/initialized",
    "must",
    "Once initialize is answered, the client says that it is ready: notifications/initialized.",
    at="basic/lifecycle#initialization",
    role="client",
    until="2026-07-28",
    cause="The notification is forgotten, or sent as a request.",
)

EARLY = Rule(
    "client-opening/no-early-requests",
    "should",
    "Before initialize is answered, the client sends no other request than pings.",
    at="basic/lifecycle#initialization",
    role="client",
    until="2026-07-28",
    cause="Requests are not held back while the handshake is on its way.",
)

VERSION = Rule(
    "client-opening/version",
    "must",
    "initialize asks for a revision that is opened by a handshake.",
    at="basic/lifecycle#version-negotiation",
    role="client",
    until="2026-07-28",
    cause="The version of the client's own software stands there, or 2026-07-28, which has no handshake.",
)

LATEST = Rule(
    "client-opening/latest",
    "should",
    "initialize asks for the latest revision that the client speaks.",
    at="basic/lifecycle#version-negotiation",
    role="client",
    until="2026-07-28",
    cause="An older revision is written into the client as a constant.",
)

UNSUPPORTED = Rule(
    "client-opening/unsupported-version",
    "must",  # "it MUST disconnect" in schema.ts, of which the pages make a SHOULD
    "A client that does not speak the revision of the answer to initialize disconnects.",
    at=("basic/lifecycle#version-negotiation", "schema#initializeresult"),
    role="client",
    until="2026-07-28",
    cause="The protocolVersion of the answer is not looked at.",
)

REFUSED = Rule(
    "client-opening/refused",
    "should",
    "A client whose initialize is refused does not go on as if it were open, and does not wait for ever.",
    at="basic/lifecycle#error-handling",
    role="client",
    until="2026-07-28",
    cause="An error in place of the result of initialize is not looked for.",
)


def _openings(runs: Sequence[Run]) -> Iterator[tuple[Run, Conversation, list[Message]]]:
    """The conversations in which a handshake was begun, each with what the client said in it."""
    for run in runs:
        for conversation in run.conversations:
            said = [each for each in run.messages() if each.conversation is conversation]
            if any(each.method == "initialize" for each in said):
                yield run, conversation, said


@FIRST_OF_ALL.reading("the first request of every connection")
def _(runs: Sequence[Run]) -> int:
    for run in runs:
        first = {each.conversation.number: each for each in reversed(run.requests()) if not _may_come_before(each)}
        for request in first.values():
            if request.method != "initialize":
                raise Broken(f"{request.method} came first", evidence=run.evidence(request.said))
    return len([*_openings(runs)])


def _may_come_before(request: Message) -> bool:
    return request.method == "ping" or PROTOCOL_VERSION in request.meta


@INITIALIZE.reading("every initialize")
def _(runs: Sequence[Run]) -> int:
    opened = [each for run in runs for each in run.requests("initialize")]
    for each in opened:
        info = each.params.get("clientInfo")
        named = isinstance(info, dict) and isinstance(info.get("name"), str) and isinstance(info.get("version"), str)
        for what, fits in (
            ("protocolVersion", isinstance(each.params.get("protocolVersion"), str)),
            ("capabilities", isinstance(each.params.get("capabilities"), dict)),
            ("clientInfo with name and version", named),
        ):
            if not fits:
                raise Broken(f"initialize has no {what}", evidence=[each.said.line()])
    return len(opened)


@VERSION.reading("every initialize")
def _(runs: Sequence[Run]) -> int:
    opened = [each for run in runs for each in run.requests("initialize")]
    for each in opened:
        wanted = each.params.get("protocolVersion")
        if not isinstance(wanted, str) or not _DATE.fullmatch(wanted) or wanted not in HANDSHAKE:
            raise Broken(f"initialize asks for {wanted!r}", evidence=[each.said.line()])
    return len(opened)


@LATEST.reading("every initialize")
def _(runs: Sequence[Run]) -> int:
    opened = [(run, each) for run in runs for each in run.requests("initialize") if run.usual is run]
    for run, each in opened:
        wanted = each.params.get("protocolVersion")
        if wanted in HANDSHAKE and not lives_in(str(wanted), run.revision, None):
            text = f"initialize asks for {wanted}, although the client speaks {run.revision}"
            raise Broken(text, evidence=[each.said.line()])
    return len(opened)


@INITIALIZED.reading("every handshake")
def _(runs: Sequence[Run]) -> int:
    judged = 0
    for run, _, said in _openings(runs):
        later = said[[each.method for each in said].index("initialize") + 1 :]
        requests = [each for each in later if each.method not in ("ping", "initialize") and "id" in each.body]
        ready = [each for each in later if each.method == "notifications/initialized" and "id" not in each.body]
        if requests and not ready:
            raise Broken("notifications/initialized never came", evidence=run.evidence(*(one.said for one in said[:6])))
        judged += bool(ready)
    return judged


# --- a slow handshake --------------------------------------------------------------------------------------------

SLOW = Scene("slow-initialize", "initialize takes a while", until="2026-07-28")


@SLOW.on("initialize")
async def _(ask: Ask) -> Answer:
    await ask.wait(_SLOW)
    return await ask.usual()


@SLOW.judges(EARLY, "initialize that takes a while")
def _(run: Run) -> None:
    run.reached()
    for request in run.requests("initialize")[:1]:
        early = [each for each in run.requests() if request.said.at < each.said.at < request.said.at + _SLOW * 0.9]
        for each in early:
            if each.method not in ("ping", "initialize"):
                text = f"{each.method} was sent before initialize was answered"
                raise Broken(text, evidence=[request.said.line(), each.said.line()])


# --- a revision that nobody has ----------------------------------------------------------------------------------

STRANGE = Scene("unsupported-version", "the server answers with a revision that nobody has", until="2026-07-28")


@STRANGE.on("initialize")
async def _(ask: Ask) -> Answer:
    return hello(ask.conversation.stand.revision, Offer()) | {"protocolVersion": _NOBODYS}


@STRANGE.judges(UNSUPPORTED, "a server of a revision that nobody has")
def _(run: Run) -> None:
    _does_not_go_on(run, f"the server speaks {_NOBODYS}, and the client went on")


REFUSING = Scene("initialize-refused", "initialize is answered with an error", until="2026-07-28")


@REFUSING.on("initialize")
async def _(ask: Ask) -> Answer:
    raise Refuse(-32603, "Internal error: the server has no configuration")


@REFUSING.judges(REFUSED, "initialize that is answered with an error")
def _(run: Run) -> None:
    _does_not_go_on(run, "initialize was refused, and the client went on")
    if run.ending != "itself" and run.usual.ending == "itself":
        raise Broken("the client does not end: it waits for what will not come")


def _does_not_go_on(run: Run, text: str) -> None:
    run.survived()
    for each in run.after():
        known = each.method in table(run.revision, "client") and each.method not in ("initialize", _CANCELLED)
        if known and PROTOCOL_VERSION not in each.meta:
            raise Broken(text, evidence=run.evidence(each.said))


_CANCELLED = "notifications/cancelled"
