"""Schemas and pictures that a server names: what is elsewhere is not fetched, what is heavy does not weigh down."""

from __future__ import annotations

from typing import Any

from accord.check.clients.ask import Ask
from accord.check.clients.offer import TOOLS, Offer, text, tool
from accord.check.clients.run import Run
from accord.check.clients.scene import Answer, Scene
from accord.check.rule import Broken, Rule
from accord.messages.base import JSONObject

_SINCE = "2026-07-28"
_STRUCTURED = "2025-06-18"
_ICONS = "2025-11-25"

REFS = Rule(
    "client-robust/remote-refs",
    "must",
    "A $ref that leads over the network is not followed.",
    at="basic#ref-resolution",
    role="client",
    since=_SINCE,
    cause="The validator fetches what it does not have.",
)

REFS_BEFORE = Rule(
    "client-robust/fetched-refs",
    "should",
    "A $ref that leads over the network is not followed.",
    at="server/tools#security-considerations",
    role="client",
    until=_SINCE,
    cause="The validator fetches what it does not have.",
)

BOMBS = Rule(
    "client-robust/schema-bombs",
    "should",
    "A schema that is made to be slow does not stop the client.",
    at=("basic#composition-keyword-resource-use", "server/tools#output-schema"),
    role="client",
    since=_STRUCTURED,
    cause="Validation has no bounds, and regular expressions may take for ever.",
)

DIALECT = Rule(
    "client-robust/dialect",
    "must",
    "A schema of a dialect that the client does not know is an error it can tell, and no end of the connection.",
    at="basic#implementation-requirements",
    role="client",
    since=_ICONS,
    cause="The unknown dialect raises where nobody expects it.",
)

PICTURES = Rule(
    "client-robust/icons",
    "must",
    "An icon is fetched over https or taken from its data: URI, never over http or from elsewhere.",
    at="basic#icons",
    role="client",
    since=_ICONS,
    cause="Whatever stands in src is fetched.",
)

MISFIT = Rule(
    "client-robust/structured",
    "should",
    "A structured result that does not fit its schema is an error for whoever asked, and no more.",
    at="server/tools#output-schema",
    role="client",
    since=_STRUCTURED,
    cause="The error of the validator ends the connection.",
)


def _with_output(name: str, schema: JSONObject) -> JSONObject:
    return tool(name, "It has an output schema.") | {"outputSchema": schema}


def _calling(name: str, says: str, tools: list[JSONObject], structured: Any, **options: Any) -> Scene:
    """A scene with these tools, all of which give one structured result."""
    scene = Scene(name, says, offer=Offer(tools=tools), **options)

    @scene.on("tools/call")
    async def _(ask: Ask) -> Answer:
        return ask.dressed({"content": [text("{}")], "structuredContent": structured})

    return scene


# --- elsewhere ---------------------------------------------------------------------------------------------------

ELSEWHERE = Scene("remote-refs", "schemas that lead to another origin")


@ELSEWHERE.on("tools/list")
async def _(ask: Ask) -> Answer:
    result = await ask.usual()
    there = {"type": "object", "properties": {"a": {"$ref": f"{ask.trap}/schema.json"}}}
    more = tool("elsewhere") | {"inputSchema": there}
    more |= {"outputSchema": there} if "outputSchema" in str(result["tools"]) else {}
    return result | {"tools": [*result["tools"], more]}


@ELSEWHERE.on("tools/call")
async def _(ask: Ask) -> Answer:
    if ask.params.get("name") != "elsewhere":
        return await ask.usual()
    return ask.dressed({"content": [text("{}")], "structuredContent": {"a": 1}})


@ELSEWHERE.judges(REFS, "a $ref to another origin")
def _(run: Run) -> None:
    _nothing_fetched(run)


@ELSEWHERE.judges(REFS_BEFORE, "a $ref to another origin")
def _(run: Run) -> None:
    _nothing_fetched(run)


PAINTED = Scene("icons", "icons at places where none may be", since=_ICONS)


@PAINTED.on("tools/list")
async def _(ask: Ask) -> Answer:
    result = await ask.usual()
    places = (f"{ask.trap}/icon.png", "javascript:alert(1)", "file:///etc/passwd", "ftp://127.0.0.1/icon.png")
    icons = [{"src": place, "mimeType": "image/png"} for place in places]
    return result | {"tools": [each | {"icons": icons} for each in result["tools"]]}


@PAINTED.judges(PICTURES, "icons over http, and of unsafe schemes")
def _(run: Run) -> None:
    _nothing_fetched(run)


def _nothing_fetched(run: Run) -> None:
    run.survived()
    for stray in run.strays:
        raise Broken(f"{stray.path} was fetched from another origin", evidence=[stray.line()])


# --- heavy, foreign, unfit ---------------------------------------------------------------------------------------

_LOOP = {"$ref": "#/$defs/a"}
HEAVY = _calling(
    "schema-bombs",
    "schemas that take for ever",
    [
        _with_output("regex", {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}),
        _with_output("loop", {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"allOf": [_LOOP, _LOOP]}}}),
        TOOLS[0],
    ],
    {"text": "a" * 40 + "!"},
    since=_STRUCTURED,
    patience=6.0,
)
OTHER = _calling(
    "schema-dialect",
    "schemas of a dialect that nobody knows",
    [_with_output("dialect", {"$schema": "https://example.com/unheard-of/schema", "type": "object"}), TOOLS[0]],
    {"text": "x"},
    since=_ICONS,
)
UNFIT = _calling(
    "structured-misfit",
    "a structured result that does not fit its schema",
    [
        _with_output("misfit", {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}),
        TOOLS[0],
    ],
    {"sum": "seven"},
    since=_STRUCTURED,
)


@HEAVY.on("tools/list")  # the list by itself may be too much; a result that does not fit is the result of a call
@OTHER.on("tools/list")
async def _(ask: Ask) -> Answer:
    return await ask.usual()


@HEAVY.judges(BOMBS, "a pattern and a reference that take for ever")
def _(run: Run) -> None:
    run.got_away()


@OTHER.judges(DIALECT, "a dialect that nobody knows")
def _(run: Run) -> None:
    run.got_away()


@UNFIT.judges(MISFIT, "a result that does not fit")
def _(run: Run) -> None:
    run.got_away()
