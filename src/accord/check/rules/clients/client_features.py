"""Capabilities of a client (until 2025-11-25): roots, sampling and elicitation; and the capabilities of a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accord.check.clients.features import ScriptedFeatures
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun, error_code
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import CaseVariant, NotApplicable, NotObserved, Violation
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from accord.messages.base import JSONObject

_UNTIL = "2026-07-28"
_FORMS = "2025-06-18"
_PAGES = "2025-11-25"
_PERSON = 5.0
"""Seconds that a user or a model may take."""


_QUESTION: JSONObject = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "6 times 7?"}}],
    "maxTokens": 10,
}
_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "sure": {"type": "boolean"},
        "size": {"type": "string", "enum": ["small", "large"]},
    },
    "required": ["name", "count", "sure", "size"],
}
_FORM = {"message": "Who, how many, how large?", "requestedSchema": _SCHEMA}

ASKS_SCENARIO = Scenario("asks", "the server requests roots, sampling and elicitation", until=_UNTIL, asks=True)


@ASKS_SCENARIO.on(FIRST_REQUEST)
async def answer_asks(request: IncomingRequest) -> ScriptedAnswer:
    await request.send_request("roots/list", seconds=_PERSON)
    await request.send_request("sampling/createMessage", _QUESTION, seconds=_PERSON)
    await request.send_request("elicitation/create", _FORM, seconds=_PERSON)
    return await request.default_result()


@ASKS_SCENARIO.rule(
    "client-answers/roots",
    "must",
    case="a request for roots",
    at="client/roots#data-types",
    until=_UNTIL,
    cause="Paths are sent instead of URIs, or there is no handler.",
)
def client_answers_roots(run: ClientRun) -> None:
    """A client that declares roots returns a list of file: URIs."""
    result = _result_of(run, "roots/list", "roots")
    roots = result.get("roots")
    if not isinstance(roots, list):
        raise Violation("the result has no list of roots")
    for root in roots:
        if not isinstance(root, dict) or not str(root.get("uri")).startswith("file://"):
            raise Violation(f"the root {root!r} has no file: URI")


@ASKS_SCENARIO.rule(
    "client-answers/sampling",
    "must",
    case="a request for sampling",
    at="client/sampling#creating-messages",
    until=_UNTIL,
    cause="The result has no role, content or model.",
)
def client_answers_sampling(run: ClientRun) -> None:
    """A client that declares sampling returns a message of the model, or an error."""
    result = _result_of(run, "sampling/createMessage", "sampling")
    if not isinstance(result.get("role"), str) or not result.get("content") or not isinstance(result.get("model"), str):
        raise Violation("the result has no role, content and model")


@ASKS_SCENARIO.rule(
    "client-answers/elicitation",
    "must",
    case="a request for a form",
    at="client/elicitation#response-actions",
    since=_FORMS,
    until=_UNTIL,
    cause="The action is missing, or is not accept, decline or cancel.",
)
def client_answers_elicitation(run: ClientRun) -> None:
    """A client that declares elicitation returns the action of the user, with content only for accept."""
    result = _result_of(run, "elicitation/create", "elicitation")
    if result.get("action") not in ("accept", "decline", "cancel"):
        raise Violation(f"the action is {result.get('action')!r}")
    if result.get("action") == "accept" and not isinstance(result.get("content"), dict):
        raise Violation("the action is accept, but there is no content")


@ASKS_SCENARIO.rule(
    "client-answers/form",
    "should",
    case="a form with four fields",
    at="client/elicitation#security-considerations",
    since=_FORMS,
    until=_UNTIL,
    cause="The values are strings, or required fields are missing.",
)
def client_answers_form(run: ClientRun) -> None:
    """The content of an elicitation matches the requested schema."""
    content = _result_of(run, "elicitation/create", "elicitation").get("content")
    if not isinstance(content, dict):
        raise NotObserved("the user did not fill in the form")
    for name, fits in _FIELDS.items():
        if not fits(content.get(name)):
            raise Violation(f"{name} is {content.get(name)!r}")


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: isinstance(value, str) and bool(value),
    "count": lambda value: type(value) is int and 1 <= value <= 9,
    "sure": lambda value: isinstance(value, bool),
    "size": lambda value: value in ("small", "large"),
}


@ASKS_SCENARIO.rule(
    "client-answers/no-mode",
    "must",
    case="a form without a mode",
    at="client/elicitation#elicitation-requests",
    since=_PAGES,
    until=_UNTIL,
    cause="The mode is required when the request is decoded.",
)
def client_answers_no_mode(run: ClientRun) -> None:
    """An elicitation without a mode is a form."""
    run.require_intervention()
    if not run.declares("elicitation") or (
        run.declares("elicitation", "url") and not run.declares("elicitation", "form")
    ):
        raise NotApplicable("the client does not declare forms")
    for request in run.server_requests("elicitation/create"):
        answer = run.response_to(request["id"])
        if answer is None:
            raise NotObserved("no response in time; the client may wait for a user")
        if error_code(answer) in (INVALID_PARAMS, METHOD_NOT_FOUND):
            raise Violation("the client refused a form without a mode", evidence=run.exchange_lines(request))


@ASKS_SCENARIO.rule(
    "client-answers/undeclared",
    "must",
    variants=[
        CaseVariant("roots/list without roots", method="roots/list", capability="roots"),
        CaseVariant("sampling/createMessage without sampling", method="sampling/createMessage", capability="sampling"),
        CaseVariant(
            "elicitation/create without elicitation",
            method="elicitation/create",
            capability="elicitation",
            since=_FORMS,
        ),
    ],
    at=("basic/lifecycle#operation", "client/roots#error-handling"),
    until=_UNTIL,
    cause="The request is handled without the capability, or gets no response.",
)
def client_answers_undeclared(run: ClientRun, method: str, capability: str) -> None:
    """A request for an undeclared capability returns an error."""
    run.require_intervention()
    if run.declares(capability):
        raise NotApplicable(f"the client declares {capability}")
    for request in run.server_requests(method):
        if "error" not in (run.response_to(request["id"]) or {}):
            text = f"{method} returned no error, but the client does not declare {capability}"
            raise Violation(text, evidence=run.exchange_lines(request))


def _result_of(run: ClientRun, method: str, capability: str) -> JSONObject:
    """Return the result of a request for a declared capability."""
    run.require_intervention()
    if not run.declares(capability):
        raise NotApplicable(f"the client does not declare {capability}")
    for request in run.server_requests(method):
        answer = run.response_to(request["id"])
        if answer is None:
            raise NotObserved("no response in time; the client may wait for a user")
        if "error" in answer:
            if error_code(answer) == METHOD_NOT_FOUND:
                text = f"the client declares {capability}, but {method} returned error {METHOD_NOT_FOUND}"
                raise Violation(text, evidence=run.exchange_lines(request))
            raise NotObserved("the client returned an error, which is allowed")
        result = answer.get("result")
        if isinstance(result, dict):
            return result
        raise Violation("the result is not an object")
    raise NotObserved("the server did not send the request")


BARE_SCENARIO = Scenario(
    "bare",
    "a server without capabilities",
    features=ScriptedFeatures(capabilities={}, tools=(), resources=(), prompts=(), templates=()),
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


@BARE_SCENARIO.rule(
    "client-opening/capabilities",
    "must",
    case="a server without capabilities",
    at="basic/lifecycle#operation",
    since="2025-06-18",
    until="2026-07-28",
    cause="Tools, resources or prompts are listed without regard to the server capabilities.",
)
def client_opening_capabilities(run: ClientRun) -> None:
    """A client uses only the capabilities that the server declares."""
    if not set(_NEEDS) & run.ordinary_run.methods:
        raise NotObserved("the client does not use the capabilities of servers")
    for request in run.requests(*_NEEDS):
        text = f"the client sent {request.method} to a server that does not declare {_NEEDS[request.method]}"
        raise Violation(text, evidence=run.evidence(request.entry))


UNKNOWN_THINGS_SCENARIO = Scenario("unknown-things", "a server with unknown fields and capabilities")
_MORE = {"x-unknown": {"a": [1, None]}, "com.example/more": True}


@UNKNOWN_THINGS_SCENARIO.on("initialize", "server/discover", "tools/list", FIRST_REQUEST)
async def answer_unknown_things(request: IncomingRequest) -> ScriptedAnswer:
    result = await request.default_result()
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


@UNKNOWN_THINGS_SCENARIO.rule(
    "client-opening/unknown-things",
    "must",
    case="unknown fields, capabilities and metadata",
    at=("basic/lifecycle#capability-negotiation", "schema"),
    cause="The messages of the server are decoded with closed types.",
)
def client_opening_unknown_things(run: ClientRun) -> None:
    """A client ignores unknown fields and capabilities."""
    run.require_ordinary_behavior()
