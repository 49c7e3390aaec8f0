"""Completion: proposals for the arguments of prompts and the variables of templates."""

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
"""Arguments that are completed."""
_VALUES = 100


@rule(
    "completion/declared",
    "must",
    case="completion/complete, whatever is declared",
    at="server/utilities/completion#capabilities",
    since="2025-03-26",
    cause="The capability came with 2025-03-26, and is written by hand: clients do not ask without it.",
)
async def completion_declared(probe: Probe) -> None:
    """A server that completes arguments declares the capability `completions`."""
    if probe.has_capability("completions"):
        return
    async for params in _arguments(probe):
        answer = await probe.request("completion/complete", params)
        if get_object(answer.result, "completion").get("values"):
            raise probe.violation(f"it completes {preview_json(params)}, and does not declare `completions`")


@rule(
    "completion/unsupported",
    "should",
    case="completion/complete where it is not declared",
    at="server/utilities/completion#error-handling",
    since="2025-03-26",
    cause="The method is answered although nobody has anything to propose.",
)
async def completion_unsupported(probe: Probe) -> None:
    """A server that does not complete says so with the error -32601."""
    if probe.has_capability("completions"):
        raise NotObserved("it completes")
    answer = await probe.request("completion/complete", _params({"type": "ref/prompt", "name": probe.unknown_name}))
    if answer.code != METHOD_NOT_FOUND:
        raise probe.violation(f"it is answered with {preview_json(answer.error or answer.result)}")


@rule(
    "completion/answered",
    "must",
    case="the first arguments of prompts and templates",
    needs="completions",
    at="server/utilities/completion#requesting-completions",
    since="2025-03-26",
    cause="The capability is declared, and no handler answers `completion/complete`.",
)
async def completion_answered(probe: Probe) -> None:
    """A server that declares `completions` answers for the arguments that it lists."""
    judged = 0
    async for params in _arguments(probe):
        answer = await probe.request("completion/complete", params)
        judged += 1
        if answer.code == METHOD_NOT_FOUND:
            raise probe.violation(f"{preview_json(params)} is answered with {preview_json(answer.error)}")
    if not judged:
        raise NotObserved("no prompt or template has an argument")


@rule(
    "completion/most",
    "must",
    case="arguments of which nothing is typed",
    at=("server/utilities/completion#completion-results", "schema#completeresult"),
    cause="All that there is is sent: cut it, and say how many there are in `total` and `hasMore`.",
)
async def completion_most(probe: Probe) -> None:
    """A completion has 100 values at most."""
    judged = 0
    async for params in _arguments(probe):
        answer = await probe.request("completion/complete", params)
        values = get_object(answer.result, "completion").get("values")
        if isinstance(values, list):
            judged += 1
            if len(values) > _VALUES:
                raise probe.violation(f"{len(values)} values come for {preview_json(params)}")
    if not judged:
        raise NotObserved("nothing was completed")


@rule(
    "completion/total",
    "should",
    case="all completions",
    at=("server/utilities/completion#completion-results", "schema#completeresult"),
    cause="The number of values that were left out stands where that of all should.",
)
def completion_total(logs: Sequence[MessageLog]) -> JudgedItems:
    """`total` counts at least the values that are there."""
    for each in answered_requests(logs, "completion/complete"):
        completion = get_object(each.result, "completion")
        total, values = completion.get("total"), completion.get("values")
        if isinstance(values, list) and isinstance(total, int):
            yield
            if total < len(values):
                raise each.violation(f"total is {total}, and there are {len(values)} values")


@rule(
    "completion/unknown-prompt",
    "should",
    case="a prompt that nobody has",
    needs="completions",
    at="server/utilities/completion#error-handling",
    since="2025-03-26",
    cause="The handler proposes nothing instead of saying that there is no such prompt.",
)
async def completion_unknown_prompt(probe: Probe) -> None:
    """Completing for a prompt that does not exist gives the error -32602."""
    answer = await probe.request("completion/complete", _params({"type": "ref/prompt", "name": probe.unknown_name}))
    if answer.code != INVALID_PARAMS:
        raise probe.violation(f"it is answered with {preview_json(answer.error or answer.result)}")


@rule(
    "completion/missing-argument",
    "should",
    case="no argument",
    needs="completions",
    at="server/utilities/completion#error-handling",
    since="2025-03-26",
    cause="Params are not checked before they are used.",
)
async def completion_missing_argument(probe: Probe) -> None:
    """Completing without an argument gives the error -32602."""
    answer = await probe.request("completion/complete", {"ref": {"type": "ref/prompt", "name": probe.unknown_name}})
    if answer.code != INVALID_PARAMS:
        raise probe.violation(f"it is answered with {preview_json(answer.error or answer.result)}")


@rule(
    "completion/inputs-checked",
    "must",
    case="references and arguments of other types",
    at="server/utilities/completion#security",
    cause="Params are used as they come.",
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
            raise probe.violation(f"{preview_json(params)} gives {preview_json(answer.result)}")


def _params(ref: JSONObject, name: str = "a") -> JSONObject:
    return {"ref": ref, "argument": {"name": name, "value": ""}}


async def _arguments(probe: Probe) -> AsyncIterator[JSONObject]:
    """Params for the first arguments that are listed, of prompts and of templates."""
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
