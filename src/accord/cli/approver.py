"""The approver of a host at the terminal: one prompt at a time, and no without a terminal.

The lines of a prompt that are not accord's own words have a mark before them, after a line break of the terminal too,
so that no text of a server or a model looks like a part of the prompt.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from collections.abc import Coroutine, Iterator
from typing import Any

import click
import msgspec

from accord.cli import keyboard
from accord.cli.answer_options import AnswerOptions
from accord.cli.columns import width, wrapped
from accord.cli.failures import printable
from accord.cli.forms import choose
from accord.cli.input_handlers import TerminalHandlers
from accord.cli.interrupts import Interrupted, Interrupts, Result
from accord.cli.keyboard import PromptRefused
from accord.cli.sampling import type_text
from accord.cli.screen import quoted, screen
from accord.host.approvers import NO_ANSWER, GrantRequest, PromptAnswer
from accord.host.prompts import CallPrompt, DefinitionsPrompt, Prompt, SamplingPrompt
from accord.host.questions import ElicitationContext
from accord.messages.content import TextContent
from accord.messages.elicitation import ElicitParams, ElicitResult
from accord.messages.sampling import CreateMessageParams, SamplingMessage

_NO_TERMINAL = PromptAnswer(approved=False, reason="there is no terminal to ask at")
_BY = "terminal"
_DENIED = PromptAnswer(approved=False, by=_BY)
_QUESTION_LINES = 3
"""Lines of the terminal below a prompt."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_./-]{1,200}")
"""Names of tools that are no pattern: only they are offered for a grant."""

_YES, _NO, _CONVERSATION, _ALWAYS, _EDIT = "yes", "no", "conversation", "always", "edit"


class TerminalApprover:
    """Asks the user at the terminal: `Host(..., approve=terminal, elicitation=terminal.elicit)`. Ctrl-C answers no, and
    so does a program without a terminal. Output of the program while a prompt is open mixes with it.
    """

    is_waited_for = True

    def __init__(self, interrupts: Interrupts | None = None) -> None:
        self._interrupts = interrupts
        self._lock = asyncio.Lock()
        self._reading: asyncio.Task[str | None] | None = None

    async def read_line(self, prompt: str, complete: keyboard.Complete | None = None) -> str | None:
        """Return a line that the user types; None for Ctrl-D. An approval comes first: the line is then typed anew."""
        while True:
            async with self._lock:
                with screen.prompting():
                    reading = asyncio.ensure_future(keyboard.read_line(prompt, cancelled="", complete=complete))
                    self._reading = reading
                    try:
                        await asyncio.wait([reading])
                    finally:
                        self._reading = None
                        reading.cancel()
                        await asyncio.wait([reading])
            if not reading.cancelled():
                return reading.result()

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def ask(self, prompt: Prompt, seconds: float) -> PromptAnswer:
        """See `Approver.ask`."""
        if not keyboard.is_interactive():
            return _NO_TERMINAL
        try:
            self._stop_reading()
            async with asyncio.timeout(seconds), self._lock:
                return await self._interruptible(_ask(prompt))
        except TimeoutError:
            return NO_ANSWER
        except PromptRefused as exc:
            if exc.action == "cancel":  # Ctrl-C has ended the prompt
                screen.print_line("  denied")
            return _DENIED

    async def elicit(self, params: ElicitParams, context: ElicitationContext) -> ElicitResult:
        """Ask a server's question: a form, or whether the user agrees to visit a URL, which is never opened."""
        handlers = TerminalHandlers(context.server, AnswerOptions(), on_interrupt="cancels")
        self._stop_reading()
        try:
            async with self._lock:
                return await self._interruptible(handlers.elicit(params, None))
        except PromptRefused as exc:
            return ElicitResult(action=exc.action)

    async def _interruptible(self, question: Coroutine[Any, Any, Result]) -> Result:
        """Raises `PromptRefused` for Ctrl-C."""
        try:
            if self._interrupts is not None:
                return await self._interrupts.run(question)
            with Interrupts() as interrupts:  # one at a time: the lock is held
                return await interrupts.run(question)
        except Interrupted:
            raise PromptRefused("cancel") from None


