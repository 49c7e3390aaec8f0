"""Who answers what a server asks: the options of the command, a person at the terminal, or nobody.

One question stands at a time, under the name that the server was given here. What is answered or declined
without a person is told in a line on stderr.

A page that a server sends a person to: the whole URL, where it leads, and what is odd about it (URL mode).

"Clients MUST NOT open the URL without explicit consent", and "MUST NOT automatically pre-fetch the URL": it is opened
only with `--open`, after a yes to the question that shows it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import click

from accord.cli import keyboard
from accord.cli.answer_options import AnswerOptions
from accord.cli.columns import one_line
from accord.cli.failures import printable, red
from accord.cli.forms import confirm, display_value, fill
from accord.cli.keyboard import PromptRefused
from accord.cli.sampling import run_command, type_answer
from accord.cli.screen import quoted, screen
from accord.client.handlers import ClientContext
from accord.errors import InternalError, Mismatch
from accord.messages.elicitation import ElicitParams, ElicitResult
from accord.messages.sampling import CreateMessageParams, CreateMessageResult
from accord.schema.forms import FormField, fields, parse


async def confirm_url(url: str, *, opens: bool) -> None:
    """Let the person decide about a page. Raises `PromptRefused`."""
    screen.print_prompt()
    for line in url_lines(url):
        screen.print_prompt(line)
    await confirm("Open it in the browser?" if opens else "Agree to go there? (It is not opened for you.)")
    if opens and not await asyncio.to_thread(webbrowser.open, url):
        screen.print_prompt("  no browser could be started; open it yourself")


def url_lines(url: str) -> list[str]:
    """The whole URL, then its host, then a warning for each thing that may mislead."""
    host = _host(url)
    return [
        f"  {printable(url)}",
        f"  host: {click.style(printable(host), bold=True) if host else 'cannot be told'}",
        *(f"  {click.style('take care:', fg='yellow')} {doubt}" for doubt in _warnings(url, host)),
    ]


def _host(url: str) -> str | None:
    """The host that a browser would go to; None where browsers may differ."""
    if "\\" in url:  # a browser reads it as a slash
        return None
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _warnings(url: str, host: str | None) -> list[str]:
    """ "Clients SHOULD have warnings for ambiguous/suspicious URIs (i.e., containing Punycode)"."""
    if host is None:
        return ["it is not clear where this URL leads"]
    doubts = {
        "the host is in other letters than it may seem": not host.isascii() or "xn--" in host or "%" in host,
        "the host is a number, not a name": _is_address(host),
        "what stands before the @ is no host": "@" in urlsplit(url).netloc,
        "what you send there is not encrypted": urlsplit(url).scheme != "https",
        "it has characters that cannot be shown": not url.isprintable(),
    }
    return [doubt for doubt, holds in doubts.items() if holds]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.replace(".", "").isdigit()
    return True


_MODEL = "a model"
_NO_TERMINAL = "no terminal to answer at"


class TerminalHandlers:
    """The handlers of a client. `server` is what the person knows the server as, not what it calls itself."""

    def __init__(self, server: str, asking: AnswerOptions) -> None:
        self._server = one_line(server)
        self._asking = asking
        self._unused_answers: dict[str, str] = dict(asking.answer)
        self._lock = asyncio.Lock()

    async def elicit(self, params: ElicitParams, context: ClientContext) -> ElicitResult:
        """Answer a form or a page."""
        async with self._lock:
            try:
                self._check_decline(params.message)
                if params.mode != "url":
                    return ElicitResult(action="accept", content=await self._fill(params, context))
                await self._confirm_url(params.url or "", params.message, context)
                return ElicitResult(action="accept")
            except PromptRefused as exc:
                return ElicitResult(action=exc.action)

    async def sample(self, params: CreateMessageParams, context: ClientContext) -> CreateMessageResult | None:
        """Answer for a model; None declines."""
        async with self._lock:
            try:
                self._check_decline(_MODEL)
                return await self._sample(params, context)
            except PromptRefused:
                return None

    def warn_unused(self) -> None:
        """Say which answers nobody asked for."""
        for key in self._unused_answers:
            screen.warn(f"--answer {one_line(key)}: nobody asked for it")

    # --- by kind -----------------------------------------------------------------------------------------------

    async def _fill(self, params: ElicitParams, context: ClientContext) -> dict[str, Any]:
        asked = fields(params.requested_schema or {})
        given, wrong = self._option_answers(asked)
        content = self._defaults(asked) | given
        missing = [field.name for field in asked if field.required and field.name not in content]
        settled = self._asking.yes or (given and len(given) == len(asked))
        if settled and not wrong and not missing:
            return self._report_answer(params.message, asked, content)
        if keyboard.is_interactive():
            with self._question("asks you", params.message, context):
                for reason in wrong:
                    screen.print_prompt(f"  {red(reason)}")
                return await fill(asked, given)
        if why := _why_declined(given, wrong, missing):
            raise self._report_decline(params.message, why)
        return self._report_answer(params.message, asked, content)

    async def _confirm_url(self, url: str, message: str, context: ClientContext) -> None:
        if keyboard.is_interactive() and not self._asking.yes:
            with self._question("sends you to a page", message, context):
                await confirm_url(url, opens=self._asking.open)
            return
        for line in [f"{self._server} sends you to a page: {one_line(message)}", *url_lines(url)]:
            screen.print_line(line)
        if not self._asking.yes:
            raise self._report_decline(message, f"{_NO_TERMINAL}, --yes would agree")

    async def _sample(self, params: CreateMessageParams, context: ClientContext) -> CreateMessageResult:
        command = self._asking.sample_with
        if command:
            try:
                return await run_command(command, params)
            except InternalError as exc:
                raise self._report_decline(_MODEL, exc.message) from exc
        if not keyboard.is_interactive():
            raise self._report_decline(_MODEL, f"{_NO_TERMINAL}, --sample-with COMMAND would answer")
        with self._question("asks your model", "", context):
            return await type_answer(params)

    # --- what all of them have ---------------------------------------------------------------------------------

    def _option_answers(self, asked: Sequence[FormField]) -> tuple[dict[str, Any], list[str]]:
        """What `--answer` says about these fields, and what is wrong with it."""
        answers, given, wrong = dict(self._asking.answer), {}, []
        for field in asked:
            if field.name in answers:
                self._unused_answers.pop(field.name, None)
                try:
                    given[field.name] = parse(field, answers[field.name])
                except Mismatch as exc:
                    wrong.append(one_line(f"--answer {field.name}: {exc.reason}"))
        return given, wrong

    def _defaults(self, asked: Sequence[FormField]) -> dict[str, Any]:
        """What a form holds before anybody answers; with `--yes`, a question is answered by yes."""
        if self._asking.yes and [field.kind for field in asked] == ["boolean"]:
            return {asked[0].name: True}
        return {field.name: field.default for field in asked if field.default is not None}

    def _report_answer(self, message: str, asked: Sequence[FormField], content: dict[str, Any]) -> dict[str, Any]:
        shown = [
            f"{one_line(each.name)}={display_value(each, content[each.name])}" for each in asked if each.name in content
        ]
        screen.print_line(f"answered: {self._server} asks {_excerpt(message)}: {', '.join(shown) or 'yes'}")
        return content

    def _check_decline(self, what: str) -> None:
        if self._asking.decline:
            raise self._report_decline(what, "as --decline says")

    def _report_decline(self, what: str, why: str) -> PromptRefused:
        screen.print_line(f"declined: {self._server} asks {_excerpt(what)} ({one_line(why)})")
        return PromptRefused()

    @contextmanager
    def _question(self, does: str, message: str, context: ClientContext) -> Iterator[None]:
        """A question stands, with who asks it, and how to say no."""
        info = context.server_info
        calls_itself = f" (it calls itself {one_line(info.name, 60)!r})" if info else ""
        with screen.prompting():
            keyboard.discard_typed()
            screen.print_prompt(f"\n{click.style(f'{self._server} {does}', bold=True)}{calls_itself}")
            if message:
                screen.print_prompt(quoted(message))
            screen.print_prompt(
                click.style(f"  {keyboard.DECLINE} or Ctrl-D declines, Ctrl-C ends the command", dim=True)
            )
            try:
                yield
            except PromptRefused as exc:
                screen.print_prompt("  declined" if exc.action == "decline" else "  left without an answer")
                raise
            finally:
                screen.print_prompt()


def _why_declined(given: Mapping[str, Any], wrong: Sequence[str], missing: Sequence[str]) -> str:
    """Why a form is not answered, where nobody can be asked; nothing where the options say enough."""
    if wrong:
        return wrong[0]
    if missing:
        return f"{_NO_TERMINAL}, --answer {missing[0]}=... would answer"
    return "" if given else f"{_NO_TERMINAL}, --yes would accept"


def _excerpt(text: str) -> str:
    return text if text == _MODEL else f'"{one_line(text, 80)}"'
