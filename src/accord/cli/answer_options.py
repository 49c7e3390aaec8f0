"""Options of the commands in which a server may ask, and who answers.

    --answer size=L    a field of a form; the rest is asked for, or takes its default where there is no terminal
    --yes              forms go out with these answers and their defaults, pages are agreed to
    --decline          nothing is answered

On a terminal a person is asked, one question after the other. Elsewhere, what the options do not answer is declined,
with a line on stderr that says so.
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
    """What is answered without asking a person."""

    answer: tuple[tuple[str, str], ...] = ()
    yes: bool = False
    decline: bool = False
    open: bool = False
    sample_with: tuple[str, ...] = ()


def client_options(target: str, asking: AnswerOptions) -> dict[str, Any]:
    """What makes a `Client` answer, for `run_with_client`. Raises `TargetError`."""
    from accord.cli.input_handlers import TerminalHandlers  # only the commands that may be asked load what answers

    if asking.decline and (asking.answer or asking.yes):
        raise click.UsageError("--decline goes with neither --answer nor --yes")
    person = TerminalHandlers(str(parse(target)), asking)
    click.get_current_context().call_on_close(person.warn_unused)
    return {
        "elicitation": person.elicit,
        "elicitation_modes": ("form", "url"),
        "sampling": person.sample,
        "sampling_tools": True,
    }


def _answers(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = key_values(ctx, param, value)
    for key, _ in pairs:
        if [each for each, _ in pairs].count(key) > 1:
            raise click.BadParameter(f"{key!r} is given twice; write several choices with commas between")
    return pairs


def _words(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
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
        "--sample-with", metavar="COMMAND", callback=_words,
        help="Answer sampling with a command: the request as JSON on stdin, text or JSON on stdout.",
    ),
)  # fmt: skip

asking_options: Decorator = options_as("asking", AnswerOptions, _OPTIONS)
"""Give a command the options of `AnswerOptions`; it gets them as `asking`."""
