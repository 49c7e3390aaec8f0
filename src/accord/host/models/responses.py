"""Models behind the Responses API, of OpenAI and of other servers: requests.

Members and events are those of OpenAI's API reference (Responses, Streaming events). The API has no stop sequences;
accord ends the text at them. Responses are not stored by the provider (`store`), unless `options` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from accord.host.models.answer import AnswerBuilder
from accord.host.models.chat_completions import bearer, error_prefix, openai_key, text_metadata
from accord.host.models.content import ContentKinds, ModelContent, data_url, result_blocks
from accord.host.models.failures import ProviderFailure
from accord.host.models.http import AnswerReader
from accord.host.models.provider import ModelOverHTTP
from accord.host.models.response_reader import ResponseReader
from accord.host.models.stop_sequences import StopSequences
from accord.host.models.tool_names import ToolNames
from accord.messages.base import JSONObject
from accord.messages.content import (
    ImageContent,
    SamplingMessageContentBlock,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from accord.messages.sampling import CreateMessageParams, SamplingMessage, blocks_of
from accord.messages.tools import Tool

_KINDS = ContentKinds("the Responses API", images=("image/jpeg", "image/png", "image/gif", "image/webp"))


class ResponsesModel(ModelOverHTTP):
    """A model behind the Responses API: `ResponsesModel("gpt-5")`.

    The key is `api_key`, or the environment variable OPENAI_API_KEY for OpenAI itself.
    """

    default_base_url: ClassVar[str] = "https://api.openai.com/v1"
    _path = "/responses"
    _key_variable = "OPENAI_API_KEY"

    @staticmethod
    def _environment_key() -> str | None:
        return openai_key()

    def _authentication(self, key: str) -> dict[str, str]:
        return bearer(key)

    def _body(self, params: CreateMessageParams, names: ToolNames) -> JSONObject:
        return {
            "max_output_tokens": params.max_tokens,
            "input": [item for message in params.messages for item in self._items(message, names)],
            "instructions": params.system_prompt or None,
            "temperature": params.temperature,
            "metadata": text_metadata(params),
            "tools": [_function_tool(tool, names) for tool in params.tools or ()] or None,
            "tool_choice": params.tool_choice.mode if params.tool_choice and params.tools else None,
            "store": False,
        }

    def _items(self, message: SamplingMessage, names: ToolNames) -> Iterator[JSONObject]:
        """Yield the input items of a message in their order, with its reasoning if that is known."""
        blocks = blocks_of(message)
        reasoning = self._hidden.recall(blocks)
        yield from reasoning.get(0, ())
        uses = 0
        for item in _visible_items(blocks, message.role, names):
            yield item
            if item.get("type") == "function_call":
                uses += 1
                yield from reasoning.get(uses, ())

    def _reader(self, params: CreateMessageParams, answer: AnswerBuilder) -> AnswerReader:
        return ResponseReader(answer, StopSequences(params.stop_sequences or ()))


# --- request -------------------------------------------------------------------------------------------------------


def _visible_items(blocks: Sequence[SamplingMessageContentBlock], role: str, names: ToolNames) -> Iterator[JSONObject]:
    """Yield the items of the blocks of a message; adjacent content is one item."""
    content: list[ModelContent] = []
    for block in blocks:
        if not isinstance(block, ToolUseContent | ToolResultContent):
            content.append(_KINDS.check(block))
            continue
        yield from _message(content, role)
        content = []
        yield _call(block, names) if isinstance(block, ToolUseContent) else _call_output(block)
    yield from _message(content, role)


def _message(content: list[ModelContent], role: str) -> Iterator[JSONObject]:
    """Yield a message, unless it is empty. An assistant's is a text: parts of output would need the ids of the
    provider."""
    if role == "user" and content:
        yield {"role": role, "content": [_content(block) for block in content]}
    elif content:
        if not all(isinstance(block, TextContent) for block in content):
            raise ProviderFailure(f"{_KINDS.api} takes only text and uses of tools of an assistant; nothing was sent")
        text = "".join(block.text for block in content if isinstance(block, TextContent))
        if text:
            yield {"role": role, "content": text}


def _content(block: ModelContent) -> JSONObject:
    return {"type": "input_text", "text": block.text} if isinstance(block, TextContent) else _image(block)


def _image(block: ModelContent) -> JSONObject:
    assert isinstance(block, ImageContent), "the API takes no audio"
    return {"type": "input_image", "detail": "auto", "image_url": data_url(block)}


def _call(block: ToolUseContent, names: ToolNames) -> JSONObject:
    arguments = msgspec.json.encode(block.input).decode()
    return {"type": "function_call", "call_id": block.id, "name": names.encode(block.name), "arguments": arguments}


def _call_output(block: ToolResultContent) -> JSONObject:
    found = result_blocks(block, _KINDS)
    texts = [each.text for each in found if isinstance(each, TextContent)]
    output: Any = f"{error_prefix(block)}{chr(10).join(texts)}"
    if len(texts) < len(found):
        prefix = [TextContent(text=error_prefix(block))] if block.is_error else []
        output = [_content(each) for each in (*prefix, *found)]
    return {"type": "function_call_output", "call_id": block.tool_use_id, "output": output}


def _function_tool(tool: Tool, names: ToolNames) -> JSONObject:
    described = {"description": tool.description} if tool.description else {}
    name = names.encode(tool.name)
    return {"type": "function", "name": name, **described, "parameters": tool.input_schema, "strict": False}
