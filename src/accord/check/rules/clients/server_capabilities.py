"""What a client makes of what a server has: it uses that alone, and passes over what it does not know."""

from __future__ import annotations

from accord.check.clients.features import ScriptedFeatures
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.rule import NotObserved, Rule, Violation

CAPABILITIES = Rule(
    "client-opening/capabilities",
    "must",
    "The client uses only what the server has declared.",
    at="basic/lifecycle#operation",
    role="client",
    since="2025-06-18",
    until="2026-07-28",
    cause="Tools, resources or prompts are asked for without a look at the capabilities of the server.",
)

UNKNOWN_THINGS = Rule(
    "client-opening/unknown-things",
    "must",
    "Fields and capabilities that the client does not know change nothing.",
    at=("basic/lifecycle#capability-negotiation", "schema"),
    role="client",
    cause="What the server says is read with a schema that allows no other fields.",
)

BARE_SCENARIO = Scenario(
    "bare",
    "a server that declares nothing",
    offer=ScriptedFeatures(capabilities={}, tools=(), resources=(), prompts=(), templates=()),
)

_NEEDS = {
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/read": "resources",
    "resources/templates/list": "resources",
    "resources/subscribe": "resources",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "logging/setLevel": "logging",
    "completion/complete": "completions",
}


@BARE_SCENARIO.case(CAPABILITIES, "a server that declares nothing")
def check_capabilities(run: ClientRun) -> None:
    if not set(_NEEDS) & run.ordinary_run.methods:
        raise NotObserved("the client does not use what a server may have")
    for request in run.requests(*_NEEDS):
        text = f"{request.method} was sent to a server that does not declare {_NEEDS[request.method]}"
        raise Violation(text, evidence=run.evidence(request.entry))


UNKNOWN_THINGS_SCENARIO = Scenario("unknown-things", "the server says more than the client can know")
_MORE = {"x-unknown": {"a": [1, None]}, "com.example/more": True}


@UNKNOWN_THINGS_SCENARIO.on("initialize", "server/discover", "tools/list", FIRST_REQUEST)
async def answer_unknown_things(ask: IncomingRequest) -> ScriptedAnswer:
    result = await ask.default_result()
    own = result.get("_meta") or {}
    if "capabilities" in result:
        result["capabilities"] = {
            **result["capabilities"],
            "unheard-of": {"deep": {"er": 1}},
            "experimental": {"x/y": {}},
        }
    if "tools" in result:
        result["tools"] = [each | _MORE for each in result["tools"]]
    return result | _MORE | {"_meta": {**own, "com.example/trace": "1"}}


@UNKNOWN_THINGS_SCENARIO.case(UNKNOWN_THINGS, "unknown fields, capabilities and metadata")
def check_unknown_things(run: ClientRun) -> None:
    run.require_ordinary_behavior()
