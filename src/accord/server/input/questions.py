"""The questions that a handler can ask: the user (`Elicit`, `ElicitUrl`), the model (`Sample`), and the client
(`Roots`).

They are declared as parameters (`ok: Annotated[bool, Elicit("Delete {path}?")]`), or asked in the handler (`await
ctx.ask(Elicit("Name?", str), Roots())`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar, overload

import msgspec

from accord.errors import NotSupported
from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.content import TextContent, ToolUseContent
from accord.messages.elicitation import ElicitParams
from accord.messages.input_required import (
    CreateMessageRequest,
    ElicitRequest,
    ListRootsParams,
    ListRootsRequest,
    ListRootsResult,
)
from accord.messages.revision import Rules
from accord.messages.sampling import (
    CreateMessageParams,
    CreateMessageResult,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    ToolChoice,
    blocks_of,
    check_balanced,
    fit_blocks,
)
from accord.messages.tools import Tool
from accord.schema.forms import FormType, form
from accord.server.input.question import InputQuestion
from accord.server.input.roots import RootList

T = TypeVar("T")

Messages: TypeAlias = str | SamplingMessage | Sequence[str | SamplingMessage]
"""The messages for a model: a text of the user, a message, or several of either."""

_MAX_VALUE_CHARACTERS = 1_000
"""Characters of a value in the text of a question."""
_PLACE = re.compile(r"{([A-Za-z_]\w*)}")


class Accepted(msgspec.Struct, Generic[T], frozen=True):
    """The user accepted; `data` is the content of the form."""

    data: T
    action: Literal["accept"] = "accept"


class Declined(msgspec.Struct, frozen=True):
    """The user declined."""

    action: Literal["decline"] = "decline"
    data: None = None


class Cancelled(msgspec.Struct, frozen=True):
    """The user dismissed the question without an answer."""

    action: Literal["cancel"] = "cancel"
    data: None = None


class Sampled(CreateMessageResult):
    """The message of a model: `role`, `content` (a block or several), `model`, `stop_reason`."""

    @property
    def blocks(self) -> Sequence[Any]:
        """The content, as a list in every revision."""
        return blocks_of(self)

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextContent))

    @property
    def tool_uses(self) -> list[ToolUseContent]:
        """The tool calls that the model requests."""
        return [block for block in self.blocks if isinstance(block, ToolUseContent)]


def _in_text(values: Mapping[str, Any], place: re.Match[str]) -> str:
    """Return a value for the text of a question. A model chose it: it becomes one line, so that it cannot imitate the
    text, without characters that hide or reorder what a user consents to.
    """
    text = str(values.get(place[1], place[0]))
    escaped = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[:_MAX_VALUE_CHARACTERS])
    return escaped if len(text) <= _MAX_VALUE_CHARACTERS else f"{escaped}… ({len(text):,} characters)"


class Elicit(InputQuestion[Accepted[T] | Declined | Cancelled]):
    """Request a form from the user (client, Elicitation; from 2025-06-18 on).

    `type`: a bool, str, number, date, Literal, Enum, a list of choices, or a flat record of these; None asks for
    consent only. A declared question takes its type from the parameter, and its text may contain other parameters:
    `Elicit("Delete {path}?")`. With `unasked`, a client that knows the question may send its answer with the first
    request (2026-07-28): for values that a model could also provide, never for consent. Raises `DeclarationError` for a
    type that no form supports.
    """

    method = "elicitation/create"
    request_type = ElicitRequest

    @overload
    def __init__(self: Elicit[None], message: str, type: None = None, *, unasked: bool = False) -> None: ...

    @overload
    def __init__(self, message: str, type: type[T], *, unasked: bool = False) -> None: ...

    @overload
    def __init__(self: Elicit[Any], message: str, type: Any, *, unasked: bool = False) -> None: ...

    def __init__(self, message: str, type: Any = None, *, unasked: bool = False) -> None:
        self.message: str = message
        self.type: Any = type
        self.unasked: bool = unasked
        self.form: FormType = form(type)

    def typed(self, type: Any) -> Elicit[Any]:
        """Return the question with the type of the parameter that declares it."""
        return Elicit(self.message, type, unasked=self.unasked)

    def filled(self, values: Mapping[str, Any]) -> Elicit[T]:
        """Return the question with the values of other parameters in its text."""
        if "{" not in self.message:
            return self
        question = Elicit.__new__(Elicit)
        question.type, question.form, question.unasked = self.type, self.form, self.unasked
        question.message = _PLACE.sub(lambda found: _in_text(values, found), self.message)
        return question

    @property
    def places(self) -> set[str]:
        """The parameters in the text."""
        return set(_PLACE.findall(self.message))

    @property
    def needs(self) -> str:
        return "elicitation.form"

    def params(self, rules: Rules) -> ElicitParams:
        return ElicitParams(message=self.message, mode="form", requested_schema=self.form.schema(rules))

    def read(self, answer: bytes) -> Accepted[T] | Declined | Cancelled:
        result = codec.decoder(_RawElicitResult).decode(answer)
        return _outcome(result.action, lambda: self.form.read(result.content))  # type: ignore[no-any-return]


class ElicitUrl(InputQuestion[Accepted[None] | Declined | Cancelled]):
    """Request that the user visit a page (client, Elicitation, URL mode; from 2025-11-25 on).

    Accepted means that the user agreed to visit it, not that the interaction is complete. `elicitation_id` identifies
    it in 2025-11-25, for `ctx.complete_elicitation`; by default it is random.
    """

    method = "elicitation/create"
    request_type = ElicitRequest

    def __init__(self, message: str, url: str, elicitation_id: str | None = None) -> None:
        self.message: str = message
        self.url: str = url
        self.elicitation_id: str = elicitation_id or os.urandom(16).hex()

    @property
    def needs(self) -> str:
        return "elicitation.url"

    def params(self, rules: Rules) -> ElicitParams:
        if not rules.elicitation_urls:
            raise NotSupported(f"{rules.revision} has no elicitation by URL")
        return ElicitParams(message=self.message, mode="url", url=self.url, elicitation_id=self.elicitation_id)

    def read(self, answer: bytes) -> Accepted[None] | Declined | Cancelled:
        return _outcome(codec.decoder(_RawElicitResult).decode(answer).action, lambda: None)  # type: ignore[no-any-return]


class _RawElicitResult(msgspec.Struct):
    """An `ElicitResult` whose content the form validates; some clients send null in it."""

    action: Literal["accept", "decline", "cancel"]
    content: JSONObject | None = None


def _outcome(action: str, data: Any) -> Any:
    if action == "accept":
        return Accepted(data())
    return Declined() if action == "decline" else Cancelled()


class Sample(InputQuestion[Sampled]):
    """Request a completion from the client's model (client, Sampling).

    `messages`: a text, a message, or several. `max_tokens` limits the answer. `model` names suitable models, the best
    first, or sets preferences. `tools` and `tool_choice` exist from 2025-11-25 on. Raises `InvalidParams` for tool
    results that do not answer the tool uses before them.
    """

    method = "sampling/createMessage"
    request_type = CreateMessageRequest

    def __init__(
        self,
        messages: Messages,
        *,
        max_tokens: int = 1024,
        system_prompt: str | None = None,
        model: str | Sequence[str] | ModelPreferences | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        tools: Sequence[Tool] | None = None,
        tool_choice: Literal["auto", "required", "none"] | None = None,
        metadata: JSONObject | None = None,
    ) -> None:
        self._params = CreateMessageParams(
            messages=messages_of(messages),
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            model_preferences=_preferences(model),
            temperature=temperature,
            stop_sequences=list(stop_sequences) if stop_sequences is not None else None,
            include_context=include_context,
            tools=list(tools) if tools is not None else None,
            tool_choice=ToolChoice(mode=tool_choice) if tool_choice is not None else None,
            metadata=metadata,
        )
        check_balanced(self._params.messages)

    @property
    def needs(self) -> str:
        return "sampling.tools" if self._params.tools is not None or self._params.tool_choice else "sampling"

    def params(self, rules: Rules) -> CreateMessageParams:
        if self.needs == "sampling.tools" and not rules.sampling_tools:
            raise NotSupported(f"{rules.revision} has no tools in sampling")
        if rules.sampling_tools:
            return self._params
        messages = [fit_blocks(message, rules) for message in self._params.messages]
        return msgspec.structs.replace(self._params, messages=messages)

    def read(self, answer: bytes) -> Sampled:
        return codec.decoder(Sampled).decode(answer)  # type: ignore[no-any-return]


def messages_of(given: Messages) -> list[SamplingMessage]:
    """Return a list of messages for any form of `Messages`."""
    several = [given] if isinstance(given, str | SamplingMessage) else given
    return [
        SamplingMessage(role="user", content=TextContent(text=one)) if isinstance(one, str) else one for one in several
    ]


def _preferences(model: str | Sequence[str] | ModelPreferences | None) -> ModelPreferences | None:
    if model is None or isinstance(model, ModelPreferences):
        return model
    names = [model] if isinstance(model, str) else model
    return ModelPreferences(hints=[ModelHint(name=name) for name in names])


class Roots(InputQuestion[RootList]):
    """Request the roots of the client (client, Roots)."""

    method = "roots/list"
    request_type = ListRootsRequest

    @property
    def needs(self) -> str:
        return "roots"

    def params(self, rules: Rules) -> ListRootsParams:
        return ListRootsParams()

    def read(self, answer: bytes) -> RootList:
        return RootList(codec.decoder(ListRootsResult).decode(answer).roots)
