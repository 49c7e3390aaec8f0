"""Definitions of tools for a model: their tokens, their words, and as many as a budget allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.tools import Tool
from accord.server.compose.ranking import words

_BYTES = 4
"""Estimated bytes of JSON per token, as for English text with most models."""
_SHORT_FIELDS = ("type", "enum", "const")
"""The keywords that a shortened definition keeps of an argument."""
_SENTENCE = 200
"""Characters of the description in a shortened definition."""
_NAME, _ARGUMENT = 3, 2
"""The weights of words of a name and of an argument."""


def tokens(tool: Tool | JSONObject) -> int:
    """Return the estimated tokens of a definition."""
    return len(codec.encode(tool)) // _BYTES + 1


def within_budget(tools: Sequence[Tool], budget: int, limit: int) -> Iterator[JSONObject]:
    """Yield the first definition, and the following ones within a budget of tokens, at most `limit`.

    A definition that does not fit is shortened, so that a good match with a large schema does not give way to a worse
    one.
    """
    left = budget
    for number, tool in enumerate(tools[:limit]):
        definition = definition_for_model(tool)
        if tokens(definition) > left:
            definition = _shorten(definition)
        left -= tokens(definition)
        if number and left < 0:
            return
        yield definition


def words_of(name: str, tool: Tool) -> Iterator[str]:
    """Yield the words of a tool; those of its name and its arguments weigh more."""
    yield from (*words(name), *words(tool.title or "")) * _NAME
    yield from words(tool.description or "")
    for argument, value in tool.input_schema.get("properties", {}).items():
        yield from (*words(argument),) * _ARGUMENT
        if isinstance(value, dict) and isinstance(value.get("description"), str):
            yield from words(value["description"])


def definition_for_model(tool: Tool) -> JSONObject:
    """Return the definition for a model: fields that all revisions have."""
    fields = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
    return {key: value for key, value in fields.items() if value is not None}


def _shorten(definition: JSONObject) -> JSONObject:
    """Return a definition with only the types of its arguments; a call still validates against the whole schema."""
    schema = definition["inputSchema"]
    properties = {
        name: {key: property_schema[key] for key in _SHORT_FIELDS if key in property_schema}
        if isinstance(property_schema, dict)
        else property_schema
        for name, property_schema in schema.get("properties", {}).items()
    }
    required = {"required": schema["required"]} if "required" in schema else {}
    description = {"description": definition["description"][:_SENTENCE]} if "description" in definition else {}
    return {**definition, **description, "inputSchema": {"type": "object", "properties": properties, **required}}
