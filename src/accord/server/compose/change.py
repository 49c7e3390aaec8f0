"""A tool as somebody else wants it shown: another name, another text, fewer arguments.

    server.change_tool("acme_forecast", ToolChange(
        name="weather",
        arguments={"q": ArgumentChange(name="city"), "units": ArgumentChange(fixed="metric")},
    ))

The tool itself is what it was: its own check of the arguments has the last word, and its own middleware gets the
arguments as it knows them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import UNSET, Raw

from accord.errors import DeclarationError, InvalidArguments
from accord.messages import codec
from accord.messages.base import JSONObject, Meta
from accord.messages.revision import LATEST, RULES
from accord.messages.tools import Tool, ToolAnnotations
from accord.server.compose.argument_schema import ArgumentChange, change_schema
from accord.server.core.registration import Registration
from accord.server.core.visibility import words
from accord.server.declare.parameters import check_name
from accord.server.input.parameters import InputParameter
from accord.server.input.question import InputQuestion
from accord.server.middleware.chain import Chain, ChainedRequest, MiddlewareStep

if TYPE_CHECKING:
    from accord.server.input.call import HandlerCall
    from accord.session.pending_request import PendingRequest

log: logging.Logger = logging.getLogger("accord.server")


class ToolRequest(Protocol):
    """The request of a tool call, on its way to a tool that is changed."""

    @property
    def inside(self) -> tuple[Registration | None, Any, HandlerCall | None, PendingRequest]:
        """The registration, its arguments as they stand now, the call and the exchange."""

    def called(self, name: str, offer: Registration, arguments: Any) -> ChainedRequest:
        """The same request, as a registration without the change knows it."""


class ToolChange(msgspec.Struct, frozen=True, kw_only=True):
    """What is different about a tool, in `Server.change_tool`; what is left out stays. `tags` and `annotations` take
    the place of its own, `meta` is added; `arguments` go by the names that they have without the change.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    tags: Iterable[str] | None = None
    annotations: ToolAnnotations | None = None
    meta: Meta | None = None
    arguments: Mapping[str, ArgumentChange] = {}

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name("tool", self.name)

    def check(self, offer: Registration) -> None:
        """Raise `DeclarationError` where it does not fit a tool."""
        changed = ChangedTool(self, offer.define(RULES[LATEST]))
        if changed.unknown:
            known = ", ".join(changed.known) or "none"
            raise DeclarationError(f"the tool has no argument {changed.unknown[0]!r} to change; it has: {known}")

    def apply(self, offer: Registration) -> Registration:
        """The changed tool, in all its versions. Raises `DeclarationError` where that cannot be."""
        made = self._apply_to_version(offer)
        made.versions = {version: self._apply_to_version(each) for version, each in offer.versions.items()}
        return made

    def _apply_to_version(self, offer: Registration) -> Registration:
        changed = ChangedTool(self, offer.define(RULES[LATEST]))
        for name in changed.unknown:
            log.warning("accord: the tool %r has no argument %r to change", changed.name, name)
        made = offer.derived(define=lambda rules: changed.define(offer.define(rules)))
        made.former_names, made.names = (*offer.former_names, *offer.names, changed.name), ()
        made.former_tags = offer.former_tags | offer.metadata.tags
        if self.tags is not None:
            made.metadata = msgspec.structs.replace(offer.metadata, tags=words("tags", self.tags))
        if self.arguments:
            made.bind = changed.bind(offer)
            made.input_parameters = [_renamed_input_parameter(one, changed) for one in offer.input_parameters]
        if offer.middleware:
            made.middleware = (MiddlewareStep(changed.middleware(offer)), *offer.middleware)
        return made


