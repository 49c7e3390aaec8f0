"""Schemas and icons of a server: no requests to other origins, and bounded validation."""

from __future__ import annotations

from typing import Any

from accord.check.clients.features import TOOLS, ScriptedFeatures, text_block, tool_definition
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario, ScriptedAnswer
from accord.check.engine.rule import Violation
from accord.messages.base import JSONObject

_SINCE = "2026-07-28"
_STRUCTURED = "2025-06-18"
_ICONS = "2025-11-25"


def _with_output(name: str, schema: JSONObject) -> JSONObject:
    return tool_definition(name, "It has an output schema.") | {"outputSchema": schema}


def _tool_result_scenario(name: str, says: str, tools: list[JSONObject], structured: Any, **options: Any) -> Scenario:
    """Return a scenario with these tools, which all return one structured result."""
    scenario = Scenario(name, says, features=ScriptedFeatures(tools=tools), **options)

    @scenario.on("tools/call")
    async def answer(request: IncomingRequest) -> ScriptedAnswer:
        return request.with_result_fields({"content": [text_block("{}")], "structuredContent": structured})

    return scenario


# --- elsewhere ---------------------------------------------------------------------------------------------------

REMOTE_REFS_SCENARIO = Scenario("remote-refs", "schemas with a $ref to another origin")


@REMOTE_REFS_SCENARIO.on("tools/list")
async def answer_remote_refs_tools_list(request: IncomingRequest) -> ScriptedAnswer:
    result = await request.default_result()
    there = {"type": "object", "properties": {"a": {"$ref": f"{request.trap_url}/schema.json"}}}
    more = tool_definition("elsewhere") | {"inputSchema": there}
    more |= {"outputSchema": there} if "outputSchema" in str(result["tools"]) else {}
    return result | {"tools": [*result["tools"], more]}


@REMOTE_REFS_SCENARIO.on("tools/call")
async def answer_remote_refs_tools_call(request: IncomingRequest) -> ScriptedAnswer:
    if request.params.get("name") != "elsewhere":
        return await request.default_result()
    return request.with_result_fields({"content": [text_block("{}")], "structuredContent": {"a": 1}})


@REMOTE_REFS_SCENARIO.rule(
    "client-robust/remote-refs",
    "must",
    case="a $ref to another origin",
    at="basic#ref-resolution",
    since=_SINCE,
    cause="The validator fetches missing schemas.",
)
def client_robust_remote_refs(run: ClientRun) -> None:
    """A client does not fetch a $ref over the network."""
    _require_nothing_fetched(run)


@REMOTE_REFS_SCENARIO.rule(
    "client-robust/fetched-refs",
    "should",
    case="a $ref to another origin",
    at="server/tools#security-considerations",
    until=_SINCE,
    cause="The validator fetches missing schemas.",
)
def client_robust_fetched_refs(run: ClientRun) -> None:
    """A client does not fetch a $ref over the network."""
    _require_nothing_fetched(run)


ICONS_SCENARIO = Scenario("icons", "icons at URLs that are not allowed", since=_ICONS)


@ICONS_SCENARIO.on("tools/list")
async def answer_icons(request: IncomingRequest) -> ScriptedAnswer:
    result = await request.default_result()
    places = (f"{request.trap_url}/icon.png", "javascript:alert(1)", "file:///etc/passwd", "ftp://127.0.0.1/icon.png")
    icons = [{"src": place, "mimeType": "image/png"} for place in places]
    return result | {"tools": [each | {"icons": icons} for each in result["tools"]]}


@ICONS_SCENARIO.rule(
    "client-robust/icons",
    "must",
    case="icons over http, and with unsafe schemes",
    at="basic#icons",
    since=_ICONS,
    cause="All URLs in `src` are fetched.",
)
def client_robust_icons(run: ClientRun) -> None:
    """A client loads icons only over https or from data: URIs."""
    _require_nothing_fetched(run)


def _require_nothing_fetched(run: ClientRun) -> None:
    run.require_no_crash()
    for stray in run.stray_requests:
        raise Violation(f"the client fetched {stray.path} from another origin", evidence=[stray.line()])


# --- heavy, foreign, unfit ---------------------------------------------------------------------------------------

_LOOP = {"$ref": "#/$defs/a"}
SCHEMA_BOMBS_SCENARIO = _tool_result_scenario(
    "schema-bombs",
    "schemas whose validation takes forever",
    [
        _with_output("regex", {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}),
        _with_output("loop", {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"allOf": [_LOOP, _LOOP]}}}),
        TOOLS[0],
    ],
    {"text": "a" * 40 + "!"},
    since=_STRUCTURED,
    patience=6.0,
)
SCHEMA_DIALECT_SCENARIO = _tool_result_scenario(
    "schema-dialect",
    "schemas with an unknown dialect",
    [_with_output("dialect", {"$schema": "https://example.com/unheard-of/schema", "type": "object"}), TOOLS[0]],
    {"text": "x"},
    since=_ICONS,
)
STRUCTURED_MISFIT_SCENARIO = _tool_result_scenario(
    "structured-misfit",
    "a structured result that does not match its schema",
    [
        _with_output("misfit", {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}),
        TOOLS[0],
    ],
    {"sum": "seven"},
    since=_STRUCTURED,
)


@SCHEMA_BOMBS_SCENARIO.on(
    "tools/list"
)  # the list by itself may be too much; a result that does not fit is the result of a call
@SCHEMA_DIALECT_SCENARIO.on("tools/list")
async def answer_schema_bombs(request: IncomingRequest) -> ScriptedAnswer:
    return await request.default_result()


@SCHEMA_BOMBS_SCENARIO.rule(
    "client-robust/schema-bombs",
    "should",
    case="a pattern and a reference whose validation takes forever",
    at=("basic#composition-keyword-resource-use", "server/tools#output-schema"),
    since=_STRUCTURED,
    cause="Validation and regular expressions have no time limit.",
)
def client_robust_schema_bombs(run: ClientRun) -> None:
    """A schema that is slow to validate does not block the client."""
    run.require_progress()


@SCHEMA_DIALECT_SCENARIO.rule(
    "client-robust/dialect",
    "must",
    case="an unknown dialect",
    at="basic#implementation-requirements",
    since=_ICONS,
    cause="The error about the dialect is not handled.",
)
def client_robust_dialect(run: ClientRun) -> None:
    """A client handles a schema with an unknown dialect, or reports an error, and the session continues."""
    run.require_progress()


@STRUCTURED_MISFIT_SCENARIO.rule(
    "client-robust/structured",
    "should",
    case="a structured result that does not match",
    at="server/tools#output-schema",
    since=_STRUCTURED,
    cause="The validation error ends the connection.",
)
def client_robust_structured(run: ClientRun) -> None:
    """A structured result that does not match its schema is an error for the caller only."""
    run.require_progress()
