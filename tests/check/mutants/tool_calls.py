"""Servers that call tools wrongly, or give wrong results."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.feature_servers import showing
from tests.check.mutants.table import mutant
from tests.check.mutants.tools import undeclare

TEXT = {"content": [{"type": "text", "text": "done"}], "resultType": "complete"}


def done(request: Any) -> Any:
    """An answer that says it worked."""
    return {"jsonrpc": "2.0", "id": request["id"], "result": dict(TEXT)}


def failed(answer: Any) -> bool:
    return "error" in answer or answer["result"].get("isError") is True


def result(change: Change, alter: Any) -> None:
    """Change the results of tools."""

    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        if "result" in answer and not failed(answer) and "content" in answer["result"]:
            alter(answer["result"])
        return answer


@mutant("tools/unknown-name", revision="2025-11-25", calls=False)
def success_for_an_unknown_tool(change: Change) -> None:
    change.answers("tools/call")(lambda request, answer: done(request) if "error" in answer else answer)


@mutant("tools/unknown-name-code", revision="2025-06-18", calls=False)
def a_tool_error_for_an_unknown_tool(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        return {**done(request), "result": {**TEXT, "isError": True}} if "error" in answer else answer


@mutant("tools/case")
def names_in_any_case(change: Change) -> None:
    @change.heard
    def _(message: Any) -> Any:
        if message.get("method") == "tools/call" and isinstance(message["params"].get("name"), str):
            message = {**message, "params": {**message["params"], "name": message["params"]["name"].lower()}}
        return message


@mutant("tools/malformed-call", revision="2024-11-05", calls=False)
def success_for_a_call_without_a_name(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        return answer if isinstance(request["params"].get("name"), str) else done(request)


@mutant("tools/arguments-checked", revision="2024-11-05")
def arguments_that_nobody_looks_at(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        return done(request) if request["params"].get("name") in ("add", "day") and failed(answer) else answer


@mutant("tools/argument-errors", revision="2025-11-25")
def protocol_errors_for_arguments(change: Change) -> None:
    @change.answers("tools/call")
    def _(request: Any, answer: Any) -> Any:
        error = {"code": -32602, "message": "No"}
        wrong = request["params"].get("name") in ("add", "day") and failed(answer)
        return {"jsonrpc": "2.0", "id": request["id"], "error": error} if wrong else answer


@mutant("tools/structured", revision="2025-06-18")
def structure_that_does_not_fit(change: Change) -> None:
    def alter(found: Any) -> None:
        if "celsius" in str(found.get("structuredContent")):
            found["structuredContent"] = {"sky": 5}

    result(change, alter)


@mutant("tools/structured")
def no_structure_though_it_was_promised(change: Change) -> None:
    result(change, lambda found: found.pop("structuredContent", None))


@mutant("tools/structured", revision="2025-11-25")
def structure_that_the_server_itself_refuses(change: Change) -> None:
    def alter(found: Any) -> None:
        if "celsius" in str(found.get("structuredContent")):
            del found["structuredContent"]
            found.update(isError=True, content=[{"type": "text", "text": "Output validation error: 5 is no string"}])

    result(change, alter)


@mutant("tools/structured-as-text", revision="2025-11-25")
def structure_without_text(change: Change) -> None:
    result(change, lambda found: found.update(content=[]))


@mutant("tools/media", server=showing)
def a_picture_as_a_data_url(change: Change) -> None:
    result(change, lambda found: [each.update(data="data:image/png;base64,AA==") for each in pictures(found)])


@mutant("tools/media", server=showing, revision="2024-11-05")
def a_picture_without_a_subtype(change: Change) -> None:
    result(change, lambda found: [each.update(mimeType="png") for each in pictures(found)])


@mutant("tools/embedded", server=showing, revision="2025-06-18")
def files_without_the_capability(change: Change) -> None:
    undeclare(change, "resources")


def pictures(found: Any) -> Any:
    return [each for each in found["content"] if each["type"] == "image"]
