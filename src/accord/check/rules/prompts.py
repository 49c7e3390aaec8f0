"""Prompts: those a server lists, those it gives, and what their messages hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check import lists
from accord.check.blocks import blocks, embedded_fault, final, inside, items, media_fault, texts, uri_fault
from accord.check.lists import PROMPTS
from accord.check.reading import Answered, answers
from accord.check.record import Record
from accord.check.rule import NotApplicable, NotObserved, Rule
from accord.check.talk import Talk
from accord.check.values import shown
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
async def _(talk: Talk) -> None:
    await lists.undeclared(talk, PROMPTS)


LISTED = Rule(
    "prompts/listed",
    "must",
    "A server that declares the capability `prompts` lists its prompts.",
    at="server/prompts#listing-prompts",
    cause="The capability is declared, and no handler answers `prompts/list`.",
)


@LISTED.case("prompts/list", needs="prompts")
async def _(talk: Talk) -> None:
    await lists.answered(talk, PROMPTS)


SAME = Rule(
    "prompts/same-everywhere",
    "must",
    "The list of prompts depends neither on the connection nor on earlier requests.",
    at="server/prompts#capabilities",
    since="2026-07-28",
    cause="The list is kept for each connection: let it depend on the authorization, or on nothing.",
)


@SAME.case("two connections at the same time", needs="prompts")
async def _(talk: Talk) -> None:
    await lists.same_everywhere(talk, PROMPTS)


CHANGES = Rule(
    "prompts/list-changed",
    "should",
    "A server that declares `prompts.listChanged` says so when its list of prompts changes.",
    at="server/prompts#list-changed-notification",
    cause="The list is changed without a notification, or it is sent to nobody who listens.",
)


@CHANGES.case("calls that may change the list", kind="own", needs="prompts.listChanged", calls=True)
async def _(talk: Talk) -> None:
    await lists.tells_of_changes(talk, PROMPTS)


UNIQUE = Rule(
    "prompts/unique-names",
    "should",
    "No two prompts have the same name.",
    at="server/prompts#prompt",
    cause="Prompts of several sources are put together without a prefix.",
)


@UNIQUE.case("all names", needs="prompts")
async def _(talk: Talk) -> None:
    name = lists.twice(await talk.prompts(), PROMPTS)
    if name is not None:
        raise talk.broken(f"two prompts are called {name!r}")


GIVEN = Rule(
    "prompts/given",
    "must",
    "A listed prompt that requires no arguments can be fetched without any.",
    at="server/prompts#getting-a-prompt",
    cause="An argument is needed that the list does not call `required`, or the list and the handler know other names.",
)


@GIVEN.case("prompts without required arguments", needs="prompts")
async def _(talk: Talk) -> None:
    free = [prompt for prompt in await talk.prompts() if not _required(prompt)]
    if not free:
        raise NotObserved("every prompt requires an argument")
    for prompt in free[:_MOST]:
        answer = await talk.request("prompts/get", {"name": prompt.get("name")})
        if answer.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
            raise talk.broken(f"{prompt.get('name')!r} gives {shown(answer.error)}")


UNKNOWN = Rule(
    "prompts/unknown-name",
    "should",
    "Asking for a prompt that does not exist gives the error -32602.",
    at="server/prompts#error-handling",
    cause="The exception of the handler is passed on as any other error, or an empty prompt is made up.",
)


@UNKNOWN.case("a name that nobody has", needs="prompts")
async def _(talk: Talk) -> None:
    answer = await talk.request("prompts/get", {"name": talk.nobody})
    if answer.code != INVALID_PARAMS:
        raise talk.broken(f"it is answered with {shown(answer.error or answer.result)}")


REQUIRED = Rule(
    "prompts/required-arguments",
    "should",
    "A prompt without an argument that it requires gives the error -32602.",
    at="server/prompts#error-handling",
    cause="The list says that an argument is required, and nothing on the server looks whether it is there.",
)


@REQUIRED.case("prompts that require arguments, without any", needs="prompts")
async def _(talk: Talk) -> None:
    strict = [prompt for prompt in await talk.prompts() if _required(prompt)]
    if not strict:
        raise NotApplicable("no prompt requires an argument")
    for prompt in strict[:_MOST]:
        answer = await talk.request("prompts/get", {"name": prompt.get("name"), "arguments": {}})
        if answer.code != INVALID_PARAMS:
            cause = "" if answer.error is None else "The error of the handler is passed on with another code."
            raise talk.broken(f"{prompt.get('name')!r} gives {shown(answer.error or answer.result)}", cause=cause)


CHECKED = Rule(
    "prompts/inputs-checked",
    "must",
    "prompts/get refuses a name that is not a string, and arguments that are not an object.",
    at=("server/prompts#security", "server/prompts#security-considerations"),
    cause="The params are used as they come.",
)


@CHECKED.case("names and arguments of other types", needs="prompts")
async def _(talk: Talk) -> None:
    wrong: list[JSONObject] = [{}, {"name": None}, {"name": 5}, {"name": ["a"]}]
    wrong += [
        {"name": prompt.get("name"), "arguments": value}
        for prompt in (await talk.prompts())[:1]
        for value in ("a", 5, ["a"])
    ]
    for params in wrong:
        answer = await talk.request("prompts/get", params)
        if answer.error is None:
            raise talk.broken(f"{shown(params)} gives {shown(answer.result)}")


MEDIA = Rule(
    "prompts/media",
    "must",
    "Images and sounds in a prompt are base64, and say their MIME type.",
    at=("server/prompts#image-content", "server/prompts#audio-content"),
    cause="Bytes are written as text, as a data URL or in another alphabet.",
)


@MEDIA.reading("all images and sounds in prompts", needs="prompts")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for each, block in _blocks(records, "image", "audio"):
        judged += 1
        if fault := media_fault(block):
            raise each.broken(f"a block of type {block['type']!r} {fault}")
    return judged


EMBEDDED = Rule(
    "prompts/embedded",
    "must",
    "A resource in a prompt has its URI, its MIME type, and its text or its bytes in base64.",
    at="server/prompts#embedded-resources",
    cause="The MIME type is left out, as it may be where resources are read.",
)


@EMBEDDED.reading("all resources in prompts", needs="prompts")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for each, block in _blocks(records, "resource"):
        judged += 1
        resource = inside(block, "resource")
        fault = None if resource.get("uri") in set(texts(each.request)) else uri_fault(resource.get("uri"))
        if fault or (fault := embedded_fault(resource)):
            raise each.broken(f"a resource {fault}")
    return judged


def _required(prompt: JSONObject) -> list[JSONObject]:
    return [each for each in items(prompt, "arguments") if each.get("required") is True]


def _blocks(records: Sequence[Record], *types: str) -> Iterator[tuple[Answered, JSONObject]]:
    for each in answers(records, "prompts/get"):
        for block in blocks(final(each.result)):
            if block.get("type") in types:
                yield each, block
