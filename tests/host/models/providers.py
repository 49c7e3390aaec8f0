"""The three kinds of models, each with the API of the fake provider that it speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from accord.host import AnthropicModel, ChatCompletionsModel, ModelLimits, ResponsesModel
from accord.messages.content import TextContent
from accord.messages.sampling import CreateMessageParams, CreateMessageResult, SamplingMessage, blocks_of

from tests.host.models.fake_provider import Answer, ChatCompletionsAPI, FakeProvider, MessagesAPI, ResponsesAPI

KEY = "sk-fake-0123456789-abcdefghij"
FAST = ModelLimits(retry_seconds=0.001)
"""Limits with which tests of retries do not wait."""


@dataclass(frozen=True)
class API:
    """One API of the fake provider, and the model that speaks it."""

    model: Any
    answers: Any

    def __str__(self) -> str:
        return str(self.model.__name__)

    def connect(self, provider: FakeProvider, **settings: Any) -> Any:
        return self.model("fake-model", **{"api_key": KEY, "base_url": provider.url, "limits": FAST, **settings})


APIS = [
    API(AnthropicModel, MessagesAPI),
    API(ChatCompletionsModel, ChatCompletionsAPI),
    API(ResponsesModel, ResponsesAPI),
]
each_api = pytest.mark.parametrize("api", APIS, ids=str)

HELLO = Answer([("text", "Hello, wörld: 😀 tea")])
CALL = Answer([("text", "I look."), ("tool", "id_1", "search", '{"q": "täa", "n": [1, 2]}')], "tools")
CALLS = Answer(
    [
        ("text", "Both:"),
        ("tool", "id_1", "search", '{"q": "}\\"{"}'),
        ("tool", "id_2", "stop", "{}"),
    ],
    "tools",
)


def ask(text: str = "What?", **more: Any) -> CreateMessageParams:
    message = SamplingMessage(role="user", content=TextContent(text=text))
    return CreateMessageParams(**{"messages": [message], "max_tokens": 100, **more})


def text_of(result: CreateMessageResult) -> str:
    return "".join(block.text for block in blocks_of(result) if isinstance(block, TextContent))
