"""Sampling: a request of a server to the client's model (client, Sampling)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

from msgspec import field, structs

from accord.errors import InvalidParams, NotSupported
from accord.messages.base import JSONObject, Meta, Model, Number, Role, bounded, lives, seen_as, since
from accord.messages.content import SamplingMessageContentBlock, ToolResultContent, ToolUseContent
from accord.messages.meta import RequestMeta
from accord.messages.revision import Rules
from accord.messages.tasks import TaskMetadata
from accord.messages.tools import Tool


class ModelHint(Model):
    """A preferred model, by a part of its name."""

    name: str | None = None


class ModelPreferences(Model):
    """Priorities for the choice of a model, each from 0 to 1; hints are tried in order."""

    hints: list[ModelHint] | None = None
    cost_priority: Annotated[Number | None, bounded(ge=0, le=1)] = None
    speed_priority: Annotated[Number | None, bounded(ge=0, le=1)] = None
    intelligence_priority: Annotated[Number | None, bounded(ge=0, le=1)] = None


@lives(since="2025-11-25")
class ToolChoice(Model):
    """The choice of whether the model may, must or must not use a tool."""

    mode: Literal["auto", "required", "none"] | None = None


class SamplingMessage(Model):
    """One message to or from a model: a block, from 2025-11-25 on also a list of them."""

    role: Role
    content: SamplingMessageContentBlock | Annotated[list[SamplingMessageContentBlock], since("2025-11-25")]
    meta: Annotated[Meta | None, since("2025-11-25")] = field(default=None, name="_meta")


class CreateMessageParams(Model):
    """Params of `sampling/createMessage`."""

    messages: list[SamplingMessage]
    max_tokens: int
    model_preferences: ModelPreferences | None = None
    system_prompt: str | None = None
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    temperature: Number | None = None
    stop_sequences: list[str] | None = None
    metadata: JSONObject | None = None
    tools: Annotated[list[Tool] | None, since("2025-11-25")] = None
    tool_choice: Annotated[ToolChoice | None, since("2025-11-25")] = None
    task: Annotated[TaskMetadata | None, since("2025-11-25", until="2026-07-28")] = None
    meta: Annotated[Meta | None, since("2024-11-05", until="2026-07-28"), seen_as(RequestMeta)] = field(
        default=None, name="_meta"
    )


class CreateMessageResult(SamplingMessage):
    """Result of `sampling/createMessage`, or the answer to it in a retry."""

    model: str
    stop_reason: str | None = None
    meta: Meta | None = field(default=None, name="_meta")


_M = TypeVar("_M", bound=SamplingMessage)


def blocks_of(message: SamplingMessage) -> Sequence[SamplingMessageContentBlock]:
    """Return the content of a message, as a list in every revision."""
    return message.content if isinstance(message.content, list) else [message.content]


def fit_blocks(message: _M, rules: Rules) -> _M:
    """Return a message in the shape of the revision: through 2025-06-18 with one block, not a list. Raise
    `NotSupported` for several blocks."""
    if rules.sampling_tools or not isinstance(message.content, list):
        return message
    if len(message.content) != 1:
        raise NotSupported(f"in {rules.revision} a message of sampling holds one block, not {len(message.content)}")
    return structs.replace(message, content=message.content[0])


def check_balanced(messages: Sequence[SamplingMessage]) -> None:
    """Raise `InvalidParams` unless the next message answers each tool use with exactly its result, and holds nothing
    else: "each tool use (with `id: $id`) matched by a corresponding tool result (with `toolUseId: $id`), before any
    other message" (client, Sampling)."""
    open_uses: list[str] = []
    for place, message in enumerate(messages):
        blocks = blocks_of(message)
        results = [block.tool_use_id for block in blocks if isinstance(block, ToolResultContent)]
        uses = [block.id for block in blocks if isinstance(block, ToolUseContent)]
        if results and len(results) < len(blocks):  # "it MUST contain ONLY tool results"
            raise InvalidParams(f"messages[{place}]: tool results mixed with other content")
        if (results and message.role != "user") or (uses and message.role != "assistant"):
            raise InvalidParams(f"messages[{place}]: the assistant uses tools, the user brings their results")
        _check_results(place, results, open_uses)
        open_uses = uses
    _check_results(len(messages), [], open_uses)


def _check_results(place: int, results: list[str], open_uses: list[str]) -> None:
    missing, spare = set(open_uses) - set(results), set(results) - set(open_uses)
    if missing:
        raise InvalidParams(f"messages[{place}]: tool result missing for {_format_ids(missing)}")
    if spare:
        raise InvalidParams(f"messages[{place}]: tool result without a tool use before it: {_format_ids(spare)}")
    if len(set(results)) < len(results) or len(set(open_uses)) < len(open_uses):
        raise InvalidParams(f"messages[{place}]: the ids of tool uses, and of their results, must differ")


def _format_ids(ids: set[str]) -> str:
    shown = ", ".join(repr(id[:64]) for id in sorted(ids)[:5])
    return f"{shown} and {len(ids) - 5} more" if len(ids) > 5 else shown
