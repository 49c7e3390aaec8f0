"""The names of `mcp.types` (and `mcp_types`), with their field names: `TextContent(type="text", text="...")`,
`CallToolResult(content=[], isError=True)`.

Each name constructs accord's own type, and `isinstance` accepts accord's own type, so other modules need not know
them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from accord.compat.differ import Different
from accord.messages import (
    capabilities,
    completion,
    content,
    elicitation,
    identity,
    input_required,
    notifications,
    prompts,
    resources,
    sampling,
    tools,
)
from accord.messages.base import LoggingLevel as LoggingLevel, ModelMeta, Role as Role

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "URL_ELICITATION_REQUIRED",
    "Annotations",
    "AnyUrl",
    "AudioContent",
    "BlobResourceContents",
    "CallToolResult",
    "ClientCapabilities",
    "Completion",
    "CompletionArgument",
    "CompletionContext",
    "ContentBlock",
    "CreateMessageResult",
    "ElicitRequestFormParams",
    "ElicitRequestURLParams",
    "ElicitResult",
    "ElicitationCapability",
    "EmbeddedResource",
    "ErrorData",
    "GetPromptResult",
    "Icon",
    "ImageContent",
    "Implementation",
    "ListRootsResult",
    "LoggingLevel",
    "LoggingMessageNotificationParams",
    "ModelHint",
    "ModelPreferences",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptReference",
    "ReadResourceResult",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceTemplate",
    "ResourceTemplateReference",
    "Role",
    "Root",
    "RootsCapability",
    "SamplingCapability",
    "SamplingMessage",
    "TextContent",
    "TextResourceContents",
    "Tool",
    "ToolAnnotations",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
URL_ELICITATION_REQUIRED = -32042


class SpellingMeta(ModelMeta):
    """A metaclass of classes that take another library's field names and construct their base class."""

    def __call__(cls, *args: Any, **values: Any) -> Any:
        base: Any = cls.__base__
        if args:
            raise Different(f"{cls.__name__} takes its fields by name")
        return base(**normalize_fields(base, values))

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.__base__)  # type: ignore[arg-type]


