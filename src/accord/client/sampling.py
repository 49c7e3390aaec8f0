"""A model's answers (client, Sampling): from what a handler gives to a `CreateMessageResult`.

A handler gives the whole result, or the text alone; `None` declines, as does raising `SamplingDeclined`. What it is
asked goes to it as it came: `includeContext` too, which it may leave be. Nothing of other servers is added here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from accord.client.handlers import ClientContext, HandlerThreads, UserHandler
from accord.errors import Mismatch, NotSupported, SamplingDeclined
from accord.messages import codec
from accord.messages.capabilities import SamplingCapability
from accord.messages.content import TextContent
from accord.messages.revision import RULES, Rules
from accord.messages.sampling import CreateMessageParams, CreateMessageResult, check_balanced, fit_blocks

_UNKNOWN_MODEL = "unknown"
"""The model, where a handler gives a text and does not say whose."""


class SamplingHandler:
    """Answers `sampling/createMessage` with a user's function. `tools`: it hands tools to the model."""

    method: ClassVar[str] = "sampling/createMessage"

    def __init__(self, function: Callable[..., Any], *, tools: bool, threads: HandlerThreads) -> None:
        self._handler = UserHandler("sampling", function, 2, threads)
        self._tools = tools

    @property
    def capability(self) -> SamplingCapability:
        """What is declared."""
        return SamplingCapability(tools={} if self._tools else None)

    def read(self, raw: Any, rules: Rules) -> CreateMessageParams:
        """The params of a question. Raises `InvalidParams`, and `NotSupported` for tools that are not offered."""
        params = codec.decode_params(CreateMessageParams, raw)
        if (params.tools or params.tool_choice is not None) and not (self._tools and rules.sampling_tools):
            # "The client MUST return an error if this field is provided but sampling.tools is not declared"
            raise NotSupported("this client gives its model no tools, and has not declared that it does")
        check_balanced(params.messages)
        return params

    async def answer(self, params: CreateMessageParams, context: ClientContext) -> CreateMessageResult:
        """What the model says. Raises what the handler raises, `SamplingDeclined`, `Mismatch` for what is no answer."""
        given = await self._handler(params, context)
        if given is None:
            raise SamplingDeclined
        if isinstance(given, str):
            given = CreateMessageResult(role="assistant", content=TextContent(text=given), model=_UNKNOWN_MODEL)
        if not isinstance(given, CreateMessageResult):
            raise Mismatch(f"a sampling handler gives a CreateMessageResult or a text, not {type(given).__name__}")
        return fit_blocks(given, RULES[context.revision])
