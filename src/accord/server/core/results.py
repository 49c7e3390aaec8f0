"""Encoding of what handlers return into results.

All values are encoded here or known to be encodable, so that an invalid one (a lone surrogate, NaN, a cycle) becomes an
error of its own call.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from msgspec import UNSET, Raw

from accord.errors import ToolError
from accord.locked_cache import safe_convert
from accord.messages import codec
from accord.messages.content import ContentBlock, Resource, ResourceContents, TextContent, adapt_content
from accord.messages.meta import SERVER_INFO, Result, check_meta
from accord.messages.prompts import GetPromptResult, PromptMessage
from accord.messages.resources import ReadResourceResult, ResourceTemplate
from accord.messages.revision import Rules
from accord.messages.tools import CallToolResult
from accord.schema.json_values import to_json
from accord.server.core.content import AsContent, CacheHint, ToolOutput
from accord.server.core.registration import OutputEncoder, Registration

if TYPE_CHECKING:
    from accord.session.pending_request import PendingRequest

CONTENT: tuple[type, ...] = get_args(ContentBlock)
_BLOCKS = (*CONTENT, AsContent)
UNSTRUCTURED = frozenset({*_BLOCKS, CallToolResult})
"""Return types that are content already, and so have no structured output."""


class TextResult(codec.FinishedResult, omit_defaults=True):
    """A `CallToolResult` with text only: the same in all revisions, so no field has to be removed."""

    content: tuple[TextContent, ...]
    is_error: bool | None = msgspec.field(default=None, name="isError")
    result_type: str | None = msgspec.field(default=None, name="resultType")
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class EncodedToolResult(CallToolResult):
    """A result that was encoded for middleware: validated, and in the form of the request's revision. When middleware
    returns it, it is not validated again.
    """


class ResultEncoder:
    """The encoder of results for one server, with its `serverInfo`."""

    def __init__(self, info: Raw) -> None:
        self._info = info
        self._meta = {SERVER_INFO: info}

    def encode_text(self, text: str, rules: Rules, *, is_error: bool = False) -> TextResult:
        """Return the result of a tool that returned text."""
        if not text.isascii():
            text = encodable(text, is_error)
        content = (TextContent(text=text),)
        if rules.result_type:
            return TextResult(content, is_error or None, "complete", self._meta)
        return TextResult(content, is_error or None)

    def encode(self, result: Any, rules: Rules) -> Raw:
        """Encode any result. Raises `ToolError` for a value that JSON cannot represent."""
        return Raw(encode(codec.finish_result(result, rules, self._info)))

    def encode_tool(self, value: Any, returns: OutputEncoder | None, rules: Rules) -> Any:
        """Return the result of a tool according to its declaration: structured output or content. Raises
        `ToolError`.
        """
        structured = returns is not None and returns.result_schema is not None
        if type(value) is str and not structured:
            return self.encode_text(value, rules)
        if isinstance(value, CallToolResult):
            check_meta(value.meta or {})
            if isinstance(value, EncodedToolResult):
                value, structured = CallToolResult(**msgspec.structs.asdict(value)), False
            return self.encode(_adapted(value, returns if structured else None, rules), rules)
        if isinstance(value, ToolOutput):
            check_meta(value.meta or {})
            return self.encode(_with_content(value, returns if structured else None, rules), rules)
        if returns is None or not structured:
            if value is None and returns is not None:
                returns.encode(value)  # a function with `-> str` that forgets its `return`
            return self.encode(CallToolResult(content=adapt_content(content_of(value), rules.revision)), rules)
        return self._encode_structured(value, returns, rules)

    def encode_extension(self, value: Any, rules: Rules) -> Raw:
        """Encode the value of an extension method: a result, a record, or None."""
        if isinstance(value, Result):
            return self.encode(value, rules)
        return self.encode_fields(
            {} if value is None else msgspec.json.decode(encode(value), type=dict[str, Any]), rules
        )

    def encode_fields(self, fields: Mapping[str, Any], rules: Rules) -> Raw:
        """Encode a result without a type of its own, from its members."""
        return self.encode({**fields, "_meta": self._meta} if rules.result_type else fields, rules)

    def decode_handled(
        self, value: Any, name: str, registration: Registration | None, pending: PendingRequest, *, public: bool = True
    ) -> Any:
        """Return the value of a handler as the result of its request. Raises `ToolError`."""
        rules, method = pending.rules, pending.method
        if registration is None:
            return value
        if method.name == "tools/call":
            packed = self.encode_tool(value, registration.output, rules)
            return codec.decoder(EncodedToolResult).decode(codec.encode(packed))
        if method.name == "resources/read":
            packed = self.encode_resource(
                value, name, registration.define(rules), registration.cache, rules, public=public
            )
        elif method.name == "prompts/get":
            packed = self.encode_prompt(value, registration.define(rules).description, rules)
        else:
            return value
        return codec.decoder(method.result).decode(codec.encode(packed))

    def encode_input_required(self, requests: Mapping[str, Raw], state: str, rules: Rules) -> Raw:
        """Encode an `input_required` result with the requests for the client."""
        fields = {"resultType": "input_required", "inputRequests": requests, "requestState": state, "_meta": self._meta}
        return Raw(codec.encode(fields))

    def _encode_structured(self, value: Any, returns: OutputEncoder, rules: Rules) -> Raw:
        """Encode the value as structured content, and as text for clients that read only text (server, Tools)."""
        blocks = None
        if isinstance(value, (list, tuple)) and not (returns.result_schema or {}).get("items") and _has_blocks(value):
            blocks = content_of(value)
            value = [item.to_content() if isinstance(item, AsContent) else item for item in value]
        packed = returns.encode(value)
        content = [TextContent(text=str(packed, "utf-8"))] if blocks is None else adapt_content(blocks, rules.revision)
        return self.encode(
            CallToolResult(content=content, structured_content=_wrap_for_revision(packed, returns, rules)), rules
        )

    def encode_resource(
        self,
        value: Any,
        uri: str,
        about: Resource | ResourceTemplate,
        cache: CacheHint,
        rules: Rules,
        *,
        public: bool = True,
    ) -> Raw:
        """Encode the contents of a resource. Cache hints of the result itself precede `cache`. A result that not every
        client may read is private, whatever the hints are: private results "MUST NOT be served to a different
        authorization context" (server, Caching).
        """
        if isinstance(value, ReadResourceResult):
            check_meta(value.meta or {})
        else:
            value = ReadResourceResult(contents=contents_of(value, uri, about.mime_type))
        ttl_ms = cache.ttl_ms if value.ttl_ms is None else max(0, value.ttl_ms)  # "MUST provide a value that is >= 0"
        scope = (value.cache_scope or cache.scope) if public else "private"
        return self.encode(msgspec.structs.replace(value, ttl_ms=ttl_ms, cache_scope=scope), rules)

    def encode_prompt(self, value: Any, description: str | None, rules: Rules) -> Raw:
        """Encode the value of a prompt."""
        result = (
            value
            if isinstance(value, GetPromptResult)
            else GetPromptResult(description=description, messages=messages_of(value))
        )
        messages = [
            msgspec.structs.replace(message, content=adapt_content([message.content], rules.revision)[0])
            for message in result.messages
        ]
        return self.encode(msgspec.structs.replace(result, messages=messages), rules)


def _adapted(result: CallToolResult, returns: OutputEncoder | None, rules: Rules) -> CallToolResult:
    """Return a result that the tool created itself, with the content types of the revision, and with the structured
    output as text if it has no content. `returns` is the declared structured output, if any. Raises `ToolError` if that
    is missing or invalid.
    """
    blocks: list[Any] = [content_of(item)[0] if isinstance(item, (str, AsContent)) else item for item in result.content]
    structured = result.structured_content
    packed: bytes | Raw = b""
    if returns is not None and not result.is_error:
        if structured is UNSET:
            raise ToolError("the tool declares structured output and returned none: set structured_content=")
        packed = returns.encode(structured)
        structured = _wrap_for_revision(packed, returns, rules)
    elif structured is not UNSET:  # encoded first: a view would read NaN as null
        packed = encode(structured)
        structured = _undeclared(packed, rules)
    if packed and not blocks:
        blocks = [TextContent(text=str(packed, "utf-8"))]
    content = adapt_content(blocks, rules.revision)
    return msgspec.structs.replace(result, content=content, structured_content=structured)


def _with_content(output: ToolOutput[Any], returns: OutputEncoder | None, rules: Rules) -> CallToolResult:
    """Return one result of data and content. Without a declared type only an object is structured."""
    content = [block for item in output.content for block in content_of(item)]
    structured: Any = UNSET
    if returns is not None:
        structured = _wrap_for_revision(returns.encode(output.data), returns, rules)
    elif not isinstance(output.data, (str, *_BLOCKS)):
        encoded = encode(output.data)
        structured = Raw(encoded) if encoded.startswith(b"{") else UNSET
    if not any(isinstance(block, TextContent) for block in content):
        content = [*content_of(output.data), *content]
    return CallToolResult(
        content=adapt_content(content, rules.revision), structured_content=structured, meta=output.meta
    )


def _undeclared(encoded: bytes, rules: Rules) -> Any:
    """Return structured content without a declared type: through 2025-11-25 it can only be an object."""
    return UNSET if rules.structured_objects_only and not encoded.startswith(b"{") else Raw(encoded)


def _wrap_for_revision(packed: Raw, returns: OutputEncoder, rules: Rules) -> Raw:
    """Return structured content as it is sent in the revision."""
    return returns.wrap(packed) if rules.structured_objects_only else packed


def encodable(text: str, is_error: bool) -> str:
    """Return the text if UTF-8 can represent it. Raises `ToolError`; the text of an error is escaped instead."""
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        if is_error:
            return text.encode(errors="backslashreplace").decode()
        raise ToolError(f"the result cannot be encoded: it contains a lone surrogate at position {exc.start}") from exc
    return text


def encode(value: Any) -> bytes:
    """Encode any value as JSON. Raises `ToolError` for a value that JSON cannot represent."""
    try:
        return to_json(value)
    except ValueError as exc:
        raise ToolError(f"the result cannot be encoded: {exc}") from exc


def content_of(value: Any) -> list[Any]:
    """Return content blocks for the value of a tool without structured output."""
    if value is None or value is UNSET:
        return []
    if isinstance(value, CONTENT):
        return [value]
    if isinstance(value, str):
        return [TextContent(text=value)]
    if isinstance(value, AsContent):
        return [value.to_content()]
    if isinstance(value, list | tuple) and _has_blocks(value):
        return [block for item in value for block in content_of(item)]
    return [TextContent(text=encode(value).decode())]


def _has_blocks(values: list[Any] | tuple[Any, ...]) -> bool:
    return any(isinstance(item, _BLOCKS) for item in values)


def contents_of(value: Any, uri: str, mime_type: str | None) -> list[ResourceContents]:
    """Return resource contents for the value of a resource: text, bytes, contents, or any JSON value."""
    if isinstance(value, ReadResourceResult):
        return value.contents
    if isinstance(value, ResourceContents):
        return [value]
    if isinstance(value, AsContent):
        return [value.to_contents(uri, mime_type)]
    if isinstance(value, list | tuple) and value and all(isinstance(item, ResourceContents) for item in value):
        return list(value)
    if isinstance(value, bytes | bytearray | memoryview):
        blob = b2a_base64(value, newline=False).decode("ascii")
        return [ResourceContents(uri=uri, mime_type=mime_type or "application/octet-stream", blob=blob)]
    if isinstance(value, str):
        return [ResourceContents(uri=uri, mime_type=mime_type or "text/plain", text=value)]
    return [ResourceContents(uri=uri, mime_type=mime_type or "application/json", text=encode(value).decode())]


def messages_of(value: Any) -> list[PromptMessage]:
    """Return prompt messages for the value of a prompt: a text, a block, a message, or a list of them."""
    if isinstance(value, PromptMessage):
        return [value]
    if isinstance(value, list | tuple):
        return [message for item in value for message in messages_of(item)]
    if isinstance(value, dict) and "role" in value and "content" in value:
        block = value["content"]
        [block] = content_of(block) if isinstance(block, str | AsContent) else [safe_convert(block, ContentBlock)]
        return [PromptMessage(role=value["role"], content=block)]
    return [PromptMessage(role="user", content=block) for block in content_of(value)]
