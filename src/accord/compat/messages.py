"""Prompt messages as the other libraries construct them: `UserMessage("Hello")`, `Message("Hello", role="user")`."""

from __future__ import annotations

from typing import Any, get_args

from accord.messages.base import ModelMeta
from accord.messages.content import ContentBlock, TextContent
from accord.messages.prompts import PromptMessage
from accord.schema.json_values import to_json
from accord.server.declare.media import Media


class _PromptMessageMeta(ModelMeta):
    """A metaclass that makes a `PromptMessage` of any content."""

    def __call__(cls, content: Any = "", role: str | None = None, **_: Any) -> Any:
        return PromptMessage(role=role or _ROLES[cls.__name__], content=block(content))  # type: ignore[arg-type]

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, PromptMessage)


_ROLES = {"Message": "user", "UserMessage": "user", "AssistantMessage": "assistant"}


class Message(PromptMessage, metaclass=_PromptMessageMeta):
    """A message with the role "user", or with `role`."""


class UserMessage(PromptMessage, metaclass=_PromptMessageMeta):
    """A message of the user."""


class AssistantMessage(PromptMessage, metaclass=_PromptMessageMeta):
    """A message of the model."""


def block(content: Any) -> Any:
    """Return content as a content block: text for a string, `accord.Image` and `accord.Audio` encoded, a block as it
    is, JSON text for anything else.
    """
    if isinstance(content, str):
        return TextContent(text=content)
    if isinstance(content, Media):
        return content.to_content()
    if isinstance(content, get_args(ContentBlock)):
        return content
    return TextContent(text=to_json(content).decode())
