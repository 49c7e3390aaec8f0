"""Results of tools, read from all calls: what is structured, what is an image or a sound, what is a resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from accord.check.content import all_strings, complete_result, content_blocks, get_object, media_fault
from accord.check.message_log import MessageLog
from accord.check.message_reader import AnsweredRequest, answered_requests
from accord.check.rule import Rule
from accord.check.schema_fit import listed_tools, schema_mismatch
from accord.check.values import declares
from accord.messages.base import JSONObject

_VALIDATION_ERROR = "Output validation error"
"""The official SDKs for Python and TypeScript refuse output that does not fit with these words."""

STRUCTURED = Rule(
    "tools/structured",
    "must",
    "The result of a tool with an `outputSchema` has `structuredContent` that fits it.",
    at="server/tools#output-schema",
    since="2025-06-18",
    cause="The schema and what the tool returns are written apart, and have drifted.",
)


@STRUCTURED.reading("all results of tools with an outputSchema", needs="tools")
def read_structured_results_tools_outputschema(records: Sequence[MessageLog]) -> int:
    judged = 0
    known = listed_tools(records)
    for each in _successful_calls(records):
        schema = known.get(str(get_object(each.request, "params").get("name")), {}).get("outputSchema")
        if isinstance(schema, dict):
            judged += 1
            if "structuredContent" not in each.result:
                raise each.violation("it has no structuredContent, though the tool has an outputSchema")
            fault = schema_mismatch(schema, each.result["structuredContent"])
            if fault:
                raise each.violation(f"structuredContent does not fit the outputSchema: {fault}")
    return judged


@STRUCTURED.reading("what SDKs say of tools whose output they refuse", needs="tools")
def read_structured_sdks_say_tools_whose(records: Sequence[MessageLog]) -> int:
    judged = 0
    known = listed_tools(records)
    for each in answered_requests(records, "tools/call"):
        if known.get(str(get_object(each.request, "params").get("name")), {}).get("outputSchema"):
            judged += 1
            if any(_VALIDATION_ERROR in said for said in all_strings(each.received.message)):
                raise each.violation("the server itself says that the output of the tool does not fit its outputSchema")
    return judged


STRUCTURED_AS_TEXT = Rule(
    "tools/structured-as-text",
    "should",
    "What is structured stands in a block of text, too, for clients that know only text.",
    at="server/tools#structured-content",
    since="2025-06-18",
    cause="`content` is left empty where there is `structuredContent`.",
)


@STRUCTURED_AS_TEXT.reading("all structured results", needs="tools")
def read_structured_as_text(records: Sequence[MessageLog]) -> int:
    found = [each for each in _successful_calls(records) if "structuredContent" in each.result]
    for each in found:
        if not any(block.get("type") == "text" for block in content_blocks(each.result)):
            raise each.violation("it has structuredContent, and no block of text")
    return len(found)


MEDIA = Rule(
    "tools/media",
    "must",
    "Images and sounds in the result of a tool are base64, and say their MIME type.",
    at=("server/tools#image-content", "schema#imagecontent"),
    cause="Bytes are written as text, as a data URL or in another alphabet.",
)


@MEDIA.reading("all images and sounds in results of tools", needs="tools")
def read_media(records: Sequence[MessageLog]) -> int:
    judged = 0
    for each in answered_requests(records, "tools/call"):
        for block in content_blocks(complete_result(each.result)):
            if block.get("type") in ("image", "audio"):
                judged += 1
                if fault := media_fault(block):
                    raise each.violation(f"a block of type {block['type']!r} {fault}")
    return judged


EMBEDDED = Rule(
    "tools/embedded",
    "should",
    "A server whose tools give resources declares the capability `resources`.",
    at="server/tools#embedded-resources",
    since="2025-06-18",
    cause="Clients want to read again what they were given: offer `resources/read` for these URIs.",
)


@EMBEDDED.reading("all resources in results of tools", needs="tools")
def read_embedded(records: Sequence[MessageLog]) -> int:
    found = [each for each in answered_requests(records, "tools/call") if _embeds(complete_result(each.result))]
    for each in found:
        if not declares(get_object(each.received.log.handshake_result, "capabilities"), "resources"):
            raise each.violation("it holds a resource, and the server does not declare `resources`")
    return len(found)


def _embeds(result: JSONObject) -> bool:
    return any(block.get("type") == "resource" for block in content_blocks(result))


def _successful_calls(records: Iterable[MessageLog]) -> Iterator[AnsweredRequest]:
    """Calls that gave what the tool gives: no error, no question, no task."""
    for each in answered_requests(records, "tools/call"):
        result = complete_result(each.result)
        if result and result.get("isError") is not True and "task" not in get_object(each.request, "params"):
            yield each
