"""The prompts that ask a person for approval, and their display.

What the server wrote is marked as such, with hidden characters escaped; the effect is described in accord's own words.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from accord.host.definitions import MAX_SHOWN_BYTES, DefinitionChange, json_lines
from accord.host.line_difference import difference, with_few_removed
from accord.lazy_patterns import lazy_pattern
from accord.messages.base import JSONObject
from accord.messages.sampling import CreateMessageParams, CreateMessageResult
from accord.messages.tools import ToolAnnotations
from accord.visible_text import escape_characters, indented, single_line, truncate, visible

_MAX_LINES = 200
"""Lines of one part of a prompt; what is left out is counted."""
_CONTEXT_LINES = 2
_MAX_DESCRIPTION_LINES = 40
_MAX_DEFINITION_LINES = 2_000
_MAX_DEFINITION_BYTES = 512 << 10
"""Of all definitions in one prompt: a server could otherwise send lines without an end."""
_MAX_VALUE = 64 << 10
"""Characters of a JSON value that are made into lines: more than `_MAX_LINES` of them, of at most 200 characters."""
_MAX_END = 16 << 10
"""Likewise at its end."""
_MAX_SHORT = 1_000
"""Bytes of an argument that is shown before longer ones."""
_MAX_INDENTED = 1 << 20
"""Bytes of a JSON value that is indented before it is cut."""
_MAX_TEXT = 2_000
_MAX_NAME = 200
_MAX_MIXED = 5
_WORD, _LATIN, _LIKE_LATIN = (
    lazy_pattern(r"\w+"),
    lazy_pattern("[A-Za-z]"),
    lazy_pattern("[\u0370-\u03ff\u0400-\u052f]"),
)
_STACKED = lazy_pattern(
    "(?<=[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]{4})"
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]+"
)
"""Combining marks behind four others: no writing has so many on one letter, and they can cover the lines around it."""
_INCOMPLETE = " NOT ALL OF IT IS SHOWN."


class CommandPrompt(msgspec.Struct, frozen=True):
    """May this program be started as the server `server`? `lines` describe it."""

    server: str
    lines: list[str]

    def text(self) -> str:
        """Return the prompt as lines of text."""
        return _Lines(f"Start the server {self.server!r}?").quote(self.lines).text()


class DefinitionsPrompt(msgspec.Struct, frozen=True):
    """May these definitions of a server be used?"""

    server: str
    changes: list[DefinitionChange]

    def text(self) -> str:
        """Return the prompt as lines of text."""
        lines: list[str] = []
        left_out = size = cut = 0
        for number, change in enumerate(self.changes):
            size += min(len(change.definition.json), MAX_SHOWN_BYTES)
            cut += max(len(change.definition.json) - MAX_SHOWN_BYTES, 0)
            if len(lines) > _MAX_DEFINITION_LINES or size > _MAX_DEFINITION_BYTES:
                left_out = len(self.changes) - number
                break
            state = "new" if change.before is None else "CHANGED since you approved it"
            name = change.definition.kind + (f" {_name(change.definition.name)!r}" if change.definition.name else "")
            lines += [f"{name}, {state}; the server's words:", *(f"  | {line}" for line in change.lines())]
        head = f"Use {len(self.changes)} definitions of the server {self.server!r}?"
        shown = _Lines(head).quote(lines, most=_MAX_DEFINITION_LINES)
        if left_out:
            shown.leave_out(f"{left_out:,} more definitions")
        return (shown.mark_incomplete() if cut else shown).text()


class CallPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """May this call be sent? The prompt is answered with its `token`."""

    token: str
    principal: str
    server: str
    tool: str
    """The server's own name of the tool."""
    title: str
    """The server's title of the tool, or its name."""
    description: str
    """The server's words about the tool."""
    effect: str
    """What the call may do, in accord's words."""
    arguments: JSONObject
    """The arguments as they will be sent."""
    before: JSONObject | None
    """The arguments of the last approved call of this tool; None for the first one."""
    reason: str
    """Why the policy asks."""

    def text(self) -> str:
        """Return the prompt as lines of text."""
        who = f" for {_name(self.principal)!r}" if self.principal else ""
        arguments = "arguments:" if self.before is None else "arguments, and what changed since the last approved call:"
        lines = _Lines(f"Call {_name(self.tool)!r} on the server {self.server!r}{who}?")
        lines.add(
            f"effect: {self.effect}", f"asked because: {single_line(truncate(self.reason, _MAX_TEXT))}", arguments
        )
        value, before = _short_first(self.arguments), None if self.before is None else _short_first(self.before)
        lines.quote_value(value, "  ", before)
        if mixed := _mixed_words(f"{self.tool}\n{_value_text(value)[0]}"):
            lines.add(f"take care: letters of several alphabets in one word: {mixed}")
        lines.add(f"the server calls it {_name(self.title)!r} and says:")
        return lines.quote(_text_lines(self.description), "  | ", _MAX_DESCRIPTION_LINES).text()


