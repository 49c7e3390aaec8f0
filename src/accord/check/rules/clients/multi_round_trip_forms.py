"""From 2026-07-28 on: a form in a result that asks for input, and how the client fills it in."""

from __future__ import annotations

from typing import Any

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario, ScriptedAnswer
from accord.check.content import get_object
from accord.check.rule import NotApplicable, NotObserved, Rule, Violation
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES

_SINCE = "2026-07-28"
_INPUT_METHODS = ("tools/call", "prompts/get", "resources/read")
_KEY = "the form"
_ACTIONS = ("accept", "decline", "cancel")
_SCHEMA: JSONObject = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "size": {"type": "string", "enum": ["small", "large"]},
    },
    "required": ["count", "size"],
}

NO_MODE = Rule(
    "client-rounds/no-mode",
    "must",
    "An elicitation that names no mode is a form.",
    at="client/elicitation#elicitation-requests",
    role="client",
    since=_SINCE,
    cause="The mode is required when the request is read.",
)

FORM = Rule(
    "client-rounds/form",
    "should",
    "What is filled in fits the schema of the form.",
    at="client/elicitation#form-mode-security",
    role="client",
    since=_SINCE,
    cause="The fields are sent as text, or required ones are left out.",
)

FORM_REQUIRED_SCENARIO = Scenario("form-required", "a result asks for a form to be filled in", since=_SINCE, asks=True)


@FORM_REQUIRED_SCENARIO.on(*_INPUT_METHODS)
async def answer_form_required(ask: IncomingRequest) -> ScriptedAnswer:
    if ask.index or not _has_form(ask.client_capabilities):
        return await ask.default_result()
    form = {"message": "How many, how large?", "requestedSchema": _SCHEMA}
    asks = {_KEY: {"method": "elicitation/create", "params": form}}
    return ask.with_result_fields({"resultType": "input_required", "inputRequests": asks})


@FORM_REQUIRED_SCENARIO.case(NO_MODE, "a form that does not say it is one")
def check_no_mode(run: ClientRun) -> None:
    run.require_intervention()
    answer = _form_response(run)
    if not isinstance(answer, dict) or answer.get("action") not in _ACTIONS:
        raise Violation(f"the answer is {answer!r}", evidence=run.evidence())


@FORM_REQUIRED_SCENARIO.case(FORM, "a form with two fields")
def check_form(run: ClientRun) -> None:
    run.require_intervention()
    answer = _form_response(run)
    content = answer.get("content") if isinstance(answer, dict) else None
    if not isinstance(content, dict):
        raise NotObserved("the form was not filled in")
    count, size = content.get("count"), content.get("size")
    if type(count) is not int or not 1 <= count <= 9 or size not in ("small", "large"):
        raise Violation(f"the fields are {content!r}", evidence=run.evidence())


def _has_form(declared: JSONObject) -> bool:
    modes = declared.get("elicitation")
    return isinstance(modes, dict) and ("form" in modes or "url" not in modes)


def _form_response(run: ClientRun) -> Any:
    """What came for the form. Raises `NotApplicable` where none was asked, `NotObserved` where nothing came."""
    if not any(_has_form(get_object(each.meta, CLIENT_CAPABILITIES)) for each in run.requests(*_INPUT_METHODS)):
        raise NotApplicable("the client does not declare forms")
    retries = [each for each in run.requests(*_INPUT_METHODS) if "inputResponses" in each.params]
    if not retries:
        raise NotObserved("the client does not ask again; it may be that a person is asked")
    responses = retries[0].params["inputResponses"]
    return responses.get(_KEY) if isinstance(responses, dict) else responses
