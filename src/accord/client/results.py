"""What a server answered, read with tolerance: a result that is not quite right is warned about, not refused.

With `strict` the same is an error. `ToolResult.data` is the value that a program wants: the structured content, out
of its wrapper, or else the text.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw

from accord.errors import InvalidResult, LocalProtocolError
from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.content import TextContent, decode_around_unknown, is_wrapper
from accord.messages.meta import Result
from accord.messages.tools import CallToolResult
from accord.schema.json_values import to_json
from accord.schema.type_converter import convert_to

T = TypeVar("T", bound=Result)
A = TypeVar("A")

_EXCERPT_BYTES = 200
"""Of a result that is refused, in the error that says so."""

log: logging.Logger = logging.getLogger("accord.client")


class InputRequiredError(InvalidResult):
    """The answer to `method` asks for input. Where it may, `rounds` goes on with it; elsewhere it is this error."""

    def __init__(self, name: str, method: str, raw: bytes) -> None:
        super().__init__(f"{name}: {method} answered by asking for input, which it may not", raw=raw)
        self.name = name
        self.method = method


class ToolResult(CallToolResult):
    """The answer of a tool. `is_error` says whether the tool failed; then `text` says how."""

    is_error: bool = False
    output_schema: JSONObject | None = None
    """The schema that the tool declared for its structured content, if that is known."""

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def data(self) -> Any:
        """The structured content, taken out of `{"result": ...}` where the schema marks a wrapper; else the text."""
        if self.structured_content is UNSET:
            return self.text
        if is_wrapper(self.output_schema) and isinstance(self.structured_content, dict):
            return self.structured_content.get("result", self.structured_content)
        return self.structured_content

    def data_as(self, type: type[A]) -> A:
        """Return `data` as a type, which is anything that a parameter of a tool may be: a dataclass, `list[int]`.

        Raises `Mismatch`, with the path in the data, for data that do not fit, and `DeclarationError` for what is no
        type of JSON values.
        """
        return cast(A, convert_to(self.data, type))


class ResultReader:
    """Reads results for one client. `kinds` are the types of results that extensions have, by `resultType`."""

    def __init__(self, name: str, *, strict: bool, kinds: Mapping[str, type[Any]] | None = None) -> None:
        self._name = name
        self._strict = strict
        self._kinds: Mapping[str, type[Any]] = kinds or {}

    def read(self, method: str, type_: type[T], raw: Raw) -> T:
        """A result as its type. Raises `InvalidResult`."""
        result = self._decode(method, type_, raw)
        self._check_kind(method, result.result_type, raw)
        return result

    def _decode(self, method: str, type_: type[A], raw: Raw) -> A:
        try:
            result: A = codec.decoder(cast(Any, type_)).decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
            result = self._decode_tolerantly(method, type_, raw, exc)
        return result

    def _decode_tolerantly(self, method: str, type_: type[A], raw: Raw, first: Exception) -> A:
        """A result with content of kinds not known here, or no result at all."""
        try:
            kind = codec.decoder(Result).decode(raw).result_type
            if self._kinds.get(kind or "") is not type_:
                self._check_kind(method, kind, raw)
            if not self._strict and "$.isError" in str(first):  # null, which some send for "no"
                return self._decode(method, type_, _without_null(raw, "isError"))
            if not self._strict and "content" in str(first):
                return decode_around_unknown(raw, type_)
        except (msgspec.MsgspecError, RecursionError, TypeError, AttributeError, KeyError):
            pass
        excerpt = bytes(raw)[:_EXCERPT_BYTES].decode(errors="replace")
        raise InvalidResult(
            f"{self._name}: the answer to {method} is invalid: {first}; it begins {excerpt}",
            raw=bytes(raw),
        ) from first

    def _check_kind(self, method: str, kind: str | None, raw: Raw) -> None:
        if kind is None or kind == "complete":
            return
        if kind == "input_required":
            raise InputRequiredError(self._name, method, bytes(raw))
        # "A resultType of any value unrecognized by the client MUST be considered invalid" (2026-07-28, basic)
        raise InvalidResult(f"{self._name}: {method} answered with unknown resultType {kind!r}", raw=bytes(raw))

    def read_open(self, method: str, type_: type[Any], raw: Raw) -> Any:
        """A result as its type, or as the one that its `resultType` was registered with. Raises `InvalidResult`."""
        found = self._decode(method, Result, raw).result_type
        registered = self._kinds.get(found or "")
        if registered is None:
            self._check_kind(method, found, raw)
        return self._decode(method, registered or type_, raw)


def _without_null(raw: Raw, name: str) -> Raw:
    """An object without a member that is null. Raises `KeyError` where the member is something else."""
    members = codec.decoder(dict[str, Raw]).decode(raw)
    if bytes(members.pop(name)) != b"null":
        raise KeyError(name)
    return Raw(codec.encode(members))


def encode_arguments(given: Mapping[str, Any] | None) -> Any:
    """Arguments as they go out: as JSON; none at all stays none. Raises `LocalProtocolError` for what is no mapping, or
    no JSON.
    """
    if given is not None and not isinstance(given, Mapping):
        raise LocalProtocolError(f'arguments must be a mapping, such as {{"city": "Oslo"}}, not {given!r:.200}')
    if not given:
        return None
    try:
        return Raw(to_json(dict(given)))
    except ValueError as exc:
        raise LocalProtocolError(f"the arguments cannot be encoded as JSON: {exc}") from exc
