"""One conversation of a chat: the model, the tools that it calls through the host, and what the user sees of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import click
import msgspec

from accord.cli.call import ProgressLine
from accord.cli.columns import one_line
from accord.cli.content import block_text, for_terminal
from accord.cli.screen import quoted, screen
from accord.client.results import ToolResult
from accord.errors import AccordError
from accord.host.conversation import RunLimits, RunResult, run, with_results
from accord.host.host import Host
from accord.host.hosted_server import SampledTokens
from accord.host.models.model import LanguageModel
from accord.messages.content import EmbeddedResource, SamplingMessageContentBlock, TextContent
from accord.messages.sampling import SamplingMessage
from accord.messages.tools import Tool

_SHOWN_LINES = 6
"""Lines of a result that the user sees; the model gets all."""

STOPPED = {
    "turns": "the model used its tools --max-turns times without an answer",
    "tokens": "the tokens of --max-tokens are used up",
    "time": "the time of --max-seconds is over",
}


class ChatTools:
    """The tools of a host for a model; each call and its result is printed."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def count_sampling(self) -> AbstractContextManager[SampledTokens]:
        """Count the tokens of sampling requests that the calls in a `with` block cause."""
        return self._host.count_sampling()

    async def list_tools(self) -> list[Tool]:
        """Return the approved tools."""
        return await self._host.list_tools()

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, principal: str = ""
    ) -> ToolResult:
        """Call a tool, if it is allowed. Raises the errors of `Host.call_tool`."""
        shown = one_line(msgspec.json.encode(dict(arguments or {})).decode())
        screen.print_line(f"{click.style('call:', fg='cyan')} {one_line(name)} {shown}")
        progress = ProgressLine()
        try:
            result = await self._host.call_tool(name, arguments, principal=principal, on_progress=progress)
        except (AccordError, ValueError) as exc:
            _print_result(str(exc), is_error=True)
            raise
        finally:
            progress.done()
        _print_result("\n".join(map(_plain, result.content)), is_error=result.is_error)
        return result


def _print_result(text: str, *, is_error: bool | None) -> None:
    lines = quoted(text).split("\n")
    left_out = len(lines) - _SHOWN_LINES
    if left_out > 0:
        lines = [*lines[:_SHOWN_LINES], f"  … {left_out:,} more lines"]
    for line in lines:
        screen.print_line(click.style(line, fg="red") if is_error else click.style(line, dim=True))


def _plain(block: Any) -> str:
    """Return a block as text that is not yet safe for a terminal."""
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource) and block.resource.text is not None:
        return block.resource.text
    return click.unstyle(block_text(block))


class Conversation:
    """The messages so far, and the tokens that they used."""

    def __init__(
        self, host: Host, model: LanguageModel, system: str | None, limits: RunLimits, *, streams: bool
    ) -> None:
        self._tools = ChatTools(host)
        self._model = model
        self._system = system
        self._limits = limits
        self._streams = streams
        self._messages: list[SamplingMessage] = []
        self.tokens: int = 0

    def add(self, messages: Sequence[SamplingMessage]) -> None:
        """Add messages that the model answers later."""
        self._messages += messages

    async def ask(self, blocks: list[SamplingMessageContentBlock]) -> RunResult:
        """Return the answer to a message of the user. Raises `ModelError`."""
        self.add([SamplingMessage(role="user", content=blocks)])
        return await self.answer()

    async def answer(self) -> RunResult:
        """Return the answer to the messages so far. They stay if this is cancelled, so that the model knows later what
        it has done. Raises `ModelError`.
        """
        before = list(self._messages)
        limits = msgspec.structs.replace(self._limits, tokens=max(0, self._limits.tokens - self.tokens))
        try:
            result = await run(
                self._tools,
                self._model,
                before,
                system=self._system,
                limits=limits,
                principal="",
                on_text=self._print if self._streams else None,
                on_call=None,
                on_message=self._messages.append,
            )
        finally:
            self._messages = with_results(self._messages)
            if self._streams:
                screen.end_text()
        self.tokens += result.tokens
        return result

    def _print(self, text: str) -> None:
        screen.print_text(for_terminal(text))
