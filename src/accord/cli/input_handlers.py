"""Answers to questions of a server: by the options of the command, by the user at the terminal, or declined.

The terminal shows one question at a time, under the name of the server on this command line. A line on stderr reports
each answer or refusal that the user did not type.

"Clients MUST NOT open the URL without explicit consent", and "MUST NOT automatically pre-fetch the URL" (URL mode):
the terminal shows the whole URL, its host and warnings, and opens it only with `--open` and the user's consent.
"""

from __future__ import annotations

import asyncio
import ipaddress
import webbrowser
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
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
    """Show a URL and let the user decide. Raises `PromptRefused`."""
    screen.print_prompt()
    for line in url_lines(url):
        screen.print_prompt(line)
    await confirm("Open it in the browser?" if opens else "Agree to go there? (It is not opened for you.)")
    if opens and not await asyncio.to_thread(webbrowser.open, url):
        screen.print_prompt("  no browser could be started; open it yourself")


def url_lines(url: str) -> list[str]:
    """Return the whole URL, its host, and a warning for each misleading part."""
    host = _host(url)
    return [
        f"  {printable(url)}",
        f"  host: {click.style(printable(host), bold=True) if host else 'cannot be told'}",
        *(f"  {click.style('take care:', fg='yellow')} {warning}" for warning in _warnings(url, host)),
    ]


def _host(url: str) -> str | None:
    """Return the host that a browser would open, or None if browsers may differ."""
    if "\\" in url:  # a browser reads it as a slash
        return None
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _warnings(url: str, host: str | None) -> list[str]:
    """Return the warnings: "Clients SHOULD have warnings for ambiguous/suspicious URIs (i.e., containing Punycode)"."""
    if host is None:
        return ["it is not clear where this URL leads"]
    warnings = {
        "the host is in other letters than it may seem": not host.isascii() or "xn--" in host or "%" in host,
        "the host is a number, not a name": _is_address(host),
        "what stands before the @ is no host": "@" in urlsplit(url).netloc,
        "what you send there is not encrypted": urlsplit(url).scheme != "https",
        "it has characters that cannot be shown": not url.isprintable(),
    }
    return [warning for warning, applies in warnings.items() if applies]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.replace(".", "").isdigit()
    return True


_MODEL = "a model"
_NO_TERMINAL = "no terminal to answer at"


