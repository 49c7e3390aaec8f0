"""Models behind the Chat Completions API, of OpenAI and of many other servers: requests.

Members and chunks are those of OpenAI's API reference (Chat Completions, Streaming).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, Unpack

import msgspec

from accord.host.models.answer import AnswerBuilder
from accord.host.models.completion_reader import CompletionReader
from accord.host.models.content import ContentKinds, ModelContent, data_url, result_blocks
from accord.host.models.failures import ProviderFailure
from accord.host.models.hidden_content import HiddenContent
from accord.host.models.http import AnswerReader
from accord.host.models.provider import ModelOverHTTP, ModelSettings
from accord.host.models.tool_names import ToolNames
from accord.messages.base import JSONObject
from accord.messages.content import (
    AudioContent,
    ImageContent,
    SamplingMessageContentBlock,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from accord.messages.sampling import CreateMessageParams, blocks_of
from accord.messages.tools import Tool

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_KINDS = ContentKinds("the Chat Completions API", images=_IMAGES, audio=_AUDIO)
_METADATA_CHARACTERS = 512

TokenField: TypeAlias = Literal["max_tokens", "max_completion_tokens"]


def openai_key() -> str | None:
    """Return the key of OpenAI in the environment."""
    return os.environ.get("OPENAI_API_KEY") or None


def bearer(key: str) -> dict[str, str]:
    """Return the header with a key of OpenAI, or of a server that is compatible."""
    return {"authorization": f"Bearer {key}"}


class ChatCompletionsModel(ModelOverHTTP):
    """A model behind the Chat Completions API, of OpenAI or of another server:
    `ChatCompletionsModel("qwen3", base_url="http://127.0.0.1:11434/v1")`.

    The key is `api_key`, or the environment variable OPENAI_API_KEY for OpenAI itself; other servers may need none. The
    limit of tokens is sent as `max_completion_tokens` to OpenAI and as `max_tokens` to others, unless `token_field`
    names one.
    """

    default_base_url: ClassVar[str] = "https://api.openai.com/v1"
    _path = "/chat/completions"
    _key_variable = "OPENAI_API_KEY"

    def __init__(self, name: str, *, token_field: TokenField | None = None, **settings: Unpack[ModelSettings]) -> None:
        super().__init__(name, **settings)
        self._token_field = token_field or ("max_completion_tokens" if self._is_provider else "max_tokens")

    @staticmethod
    def _environment_key() -> str | None:
        return openai_key()

    def _authentication(self, key: str) -> dict[str, str]:
        return bearer(key)

    def _body(self, params: CreateMessageParams, names: ToolNames) -> JSONObject:
        return {
            self._token_field: params.max_tokens,
            "messages": [*_system(params), *self._messages(params, names)],
            "temperature": params.temperature,
            "stop": params.stop_sequences or None,
            "metadata": text_metadata(params) if self._options.get("store") else None,
            "tools": [{"type": "function", "function": _function(tool, names)} for tool in params.tools or ()] or None,
            "tool_choice": params.tool_choice.mode if params.tool_choice and params.tools else None,
            "stream_options": {"include_usage": True} if self._stream else None,
        }

    def _messages(self, params: CreateMessageParams, names: ToolNames) -> Iterator[JSONObject]:
        for message in params.messages:
            blocks = blocks_of(message)
            if message.role == "assistant":
                yield _assistant_message(blocks, self._hidden, names)
            else:
                yield from _user_messages(blocks)

    def _reader(self, params: CreateMessageParams, answer: AnswerBuilder) -> AnswerReader:
        return CompletionReader(answer)


# --- request -------------------------------------------------------------------------------------------------------


def text_metadata(params: CreateMessageParams) -> JSONObject | None:
    """Return the metadata that OpenAI takes: texts of at most 512 characters."""
    found = {
        name: value
        for name, value in (params.metadata or {}).items()
        if isinstance(value, str) and len(value) <= _METADATA_CHARACTERS
    }
    return found or None


def error_prefix(result: ToolResultContent) -> str:
    """Return what says that a tool failed, for APIs that have no member for it."""
    return "The tool failed: " if result.is_error else ""


def _system(params: CreateMessageParams) -> list[JSONObject]:
    return [{"role": "system", "content": params.system_prompt}] if params.system_prompt else []


def _assistant_message(
    blocks: Sequence[SamplingMessageContentBlock], hidden: HiddenContent, names: ToolNames
) -> JSONObject:
    uses = [block for block in blocks if isinstance(block, ToolUseContent)]
    more = hidden.recall(blocks)
    calls: list[JSONObject] = [_tool_call(use, names) for use in uses]
    for number, call in enumerate(calls):
        for members in more.get(number, ()):
            call.update(members)
    texts = []
    for block in blocks:
        if isinstance(block, TextContent):
            texts.append(block.text)
        elif not isinstance(block, ToolUseContent):
            raise ProviderFailure(f"{_KINDS.api} takes only text and uses of tools of an assistant; nothing was sent")
    content: JSONObject = {"role": "assistant", "content": "".join(texts) or (None if calls else "")}
    return {**content, "tool_calls": calls} if calls else content


def _tool_call(block: ToolUseContent, names: ToolNames) -> JSONObject:
    arguments = msgspec.json.encode(block.input).decode()
    return {
        "id": block.id,
        "type": "function",
        "function": {"name": names.encode(block.name), "arguments": arguments},
    }


def _user_messages(blocks: Sequence[Any]) -> Iterator[JSONObject]:
    """Yield a message of role "tool" for each result of a tool, then one of the user with what else there is. Results
    take only text: their images and audio follow in the message of the user."""
    parts: list[JSONObject] = []
    for block in blocks:
        if not isinstance(block, ToolResultContent):
            parts.append(_part(_KINDS.check(block)))
            continue
        found = result_blocks(block, _KINDS)
        text = "\n".join(each.text for each in found if isinstance(each, TextContent))
        yield {"role": "tool", "tool_call_id": block.tool_use_id, "content": f"{error_prefix(block)}{text}"}
        others = [_part(each) for each in found if not isinstance(each, TextContent)]
        if others:
            about = f"What the tool returned for {block.tool_use_id}, besides text:"
            parts += [{"type": "text", "text": about}, *others]
    if parts:
        plain = parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts
        yield {"role": "user", "content": plain}


def _part(block: ModelContent) -> JSONObject:
    match block:
        case ImageContent():
            return {"type": "image_url", "image_url": {"url": data_url(block)}}
        case AudioContent():
            sound = {"data": block.data, "format": _AUDIO[block.mime_type.lower()]}
            return {"type": "input_audio", "input_audio": sound}
    return {"type": "text", "text": block.text}


def _function(tool: Tool, names: ToolNames) -> JSONObject:
    described = {"description": tool.description} if tool.description else {}
    return {"name": names.encode(tool.name), **described, "parameters": tool.input_schema}
