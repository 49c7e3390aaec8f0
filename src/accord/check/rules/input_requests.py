"""What a server asks: only what its client can answer, in the form that the revision has for it.

What a server makes of the answers to its questions (to 2025-11-25; later ones are rounds).
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.engine.ordinary_traffic import call_tools
from accord.check.engine.rule import JudgedItems, NotApplicable, NotObserved, rule
from accord.check.probes.content import declares, get_object, preview_json
from accord.check.probes.input_requests import had_input_requests, input_requests, sampling_requests
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import received_messages
from accord.check.probes.probe import Probe
from accord.errors import MISSING_CLIENT_CAPABILITY
from accord.messages.base import JSONObject

_NEEDS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
_PLACES = (
    "client/elicitation#capabilities",
    "client/sampling#capabilities",
    "client/roots#capabilities",
)


@rule(
    "asking/declared",
    "must",
    case="a client without capabilities, and every tool",
    kind="own",
    needs="tools",
    calls=True,
    capabilities={},
    at=_PLACES,
    cause="Elicitation, sampling or roots are asked for without a look at the client's capabilities.",
)
async def asking_declared(probe: Probe) -> None:
    """The server asks only for what its client has declared."""
    await call_tools(probe)


@asking_declared.case("all questions")
def asking_declared_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    for question in input_requests(logs):
        yield
        if question.method in _NEEDS and _NEEDS[question.method] not in question.received.log.client_capabilities:
            raise question.violation(f"{question.method} is asked of a client that did not declare it")


@rule(
    "asking/by-results",
    "must",
    case="all that it said",
    at=("basic/patterns/mrtr#overview", "basic/transports/stdio#receiving-messages"),
    since="2026-07-28",
    cause="Sampling, elicitation or roots are asked as in earlier revisions.",
)
def asking_by_results(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server sends no requests: what it wants to know it asks in a result, `input_required`."""
    for each in received_messages(logs):
        yield
        if "method" in each.message and "id" in each.message:
            raise each.violation(f"a request came: {preview_json(each.message['method'])}", symptom="asks-by-request")


@rule(
    "asking/missing-capability",
    "must",
    case="all errors -32021",
    at="basic/index#error-codes",
    since="2026-07-28",
    cause="The lack is told as a tool error or with another code: a client cannot know what to declare.",
)
def asking_missing_capability(logs: Sequence[MessageLog]) -> JudgedItems:
    """What cannot be done without a capability that the client lacks is refused with error -32021, which names it."""
    for each in received_messages(logs):
        error = each.message.get("error")
        if isinstance(error, dict) and error.get("code") == MISSING_CLIENT_CAPABILITY:
            yield
            data = error.get("data")
            wanted = data.get("requiredCapabilities") if isinstance(data, dict) else None
            if not isinstance(wanted, dict) or not wanted:
                raise each.violation(
                    f"requiredCapabilities is {preview_json(wanted)}, and should be an object that names them"
                )


@rule(
    "asking/modes",
    "must",
    case="a client with forms only, and every tool",
    kind="own",
    needs="tools",
    calls=True,
    capabilities={"elicitation": {}},
    at="client/elicitation#capabilities",
    since="2025-11-25",
    cause="Only the presence of elicitation is looked at, not its modes.",
)
async def asking_modes(probe: Probe) -> None:
    """A client that can only fill in forms is not sent to a page, and one that can only visit pages is
    shown no form.
    """
    await call_tools(probe)


@asking_modes.case(
    "a client with pages only, and every tool",
    kind="own",
    needs="tools",
    calls=True,
    capabilities={"elicitation": {"url": {}}},
)
async def asking_modes_client_pages_only_tool(probe: Probe) -> None:
    await call_tools(probe)


@asking_modes.case("all questions to people")
def asking_modes_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    for question in input_requests(logs):
        modes = question.received.log.client_capabilities.get("elicitation")
        if question.method == "elicitation/create" and isinstance(modes, dict):
            yield
            has_form = "form" in modes or "url" not in modes  # "an empty object is equivalent to form mode only"
            if (question.is_form and not has_form) or (question.is_url and "url" not in modes):
                what = "a page" if question.is_url else "a form"
                raise question.violation(f"{what} is asked of a client that declared {preview_json(modes)}")


@rule(
    "asking/declined",
    "should",
    case="a person who declines every question",
    kind="own",
    needs="tools",
    calls=True,
    at=("client/elicitation#response-actions", "client/sampling#error-handling"),
    since="2025-06-18",
    cause="Only the good answer is thought of: handle decline and cancel, and an error to sampling.",
)
async def asking_declined(probe: Probe) -> None:
    """A question that is declined or cancelled ends in an answer to the request, not in silence or an
    internal error.
    """
    await _call_with_action(probe, {"action": "decline"})


