"""Prompts: the list, prompts/get, and the content of messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check.engine.rule import JudgedItems, NotApplicable, NotObserved, rule
from accord.check.probes import lists
from accord.check.probes.content import (
    all_strings,
    complete_result,
    content_blocks,
    embedded_fault,
    get_object,
    get_objects,
    media_fault,
    preview_json,
    uri_fault,
)
from accord.check.probes.lists import PROMPTS
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import AnsweredRequest, answered_requests
from accord.check.probes.probe import Probe
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from accord.messages.base import JSONObject

_MOST = 10
"""Number of prompts that are fetched."""


@rule(
    "prompts/declared",
    "must",
    case="prompts/list, without regard to the capabilities",
    at="server/prompts#capabilities",
    cause="The capabilities are written by hand: add `prompts`, or clients will not list any.",
)
async def prompts_declared(probe: Probe) -> None:
    """A server that has prompts declares the capability `prompts`."""
    await lists.require_declared(probe, PROMPTS)


@rule(
    "prompts/listed",
    "must",
    case="prompts/list",
    needs="prompts",
    at="server/prompts#listing-prompts",
    cause="The capability is declared, but no handler answers `prompts/list`.",
)
async def prompts_listed(probe: Probe) -> None:
    """A server that declares the capability `prompts` lists its prompts."""
    await lists.require_list(probe, PROMPTS)


@rule(
    "prompts/same-everywhere",
    "must",
    case="two concurrent sessions",
    needs="prompts",
    at="server/prompts#capabilities",
    since="2026-07-28",
    cause="The list is stored for each connection: it may depend on the authorization only.",
)
async def prompts_same_everywhere(probe: Probe) -> None:
    """The list of prompts does not depend on the connection or on earlier requests."""
    await lists.require_same_list(probe, PROMPTS)


@rule(
    "prompts/list-changed",
    "should",
    case="calls that may change the list",
    kind="own",
    needs="prompts.listChanged",
    calls=True,
    at="server/prompts#list-changed-notification",
    cause="The list changes without a notification, or the notification is not sent to subscribers.",
)
async def prompts_list_changed(probe: Probe) -> None:
    """A server that declares `prompts.listChanged` sends a notification when its list of prompts changes."""
    await lists.require_change_notification(probe, PROMPTS)


@rule(
    "prompts/unique-names",
    "should",
    case="all names",
    needs="prompts",
    at="server/prompts#prompt",
    cause="Prompts of several sources are combined without a prefix.",
)
async def prompts_unique_names(probe: Probe) -> None:
    """The names of prompts are unique."""
    name = lists.duplicate_name(await probe.prompts(), PROMPTS)
    if name is not None:
        raise probe.violation(f"two prompts have the name {name!r}")


@rule(
    "prompts/given",
    "must",
    case="prompts without required arguments",
    needs="prompts",
    at="server/prompts#getting-a-prompt",
    cause="The handler needs an argument that is not listed as `required`, or has other names than the list.",
)
async def prompts_given(probe: Probe) -> None:
    """prompts/get of a listed prompt without required arguments succeeds without arguments."""
    free = [prompt for prompt in await probe.prompts() if not _required(prompt)]
    if not free:
        raise NotObserved("every prompt requires an argument")
    for prompt in free[:_MOST]:
        answer = await probe.request("prompts/get", {"name": prompt.get("name")})
        if answer.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
            raise probe.violation(f"{prompt.get('name')!r} returned {preview_json(answer.error)}")


@rule(
    "prompts/unknown-name",
    "should",
    case="an unknown name",
    needs="prompts",
    at="server/prompts#error-handling",
    cause="The exception of the handler becomes another error, or an empty prompt is returned.",
)
async def prompts_unknown_name(probe: Probe) -> None:
    """prompts/get of an unknown prompt returns error -32602."""
    answer = await probe.request("prompts/get", {"name": probe.unknown_name})
    probe.require_error(answer, INVALID_PARAMS)


@rule(
    "prompts/required-arguments",
    "should",
    case="prompts with required arguments, without any",
    needs="prompts",
    at="server/prompts#error-handling",
    cause="An argument is listed as required, but the server does not check that it is present.",
)
async def prompts_required_arguments(probe: Probe) -> None:
    """prompts/get without a required argument returns error -32602."""
    strict = [prompt for prompt in await probe.prompts() if _required(prompt)]
    if not strict:
        raise NotApplicable("no prompt requires an argument")
    for prompt in strict[:_MOST]:
        answer = await probe.request("prompts/get", {"name": prompt.get("name"), "arguments": {}})
        if answer.code != INVALID_PARAMS:
            cause = "" if answer.error is None else "The error of the handler is returned with another code."
            raise probe.violation(
                f"{prompt.get('name')!r} returned {preview_json(answer.error or answer.result)}", cause=cause
            )


@rule(
    "prompts/inputs-checked",
    "must",
    case="names and arguments of wrong types",
    needs="prompts",
    at=("server/prompts#security", "server/prompts#security-considerations"),
    cause="The params are not validated.",
)
async def prompts_inputs_checked(probe: Probe) -> None:
    """prompts/get refuses a name that is not a string, and arguments that are not an object."""
    wrong: list[JSONObject] = [{}, {"name": None}, {"name": 5}, {"name": ["a"]}]
    wrong += [
        {"name": prompt.get("name"), "arguments": value}
        for prompt in (await probe.prompts())[:1]
        for value in ("a", 5, ["a"])
    ]
    for params in wrong:
        answer = await probe.request("prompts/get", params)
        if answer.error is None:
            raise probe.violation(f"{preview_json(params)} returned {preview_json(answer.result)}")


@rule(
    "prompts/media",
    "must",
    case="all images and audio in prompts",
    needs="prompts",
    at=("server/prompts#image-content", "server/prompts#audio-content"),
    cause="Bytes are encoded as text, as a data URL or in another alphabet.",
)
def prompts_media(logs: Sequence[MessageLog]) -> JudgedItems:
    """Images and audio in a prompt are base64, and have a MIME type."""
    for each, block in _blocks(logs, "image", "audio"):
        yield
        if fault := media_fault(block):
            raise each.violation(f"a block of type {block['type']!r} {fault}")


@rule(
    "prompts/embedded",
    "must",
    case="all resources in prompts",
    needs="prompts",
    at="server/prompts#embedded-resources",
    cause="The MIME type is omitted, which is allowed only in resources/read.",
)
def prompts_embedded(logs: Sequence[MessageLog]) -> JudgedItems:
    """A resource in a prompt has a URI, a MIME type, and text or bytes in base64."""
    for each, block in _blocks(logs, "resource"):
        yield
        resource = get_object(block, "resource")
        fault = None if resource.get("uri") in set(all_strings(each.request)) else uri_fault(resource.get("uri"))
        if fault or (fault := embedded_fault(resource)):
            raise each.violation(f"a resource {fault}")


def _required(prompt: JSONObject) -> list[JSONObject]:
    return [each for each in get_objects(prompt, "arguments") if each.get("required") is True]


def _blocks(logs: Sequence[MessageLog], *types: str) -> Iterator[tuple[AnsweredRequest, JSONObject]]:
    for each in answered_requests(logs, "prompts/get"):
        for block in content_blocks(complete_result(each.result)):
            if block.get("type") in types:
                yield each, block
