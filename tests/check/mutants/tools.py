"""Servers that list wrong tools."""

from __future__ import annotations

from typing import Any

from tests.check.mutants.change import Change
from tests.check.mutants.feature_servers import Fickle, changing, showing
from tests.check.mutants.table import mutant


def tool(change: Change, alter: Any) -> None:
    """Change the first tool that is listed."""

    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        alter(answer["result"]["tools"][0])
        return answer


def undeclare(change: Change, capability: str) -> None:
    """Leave a capability out of what the server says of itself."""

    def leave_out(request: Any, answer: Any) -> Any:
        answer["result"]["capabilities"].pop(capability)
        return answer

    change.answers("initialize")(leave_out)
    change.answers("server/discover")(leave_out)


def refuse(change: Change, method: str, code: int = -32601) -> None:
    """Answer a method with an error."""
    error = {"code": code, "message": "No"}
    change.answers(method)(lambda request, answer: {"jsonrpc": "2.0", "id": request["id"], "error": error})


@mutant("tools/declared", revision="2025-06-18")
def tools_that_are_not_declared(change: Change) -> None:
    undeclare(change, "tools")


@mutant("tools/listed", revision="2025-11-25", calls=False)
def a_capability_without_a_list(change: Change) -> None:
    refuse(change, "tools/list")


@mutant("tools/same-everywhere", server=Fickle)
def tools_of_each_connection(change: Change) -> None:
    """The server is wrong by itself."""


@mutant("tools/order")
def another_order_each_time(change: Change) -> None:
    asked = []

    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        asked.append(request)
        answer["result"]["tools"] = answer["result"]["tools"][:: 1 if len(asked) % 2 else -1]
        return answer


@mutant("tools/list-changed", server=changing)
def a_list_that_changes_in_silence(change: Change) -> None:
    change.notifications("notifications/tools/list_changed")(lambda message: None)


@mutant("tools/list-changed", revision="2025-06-18", server=changing)
def a_list_that_changed_in_silence_already_in_2025(change: Change) -> None:
    change.notifications("notifications/tools/list_changed")(lambda message: None)


@mutant("tools/unique-names", revision="2025-03-26")
def two_tools_of_one_name(change: Change) -> None:
    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["tools"].append(answer["result"]["tools"][0])
        return answer


@mutant("tools/names", calls=False)
def a_name_with_a_blank(change: Change) -> None:
    tool(change, lambda each: each.update(name="the first"))


@mutant("tools/names", revision="2025-11-25", calls=False)
def a_name_of_129_characters(change: Change) -> None:
    tool(change, lambda each: each.update(name="a" * 129))


@mutant("tools/schemas", revision="2025-03-26", calls=False)
def a_type_that_does_not_exist(change: Change) -> None:
    tool(change, lambda each: each["inputSchema"].update(properties={"a": {"type": "text"}}))


@mutant("tools/schemas", revision="2024-11-05", calls=False)
def required_on_the_argument_itself(change: Change) -> None:
    tool(change, lambda each: each["inputSchema"].update(properties={"a": {"type": "string", "required": True}}))


@mutant("tools/schemas", revision="2025-06-18", calls=False)
def an_output_schema_with_a_mistake(change: Change) -> None:
    tool(change, lambda each: each.update(outputSchema={"type": "object", "properties": {"a": {"minLength": "1"}}}))


def header(change: Change, properties: Any) -> None:
    tool(change, lambda each: each["inputSchema"].update(properties=properties))


@mutant("tools/mirrored-arguments", server=showing, calls=False)
def a_header_without_a_name(change: Change) -> None:
    header(change, {"a": {"type": "string", "x-mcp-header": ""}})


@mutant("tools/mirrored-arguments", server=showing, calls=False)
def a_header_with_a_blank(change: Change) -> None:
    header(change, {"a": {"type": "string", "x-mcp-header": "My Region"}})


@mutant("tools/mirrored-arguments", server=showing, calls=False)
def a_header_with_a_line_break(change: Change) -> None:
    header(change, {"a": {"type": "string", "x-mcp-header": "Region\r\nX-Admin: yes"}})


@mutant("tools/mirrored-arguments", server=showing, calls=False)
def two_headers_of_one_name(change: Change) -> None:
    header(change, {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}})


@mutant("tools/mirrored-arguments", server=showing, calls=False)
def a_header_for_a_number(change: Change) -> None:
    header(change, {"a": {"type": "number", "x-mcp-header": "A"}})


@mutant("tools/mirrored-arguments", server=showing, calls=False)
def a_header_for_an_item(change: Change) -> None:
    header(change, {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}})


@mutant("tools/mirrored-secrets", server=showing, calls=False)
def a_password_in_a_header(change: Change) -> None:
    header(change, {"password": {"type": "string", "x-mcp-header": "Password"}})
