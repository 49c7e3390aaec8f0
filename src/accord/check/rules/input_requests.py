"""Requests of a server for elicitation, sampling and roots: only those that the client supports, and what the server
does with the response.
"""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.engine.ordinary_traffic import call_tools
from accord.check.engine.rule import CaseVariant, JudgedItems, NotApplicable, NotObserved, rule
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
    case="all tools, for a client without capabilities",
    kind="own",
    needs="tools",
    calls=True,
    capabilities={},
    at=_PLACES,
    cause="Elicitation, sampling or roots are requested without regard to the client capabilities.",
)
async def asking_declared(probe: Probe) -> None:
    """The server sends only requests that the client capabilities allow."""
    await call_tools(probe)


@asking_declared.case("all requests to the client")
def asking_declared_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    for question in input_requests(logs):
        yield
        if question.method in _NEEDS and _NEEDS[question.method] not in question.received.log.client_capabilities:
            raise question.violation(f"the server requested {question.method}, which the client did not declare")


@rule(
    "asking/by-results",
    "must",
    case="all messages from the server",
    at=("basic/patterns/mrtr#overview", "basic/transports/stdio#receiving-messages"),
    since="2026-07-28",
    cause="Sampling, elicitation or roots are requested as in earlier revisions.",
)
def asking_by_results(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server sends no requests: it returns `input_required`."""
    for each in received_messages(logs):
        yield
        if "method" in each.message and "id" in each.message:
            raise each.violation(
                f"the server sent the request {preview_json(each.message['method'])}", symptom="asks-by-request"
            )


@rule(
    "asking/missing-capability",
    "must",
    case="all errors -32021",
    at="basic/index#error-codes",
    since="2026-07-28",
    cause="The error is a tool error, or has another code: the client does not learn what to declare.",
)
def asking_missing_capability(logs: Sequence[MessageLog]) -> JudgedItems:
    """A request that needs an undeclared client capability returns error -32021 with its name."""
    for each in received_messages(logs):
        error = each.message.get("error")
        if isinstance(error, dict) and error.get("code") == MISSING_CLIENT_CAPABILITY:
            yield
            data = error.get("data")
            wanted = data.get("requiredCapabilities") if isinstance(data, dict) else None
            if not isinstance(wanted, dict) or not wanted:
                raise each.violation(
                    f"requiredCapabilities is {preview_json(wanted)}, but must be an object with the capabilities"
                )


@rule(
    "asking/modes",
    "must",
    case="all tools, for a client with forms only",
    kind="own",
    needs="tools",
    calls=True,
    capabilities={"elicitation": {}},
    at="client/elicitation#capabilities",
    since="2025-11-25",
    cause="Only the presence of `elicitation` is checked, not its modes.",
)
async def asking_modes(probe: Probe) -> None:
    """The server uses only the elicitation modes that the client declared."""
    await call_tools(probe)


@asking_modes.case(
    "all tools, for a client with URLs only",
    kind="own",
    needs="tools",
    calls=True,
    capabilities={"elicitation": {"url": {}}},
)
async def asking_modes_urls_only(probe: Probe) -> None:
    await call_tools(probe)


@asking_modes.case("all elicitations")
def asking_modes_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    for question in input_requests(logs):
        modes = question.received.log.client_capabilities.get("elicitation")
        if question.method == "elicitation/create" and isinstance(modes, dict):
            yield
            has_form = "form" in modes or "url" not in modes  # "an empty object is equivalent to form mode only"
            if (question.is_form and not has_form) or (question.is_url and "url" not in modes):
                what = "a URL" if question.is_url else "a form"
                raise question.violation(f"the server requested {what}, but the client declared {preview_json(modes)}")


@rule(
    "asking/declined",
    "should",
    variants=[
        CaseVariant("a user who declines all elicitations", action="decline"),
        CaseVariant("a user who cancels all elicitations", action="cancel"),
    ],
    kind="own",
    needs="tools",
    calls=True,
    at=("client/elicitation#response-actions", "client/sampling#error-handling"),
    since="2025-06-18",
    cause='Only "accept" is handled: handle decline and cancel, and errors of sampling.',
)
async def asking_declined(probe: Probe, action: str) -> None:
    """After a declined or cancelled elicitation, the server answers the original request without an internal error."""
    probe.canned_results["elicitation/create"] = {"action": action}
    for answer in await call_tools(probe):
        if answer.code == -32603 and had_input_requests(answer):
            raise probe.violation(
                f"after the action {action!r}, the server returned an internal error: {preview_json(answer.error)}"
            )


@rule(
    "asking/refused",
    "should",
    case="a client that answers all requests with an error",
    kind="own",
    needs="tools",
    calls=True,
    at=("client/sampling#error-handling", "client/roots#error-handling"),
    until="2026-07-28",
    cause="The error of the client is not handled, so that the call hangs.",
)
async def asking_refused(probe: Probe) -> None:
    """After an error for sampling or roots, the server answers the original request."""
    probe.canned_results.clear()
    probe.canned_results["ping"] = {}
    await call_tools(probe)


@rule(
    "asking/sampling-tools",
    "must",
    case="all tools, for a client with plain sampling",
    kind="own",
    needs="tools",
    calls=True,
    capabilities={"sampling": {}},
    at="client/sampling#capabilities",
    since="2025-11-25",
)
async def asking_sampling_tools(probe: Probe) -> None:
    """A sampling request has tools only if the client declared sampling.tools."""
    await call_tools(probe)


@asking_sampling_tools.case("all sampling requests")
def asking_sampling_tools_reading(logs: Sequence[MessageLog]) -> JudgedItems:
    for question in sampling_requests(logs):
        yield
        given = "tools" in question.params or "toolChoice" in question.params
        if given and not declares(question.received.log.client_capabilities, "sampling.tools"):
            raise question.violation("a sampling request has tools, but the client did not declare sampling.tools")


@rule(
    "asking/include-context",
    "should",
    case="all sampling requests",
    at="client/sampling#capabilities",
    since="2025-11-25",
)
def asking_include_context(logs: Sequence[MessageLog]) -> JudgedItems:
    """A sampling request includes context of servers only if the client declared sampling.context."""
    for question in sampling_requests(logs):
        yield
        wanted = question.params.get("includeContext", "none")
        if wanted != "none" and not declares(question.received.log.client_capabilities, "sampling.context"):
            raise question.violation(
                f"includeContext is {preview_json(wanted)}, but the client did not declare sampling.context"
            )


@rule(
    "asking/bad-forms",
    "should",
    case="an object in each field of a form",
    kind="own",
    needs="tools",
    calls=True,
    at="client/elicitation#security-considerations",
    since="2025-06-18",
    until="2026-07-28",
    cause="The content of an elicitation is not validated: validate it with the requested schema.",
)
async def asking_bad_forms(probe: Probe) -> None:
    """The server validates the values of a form: a call with wrong types does not succeed."""
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
            raise probe.violation(f"{tool.get('name')} succeeded with objects in the fields of its form")
    if not any(question.is_form for question in input_requests([probe.log])):
        raise NotObserved("no callable tool requests a form")


_ROOTS = "roots/list"


async def _require_roots_request(probe: Probe) -> None:
    await probe.fence()  # what a server asks at the beginning has come
    if not any(question.method == _ROOTS for question in input_requests([probe.log])):
        raise NotApplicable("the server does not request the roots on its own")


@rule(
    "asking/roots-again",
    "should",
    case="roots that change after the server requested them",
    kind="own",
    applies=_require_roots_request,
    at=("client/roots#root-list-changes", "schema#rootslistchangednotification"),
    until="2026-07-28",
    cause="The first roots are cached: handle `notifications/roots/list_changed`.",
)
async def asking_roots_again(probe: Probe) -> None:
    """A server that requests the roots after the handshake requests them again after a change."""
    await probe.fence()  # what a server asks at the beginning has come
    since = len(probe.log.entries)
    if not any(question.method == _ROOTS for question in input_requests([probe.log])):
        raise NotApplicable("the server does not request the roots on its own")
    probe.notify("notifications/roots/list_changed")
    if await probe.wait_for_message(lambda message: message.get("method") == _ROOTS) is None:
        raise probe.violation("the roots changed, but the server did not request them again", since=since)
