"""Calls of tools: of those there are not, with arguments that do not fit, and of those that promise to add only.

Results of tools, read from all calls: what is structured, what is an image or a sound, what is a resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from accord.check.engine.rule import LINE_TRANSPORTS, JudgedItems, NotApplicable, NotObserved, rule
from accord.check.probes import lists
from accord.check.probes.content import (
    all_strings,
    complete_result,
    content_blocks,
    declares,
    get_object,
    media_fault,
    preview_json,
)
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import AnsweredRequest, answered_requests
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.check.probes.schemas import invalid_arguments, listed_tools, matches_schema, schema_mismatch
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject

_MOST = 20
"""Tools that are tried."""


@rule(
    "tools/unknown-name",
    "must",
    case="a name that nobody has",
    needs="tools",
    at="server/tools#error-handling",
    cause="The handler answers whatever name it is given.",
)
async def tools_unknown_name(probe: Probe) -> None:
    """A call of a tool that does not exist does not succeed."""
    answer = await probe.request("tools/call", {"name": probe.unknown_name, "arguments": {}})
    _require_refused(probe, answer, "a tool that does not exist")


@rule(
    "tools/unknown-name-code",
    "should",
    case="a name that nobody has",
    needs="tools",
    at=("server/tools#error-handling", "schema#calltoolresult"),
    cause="The missing tool is reported like a failure inside a tool: errors in finding it belong to the protocol.",
)
async def tools_unknown_name_code(probe: Probe) -> None:
    """A call of a tool that does not exist is answered with the JSON-RPC error -32602, not with the result
    of a tool.
    """
    answer = await probe.request("tools/call", {"name": probe.unknown_name, "arguments": {}})
    if answer.code != INVALID_PARAMS:
        symptom = "" if answer.error or _failed(answer) else tools_unknown_name.id
        raise probe.violation(f"it is answered with {preview_json(answer.error or answer.result)}", symptom=symptom)


@rule(
    "tools/case",
    "should",
    case="the name of a tool with the case of its letters turned",
    needs="tools",
    calls=True,
    at="server/tools#tool-names",
    since="2025-11-25",
    cause="Names are folded to one case before they are looked up.",
)
async def tools_case(probe: Probe) -> None:
    """Names of tools differ when the case of a letter does."""
    known = {str(tool.get("name")) for tool in await probe.tools()}
    turned = [tool for tool in await probe.callable_tools() if str(tool.get("name")).swapcase() not in known]
    if not turned:
        raise NotApplicable("no name has a letter")
    name = str(turned[0].get("name")).swapcase()
    answer = await lists.call_tool(probe, {**turned[0], "name": name})
    if answer is not None:
        _require_refused(probe, answer, f"{name!r}, which is not listed,")


@rule(
    "tools/malformed-call",
    "must",
    case="no name, and names of other types",
    needs="tools",
    at="server/tools#security-considerations",
    cause="The params are used as they come.",
)
async def tools_malformed_call(probe: Probe) -> None:
    """A call without a name, or with one that is no text, does not succeed."""
    wrong: tuple[JSONObject, ...] = ({}, {"name": None}, {"name": 5}, {"name": ["a"]}, {"name": {}})
    for params in wrong:
        _require_refused(probe, await probe.request("tools/call", params), f"a call with {preview_json(params)}")


@rule(
    "tools/arguments-checked",
    "must",
    case="required arguments left out, and arguments of other types",
    needs="tools",
    calls=True,
    at=("server/tools#security-considerations", "server/tools#error-handling"),
    cause="The schema is shown to clients, and nothing on the server looks at it.",
)
async def tools_arguments_checked(probe: Probe) -> None:
    """Arguments that do not fit the schema of a tool are refused."""
    judged = 0
    for tool in (await probe.callable_tools())[:_MOST]:
        for arguments in invalid_arguments(get_object(tool, "inputSchema")):
            answer = await lists.call_tool(probe, tool, arguments)
            if answer is not None and not _requires_input(answer):
                _require_refused(
                    probe, answer, f"{tool.get('name')!r} with {preview_json(arguments)}, which its schema forbids,"
                )
                judged += 1
    if not judged:
        raise NotObserved("no tool that may be called has a schema that forbids anything")


@rule(
    "tools/argument-errors",
    "should",
    case="all calls with arguments that their schema forbids",
    needs="tools",
    at="server/tools#error-handling",
    since="2025-11-25",
    cause="Arguments are checked before the tool is found: a JSON-RPC error does not reach the model.",
)
def tools_argument_errors(logs: Sequence[MessageLog]) -> JudgedItems:
    """That arguments do not fit is told in the result of the tool, with `isError`, so that the model can mend them."""
    known = listed_tools(logs)
    for each in answered_requests(logs, "tools/call"):
        params = get_object(each.request, "params")
        tool = known.get(str(params.get("name")))
        arguments = params.get("arguments", {})
        if tool and isinstance(arguments, dict) and matches_schema(get_object(tool, "inputSchema"), arguments) is False:
            yield
            if get_object(each.received.message, "error").get("code") == INVALID_PARAMS:
                raise each.violation("arguments that do not fit are answered with a JSON-RPC error")


@rule(
    "tools/additive",
    "should",
    case="a call of each tool that says so",
    kind="own",
    needs="tools",
    calls=True,
    at=("server/tools#tool", "schema#toolannotations"),
    since="2025-03-26",
    over=LINE_TRANSPORTS,
    cause="The hint was copied from another tool: hosts run such tools with less care.",
)
async def tools_additive(probe: Probe) -> None:
    """A tool with `destructiveHint: false` takes nothing out of the lists."""
    gentle = [tool for tool in await probe.callable_tools() if _only_adds(get_object(tool, "annotations"))]
    if not gentle:
        raise NotApplicable("no tool that may be called says so")
    for tool in gentle[:_MOST]:
        before = await _all_names(probe)
        await lists.call_tool(probe, tool)
        if gone := before - await _all_names(probe):
            raise probe.violation(
                f"{preview_json(tool.get('name'))} says that it only adds, and {min(gone)} is listed no more"
            )


def _only_adds(hints: JSONObject) -> bool:
    """Whether the annotations of a tool say that it writes, and is not destructive."""
    return hints.get("destructiveHint") is False and hints.get("readOnlyHint") is not True


async def _all_names(probe: Probe) -> set[str]:
    """Return the names of everything that is listed now: `tools 'add'`."""
    return {
        f"{listing.key} {name!r}"
        for listing in lists.LIST_KINDS
        if probe.has_capability(listing.capability)
        for name in await lists.list_names(probe, listing)
    }


def _require_refused(probe: Probe, answer: Answer, what: str) -> None:
    """Raise `Violation` for an answer that reports success."""
    if answer.error is None and not _failed(answer):
        raise probe.violation(f"{what} is answered with {preview_json(answer.result)}")


def _failed(answer: Answer) -> bool:
    """Whether the result has `isError`."""
    return isinstance(answer.result, dict) and answer.result.get("isError") is True


def _requires_input(answer: Answer) -> bool:
    """Whether the server asks for more before it does anything (2026-07-28)."""
    return isinstance(answer.result, dict) and answer.result.get("resultType") == "input_required"


_VALIDATION_ERROR = "Output validation error"
"""The official SDKs for Python and TypeScript refuse output that does not fit with these words."""


@rule(
    "tools/structured",
    "must",
    case="all results of tools with an outputSchema",
    needs="tools",
    at="server/tools#output-schema",
    since="2025-06-18",
    cause="The schema and what the tool returns are written apart, and have drifted.",
)
def tools_structured(logs: Sequence[MessageLog]) -> JudgedItems:
    """The result of a tool with an `outputSchema` has `structuredContent` that fits it."""
    known = listed_tools(logs)
    for each in _successful_calls(logs):
        schema = known.get(str(get_object(each.request, "params").get("name")), {}).get("outputSchema")
        if isinstance(schema, dict):
            yield
            if "structuredContent" not in each.result:
                raise each.violation("it has no structuredContent, though the tool has an outputSchema")
            fault = schema_mismatch(schema, each.result["structuredContent"])
            if fault:
                raise each.violation(f"structuredContent does not fit the outputSchema: {fault}")


@tools_structured.case("what SDKs say of tools whose output they refuse", needs="tools")
def tools_structured_sdks_say_tools_whose(logs: Sequence[MessageLog]) -> JudgedItems:
    known = listed_tools(logs)
    for each in answered_requests(logs, "tools/call"):
        if known.get(str(get_object(each.request, "params").get("name")), {}).get("outputSchema"):
            yield
            if any(_VALIDATION_ERROR in entry for entry in all_strings(each.received.message)):
                raise each.violation("the server itself says that the output of the tool does not fit its outputSchema")


@rule(
    "tools/structured-as-text",
    "should",
    case="all structured results",
    needs="tools",
    at="server/tools#structured-content",
    since="2025-06-18",
    cause="`content` is left empty where there is `structuredContent`.",
)
def tools_structured_as_text(logs: Sequence[MessageLog]) -> JudgedItems:
    """What is structured stands in a block of text, too, for clients that know only text."""
    for each in _successful_calls(logs):
        if "structuredContent" in each.result:
            yield
            if not any(block.get("type") == "text" for block in content_blocks(each.result)):
                raise each.violation("it has structuredContent, and no block of text")


@rule(
    "tools/media",
    "must",
    case="all images and sounds in results of tools",
    needs="tools",
    at=("server/tools#image-content", "schema#imagecontent"),
    cause="Bytes are written as text, as a data URL or in another alphabet.",
)
def tools_media(logs: Sequence[MessageLog]) -> JudgedItems:
    """Images and sounds in the result of a tool are base64, and say their MIME type."""
    for each in answered_requests(logs, "tools/call"):
        for block in content_blocks(complete_result(each.result)):
            if block.get("type") in ("image", "audio"):
                yield
                if fault := media_fault(block):
                    raise each.violation(f"a block of type {block['type']!r} {fault}")


@rule(
    "tools/embedded",
    "should",
    case="all resources in results of tools",
    needs="tools",
    at="server/tools#embedded-resources",
    since="2025-06-18",
    cause="Clients want to read again what they were given: offer `resources/read` for these URIs.",
)
def tools_embedded(logs: Sequence[MessageLog]) -> JudgedItems:
    """A server whose tools give resources declares the capability `resources`."""
    for each in answered_requests(logs, "tools/call"):
        if _embeds(complete_result(each.result)):
            yield
            if not declares(get_object(each.received.log.handshake_result, "capabilities"), "resources"):
                raise each.violation("it holds a resource, and the server does not declare `resources`")


def _embeds(result: JSONObject) -> bool:
    return any(block.get("type") == "resource" for block in content_blocks(result))


def _successful_calls(logs: Iterable[MessageLog]) -> Iterator[AnsweredRequest]:
    """Calls that gave what the tool gives: no error, no question, no task."""
    for each in answered_requests(logs, "tools/call"):
        result = complete_result(each.result)
        if result and result.get("isError") is not True and "task" not in get_object(each.request, "params"):
            yield each
