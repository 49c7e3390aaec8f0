"""Calls of tools: of those there are not, with arguments that do not fit, and of those that promise to add only."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check import lists
from accord.check.blocks import inside
from accord.check.fitting import fits, listed, unfit
from accord.check.reading import answers
from accord.check.record import Record
from accord.check.rule import LINES, NotApplicable, NotObserved, Rule
from accord.check.talk import Talk
from accord.check.values import shown
from accord.check.waiting import Answer
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject

_MOST = 20
"""Tools that are tried."""

UNKNOWN = Rule(
    "tools/unknown-name",
    "must",
    "A call of a tool that does not exist does not succeed.",
    at="server/tools#error-handling",
    cause="The handler answers whatever name it is given.",
)


@UNKNOWN.case("a name that nobody has", needs="tools")
async def _(talk: Talk) -> None:
    answer = await talk.request("tools/call", {"name": talk.nobody, "arguments": {}})
    _refused(talk, answer, "a tool that does not exist")


UNKNOWN_CODE = Rule(
    "tools/unknown-name-code",
    "should",
    "A call of a tool that does not exist is answered with the JSON-RPC error -32602, not with the result of a tool.",
    at=("server/tools#error-handling", "schema#calltoolresult"),
    cause="The missing tool is reported like a failure inside a tool: errors in finding it belong to the protocol.",
)


@UNKNOWN_CODE.case("a name that nobody has", needs="tools")
async def _(talk: Talk) -> None:
    answer = await talk.request("tools/call", {"name": talk.nobody, "arguments": {}})
    if answer.code != INVALID_PARAMS:
        symptom = "" if answer.error or _failed(answer) else UNKNOWN.id
        raise talk.broken(f"it is answered with {shown(answer.error or answer.result)}", symptom=symptom)


CASE = Rule(
    "tools/case",
    "should",
    "Names of tools differ when the case of a letter does.",
    at="server/tools#tool-names",
    since="2025-11-25",
    cause="Names are folded to one case before they are looked up.",
)


@CASE.case("the name of a tool with the case of its letters turned", needs="tools", calls=True)
async def _(talk: Talk) -> None:
    known = {str(tool.get("name")) for tool in await talk.tools()}
    turned = [tool for tool in await talk.callable() if str(tool.get("name")).swapcase() not in known]
    if not turned:
        raise NotApplicable("no name has a letter")
    name = str(turned[0].get("name")).swapcase()
    answer = await lists.called(talk, {**turned[0], "name": name})
    if answer is not None:
        _refused(talk, answer, f"{name!r}, which is not listed,")


MALFORMED = Rule(
    "tools/malformed-call",
    "must",
    "A call without a name, or with one that is no text, does not succeed.",
    at="server/tools#security-considerations",
    cause="The params are used as they come.",
)


@MALFORMED.case("no name, and names of other types", needs="tools")
async def _(talk: Talk) -> None:
    wrong: tuple[JSONObject, ...] = ({}, {"name": None}, {"name": 5}, {"name": ["a"]}, {"name": {}})
    for params in wrong:
        _refused(talk, await talk.request("tools/call", params), f"a call with {shown(params)}")


ARGUMENTS = Rule(
    "tools/arguments-checked",
    "must",
    "Arguments that do not fit the schema of a tool are refused.",
    at=("server/tools#security-considerations", "server/tools#error-handling"),
    cause="The schema is shown to clients, and nothing on the server looks at it.",
)


@ARGUMENTS.case("required arguments left out, and arguments of other types", needs="tools", calls=True)
async def _(talk: Talk) -> None:
    judged = 0
    for tool in (await talk.callable())[:_MOST]:
        for arguments in unfit(inside(tool, "inputSchema")):
            answer = await lists.called(talk, tool, arguments)
            if answer is not None and not _asks(answer):
                _refused(talk, answer, f"{tool.get('name')!r} with {shown(arguments)}, which its schema forbids,")
                judged += 1
    if not judged:
        raise NotObserved("no tool that may be called has a schema that forbids anything")


FOR_MODELS = Rule(
    "tools/argument-errors",
    "should",
    "That arguments do not fit is told in the result of the tool, with `isError`, so that the model can mend them.",
    at="server/tools#error-handling",
    since="2025-11-25",
    cause="Arguments are checked before the tool is found: a JSON-RPC error does not reach the model.",
)


@FOR_MODELS.reading("all calls with arguments that their schema forbids", needs="tools")
def _(records: Sequence[Record]) -> int:
    judged = 0
    known = listed(records)
    for each in answers(records, "tools/call"):
        params = inside(each.request, "params")
        tool = known.get(str(params.get("name")))
        arguments = params.get("arguments", {})
        if tool and isinstance(arguments, dict) and fits(inside(tool, "inputSchema"), arguments) is False:
            judged += 1
            if inside(each.heard.message, "error").get("code") == INVALID_PARAMS:
                raise each.broken("arguments that do not fit are answered with a JSON-RPC error")
    return judged


ADDITIVE = Rule(
    "tools/additive",
    "should",
    "A tool with `destructiveHint: false` takes nothing out of the lists.",
    at=("server/tools#tool", "schema#toolannotations"),
    since="2025-03-26",
    over=LINES,  # over HTTP others may change the lists meanwhile
    cause="The hint was copied from another tool: hosts run such tools with less care.",
)


@ADDITIVE.case("a call of each tool that says so", kind="own", needs="tools", calls=True)
async def _(talk: Talk) -> None:
    gentle = [tool for tool in await talk.callable() if _only_adds(inside(tool, "annotations"))]
    if not gentle:
        raise NotApplicable("no tool that may be called says so")
    for tool in gentle[:_MOST]:
        before = await _all_names(talk)
        await lists.called(talk, tool)
        if gone := before - await _all_names(talk):
            raise talk.broken(f"{shown(tool.get('name'))} says that it only adds, and {min(gone)} is listed no more")


def _only_adds(hints: JSONObject) -> bool:
    """Whether the annotations of a tool say that it writes, and is not destructive."""
    return hints.get("destructiveHint") is False and hints.get("readOnlyHint") is not True


async def _all_names(talk: Talk) -> set[str]:
    """Return the names of everything that is listed now: `tools 'add'`."""
    return {
        f"{listing.key} {name!r}"
        for listing in lists.LISTINGS
        if talk.has(listing.capability)
        for name in await lists.names(talk, listing)
    }


def _refused(talk: Talk, answer: Answer, what: str) -> None:
    """Raise `Broken` for an answer that reports success."""
    if answer.error is None and not _failed(answer):
        raise talk.broken(f"{what} is answered with {shown(answer.result)}")


def _failed(answer: Answer) -> bool:
    """Whether the result has `isError`."""
    return isinstance(answer.result, dict) and answer.result.get("isError") is True


def _asks(answer: Answer) -> bool:
    """Whether the server asks for more before it does anything (2026-07-28)."""
    return isinstance(answer.result, dict) and answer.result.get("resultType") == "input_required"
