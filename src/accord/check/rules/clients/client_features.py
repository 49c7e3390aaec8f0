"""Through 2025-11-25: what a client declares that it can be asked for: roots, the model, the person; or does not.

What a client makes of what a server has: it uses that alone, and passes over what it does not know.
"""

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
"""Seconds that a person or a model may take."""


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

ASKS_SCENARIO = Scenario("asks", "the server asks for roots, for the model, and the person", until=_UNTIL, asks=True)


@ASKS_SCENARIO.on(FIRST_REQUEST)
async def answer_asks(request: IncomingRequest) -> ScriptedAnswer:
    await request.send_request("roots/list", seconds=_PERSON)
    await request.send_request("sampling/createMessage", _QUESTION, seconds=_PERSON)
    await request.send_request("elicitation/create", _FORM, seconds=_PERSON)
    return await request.default_result()


@ASKS_SCENARIO.rule(
    "client-answers/roots",
    "must",
    case="a list of roots",
    at="client/roots#data-types",
    until=_UNTIL,
    cause="Paths are sent in place of URIs, or nothing is there that answers.",
)
def client_answers_roots(run: ClientRun) -> None:
    """A client that declares roots answers with a list of them, each a file: URI."""
    result = _result_of(run, "roots/list", "roots")
    roots = result.get("roots")
    if not isinstance(roots, list):
        raise Violation("the result has no list of roots")
    for root in roots:
        if not isinstance(root, dict) or not str(root.get("uri")).startswith("file://"):
            raise Violation(f"{root!r} is no root with a file: URI")


@ASKS_SCENARIO.rule(
    "client-answers/sampling",
    "must",
    case="a question for the model",
    at="client/sampling#creating-messages",
    until=_UNTIL,
    cause="The result has no role, content or model.",
)
def client_answers_sampling(run: ClientRun) -> None:
    """A client that declares sampling answers with a message of the model, or with an error."""
    result = _result_of(run, "sampling/createMessage", "sampling")
    if not isinstance(result.get("role"), str) or not result.get("content") or not isinstance(result.get("model"), str):
        raise Violation("the result has no role, content and model")


@ASKS_SCENARIO.rule(
    "client-answers/elicitation",
    "must",
    case="a form",
    at="client/elicitation#response-actions",
    since=_FORMS,
    until=_UNTIL,
    cause="The action is missing, or is none of accept, decline and cancel.",
)
def client_answers_elicitation(run: ClientRun) -> None:
    """A client that declares elicitation answers with what the person did, and what they filled in only if
    they agreed.
    """
    result = _result_of(run, "elicitation/create", "elicitation")
    if result.get("action") not in ("accept", "decline", "cancel"):
        raise Violation(f"the action is {result.get('action')!r}")
    if result.get("action") == "accept" and not isinstance(result.get("content"), dict):
        raise Violation("the person agreed, and there is no content")


@ASKS_SCENARIO.rule(
    "client-answers/form",
    "should",
    case="a form with four fields",
    at="client/elicitation#security-considerations",
    since=_FORMS,
    until=_UNTIL,
    cause="The fields are sent as text, or required ones are left out.",
)
def client_answers_form(run: ClientRun) -> None:
    """What is filled in fits the schema of the form."""
    content = _result_of(run, "elicitation/create", "elicitation").get("content")
    if not isinstance(content, dict):
        raise NotObserved("the form was not filled in")
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
    case="a form that does not say it is one",
    at="client/elicitation#elicitation-requests",
    since=_PAGES,
    until=_UNTIL,
    cause="The mode is required when the request is read.",
)
def client_answers_no_mode(run: ClientRun) -> None:
    """An elicitation that names no mode is a form."""
    run.require_intervention()
    if not run.declares("elicitation") or (
        run.declares("elicitation", "url") and not run.declares("elicitation", "form")
    ):
        raise NotApplicable("the client does not declare forms")
    for request in run.server_requests("elicitation/create"):
        answer = run.response_to(request["id"])
        if answer is None:
            raise NotObserved("no answer came in time; it may be that a person is asked")
        if error_code(answer) in (INVALID_PARAMS, METHOD_NOT_FOUND):
            raise Violation("a form without a mode was refused", evidence=run.exchange_lines(request))


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
    cause="It is answered as if it were declared, or not at all.",
)
def client_answers_undeclared(run: ClientRun, method: str, capability: str) -> None:
    """A request for what the client did not declare is answered with an error."""
    run.require_intervention()
    if run.declares(capability):
        raise NotApplicable(f"the client declares {capability}")
    for request in run.server_requests(method):
        if "error" not in (run.response_to(request["id"]) or {}):
            text = f"{method} was not answered with an error, although {capability} is not declared"
            raise Violation(text, evidence=run.exchange_lines(request))


def _result_of(run: ClientRun, method: str, capability: str) -> JSONObject:
    """The result for a request for what is declared."""
    run.require_intervention()
    if not run.declares(capability):
        raise NotApplicable(f"the client does not declare {capability}")
    for request in run.server_requests(method):
        answer = run.response_to(request["id"])
        if answer is None:
            raise NotObserved("no answer came in time; it may be that a person is asked")
        if "error" in answer:
            if error_code(answer) == METHOD_NOT_FOUND:
                text = f"{capability} is declared, and {method} is answered with {METHOD_NOT_FOUND}"
                raise Violation(text, evidence=run.exchange_lines(request))
            raise NotObserved("the answer is an error, as it may be")
        result = answer.get("result")
        if isinstance(result, dict):
            return result
        raise Violation("the result is no object")
    raise NotObserved("it did not come to that")


BARE_SCENARIO = Scenario(
    "bare",
    "a server that declares nothing",
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
    case="a server that declares nothing",
    at="basic/lifecycle#operation",
    since="2025-06-18",
    until="2026-07-28",
    cause="Tools, resources or prompts are asked for without a look at the capabilities of the server.",
)
def client_opening_capabilities(run: ClientRun) -> None:
    """The client uses only what the server has declared."""
    if not set(_NEEDS) & run.ordinary_run.methods:
        raise NotObserved("the client does not use what a server may have")
    for request in run.requests(*_NEEDS):
        text = f"{request.method} was sent to a server that does not declare {_NEEDS[request.method]}"
        raise Violation(text, evidence=run.evidence(request.entry))


UNKNOWN_THINGS_SCENARIO = Scenario("unknown-things", "the server says more than the client can know")
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
    cause="What the server says is read with a schema that allows no other fields.",
)
def client_opening_unknown_things(run: ClientRun) -> None:
    """Fields and capabilities that the client does not know change nothing."""
    run.require_ordinary_behavior()
