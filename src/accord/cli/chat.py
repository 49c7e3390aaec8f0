"""`accord chat`: a model uses the tools of a host in the terminal."""

from __future__ import annotations

import contextlib
import secrets
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import click

from accord.cli.approver import TerminalApprover
from accord.cli.chat_input import (
    NotSent,
    completed,
    message_blocks,
    print_help,
    print_servers,
    print_tools,
    prompt_messages,
)
from accord.cli.chat_model import chat_model
from accord.cli.chat_turn import STOPPED, Conversation
from accord.cli.content import for_terminal
from accord.cli.failures import EXIT_CODES, TOOL_FAILED, message, printable, red
from accord.cli.host_options import config_option, configuration_file, host_for, warn_unavailable
from accord.cli.interrupts import Interrupted, Interrupts, run_interruptible
from accord.cli.keyboard import PromptRefused, is_interactive
from accord.cli.run_client import warn_on_stderr
from accord.cli.screen import screen
from accord.cli.settings import options_as, positive_seconds, traceback_option
from accord.errors import AccordError, TargetError
from accord.host.approvers import PromptAnswer
from accord.host.conversation import DEFAULT_RUN_LIMITS, RunLimits, RunResult
from accord.host.host import Host
from accord.host.models.model import LanguageModel
from accord.host.prompts import Prompt
from accord.host.state import default_path

_MAX_FILES = 100
"""The number of session files of chats that are stored; beyond it, the oldest are deleted."""


@dataclass(frozen=True)
class ChatOptions:
    """The options of a chat."""

    config: Path | None
    model: str
    base_url: str | None
    system: str | None
    max_turns: int
    max_tokens: int
    max_seconds: float
    record: Path | None
    no_record: bool
    approve: str

    @property
    def limits(self) -> RunLimits:
        """Return the limits of the conversation."""
        return RunLimits(turns=self.max_turns, tokens=self.max_tokens, seconds=self.max_seconds)


_OPTIONS = (
    config_option,
    click.option(
        "--model", required=True, metavar="MODEL", envvar="ACCORD_MODEL", show_envvar=True,
        help="anthropic:NAME, responses:NAME, chat-completions:NAME, a NAME alone, or scripted:FILE, which is a fake.",
    ),
    click.option("--base-url", metavar="URL", help="The URL of the model's API, such as that of a local server."),
    click.option("--system", metavar="TEXT", help="Instructions for the model."),
    click.option(
        "--max-turns", type=click.IntRange(1), default=DEFAULT_RUN_LIMITS.turns, show_default=True, metavar="N",
        help="Answers of the model to one message: each use of tools is one.",
    ),
    click.option(
        "--max-tokens", type=click.IntRange(1), default=DEFAULT_RUN_LIMITS.tokens, show_default=True, metavar="N",
        help="Tokens of the whole chat, read and written.",
    ),
    click.option(
        "--max-seconds", type=float, default=DEFAULT_RUN_LIMITS.seconds, show_default=True, metavar="SECONDS",
        callback=positive_seconds, help="The time of an answer, with its calls and your approvals.",
    ),
    click.option(
        "--record", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="The session file, by default one in accord's data folder.",
    ),
    click.option("--no-record", is_flag=True, help="Write no session file."),
    click.option(
        "--approve", type=click.Choice(("ask", "deny")), default="ask", show_default=True,
        help="Calls that the policy neither allows nor denies: ask you, or deny them.",
    ),
    traceback_option,
)  # fmt: skip


@click.command(epilog=EXIT_CODES.replace("the tool returned an error", "a limit ended the answer"))
@click.argument("question", required=False)
@options_as("options", ChatOptions, _OPTIONS)
def command(question: str | None, options: ChatOptions) -> int:
    """Chat with a model that uses the tools of your servers; you approve its calls.

    With QUESTION, print the answer and exit. Without a terminal, calls are denied unless the policy allows them.
    """
    warn_on_stderr()
    if options.record is not None and options.no_record:
        raise click.UsageError("--record goes without --no-record")
    if question is None and not is_interactive():
        raise click.UsageError("there is no terminal: give a QUESTION")
    configuration = configuration_file(options.config)
    model = chat_model(options.model, options.base_url)
    record = None if options.no_record else options.record or _new_file()

    async def work(interrupts: Interrupts) -> int:
        approver = TerminalApprover(interrupts)
        approve = approver if options.approve == "ask" else _deny
        stack = interrupts.contexts
        if isinstance(model, contextlib.AbstractAsyncContextManager):
            await stack.enter_async_context(model)
        host = host_for(configuration, approver, approve=approve, models=[model], record=record)
        await stack.enter_async_context(host)
        warn_unavailable(host)
        if options.model.startswith("scripted:"):
            screen.warn(f"the model is a fake: it gives the answers in {printable(model.name)}")
        if question is not None:
            return await _answer_once(host, model, options, question)
        chat = Chat(host, model, options, approver, interrupts)
        if record is not None:
            screen.print_line(click.style(f"recording to {record}", dim=True))
        await chat.run()
        return 0

    return run_interruptible(work)


