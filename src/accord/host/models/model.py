"""A language model, as a host uses it: the params of `sampling/createMessage` in, its result out.

A sampling request of a server therefore passes through unchanged, and a host that runs a model with tools uses the
same types: `Tool`, `ToolUseContent`, `ToolResultContent` (client, Sampling).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from accord.errors import DeclarationError
from accord.messages.sampling import CreateMessageParams, CreateMessageResult

OnText: TypeAlias = Callable[[str], None]
"""Receives each piece of text as it arrives."""


class ModelResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a model, and the tokens that it used.

    The `stop_reason` of `result` is "endTurn", "stopSequence", "maxTokens", "toolUse", or the provider's own word.
    """

    result: CreateMessageResult
    input_tokens: int = 0
    """Tokens of the request, those that the provider took from its cache included; 0 if the provider does not tell."""
    output_tokens: int = 0
    """Tokens of the answer, those for reasoning included; 0 if the provider does not tell."""


class LanguageModel(Protocol):
    """A model of a host; implement it for a provider that accord does not know.

    `choose_model` also reads the traits `cost`, `speed` and `intelligence` (0 to 1) of a model that has them.
    """

    @property
    def name(self) -> str:
        """Return the name, such as "claude-sonnet-5": for `choose_model`, the audit log and errors."""

    async def create_message(self, params: CreateMessageParams, *, on_text: OnText | None = None) -> ModelResult:
        """Return the answer to a request.

        The model calls `on_text` with each piece of text as it arrives; all pieces together are the text of the
        answer. It stops if `on_text` raises. Cancel the call to stop the model. Raises `ModelError`.
        """


def check_model(model: Any) -> LanguageModel:
    """Return a model. Raises `DeclarationError` for what is none, such as a name or a class."""
    if isinstance(model, type) or not callable(getattr(model, "create_message", None)):
        raise DeclarationError(f"{model!r:.200} is no model: create one, such as AnthropicModel('claude-sonnet-5')")
    found: LanguageModel = model
    return found
