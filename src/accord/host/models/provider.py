"""The common part of all models behind an HTTP API: key, URL, options, limits, traits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, TypedDict, TypeVar, Unpack

import msgspec

from accord.errors import DeclarationError, ModelError
from accord.host.models.answer import AnswerBuilder
from accord.host.models.api_key import APIKey
from accord.host.models.failures import ProviderFailure
from accord.host.models.hidden_content import HiddenContent
from accord.host.models.http import AnswerReader, ProviderHTTP
from accord.host.models.limits import ModelLimits
from accord.host.models.model import ModelResult, OnText
from accord.host.models.tool_names import ToolNames
from accord.messages.base import JSONObject, JSONValue
from accord.messages.sampling import CreateMessageParams, blocks_of
from accord.transport.http.settings import HTTPSettings

_Self = TypeVar("_Self", bound="ModelOverHTTP")
_encode = msgspec.json.Encoder().encode
_FIXED = ("model", "messages", "input", "stream")
"""Members of a request that `options` cannot replace."""


class ModelSettings(TypedDict, total=False):
    """The settings of a model behind an HTTP API."""

    api_key: str | None
    """The key, or `keyring:service/name`. Without it, the environment variable of the provider is used, but only at the
    provider's own `base_url`."""
    base_url: str | None
    """The URL of the API: https, or http on this machine. By default that of the provider."""
    options: Mapping[str, JSONValue] | None
    """Members of each request (`{"top_p": 0.9}`). They replace those that accord sends; None leaves one out."""
    http: HTTPSettings | None
    """Further headers, a proxy, a TLS context, and the number of connections."""
    limits: ModelLimits | None
    """Limits of sizes and times, and the number of retries."""
    stream: bool
    """False for a server that cannot stream: `on_text` is then called once, with the whole text. True by default."""
    cost: float
    """Trait for `choose_model`, from 0 to 1: 1 is the most expensive. 0.5 by default, as for the next two."""
    speed: float
    """Trait for `choose_model`, from 0 to 1: 1 is the fastest."""
    intelligence: float
    """Trait for `choose_model`, from 0 to 1: 1 is the most capable."""


class ModelOverHTTP(ABC):
    """A model behind an HTTP API. `name` is the provider's name of the model.

    `async with model:` keeps connections between calls; otherwise each call has its own. Raises `TargetError` for an
    unsafe URL or a key that cannot be sent, `DeclarationError` for options that cannot be replaced.
    """

    default_base_url: ClassVar[str]
    _path: ClassVar[str]
    _key_variable: ClassVar[str]

    def __init__(self, name: str, **settings: Unpack[ModelSettings]) -> None:
        self.name: str = name
        self.cost: float = settings.get("cost", 0.5)
        self.speed: float = settings.get("speed", 0.5)
        self.intelligence: float = settings.get("intelligence", 0.5)
        self._limits = settings.get("limits") or ModelLimits()
        self._options = dict(settings.get("options") or {})
        self._hidden = HiddenContent()
        self._refuses_temperature = False
        self._stream = settings.get("stream", True)
        url = settings.get("base_url") or self.default_base_url
        self._http = ProviderHTTP(name, url, settings.get("http") or HTTPSettings(), self._limits)
        self._is_provider = self._http.base_url == self.default_base_url
        key = settings.get("api_key")
        self._key = APIKey(self._environment_key() if key is None and self._is_provider else key)
        for option in _FIXED:
            if option in self._options:
                raise DeclarationError(f"options cannot have {option!r}: the request of the host sets it")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, base_url={self.base_url!r})"

    @property
    def base_url(self) -> str:
        """Return the URL of the API."""
        return self._http.base_url

    async def __aenter__(self: _Self) -> _Self:
        await self._http.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that are kept."""
        await self._http.close()

    async def create_message(self, params: CreateMessageParams, *, on_text: OnText | None = None) -> ModelResult:
        """Return the answer to a request; see `LanguageModel.create_message`. Raises `ModelError`."""
        names = ToolNames.of_request(params)
        answer = self._new_answer(names)

        def new_reader() -> AnswerReader:
            nonlocal answer
            answer = self._new_answer(names)
            return self._reader(params, answer)

        try:
            request = self._request(params, names)
            body = _encode(request)
            new_reader()
        except (ProviderFailure, UnicodeEncodeError, RecursionError) as exc:
            raise ModelError(f"{self._what}: {exc}") from None
        try:
            found = await self._post(body, new_reader, on_text)
        except ModelError as exc:
            if not self._learn_refusal(request, exc):
                raise
            body = _encode({member: value for member, value in request.items() if member != "temperature"})
            found = await self._post(body, new_reader, on_text)
        if answer.uses:
            self._hidden.remember(blocks_of(found.result), answer.hidden)
        return found

    async def _post(self, body: bytes, new_reader: Callable[[], AnswerReader], on_text: OnText | None) -> ModelResult:
        return await self._http.post(self._path, await self._key_headers(), body, new_reader, on_text)

    def _learn_refusal(self, request: JSONObject, error: ModelError) -> bool:
        """Return whether the model refused the temperature of a request: a server sets it, and cannot know the model.
        Later requests have none."""
        sent = "temperature" in request and "temperature" not in self._options
        if not sent or error.status != 400 or "temperature" not in str(error):
            return False
        self._refuses_temperature = True
        return True

    def _new_answer(self, names: ToolNames) -> AnswerBuilder:
        return AnswerBuilder(self.name, self._limits, names)

    @property
    def _what(self) -> str:
        return f"{self.name} at {self._http.host}"

    def _request(self, params: CreateMessageParams, names: ToolNames) -> JSONObject:
        body = {"model": self.name, **self._body(params, names)}
        if self._refuses_temperature:
            body["temperature"] = None
        body |= self._options
        if self._stream:
            body["stream"] = True
        return {member: value for member, value in body.items() if value is not None}

    async def _key_headers(self) -> dict[str, str]:
        key = await self._key.resolve()
        if key is None and self._is_provider:
            raise ModelError(f"{self._what}: there is no API key; set {self._key_variable}, or give api_key=")
        return {} if key is None else self._authentication(key)

    @staticmethod
    @abstractmethod
    def _environment_key() -> str | None:
        """Return the key of the environment."""

    @abstractmethod
    def _authentication(self, key: str) -> dict[str, str]:
        """Return the headers that authenticate a request."""

    @abstractmethod
    def _body(self, params: CreateMessageParams, names: ToolNames) -> JSONObject:
        """Return the members of a request; those that are None are left out. Raises `ProviderFailure`."""

    @abstractmethod
    def _reader(self, params: CreateMessageParams, answer: AnswerBuilder) -> AnswerReader:
        """Return a reader that fills `answer`. Raises `ProviderFailure`."""
