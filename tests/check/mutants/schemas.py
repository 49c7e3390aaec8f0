"""Servers whose schemas and icons are not what clients can use."""

from __future__ import annotations

from typing import Any

from accord import Server, Tool

from tests.check.mutants.change import Change
from tests.check.mutants.table import mutant

FIXTURE = "json_schema_2020_12_tool"


def rich() -> Server:
    """A right server with the tool of the conformance suite."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"city": {"type": "string"}},
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/city"}},
        "additionalProperties": False,
    }
    server = Server("rich", "1.0.0")
    server.add_tool(Tool(name=FIXTURE, input_schema=schema), lambda arguments: "done")
    return server


def listed(change: Change, **fields: Any) -> None:
    """The first tool is listed with these fields."""

    @change.answers("tools/list")
    def _(request: Any, answer: Any) -> Any:
        answer["result"]["tools"][0].update(fields)
        return answer


@mutant("schemas/valid", revision="2025-11-25")
def a_required_that_is_no_list(change: Change) -> None:
    listed(change, inputSchema={"type": "object", "properties": {"a": {"type": "integer", "minimum": "0"}}})


@mutant("schemas/valid")
def a_type_that_json_does_not_have(change: Change) -> None:
    listed(change, outputSchema={"type": "object", "properties": {"a": {"type": "int"}}})


@mutant("schemas/known-dialect", revision="2025-11-25")
def a_dialect_that_nobody_knows(change: Change) -> None:
    listed(change, inputSchema={"$schema": "https://example.com/own", "type": "object"})


@mutant("schemas/references")
def definitions_left_behind(change: Change) -> None:
    listed(change, inputSchema={"type": "object", "properties": {"a": {"$ref": "#/$defs/city"}}})


@mutant("schemas/kept", revision="2025-11-25", server=rich)
def definitions_are_dropped(change: Change) -> None:
    listed(change, inputSchema={"type": "object", "properties": {"city": {"type": "string"}}})


@mutant("icons/source", revision="2025-11-25")
def an_icon_on_the_disk(change: Change) -> None:
    listed(change, icons=[{"src": "file:///usr/share/icons/add.png"}])


@mutant("icons/data")
def an_icon_as_it_is(change: Change) -> None:
    listed(change, icons=[{"src": "data:image/svg+xml,<svg/>"}])


@mutant("icons/sizes", revision="2025-11-25")
def one_number_for_a_size(change: Change) -> None:
    listed(change, icons=[{"src": "https://example.com/add.png", "sizes": ["48"]}])
