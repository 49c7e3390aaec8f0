"""URL elicitation and tools in sampling; and forms in results that require input (2026-07-28)."""

from __future__ import annotations

from typing import Any

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun, error_code
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer
from accord.check.engine.rule import NotApplicable, NotObserved, Violation
from accord.check.probes.content import get_object
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject
from accord.messages.meta import CLIENT_CAPABILITIES

_PAGES = "2025-11-25"
_UNTIL = "2026-07-28"
_PERSON = 5.0
"""Seconds that a user or a model may take."""
_INPUT_METHODS = ("tools/call", "prompts/get", "resources/read")
_QUESTION: JSONObject = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "6 times 7?"}}],
    "maxTokens": 10,
}


_TOOL = {"name": "add", "inputSchema": {"type": "object"}}
_CHOICE = {"mode": "auto"}
_USE = {"type": "tool_use", "id": "use-1", "name": "add", "input": {}}

ASKS_MORE_SCENARIO = Scenario(
    "asks-more",
    "the server requests a URL elicitation, and sampling with tools",
    since=_PAGES,
    until=_UNTIL,
    asks=True,
)


@ASKS_MORE_SCENARIO.on(FIRST_REQUEST)
async def answer_asks_more(request: IncomingRequest) -> ScriptedAnswer:
    page = {"mode": "url", "message": "Sign in.", "elicitationId": "page-1", "url": request.trap_url}
    await request.send_request("elicitation/create", page, id="page", seconds=_PERSON)
    await request.send_request("sampling/createMessage", {**_QUESTION, "tools": [_TOOL]}, id="tools", seconds=_PERSON)
    await request.send_request(
        "sampling/createMessage", {**_QUESTION, "toolChoice": _CHOICE}, id="choice", seconds=_PERSON
    )
    used = [*_QUESTION["messages"], {"role": "assistant", "content": _USE}, *_QUESTION["messages"]]
    await request.send_request("sampling/createMessage", {**_QUESTION, "messages": used}, id="missing", seconds=_PERSON)
    return await request.default_result()


@ASKS_MORE_SCENARIO.rule(
    "client-answers/undeclared-mode",
    "must",
    case="a URL elicitation for a client with forms only",
    at="client/elicitation#error-handling",
    since=_PAGES,
    until=_UNTIL,
    cause="The mode is not checked.",
)
def client_answers_undeclared_mode(run: ClientRun) -> None:
    """A client with forms only refuses a URL elicitation with error -32602."""
    run.require_intervention()
    if not run.declares("elicitation") or run.declares("elicitation", "url"):
        raise NotApplicable("the client declares URL elicitation, or no elicitation")
    if error_code(run.response_to("page")) != INVALID_PARAMS:
        raise Violation(f"the error has the code {error_code(run.response_to('page'))}")


@ASKS_MORE_SCENARIO.rule(
    "client-answers/no-prefetch",
    "must",
    case="a URL elicitation",
    at="client/elicitation#safe-url-handling",
    since=_PAGES,
    until=_UNTIL,
    cause="All links are fetched for a preview.",
)
def client_answers_no_prefetch(run: ClientRun) -> None:
    """A client does not fetch the URL of an elicitation before the user accepts."""
    run.require_intervention()
    answered = [each.entry.at for each in run.responses() if each.body.get("id") == "page"]
    for stray in run.stray_requests:
        if not answered or stray.at < answered[0]:
            raise Violation("the client fetched the URL", evidence=[stray.line()])


@ASKS_MORE_SCENARIO.rule(
    "client-answers/sampling-tools",
    "must",
    case="sampling with tools and toolChoice, without the capability",
    at="client/sampling#tools-in-sampling",
    since=_PAGES,
    until=_UNTIL,
    cause="Unknown fields are ignored.",
)
def client_answers_sampling_tools(run: ClientRun) -> None:
    """A client without sampling.tools returns an error for sampling with tools."""
    run.require_intervention()
    if not run.declares("sampling") or run.declares("sampling", "tools"):
        raise NotApplicable("the client declares sampling.tools, or no sampling")
    for id, what in (("tools", "tools for the model"), ("choice", "a choice of tools for the model")):
        if "error" not in (run.response_to(id) or {}):
            raise Violation(f"{what}: the client returned no error")


@ASKS_MORE_SCENARIO.rule(
    "client-answers/sampling-content",
    "should",
    case="a tool use without its result",
    at="client/sampling#error-handling",
    since=_PAGES,
    until=_UNTIL,
    cause="The messages are passed to the model without validation.",
)
def client_answers_sampling_content(run: ClientRun) -> None:
    """A sampling request with a tool use and no tool result returns error -32602."""
    run.require_intervention()
    if not run.declares("sampling", "tools"):
        raise NotApplicable("the client does not declare sampling.tools")
    if error_code(run.response_to("missing")) != INVALID_PARAMS:
        raise Violation(f"the error has the code {error_code(run.response_to('missing'))}")


