"""The prompts that ask a person for approval, and their display.

What the server wrote is marked as such, with hidden characters escaped; the effect is described in accord's own words.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from accord.host.definitions import MAX_SHOWN_BYTES, DefinitionChange, json_lines
from accord.host.line_difference import difference
from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.sampling import CreateMessageParams, CreateMessageResult
from accord.messages.tools import ToolAnnotations
from accord.visible_text import single_line, truncate, visible

_MAX_LINES = 200
"""Lines of one part of a prompt; what is left out is counted."""
_MAX_DESCRIPTION_LINES = 40
_MAX_DEFINITION_LINES = 2_000
_MAX_DEFINITION_BYTES = 512 << 10
"""Of all definitions in one prompt: a server could otherwise send lines without an end."""
_MAX_TEXT = 2_000
_MAX_NAME = 200
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
        lines.quote(_argument_lines(self.before, self.arguments), "  ")
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
            head, value = f"Send this answer of {self.model} to the server {self.server!r}?", _plain(self.answer)
        else:
            head, value = f"Send this request of the server {self.server!r} to {self.model}?", _plain(self.request)
        return _Lines(head).quote(_value_lines(value), "  | ").text()


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
        """Add lines of others behind a mark, at most `most`."""
        self._lines += [mark + line for line in lines[:most]]
        return self.leave_out(f"{len(lines) - most:,} more lines", mark) if len(lines) > most else self

    def leave_out(self, what: str, mark: str = "") -> _Lines:
        """Say what is left out, also in the first line."""
        self._lines.append(f"{mark}… {what}")
        return self.mark_incomplete()

    def mark_incomplete(self) -> _Lines:
        """Say in the first line that not all of it is shown."""
        self._lines[0] = self._lines[0].removesuffix(_INCOMPLETE) + _INCOMPLETE
        return self

    def text(self) -> str:
        return "\n".join(self._lines)


def _name(text: str) -> str:
    """Return a short text of others in one line."""
    return single_line(truncate(text, _MAX_NAME))


def _text_lines(text: str) -> list[str]:
    return [visible(line) for line in truncate(text, _MAX_TEXT).split("\n")]


def _argument_lines(before: JSONObject | None, now: JSONObject) -> list[str]:
    new = _value_lines(now)
    return new if before is None else difference(_value_lines(before), new, len(new)) or new


def _value_lines(value: Any) -> list[str]:
    """Return a JSON value as lines of text in which hidden characters are escaped."""
    return json_lines(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _plain(value: Any) -> Any:
    return msgspec.json.decode(codec.encode(value))
