"""From 2026-07-28 on: what of a request stands in HTTP headers too, tools whose arguments do among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check.clients.ask import Ask
from accord.check.clients.offer import TOOLS, Offer, tool
from accord.check.clients.run import Message, Run
from accord.check.clients.scene import Answer, Refuse, Scene
from accord.check.clients.web import Exchange
from accord.check.rule import HTTP, Broken, NotObserved, Rule
from accord.errors import HEADER_MISMATCH
from accord.messages.base import JSONObject
from accord.wire.headers import decode_value, mirrored, parameters
from accord.wire.streamable import NAMED

_SINCE = "2026-07-28"
_AT = "basic/transports/streamable-http#"

METHOD = Rule(
    "client-http/method-header",
    "must",
    "Mcp-Method is the method of the request.",
    at=_AT + "standard-request-headers",
    role="client",
    since=_SINCE,
    over=HTTP,
    cause="The header is left out, or written otherwise than the method.",
)

NAME = Rule(
    "client-http/name-header",
    "must",
    "Mcp-Name is the name of the tool or prompt, or the URI of the resource, in Base64 where a header cannot have it.",
    at=(_AT + "standard-request-headers", _AT + "value-encoding"),
    role="client",
    since=_SINCE,
    over=HTTP,
    cause="The header is left out, or carries the value as it is, whatever it is.",
)

ARGUMENTS = Rule(
    "client-http/parameter-headers",
    "must",
    "An argument that the schema wants in a header stands there, encoded where it must be, and nothing for null.",
    at=(_AT + "custom-headers-from-tool-parameters", _AT + "value-encoding", _AT + "client-behavior"),
    role="client",
    since=_SINCE,
    over=HTTP,
    cause="x-mcp-header is not looked at, or a value goes into the header as it is.",
)

INVALID = Rule(
    "client-http/invalid-parameter-headers",
    "must",
    "A tool that declares its headers wrongly is left out; the others are used.",
    at=_AT + "schema-extension",
    role="client",
    since=_SINCE,
    over=HTTP,
    cause="The declaration is taken as it is, or one wrong tool spoils the whole list.",
)

MISMATCH = Rule(
    "client-http/header-mismatch",
    "should",
    "Refused for its headers, a client lists the tools again and calls once more.",
    at=_AT + "client-behavior",
    role="client",
    since=_SINCE,
    over=HTTP,
    cause="The error is handed on without a look at the schema, which may have changed.",
)


@METHOD.reading("every request")
def _(runs: Sequence[Run]) -> int:
    requests = [*_carried(runs)]
    for request, exchange in requests:
        if exchange.headers.get("mcp-method") != request.method:
            said = exchange.headers.get("mcp-method")
            raise Broken(f"Mcp-Method is {said!r} for {request.method}", evidence=[exchange.line()])
    return len(requests)


@NAME.reading("every call, every prompt, every resource")
def _(runs: Sequence[Run]) -> int:
    named = [(request, exchange) for request, exchange in _carried(runs) if request.method in NAMED]
    for request, exchange in named:
        subject = request.params.get(NAMED[str(request.method)])
        said = exchange.headers.get("mcp-name")
        if isinstance(subject, str) and _decoded(said) != subject:
            raise Broken(f"Mcp-Name is {said!r} for {subject!r}", evidence=[exchange.line(), request.said.line()])
    return len(named)


# --- arguments in headers ----------------------------------------------------------------------------------------


def _header(name: str, **schema: object) -> JSONObject:
    return {"x-mcp-header": name, **schema}


MIRRORED = tool(
    "mirror",
    "Its arguments stand in headers too.",
    region=_header("Region", type="string"),
    count=_header("Count", type="integer"),
    flag=_header("Flag", type="boolean"),
    city=_header("City", type="string", enum=["Z\u00fcrich"]),
    padded=_header("Padded", type="string", enum=[" padded "]),
    wrapped=_header("Wrapped", type="string", enum=["=?base64?SGk=?="]),
    deep={"type": "object", "properties": {"er": _header("Deeper", type="string")}, "required": ["er"]},
)

WRONG = (
    tool("empty-header", "Its header has no name.", a=_header("", type="string")),
    tool("no-token", "Its header cannot be one.", a=_header("two words", type="string")),
    tool("injected", "Its header is two.", a=_header("A\r\nX-Evil: 1", type="string")),
    tool("twice", "Two arguments have one header.", a=_header("Same", type="string"), b=_header("same", type="string")),
    tool("fraction", "A number has a header.", a=_header("Fraction", type="number")),
    tool("listed", "An item of a list has a header.", a={"type": "array", "items": _header("Item", type="string")}),
)

PLAYED = Scene(
    "parameter-headers",
    "tools whose arguments stand in headers, and some that declare it wrongly",
    since=_SINCE,
    over=HTTP,
    offer=Offer(tools=[*WRONG[:3], MIRRORED, *WRONG[3:], TOOLS[0]]),
)


@PLAYED.on("tools/list")
async def _(ask: Ask) -> Answer:
    return await ask.usual()


@PLAYED.judges(ARGUMENTS, "arguments of every kind")
def _(run: Run) -> None:
    called = [(each, exchange) for each, exchange in _carried([run]) if _names(each, MIRRORED)]
    if not called:
        raise NotObserved("the client did not call the tool")
    for request, exchange in called:
        given = request.params.get("arguments")
        wanted = parameters(mirrored(MIRRORED["inputSchema"]), given if isinstance(given, dict) else {})
        expected = {name.lower(): decode_value(value.encode()) for name, value in wanted.items()}
        sent = {name: _decoded(value) for name, value in exchange.headers.items() if name.startswith("mcp-param-")}
        for name in expected.keys() | sent.keys():
            if sent.get(name) != expected.get(name):
                text = f"{name} is {exchange.headers.get(name)!r}; the argument is {expected.get(name)!r}"
                raise Broken(text, evidence=[exchange.line(), request.said.line()])


@PLAYED.judges(INVALID, "tools that declare their headers wrongly")
def _(run: Run) -> None:
    run.reached()
    calls = run.requests("tools/call")
    for each in calls:
        if any(_names(each, wrong) for wrong in WRONG):
            raise Broken(f"{each.params.get('name')} was called", evidence=[each.said.line()])
    if not calls:
        raise (
            NotObserved("the client calls no tools")
            if "tools/call" not in run.usual.methods
            else Broken("with wrong tools in the list, the client called none at all", evidence=run.evidence())
        )


CHANGED = Scene(
    "header-mismatch",
    "the first call is refused for its headers",
    since=_SINCE,
    over=HTTP,
    offer=Offer(tools=[MIRRORED]),
)


@CHANGED.on("tools/call")
async def _(ask: Ask) -> Answer:
    if ask.turn == 0:
        raise Refuse(HEADER_MISMATCH, "Header mismatch: Mcp-Param-Region is missing")
    return await ask.usual()


@CHANGED.judges(MISMATCH, "a call that is refused for its headers")
def _(run: Run) -> None:
    run.got_away()
    methods = [each.method for each in run.after()]
    if "tools/list" not in methods or "tools/call" not in methods[methods.index("tools/list") :]:
        raise Broken("the client did not list and call again", evidence=run.evidence())


def _carried(runs: Sequence[Run]) -> Iterator[tuple[Message, Exchange]]:
    """Every request with the HTTP request that it came by."""
    for run in runs:
        for request in run.requests():
            if 0 < request.said.stream <= len(run.exchanges) and request.method != "initialize":
                yield request, run.exchanges[request.said.stream - 1]


def _names(request: Message, wanted: JSONObject) -> bool:
    return bool(request.method == "tools/call" and request.params.get("name") == wanted["name"])


def _decoded(value: str | None) -> str | None:
    """What a header stands for; what cannot be read stands for itself."""
    if value is None:
        return None
    try:
        return decode_value(value.encode("latin-1"))
    except (ValueError, UnicodeEncodeError):
        return f"{value} (which cannot be read)"
