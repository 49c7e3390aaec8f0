"""Who answers what a server asks: the options of the command, a person at the terminal, or nobody.

One question stands at a time, under the name that the server was given here. What is answered or declined
without a person is told in a line on stderr.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from accord.cli import keyboard
from accord.cli.asking import Asking
from accord.cli.failures import red
from accord.cli.forms import fill, seen
from accord.cli.keyboard import Refused
from accord.cli.pages import described, visit_page
from accord.cli.sampling import run_command, type_answer
from accord.cli.screen import in_one_line, quoted, screen
from accord.client.handlers import ClientContext
from accord.errors import InternalError, Mismatch
from accord.messages.elicitation import ElicitParams, ElicitResult
from accord.messages.sampling import CreateMessageParams, CreateMessageResult
from accord.schema.forms import FormField, fields, parse

_MODEL = "a model"
_NOBODY = "no terminal to answer at"


class Person:
    """The handlers of a client. `server` is what the person knows the server as, not what it calls itself."""

    def __init__(self, server: str, asking: Asking) -> None:
        self._server = in_one_line(server)
        self._asking = asking
        self._unused: dict[str, str] = dict(asking.answer)
        self._turn = asyncio.Lock()

    async def elicit(self, params: ElicitParams, context: ClientContext) -> ElicitResult:
        """Answer a form or a page."""
        async with self._turn:
            try:
                self._refuse_all(params.message)
                if params.mode != "url":
                    return ElicitResult(action="accept", content=await self._fill(params, context))
                await self._visit(params.url or "", params.message, context)
                return ElicitResult(action="accept")
            except Refused as exc:
                return ElicitResult(action=exc.action)

    async def sample(self, params: CreateMessageParams, context: ClientContext) -> CreateMessageResult | None:
        """Answer for a model; None declines."""
        async with self._turn:
            try:
                self._refuse_all(_MODEL)
                return await self._sample(params, context)
            except Refused:
                return None

    def tell_unused(self) -> None:
        """Say which answers nobody asked for."""
        for key in self._unused:
            screen.warn(f"--answer {in_one_line(key)}: nobody asked for it")

    # --- by kind -----------------------------------------------------------------------------------------------

    async def _fill(self, params: ElicitParams, context: ClientContext) -> dict[str, Any]:
        asked = fields(params.requested_schema or {})
        given, wrong = self._given(asked)
        content = self._defaults(asked) | given
        missing = [field.name for field in asked if field.required and field.name not in content]
        settled = self._asking.yes or (given and len(given) == len(asked))
        if settled and not wrong and not missing:
            return self._answered(params.message, asked, content)
        if keyboard.present():
            with self._question("asks you", params.message, context):
                for reason in wrong:
                    screen.show(f"  {red(reason)}")
                return await fill(asked, given)
        if why := _why_nothing(given, wrong, missing):
            raise self._declined(params.message, why)
        return self._answered(params.message, asked, content)

    async def _visit(self, url: str, message: str, context: ClientContext) -> None:
        if keyboard.present() and not self._asking.yes:
            with self._question("sends you to a page", message, context):
                await visit_page(url, opens=self._asking.open)
            return
        for line in [f"{self._server} sends you to a page: {in_one_line(message)}", *described(url)]:
            screen.say(line)
        if not self._asking.yes:
            raise self._declined(message, f"{_NOBODY}, --yes would agree")

    async def _sample(self, params: CreateMessageParams, context: ClientContext) -> CreateMessageResult:
        command = self._asking.sample_with
        if command:
            try:
                return await run_command(command, params)
            except InternalError as exc:
                raise self._declined(_MODEL, exc.message) from exc
        if not keyboard.present():
            raise self._declined(_MODEL, f"{_NOBODY}, --sample-with COMMAND would answer")
        with self._question("asks your model", "", context):
            return await type_answer(params)

    # --- what all of them have ---------------------------------------------------------------------------------

    def _given(self, asked: Sequence[FormField]) -> tuple[dict[str, Any], list[str]]:
        """What `--answer` says about these fields, and what is wrong with it."""
        answers, given, wrong = dict(self._asking.answer), {}, []
        for field in asked:
            if field.name in answers:
                self._unused.pop(field.name, None)
                try:
                    given[field.name] = parse(field, answers[field.name])
                except Mismatch as exc:
                    wrong.append(in_one_line(f"--answer {field.name}: {exc.reason}"))
        return given, wrong

    def _defaults(self, asked: Sequence[FormField]) -> dict[str, Any]:
        """What a form holds before anybody answers; with `--yes`, a question is answered by yes."""
        if self._asking.yes and [field.kind for field in asked] == ["boolean"]:
            return {asked[0].name: True}
        return {field.name: field.default for field in asked if field.default is not None}

    def _answered(self, message: str, asked: Sequence[FormField], content: dict[str, Any]) -> dict[str, Any]:
        shown = [f"{in_one_line(each.name)}={seen(each, content[each.name])}" for each in asked if each.name in content]
        screen.say(f"answered: {self._server} asks {_excerpt(message)}: {', '.join(shown) or 'yes'}")
        return content

    def _refuse_all(self, what: str) -> None:
        if self._asking.decline:
            raise self._declined(what, "as --decline says")

    def _declined(self, what: str, why: str) -> Refused:
        screen.say(f"declined: {self._server} asks {_excerpt(what)} ({in_one_line(why)})")
        return Refused()

    @contextmanager
    def _question(self, does: str, message: str, context: ClientContext) -> Iterator[None]:
        """A question stands, with who asks it, and how to say no."""
        info = context.server_info
        calls_itself = f" (it calls itself {in_one_line(info.name, 60)!r})" if info else ""
        with screen.question():
            keyboard.forget()
            screen.show(f"\n{click.style(f'{self._server} {does}', bold=True)}{calls_itself}")
            if message:
                screen.show(quoted(message))
            screen.show(click.style(f"  {keyboard.DECLINE} or Ctrl-D declines, Ctrl-C ends the command", dim=True))
            try:
                yield
            except Refused as exc:
                screen.show("  declined" if exc.action == "decline" else "  left without an answer")
                raise
            finally:
                screen.show()


def _why_nothing(given: Mapping[str, Any], wrong: Sequence[str], missing: Sequence[str]) -> str:
    """Why a form is not answered, where nobody can be asked; nothing where the options say enough."""
    if wrong:
        return wrong[0]
    if missing:
        return f"{_NOBODY}, --answer {missing[0]}=... would answer"
    return "" if given else f"{_NOBODY}, --yes would accept"


def _excerpt(text: str) -> str:
    return text if text == _MODEL else f'"{in_one_line(text, 80)}"'
