"""A fake language model for tests and examples of a host: it returns prepared answers, and no network is involved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from accord.errors import ModelError
from accord.host.models.model import ModelResult, OnText
from accord.messages.content import Block, SamplingMessageContentBlock, TextContent, ToolUseContent
from accord.messages.sampling import CreateMessageParams, CreateMessageResult, blocks_of

ScriptedAnswer: TypeAlias = (
    str
    | SamplingMessageContentBlock
    | list[SamplingMessageContentBlock]
    | CreateMessageResult
    | ModelResult
    | Exception
)
"""A text, a block or several, a whole result, or an exception to raise."""

_WORDS = re.compile(r"\s*+\S++(?:\s++\Z)?|\s++").findall


class ScriptedModel:
    """A fake `LanguageModel` that returns `answers`, one for each call; a function gets the params and returns one.

        model = ScriptedModel(["Hello", ToolUseContent(id="1", name="search", input={}), ModelError("overloaded")])

    Its results name the model "scripted (fake)". A call without an answer left raises `ModelError`. `input_tokens` and
    `output_tokens` are reported for each answer that does not say otherwise. The traits are those of `HostModel`.
    """

    def __init__(
        self,
        answers: Iterable[ScriptedAnswer] | Callable[[CreateMessageParams], ScriptedAnswer],
        *,
        name: str = "scripted",
        input_tokens: int = 10,
        output_tokens: int = 5,
        cost: float = 0.5,
        speed: float = 0.5,
        intelligence: float = 0.5,
    ) -> None:
        self.name: str = name
        self.cost: float = cost
        self.speed: float = speed
        self.intelligence: float = intelligence
        self.requests: list[CreateMessageParams] = []
        """The params of each call, in order."""
        self._answers = answers if callable(answers) else [answers] if isinstance(answers, str) else list(answers)
        self._tokens = (input_tokens, output_tokens)

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r}, requests={len(self.requests)})"

    async def create_message(self, params: CreateMessageParams, *, on_text: OnText | None = None) -> ModelResult:
        """Return the next answer. Calls `on_text` with each word of it. Raises the answer if it is an exception."""
        self.requests.append(params)
        found = self._result(self._next(params))
        if on_text is not None:
            for piece in _pieces(found.result):
                on_text(piece)
        return found

    def _next(self, params: CreateMessageParams) -> ScriptedAnswer:
        if callable(self._answers):
            return self._answers(params)
        place = len(self.requests) - 1
        if place < len(self._answers):
            return self._answers[place]
        raise ModelError(f"{self.name} (fake): call {place + 1}, but the script has {len(self._answers)} answers")

    def _result(self, answer: ScriptedAnswer) -> ModelResult:
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, ModelResult):
            return answer
        result = answer if isinstance(answer, CreateMessageResult) else self._message(answer)
        return ModelResult(result=result, input_tokens=self._tokens[0], output_tokens=self._tokens[1])

    def _message(
        self, answer: str | SamplingMessageContentBlock | list[SamplingMessageContentBlock]
    ) -> CreateMessageResult:
        if isinstance(answer, str):
            answer = TextContent(text=answer)
        blocks: list[SamplingMessageContentBlock] = [answer] if isinstance(answer, Block) else list(answer)
        uses_tools = any(isinstance(block, ToolUseContent) for block in blocks)
        return CreateMessageResult(
            role="assistant",
            content=blocks[0] if len(blocks) == 1 else blocks,
            model=f"{self.name} (fake)",
            stop_reason="toolUse" if uses_tools else "endTurn",
        )


def _pieces(result: CreateMessageResult) -> list[str]:
    """Return the text of an answer in words; all together are the text."""
    text = "".join(block.text for block in blocks_of(result) if isinstance(block, TextContent))
    return _WORDS(text) or ([text] if text else [])
