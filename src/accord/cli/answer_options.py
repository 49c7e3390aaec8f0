"""Options for the commands in which a server may send questions.

--answer size=L    a field of a form; other fields are asked for, or take their default without a terminal
--yes              forms are sent with these answers and their defaults, URLs are accepted
--decline          everything is declined

On a terminal the user answers one question after another. Without a terminal, questions that the options do not answer
are declined, with a line on stderr.
"""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from typing import Any

import click

from accord.cli.settings import Decorator, key_values, options_as
from accord.client.target import parse


@dataclass(frozen=True)
class AnswerOptions:
    """Answers that need no user at the terminal."""

    answer: tuple[tuple[str, str], ...] = ()
    yes: bool = False
    decline: bool = False
    open: bool = False
    sample_with: tuple[str, ...] = ()


def client_options(target: str, answers: AnswerOptions) -> dict[str, Any]:
    """Return the options that make a `Client` answer questions, for `run_with_client`. Raises `TargetError`."""
    from accord.cli.input_handlers import TerminalHandlers  # loaded only by the commands that need it

    if answers.decline and (answers.answer or answers.yes):
        raise click.UsageError("--decline goes with neither --answer nor --yes")
    handlers = TerminalHandlers(str(parse(target)), answers)
    click.get_current_context().call_on_close(handlers.warn_unused)
    return {
        "elicitation": handlers.elicit,
        "elicitation_modes": ("form", "url"),
        "sampling": handlers.sample,
        "sampling_tools": True,
    }


def _answers(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = key_values(ctx, param, value)
    for key, _ in pairs:
        if [other for other, _ in pairs].count(key) > 1:
            raise click.BadParameter(f"{key!r} is given twice; write several choices with commas between")
    return pairs


def _command_words(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    if value is None:
        return ()
    try:
        words = shlex.split(value)
    except ValueError as exc:
        raise click.BadParameter(f"{value!r} is not a command line: {exc}") from exc
    if not words or shutil.which(words[0]) is None:
        raise click.BadParameter(f"{value!r}: no such program")
    return tuple(words)


_OPTIONS = (
    click.option(
        "--answer", multiple=True, metavar="KEY=VALUE", callback=_answers,
        help="Answer the field KEY of a form; may be repeated.",
    ),
    click.option("--yes", is_flag=True, help="Accept elicitation with the default values."),
    click.option("--decline", is_flag=True, help="Decline all elicitation."),
    click.option("--open", is_flag=True, help="Ask before opening URLs of the server (URL elicitation)."),
    click.option(
        "--sample-with", metavar="COMMAND", callback=_command_words,
        help="Answer sampling with a command: the request as JSON on stdin, text or JSON on stdout.",
    ),
)  # fmt: skip

asking_options: Decorator = options_as("answers", AnswerOptions, _OPTIONS)
"""Add the options of `AnswerOptions` to a command, as the argument `answers`."""
