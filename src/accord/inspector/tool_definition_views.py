"""The text of a tool that a model reads: its tokens by field and argument, and the hidden characters in its texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.tools import Tool
from accord.server.compose.tool_definitions import definition_for_model, tokens
from accord.visible_text import escape_characters, indented, is_hidden, runs, visible

_BYTES = 4
"""Bytes of JSON per token, as `tokens` counts."""
_MOST_ARGUMENTS = 100
_MOST_HIDDEN = 50
_MOST_CHARACTERS = 20_000
_MOST_NAME = 200
_MOST_STRINGS = 20_000
"""Texts of a definition that are searched for hidden characters."""
_AROUND = 80
"""Characters that are shown on both sides of a hidden one."""
_TAGGED = {chr(0xE0000 + code): chr(code) for code in range(0x20, 0x7F)}
"""The invisible copies of ASCII, which Unicode calls tags: U+E0041 is A."""


class FieldTokens(msgspec.Struct, frozen=True, rename="camel"):
    """The estimated tokens of a field, or of an argument."""

    name: str
    tokens: int
    is_sent: bool = True
    """Whether hosts send it to a model: the name, the description and the input schema."""


class HiddenText(msgspec.Struct, frozen=True, rename="camel"):
    """Hidden characters in one text of a definition."""

    path: str
    """Where the text is: `inputSchema.properties.city.description`."""
    count: int
    text: str
    """The text around the first one, escaped."""
    message: str = ""
    """What invisible copies of ASCII say."""


class TextRun(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a text, with hidden characters escaped."""

    is_hidden: bool
    text: str


class ToolSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A tool in the catalogue of a model."""

    number: int
    name: str
    """With hidden characters escaped."""
    tokens: int
    """Of the whole definition, as `search_tools` counts."""
    sent_tokens: int
    """Of the fields that hosts send to a model."""
    hidden: int
    """The number of hidden characters in its texts."""
    fields: list[FieldTokens]
    """Of the largest field first."""


class ToolDetail(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The definition of a tool as a model reads it."""

    arguments: list[FieldTokens]
    hidden: list[HiddenText]
    definition: list[TextRun]
    """The JSON of the fields that hosts send to a model."""
    is_shortened: bool


def summarize(number: int, tool: Tool) -> ToolSummary:
    """Return the tokens and the hidden characters of a tool."""
    whole = _fields(tool)
    sent = definition_for_model(tool)
    fields = [FieldTokens(name, _tokens({name: value}), name in sent) for name, value in whole.items()]
    return ToolSummary(
        number=number,
        name=visible(tool.name[:_MOST_NAME]),
        tokens=tokens(tool),
        sent_tokens=tokens(sent),
        hidden=sum(each.count for each in hidden_texts(whole)),
        fields=sorted(fields, key=lambda each: -each.tokens),
    )


def describe(tool: Tool) -> ToolDetail:
    """Return the definition of a tool as a model reads it."""
    schemas = tool.input_schema.get("properties")
    properties = schemas if isinstance(schemas, dict) else {}
    arguments = [FieldTokens(visible(name[:_MOST_NAME]), _tokens({name: value})) for name, value in properties.items()]
    definition = codec.encode(definition_for_model(tool))
    text = indented(definition, 50 * _MOST_CHARACTERS) or definition.decode()
    hidden = list(hidden_texts(_fields(tool)))
    return ToolDetail(
        arguments=sorted(arguments, key=lambda each: -each.tokens)[:_MOST_ARGUMENTS],
        hidden=hidden[:_MOST_HIDDEN],
        definition=[
            TextRun(is_run_hidden, escape_characters(run) if is_run_hidden else run)
            for is_run_hidden, run in runs(text[:_MOST_CHARACTERS])
        ],
        is_shortened=len(text) > _MOST_CHARACTERS,
    )


def hidden_texts(value: Any) -> Iterator[HiddenText]:
    """Yield the texts with hidden characters in JSON data, among the first `_MOST_STRINGS` texts."""
    for number, (path, text) in enumerate(_texts(value)):
        if number == _MOST_STRINGS:
            return
        if text.isascii() and text.isprintable():
            continue
        hidden = {character for character in set(text) if is_hidden(character)}
        if hidden:
            first = next(place for place, character in enumerate(text) if character in hidden)
            around = text[max(0, first - _AROUND) : first + _AROUND]
            count = sum(character in hidden for character in text)
            yield HiddenText(visible(path), count, visible(around), _message(text) if hidden & _TAGGED.keys() else "")


def _texts(value: Any) -> Iterator[tuple[str, str]]:
    """Yield each text in JSON data with its path, names of members too."""
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, found = pending.pop()
        if isinstance(found, str):
            yield path, found
        elif isinstance(found, dict):
            yield from ((f"{path} (name)", name) for name in found)
            pending += [(f"{path}.{name}"[-_MOST_NAME:].lstrip("."), each) for name, each in reversed(found.items())]
        elif isinstance(found, list):
            pending += [(f"{path}[{place}]", each) for place, each in reversed([*enumerate(found)])]


def _message(text: str) -> str:
    """Return what the invisible copies of ASCII in a text say."""
    return "".join(_TAGGED[each] for each in text if each in _TAGGED)[:_MOST_CHARACTERS]


def _fields(tool: Tool) -> JSONObject:
    """Return the fields of a definition, as they are encoded."""
    fields: JSONObject = msgspec.json.decode(codec.encode(tool))
    return fields


def _tokens(fields: JSONObject) -> int:
    return len(codec.encode(fields)) // _BYTES + 1
