"""Models behind the Messages API of Anthropic: requests.

Members and events are those of the API reference (platform.claude.com: Messages, Streaming, Errors, Versions).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar

from accord.host.models.answer import AnswerBuilder
from accord.host.models.content import ContentKinds, ModelContent, result_blocks
from accord.host.models.hidden_content import HiddenContent
from accord.host.models.http import AnswerReader
from accord.host.models.message_reader import MessageReader
from accord.host.models.provider import ModelOverHTTP
from accord.host.models.tool_names import ToolNames
from accord.messages.base import JSONObject
from accord.messages.content import (
    ImageContent,
    SamplingMessageContentBlock,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from accord.messages.sampling import CreateMessageParams, blocks_of
from accord.messages.tools import Tool

_VERSION = "2026-10-21"
"""Of the API. "The temperature, top_p, and top_k request parameters are removed" in it."""
_KINDS = ContentKinds("the Messages API", images=("image/jpeg", "image/png", "image/gif", "image/webp"))
_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


class AnthropicModel(ModelOverHTTP):
    """A model behind the Messages API of Anthropic: `AnthropicModel("claude-sonnet-5")`.

    The key is `api_key`, or the environment variable ANTHROPIC_API_KEY. The API has no temperature since its version
    2026-10-21, which accord uses; that of a request is not sent.
    """

    default_base_url: ClassVar[str] = "https://api.anthropic.com"
    _path = "/v1/messages"
    _key_variable = "ANTHROPIC_API_KEY"

    @staticmethod
    def _environment_key() -> str | None:
        return os.environ.get("ANTHROPIC_API_KEY") or None

    def _authentication(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": _VERSION}

    def _body(self, params: CreateMessageParams, names: ToolNames) -> JSONObject:
        user = (params.metadata or {}).get("user_id")
        mode = params.tool_choice.mode if params.tool_choice and params.tools else None
        return {
            "max_tokens": params.max_tokens,
            "messages": self._messages(params, names),
            "system": params.system_prompt or None,
            "stop_sequences": params.stop_sequences or None,
            "metadata": {"user_id": user} if isinstance(user, str) else None,
            "tools": [_tool(tool, names) for tool in params.tools or ()] or None,
            "tool_choice": {"type": _CHOICES[mode]} if mode else None,
        }

    def _messages(self, params: CreateMessageParams, names: ToolNames) -> list[JSONObject]:
        messages = [
            {"role": message.role, "content": _blocks(blocks_of(message), self._hidden, names)}
            for message in params.messages
        ]
        return [message for message in messages if message["content"]]

    def _reader(self, params: CreateMessageParams, answer: AnswerBuilder) -> AnswerReader:
        return MessageReader(answer)


# --- request -------------------------------------------------------------------------------------------------------


def _blocks(blocks: Sequence[SamplingMessageContentBlock], hidden: HiddenContent, names: ToolNames) -> list[JSONObject]:
    """Return the blocks of a message, without empty texts, which the API refuses. Thinking returns to its place: "you
    must pass `thinking` blocks back to the API for the last assistant message"."""
    thinking = hidden.recall(blocks)
    found = [*thinking.get(0, ())]
    uses = 0
    for block in blocks:
        if block == TextContent(text=""):
            continue
        found.append(_block(block, names))
        if isinstance(block, ToolUseContent):
            uses += 1
            found += thinking.get(uses, ())
    return found


def _block(block: Any, names: ToolNames) -> JSONObject:
    match block:
        case ToolUseContent():
            return {"type": "tool_use", "id": block.id, "name": names.encode(block.name), "input": block.input}
        case ToolResultContent():
            content = [_content(each) for each in result_blocks(block, _KINDS) if each != TextContent(text="")]
            result = {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": content}
            return {**result, "is_error": True} if block.is_error else result
    return _content(_KINDS.check(block))


def _content(block: ModelContent) -> JSONObject:
    if isinstance(block, ImageContent):
        source = {"type": "base64", "media_type": block.mime_type.lower(), "data": block.data}
        return {"type": "image", "source": source}
    assert isinstance(block, TextContent), "the API takes no audio"
    return {"type": "text", "text": block.text}


def _tool(tool: Tool, names: ToolNames) -> JSONObject:
    described = {"description": tool.description} if tool.description else {}
    return {"name": names.encode(tool.name), **described, "input_schema": tool.input_schema}
