"""One function that is offered: what it is called with, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
from msgspec import Raw

from accord.errors import DeclarationError, InvalidArguments, InvalidParams
from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.content import Resource
from accord.messages.prompts import Prompt, PromptArgument
from accord.messages.resources import ResourceTemplate
from accord.messages.revision import LATEST, RULES, Rules
from accord.messages.tools import Tool
from accord.server.core.content import NO_CACHE, CacheHint
from accord.server.declare.signature import Signature
from accord.server.depends.markers import dependency_in
from accord.server.input.question import is_question
from accord.wire.headers import ANNOTATION, Mirrored, mirrored

if TYPE_CHECKING:
    from accord.server.core.registry import Registry
    from accord.server.declare.completions import ArgumentCompletions
    from accord.server.depends.dependencies import Dependencies
    from accord.server.input.parameters import InputParameter
    from accord.server.middleware.chain import Guard, MiddlewareStep
    from accord.server.middleware.request import CallNext
    from accord.server.server import Server


class AccessMetadata(msgspec.Struct, frozen=True):
    """What is said of an offer to decide who sees it."""

    tags: frozenset[str] = frozenset()
    """Words to find it by, when things are shown or hidden together."""
    scopes: frozenset[str] = frozenset()
    """What a principal must have been granted, all of it; for anyone else it does not exist."""
    version: str | None = None


NO_METADATA = AccessMetadata()


CallRewriter = Callable[["Registration", Raw], tuple[str, Raw]]
"""Says which tool a call means, and with which arguments. Raises `InvalidArguments`."""


class OutputEncoder(Protocol):
    """What a tool says of its structured output."""

    @property
    def result_schema(self) -> JSONObject | None:
        """The schema of the value itself, or None where there is no structured output."""

    def encode(self, value: Any) -> Raw:
        """The value, checked and encoded. Raises `ToolError`."""

    def wrap(self, packed: Raw) -> Raw:
        """A packed value as it travels through 2025-11-25, where only objects may: `{"result": ...}` if it is none."""


class TemplateGuard(NamedTuple):
    """A registry whose rules judge each URI of a template; see `compose.access`."""

    registry: Registry
    depth: int
    """How many mounts the template has passed before."""
    text: str
    """The template as it is there."""
    own_guards: tuple[Guard, ...]
    """The rules that stand around the template alone."""


class Registration:
    """A function of the program, as the server calls it."""

    __slots__ = (
        "_mirrored",
        "bind",
        "cache",
        "chain",
        "completions",
        "context",
        "define",
        "dependencies",
        "digests",
        "former_names",
        "former_tags",
        "function",
        "inner_names",
        "input_parameters",
        "is_async",
        "is_public",
        "may_request_input",
        "may_run_again",
        "metadata",
        "middleware",
        "names",
        "output",
        "owner",
        "resolve_hints",
        "rewrite_call",
        "template_guards",
        "timeout",
        "versions",
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
        returns: OutputEncoder | None = None,
        declared: Sequence[InputParameter] = (),
        depends: Dependencies | None = None,
        may_run_again: bool = True,
    ) -> None:
        self.function: Callable[..., Any] = function
        self.define: Callable[[Rules], Any] = define
        self.bind: Callable[[Any, Any], tuple[Any, Any]] = bind
        self.context: bool = context
        self.is_async: bool = is_async
        self.timeout: float | None = timeout
        self.output: OutputEncoder | None = returns
        self.input_parameters: Sequence[InputParameter] = declared
        """Parameters that the client is asked for."""
        self.dependencies: Dependencies | None = depends
        """Parameters that are filled by functions of the program."""
        self.metadata: AccessMetadata = NO_METADATA
        """What decides who sees it: `scopes` grow by what the rules of each server ask for that it passes."""
        self.middleware: tuple[MiddlewareStep, ...] = ()
        """The middleware that stands around this function alone, the outermost first."""
        self.chain: CallNext | None = None
        """The function inside all of its middleware; None where there is none. Set by the registry that shows it."""
        self.is_public: bool = True
        """Whether everybody may call it, and there is one of it only. Set by the registry that shows it."""
        self.names: tuple[str, ...] = ()
        """The names or URIs under which the registry has it; most have one."""
        self.former_names: tuple[str, ...] = ()
        """The names that it had inside of mounted servers, and before it was changed."""
        self.former_tags: frozenset[str] = frozenset()
        """The tags that it had before it was changed."""
        self.inner_names: tuple[Callable[[str], str | None], ...] = ()
        """What turns a URI into the one inside, for each mount that it has passed, the outermost first."""
        self.template_guards: tuple[TemplateGuard, ...] = ()
        """For a template: the registries with rules that it has passed."""
        self.owner: Server | None = None
        """The server that it was declared on, where that is mounted in another."""
        self.rewrite_call: CallRewriter | None = None
        """What says which tool is meant, and its arguments, for a tool that calls others; see `compose.search`."""
        self.versions: Mapping[str, Registration] = {}
        """All versions of it, where there are several."""
        self.may_run_again: bool = may_run_again
        """Whether running it twice does no harm."""
        self.completions: ArgumentCompletions | None = None
        """What is proposed for its arguments."""
        self.cache: CacheHint = NO_CACHE
        """How long what it returns may be kept."""
        self.may_request_input: bool = context or bool(declared) or (depends is not None and depends.context)
        """Whether it can ask the client for anything."""
        self.resolve_hints: Callable[[], None] | None = None
        """Reads the hints that name what does not exist yet, such as a class further down in the module; None once all
        are read. Raises `DeclarationError`.
        """
        self.digests: dict[str, bytes] = {}
        """What stands for the definition, by revision; see `asking.rounds`."""
        self._mirrored: Mirrored | None = None

    def derived(self, **changes: Any) -> Registration:
        """The same function, offered as something else."""
        made = Registration.__new__(Registration)
        for name in Registration.__slots__:  # a tenth of what copy() takes: a server may have thousands mounted
            setattr(made, name, getattr(self, name))
        made.digests, made._mirrored, made.chain = {}, None, None
        for name, value in changes.items():
            setattr(made, name, value)
        return made

    @property
    def mirrored(self) -> Mirrored:
        """A tool's arguments that stand in headers of HTTP too: none for most tools. Raises `DeclarationError`."""
        if self._mirrored is None:
            tool: Tool = self.define(RULES[LATEST])
            try:
                self._mirrored = mirrored(tool.input_schema)
            except ValueError as exc:
                raise DeclarationError(f"tool {tool.name!r}: {exc}") from exc
        return self._mirrored

    def check_mirrored(self) -> None:
        """Find out now what `mirrored` raises."""
        _ = self.mirrored


