"""What a server gives a model, apart from words: the results of the tools that the model used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check.asked import to_models
from accord.check.blocks import inside, items
from accord.check.fitting import mismatch
from accord.check.record import Record
from accord.check.rule import Rule
from accord.check.values import shown
from accord.messages.base import JSONObject

TOOL_RESULTS = Rule(
    "asking/tool-results",
    "must",
    "What goes to a model after it used tools has one result for each use, and nothing beside them.",
    at="client/sampling#message-content-constraints",
    since="2025-11-25",
)


@TOOL_RESULTS.reading("the messages of all sampling")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for question in to_models(records):
        judged += 1
        used: list[str] = []
        for blocks in _turns(question.params):
            results = [shown(block.get("toolUseId")) for block in blocks if block.get("type") == "tool_result"]
            if results and len(results) != len(blocks):
                raise question.broken("a message with tool results has other content, too")
            if (used or results) and sorted(used) != sorted(results):
                raise question.broken(f"the model used {used}, and the results are of {results}")
            used = [shown(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
    return judged


OUTPUT = Rule(
    "asking/tool-output",
    "should",
    "What a tool has given in structured form, and a model is told, fits the `outputSchema` of that tool.",
    at="schema#toolresultcontent",
    since="2025-11-25",
    cause="The schema describes another form than the one in which the result is passed on.",
)


@OUTPUT.reading("the results of tools in all sampling")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for question in to_models(records):
        schemas = {shown(tool.get("name")): inside(tool, "outputSchema") for tool in items(question.params, "tools")}
        for name, result in _results(question.params):
            if schemas.get(name) and "structuredContent" in result:
                judged += 1
                if fault := mismatch(schemas[name], result["structuredContent"]):
                    raise question.broken(f"the result of {name} does not fit its outputSchema: {fault}")
    return judged


def _results(params: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    """Yield the tool results that are sent to a model, each with the name of its tool."""
    used: dict[str, str] = {}
    for blocks in _turns(params):
        for block in blocks:
            if block.get("type") == "tool_use":
                used[shown(block.get("id"))] = shown(block.get("name"))
            elif block.get("type") == "tool_result":
                yield used.get(shown(block.get("toolUseId")), ""), block


def _turns(params: JSONObject) -> Iterator[list[JSONObject]]:
    """The blocks of each message."""
    for message in items(params, "messages"):
        content = message.get("content")
        yield [block for block in (content if isinstance(content, list) else [content]) if isinstance(block, dict)]
