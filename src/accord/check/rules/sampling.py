"""What a server gives a model, apart from words: the results of the tools that the model used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check.content import get_object, get_objects
from accord.check.input_requests import sampling_requests
from accord.check.message_log import MessageLog
from accord.check.rule import Rule
from accord.check.schema_fit import schema_mismatch
from accord.check.values import preview_json
from accord.messages.base import JSONObject

TOOL_RESULTS = Rule(
    "asking/tool-results",
    "must",
    "What goes to a model after it used tools has one result for each use, and nothing beside them.",
    at="client/sampling#message-content-constraints",
    since="2025-11-25",
)


@TOOL_RESULTS.reading("the messages of all sampling")
def read_tool_results(records: Sequence[MessageLog]) -> int:
    judged = 0
    for question in sampling_requests(records):
        judged += 1
        used: list[str] = []
        for blocks in _message_blocks(question.params):
            results = [preview_json(block.get("toolUseId")) for block in blocks if block.get("type") == "tool_result"]
            if results and len(results) != len(blocks):
                raise question.violation("a message with tool results has other content, too")
            if (used or results) and sorted(used) != sorted(results):
                raise question.violation(f"the model used {used}, and the results are of {results}")
            used = [preview_json(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
    return judged


TOOL_OUTPUT = Rule(
    "asking/tool-output",
    "should",
    "What a tool has given in structured form, and a model is told, fits the `outputSchema` of that tool.",
    at="schema#toolresultcontent",
    since="2025-11-25",
    cause="The schema describes another form than the one in which the result is passed on.",
)


@TOOL_OUTPUT.reading("the results of tools in all sampling")
def read_tool_output(records: Sequence[MessageLog]) -> int:
    judged = 0
    for question in sampling_requests(records):
        schemas = {
            preview_json(tool.get("name")): get_object(tool, "outputSchema")
            for tool in get_objects(question.params, "tools")
        }
        for name, result in _results(question.params):
            if schemas.get(name) and "structuredContent" in result:
                judged += 1
                if fault := schema_mismatch(schemas[name], result["structuredContent"]):
                    raise question.violation(f"the result of {name} does not fit its outputSchema: {fault}")
    return judged


def _results(params: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    """Yield the tool results that are sent to a model, each with the name of its tool."""
    used: dict[str, str] = {}
    for blocks in _message_blocks(params):
        for block in blocks:
            if block.get("type") == "tool_use":
                used[preview_json(block.get("id"))] = preview_json(block.get("name"))
            elif block.get("type") == "tool_result":
                yield used.get(preview_json(block.get("toolUseId")), ""), block


def _message_blocks(params: JSONObject) -> Iterator[list[JSONObject]]:
    """The blocks of each message."""
    for message in get_objects(params, "messages"):
        content = message.get("content")
        yield [block for block in (content if isinstance(content, list) else [content]) if isinstance(block, dict)]
