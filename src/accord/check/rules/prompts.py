"""Prompts: those a server lists, those it gives, and what their messages hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check.engine.rule import NotApplicable, NotObserved, Rule
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
"""Prompts that are tried."""

DECLARED = Rule(
    "prompts/declared",
    "must",
    "A server that has prompts declares the capability `prompts`.",
    at="server/prompts#capabilities",
    cause="The capabilities are written by hand: add `prompts`, or clients will not look for any.",
)


@DECLARED.case("prompts/list, whatever is declared")
async def check_declared(talk: Probe) -> None:
    await lists.require_declared(talk, PROMPTS)


LISTED = Rule(
    "prompts/listed",
    "must",
    "A server that declares the capability `prompts` lists its prompts.",
    at="server/prompts#listing-prompts",
    cause="The capability is declared, and no handler answers `prompts/list`.",
)


@LISTED.case("prompts/list", needs="prompts")
async def check_listed(talk: Probe) -> None:
    await lists.require_list(talk, PROMPTS)


SAME_EVERYWHERE = Rule(
    "prompts/same-everywhere",
    "must",
    "The list of prompts depends neither on the connection nor on earlier requests.",
    at="server/prompts#capabilities",
    since="2026-07-28",
    cause="The list is kept for each connection: let it depend on the authorization, or on nothing.",
)


@SAME_EVERYWHERE.case("two connections at the same time", needs="prompts")
async def check_same_everywhere(talk: Probe) -> None:
    await lists.require_same_list(talk, PROMPTS)


LIST_CHANGED = Rule(
    "prompts/list-changed",
    "should",
    "A server that declares `prompts.listChanged` says so when its list of prompts changes.",
    at="server/prompts#list-changed-notification",
    cause="The list is changed without a notification, or it is sent to nobody who listens.",
)


@LIST_CHANGED.case("calls that may change the list", kind="own", needs="prompts.listChanged", calls=True)
async def check_list_changed(talk: Probe) -> None:
    await lists.require_change_notification(talk, PROMPTS)


UNIQUE_NAMES = Rule(
    "prompts/unique-names",
    "should",
    "No two prompts have the same name.",
    at="server/prompts#prompt",
    cause="Prompts of several sources are put together without a prefix.",
)


@UNIQUE_NAMES.case("all names", needs="prompts")
async def check_unique_names(talk: Probe) -> None:
    name = lists.duplicate_name(await talk.prompts(), PROMPTS)
    if name is not None:
        raise talk.violation(f"two prompts are called {name!r}")


GIVEN = Rule(
    "prompts/given",
    "must",
    "A listed prompt that requires no arguments can be fetched without any.",
    at="server/prompts#getting-a-prompt",
    cause="An argument is needed that the list does not call `required`, or the list and the handler know other names.",
)


@GIVEN.case("prompts without required arguments", needs="prompts")
async def check_given(talk: Probe) -> None:
    free = [prompt for prompt in await talk.prompts() if not _required(prompt)]
    if not free:
        raise NotObserved("every prompt requires an argument")
    for prompt in free[:_MOST]:
        answer = await talk.request("prompts/get", {"name": prompt.get("name")})
        if answer.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
            raise talk.violation(f"{prompt.get('name')!r} gives {preview_json(answer.error)}")


UNKNOWN_NAME = Rule(
    "prompts/unknown-name",
    "should",
    "Asking for a prompt that does not exist gives the error -32602.",
    at="server/prompts#error-handling",
    cause="The exception of the handler is passed on as any other error, or an empty prompt is made up.",
)


@UNKNOWN_NAME.case("a name that nobody has", needs="prompts")
async def check_unknown_name(talk: Probe) -> None:
    answer = await talk.request("prompts/get", {"name": talk.unknown_name})
    if answer.code != INVALID_PARAMS:
        raise talk.violation(f"it is answered with {preview_json(answer.error or answer.result)}")


REQUIRED_ARGUMENTS = Rule(
    "prompts/required-arguments",
    "should",
    "A prompt without an argument that it requires gives the error -32602.",
    at="server/prompts#error-handling",
    cause="The list says that an argument is required, and nothing on the server looks whether it is there.",
)


@REQUIRED_ARGUMENTS.case("prompts that require arguments, without any", needs="prompts")
async def check_required_arguments(talk: Probe) -> None:
    strict = [prompt for prompt in await talk.prompts() if _required(prompt)]
    if not strict:
        raise NotApplicable("no prompt requires an argument")
    for prompt in strict[:_MOST]:
        answer = await talk.request("prompts/get", {"name": prompt.get("name"), "arguments": {}})
        if answer.code != INVALID_PARAMS:
            cause = "" if answer.error is None else "The error of the handler is passed on with another code."
            raise talk.violation(
                f"{prompt.get('name')!r} gives {preview_json(answer.error or answer.result)}", cause=cause
            )


INPUTS_CHECKED = Rule(
    "prompts/inputs-checked",
    "must",
    "prompts/get refuses a name that is not a string, and arguments that are not an object.",
    at=("server/prompts#security", "server/prompts#security-considerations"),
    cause="The params are used as they come.",
)


@INPUTS_CHECKED.case("names and arguments of other types", needs="prompts")
async def check_inputs_checked(talk: Probe) -> None:
    wrong: list[JSONObject] = [{}, {"name": None}, {"name": 5}, {"name": ["a"]}]
    wrong += [
        {"name": prompt.get("name"), "arguments": value}
        for prompt in (await talk.prompts())[:1]
        for value in ("a", 5, ["a"])
    ]
    for params in wrong:
        answer = await talk.request("prompts/get", params)
        if answer.error is None:
            raise talk.violation(f"{preview_json(params)} gives {preview_json(answer.result)}")


MEDIA = Rule(
    "prompts/media",
    "must",
    "Images and sounds in a prompt are base64, and say their MIME type.",
    at=("server/prompts#image-content", "server/prompts#audio-content"),
    cause="Bytes are written as text, as a data URL or in another alphabet.",
)


@MEDIA.reading("all images and sounds in prompts", needs="prompts")
def read_media(records: Sequence[MessageLog]) -> int:
    judged = 0
    for each, block in _blocks(records, "image", "audio"):
        judged += 1
        if fault := media_fault(block):
            raise each.violation(f"a block of type {block['type']!r} {fault}")
    return judged


EMBEDDED = Rule(
    "prompts/embedded",
    "must",
    "A resource in a prompt has its URI, its MIME type, and its text or its bytes in base64.",
    at="server/prompts#embedded-resources",
    cause="The MIME type is left out, as it may be where resources are read.",
)


@EMBEDDED.reading("all resources in prompts", needs="prompts")
def read_embedded(records: Sequence[MessageLog]) -> int:
    judged = 0
    for each, block in _blocks(records, "resource"):
        judged += 1
        resource = get_object(block, "resource")
        fault = None if resource.get("uri") in set(all_strings(each.request)) else uri_fault(resource.get("uri"))
        if fault or (fault := embedded_fault(resource)):
            raise each.violation(f"a resource {fault}")
    return judged


def _required(prompt: JSONObject) -> list[JSONObject]:
    return [each for each in get_objects(prompt, "arguments") if each.get("required") is True]


def _blocks(records: Sequence[MessageLog], *types: str) -> Iterator[tuple[AnsweredRequest, JSONObject]]:
    for each in answered_requests(records, "prompts/get"):
        for block in content_blocks(complete_result(each.result)):
            if block.get("type") in types:
                yield each, block
