"""The definitions that the user approved once, and what a server offers now.

The digest of a tool covers its name, title, description, schemas, annotations and icons; that of a prompt likewise its
arguments; that of the instructions their text. A definition that is new or has changed is neither listed nor callable
until the user approves it. (A server may change what it offers after it was approved; Tools, Security Considerations.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from accord.host.consent import digest
from accord.host.line_difference import difference, with_few_removed
from accord.host.state import Pin
from accord.lazy_patterns import lazy_pattern
from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.prompts import Prompt
from accord.messages.tools import Tool
from accord.visible_text import indented, visible

INSTRUCTIONS = "instructions"
_CONTEXT_LINES = 2
MAX_SHOWN_BYTES = 64 << 10
"""The part of a definition that is shown; of the rest, the size and the digest."""
_MAX_INDENTED_BYTES = 4 * MAX_SHOWN_BYTES
"""Limit of a definition with indentation; nesting could multiply its size."""
_LINE_CHARACTERS = 200
"""Longer lines are shown as several."""
_NEXT_LINE, _CONTINUED = "↳ ", "… "
"""The marks of the next line of a string, and of the rest of a long one."""
_ESCAPE = lazy_pattern(r"\\.")

Key = tuple[str, str]
"""The kind of a definition ("tool", "prompt", "instructions"), and its name."""


class Definition(msgspec.Struct, frozen=True):
    """A definition as a server offers it. `json` is canonical: members are sorted."""

    kind: str
    name: str
    json: bytes
    digest: str = ""
    """The digest of `json`: it is compared in each call."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "digest", digest(self.json))

    @property
    def key(self) -> Key:
        """Return the kind and the name."""
        return self.kind, self.name

    def pin(self, at: float) -> Pin:
        """Return the approval of the definition at a time, in seconds since 1970."""
        return Pin(self.kind, self.name, self.digest, self.json, at)


class _Members(msgspec.Struct, omit_defaults=True):
    """The members that a definition has, in the order of their names."""

    annotations: Any = msgspec.UNSET
    arguments: Any = msgspec.UNSET
    description: Any = msgspec.UNSET
    icons: Any = msgspec.UNSET
    inputSchema: Any = msgspec.UNSET
    name: Any = msgspec.UNSET
    outputSchema: Any = msgspec.UNSET
    title: Any = msgspec.UNSET


_decode = msgspec.json.Decoder(_Members).decode
_encode = msgspec.json.Encoder(order="deterministic").encode


def definition_of(item: Tool | Prompt) -> Definition:
    """Return the definition of a tool or a prompt."""
    kind = "tool" if isinstance(item, Tool) else "prompt"
    return Definition(kind, item.name, _encode(_decode(codec.encode(item))))


def instructions_of(text: str | None) -> Definition | None:
    """Return the instructions of a server as a definition; None without any."""
    return Definition(INSTRUCTIONS, "", msgspec.json.encode(text)) if text else None


class DefinitionChange(msgspec.Struct, frozen=True):
    """A definition that waits for an approval; `before` is the one that was approved, None for a new one."""

    definition: Definition
    before: Pin | None = None

    def lines(self) -> list[str]:
        """Return the difference as lines with `+`, `-` or a space in front; hidden characters are escaped."""
        old = [] if self.before is None else _lines(self.before.definition)
        new = _lines(self.definition.json)
        return with_few_removed(difference(old, new, _CONTEXT_LINES))


def _lines(definition: bytes) -> list[str]:
    """Return a definition as lines of text."""
    if len(definition) > MAX_SHOWN_BYTES:
        rest = f"… {len(definition) - MAX_SHOWN_BYTES:,} more bytes; SHA-256 of all: {digest(definition)}"
        return [*json_lines(definition[:MAX_SHOWN_BYTES].decode(errors="replace")), rest]
    return json_lines(indented(definition, _MAX_INDENTED_BYTES) or definition.decode())


def json_lines(text: str) -> list[str]:
    """Return JSON as lines, with hidden characters escaped. A string of several lines is shown as so many, and a long
    one in pieces: these have a mark in front, so that none looks like another member.
    """
    return [visible(piece) for line in text.split("\n") for piece in _pieces(line)]


def _pieces(line: str) -> Iterator[str]:
    indent = " " * (len(line) - len(line.lstrip(" ")))
    mark = ""
    for part in _ESCAPE.sub(lambda found: "\n" if found[0] == r"\n" else found[0], line).split("\n"):
        for start in range(0, len(part) or 1, _LINE_CHARACTERS):
            yield mark + part[start : start + _LINE_CHARACTERS]
            mark = f"{indent}{_CONTINUED}"
        mark = f"{indent}{_NEXT_LINE}"


class Definitions:
    """The definitions of one server: those that the user approved, and those that the server offers.

    Until the server was asked in this run, what it offers is unknown; then the approved definitions are listed.
    """

    def __init__(self, pins: Mapping[Key, Pin] | None = None) -> None:
        self._pins: dict[Key, Pin] = dict(pins or {})
        self._offered: dict[Key, Definition] | None = None

    def offer(self, offered: Iterable[Definition]) -> bool:
        """Take what the server offers now; return whether the listed definitions changed."""
        before = self.listed
        self._offered = {each.key: each for each in offered}
        return before != self.listed

    def approve(self, pins: Iterable[Pin]) -> bool:
        """Take approvals; return whether the listed definitions changed."""
        before = self.listed
        self._pins |= {(pin.kind, pin.name): pin for pin in pins}
        return before != self.listed

    @property
    def changes(self) -> list[DefinitionChange]:
        """Return the offered definitions that wait for an approval."""
        found: list[DefinitionChange] = []
        for key, each in (self._offered or {}).items():
            pin = self._pins.get(key)
            if pin is None or pin.digest != each.digest:
                found.append(DefinitionChange(each, pin))
        return found

    @property
    def listed(self) -> dict[Key, Pin]:
        """Return the approved definitions that the server offers, or offered last, in the order of kinds and names:
        the same list in each run, whether the server is connected or not.
        """
        return {key: pin for key, pin in sorted(self._pins.items()) if self._is_offered(pin)}

    def _is_offered(self, pin: Pin) -> bool:
        if self._offered is None:
            return True
        each = self._offered.get((pin.kind, pin.name))
        return each is not None and each.digest == pin.digest

    def find(self, kind: str, name: str) -> Pin | None:
        """Return an approved definition that the server offers, or None."""
        pin = self._pins.get((kind, name))
        return pin if pin is not None and self._is_offered(pin) else None


def tool_of(pin: Pin) -> Tool:
    """Return the tool of an approved definition."""
    tool: Tool = codec.decoder(Tool).decode(pin.definition)
    return tool


def prompt_of(pin: Pin) -> Prompt:
    """Return the prompt of an approved definition."""
    prompt: Prompt = codec.decoder(Prompt).decode(pin.definition)
    return prompt


def arguments_of(text: bytes) -> JSONObject:
    """Return the arguments of a call as an object."""
    decoded: JSONObject = msgspec.json.decode(text, type=dict)
    return decoded
