"""Tool calls: unknown tools, invalid arguments, annotations, and the content of results."""

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
"""Number of tools that are called."""


@rule(
    "tools/unknown-name",
    "must",
    case="an unknown name",
    needs="tools",
    at="server/tools#error-handling",
    cause="The handler accepts every name.",
)
async def tools_unknown_name(probe: Probe) -> None:
    """A call of an unknown tool does not succeed."""
    answer = await probe.request("tools/call", {"name": probe.unknown_name, "arguments": {}})
    _require_refused(probe, answer, "a call of an unknown tool")


@rule(
    "tools/unknown-name-code",
    "should",
    case="an unknown name",
    needs="tools",
    at=("server/tools#error-handling", "schema#calltoolresult"),
    cause="The unknown tool is reported as a tool error: errors before the call are JSON-RPC errors.",
)
async def tools_unknown_name_code(probe: Probe) -> None:
    """A call of an unknown tool returns the JSON-RPC error -32602, not a tool result."""
    answer = await probe.request("tools/call", {"name": probe.unknown_name, "arguments": {}})
    if answer.code != INVALID_PARAMS:
        symptom = "" if answer.error or _failed(answer) else tools_unknown_name.id
        raise probe.violation(
            f"the server answered with {preview_json(answer.error or answer.result)}", symptom=symptom
        )


@rule(
    "tools/case",
    "should",
    case="the name of a tool with the case of its letters swapped",
    needs="tools",
    calls=True,
    at="server/tools#tool-names",
    since="2025-11-25",
    cause="Names are converted to one case before the lookup.",
)
async def tools_case(probe: Probe) -> None:
    """The names of tools are case-sensitive."""
    known = {str(tool.get("name")) for tool in await probe.tools()}
    turned = [tool for tool in await probe.callable_tools() if str(tool.get("name")).swapcase() not in known]
    if not turned:
        raise NotApplicable("no name has a letter")
    name = str(turned[0].get("name")).swapcase()
    answer = await lists.call_tool(probe, {**turned[0], "name": name})
    if answer is not None:
        _require_refused(probe, answer, f"a call of {name!r}, which is not listed,")


@rule(
    "tools/malformed-call",
    "must",
    case="no name, and names of wrong types",
    needs="tools",
    at="server/tools#security-considerations",
    cause="The params are not validated.",
)
async def tools_malformed_call(probe: Probe) -> None:
    """A call without a name, or with a name that is not a string, does not succeed."""
    wrong: tuple[JSONObject, ...] = ({}, {"name": None}, {"name": 5}, {"name": ["a"]}, {"name": {}})
    for params in wrong:
        _require_refused(probe, await probe.request("tools/call", params), f"a call with {preview_json(params)}")


@rule(
    "tools/arguments-checked",
    "must",
    case="missing required arguments, and arguments of wrong types",
    needs="tools",
    calls=True,
    at=("server/tools#security-considerations", "server/tools#error-handling"),
    cause="The schema is sent to clients, but the server does not validate arguments with it.",
)
async def tools_arguments_checked(probe: Probe) -> None:
    """The server refuses arguments that do not match the schema of a tool."""
    judged = 0
    for tool in (await probe.callable_tools())[:_MOST]:
        for arguments in invalid_arguments(get_object(tool, "inputSchema")):
            answer = await lists.call_tool(probe, tool, arguments)
            if answer is not None and not _requires_input(answer):
                _require_refused(
                    probe, answer, f"{tool.get('name')!r} with the invalid arguments {preview_json(arguments)}"
                )
                judged += 1
    if not judged:
        raise NotObserved("no callable tool has a schema with invalid arguments")


@rule(
    "tools/argument-errors",
    "should",
    case="all calls with invalid arguments",
    needs="tools",
    at="server/tools#error-handling",
    since="2025-11-25",
    cause="Arguments are validated before the tool is called: the model does not see a JSON-RPC error.",
)
def tools_argument_errors(logs: Sequence[MessageLog]) -> JudgedItems:
    """A tool result with `isError` reports invalid arguments, so that the model can correct them."""
    known = listed_tools(logs)
    for each in answered_requests(logs, "tools/call"):
        params = get_object(each.request, "params")
        tool = known.get(str(params.get("name")))
        arguments = params.get("arguments", {})
        if tool and isinstance(arguments, dict) and matches_schema(get_object(tool, "inputSchema"), arguments) is False:
            yield
            if get_object(each.received.message, "error").get("code") == INVALID_PARAMS:
                raise each.violation("invalid arguments returned a JSON-RPC error")


@rule(
    "tools/additive",
    "should",
    case="a call of each tool with `destructiveHint: false`",
    kind="own",
    needs="tools",
    calls=True,
    at=("server/tools#tool", "schema#toolannotations"),
    since="2025-03-26",
    over=LINE_TRANSPORTS,
    cause="The hint was copied from another tool: hosts run such tools with less caution.",
)
async def tools_additive(probe: Probe) -> None:
    """A tool with `destructiveHint: false` removes nothing from the lists."""
    gentle = [tool for tool in await probe.callable_tools() if _only_adds(get_object(tool, "annotations"))]
    if not gentle:
        raise NotApplicable("no callable tool has this hint")
    for tool in gentle[:_MOST]:
        before = await _all_names(probe)
        await lists.call_tool(probe, tool)
        if gone := before - await _all_names(probe):
            raise probe.violation(
                f"{preview_json(tool.get('name'))} is not destructive, but {min(gone)} is no longer listed"
            )


