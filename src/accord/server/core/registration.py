"""One function that is offered: what it is called with, and how; and what completes the arguments of a prompt or a
template: functions, or the choices of their types.

Nothing is read of a function that completes before it is declared, and nothing of a type before someone asks.
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
from accord.messages.tools import Tool
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


class RuleSource(Protocol):
    """A registry, as the rules of it judge the URIs of a template."""

    visibility: Visibility | None

    @property
    def guards(self) -> tuple[Guard, ...]:
        """What its middleware asks of who sees its things."""


class TemplateGuard(NamedTuple):
    """A registry whose rules judge each URI of a template; see `compose.access`."""

    registry: RuleSource
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
        self.chain: Chain | None = None
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

    @property
    def is_mounted(self) -> bool:
        """Whether the server that it was declared on is mounted in another."""
        return False

    def derived(self, **changes: Any) -> Self:
        """The same function, offered as something else."""
        made = type(self).__new__(type(self))
        made.copy_from(self, changes)
        return made

    def copy_from(self, other: Registration, changes: Mapping[str, Any]) -> None:
        """Become what another is, but for these attributes."""
        for name in Registration.__slots__:  # a tenth of what copy() takes: a server may have thousands mounted
            setattr(self, name, getattr(other, name))
        self.digests, self._mirrored, self.chain = {}, None, None
        for name, value in changes.items():
            setattr(self, name, value)

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


def input_parameters_in(read: Signature) -> Sequence[InputParameter]:
    """The parameters that the client is asked for. Raises `DeclarationError`."""
    asked = [one for one in read.injected if is_question(one.hint, one.default)]
    if not asked:
        return ()
    from accord.server.input.parameters import input_parameter

    return [input_parameter(one, read.names, read.defaults) for one in asked]


def dependencies_in(read: Signature) -> Dependencies | None:
    """The parameters that functions of the program fill. Raises `DeclarationError`."""
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
        """The values of the arguments that it depends on, where a client gives none."""
        return {name: value for name, value in self._signature.defaults.items() if isinstance(value, str)}

    def is_ready(self, known: Mapping[str, str]) -> bool:
        """Whether the arguments that it depends on have their values."""
        return all(name in known for name in self._needs)

    def _bind(self, values: Any, context: Any) -> tuple[Any, Any]:
        """What to call it with: what was typed, and the arguments that it depends on. Raises `InvalidParams`."""
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
    """What is proposed for the arguments of one prompt or template; `variables` are those of a template."""

    def __init__(self, what: str, read: Signature, variables: Collection[str] | None = None) -> None:
        self.what: str = what
        """As errors name it: `prompt 'plan'`."""
        self.completers: dict[str, Completer] = {}
        self._signature = read
        self._variables = variables

    def __bool__(self) -> bool:
        """Whether anything is proposed for any argument."""
        if self.completers:
            return True
        with suppress(DeclarationError):  # a type that cannot be read yet
            return any(choices for name, choices in self._signature.choices.items() if self.has(name))
        return False

    @property
    def context(self) -> bool:
        """Whether any of the functions takes a context."""
        return any(completer.registration.context for completer in self.completers.values())

    def add(self, argument: str, function: Callable[..., Any], context: type) -> None:
        """Complete an argument by a function. Raises `DeclarationError`."""
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
        """Whether there is such an argument."""
        if self._variables is not None:
            return argument in self._variables
        return argument in self._signature.choices or self._signature.is_open

    def choices(self, argument: str, typed: str) -> list[str]:
        """What the type of an argument allows, as far as it begins with what was typed."""
        start = typed.casefold()
        return [text for text in self._signature.choices.get(argument, ()) if text.casefold().startswith(start)]
