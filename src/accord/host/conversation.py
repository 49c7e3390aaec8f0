"""`Host.run`: a model calls tools until it has an answer, within limits of turns, tokens and time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

import msgspec

from accord.client.results import ToolResult
from accord.errors import AccordError
from accord.host.hosted_server import SampledTokens
from accord.host.models.model import LanguageModel, OnText
from accord.messages.content import TextContent, ToolResultContent, ToolUseContent
from accord.messages.sampling import CreateMessageParams, SamplingMessage, blocks_of
from accord.messages.tools import Tool

StopReason = Literal["answered", "turns", "tokens", "time"]
"""Why a run ended: the model answered, or a limit was reached."""

_MAX_CALLS_PER_TURN = 32


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one run."""

    turns: int = 30
    """Answers of the model."""
    tokens: int = 500_000
    """Tokens that the model reads and writes, in total, with those of sampling requests that its calls cause."""
    seconds: float = 900
    """The time of the whole run, with that of its tools and of approvals."""
    answer_tokens: int = 8_192
    """Tokens of one answer."""


DEFAULT_RUN_LIMITS = RunLimits()


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a run."""

    text: str
    """The text of the last answer."""
    messages: list[SamplingMessage]
    """The whole conversation, to go on with."""
    stopped: StopReason
    turns: int
    tokens: int


class ToolHost(Protocol):
    """Lists and calls the tools of a run: a `Host`."""

    def count_sampling(self) -> AbstractContextManager[SampledTokens]:
        """Count the tokens of sampling requests that the calls in a `with` block cause."""

    async def list_tools(self) -> list[Tool]:
        """Return the tools for the model."""

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, principal: str = ""
    ) -> ToolResult:
        """Call a tool, if it is allowed."""


class _Run:
    """One run: the conversation so far, and what it has used."""

    def __init__(
        self,
        host: ToolHost,
        sampled: SampledTokens,
        model: LanguageModel,
        messages: Sequence[SamplingMessage],
        system: str | None,
        limits: RunLimits,
        principal: str,
        on_text: OnText | None,
        on_call: Callable[[ToolUseContent], None] | None,
        on_message: Callable[[SamplingMessage], None] | None,
    ) -> None:
        self._host = host
        self._model = model
        self.messages: list[SamplingMessage] = list(messages)
        self._system = system
        self._limits = limits
        self._principal = principal
        self._on_text = on_text
        self._on_call = on_call
        self._on_message = on_message
        self.text: str = ""
        self.turns: int = 0
        self._answer_tokens = 0
        self._sampled = sampled

    @property
    def tokens(self) -> int:
        """Return the tokens of all answers, and of sampling requests of its calls."""
        return self._answer_tokens + self._sampled.tokens

    async def go(self) -> StopReason:
        while True:
            if self.turns >= self._limits.turns:
                return "turns"
            if self.tokens >= self._limits.tokens:
                return "tokens"
            blocks = await self._ask()
            uses = [block for block in blocks if isinstance(block, ToolUseContent)]
            if not uses:
                return "answered"
            results = await asyncio.gather(*(self._call(use, place) for place, use in enumerate(uses)))
            self._add(SamplingMessage(role="user", content=list(results)))

    def _add(self, message: SamplingMessage) -> None:
        self.messages.append(message)
        if self._on_message is not None:
            self._on_message(message)

    async def _ask(self) -> list[Any]:
        """Ask the model, and return the blocks of its answer."""
        params = CreateMessageParams(
            messages=self.messages,
            max_tokens=max(1, min(self._limits.answer_tokens, self._limits.tokens - self.tokens)),
            system_prompt=self._system,
            tools=await self._host.list_tools(),
        )
        answer = await self._model.create_message(params, on_text=self._on_text)
        self.turns += 1
        self._answer_tokens += answer.input_tokens + answer.output_tokens
        blocks = list(blocks_of(answer.result))
        self._add(SamplingMessage(role="assistant", content=blocks))
        self.text = "".join(block.text for block in blocks if isinstance(block, TextContent))
        return blocks

    async def _call(self, use: ToolUseContent, place: int) -> ToolResultContent:
        """Call a tool. An error is a result too, so that the model can go on."""
        if self._on_call is not None:
            self._on_call(use)
        if place >= _MAX_CALLS_PER_TURN:
            return _failed(use, f"not called: at most {_MAX_CALLS_PER_TURN} calls in one turn")
        try:
            result = await self._host.call_tool(use.name, use.input, principal=self._principal)
        except (AccordError, ValueError) as exc:
            return _failed(use, str(exc))
        return ToolResultContent(
            tool_use_id=use.id,
            content=result.content,
            structured_content=result.structured_content,
            is_error=result.is_error,
        )


async def run(
    host: ToolHost,
    model: LanguageModel,
    messages: str | Sequence[SamplingMessage],
    *,
    system: str | None,
    limits: RunLimits,
    principal: str,
    on_text: OnText | None,
    on_call: Callable[[ToolUseContent], None] | None,
    on_message: Callable[[SamplingMessage], None] | None = None,
) -> RunResult:
    """See `Host.run`. `on_message` receives each message that the run adds to the conversation."""
    if isinstance(messages, str):
        messages = [SamplingMessage(role="user", content=TextContent(text=messages))]
    with host.count_sampling() as sampled:
        work = _Run(host, sampled, model, messages, system, limits, principal, on_text, on_call, on_message)
        stopped: StopReason = "time"
        limit = asyncio.timeout(limits.seconds)
        try:
            async with limit:
                stopped = await work.go()
        except TimeoutError:
            if not limit.expired():
                raise
    return RunResult(
        text=work.text, messages=with_results(work.messages), stopped=stopped, turns=work.turns, tokens=work.tokens
    )


def with_results(messages: Sequence[SamplingMessage]) -> list[SamplingMessage]:
    """Return a conversation in which each use of a tool has a result, which providers demand to go on.

    The calls of the last answer have none if the run was cancelled, or its time was over.
    """
    last = blocks_of(messages[-1]) if messages and messages[-1].role == "assistant" else ()
    uses = [block for block in last if isinstance(block, ToolUseContent)]
    if not uses:
        return list(messages)
    results = [_failed(use, "the run ended before the result arrived: it is unknown what the call did") for use in uses]
    return [*messages, SamplingMessage(role="user", content=list(results))]


def _failed(use: ToolUseContent, text: str) -> ToolResultContent:
    return ToolResultContent(tool_use_id=use.id, content=[TextContent(text=text)], is_error=True)