def _only_adds(hints: JSONObject) -> bool:
    """Return whether the annotations of a tool say that it writes, and is not destructive."""
    return hints.get("destructiveHint") is False and hints.get("readOnlyHint") is not True


async def _all_names(probe: Probe) -> set[str]:
    """Return the names of everything that is listed: `tools 'add'`."""
    return {
        f"{listing.key} {name!r}"
        for listing in lists.LIST_KINDS
        if probe.has_capability(listing.capability)
        for name in await lists.list_names(probe, listing)
    }


def _require_refused(probe: Probe, answer: Answer, what: str) -> None:
    """Raise `Violation` for a response that reports success."""
    if answer.error is None and not _failed(answer):
        raise probe.violation(f"{what} returned {preview_json(answer.result)}")


def _failed(answer: Answer) -> bool:
    """Return whether the result has `isError`."""
    return isinstance(answer.result, dict) and answer.result.get("isError") is True


def _requires_input(answer: Answer) -> bool:
    """Return whether the server requires input first (2026-07-28)."""
    return isinstance(answer.result, dict) and answer.result.get("resultType") == "input_required"


_VALIDATION_ERROR = "Output validation error"
"""The official SDKs for Python and TypeScript report invalid output with these words."""


@rule(
    "tools/structured",
    "must",
    case="all results of tools with an outputSchema",
    needs="tools",
    at="server/tools#output-schema",
    since="2025-06-18",
    cause="The schema and the return value of the tool are written separately, and differ.",
)
def tools_structured(logs: Sequence[MessageLog]) -> JudgedItems:
    """The result of a tool with an `outputSchema` has matching `structuredContent`."""
    known = listed_tools(logs)
    for each in _successful_calls(logs):
        schema = known.get(str(get_object(each.request, "params").get("name")), {}).get("outputSchema")
        if isinstance(schema, dict):
            yield
            if "structuredContent" not in each.result:
                raise each.violation("the result has no structuredContent, but the tool has an outputSchema")
            fault = schema_mismatch(schema, each.result["structuredContent"])
            if fault:
                raise each.violation(f"structuredContent does not match the outputSchema: {fault}")


@tools_structured.case("errors of SDKs that refuse the output of a tool", needs="tools")
def tools_structured_sdk_errors(logs: Sequence[MessageLog]) -> JudgedItems:
    known = listed_tools(logs)
    for each in answered_requests(logs, "tools/call"):
        if known.get(str(get_object(each.request, "params").get("name")), {}).get("outputSchema"):
            yield
            if any(_VALIDATION_ERROR in entry for entry in all_strings(each.received.message)):
                raise each.violation("the server reports that the output of the tool does not match its outputSchema")


@rule(
    "tools/structured-as-text",
    "should",
    case="all structured results",
    needs="tools",
    at="server/tools#structured-content",
    since="2025-06-18",
    cause="`content` is empty beside `structuredContent`.",
)
def tools_structured_as_text(logs: Sequence[MessageLog]) -> JudgedItems:
    """A structured result is also in a text block, for clients that support only text."""
    for each in _successful_calls(logs):
        if "structuredContent" in each.result:
            yield
            if not any(block.get("type") == "text" for block in content_blocks(each.result)):
                raise each.violation("the result has structuredContent, but no text block")


@rule(
    "tools/media",
    "must",
    case="all images and audio in tool results",
    needs="tools",
    at=("server/tools#image-content", "schema#imagecontent"),
    cause="Bytes are encoded as text, as a data URL or in another alphabet.",
)
def tools_media(logs: Sequence[MessageLog]) -> JudgedItems:
    """Images and audio in a tool result are base64, and have a MIME type."""
    for each in answered_requests(logs, "tools/call"):
        for block in content_blocks(complete_result(each.result)):
            if block.get("type") in ("image", "audio"):
                yield
                if fault := media_fault(block):
                    raise each.violation(f"a block of type {block['type']!r} {fault}")


@rule(
    "tools/embedded",
    "should",
    case="all resources in tool results",
    needs="tools",
    at="server/tools#embedded-resources",
    since="2025-06-18",
    cause="Clients read the resources again: implement `resources/read` for these URIs.",
)
def tools_embedded(logs: Sequence[MessageLog]) -> JudgedItems:
    """A server whose tools return resources declares the capability `resources`."""
    for each in answered_requests(logs, "tools/call"):
        if _embeds(complete_result(each.result)):
            yield
            if not declares(get_object(each.received.log.handshake_result, "capabilities"), "resources"):
                raise each.violation("the result has a resource, but the server does not declare `resources`")


def _embeds(result: JSONObject) -> bool:
    return any(block.get("type") == "resource" for block in content_blocks(result))


def _successful_calls(logs: Iterable[MessageLog]) -> Iterator[AnsweredRequest]:
    """Yield calls that returned a tool result: no error, no input request, no task."""
    for each in answered_requests(logs, "tools/call"):
        result = complete_result(each.result)
        if result and result.get("isError") is not True and "task" not in get_object(each.request, "params"):
            yield each
