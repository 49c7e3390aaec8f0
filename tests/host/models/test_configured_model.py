"""Models from a configuration."""

from __future__ import annotations

from typing import Any

import pytest

from accord.errors import DeclarationError, TargetError
from accord.host import AnthropicModel, ChatCompletionsModel, ResponsesModel, model_from_settings
from accord.host.models.configured_model import ConfiguredModel

from tests.host.models.fake_provider import ChatCompletionsAPI, FakeProvider, streamed
from tests.host.models.providers import HELLO, KEY, ask, text_of


@pytest.mark.parametrize(
    ("api", "model"),
    [("anthropic", AnthropicModel), ("chat-completions", ChatCompletionsModel), ("responses", ResponsesModel)],
)
def test_each_api_has_its_model(api: str, model: Any) -> None:
    found = model_from_settings({"api": api, "name": "m", "apiKey": KEY, "cost": 0.9, "speed": 1})
    assert type(found) is model
    assert (found.name, found.cost, found.speed, found.intelligence) == ("m", 0.9, 1, 0.5)
    assert found.base_url == model.default_base_url


async def test_every_member_has_its_effect() -> None:
    async with FakeProvider(streamed(ChatCompletionsAPI.stream(HELLO))) as provider:
        model = model_from_settings(
            {
                "api": "chat-completions",
                "name": "m",
                "apiKey": KEY,
                "baseUrl": provider.url,
                "headers": {"X-Team": "tea"},
                "options": {"top_p": 0.5},
                "stream": False,
                "tokenField": "max_completion_tokens",
            }
        )
        assert text_of((await model.create_message(ask())).result) == HELLO.parts[0][1]
    (request,) = provider.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-team"] == "tea"
    assert request.body == {
        "model": "m",
        "max_completion_tokens": 100,
        "top_p": 0.5,
        "messages": [{"role": "user", "content": "What?"}],
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"api": "gemini"}, "Invalid enum value 'gemini' - at `$.api`"),
        ({"name": 5}, "Expected `str`, got `int` - at `$.name`"),
        ({"key": KEY}, "unknown field `key`"),
        ({"tokenField": "max_tokens"}, "tokenField is for the API chat-completions only"),
        ({"options": {"stream": False}}, "options cannot have 'stream'"),
    ],
)
def test_an_invalid_member_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        model_from_settings({"api": "anthropic", "name": "m", "apiKey": KEY, **change})
    assert said in str(caught.value)
    assert KEY not in str(caught.value)


def test_an_unsafe_url_is_refused() -> None:
    with pytest.raises(TargetError, match="base_url"):
        model_from_settings({"api": "anthropic", "name": "m", "baseUrl": "http://example.com"})


def test_secrets_are_not_shown() -> None:
    found = ConfiguredModel(api="anthropic", name="m", api_key=KEY, headers={"X-Key": KEY})
    assert KEY not in repr(found)
