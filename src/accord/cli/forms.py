"""Forms in a terminal: the user fills in each field, corrects invalid values, and reviews the form.

"Clients SHOULD allow users to review and modify their responses before sending" (client, Elicitation): a form of
several fields is shown again before it is sent; a form of one field can be edited until Enter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from accord.cli import keyboard
from accord.cli.columns import one_line
from accord.cli.failures import red
from accord.cli.keyboard import PromptRefused
from accord.cli.screen import quoted, screen
from accord.errors import Mismatch
from accord.redaction import redact
from accord.schema.forms import FormField, is_numbered, parse, text_of

Content = dict[str, Any]

_MOST_CHOICES = 50
"""The maximum number of choices that are listed; others can still be typed."""

_HINTS = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "yes or no",
    "choices": "several, with commas between",
    "email": "an email address",
    "uri": "a URI",
    "date": "a date: 2026-11-21",
    "date-time": "a date and time: 2026-11-21 14:00",
}

_HIDDEN = "********"
_YES, _NO, _EDIT, _CANCEL = "yes", "no", "edit", "cancel"


async def fill(fields: Sequence[FormField], provided: Content) -> Content:
    """Return the content of a form; the user fills in what is not `given`. Raises `PromptRefused`."""
    content, prompted = dict(provided), [field for field in fields if field.name not in provided]
    if not fields:
        await confirm("Agree?")
        return content
    while True:
        for field in prompted:
            await _fill_in(field, content)
        if len(fields) == 1 or await _review(fields, content):
            return content


async def _fill_in(field: FormField, content: Content) -> None:
    """Prompt for one field until its value is valid; an empty line keeps the current value, or leaves the field out."""
    _describe(field)
    start = content.get(field.name, field.default)
    while True:
        text = await keyboard.prompt(f"  {click.style(_label(field), bold=True)}{_start(field, start)}: ")
        if text.strip():
            try:
                content[field.name] = parse(field, text)
                return
            except Mismatch as exc:
                screen.print_prompt(f"    {red(one_line(exc.reason))}")
        elif start is not None:
            content[field.name] = start
            return
        elif not field.required:
            return
        else:
            screen.print_prompt(f"    {red('this is needed')}; {keyboard.DECLINE} declines")


async def _review(fields: Sequence[FormField], content: Content) -> bool:
    """Return whether the user sends the form; otherwise it is edited. Raises `PromptRefused`."""
    screen.print_prompt()
    for field in fields:
        value = (
            display_value(field, content[field.name]) if field.name in content else click.style("left out", dim=True)
        )
        screen.print_prompt(f"  {_label(field)}: {value}")
    return await choose("Send this?", (_YES, _EDIT, _NO, _CANCEL)) == _YES


async def choose(question: str, words: Sequence[str], default: str = "") -> str:
    """Return the word that the user chose, by its first letters; an empty line is the default, if there is one.

    Raises `PromptRefused` for no and cancel.
    """
    choices = ", ".join(f"{click.style(word[0], underline=True)}{word[1:]}" for word in words)
    start = f" [{default}]" if default else ""
    while True:
        await keyboard.discard_typed()  # a decision is typed after its question
        text = await keyboard.prompt(f"  {click.style(question, bold=True)} ({choices}){start}: ")
        text = text.strip().casefold() or default
        chosen = [word for word in words if text and word.startswith(text)]
        if chosen in ([_NO], [_CANCEL]):
            raise PromptRefused("decline" if chosen == [_NO] else "cancel")
        if chosen:
            return chosen[0]


async def confirm(question: str) -> None:
    """Return when the user answers yes. Raises `PromptRefused` for no and cancel."""
    await choose(question, (_YES, _NO, _CANCEL))


# --- output ----------------------------------------------------------------------------------------------------


def display_value(field: FormField, value: Any) -> str:
    """Return a value for display; the value of a field for a password or a token is hidden."""
    names = {field.name: "", field.title or "": ""}
    hidden = any(redact({name: "x"}) != {name: "x"} for name in names)
    return _HIDDEN if hidden else format_value(field, value)


def format_value(field: FormField, value: Any) -> str:
    """Return a value as text: the title of a choice, yes or no for a boolean."""
    if isinstance(value, bool):
        return _YES if value else _NO
    if isinstance(value, list):
        return ", ".join(format_value(field, item) for item in value)
    titles = dict(field.choices)
    return one_line(titles.get(value, value if isinstance(value, str) else text_of(value)))


def _label(field: FormField) -> str:
    return one_line(field.title or field.name, 60)


def _start(field: FormField, start: Any) -> str:
    if start is not None:
        return f" [{display_value(field, start)}]"
    return "" if field.required else click.style(" (may be left out)", dim=True)


def _describe(field: FormField) -> None:
    """Print the description of a field and its constraints."""
    screen.print_prompt()
    if field.description:
        screen.print_prompt(quoted(field.description))
    for line in _choice_lines(field):
        screen.print_prompt(line)
    if constraints := ", ".join(filter(None, (_HINTS.get(field.kind), *_bounds(field)))):
        screen.print_prompt(click.style(f"  {constraints}", dim=True))


def _choice_lines(field: FormField) -> list[str]:
    lines = [
        f"  {f'{place:>3}) ' if is_numbered(field) else '  - '}{one_line(title)}"
        for place, (_, title) in enumerate(field.choices[:_MOST_CHOICES], 1)
    ]
    remaining = len(field.choices) - len(lines)
    return [*lines, f"      … {remaining:,} more"] if remaining > 0 else lines


def _bounds(field: FormField) -> list[str]:
    unit = "chosen" if field.kind == "choices" else "characters"
    bounds: Mapping[str, Any] = {
        "at least {}": field.minimum,
        "at most {}": field.maximum,
        f"at least {{}} {unit}": field.min_length,
        f"at most {{}} {unit}": field.max_length,
    }
    return [text.format(msgspec.json.encode(bound).decode()) for text, bound in bounds.items() if bound is not None]