class TerminalHandlers:
    """The question handlers of a client. `server` is the user's name for the server, not its own.

    `on_interrupt` says what Ctrl-C does.
    """

    def __init__(
        self,
        server: str,
        options: AnswerOptions,
        *,
        on_interrupt: str = "ends the command",
    ) -> None:
        self._server = one_line(server)
        self._options = options
        self._unused_answers: dict[str, str] = dict(options.answer)
        self._lock = asyncio.Lock()
        self._on_interrupt = on_interrupt

    async def elicit(self, params: ElicitParams, context: ClientContext | None) -> ElicitResult:
        """Answer an elicitation by form or URL."""
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
        """Answer a sampling request, or return None to decline."""
        async with self._lock:
            try:
                self._check_decline(_MODEL)
                return await self._sample(params, context)
            except PromptRefused:
                return None

    def warn_unused(self) -> None:
        """Warn about each `--answer` that no question used."""
        for key in self._unused_answers:
            screen.warn(f"--answer {one_line(key)}: nobody asked for it")

    # --- by kind of question -----------------------------------------------------------------------------------

    async def _fill(self, params: ElicitParams, context: ClientContext | None) -> dict[str, Any]:
        form = fields(params.requested_schema or {})
        answers, errors = self._option_answers(form)
        content = self._defaults(form) | answers
        missing = [field.name for field in form if field.required and field.name not in content]
        complete = self._options.yes or (answers and len(answers) == len(form))
        if complete and not errors and not missing:
            return self._report_answer(params.message, form, content)
        if keyboard.is_interactive():
            async with self._question("asks you", params.message, context):
                for error in errors:
                    screen.print_prompt(f"  {red(error)}")
                return await fill(form, answers)
        if error := _why_declined(answers, errors, missing):
            raise self._report_decline(params.message, error)
        return self._report_answer(params.message, form, content)

    async def _confirm_url(self, url: str, message: str, context: ClientContext | None) -> None:
        if keyboard.is_interactive() and not self._options.yes:
            async with self._question("sends you to a page", message, context):
                await confirm_url(url, opens=self._options.open)
            return
        for line in [f"{self._server} sends you to a page: {one_line(message)}", *url_lines(url)]:
            screen.print_line(line)
        if not self._options.yes:
            raise self._report_decline(message, f"{_NO_TERMINAL}, --yes would agree")

    async def _sample(self, params: CreateMessageParams, context: ClientContext) -> CreateMessageResult:
        command = self._options.sample_with
        if command:
            try:
                return await run_command(command, params)
            except InternalError as exc:
                raise self._report_decline(_MODEL, exc.message) from exc
        if not keyboard.is_interactive():
            raise self._report_decline(_MODEL, f"{_NO_TERMINAL}, --sample-with COMMAND would answer")
        async with self._question("asks your model", "", context):
            return await type_answer(params)

    # --- shared ------------------------------------------------------------------------------------------------

    def _option_answers(self, form: Sequence[FormField]) -> tuple[dict[str, Any], list[str]]:
        """Return the values of `--answer` for these fields, and the errors of invalid ones."""
        answers, values, errors = dict(self._options.answer), {}, []
        for field in form:
            if field.name in answers:
                self._unused_answers.pop(field.name, None)
                try:
                    values[field.name] = parse(field, answers[field.name])
                except Mismatch as exc:
                    errors.append(one_line(f"--answer {field.name}: {exc.reason}"))
        return values, errors

    def _defaults(self, form: Sequence[FormField]) -> dict[str, Any]:
        """Return the defaults of a form; with `--yes`, a single yes-or-no question has the default yes."""
        if self._options.yes and [field.kind for field in form] == ["boolean"]:
            return {form[0].name: True}
        return {field.name: field.default for field in form if field.default is not None}

    def _report_answer(self, message: str, form: Sequence[FormField], content: dict[str, Any]) -> dict[str, Any]:
        values = [
            f"{one_line(field.name)}={display_value(field, content[field.name])}"
            for field in form
            if field.name in content
        ]
        screen.print_line(f"answered: {self._server} asks {_excerpt(message)}: {', '.join(values) or 'yes'}")
        return content

    def _check_decline(self, subject: str) -> None:
        if self._options.decline:
            raise self._report_decline(subject, "as --decline says")

    def _report_decline(self, subject: str, reason: str) -> PromptRefused:
        screen.print_line(f"declined: {self._server} asks {_excerpt(subject)} ({one_line(reason)})")
        return PromptRefused()

    @asynccontextmanager
    async def _question(self, action: str, message: str, context: ClientContext | None) -> AsyncIterator[None]:
        """Print a question with its server, and how to decline it."""
        info = context and context.server_info
        own_name = f" (it calls itself {one_line(info.name, 60)!r})" if info else ""
        with screen.prompting():
            await keyboard.discard_typed()
            screen.print_prompt(f"\n{click.style(f'{self._server} {action}', bold=True)}{own_name}")
            if message:
                screen.print_prompt(quoted(message))
            screen.print_prompt(
                click.style(f"  {keyboard.DECLINE} or Ctrl-D declines, Ctrl-C {self._on_interrupt}", dim=True)
            )
            try:
                yield
            except PromptRefused as exc:
                screen.print_prompt("  declined" if exc.action == "decline" else "  left without an answer")
                raise
            finally:
                screen.print_prompt()


def _why_declined(answers: Mapping[str, Any], errors: Sequence[str], missing: Sequence[str]) -> str:
    """Return why a form is declined without a terminal, or an empty string if the options suffice."""
    if errors:
        return errors[0]
    if missing:
        return f"{_NO_TERMINAL}, --answer {missing[0]}=... would answer"
    return "" if answers else f"{_NO_TERMINAL}, --yes would accept"


def _excerpt(text: str) -> str:
    return text if text == _MODEL else f'"{one_line(text, 80)}"'