def normalize_fields(type_: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields under the names of the type: `isError` and `is_error` are the same, its own `type` and values
    of None are dropped. Raises `Different` for an unknown field.
    """
    names = dict(zip(type_.__struct_encode_fields__, type_.__struct_fields__, strict=True))
    names |= {name: name for name in type_.__struct_fields__}
    fields = {}
    for key, value in values.items():
        if value is None or (key == "type" and value == type_.__struct_config__.tag):
            continue
        if key not in names:
            raise Different(f"{type_.__name__} has no {key!r} in accord; it has {', '.join(type_.__struct_fields__)}")
        fields[names[key]] = str(value) if type(value).__name__ == "AnyUrl" else value
    return fields


class Annotations(content.Annotations, metaclass=SpellingMeta):
    """The audience of content, its priority (0 to 1), and when it changed (ISO 8601)."""


class TextContent(content.TextContent, metaclass=SpellingMeta):
    """Text content."""


class ImageContent(content.ImageContent, metaclass=SpellingMeta):
    """An image."""


class AudioContent(content.AudioContent, metaclass=SpellingMeta):
    """Audio."""


class ResourceLink(content.ResourceLink, metaclass=SpellingMeta):
    """A link to a resource that can be read."""


class EmbeddedResource(content.EmbeddedResource, metaclass=SpellingMeta):
    """A resource with its content."""


class ResourceContents(content.ResourceContents, metaclass=SpellingMeta):
    """The content of a resource: `text`, or `blob` in base64."""


class _ContentsMeta(SpellingMeta):
    """A metaclass of text and blob contents, which are one type in accord."""

    def __instancecheck__(cls, value: Any) -> bool:
        field = "text" if cls.__name__.startswith("Text") else "blob"
        return super().__instancecheck__(value) and getattr(value, field) is not None


class TextResourceContents(content.ResourceContents, metaclass=_ContentsMeta):
    """The content of a resource: `text`, or `blob` in base64."""


class BlobResourceContents(content.ResourceContents, metaclass=_ContentsMeta):
    """The content of a resource: `text`, or `blob` in base64."""


class Resource(content.Resource, metaclass=SpellingMeta):
    """A resource as a list shows it (server, Resources)."""


class ResourceTemplate(resources.ResourceTemplate, metaclass=SpellingMeta):
    """A pattern of resource URIs (RFC 6570)."""


class ReadResourceResult(resources.ReadResourceResult, metaclass=SpellingMeta):
    """Result of `resources/read`."""


class Tool(tools.Tool, metaclass=SpellingMeta):
    """A tool as `tools/list` shows it."""


class ToolAnnotations(tools.ToolAnnotations, metaclass=SpellingMeta):
    """Hints about a tool, such as read-only or idempotent."""


class CallToolResult(tools.CallToolResult, metaclass=SpellingMeta):
    """Result of `tools/call`."""


class Prompt(prompts.Prompt, metaclass=SpellingMeta):
    """A prompt as `prompts/list` shows it."""


class PromptArgument(prompts.PromptArgument, metaclass=SpellingMeta):
    """One argument of a prompt."""


class PromptMessage(prompts.PromptMessage, metaclass=SpellingMeta):
    """One message of a prompt."""


class GetPromptResult(prompts.GetPromptResult, metaclass=SpellingMeta):
    """Result of `prompts/get`."""


class Icon(identity.Icon, metaclass=SpellingMeta):
    """An image for display (basic, Icons)."""


class Implementation(identity.Implementation, metaclass=SpellingMeta):
    """The client or server program: `clientInfo` and `serverInfo`."""


class Completion(completion.Completion, metaclass=SpellingMeta):
    """At most 100 completion values."""


class CompletionArgument(completion.CompletionArgument, metaclass=SpellingMeta):
    """The argument to complete, and its value so far."""


class CompletionContext(completion.CompletionContext, metaclass=SpellingMeta):
    """Arguments that already have a value."""


class PromptReference(completion.PromptReference, metaclass=SpellingMeta):
    """A reference to a prompt whose argument is completed."""


class ResourceTemplateReference(completion.ResourceTemplateReference, metaclass=SpellingMeta):
    """A reference to a resource template whose variable is completed."""


class ElicitResult(elicitation.ElicitResult, metaclass=SpellingMeta):
    """Result of `elicitation/create`, or the answer to it in a retry."""


class ElicitRequestFormParams(elicitation.ElicitParams, metaclass=SpellingMeta):
    """Params of `elicitation/create`: a form (no `mode`, or "form"), or a URL ("url")."""


class ElicitRequestURLParams(elicitation.ElicitParams, metaclass=SpellingMeta):
    """Params of `elicitation/create`: a form (no `mode`, or "form"), or a URL ("url")."""


class SamplingMessage(sampling.SamplingMessage, metaclass=SpellingMeta):
    """One message to or from a model: a content block, from 2025-11-25 on also a list of them."""


class CreateMessageResult(sampling.CreateMessageResult, metaclass=SpellingMeta):
    """Result of `sampling/createMessage`, or the answer to it in a retry."""


class ModelHint(sampling.ModelHint, metaclass=SpellingMeta):
    """A part of the name of a suitable model."""


class ModelPreferences(sampling.ModelPreferences, metaclass=SpellingMeta):
    """The priorities for the choice of a model, each from 0 to 1."""


class Root(input_required.Root, metaclass=SpellingMeta):
    """A folder, as a `file:` URI."""


class ListRootsResult(input_required.ListRootsResult, metaclass=SpellingMeta):
    """Result of `roots/list`, or the answer to it in a retry."""


class ClientCapabilities(capabilities.ClientCapabilities, metaclass=SpellingMeta):
    """The capabilities that a client declares."""


class ElicitationCapability(capabilities.ElicitationCapability, metaclass=SpellingMeta):
    """`elicitation`: by form, by URL."""


class RootsCapability(capabilities.RootsCapability, metaclass=SpellingMeta):
    """`roots`: whether the client notifies the server when they change."""


class SamplingCapability(capabilities.SamplingCapability, metaclass=SpellingMeta):
    """`sampling`: whether with context of servers, and with tools."""


class LoggingMessageNotificationParams(notifications.LoggingMessageParams, metaclass=SpellingMeta):
    """Params of `notifications/message`."""


class ErrorData(msgspec.Struct, kw_only=True):
    """A JSON-RPC error, as `McpError` takes it."""

    code: int
    message: str
    data: Any = None


ContentBlock: TypeAlias = content.ContentBlock
AnyUrl: TypeAlias = str