class SamplingPrompt(msgspec.Struct, frozen=True):
    """May the server's request be sent to a model, or the model's answer, if there is one, to the server?"""

    server: str
    model: str
    request: CreateMessageParams
    answer: CreateMessageResult | None = None

    def text(self) -> str:
        """Return the prompt as lines of text."""
        if self.answer is not None:
            head = f"Send this answer of {self.model} to the server {self.server!r}?"
        else:
            head = f"Send this request of the server {self.server!r} to {self.model}?"
        return _Lines(head).quote_value(self.answer or self.request, "  | ").text()


Prompt: TypeAlias = CommandPrompt | DefinitionsPrompt | CallPrompt | SamplingPrompt


def effect_of(annotations: ToolAnnotations | None, trusted: bool) -> str:
    """Describe what a call may do. Annotations of a server that is not trusted are claims: they may be false."""
    if annotations is None:
        return "unknown; it may read, change or delete anything that the server can reach"
    if annotations.read_only_hint:
        effect = "reads only"
    elif annotations.destructive_hint is False:
        effect = "adds to what is there"
    else:
        effect = "may change or delete what is there"
    if annotations.open_world_hint is not False:
        effect += ", and may reach the outside world"
    return effect if trusted else f"unknown; the server claims: {effect}"


class _Lines:
    """The lines of a prompt. A text that is left out is announced in the first one."""

    def __init__(self, head: str) -> None:
        self._lines = [head]

    def add(self, *lines: str) -> _Lines:
        """Add lines in accord's words."""
        self._lines += lines
        return self

    def quote(self, lines: list[str], mark: str = "", most: int = _MAX_LINES) -> _Lines:
        """Add lines of others behind a mark, at most `most`: of more, the first and the last ones."""
        if len(lines) <= most:
            return self.add(*(mark + line for line in lines))
        last = most // 4
        self.add(*(mark + line for line in lines[: most - last]))
        self.leave_out(f"{len(lines) - most:,} more lines", mark)
        return self.add(*(mark + line for line in lines[-last:]))

    def quote_value(self, value: Any, mark: str, before: Any = None) -> _Lines:
        """Add a JSON value, with what changed since `before`. Only a part of a large one becomes lines: the
        lines of megabytes would take seconds. Of many lines, the changed ones are shown, wherever they are. Removed
        lines take no room from those of the value.
        """
        text, left_out = _value_text(value)
        lines = new = json_lines(text)
        removed = 0
        if before is not None:
            is_long = len(new) > _MAX_LINES
            context = _CONTEXT_LINES if is_long else len(new)
            changed = with_few_removed(difference(json_lines(_value_text(before)[0]), new, context))
            removed = sum(line[0] == "-" for line in changed)
            lines = changed or new
            if is_long and changed:
                self.leave_out("unchanged lines are left out", mark)
        self.quote(lines, mark, _MAX_LINES + removed)
        return self.leave_out(f"{left_out:,} more characters", mark) if left_out else self

    def leave_out(self, what: str, mark: str = "") -> _Lines:
        """Say what is left out, also in the first line."""
        self._lines.append(f"{mark}… {what}")
        return self.mark_incomplete()

    def mark_incomplete(self) -> _Lines:
        """Say in the first line that not all of it is shown."""
        self._lines[0] = self._lines[0].removesuffix(_INCOMPLETE) + _INCOMPLETE
        return self

    def text(self) -> str:
        return _STACKED.sub(lambda found: escape_characters(found[0]), "\n".join(self._lines))


def _name(text: str) -> str:
    """Return a short text of others in one line."""
    return single_line(truncate(text, _MAX_NAME))


def _text_lines(text: str) -> list[str]:
    return [visible(line) for line in truncate(text, _MAX_TEXT).split("\n")]


def _mixed_words(text: str) -> str:
    """Return words in which Latin, Greek or Cyrillic letters mix, with the others escaped: some look alike."""
    if text.isascii():
        return ""
    found = [word for word in _WORD.findall(text) if _LATIN.search(word) and _LIKE_LATIN.search(word)]
    words = dict.fromkeys(truncate(each, _MAX_NAME) for each in found[:_MAX_MIXED])
    more = f", … {len(found) - _MAX_MIXED:,} more" if len(found) > _MAX_MIXED else ""
    return ", ".join(each.encode("unicode_escape").decode() for each in words) + more


def _short_first(arguments: JSONObject) -> JSONObject:
    """Return arguments with the short ones first: a path between two long texts would be left out otherwise."""
    return dict(sorted(arguments.items(), key=lambda each: len(msgspec.json.encode(each)) > _MAX_SHORT))


def _value_text(value: Any) -> tuple[str, int]:
    """Return a JSON value as text, of a large one the beginning and the end, and how many characters are left out. It
    has line breaks and indentation, unless its nesting would multiply the size, or it is so large that this would take
    long.
    """
    encoded = msgspec.json.encode(value)
    if len(encoded) > _MAX_INDENTED:
        text = f"{encoded[:_MAX_VALUE].decode(errors='ignore')}\n{encoded[-_MAX_END:].decode(errors='ignore')}"
        return text, len(encoded) - _MAX_VALUE - _MAX_END
    text = indented(encoded, max(2 * len(encoded), _MAX_VALUE)) or encoded.decode()
    left_out = len(text) - _MAX_VALUE - _MAX_END
    return (f"{text[:_MAX_VALUE]}\n{text[-_MAX_END:]}", left_out) if left_out > 0 else (text, 0)