async def _answer_once(host: Host, model: LanguageModel, options: ChatOptions, question: str) -> int:
    streams = sys.stdout.isatty()
    conversation = Conversation(host, model, options.system, options.limits, streams=streams)
    try:
        result = await conversation.ask(await message_blocks(host, question))
    except NotSent as exc:
        raise click.UsageError(printable(str(exc))) from exc
    if not streams:
        click.echo(for_terminal(result.text))
    return 0 if _is_answered(result) else TOOL_FAILED


async def _deny(prompt: Prompt) -> PromptAnswer:
    return PromptAnswer(approved=False, by="command line", reason="--approve deny")


def _is_answered(result: RunResult) -> bool:
    """Return whether the model has answered; say why not otherwise."""
    if result.stopped == "answered":
        return True
    screen.warn(STOPPED[result.stopped])
    return False


def _new_file() -> Path:
    """Return a new file for the recording of a chat; the oldest ones are deleted. Raises `TargetError`."""
    folder = default_path().parent / "chats"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in sorted(folder.glob("*.jsonl"))[: 1 - _MAX_FILES]:
            old.unlink(missing_ok=True)
    except OSError as exc:
        raise TargetError(
            f"cannot record to {folder}: {exc.strerror or exc}; choose --record FILE, or --no-record"
        ) from exc
    return folder / f"{datetime.now():%Y-%m-%dT%H-%M-%S}-{secrets.token_hex(3)}.jsonl"


class Chat:
    """The loop at the terminal: a line of the user, then the answer."""

    def __init__(
        self,
        host: Host,
        model: LanguageModel,
        options: ChatOptions,
        approver: TerminalApprover,
        interrupts: Interrupts,
    ) -> None:
        self._host = host
        self._model = model
        self._approver = approver
        self._interrupts = interrupts
        self._conversation = Conversation(host, model, options.system, options.limits, streams=True)

    async def run(self) -> None:
        """Chat until the user ends it: /quit, Ctrl-D, or Ctrl-C twice."""
        tools = await self._host.list_tools()
        counted = f"{len(self._host.servers)} servers, {len(tools)} tools"
        screen.print_line(
            f"{click.style(printable(self._model.name), bold=True)} · {counted} · /help shows the commands"
        )
        interrupted = False
        while True:
            try:
                line = await self._interrupts.run(self._approver.read_line("> ", self._complete))
                if line is None or line.strip() == "/quit":
                    return
                interrupted = False
                await self._interrupts.run(self._handle(line.strip()))
            except Interrupted:
                if interrupted:
                    return
                interrupted = True
                screen.print_line("(cancelled; Ctrl-C again, or /quit, ends the chat)")

    async def _complete(self, line: str) -> str | None:
        return await completed(self._host, line)

    async def _handle(self, line: str) -> None:
        try:
            if line == "/help":
                await print_help(self._host)
            elif line == "/tools":
                await print_tools(self._host)
            elif line == "/servers":
                print_servers(self._host)
            elif line.startswith("/"):
                await self._insert_prompt(line)
            elif line:
                _is_answered(await self._conversation.ask(await message_blocks(self._host, line)))
        except PromptRefused:
            screen.print_line("not sent")
        except NotSent as exc:
            screen.print_line(f"not sent: {printable(str(exc))}")
        except AccordError as exc:
            screen.print_line(f"{red('error:')} {message(exc)}")

    async def _insert_prompt(self, line: str) -> None:
        messages = await prompt_messages(self._host, line, self._approver.read_line)
        self._conversation.add(messages)
        if messages and messages[-1].role == "user":
            _is_answered(await self._conversation.answer())
