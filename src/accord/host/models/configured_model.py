"""Models from a configuration: one JSON object for each.

{"api": "anthropic", "name": "claude-sonnet-5", "apiKey": "keyring:anthropic/work", "cost": 0.6}
{"api": "chat-completions", "name": "qwen3", "baseUrl": "http://127.0.0.1:11434/v1"}
"""

from __future__ import annotations

from typing import Literal

import msgspec

from accord.errors import DeclarationError
from accord.host.models.anthropic import AnthropicModel
from accord.host.models.chat_completions import ChatCompletionsModel, TokenField
from accord.host.models.model import LanguageModel
from accord.host.models.provider import ModelSettings
from accord.host.models.responses import ResponsesModel
from accord.locked_cache import safe_convert
from accord.messages.base import JSONObject
from accord.transport.http.settings import HTTPSettings


class ConfiguredModel(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A model in a configuration. Its members are those of `ModelSettings`, `headers` those of its `http`."""

    api: Literal["anthropic", "chat-completions", "responses"]
    name: str
    api_key: str | None = None
    base_url: str | None = None
    headers: dict[str, str] = {}
    options: JSONObject = {}
    stream: bool = True
    token_field: TokenField | None = None
    cost: float = 0.5
    speed: float = 0.5
    intelligence: float = 0.5

    def __repr__(self) -> str:
        return f"ConfiguredModel({self.api!r}, {self.name!r})"  # the rest may be secret


def model_from_settings(settings: JSONObject) -> LanguageModel:
    """Return the model that an object of a configuration describes.

    Raises `DeclarationError` for an invalid member, `TargetError` for an unsafe URL or a key that cannot be sent.
    """
    try:
        found = safe_convert(settings, ConfiguredModel)
    except msgspec.ValidationError as exc:
        raise DeclarationError(f"invalid model: {exc}") from None
    more: ModelSettings = {
        "api_key": found.api_key,
        "base_url": found.base_url,
        "options": found.options,
        "http": HTTPSettings(headers=found.headers),
        "stream": found.stream,
        "cost": found.cost,
        "speed": found.speed,
        "intelligence": found.intelligence,
    }
    if found.api == "chat-completions":
        return ChatCompletionsModel(found.name, token_field=found.token_field, **more)
    if found.token_field is not None:
        raise DeclarationError("invalid model: tokenField is for the API chat-completions only")
    return AnthropicModel(found.name, **more) if found.api == "anthropic" else ResponsesModel(found.name, **more)
