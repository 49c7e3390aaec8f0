"""A form in a terminal: each field asked for in turn, a wrong value told and asked again, the whole looked over.

"Clients SHOULD allow users to review and modify their responses before sending" (client, Elicitation): a form of
several fields is shown once more; the line of a single field can be edited until Enter.
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
"""Choices that are listed; the others can still be typed."""

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


async def fill(fields: Sequence[FormField], given: Content) -> Content:
    """The content of a form; what is `given` is not asked for. Raises `PromptRefused`."""
    content, asked = dict(given), [field for field in fields if field.name not in given]
    if not fields:
        await confirm("Agree?")
        return content
    while True:
        for field in asked:
            await _fill_in(field, content)
        if len(fields) == 1 or await _review(fields, content):
            return content


async def _fill_in(field: FormField, content: Content) -> None:
    """One field, asked for until it fits; an empty line keeps what is there, or leaves it out."""
    _describe(field)
    start = content.get(field.name, field.default)
    while True:
        typed = await keyboard.prompt(f"  {click.style(_label(field), bold=True)}{_start(field, start)}: ")
        if typed.strip():
            try:
                content[field.name] = parse(field, typed)
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
    """Whether it may go out as it is; otherwise it is edited. Raises `PromptRefused`."""
    screen.print_prompt()
    for field in fields:
        shown = (
            display_value(field, content[field.name]) if field.name in content else click.style("left out", dim=True)
        )
        screen.print_prompt(f"  {_label(field)}: {shown}")
    return await _decide("Send this?", (_YES, _EDIT, _NO, _CANCEL)) == _YES


async def _decide(question: str, words: Sequence[str]) -> str:
    """One of the words, or its first letter. Raises `PromptRefused` for no and cancel."""
    choices = ", ".join(f"{click.style(word[0], underline=True)}{word[1:]}" for word in words)
    while True:
        typed = (await keyboard.prompt(f"  {click.style(question, bold=True)} ({choices}): ")).strip().casefold()
        chosen = [word for word in words if typed and word.startswith(typed)]
        if chosen in ([_NO], [_CANCEL]):
            raise PromptRefused("decline" if chosen == [_NO] else "cancel")
        if chosen:
            return chosen[0]


async def confirm(question: str) -> None:
    """A yes. Raises `PromptRefused` for anything else that is an answer."""
    await _decide(question, (_YES, _NO, _CANCEL))


# --- how a field is shown --------------------------------------------------------------------------------------


def display_value(field: FormField, value: Any) -> str:
    """A value as it may stand on a screen: that of a field for a password or a token is hidden."""
    names = {field.name: "", field.title or "": ""}
    hidden = any(redact({name: "x"}) != {name: "x"} for name in names)
    return _HIDDEN if hidden else format_value(field, value)


def format_value(field: FormField, value: Any) -> str:
    """A value as people write it: by its title, yes or no."""
    if isinstance(value, bool):
        return _YES if value else _NO
    if isinstance(value, list):
        return ", ".join(format_value(field, each) for each in value)
    titles = dict(field.choices)
    return one_line(titles.get(value, value if isinstance(value, str) else text_of(value)))


def _label(field: FormField) -> str:
    return one_line(field.title or field.name, 60)


def _start(field: FormField, start: Any) -> str:
    if start is not None:
        return f" [{display_value(field, start)}]"
    return "" if field.required else click.style(" (may be left out)", dim=True)


def _describe(field: FormField) -> None:
    """What a field is about, and what it takes; nothing where its name says it all."""
    screen.print_prompt()
    if field.description:
        screen.print_prompt(quoted(field.description))
    for line in _choice_lines(field):
        screen.print_prompt(line)
    if about := ", ".join(filter(None, (_HINTS.get(field.kind), *_bounds(field)))):
        screen.print_prompt(click.style(f"  {about}", dim=True))


def _choice_lines(field: FormField) -> list[str]:
    lines = [
        f"  {f'{place:>3}) ' if is_numbered(field) else '  - '}{one_line(title)}"
        for place, (_, title) in enumerate(field.choices[:_MOST_CHOICES], 1)
    ]
    more = len(field.choices) - len(lines)
    return [*lines, f"      … {more:,} more"] if more > 0 else lines


def _bounds(field: FormField) -> list[str]:
    what = "chosen" if field.kind == "choices" else "characters"
    bounds: Mapping[str, Any] = {
        "at least {}": field.minimum,
        "at most {}": field.maximum,
        f"at least {{}} {what}": field.min_length,
        f"at most {{}} {what}": field.max_length,
    }
    return [text.format(msgspec.json.encode(bound).decode()) for text, bound in bounds.items() if bound is not None]