PAGE_REQUIRED_SCENARIO = Scenario("page-required", "a result requires a URL elicitation", since=_UNTIL)


@PAGE_REQUIRED_SCENARIO.on(*_INPUT_METHODS)
async def answer_page_required(request: IncomingRequest) -> ScriptedAnswer:
    elicitation = request.client_capabilities.get("elicitation")
    if request.index or not isinstance(elicitation, dict) or "url" not in elicitation:
        return await request.default_result()
    page = {"mode": "url", "message": "Sign in.", "url": request.trap_url}
    asks = {"page": {"method": "elicitation/create", "params": page}}
    return request.with_result_fields({"resultType": "input_required", "inputRequests": asks})


@PAGE_REQUIRED_SCENARIO.rule(
    "client-rounds/no-prefetch",
    "must",
    case="a URL elicitation",
    at="client/elicitation#safe-url-handling",
    since=_UNTIL,
    cause="All links are fetched for a preview.",
)
def client_rounds_no_prefetch(run: ClientRun) -> None:
    """A client does not fetch the URL of an elicitation before the user accepts."""
    run.require_intervention()
    answered = [each.entry.at for each in run.requests(*_INPUT_METHODS) if "inputResponses" in each.params]
    for stray in run.stray_requests:
        if not answered or stray.at < answered[0]:
            raise Violation("the client fetched the URL", evidence=[stray.line()])
    if not any("url" in (each.meta.get(CLIENT_CAPABILITIES) or {}).get("elicitation", {}) for each in run.requests()):
        raise NotApplicable("the client does not declare URL elicitation")


_SINCE = "2026-07-28"
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


FORM_REQUIRED_SCENARIO = Scenario("form-required", "a result requires a form", since=_SINCE, asks=True)


@FORM_REQUIRED_SCENARIO.on(*_INPUT_METHODS)
async def answer_form_required(request: IncomingRequest) -> ScriptedAnswer:
    if request.index or not _has_form(request.client_capabilities):
        return await request.default_result()
    form = {"message": "How many, how large?", "requestedSchema": _SCHEMA}
    asks = {_KEY: {"method": "elicitation/create", "params": form}}
    return request.with_result_fields({"resultType": "input_required", "inputRequests": asks})


@FORM_REQUIRED_SCENARIO.rule(
    "client-rounds/no-mode",
    "must",
    case="a form without a mode",
    at="client/elicitation#elicitation-requests",
    since=_SINCE,
    cause="The mode is required when the request is decoded.",
)
def client_rounds_no_mode(run: ClientRun) -> None:
    """An elicitation without a mode is a form."""
    run.require_intervention()
    answer = _form_response(run)
    if not isinstance(answer, dict) or answer.get("action") not in _ACTIONS:
        raise Violation(f"the response is {answer!r}", evidence=run.evidence())


@FORM_REQUIRED_SCENARIO.rule(
    "client-rounds/form",
    "should",
    case="a form with two fields",
    at="client/elicitation#form-mode-security",
    since=_SINCE,
    cause="The values are strings, or required fields are missing.",
)
def client_rounds_form(run: ClientRun) -> None:
    """The content of an elicitation matches the requested schema."""
    run.require_intervention()
    answer = _form_response(run)
    content = answer.get("content") if isinstance(answer, dict) else None
    if not isinstance(content, dict):
        raise NotObserved("the user did not fill in the form")
    count, size = content.get("count"), content.get("size")
    if type(count) is not int or not 1 <= count <= 9 or size not in ("small", "large"):
        raise Violation(f"the content is {content!r}", evidence=run.evidence())


def _has_form(declared: JSONObject) -> bool:
    modes = declared.get("elicitation")
    return isinstance(modes, dict) and ("form" in modes or "url" not in modes)


def _form_response(run: ClientRun) -> Any:
    """Return the response to the form. Raises `NotApplicable` if it was not requested, `NotObserved` without a
    response.
    """
    if not any(_has_form(get_object(each.meta, CLIENT_CAPABILITIES)) for each in run.requests(*_INPUT_METHODS)):
        raise NotApplicable("the client does not declare forms")
    retries = [each for each in run.requests(*_INPUT_METHODS) if "inputResponses" in each.params]
    if not retries:
        raise NotObserved("the client did not repeat the request; it may wait for a user")
    responses = retries[0].params["inputResponses"]
    return responses.get(_KEY) if isinstance(responses, dict) else responses
