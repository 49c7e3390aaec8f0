"""Registrations: how the server calls a function, and how it completes the arguments of a prompt or a template: by
functions, or by the choices of their types.

The signature of a completer is read when it is declared, and a type when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import msgspec
from msgspec import Raw

from accord.errors import DeclarationError, InvalidArguments, InvalidParams
from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.revision import LATEST, RULES, Rules
from accord.messages.tools import UI_EXTENSION, Tool
from accord.server.core.content import NO_CACHE, CacheHint
from accord.server.declare.signature import Signature, signature
from accord.server.depends.markers import dependency_in, is_dependency
from accord.server.input.question import is_question
from accord.wire.headers import Mirrored, mirrored

if TYPE_CHECKING:
    from accord.server.core.visibility import Visibility
    from accord.server.depends.dependencies import Dependencies
    from accord.server.input.parameters import InputParameter
    from accord.server.middleware.chain import Chain, Guard, MiddlewareStep
    from accord.server.tasks.options import Task


class AccessMetadata(msgspec.Struct, frozen=True):
    """The metadata that decides who may see a registration."""

    tags: frozenset[str] = frozenset()
    """Tags, to show or hide several registrations at once."""
    scopes: frozenset[str] = frozenset()
    """Scopes that a principal needs, all of them; for all others the registration does not exist."""
    version: str | None = None
    needs: frozenset[str] = frozenset()
    """Scopes that a call needs, all of them; the registration is visible without them."""


NO_METADATA = AccessMetadata()


CallRewriter = Callable[["Registration", Raw], tuple[str, Raw]]
"""Returns the name and the arguments of the tool that a rewritten call calls. Raises `InvalidArguments`."""


class OutputEncoder(Protocol):
    """The structured output of a tool."""

    @property
    def result_schema(self) -> JSONObject | None:
        """The schema of the value itself; None without structured output."""

    def encode(self, value: Any) -> Raw:
        """Validate and encode the value. Raises `ToolError`."""

    def wrap(self, packed: Raw) -> Raw:
        """Return an encoded value as it is sent through 2025-11-25, which allows only objects: other values become
        `{"result": ...}`.
        """


class RuleSource(Protocol):
    """A registry whose rules check the URIs of a template."""

    visibility: Visibility | None

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The access rules of its middleware."""


class TemplateGuard(NamedTuple):
    """A registry whose rules check each URI of a template; see `compose.access`."""

    registry: RuleSource
    depth: int
    """The number of mounts between the template's declaration and this registry."""
    text: str
    """The text of the template in this registry."""
    own_guards: tuple[Guard, ...]
    """The access rules of the template's own middleware."""


class Registration:
    """A function of the program, with all that the server needs to call it."""

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
        "listed_with",
        "may_mirror",
        "may_request_input",
        "may_run_again",
        "metadata",
        "middleware",
        "names",
        "output",
        "resolve_hints",
        "rewrite_call",
        "task",
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
        """Parameters that are requested from the client."""
        self.dependencies: Dependencies | None = depends
        """Parameters that functions of the program provide."""
        self.metadata: AccessMetadata = NO_METADATA
        """Decides who may see it. Each server that it passes adds the scopes of its rules."""
        self.middleware: tuple[MiddlewareStep, ...] = ()
        """The middleware of this function alone, the outermost first."""
        self.chain: Chain | None = None
        """The function inside all of its middleware; None without middleware. Set by the registry that shows it."""
        self.is_public: bool = True
        """Whether every client may call it, and it has one version only. Set by the registry that shows it."""
        self.listed_with: str | None = None
        """The extension that the client of a session declares where this is listed; None: it is listed everywhere."""
        self.names: tuple[str, ...] = ()
        """The names or URIs under which the registry has it; mostly one."""
        self.former_names: tuple[str, ...] = ()
        """Its names in mounted servers, and before it was changed."""
        self.former_tags: frozenset[str] = frozenset()
        """Its tags before it was changed."""
        self.inner_names: tuple[Callable[[str], str | None], ...] = ()
        """Functions from a URI to the URI inside, one for each mount, the outermost first."""
        self.template_guards: tuple[TemplateGuard, ...] = ()
        """For a template: the registries with rules that it has passed."""
        self.rewrite_call: CallRewriter | None = None
        """Rewrites a call of this tool into a call of another tool; see `compose.search`."""
        self.versions: Mapping[str, Registration] = {}
        """All of its versions, if there are several."""
        self.may_run_again: bool = may_run_again
        """Whether it is safe to run it twice."""
        self.task: Task | None = None
        """The options of a tool that may run as a task."""
        self.completions: ArgumentCompletions | None = None
        """The completions of its arguments."""
        self.cache: CacheHint = NO_CACHE
        """How long clients may cache its results."""
        self.may_request_input: bool = context or bool(declared) or (depends is not None and depends.context)
        """Whether it can request input from the client."""
        self.resolve_hints: Callable[[], None] | None = None
        """Resolves the type hints with names that are not defined yet, such as a class further down in the module; None
        once all are resolved. Raises `DeclarationError`.
        """
        self.digests: dict[str, bytes] = {}
        """Digests of the definition, by revision; see `input.multi_round_trip`."""
        self._mirrored: Mirrored | None = None
        self.may_mirror: bool = True
        """False once `mirrored` has found that no HTTP header repeats an argument."""

    @property
    def is_mounted(self) -> bool:
        """Whether it was declared on a mounted server."""
        return False

    def derived(self, **changes: Any) -> Self:
        """Return a copy with these attributes changed."""
        made = type(self).__new__(type(self))
        made.copy_from(self, changes)
        return made

    def copy_from(self, other: Registration, changes: Mapping[str, Any]) -> None:
        """Copy all attributes of another registration, except for these changes."""
        for name in Registration.__slots__:  # a tenth of what copy() takes: a server may have thousands mounted
            setattr(self, name, getattr(other, name))
        self.digests, self._mirrored, self.may_mirror, self.chain = {}, None, True, None
        for name, value in changes.items():
            setattr(self, name, value)

    @property
    def mirrored(self) -> Mirrored:
        """The arguments of a tool that HTTP headers repeat; none for most tools. Raises `DeclarationError`."""
        if self._mirrored is None:
            tool: Tool = self.define(RULES[LATEST])
            try:
                self._mirrored = mirrored(tool.input_schema)
            except ValueError as exc:
                raise DeclarationError(f"tool {tool.name!r}: {exc}") from exc
            self.may_mirror = bool(self._mirrored)
        return self._mirrored

    def check_mirrored(self) -> None:
        """Raise the error of `mirrored` now."""
        _ = self.mirrored