class ChangedTool:
    """A change, and the tool that it is made to. Raises `DeclarationError` where it cannot be."""

    def __init__(self, change: ToolChange, tool: Tool) -> None:
        schema = tool.input_schema
        self.name: str = tool.name
        self.known: list[str] = list(schema.get("properties", {}))
        self.unknown: list[str] = [name for name in change.arguments if name not in self.known]
        """Arguments to be changed that the tool does not have."""
        self._change = change
        self._changes = {name: each for name, each in change.arguments.items() if name in self.known}
        self._schema = change_schema(schema, self._changes) if self._changes else schema
        self._check_hidden(schema)
        self._inside = {shown: name for name, each in self._changes.items() if (shown := each.shown(name)) is not None}
        self._fixed = {name: each.fixed for name, each in self._changes.items() if each.fixed is not UNSET}
        self._default = {name: each.default for name, each in self._changes.items() if each.default is not UNSET}
        self._closed = schema.get("additionalProperties") is False

    def _check_hidden(self, schema: JSONObject) -> None:
        for name, each in self._changes.items():
            if each.hidden and each.default is each.fixed is UNSET and name in schema.get("required", ()):
                raise DeclarationError(f"the tool {self.name!r} needs {name!r}: hide it with a default, or fix it")

    def define(self, tool: Tool) -> Tool:
        """The definition, of the one in some revision."""
        change = self._change
        about = {
            "name": change.name,
            "title": change.title,
            "description": change.description,
            "annotations": change.annotations,
            "meta": None if change.meta is None else {**(tool.meta or {}), **change.meta},
        }
        said = {field: value for field, value in about.items() if value is not None}
        return msgspec.structs.replace(tool, input_schema=self._schema, **said)

    def bind(self, offer: Registration) -> Any:
        """What binds the arguments of a call."""

        def bind(arguments: Any, context: Any) -> tuple[Any, Any]:
            inward = self.raw_inner_arguments(arguments)
            with self._translate_errors():
                return offer.bind(inward, context)

        return bind

    def middleware(self, offer: Registration) -> Any:
        """What stands outside of the middleware of the tool, and leads to it as it is without the change."""

        async def unchanged(request: ToolRequest, call_next: Chain) -> Any:
            _, arguments, _, _ = request.inside
            inward = self.raw_inner_arguments(arguments)
            with self._translate_errors():
                return await call_next(request.called(self.name, offer, inward))

        return unchanged

    def raw_inner_arguments(self, arguments: Raw | None) -> Raw:
        """Arguments as the tool knows them, of those in a call. Raises `InvalidArguments`, and `InvalidParams` where a
        member occurs twice.
        """
        codec.check_duplicate_members(bytes(arguments or b""), "arguments")
        try:
            given = msgspec.json.decode(arguments or b"{}", type=dict[str, Raw] | None)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return arguments or Raw(b"{}")  # whoever takes them says why that is none
        return Raw(codec.encode(self.inner_arguments(given or {})))

    def inner_arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The same for what is decoded already."""
        shown = self._schema.get("properties", {})
        strange = [name for name in given if name not in shown and (self._closed or name in self._changes)]
        if strange:
            known = ", ".join(f'"{name}"' for name in shown) or "none"
            raise InvalidArguments(f'unknown argument "{strange[0][:100]}", known are: {known}')
        named = {self._inside.get(name, name): value for name, value in given.items()}
        return {**self._default, **named, **self._fixed}

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """What the tool says of its arguments is for those who know them by other names. Raises `InvalidArguments`."""
        try:
            yield
        except InvalidArguments as error:
            names = [(inside, name) for name, inside in self._inside.items() if f'"{inside}' in error.message]
            notes = [f'("{inside}" in there is the argument "{name}")' for inside, name in names if inside != name]
            raise InvalidArguments("\n".join([error.message, *notes])) from error


def _renamed_input_parameter(one: InputParameter, changed: ChangedTool) -> InputParameter:
    """A parameter that the client is asked for, whose text shows arguments by their names inside."""
    return _RenamedInputParameter(
        one.name, one.question, one.value, one.default, one.uses_arguments, inside=one, inward=changed.inner_arguments
    )


class _RenamedInputParameter(InputParameter, frozen=True, kw_only=True):
    inside: InputParameter
    inward: Callable[[Mapping[str, Any]], dict[str, Any]]

    def question_for(self, values: Mapping[str, Any]) -> InputQuestion[Any]:
        return self.inside.question_for(self.inward(values))