async def _ask(prompt: Prompt) -> PromptAnswer:
    with screen.prompting():
        try:
            return await (_ask_sampling(prompt) if isinstance(prompt, SamplingPrompt) else _ask_once(prompt))
        except PromptRefused:
            screen.print_prompt("  denied")
            raise
        finally:
            screen.print_prompt()


async def _ask_once(prompt: Prompt) -> PromptAnswer:
    show_prompt(prompt)
    if not isinstance(prompt, CallPrompt):
        await choose("Approve?", (_YES, _NO), _NO)
        return PromptAnswer(approved=True, by=_BY)
    grants = (_CONVERSATION, _ALWAYS) if _PLAIN_NAME.fullmatch(prompt.tool) else ()
    if grants:
        note = f"  {_CONVERSATION}: no more prompts for this tool in this conversation; {_ALWAYS}: until you revoke it"
        screen.print_prompt(click.style(note, dim=True))
    word = await choose("Approve?", (_YES, _NO, *grants), _NO)
    grant = GrantRequest(tool=prompt.tool, conversation=word == _CONVERSATION) if word in grants else None
    return PromptAnswer(approved=True, by=_BY, grant=grant)


async def _ask_sampling(prompt: SamplingPrompt) -> PromptAnswer:
    """Ask until the user sends or denies it; what was edited is shown again."""
    edited = False
    while True:
        show_prompt(prompt)
        if await choose("Approve?", (_YES, _NO, _EDIT), _NO) == _YES:
            break
        text = TextContent(text=await type_text("The text to send instead; an empty line or Ctrl-D ends it:"))
        edited = True
        if prompt.answer is not None:
            prompt = msgspec.structs.replace(prompt, answer=msgspec.structs.replace(prompt.answer, content=text))
        else:
            prompt = msgspec.structs.replace(prompt, request=_with_last_text(prompt.request, text))
    if not edited:
        return PromptAnswer(approved=True, by=_BY)
    if prompt.answer is not None:
        return PromptAnswer(approved=True, by=_BY, result=prompt.answer)
    return PromptAnswer(approved=True, by=_BY, request=prompt.request)


def _with_last_text(request: CreateMessageParams, text: TextContent) -> CreateMessageParams:
    """Return a request whose last message has another text."""
    messages = [*request.messages[:-1], SamplingMessage(role="user", content=text)]
    return msgspec.structs.replace(request, messages=messages)


# --- output ----------------------------------------------------------------------------------------------------


def show_prompt(prompt: Prompt) -> None:
    """Show a prompt before a question, with its number of lines if they do not fit in the terminal."""
    head, *lines = printable(prompt.text()).split("\n")
    has_difference = isinstance(prompt, DefinitionsPrompt)
    shown = [click.style(line, bold=True) for line in _wrapped(head, "")]
    shown += [part for line in lines for part in _body(line, has_difference=has_difference)]
    screen.print_prompt()
    for part in shown:
        screen.print_prompt(part)
    count = sum(part.count("\n") + 1 for part in shown)
    if count > shutil.get_terminal_size().lines - _QUESTION_LINES:
        screen.print_prompt(click.style(f"These are {count:,} lines: scroll up to the first one.", bold=True))


def _body(line: str, *, has_difference: bool) -> Iterator[str]:
    """Yield a line of a prompt as lines of the terminal: what is indented is of a server or a model."""
    if not line.startswith("  "):
        yield from _wrapped(line, "  ")
        return
    content = line.removeprefix("  ").removeprefix("| ")
    marked = quoted(content)
    colour = {"+": "green", "-": "red"}.get(content[:1]) if has_difference else None
    yield click.style(marked, fg=colour) if colour else marked


def _wrapped(line: str, indent: str) -> Iterator[str]:
    first, *rest = wrapped(line, max(width(sys.stderr) - len(indent) - 4, 20))
    yield indent + first
    for part in rest:
        yield f"{indent}  | {part}"
