"""Changes to a tool's name, texts and arguments.

    server.change_tool("acme_forecast", ToolChange(
        name="weather",
        arguments={"q": ArgumentChange(name="city"), "units": ArgumentChange(fixed="metric")},
    ))

The tool itself does not change: it validates its arguments, and its middleware receives them under their original
names.
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
from accord.server.compose.versions import in_all_versions
from accord.server.core.registration import Registration, listing_extension
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
    """The request of a call to a changed tool."""

    @property
    def inside(self) -> tuple[Registration | None, Any, HandlerCall | None, PendingRequest]:
        """The registration, its current arguments, the call and the pending request."""

    def called(self, name: str, registration: Registration, arguments: Any) -> ChainedRequest:
        """Return the same request for a registration without the change."""


class ToolChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change to a tool, for `Server.change_tool`; omitted fields stay. `tags` and `annotations` replace those of the
    tool, `meta` is merged; `arguments` is keyed by the original names. `hidden` removes the tool: it is neither listed
    nor callable.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    tags: Iterable[str] | None = None
    annotations: ToolAnnotations | None = None
    meta: Meta | None = None
    arguments: Mapping[str, ArgumentChange] = {}
    hidden: bool = False

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name("tool", self.name)

    def check(self, registration: Registration) -> None:
        """Raise `DeclarationError` if the change does not fit the tool."""
        changed = ChangedTool(self, registration.define(RULES[LATEST]))
        if changed.unknown:
            known = ", ".join(changed.known) or "none"
            raise DeclarationError(f"the tool has no argument {changed.unknown[0]!r} to change; it has: {known}")

    def apply(self, registration: Registration) -> Registration:
        """Return the changed tool, in all its versions. Raises `DeclarationError` if the change cannot be applied."""
        return in_all_versions(registration, self._apply_to_version)

    def _apply_to_version(self, registration: Registration) -> Registration:
        tool: Tool = registration.define(RULES[LATEST])
        changed = ChangedTool(self, tool)
        for name in changed.unknown:
            log.warning("accord: the tool %r has no argument %r to change", changed.name, name)
        derived = registration.derived(define=lambda rules: changed.define(registration.define(rules)))
        derived.listed_with = listing_extension(changed.define(tool))
        derived.former_names, derived.names = (*registration.former_names, *registration.names, changed.name), ()
        derived.former_tags = registration.former_tags | registration.metadata.tags
        if self.tags is not None:
            derived.metadata = msgspec.structs.replace(registration.metadata, tags=words("tags", self.tags))
        if self.arguments:
            derived.bind = changed.bind(registration)
            derived.input_parameters = [
                _renamed_input_parameter(parameter, changed) for parameter in registration.input_parameters
            ]
        if registration.middleware:
            derived.middleware = (MiddlewareStep(changed.middleware(registration)), *registration.middleware)
        return derived


class ChangedTool:
    """A change applied to a tool. Raises `DeclarationError` if it cannot be applied."""

    def __init__(self, change: ToolChange, tool: Tool) -> None:
        schema = tool.input_schema
        self.name: str = tool.name
        self.known: list[str] = list(schema.get("properties", {}))
        self.unknown: list[str] = [name for name in change.arguments if name not in self.known]
        """Arguments in the change that the tool does not have."""
        self._change = change
        self._changes = {name: each for name, each in change.arguments.items() if name in self.known}
        self._schema = change_schema(schema, self._changes) if self._changes else schema
        self._check_hidden(schema)
        self._inside = {
            public_name: name
            for name, each in self._changes.items()
            if (public_name := each.public_name(name)) is not None
        }
        self._fixed = {name: each.fixed for name, each in self._changes.items() if each.fixed is not UNSET}
        self._default = {name: each.default for name, each in self._changes.items() if each.default is not UNSET}
        self._closed = schema.get("additionalProperties") is False

    def _check_hidden(self, schema: JSONObject) -> None:
        for name, each in self._changes.items():
            if each.hidden and each.default is each.fixed is UNSET and name in schema.get("required", ()):
                raise DeclarationError(f"the tool {self.name!r} needs {name!r}: hide it with a default, or fix it")

    def define(self, tool: Tool) -> Tool:
        """Return the changed definition for the definition of a revision."""
        change = self._change
        about = {
            "name": change.name,
            "title": change.title,
            "description": change.description,
            "annotations": change.annotations,
            "meta": None if change.meta is None else {**(tool.meta or {}), **change.meta},
        }
        fields = {field: value for field, value in about.items() if value is not None}
        return msgspec.structs.replace(tool, input_schema=self._schema, **fields)

    def bind(self, registration: Registration) -> Any:
        """Return the function that binds the arguments of a call."""

        def bind(arguments: Any, context: Any) -> tuple[Any, Any]:
            inner_arguments = self.raw_inner_arguments(arguments)
            with self._translate_errors():
                return registration.bind(inner_arguments, context)

        return bind

    def middleware(self, registration: Registration) -> Any:
        """Return the outermost middleware, which passes the request on under the original names."""

        async def unchanged(request: ToolRequest, call_next: Chain) -> Any:
            _, arguments, _, _ = request.inside
            inner_arguments = self.raw_inner_arguments(arguments)
            with self._translate_errors():
                return await call_next(request.called(self.name, registration, inner_arguments))

        return unchanged

    def raw_inner_arguments(self, arguments: Raw | None) -> Raw:
        """Return a call's arguments under their original names. Raises `InvalidArguments`, and `InvalidParams` for a
        duplicate member.
        """
        codec.check_duplicate_members(bytes(arguments or b""), "arguments")
        try:
            values = msgspec.json.decode(arguments or b"{}", type=dict[str, Raw] | None)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return arguments or Raw(b"{}")  # the tool reports the error
        return Raw(codec.encode(self.inner_arguments(values or {})))

    def inner_arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return decoded arguments under their original names, with defaults and fixed values. Raises
        `InvalidArguments`.
        """
        public_name = self._schema.get("properties", {})
        unknown = [name for name in values if name not in public_name and (self._closed or name in self._changes)]
        if unknown:
            known = ", ".join(f'"{name}"' for name in public_name) or "none"
            raise InvalidArguments(f'unknown argument "{unknown[0][:100]}", known are: {known}')
        named = {self._inside.get(name, name): value for name, value in values.items()}
        return {**self._default, **named, **self._fixed}

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Add the public names of arguments to an `InvalidArguments` error of the tool."""
        try:
            yield
        except InvalidArguments as error:
            names = [(inside, name) for name, inside in self._inside.items() if f'"{inside}' in error.message]
            notes = [f'("{inside}" in there is the argument "{name}")' for inside, name in names if inside != name]
            raise InvalidArguments("\n".join([error.message, *notes])) from error


def _renamed_input_parameter(parameter: InputParameter, changed: ChangedTool) -> InputParameter:
    """Return an input parameter whose question receives the arguments under their original names."""
    return _RenamedInputParameter(
        parameter.name,
        parameter.question,
        parameter.value,
        parameter.default,
        parameter.uses_arguments,
        inside=parameter,
        inner_arguments=changed.inner_arguments,
    )


class _RenamedInputParameter(InputParameter, frozen=True, kw_only=True):
    inside: InputParameter
    inner_arguments: Callable[[Mapping[str, Any]], dict[str, Any]]

    def question_for(self, values: Mapping[str, Any]) -> InputQuestion[Any]:
        return self.inside.question_for(self.inner_arguments(values))
