"""HTTP headers that repeat values of a request (2026-07-28)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check.clients.features import TOOLS, ScriptedFeatures, tool_definition
from accord.check.clients.http_listener import ClientExchange
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.clients.scenario import Scenario, ScriptedAnswer, ScriptedError
from accord.check.engine.rule import HTTP, JudgedItems, NotObserved, Violation, client_rule
from accord.errors import HEADER_MISMATCH
from accord.messages.base import JSONObject
from accord.wire.headers import decode_value, mirrored, parameter_headers
from accord.wire.request_headers import NAME_FIELDS

_SINCE = "2026-07-28"
_AT = "basic/transports/streamable-http#"


@client_rule(
    "client-http/method-header",
    "must",
    case="all requests",
    at=_AT + "standard-request-headers",
    since=_SINCE,
    over=HTTP,
    cause="The header is missing, or differs from the method.",
)
def client_http_method_header(runs: Sequence[ClientRun]) -> JudgedItems:
    """Mcp-Method is the method of the request."""
    for request, exchange in _requests_with_exchange(runs):
        yield
        if exchange.headers.get("mcp-method") != request.method:
            entry = exchange.headers.get("mcp-method")
            raise Violation(f"Mcp-Method is {entry!r} for {request.method}", evidence=[exchange.line()])


@client_rule(
    "client-http/name-header",
    "must",
    case="all requests for tools, prompts and resources",
    at=(_AT + "standard-request-headers", _AT + "value-encoding"),
    since=_SINCE,
    over=HTTP,
    cause="The header is missing, or its value is not encoded.",
)
def client_http_name_header(runs: Sequence[ClientRun]) -> JudgedItems:
    """Mcp-Name is the name of the tool or prompt, or the URI of the resource, in Base64 if necessary."""
    for request, exchange in _requests_with_exchange(runs):
        if request.method in NAME_FIELDS:
            yield
            subject = request.params.get(NAME_FIELDS[str(request.method)])
            entry = exchange.headers.get("mcp-name")
            if isinstance(subject, str) and _decode_header(entry) != subject:
                raise Violation(
                    f"Mcp-Name is {entry!r}, but the request has {subject!r}",
                    evidence=[exchange.line(), request.entry.line()],
                )


# --- arguments in headers ----------------------------------------------------------------------------------------


def _parameter_schema(name: str, **schema: object) -> JSONObject:
    return {"x-mcp-header": name, **schema}


MIRRORED = tool_definition(
    "mirror",
    "Its arguments stand in headers too.",
    region=_parameter_schema("Region", type="string"),
    count=_parameter_schema("Count", type="integer"),
    flag=_parameter_schema("Flag", type="boolean"),
    city=_parameter_schema("City", type="string", enum=["Z\u00fcrich"]),
    padded=_parameter_schema("Padded", type="string", enum=[" padded "]),
    wrapped=_parameter_schema("Wrapped", type="string", enum=["=?base64?SGk=?="]),
    deep={"type": "object", "properties": {"er": _parameter_schema("Deeper", type="string")}, "required": ["er"]},
)

WRONG = (
    tool_definition("empty-header", "Its header has no name.", a=_parameter_schema("", type="string")),
    tool_definition("no-token", "Its header cannot be one.", a=_parameter_schema("two words", type="string")),
    tool_definition("injected", "Its header is two.", a=_parameter_schema("A\r\nX-Evil: 1", type="string")),
    tool_definition(
        "twice",
        "Two arguments have one header.",
        a=_parameter_schema("Same", type="string"),
        b=_parameter_schema("same", type="string"),
    ),
    tool_definition("fraction", "A number has a header.", a=_parameter_schema("Fraction", type="number")),
    tool_definition(
        "listed",
        "An item of a list has a header.",
        a={"type": "array", "items": _parameter_schema("Item", type="string")},
    ),
)

PARAMETER_HEADERS_SCENARIO = Scenario(
    "parameter-headers",
    "tools with headers for arguments, valid and invalid",
    since=_SINCE,
    over=HTTP,
    features=ScriptedFeatures(tools=[*WRONG[:3], MIRRORED, *WRONG[3:], TOOLS[0]]),
)


@PARAMETER_HEADERS_SCENARIO.on("tools/list")
async def answer_parameter_headers(request: IncomingRequest) -> ScriptedAnswer:
    return await request.default_result()


@PARAMETER_HEADERS_SCENARIO.rule(
    "client-http/parameter-headers",
    "must",
    case="arguments of all types",
    at=(_AT + "custom-headers-from-tool-parameters", _AT + "value-encoding", _AT + "client-behavior"),
    since=_SINCE,
    over=HTTP,
    cause="x-mcp-header is ignored, or a value is not encoded.",
)
def client_http_parameter_headers(run: ClientRun) -> None:
    """An argument with x-mcp-header is in its header, encoded if necessary; null has no header."""
    called = [(each, exchange) for each, exchange in _requests_with_exchange([run]) if _calls_tool(each, MIRRORED)]
    if not called:
        raise NotObserved("the client did not call the tool")
    for request, exchange in called:
        given = request.params.get("arguments")
        wanted = parameter_headers(mirrored(MIRRORED["inputSchema"]), given if isinstance(given, dict) else {})
        expected = {name.lower(): decode_value(value.encode()) for name, value in wanted.items()}
        sent = {
            name: _decode_header(value) for name, value in exchange.headers.items() if name.startswith("mcp-param-")
        }
        for name in expected.keys() | sent.keys():
            if sent.get(name) != expected.get(name):
                text = f"{name} is {exchange.headers.get(name)!r}, but the argument is {expected.get(name)!r}"
                raise Violation(text, evidence=[exchange.line(), request.entry.line()])


@PARAMETER_HEADERS_SCENARIO.rule(
    "client-http/invalid-parameter-headers",
    "must",
    case="tools with invalid x-mcp-header",
    at=_AT + "schema-extension",
    since=_SINCE,
    over=HTTP,
    cause="The schema is not validated, or one invalid tool removes the whole list.",
)
def client_http_invalid_parameter_headers(run: ClientRun) -> None:
    """A client omits a tool with an invalid x-mcp-header, and uses the others."""
    run.require_intervention()
    calls = run.requests("tools/call")
    for each in calls:
        if any(_calls_tool(each, wrong) for wrong in WRONG):
            raise Violation(f"the client called {each.params.get('name')}", evidence=[each.entry.line()])
    if not calls:
        raise (
            NotObserved("the client calls no tools")
            if "tools/call" not in run.ordinary_run.methods
            else Violation("because of invalid tools in the list, the client called none", evidence=run.evidence())
        )


HEADER_MISMATCH_SCENARIO = Scenario(
    "header-mismatch",
    "the first call is refused because of its headers",
    since=_SINCE,
    over=HTTP,
    features=ScriptedFeatures(tools=[MIRRORED]),
)


@HEADER_MISMATCH_SCENARIO.on("tools/call")
async def answer_header_mismatch(request: IncomingRequest) -> ScriptedAnswer:
    if request.index == 0:
        raise ScriptedError(HEADER_MISMATCH, "Header mismatch: Mcp-Param-Region is missing")
    return await request.default_result()


@HEADER_MISMATCH_SCENARIO.rule(
    "client-http/header-mismatch",
    "should",
    case="a call that is refused because of its headers",
    at=_AT + "client-behavior",
    since=_SINCE,
    over=HTTP,
    cause="The error is returned without listing the tools again, whose schemas may have changed.",
)
def client_http_header_mismatch(run: ClientRun) -> None:
    """After an error about its headers, a client lists the tools and repeats the call."""
    run.require_progress()
    methods = [each.method for each in run.messages_after()]
    if "tools/list" not in methods or "tools/call" not in methods[methods.index("tools/list") :]:
        raise Violation("the client did not list the tools and repeat the call", evidence=run.evidence())


def _requests_with_exchange(runs: Sequence[ClientRun]) -> Iterator[tuple[ClientMessage, ClientExchange]]:
    """Yield each request with its HTTP request."""
    for run in runs:
        for request in run.requests():
            if 0 < request.entry.stream <= len(run.exchanges) and request.method != "initialize":
                yield request, run.exchanges[request.entry.stream - 1]


def _calls_tool(request: ClientMessage, wanted: JSONObject) -> bool:
    return bool(request.method == "tools/call" and request.params.get("name") == wanted["name"])


def _decode_header(value: str | None) -> str | None:
    """Return the value of a header, decoded if it is encoded."""
    if value is None:
        return None
    try:
        return decode_value(value.encode("latin-1"))
    except (ValueError, UnicodeEncodeError):
        return f"{value} (invalid)"
