"""`Server`: what a program declares, and where it is served."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec
from msgspec import Raw

from accord.errors import DeclarationError, LocalProtocolError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages import codec
from accord.messages.base import JSONObject, Meta
from accord.messages.content import Annotations, Resource
from accord.messages.extension import Extension, settings_of
from accord.messages.identity import Icon, Implementation
from accord.messages.meta import check_meta
from accord.messages.prompts import Prompt
from accord.messages.resources import ResourceTemplate
from accord.messages.revision import REVISIONS, Rules
from accord.messages.tools import Tool, ToolAnnotations
from accord.server.asking.question import is_question
from accord.server.context import Context
from accord.server.extended import Extended
from accord.server.registry import (
    Registry,
    prompt_offer,
    resource_offer,
    tool_offer,
)
from accord.server.results import UNSTRUCTURED
from accord.server.signature import Signature, signature
from accord.session.negotiate import check_spoken
from accord.session.profile import Profile

if TYPE_CHECKING:
    from accord.server.asking.rounds import Rounds
    from accord.transport.base import Transport

F = TypeVar("F", bound=Callable[..., Any])


class Server:
    """A Model Context Protocol server: declare tools, resources and prompts on it, then `run()`.

    One program serves all revisions at once. `name` and `version` are what clients show; `instructions` tell a
    model how to use the server. `revisions` restricts what is spoken; `limits` are the bounds that protect it.
    `state_keys` seal what a question leaves with the client (2026-07-28): secrets of at least 16 bytes, the first seals
    and all open; one that lives as long as the process if none are given. `extensions` and `experimental` are declared
    as capabilities; see `method` for what extensions add.
    """

    def __init__(
        self,
        name: str,
        version: str = "0.0.0",
        *,
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] | None = None,
        instructions: str | None = None,
        revisions: Sequence[str] = REVISIONS,
        limits: Limits = DEFAULT_LIMITS,
        state_keys: Sequence[bytes] | None = None,
        extensions: Sequence[Extension] = (),
        experimental: Mapping[str, JSONObject] | None = None,
    ) -> None:
        self.info: Implementation = Implementation(
            name=name,
            version=version,
            title=title,
            description=description,
            website_url=website_url,
            icons=list(icons) if icons else None,
        )
        self.instructions = instructions
        self.limits = limits
        self.revisions: tuple[str, ...] = check_spoken(revisions)
        self.extended: Extended = Extended(extensions)
        self._experimental = dict(experimental) if experimental else None
        self.asked: Rounds | None = None
        """The same, once there has been such a call."""
        self._state_keys = state_keys
        self.registry: Registry = Registry(self._pack_list, limits.page_size)

    def __repr__(self) -> str:
        held = self.registry
        return f"<Server {self.info.name!r}: {len(held.tools)} tools, {len(held.prompts)} prompts>"

    @property
    def name(self) -> str:
        """The name that clients are told."""
        return self.info.name

    @property
    def rounds(self) -> Rounds:
        """The calls that ask the client, and wait for its answers."""
        if self.asked is None:
            from accord.server.asking.rounds import Rounds
            from accord.server.seal import Keyring

            self.asked = Rounds(self.name, Keyring(self._state_keys), self.limits)
        return self.asked

    def method(self, name: str) -> Callable[[F], F]:
        """Answer a request, or hear a notification, that an extension of this server lists.

        The function takes the params as their type, and a `Context` if it wants one; what it returns is the result.
        Raises `DeclarationError`.
        """

        def declare(function: F) -> F:
            self.extended.add(name, function, Context)
            return function

        return declare

    def complete_elicitation(self, elicitation_id: str) -> bool:
        """Tell the client that its person is done at the page of `ElicitUrl` (`notifications/elicitation/complete`).

        From any thread. Whether it was told: only 2025-11-25 has words for it, and only the client that was asked.
        """
        return self.asked is not None and self.asked.visits.complete(elicitation_id)

    # --- tools -------------------------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        timeout: float | None = None,
        strict: bool = False,
    ) -> Callable[[F], F]: ...

    def tool(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Offer a function as a tool; the function stays what it was.

        Name, description and parameters are read from the function: type hints give the schema, the docstring the
        descriptions, the return type the structured output. `timeout` is in seconds. `strict` refuses JSON in a
        string where something else is asked for. Raises `DeclarationError`.
        """
        if function is not None:
            return self._add_tool(function, **options)
        return lambda function: self._add_tool(function, **options)

    def _add_tool(
        self,
        function: F,
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        strict: bool = False,
        **about: Any,
    ) -> F:
        read = signature(function, context=Context, injected=is_question, unstructured=UNSTRUCTURED, strict=strict)
        tool = Tool(
            name=name or read.name,
            description=description or read.description or None,
            input_schema={},
            **_listed(about),
        )
        self.registry.add(self.registry.tools, tool.name, tool_offer(function, read, tool, timeout), "tool")
        return function

    def add_tool(self, tool: Tool, handler: Callable[..., Any], *, timeout: float | None = None) -> None:
        """Offer a tool with a schema by hand. `handler(arguments)` gets a dict, checked against `input_schema`;
        `handler(arguments, context)` gets the `Context` as well.

        What it returns is taken as for other tools; structured output is checked against `output_schema`.
        """
        from accord.server.handmade import handmade_offer

        offer = handmade_offer(tool, handler, timeout, self.limits)
        self.registry.add(self.registry.tools, tool.name, offer, "tool")

    # --- resources ---------------------------------------------------------------------------------------------

    def resource(
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
    ) -> Callable[[F], F]:
        """Offer a function as the resource at `uri`; with `{variables}` (RFC 6570) as a template of resources,
        whose variables are the function's parameters. Raises `DeclarationError`.
        """
        about = _listed({"title": title, "annotations": annotations, "icons": icons, "meta": meta})

        def declare(function: F) -> F:
            read = signature(function, context=Context, injected=is_question)
            about.update(
                name=name or read.name,
                description=description or read.description or None,
                mime_type=mime_type,
            )
            if "{" in uri:
                self._add_template(function, read, ResourceTemplate(uri_template=uri, **about))
            else:
                offer = resource_offer(function, read, Resource(uri=uri, size=size, **about))
                self.registry.add(self.registry.resources, uri, offer, "resource")
            return function

        return declare

    def _add_template(self, function: F, read: Signature, about: ResourceTemplate) -> None:
        from accord.server.templates import Template

        template = Template(about.uri_template)
        unknown = {name for name in template.variables if not read.takes(name)}
        if unknown:
            raise DeclarationError(
                f"resource {template.text!r}: {read.name}() has no parameter for {', '.join(sorted(unknown))}"
            )
        offer = resource_offer(function, read, about)
        self.registry.add(self.registry.templates, template.text, (template, offer), "resource template")

    # --- prompts -----------------------------------------------------------------------------------------------

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
    ) -> Callable[[F], F]: ...

    def prompt(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Offer a function as a prompt; its parameters are the arguments. Raises `DeclarationError`."""
        if function is not None:
            return self._add_prompt(function, **options)
        return lambda function: self._add_prompt(function, **options)

    def _add_prompt(self, function: F, *, name: str | None = None, description: str | None = None, **about: Any) -> F:
        read = signature(function, context=Context, injected=is_question)
        prompt = Prompt(name=name or read.name, description=description or read.description or None, **_listed(about))
        self.registry.add(self.registry.prompts, prompt.name, prompt_offer(function, read, prompt), "prompt")
        return function

    # --- serving -----------------------------------------------------------------------------------------------

    def profile(self) -> Profile:
        """What this server says of itself."""
        capabilities = msgspec.structs.replace(
            self.registry.capabilities(),
            extensions=settings_of(self.extended.extensions),
            experimental=self._experimental,
        )
        return Profile(self.info, capabilities, self.instructions)

    def _pack_list(self, result: Any, rules: Rules) -> Raw:
        return Raw(codec.encode(codec.finish(result, rules, codec.raw(self.info))))

    async def serve(self, transport: Transport) -> None:
        """Serve one connection until it ends; calls in flight are answered first, within the grace period."""
        from accord.server.run import serve

        await serve(self, transport)

    def run(self) -> None:
        """Serve over stdin and stdout until the client closes them, or SIGTERM or Ctrl-C; then return."""
        from accord.server.run import run_stdio

        run_stdio(self)


def _listed(about: dict[str, Any]) -> dict[str, Any]:
    """Options as a message has them: sequences as lists, without what was not given, `_meta` with keys that may be."""
    found = {key: value for key, value in about.items() if value is not None}
    if "meta" in found:
        try:
            check_meta(found["meta"])
        except LocalProtocolError as exc:
            raise DeclarationError(str(exc)) from exc
    if "icons" in found:
        found["icons"] = list(found["icons"])
    return found