@asking_declined.case("a person who cancels every question", kind="own", needs="tools", calls=True)
async def asking_declined_person_cancels_question(probe: Probe) -> None:
    await _call_with_action(probe, {"action": "cancel"})


async def _call_with_action(probe: Probe, action: JSONObject) -> None:
    probe.canned_results["elicitation/create"] = action
    for answer in await call_tools(probe):
        if answer.code == -32603 and had_input_requests(answer):
            raise probe.violation(f"{preview_json(action)} ends in an internal error: {preview_json(answer.error)}")


@rule(
    "asking/refused",
    "should",
    case="a client that answers every question with an error",
    kind="own",
    needs="tools",
    calls=True,
    at=("client/sampling#error-handling", "client/roots#error-handling"),
    until="2026-07-28",
    cause="The error of the client is not handled: the call hangs.",
)
async def asking_refused(probe: Probe) -> None:
    """A model that is refused, and roots that cannot be listed, end in an answer to the request."""
    probe.canned_results.clear()
    probe.canned_results["ping"] = {}
    await call_tools(probe)


@rule(
    "asking/sampling-tools",
    "must",
    case="a client with plain sampling, and every tool",
    kind="own",
    needs="tools",
    calls=True,
    capabilities={"sampling": {}},
    at="client/sampling#capabilities",
    since="2025-11-25",
)
async def asking_sampling_tools(probe: Probe) -> None:
    """A model is given tools only where the client has declared sampling.tools."""
    await call_tools(probe)


@asking_sampling_tools.case("all questions to models")
def asking_sampling_tools_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    for question in sampling_requests(logs):
        yield
        given = "tools" in question.params or "toolChoice" in question.params
        if given and not declares(question.received.log.client_capabilities, "sampling.tools"):
            raise question.violation("tools are given to the model of a client that did not declare sampling.tools")


@rule(
    "asking/include-context",
    "should",
    case="all questions to models",
    at="client/sampling#capabilities",
    since="2025-11-25",
)
def asking_include_context(logs: Sequence[MessageLog]) -> JudgedItems:
    """Context of servers is asked for only where the client has declared sampling.context."""
    for question in sampling_requests(logs):
        yield
        wanted = question.params.get("includeContext", "none")
        if wanted != "none" and not declares(question.received.log.client_capabilities, "sampling.context"):
            raise question.violation(f"includeContext is {preview_json(wanted)}, and sampling.context was not declared")


@rule(
    "asking/bad-forms",
    "should",
    case="every field is an object",
    kind="own",
    needs="tools",
    calls=True,
    at="client/elicitation#security-considerations",
    since="2025-06-18",
    until="2026-07-28",
    cause="The content of an answer is used as it comes: check it against the schema that was asked for.",
)
async def asking_bad_forms(probe: Probe) -> None:
    """What is filled into a form is checked: fields of the wrong type do not make a call succeed."""
    asked: list[JSONObject] = []

    def answer(request: JSONObject) -> JSONObject:
        fields = get_object(request, "params", "requestedSchema", "properties")
        asked.extend([request] if fields else [])
        return {"action": "accept", "content": {name: {"accord-check": []} for name in fields}}

    probe.canned_results["elicitation/create"] = answer
    for tool in await probe.callable_tools():
        asked.clear()
        found = await call_tools(probe, [tool])
        if asked and any(each.error is None and not get_object(each.result).get("isError") for each in found):
            raise probe.violation(f"{tool.get('name')} succeeds with objects in the fields of its form")
    if not any(question.is_form for question in input_requests([probe.log])):
        raise NotObserved("no tool that may be called asks for a form")


_ROOTS = "roots/list"


async def _require_roots_request(probe: Probe) -> None:
    await probe.fence()  # what a server asks at the beginning has come
    if not any(question.method == _ROOTS for question in input_requests([probe.log])):
        raise NotApplicable("it does not ask for the roots by itself")


@rule(
    "asking/roots-again",
    "should",
    case="roots that change once the server has asked for them",
    kind="own",
    applies=_require_roots_request,
    at=("client/roots#root-list-changes", "schema#rootslistchangednotification"),
    until="2026-07-28",
    cause="The roots of the beginning are kept: handle `notifications/roots/list_changed`.",
)
async def asking_roots_again(probe: Probe) -> None:
    """A server that asks for the roots when it is opened asks again when it is told that they have changed."""
    await probe.fence()  # what a server asks at the beginning has come
    since = len(probe.log.entries)
    if not any(question.method == _ROOTS for question in input_requests([probe.log])):
        raise NotApplicable("it does not ask for the roots by itself")
    probe.notify("notifications/roots/list_changed")
    if await probe.wait_for_message(lambda message: message.get("method") == _ROOTS) is None:
        raise probe.violation("the roots have changed, and it does not ask for them again", since=since)
