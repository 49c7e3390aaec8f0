"""The decoding of a server's results, which tolerates minor errors with a warning.

With `strict` they are errors. `ToolResult.data` is the value for a program: the structured content without its
wrapper, or else the text.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw

from accord.errors import InvalidResult, LocalProtocolError, log_line
from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.content import TextContent, decode_around_unknown, is_wrapper
from accord.messages.meta import ListResult, Result
from accord.messages.tasks import TASK_RESULT
from accord.messages.tools import CallToolResult
from accord.schema.json_values import to_json
from accord.schema.type_converter import convert_to

T = TypeVar("T", bound=Result)
A = TypeVar("A")

_EXCERPT_BYTES = 200
"""The length of the excerpt of an invalid result in its error."""
_ITEM_EXCERPT_BYTES = 100
"""The length of the excerpt of an invalid item in the log."""

_SCALARS = frozenset((str, int, float, bool, type(None)))
"""Types of arguments that contain no `Raw`."""

_checked_json = msgspec.json.Decoder(Raw).decode

log: logging.Logger = logging.getLogger("accord.client")


class InputRequiredError(InvalidResult):
    """The result of `method` asks for input. `multi_round_trip` continues the request; elsewhere it fails with this."""

    def __init__(self, name: str, method: str, raw: bytes) -> None:
        super().__init__(f"{name}: {method} answered by asking for input, which it may not", raw=raw)
        self.name = name
        self.method = method


class TaskCreated(InvalidResult):
    """The result of a call is a task, which `tasks` polls; elsewhere the request fails with this."""

    def __init__(self, name: str, method: str, raw: bytes) -> None:
        super().__init__(f"{name}: {method} answered with a task, which it may not", raw=raw)


class ToolResult(CallToolResult):
    """The result of a tool. `is_error` reports a tool error, which `text` describes."""

    is_error: bool = False
    output_schema: JSONObject | None = None
    """The tool's output schema, if it is known."""

    @property
    def text(self) -> str:
        """Return the text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def data(self) -> Any:
        """Return the structured content, without `{"result": ...}` if the schema marks a wrapper; else the text."""
        if self.structured_content is UNSET:
            return self.text
        if is_wrapper(self.output_schema) and isinstance(self.structured_content, dict):
            return self.structured_content.get("result", self.structured_content)
        return self.structured_content

    def data_as(self, type: type[A]) -> A:
        """Return `data` as any type that a tool parameter may have: a dataclass, `list[int]`.

        Raises `Mismatch`, with the path in the data, for data that do not fit, and `DeclarationError` for a type that
        does not describe JSON values.
        """
        return cast(A, convert_to(self.data, type))


class ResultReader:
    """A reader of results for one client. `kinds` are the result types of extensions, by `resultType`."""

    def __init__(self, name: str, *, strict: bool, kinds: Mapping[str, type[Any]] | None = None) -> None:
        self._name = name
        self._strict = strict
        self._kinds: Mapping[str, type[Any]] = kinds or {}

    def read(self, method: str, type_: type[T], raw: Raw) -> T:
        """Return a decoded result, or the JSON itself as `Raw`. Raises `InvalidResult`."""
        if type_ is cast(Any, Raw):
            self._check_kind(method, self._decode(method, Result, raw).result_type, raw)
            return cast(T, raw)
        result = self._decode(method, type_, raw)
        self._check_kind(method, result.result_type, raw)
        return result

    def _decode(self, method: str, type_: type[A], raw: Raw) -> A:
        try:
            result: A = codec.decoder(cast(Any, type_)).decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
            result = self._decode_tolerantly(method, type_, raw, exc)
        return result

    def _decode_tolerantly(self, method: str, type_: type[A], raw: Raw, error: Exception) -> A:
        """Decode a result with content of unknown types. Raises `InvalidResult` for any other error."""
        try:
            kind = codec.decoder(Result).decode(raw).result_type
            if self._kinds.get(kind or "") is not type_:
                self._check_kind(method, kind, raw)
            if not self._strict and "$.isError" in str(error):  # null, which some servers send for false
                return self._decode(method, type_, _without_null(raw, "isError"))
            if not self._strict and "content" in str(error):
                return decode_around_unknown(raw, type_)
            if not self._strict and issubclass(type_, ListResult):
                return self._decode(method, type_, self._without_invalid_items(method, type_, raw))
        except (msgspec.MsgspecError, RecursionError, TypeError, AttributeError, KeyError):
            pass
        excerpt = bytes(raw)[:_EXCERPT_BYTES].decode(errors="replace")
        raise InvalidResult(
            f"{self._name}: the answer to {method} is invalid: {error}; it begins {excerpt}",
            raw=bytes(raw),
        ) from error

    def _without_invalid_items(self, method: str, type_: type[ListResult], raw: Raw) -> Raw:
        """Return a list without its invalid items, which are logged. Raises `KeyError` if none or all are invalid."""
        field, item_type = _items_of(type_)
        members = codec.decoder(dict[str, Raw]).decode(raw)
        items = codec.decoder(list[Raw]).decode(members[field])
        valid, problems = [], []
        for item in items:
            try:
                codec.decoder(item_type).decode(item)
            except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
                problems.append(f"{bytes(item)[:_ITEM_EXCERPT_BYTES].decode(errors='replace')}: {exc}")
            else:
                valid.append(item)
        if not valid or not problems:
            raise KeyError(field)
        more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
        log.warning(
            "accord: %s: %s", self._name, log_line(f"{method}: an invalid item is left out{more}: {problems[0]}")
        )
        members[field] = Raw(codec.encode(valid))
        return Raw(codec.encode(members))

    def _check_kind(self, method: str, kind: str | None, raw: Raw) -> None:
        if kind is None or kind == "complete":
            return
        if kind == "input_required":
            raise InputRequiredError(self._name, method, bytes(raw))
        if kind == TASK_RESULT and method == "tools/call":
            raise TaskCreated(self._name, method, bytes(raw))
        # "A resultType of any value unrecognized by the client MUST be considered invalid" (2026-07-28, basic)
        raise InvalidResult(f"{self._name}: {method} answered with unknown resultType {kind!r}", raw=bytes(raw))

    def read_open(self, method: str, type_: type[Any], raw: Raw) -> Any:
        """Return a result as the type registered for its `resultType`, or else as `type_`. Raises `InvalidResult`."""
        kind = self._decode(method, Result, raw).result_type
        registered = self._kinds.get(kind or "")
        if registered is None:
            self._check_kind(method, kind, raw)
        return self._decode(method, registered or type_, raw)


def _items_of(type_: type[ListResult]) -> tuple[str, Any]:
    """Return the field with the items of a list, and their type."""
    for field in msgspec.structs.fields(type_):
        if get_origin(field.type) is list:
            return field.encode_name, get_args(field.type)[0]
    raise KeyError(type_.__name__)


def _without_null(raw: Raw, name: str) -> Raw:
    """Return an object without a member that is null. Raises `KeyError` if the member has another value."""
    members = codec.decoder(dict[str, Raw]).decode(raw)
    if bytes(members.pop(name)) != b"null":
        raise KeyError(name)
    return Raw(codec.encode(members))


def encode_arguments(arguments: Mapping[str, Any] | None) -> Any:
    """Return the arguments as JSON; None for no arguments. Raises `LocalProtocolError` for another type than a
    mapping, or for values that JSON does not support. A `Raw` in them is sent as it is, on one line.
    """
    if type(arguments) is not dict and arguments is not None:
        if not isinstance(arguments, Mapping):
            raise LocalProtocolError(f'arguments must be a mapping, such as {{"city": "Oslo"}}, not {arguments!r:.200}')
        arguments = dict(arguments)
    if not arguments:
        return None
    try:
        data = to_json(arguments)
        if _SCALARS.issuperset(map(type, arguments.values())):
            return Raw(data)
        return _checked_json(data.replace(b"\n", b" ").replace(b"\r", b" "))  # a `Raw` may be invalid, or have lines
    except (ValueError, msgspec.DecodeError, RecursionError) as exc:
        raise LocalProtocolError(f"the arguments cannot be encoded as JSON: {exc}") from exc
