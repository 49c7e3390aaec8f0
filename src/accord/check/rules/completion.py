"""Completion: values for the arguments of prompts and the variables of resource templates."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from accord.check.engine.rule import JudgedItems, NotObserved, rule
from accord.check.probes.content import get_object, get_objects, preview_json
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests
from accord.check.probes.probe import Probe
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND, DeclarationError
from accord.messages.base import JSONObject
from accord.server.declare.templates import Template

_MOST = 5
"""Number of arguments that are completed."""
_VALUES = 100


@rule(
    "completion/declared",
    "must",
    case="completion/complete, without regard to the capabilities",
    at="server/utilities/completion#capabilities",
    since="2025-03-26",
    cause="The capability is new in 2025-03-26, and was not added to the capabilities: clients do "
    "not send requests without it.",
)
async def completion_declared(probe: Probe) -> None:
    """A server that completes arguments declares the capability `completions`."""
    if probe.has_capability("completions"):
        return
    async for params in _arguments(probe):
        answer = await probe.request("completion/complete", params)
        if get_object(answer.result, "completion").get("values"):
            raise probe.violation(f"the server completed {preview_json(params)}, but does not declare `completions`")


@rule(
    "completion/unsupported",
    "should",
    case="completion/complete without the capability",
    at="server/utilities/completion#error-handling",
    since="2025-03-26",
    cause="The method succeeds although the server has no completions.",
)
async def completion_unsupported(probe: Probe) -> None:
    """A server without completions answers completion/complete with error -32601."""
    if probe.has_capability("completions"):
        raise NotObserved("the server completes arguments")
    answer = await probe.request("completion/complete", _params({"type": "ref/prompt", "name": probe.unknown_name}))
    probe.require_error(answer, METHOD_NOT_FOUND)


@rule(
    "completion/answered",
    "must",
    case="the first arguments of prompts and templates",
    needs="completions",
    at="server/utilities/completion#requesting-completions",
    since="2025-03-26",
    cause="The capability is declared, but no handler answers `completion/complete`.",
)
async def completion_answered(probe: Probe) -> None:
    """A server that declares `completions` completes the arguments that it lists."""
    judged = 0
    async for params in _arguments(probe):
        answer = await probe.request("completion/complete", params)
        judged += 1
        if answer.code == METHOD_NOT_FOUND:
            raise probe.violation(f"{preview_json(params)} returned {preview_json(answer.error)}")
    if not judged:
        raise NotObserved("no prompt or template has an argument")


@rule(
    "completion/most",
    "must",
    case="arguments with an empty value",
    at=("server/utilities/completion#completion-results", "schema#completeresult"),
    cause="The server sends all values: truncate the list, and set `total` and `hasMore`.",
)
async def completion_most(probe: Probe) -> None:
    """A completion has at most 100 values."""
    judged = 0
    async for params in _arguments(probe):
        answer = await probe.request("completion/complete", params)
        values = get_object(answer.result, "completion").get("values")
        if isinstance(values, list):
            judged += 1
            if len(values) > _VALUES:
                raise probe.violation(f"{preview_json(params)} returned {len(values)} values")
    if not judged:
        raise NotObserved("no completion succeeded")


@rule(
    "completion/total",
    "should",
    case="all completions",
    at=("server/utilities/completion#completion-results", "schema#completeresult"),
    cause="`total` is the number of omitted values instead of the number of all values.",
)
def completion_total(logs: Sequence[MessageLog]) -> JudgedItems:
    """`total` is not less than the number of values."""
    for each in answered_requests(logs, "completion/complete"):
        completion = get_object(each.result, "completion")
        total, values = completion.get("total"), completion.get("values")
        if isinstance(values, list) and isinstance(total, int):
            yield
            if total < len(values):
                raise each.violation(f"total is {total}, but there are {len(values)} values")


@rule(
    "completion/unknown-prompt",
    "should",
    case="an unknown prompt",
    needs="completions",
    at="server/utilities/completion#error-handling",
    since="2025-03-26",
    cause="The handler returns no values instead of an error.",
)
async def completion_unknown_prompt(probe: Probe) -> None:
    """A completion for an unknown prompt returns error -32602."""
    answer = await probe.request("completion/complete", _params({"type": "ref/prompt", "name": probe.unknown_name}))
    probe.require_error(answer, INVALID_PARAMS)


@rule(
    "completion/missing-argument",
    "should",
    case="no argument",
    needs="completions",
    at="server/utilities/completion#error-handling",
    since="2025-03-26",
    cause="Params are not validated before use.",
)
async def completion_missing_argument(probe: Probe) -> None:
    """A completion without an argument returns error -32602."""
    answer = await probe.request("completion/complete", {"ref": {"type": "ref/prompt", "name": probe.unknown_name}})
    probe.require_error(answer, INVALID_PARAMS)


@rule(
    "completion/inputs-checked",
    "must",
    case="references and arguments of wrong types",
    at="server/utilities/completion#security",
    cause="Params are used without validation.",
)
async def completion_inputs_checked(probe: Probe) -> None:
    """completion/complete refuses a reference or an argument of the wrong type."""
    good: JSONObject = {"name": "a", "value": ""}
    for params in (
        {},
        {"ref": "a", "argument": good},
        {"ref": {"type": probe.unknown_name}, "argument": good},
        {"ref": {"type": "ref/prompt"}, "argument": good},
        {"ref": {"type": "ref/prompt", "name": 5}, "argument": good},
        {"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "a", "value": 5}},
    ):
        answer = await probe.request("completion/complete", params)
        if answer.error is None:
            raise probe.violation(f"{preview_json(params)} returned {preview_json(answer.result)}")


def _params(ref: JSONObject, name: str = "a") -> JSONObject:
    return {"ref": ref, "argument": {"name": name, "value": ""}}


async def _arguments(probe: Probe) -> AsyncIterator[JSONObject]:
    """Yield params for the first listed arguments of prompts and templates."""
    for prompt in (await probe.prompts())[:_MOST]:
        for argument in get_objects(prompt, "arguments")[:1]:
            yield _params({"type": "ref/prompt", "name": prompt.get("name")}, str(argument.get("name")))
    for template in (await probe.templates())[:_MOST]:
        for variable in _variables(str(template.get("uriTemplate")))[:1]:
            yield _params({"type": "ref/resource", "uri": template.get("uriTemplate")}, variable)


def _variables(template: str) -> Sequence[str]:
    try:
        return Template(template).variables
    except DeclarationError:
        return ()