def listing_extension(tool: Tool) -> str | None:
    """Return the extension that the client of a session declares where a tool is listed: MCP Apps for one that only
    pages may call, None for others. Only the final metadata decides, however the tool was declared.
    """
    ui = tool.ui if tool.meta and "ui" in tool.meta else None
    return None if ui is None or ui.is_for_model else UI_EXTENSION


def definition_key(definition: Any) -> str:
    """Return the key of a definition: its name, its URI, or the text of a template."""
    for field in ("uri", "uri_template"):
        if hasattr(definition, field):
            return getattr(definition, field)  # type: ignore[no-any-return]
    return definition.name  # type: ignore[no-any-return]


def input_parameters_in(read: Signature) -> Sequence[InputParameter]:
    """Return the parameters that are requested from the client. Raises `DeclarationError`."""
    parameters = [one for one in read.injected if is_question(one.hint, one.default)]
    if not parameters:
        return ()
    from accord.server.input.parameters import input_parameter

    return [input_parameter(one, read.names, read.defaults) for one in parameters]


def dependencies_in(read: Signature) -> Dependencies | None:
    """Return the parameters that functions of the program provide. Raises `DeclarationError`."""
    filled = {one.name: found for one in read.injected if (found := dependency_in(one.hint, one.default))}
    if not filled and not read.handle_parameters:
        return None
    from accord.server.depends.dependencies import Dependencies

    return Dependencies(read.name, filled, read.handle_parameters, read.contexts)


class Completer:
    """A function that completes one argument."""

    def __init__(self, function: Callable[..., Any], read: Signature) -> None:
        self._signature = read
        self._value_parameter, *self._context_parameters = read.names
        self.registration: Registration = Registration(
            function,
            lambda _: None,
            bind=self._bind,
            context=read.context is not None,
            is_async=read.is_async,
            depends=dependencies_in(read),
        )

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._signature.name

    @cached_property
    def _needs(self) -> Collection[str]:
        needs: Collection[str] = self._signature.input_schema.get("required", ())
        return [name for name in needs if name != self._value_parameter]

    @property
    def defaults(self) -> dict[str, str]:
        """The default values of the arguments that it depends on."""
        return {name: value for name, value in self._signature.defaults.items() if isinstance(value, str)}

    def is_ready(self, known: Mapping[str, str]) -> bool:
        """Return whether all required arguments are known."""
        return all(name in known for name in self._needs)

    def _bind(self, values: Any, context: Any) -> tuple[Any, Any]:
        """Return the arguments of the call: the typed text and the known arguments. Raises `InvalidParams`."""
        typed, known = values
        given = {
            self._value_parameter: typed,
            **{name: known[name] for name in self._context_parameters if name in known},
        }
        try:
            return self._signature.bind(codec.encode(given), context)
        except InvalidArguments as error:
            raise InvalidParams(error.message) from error


class ArgumentCompletions:
    """The completions of the arguments of one prompt or template; `variables` are those of a template."""

    def __init__(self, what: str, read: Signature, variables: Collection[str] | None = None) -> None:
        self.what: str = what
        """The name in error messages: `prompt 'plan'`."""
        self.completers: dict[str, Completer] = {}
        self._signature = read
        self._variables = variables

    def __bool__(self) -> bool:
        """Return whether any argument has completions."""
        if self.completers:
            return True
        with suppress(DeclarationError):  # a type hint that cannot be resolved yet
            return any(choices for name, choices in self._signature.choices.items() if self.has(name))
        return False

    @property
    def context(self) -> bool:
        """Whether any of the functions takes a context."""
        return any(completer.registration.context for completer in self.completers.values())

    def add(self, argument: str, function: Callable[..., Any], context: type) -> None:
        """Register a function that completes an argument. Raises `DeclarationError`."""
        read = signature(function, context=context, injected=is_dependency)
        if not read.names:
            raise DeclarationError(f"{read.name} must take the text typed so far as its first parameter")
        for name in (argument, *read.names[1:]):
            if not self.has(name):
                raise DeclarationError(f"{read.name}: {self.what} has no argument {name!r}")
        if argument in self.completers:
            raise DeclarationError(f"{read.name}: {argument!r} of {self.what} already has a completer")
        self.completers[argument] = Completer(function, read)

    def has(self, argument: str) -> bool:
        """Return whether the argument exists."""
        if self._variables is not None:
            return argument in self._variables
        return argument in self._signature.choices or self._signature.is_open

    def choices(self, argument: str, typed: str) -> list[str]:
        """Return the choices of an argument's type that begin with the typed text."""
        start = typed.casefold()
        return [text for text in self._signature.choices.get(argument, ()) if text.casefold().startswith(start)]
