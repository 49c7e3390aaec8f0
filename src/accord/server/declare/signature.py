"""The signature of a Python function as a tool: its arguments and its result.

    tool = signature(forecast, context=Context)
    tool.input_schema                        # for tools/list
    args, kwargs = tool.bind(raw, context)   # for tools/call; InvalidArguments tells a model what to change
    tool.encode(forecast(*args, **kwargs))   # the result as JSON, validated against the return annotation

A declaration is checked immediately and cheaply: hints are read, nothing is built. Schemas are built for the first
list, the decoder for the first call. The call itself is one msgspec decoder for a struct whose fields are the
parameters in order, so that its values are the positional arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property
from types import FunctionType, MethodType
from typing import Annotated, Any, Literal, Optional, get_args, get_origin

import msgspec
from msgspec.structs import astuple

from accord.errors import DeclarationError, ToolError
from accord.messages.codec import check_duplicate_members
from accord.messages.content import wrap_schema
from accord.messages.tools import CallToolResult
from accord.schema import emit, explain
from accord.schema.arguments import ArgumentDecoder, Rest, integers_of_floats
from accord.schema.convert import Decodables, convert, make_decoder
from accord.schema.emit import JSONObject
from accord.schema.hints import ANYTHING, MISSING, Field, HintReader, Node, accepts_null, choices, is_builtin
from accord.schema.json_values import to_json
from accord.schema.records import is_field
from accord.server.core.content import ToolOutput
from accord.server.declare.docstring import Docstring, docstring
from accord.server.declare.parameters import Parameter, enclosing_names, inspect_callable, named_type
from accord.server.depends.markers import HandleMarker, handle_in

Injected = Callable[[Any, Any], bool]
"""Returns whether the server, rather than the model, fills a parameter with this hint and default."""

_SIMPLE = (type(None), str, int, float, bool)
_UNDECLARED = (MISSING, None, type(None), str, Any, object, "str", "None", "Any", "typing.Any", "object")
"""Return annotations that no useful schema can describe: text, and any value."""


def signature(
    function: Callable[..., Any],
    *,
    context: type | tuple[type, ...] = (),
    injected: Injected | None = None,
    unstructured: Collection[type] = (),
    strict: bool = False,
    texts: bool = False,
    ignore_unknown: bool = False,
) -> Signature:
    """Read the signature of a function. Raises DeclarationError with advice for an unsupported declaration.

    `context` is the type that marks the context parameter, `unstructured` are return types that are content already,
    `strict` rejects arguments that need a conversion of `3.0` to `3` or of JSON in a string; `texts` means that all
    arguments are strings; `ignore_unknown` drops arguments without a parameter.
    """
    contexts = context if isinstance(context, tuple) else (context,)
    try:
        return Signature(function, contexts, injected, frozenset(unstructured), strict, texts, ignore_unknown)
    except DeclarationError as exc:
        raise DeclarationError(f"{getattr(function, '__qualname__', function)}: {exc}") from exc.__cause__


class Signature:
    """The arguments and the result of one function."""

    def __init__(
        self,
        function: Callable[..., Any],
        contexts: tuple[type, ...],
        injected: Injected | None,
        unstructured: frozenset[type],
        strict: bool,
        texts: bool,
        ignore_unknown: bool,
    ) -> None:
        self.function = function
        self.context: str | None = None
        """The name of the context parameter."""
        self.injected: list[Parameter] = []
        """Parameters that the server fills by other means; add them to the keywords that `bind` returns."""
        self.handle_parameters: dict[str, HandleMarker] = {}
        """Parameters whose arguments are handles of objects."""
        self._callable = inspect_callable(function)
        self.contexts: tuple[type, ...] = contexts
        """The types that mark the context parameter."""
        self._is_injected = injected
        self._unstructured = unstructured
        self._strict = strict
        self._texts = texts
        self._ignore_unknown = ignore_unknown
        self._enclosing: Mapping[str, Any] = {}
        self._hints: _Hints | None = None
        self._read_or_wait()

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self._callable.function, "__name__", type(self.function).__name__))

    @property
    def is_async(self) -> bool:
        """Whether a call must be awaited."""
        return self._callable.is_async

    @cached_property
    def docstring(self) -> Docstring:
        """The parsed docstring."""
        text = (
            getattr(self.function, "__doc__", None) if isinstance(self.function, (FunctionType, MethodType)) else None
        )
        return docstring(text or getattr(self._callable.function, "__doc__", None) or "")

    @property
    def description(self) -> str:
        """The docstring without its sections on arguments and results."""
        return self.docstring.description

    @property
    def is_resolved(self) -> bool:
        """Whether all hints are resolved; a forward reference waits for its name to exist."""
        return self._hints is not None

    def resolve(self) -> None:
        """Resolve the hints now. Raises `DeclarationError` for a name that still does not exist."""
        _ = self._resolved

    @cached_property
    def names(self) -> list[str]:
        """The names of the parameters that a caller provides."""
        return [field.name for field in self._resolved.fields]

    @property
    def defaults(self) -> dict[str, Any]:
        """The values of parameters that a caller omits."""
        return {
            field.name: field.factory() if field.factory else field.default
            for field in self._resolved.fields
            if not field.required
        }

    @property
    def required(self) -> list[str]:
        """The names of the parameters that every call must provide."""
        return [field.name for field in self._resolved.fields if field.required]

    def has_parameter(self, name: str) -> bool:
        """Return whether there is a parameter of that name."""
        declared = self._callable
        return declared.rest is not None or any(parameter.name == name for parameter in declared.parameters)

    @property
    def is_open(self) -> bool:
        """Whether it accepts arguments of any name."""
        return self._callable.rest is not None

    @cached_property
    def choices(self) -> dict[str, list[str]]:
        """For each argument, the values that its type enumerates, as text."""
        return {field.key: [_typed(value) for value in choices(field.node)] for field in self._resolved.fields}

    def has_schema_keyword(self, keyword: str) -> bool:
        """Return whether a resolved hint adds this keyword to the schema."""
        return self._hints is not None and keyword in self._hints.notes

    @cached_property
    def input_schema(self) -> JSONObject:
        """The JSON Schema of the arguments."""
        rest = (
            ANYTHING
            if self._ignore_unknown and self._resolved.extra_arguments is None
            else self._resolved.extra_arguments
        )
        written = emit.object_schema(self._resolved.fields, rest=rest)
        for name, text in self.docstring.parameters.items():
            if name in written["properties"]:
                written["properties"][name].setdefault("description", text)
        return written

    @cached_property
    def result_schema(self) -> JSONObject | None:
        """The JSON Schema of the return value; None if nothing is declared."""
        return None if self._resolved.result is None else emit.schema(self._resolved.result, output=True)

    @cached_property
    def wraps(self) -> bool:
        """Whether the result is not an object, so that it is sent as `{"result": value}` through 2025-11-25."""
        return self.result_schema is not None and self.result_schema.get("type") != "object"

    @cached_property
    def output_schema(self) -> JSONObject | None:
        """`result_schema` with an object at its root."""
        if self.result_schema is None or not self.wraps:
            return self.result_schema
        return wrap_schema(self.result_schema)

    def bind(self, arguments: Any, context: Any = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the call; `arguments` is JSON, None is `{}`. Raises InvalidArguments, and
        InvalidParams for a value that is not an object or has duplicate members.
        """
        if arguments is None:
            arguments = b"{}"
        rest: dict[str, Any] = {}
        try:
            values = astuple(self._decode(arguments))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            values, rest = self._arguments.decode(arguments)
        else:
            if bytes(arguments).count(b":") > self._required_count:  # with fewer there is no duplicate member
                check_duplicate_members(bytes(arguments), "arguments")
        if self._in_order:
            return values, rest
        return self._placed(values, rest, context)

    def _placed(
        self, values: tuple[Any, ...], rest: dict[str, Any], context: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        at = self._context_at
        if at is not None:
            return (*values[:at], context, *values[at:]), rest
        named = dict(zip(self.names, values, strict=True))
        if rest:
            named |= rest
        if self.context is not None:
            named[self.context] = context
        return (), named

    def encode(self, value: Any) -> msgspec.Raw:
        """Encode a return value as JSON, validated against the return annotation. Raises ToolError."""
        try:
            packed = to_json(value)
        except ValueError as exc:
            raise ToolError(f"the result cannot be encoded: {exc}") from exc
        if self._resolved.result is not None:
            self._check(packed)
        elif value is None and self._callable.returns in (str, "str"):
            raise ToolError(f"{self.name} returned what its annotation does not allow: expected string, got null")
        return msgspec.Raw(packed)

    def wrap(self, packed: msgspec.Raw) -> msgspec.Raw:
        """Return the encoded value as it is sent in revisions that allow only objects: `{"result": ...}` if the
        signature `wraps`.
        """
        return msgspec.Raw(b'{"result":%b}' % bytes(packed)) if self.wraps else packed

    def _check(self, packed: bytes) -> None:
        try:
            self._decode_result(packed)
        except msgspec.ValidationError as exc:
            self._check_narrowed(msgspec.json.decode(packed), exc)

    def _check_narrowed(self, value: Any, failed: msgspec.ValidationError) -> None:
        node, type_ = self._resolved.result, self._result_type
        assert node is not None
        try:
            convert(integers_of_floats(value), type_)
        except msgspec.ValidationError:
            where, why = explain.failure(node, value, str(failed))
            at = f" at {where}" if where else ""
            raise ToolError(f"{self.name} returned what its annotation does not allow{at}: {why}") from failed

    # Built once, on first use.

    @cached_property
    def _types(self) -> list[Any]:
        decodables = Decodables()
        return [decodables.of(field.node) for field in self._resolved.fields]

    @cached_property
    def _decode(self) -> Callable[[Any], Any]:
        if self._resolved.extra_arguments is not None:
            return _undecodable
        fields = [_member(field, type_) for field, type_ in zip(self._resolved.fields, self._types, strict=True)]
        keys = {field.name: field.key for field in self._resolved.fields if field.key != field.name}
        closed = not self._ignore_unknown
        struct = msgspec.defstruct(self.name, fields, kw_only=True, forbid_unknown_fields=closed, rename=keys or None)
        return make_decoder(struct).decode

    @cached_property
    def _required_count(self) -> int:
        """The number of arguments in every call."""
        return sum(field.required for field in self._resolved.fields)

    @cached_property
    def _arguments(self) -> ArgumentDecoder:
        rest = self._resolved.extra_arguments
        open_ = None if rest is None else Rest(rest, Decodables().of(rest))
        return ArgumentDecoder(
            self.name,
            self._resolved.fields,
            self._types,
            rest=open_,
            strict=self._strict,
            texts=self._texts,
            ignore_unknown=self._ignore_unknown,
        )

    @cached_property
    def _result_type(self) -> Any:
        assert self._resolved.result is not None
        return Decodables().of(self._resolved.result)

    @cached_property
    def _decode_result(self) -> Callable[[bytes], Any]:
        return make_decoder(self._result_type).decode

    @cached_property
    def _by_name(self) -> bool:
        return bool(self.injected or self.handle_parameters) or any(
            parameter.keyword_only for parameter in self._callable.parameters
        )

    @cached_property
    def _in_order(self) -> bool:
        return self.context is None and not self._by_name

    @cached_property
    def _context_at(self) -> int | None:
        if self._by_name or self.context is None:
            return None
        return [parameter.name for parameter in self._callable.parameters].index(self.context)

    # Hints are read when declared, or, if a name does not exist yet, on first use.

    @property
    def _resolved(self) -> _Hints:
        if self._hints is None:
            try:
                self._hints = self._read()
            except NameError as exc:
                raise DeclarationError(
                    f"{self.name}: an annotation refers to a name that does not exist: {exc}; "
                    "define it in this module, or import it outside of `if TYPE_CHECKING:`"
                ) from exc
        return self._hints

    def _read_or_wait(self) -> None:
        try:
            self._hints = self._read()
        except NameError:
            self._enclosing = enclosing_names(self._callable.function)
            with suppress(NameError):
                self._hints = self._read()

    def _read(self) -> _Hints:
        reader = HintReader(getattr(self._callable.function, "__globals__", {}), self._enclosing)
        self.injected = []
        ordinary = [parameter for parameter in self._callable.parameters if self._is_ordinary(parameter, reader)]
        rest = self._callable.rest
        return _Hints(
            [_field(parameter, reader) for parameter in ordinary],
            None if rest is None else _named("**", rest, reader),
            self._result(reader),
            reader.notes,
        )

    def _is_ordinary(self, parameter: Parameter, reader: HintReader) -> bool:
        """Return whether the model provides the parameter; otherwise record what fills it."""
        hint, default = parameter.hint, parameter.default
        if is_builtin(hint) and (default is MISSING or type(default) in _SIMPLE):
            return True
        if isinstance(hint, str):
            try:
                parameter.hint = hint = reader.resolve(hint)
            except NameError:
                hint = named_type(hint, self.contexts)
                if hint is None:
                    raise
        if _mentions(hint, self.contexts):
            self.context = parameter.name
            return False
        if self._is_injected is not None and self._is_injected(hint, default):
            self.injected.append(parameter)
            return False
        named = handle_in(hint)
        if named is not None:
            self.handle_parameters[parameter.name] = named
            text = Annotated[str, msgspec.Meta(description=named.described)]
            parameter.hint = text if default is not None else text | None
        return True

    def _result(self, reader: HintReader) -> Node | None:
        hint = self._callable.returns
        if isinstance(hint, str) and hint not in _UNDECLARED:
            hint = self._callable.returns = reader.resolve(hint)
        hint = _structured(hint)
        if _in(hint, _UNDECLARED) or _mentions(hint, self._unstructured):
            return None
        node = _named("the result", hint, reader)
        return None if node is ANYTHING else node


class _Hints(msgspec.Struct, eq=False):
    fields: list[Field]
    extra_arguments: Node | None
    result: Node | None
    notes: set[str]


def _field(parameter: Parameter, reader: HintReader) -> Field:
    name, hint, default = parameter.name, parameter.hint, parameter.default
    key, factory, required = name, None, default is MISSING
    if is_field(default):
        hint, key, factory = Annotated[hint, default], default.alias or name, default.default_factory
        required = default.is_required()
        default = MISSING if required or factory else default.default
    elif type(default) in (list, dict, set):
        factory = _same(default)
    node = _named(name, hint, reader)
    if default is None and not accepts_null(node):
        node = _named(name, _optional(hint, reader), reader)
    return Field(name, key, node, default, required, factory)


def _optional(hint: Any, reader: HintReader) -> Any:
    """Return the hint with None among its values: `x: int = None` is read as `x: int | None = None`."""
    hint = reader.resolve(hint) if isinstance(hint, str) else hint
    if get_origin(hint) is Annotated:
        return Annotated[(_optional(hint.__origin__, reader), *hint.__metadata__)]
    return Optional[hint]  # noqa: UP045  a name in quotes has no `|`


def _named(name: str, hint: Any, reader: HintReader) -> Node:
    quoted = repr(name) if name.isidentifier() else name
    try:
        return reader.read(hint)
    except DeclarationError as exc:
        raise DeclarationError(f"{quoted}: {exc}") from exc.__cause__
    except RecursionError as exc:
        raise DeclarationError(f"{quoted}: a recursive type needs a name: use a dataclass or TypedDict") from exc


def _same(value: Any) -> Callable[[], Any]:
    """Return a factory of a mutable default, which calls share, as in Python."""
    return lambda: value


def _member(field: Field, type_: Any) -> Any:
    if field.required:
        return field.name, type_
    if field.factory:
        return field.name, type_, msgspec.field(default_factory=field.factory)
    return field.name, type_, field.default


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value).decode()


def _undecodable(arguments: Any) -> Any:
    """Raise, since with `**kwargs` there is no struct of all arguments."""
    raise msgspec.ValidationError


def _structured(hint: Any) -> Any:
    """Return the type of the data if a hint declares it beside the content: `ToolOutput[Report]`, and
    `Annotated[CallToolResult, Report]` as in the official SDK.
    """
    if hint is ToolOutput:
        return Any
    if get_origin(hint) is ToolOutput:
        return get_args(hint)[0]
    if get_origin(hint) is Annotated and get_args(hint)[0] is CallToolResult:
        return next((each for each in get_args(hint)[1:] if isinstance(each, type) or get_origin(each)), hint)
    return hint


def _in(hint: Any, hints: tuple[Any, ...]) -> bool:
    return any(hint is other or (isinstance(hint, str) and hint == other) for other in hints)


def _mentions(hint: Any, types: Collection[type]) -> bool:
    """Return whether one of the types is the hint, or occurs in it."""
    if isinstance(hint, type) and any(issubclass(hint, type_) for type_ in types):
        return True
    origin = get_origin(hint)
    return (
        origin is not None
        and origin is not Literal
        and (_mentions(origin, types) or any(_mentions(argument, types) for argument in get_args(hint)))
    )
