"""What a server offers: tools, resources and prompts, each as declared, and their lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Raw

from accord.errors import DeclarationError, InvalidArguments, InvalidParams, ResourceNotFound
from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.capabilities import ListCapability, ResourcesCapability, ServerCapabilities
from accord.messages.content import Resource
from accord.messages.prompts import ListPromptsResult, Prompt, PromptArgument
from accord.messages.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ResourceTemplate,
)
from accord.messages.revision import Rules
from accord.messages.tools import ListToolsResult, Tool
from accord.server.pages import Pages
from accord.server.signature import Signature

if TYPE_CHECKING:
    from accord.server.asking.declared import Declared
    from accord.server.templates import Template


class Returns(Protocol):
    """What a tool says of its structured output."""

    @property
    def result_schema(self) -> JSONObject | None:
        """The schema of the value itself, or None where there is no structured output."""

    def pack(self, value: Any) -> Raw:
        """The value, checked and encoded. Raises `ToolError`."""

    def wrap(self, packed: Raw) -> Raw:
        """A packed value as it travels through 2025-11-25, where only objects may: `{"result": ...}` if it is none."""


class Offer:
    """One function that is offered: what it is called with, and how."""

    __slots__ = (
        "asks",
        "bind",
        "context",
        "declared",
        "define",
        "digests",
        "function",
        "is_async",
        "may_run_again",
        "returns",
        "timeout",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        define: Callable[[Rules], Any],
        *,
        bind: Callable[[Any, Any], tuple[Any, Any]],
        context: bool,
        is_async: bool,
        timeout: float | None = None,
        returns: Returns | None = None,
        declared: Sequence[Declared] = (),
        may_run_again: bool = True,
    ) -> None:
        self.function: Callable[..., Any] = function
        self.define: Callable[[Rules], Any] = define
        self.bind: Callable[[Any, Any], tuple[Any, Any]] = bind
        self.context: bool = context
        self.is_async: bool = is_async
        self.timeout: float | None = timeout
        self.returns: Returns | None = returns
        self.declared: Sequence[Declared] = declared
        """Parameters that the client is asked for."""
        self.may_run_again: bool = may_run_again
        """Whether running it twice does no harm."""
        self.asks: bool = context or bool(declared)
        """Whether it can ask the client for anything."""
        self.digests: dict[str, bytes] = {}
        """What stands for the definition, by revision; see `asking.rounds`."""


class Registry:
    """Everything one server offers, by name, in the order of declaration."""

    def __init__(self, pack: Callable[[Any, Rules], Raw], page_size: int) -> None:
        self.tools: dict[str, Offer] = {}
        self.prompts: dict[str, Offer] = {}
        self.resources: dict[str, Offer] = {}
        self.templates: dict[str, tuple[Template, Offer]] = {}
        self.lists: dict[str, Pages] = {
            "tools/list": self._pages(self.tools, ListToolsResult, "tools", pack, page_size),
            "prompts/list": self._pages(self.prompts, ListPromptsResult, "prompts", pack, page_size),
            "resources/list": self._pages(self.resources, ListResourcesResult, "resources", pack, page_size),
            "resources/templates/list": self._pages(
                self.templates, ListResourceTemplatesResult, "resource_templates", pack, page_size
            ),
        }

    def _pages(
        self,
        offers: Mapping[str, Any],
        result: type,
        field: str,
        pack: Callable[[Any, Rules], Raw],
        size: int,
    ) -> Pages:
        def definitions() -> dict[str, Any]:
            return {name: (offer[1] if isinstance(offer, tuple) else offer).define for name, offer in offers.items()}

        def packed(items: Any, cursor: str | None, rules: Rules) -> Raw:
            return pack(result(**{field: items}, next_cursor=cursor), rules)

        return Pages(definitions, packed, size)

    def add(self, offers: dict[str, Any], name: str, offer: Any, kind: str) -> None:
        """Add one. Raises `DeclarationError` for a name that is taken."""
        if name in offers:
            raise DeclarationError(f"{kind} {name!r} is declared twice; give one of them another name")
        offers[name] = offer
        self.changed()

    def changed(self) -> None:
        """The lists are no longer what they were."""
        for pages in self.lists.values():
            pages.clear()

    def capabilities(self) -> ServerCapabilities:
        """What the server can say it has."""
        return ServerCapabilities(
            tools=ListCapability() if self.tools else None,
            prompts=ListCapability() if self.prompts else None,
            resources=ResourcesCapability() if self.resources or self.templates else None,
        )

    def tool(self, name: str) -> Offer:
        """A tool by its name. Raises `InvalidParams`."""
        offer = self.tools.get(name)
        if offer is None:
            raise InvalidParams(f"no tool {name!r}")
        return offer

    def prompt(self, name: str) -> Offer:
        """A prompt by its name. Raises `InvalidParams`."""
        offer = self.prompts.get(name)
        if offer is None:
            raise InvalidParams(f"no prompt {name!r}")
        return offer

    def resource(self, uri: str) -> tuple[Offer, dict[str, Any]]:
        """The resource that answers for a URI, and what its template read out of it. Raises `ResourceNotFound`."""
        offer = self.resources.get(uri)
        if offer is not None:
            return offer, {}
        for template, offer in self.templates.values():
            found = template.match(uri)
            if found is not None:
                return offer, found
        raise ResourceNotFound(uri=uri)


def tool_offer(function: Callable[..., Any], signature: Signature, tool: Tool, timeout: float | None) -> Offer:
    """A function as a tool. The schemas are made when the tools are first listed."""

    def define(rules: Rules) -> Tool:
        schema = signature.output_schema if rules.structured_objects_only else signature.result_schema
        return msgspec.structs.replace(tool, input_schema=signature.input_schema, output_schema=schema)

    return Offer(
        function,
        define,
        bind=signature.bind,
        context=signature.context is not None,
        is_async=signature.is_async,
        timeout=timeout,
        returns=signature,
        declared=declared_in(signature),
        may_run_again=is_safe(tool),
    )


def is_safe(tool: Tool) -> bool:
    """Whether its author says that calling it again does no harm."""
    hints = tool.annotations
    return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)


def declared_in(signature: Signature) -> Sequence[Declared]:
    """The parameters that the client is asked for. Raises `DeclarationError`."""
    if not signature.injected:
        return ()
    from accord.server.asking.declared import declare

    names = signature.names
    return [declare(one.name, one.hint, one.default, names) for one in signature.injected]


def prompt_offer(function: Callable[..., Any], signature: Signature, prompt: Prompt) -> Offer:
    """A function as a prompt: its parameters are the prompt's arguments."""

    def define(_: Rules) -> Prompt:
        return msgspec.structs.replace(prompt, arguments=arguments_of(signature) or None)

    return Offer(
        function,
        define,
        bind=_bind_strings(signature),
        context=signature.context is not None,
        is_async=signature.is_async,
        declared=declared_in(signature),
    )


def resource_offer(
    function: Callable[..., Any], signature: Signature, definition: Resource | ResourceTemplate
) -> Offer:
    """A function as a resource or a template of resources."""
    return Offer(
        function,
        lambda _: definition,
        bind=_bind_strings(signature),
        context=signature.context is not None,
        is_async=signature.is_async,
        declared=declared_in(signature),
    )


def arguments_of(signature: Signature) -> list[PromptArgument]:
    """A prompt's arguments, read out of the schema of its parameters."""
    schema = signature.input_schema
    required = schema.get("required", ())
    return [
        PromptArgument(name=name, description=about.get("description"), required=name in required)
        for name, about in schema.get("properties", {}).items()
    ]


def _bind_strings(signature: Signature) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Bind values that came as strings (a prompt's arguments, a template's variables) to typed parameters."""

    def bind(values: Mapping[str, Any] | None, context: Any) -> tuple[Any, Any]:
        try:
            return signature.bind(codec.encode(values or {}), context)
        except InvalidArguments as error:
            raise InvalidParams(error.message) from error

    return bind
