"""The model of a chat, as `--model` names it: `anthropic:NAME`, a name alone, or `scripted:FILE`, which is a fake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from accord.errors import TargetError
from accord.host.models.model import LanguageModel
from accord.messages.content import SamplingMessageContentBlock

PROVIDERS = ("anthropic", "responses", "chat-completions", "scripted")


def chat_model(text: str, base_url: str | None = None) -> LanguageModel:
    """Return the model for `--model` and `--base-url`. Raises `TargetError`."""
    provider, separator, name = text.partition(":")
    if not separator or provider not in PROVIDERS:  # a name may have a colon, such as llama3:8b
        provider, name = _provider_of(text, base_url), text
    if not name:
        raise TargetError(f"--model {text!r:.100} has no name after the provider")
    if provider == "scripted":
        return _scripted(Path(name))
    from accord.host.models.anthropic import AnthropicModel
    from accord.host.models.chat_completions import ChatCompletionsModel
    from accord.host.models.responses import ResponsesModel

    models: dict[str, Any] = {
        "anthropic": AnthropicModel, "responses": ResponsesModel, "chat-completions": ChatCompletionsModel,
    }  # fmt: skip
    model: LanguageModel = models[provider](name, base_url=base_url)
    return model


def _provider_of(name: str, base_url: str | None) -> str:
    """Return the provider of a name alone: servers of other providers and on this machine have Chat Completions."""
    if name.startswith("claude"):
        return "anthropic"
    return "responses" if base_url is None else "chat-completions"


def _scripted(file: Path) -> LanguageModel:
    from accord.testing.scripted_model import ScriptedModel

    decoder: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(
        list[str | SamplingMessageContentBlock | list[SamplingMessageContentBlock]]
    )
    try:
        return ScriptedModel(decoder.decode(file.read_bytes()), name=file.name)
    except OSError as exc:
        raise TargetError(f"{file}: {exc.strerror or exc}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise TargetError(f"{file} is no script: a JSON list of answers, texts or content blocks: {exc}") from exc
