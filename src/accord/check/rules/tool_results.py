"""Results of tools, read from all calls: what is structured, what is an image or a sound, what is a resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from accord.check.blocks import blocks, final, inside, media_fault, texts
from accord.check.fitting import listed, mismatch
from accord.check.reading import Answered, answers
from accord.check.record import Record
from accord.check.rule import Rule
from accord.check.values import declares
from accord.messages.base import JSONObject

_REFUSED = "Output validation error"
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
def _(records: Sequence[Record]) -> int:
    judged = 0
    known = listed(records)
    for each in _succeeded(records):
        schema = known.get(str(inside(each.request, "params").get("name")), {}).get("outputSchema")
        if isinstance(schema, dict):
            judged += 1
            if "structuredContent" not in each.result:
                raise each.broken("it has no structuredContent, though the tool has an outputSchema")
            fault = mismatch(schema, each.result["structuredContent"])
            if fault:
                raise each.broken(f"structuredContent does not fit the outputSchema: {fault}")
    return judged


@STRUCTURED.reading("what SDKs say of tools whose output they refuse", needs="tools")
def _(records: Sequence[Record]) -> int:
    judged = 0
    known = listed(records)
    for each in answers(records, "tools/call"):
        if known.get(str(inside(each.request, "params").get("name")), {}).get("outputSchema"):
            judged += 1
            if any(_REFUSED in said for said in texts(each.heard.message)):
                raise each.broken("the server itself says that the output of the tool does not fit its outputSchema")
    return judged


AS_TEXT = Rule(
    "tools/structured-as-text",
    "should",
    "What is structured stands in a block of text, too, for clients that know only text.",
    at="server/tools#structured-content",
    since="2025-06-18",
    cause="`content` is left empty where there is `structuredContent`.",
)


@AS_TEXT.reading("all structured results", needs="tools")
def _(records: Sequence[Record]) -> int:
    found = [each for each in _succeeded(records) if "structuredContent" in each.result]
    for each in found:
        if not any(block.get("type") == "text" for block in blocks(each.result)):
            raise each.broken("it has structuredContent, and no block of text")
    return len(found)


MEDIA = Rule(
    "tools/media",
    "must",
    "Images and sounds in the result of a tool are base64, and say their MIME type.",
    at=("server/tools#image-content", "schema#imagecontent"),
    cause="Bytes are written as text, as a data URL or in another alphabet.",
)


@MEDIA.reading("all images and sounds in results of tools", needs="tools")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for each in answers(records, "tools/call"):
        for block in blocks(final(each.result)):
            if block.get("type") in ("image", "audio"):
                judged += 1
                if fault := media_fault(block):
                    raise each.broken(f"a block of type {block['type']!r} {fault}")
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
def _(records: Sequence[Record]) -> int:
    found = [each for each in answers(records, "tools/call") if _embeds(final(each.result))]
    for each in found:
        if not declares(inside(each.heard.record.hello, "capabilities"), "resources"):
            raise each.broken("it holds a resource, and the server does not declare `resources`")
    return len(found)


def _embeds(result: JSONObject) -> bool:
    return any(block.get("type") == "resource" for block in blocks(result))


def _succeeded(records: Iterable[Record]) -> Iterator[Answered]:
    """Calls that gave what the tool gives: no error, no question, no task."""
    for each in answers(records, "tools/call"):
        result = final(each.result)
        if result and result.get("isError") is not True and "task" not in inside(each.request, "params"):
            yield each
