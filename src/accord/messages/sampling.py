"""Sampling: a server asks for words of the client's model (client, Sampling)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from .base import JSONObject, Meta, Model, Number, Role, bounded, lives, seen_as, since
from .content import SamplingMessageContentBlock
from .meta import RequestMeta
from .tasks import TaskMetadata
from .tools import Tool


class ModelHint(Model):
    """Part of the name of a model that would suit."""

    name: str | None = None


class ModelPreferences(Model):
    """What matters in the choice of a model, each from 0 to 1; hints are tried in order."""

    hints: list[ModelHint] | None = None
    cost_priority: Annotated[Number | None, bounded(ge=0, le=1)] = None
    speed_priority: Annotated[Number | None, bounded(ge=0, le=1)] = None
    intelligence_priority: Annotated[Number | None, bounded(ge=0, le=1)] = None


@lives(since="2025-11-25")
class ToolChoice(Model):
    """Whether the model may, must or must not use a tool."""

    mode: Literal["auto", "required", "none"] | None = None


class SamplingMessage(Model):
    """One message to or of a model: a block, from 2025-11-25 on also a list of them."""

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
