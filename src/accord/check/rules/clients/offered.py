"""What a client makes of what a server has: it uses that alone, and passes over what it does not know."""

from __future__ import annotations

from accord.check.clients.ask import Ask
from accord.check.clients.offer import Offer
from accord.check.clients.run import Run
from accord.check.clients.scene import FIRST, Answer, Scene
from accord.check.rule import Broken, NotObserved, Rule

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

UNKNOWN = Rule(
    "client-opening/unknown-things",
    "must",
    "Fields and capabilities that the client does not know change nothing.",
    at=("basic/lifecycle#capability-negotiation", "schema"),
    role="client",
    cause="What the server says is read with a schema that allows no other fields.",
)

BARE = Scene(
    "bare",
    "a server that declares nothing",
    offer=Offer(capabilities={}, tools=(), resources=(), prompts=(), templates=()),
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


@BARE.judges(CAPABILITIES, "a server that declares nothing")
def _(run: Run) -> None:
    if not set(_NEEDS) & run.usual.methods:
        raise NotObserved("the client does not use what a server may have")
    for request in run.requests(*_NEEDS):
        text = f"{request.method} was sent to a server that does not declare {_NEEDS[request.method]}"
        raise Broken(text, evidence=run.evidence(request.said))


FUTURE = Scene("unknown-things", "the server says more than the client can know")
_MORE = {"x-unknown": {"a": [1, None]}, "com.example/more": True}


@FUTURE.on("initialize", "server/discover", "tools/list", FIRST)
async def _(ask: Ask) -> Answer:
    result = await ask.usual()
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


@FUTURE.judges(UNKNOWN, "unknown fields, capabilities and metadata")
def _(run: Run) -> None:
    run.as_usual()
