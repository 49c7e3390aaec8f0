"""Prompts: templates of messages that a user chooses (server, Prompts)."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from accord.messages.base import Meta, Model, Role, since
from accord.messages.bounds import Name, Texts
from accord.messages.content import ContentBlock
from accord.messages.identity import Icon
from accord.messages.meta import InputResponseParams, ListResult, Result


class PromptArgument(Model):
    """One argument of a prompt; its value is always a string."""

    name: Name
    title: Annotated[str | None, since("2025-06-18")] = None
    description: str | None = None
    required: bool | None = None


class Prompt(Model):
    """An entry of `prompts/list`."""

    name: Name
    title: Annotated[str | None, since("2025-06-18")] = None
    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None
    meta: Annotated[Meta | None, since("2025-06-18")] = field(default=None, name="_meta")


class PromptMessage(Model):
    """One message of a prompt."""

    role: Role
    content: ContentBlock


class ListPromptsResult(ListResult):
    """Result of `prompts/list`."""

    prompts: list[Prompt]


class GetPromptParams(InputResponseParams):
    """Params of `prompts/get`; a retry carries the answers in `input_responses`."""

    name: Name
    arguments: Texts | None = None


class GetPromptResult(Result):
    """Result of `prompts/get`."""

    messages: list[PromptMessage]
    description: str | None = None
