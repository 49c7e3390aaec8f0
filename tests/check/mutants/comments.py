"""Servers that break what only the comments of the schemas say."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.input_requests import SAMPLE, asks, page
from tests.check.mutants.resources import read
from tests.check.mutants.subscriptions import ACKNOWLEDGED
from tests.check.mutants.table import mutant

ADDS = {"readOnlyHint": False, "destructiveHint": False}


@mutant("resources/text", revision="2024-11-05")
def a_picture_as_text(change: Change) -> None:
    def found(uri: Any, answer: Any) -> Any:
        return [{"uri": uri, "mimeType": "image/png", "text": "\x89PNG"}] if uri == "right://blob" else None

    read(change, found)


@mutant("resources/text")
def bytes_as_text(change: Change) -> None:
    def found(uri: Any, answer: Any) -> Any:
        return [{"uri": uri, "text": "PK\0\1"}] if uri == "right://blob" else None

    read(change, found)


@mutant("resources/template-type", revision="2025-03-26")
def a_template_of_many_types(change: Change) -> None:
    _typed(change)


@mutant("resources/template-type")
def a_template_of_many_types_in_2026(change: Change) -> None:
    _typed(change)


def _typed(change: Change) -> None:
    @change.answers("resources/templates/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["resourceTemplates"][0]["mimeType"] = "application/json"
        return answer

    def found(uri: Any, answer: Any) -> Any:
        return [{"uri": uri, "mimeType": "text/csv", "text": "1"}] if uri == "right://item/1" else None

    read(change, found)


@mutant("resources/last-modified", revision="2025-11-25")
def a_date_in_seconds_on_a_block(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        for block in answer.get("result", {}).get("content", []):
            block["annotations"] = {"lastModified": "1763769600"}
        return answer


@mutant("asking/roots-again", revision="2025-11-25")
def the_roots_of_the_beginning_are_kept(change: Change) -> None:
    @change.before("ping")
    def _(request: Any) -> list[Any]:
        return [{"jsonrpc": "2.0", "id": f"roots-{request['id']}", "method": "roots/list"}]


@mutant("asking/tool-output", revision="2025-11-25")
def a_result_in_another_form(change: Change) -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    tool = {"name": "add", "inputSchema": {"type": "object"}, "outputSchema": schema}
    use = {"type": "tool_use", "id": "1", "name": "add", "input": {}}
    result = {"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": {"total": 3}}
    said = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    asks(change, "sampling/createMessage", {**SAMPLE, "messages": said, "tools": [tool]})


@mutant("asking/page-ids", revision="2025-11-25")
def every_page_has_the_same_id(change: Change) -> None:
    pages = [page(url=f"https://example.com/{number}") for number in range(2)]

    @change.before("tools/call")
    def _(request: Any) -> list[Any]:
        ids = [f"q{number}-{request['id']}" for number in range(2)]
        asked = zip(ids, pages, strict=True)
        return [{"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": each} for id, each in asked]


@mutant("discover/instructions")
def the_descriptions_once_more(change: Change) -> None:
    told = "Adds two numbers, the second of which is 0 where it is left out."

    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["tools"][0]["description"] = told
        return answer

    @change.answers("server/discover")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["instructions"] = f"These are the tools:\n- add:  {told}\n"
        return answer


@mutant("tools/additive", revision="2025-03-26")
def an_addition_that_removes(change: Change) -> None:
    _removes(change)


@mutant("tools/additive")
def an_addition_that_removes_in_2026(change: Change) -> None:
    _removes(change)


def _removes(change: Change) -> None:
    called: list[bool] = []

    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["tools"][0]["annotations"] = ADDS
        return answer

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        called.append(True)
        return answer

    @change.answers("prompts/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["prompts"] = [{"name": f"plan of call {len(called)}"}]  # conversations go on side by side
        return answer


@mutant("subscriptions/supported")
def the_wish_is_given_back(change: Change) -> None:
    @change.answers("server/discover")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["capabilities"].pop("prompts")
        return answer

    @change.notifications(ACKNOWLEDGED)
    def _(message: Any) -> Any:
        message["params"]["notifications"] = {"toolsListChanged": True, "promptsListChanged": True}
        return message