def definition_key(definition: Any) -> str:
    """Return what a definition is known by: its name, its URI, or the text of a template."""
    for field in ("uri", "uri_template"):
        if hasattr(definition, field):
            return getattr(definition, field)  # type: ignore[no-any-return]
    return definition.name  # type: ignore[no-any-return]


def tool_registration(
    function: Callable[..., Any], signature: Signature, tool: Tool, timeout: float | None
) -> Registration:
    """A function as a tool. The schemas are made when the tools are first listed."""

    def define(rules: Rules) -> Tool:
        schema = signature.output_schema if rules.structured_objects_only else signature.result_schema
        return msgspec.structs.replace(tool, input_schema=signature.input_schema, output_schema=schema)

    offer = Registration(
        function,
        define,
        bind=signature.bind,
        context=signature.context is not None,
        is_async=signature.is_async,
        timeout=timeout,
        returns=signature,
        declared=input_parameters_in(signature),
        depends=dependencies_in(signature),
        may_run_again=is_safe(tool),
    )
    return _resolved(
        offer, signature, lambda: offer.check_mirrored() if signature.has_schema_keyword(ANNOTATION) else None
    )


def _resolved(offer: Registration, signature: Signature, check: Callable[[], None]) -> Registration:
    """Check an offer, now or once all names in its hints exist. Raises `DeclarationError`."""
    if signature.is_resolved:
        check()
        return offer

    def resolve() -> None:
        signature.resolve()
        offer.context = signature.context is not None
        offer.input_parameters, offer.dependencies = input_parameters_in(signature), dependencies_in(signature)
        asks = (
            offer.context
            or bool(offer.input_parameters)
            or (offer.dependencies is not None and offer.dependencies.context)
        )
        offer.may_request_input = offer.may_request_input or asks
        check()
        offer.resolve_hints = None

    offer.resolve_hints = resolve
    return offer


def is_safe(tool: Tool) -> bool:
    """Whether its author says that calling it again does no harm."""
    hints = tool.annotations
    return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)


def input_parameters_in(signature: Signature) -> Sequence[InputParameter]:
    """The parameters that the client is asked for. Raises `DeclarationError`."""
    asked = [one for one in signature.injected if is_question(one.hint, one.default)]
    if not asked:
        return ()
    from accord.server.input.parameters import input_parameter

    return [input_parameter(one, signature.names, signature.defaults) for one in asked]


def dependencies_in(signature: Signature) -> Dependencies | None:
    """The parameters that functions of the program fill. Raises `DeclarationError`."""
    filled = {one.name: found for one in signature.injected if (found := dependency_in(one.hint, one.default))}
    if not filled and not signature.handle_parameters:
        return None
    from accord.server.depends.dependencies import Dependencies

    return Dependencies(signature.name, filled, signature.handle_parameters)


def prompt_registration(function: Callable[..., Any], signature: Signature, prompt: Prompt) -> Registration:
    """A function as a prompt: its parameters are the prompt's arguments. Raises `DeclarationError`."""

    def define(_: Rules) -> Prompt:
        return msgspec.structs.replace(prompt, arguments=arguments_of(signature) or None)

    return _text_registration(function, signature, define)


def resource_registration(
    function: Callable[..., Any], signature: Signature, definition: Resource | ResourceTemplate
) -> Registration:
    """A function as a resource or a template of resources. Raises `DeclarationError`."""
    return _text_registration(function, signature, lambda _: definition)


def _text_registration(
    function: Callable[..., Any], signature: Signature, define: Callable[[Rules], Any]
) -> Registration:
    """A function whose arguments all come as strings. Raises `DeclarationError`."""
    offer = Registration(
        function,
        define,
        bind=_bind_strings(signature),
        context=signature.context is not None,
        is_async=signature.is_async,
        declared=input_parameters_in(signature),
        depends=dependencies_in(signature),
    )
    return _resolved(offer, signature, lambda: _refuse_headers(signature))


def _refuse_headers(signature: Signature) -> None:
    if signature.has_schema_keyword(ANNOTATION):
        raise DeclarationError(f"{signature.name}: only parameters of tools can have a Header; leave it out")


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
