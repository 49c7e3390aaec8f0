"""The names of `mcp.types` (and `mcp_types`), in their spellings: `TextContent(type="text", text="...")`,
`CallToolResult(content=[], isError=True)`.

Each name makes accord's own type, and `isinstance` with it finds accord's own: nothing further on knows of these.
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
    """Makes a class that is written in another library's way, and is its base all the same."""

    def __call__(cls, *args: Any, **given: Any) -> Any:
        base: Any = cls.__base__
        if args:
            raise Different(f"{cls.__name__} takes its fields by name")
        return base(**normalize_fields(base, given))

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.__base__)  # type: ignore[arg-type]


def normalize_fields(type_: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a type as it names them: `isError` and `is_error` are one, its own `type` is left out, and so is
    what is None. Raises `Different` for a field that it does not have.
    """
    names = dict(zip(type_.__struct_encode_fields__, type_.__struct_fields__, strict=True))
    names |= {name: name for name in type_.__struct_fields__}
    found = {}
    for key, value in given.items():
        if value is None or (key == "type" and value == type_.__struct_config__.tag):
            continue
        if key not in names:
            raise Different(f"{type_.__name__} has no {key!r} in accord; it has {', '.join(type_.__struct_fields__)}")
        found[names[key]] = str(value) if type(value).__name__ == "AnyUrl" else value
    return found


class Annotations(content.Annotations, metaclass=SpellingMeta):
    """For whom something is, how much it matters (0 to 1), and when it changed (ISO 8601)."""


class TextContent(content.TextContent, metaclass=SpellingMeta):
    """Text."""


class ImageContent(content.ImageContent, metaclass=SpellingMeta):
    """An image."""


class AudioContent(content.AudioContent, metaclass=SpellingMeta):
    """Sound."""


class ResourceLink(content.ResourceLink, metaclass=SpellingMeta):
    """A resource that can be read, named in passing."""


class EmbeddedResource(content.EmbeddedResource, metaclass=SpellingMeta):
    """A resource with what it holds."""


class ResourceContents(content.ResourceContents, metaclass=SpellingMeta):
    """What a resource holds: `text`, or `blob` in base64."""


class _ContentsMeta(SpellingMeta):
    """Contents of one of the two kinds, which are one type here."""

    def __instancecheck__(cls, value: Any) -> bool:
        field = "text" if cls.__name__.startswith("Text") else "blob"
        return super().__instancecheck__(value) and getattr(value, field) is not None


class TextResourceContents(content.ResourceContents, metaclass=_ContentsMeta):
    """What a resource holds: `text`, or `blob` in base64."""


class BlobResourceContents(content.ResourceContents, metaclass=_ContentsMeta):
    """What a resource holds: `text`, or `blob` in base64."""


class Resource(content.Resource, metaclass=SpellingMeta):
    """A resource as a list names it (server, Resources)."""


class ResourceTemplate(resources.ResourceTemplate, metaclass=SpellingMeta):
    """A family of resources, by an RFC 6570 template of their URIs."""


class ReadResourceResult(resources.ReadResourceResult, metaclass=SpellingMeta):
    """Result of `resources/read`."""


class Tool(tools.Tool, metaclass=SpellingMeta):
    """A tool as `tools/list` names it."""


class ToolAnnotations(tools.ToolAnnotations, metaclass=SpellingMeta):
    """What a tool says of its own conduct."""


class CallToolResult(tools.CallToolResult, metaclass=SpellingMeta):
    """Result of `tools/call`."""


class Prompt(prompts.Prompt, metaclass=SpellingMeta):
    """A prompt as `prompts/list` names it."""


class PromptArgument(prompts.PromptArgument, metaclass=SpellingMeta):
    """One argument of a prompt."""


class PromptMessage(prompts.PromptMessage, metaclass=SpellingMeta):
    """One message of a prompt."""


class GetPromptResult(prompts.GetPromptResult, metaclass=SpellingMeta):
    """Result of `prompts/get`."""


class Icon(identity.Icon, metaclass=SpellingMeta):
    """An image to show for something (basic, Icons)."""


class Implementation(identity.Implementation, metaclass=SpellingMeta):
    """The program that speaks: `clientInfo` and `serverInfo`."""


class Completion(completion.Completion, metaclass=SpellingMeta):
    """At most 100 values."""


class CompletionArgument(completion.CompletionArgument, metaclass=SpellingMeta):
    """The argument, and what has been typed of it."""


class CompletionContext(completion.CompletionContext, metaclass=SpellingMeta):
    """Arguments that already have their value."""


class PromptReference(completion.PromptReference, metaclass=SpellingMeta):
    """Completion for an argument of this prompt."""


class ResourceTemplateReference(completion.ResourceTemplateReference, metaclass=SpellingMeta):
    """Completion for a variable of this resource template."""


class ElicitResult(elicitation.ElicitResult, metaclass=SpellingMeta):
    """Result of `elicitation/create`, or the answer to it in a retry."""


class ElicitRequestFormParams(elicitation.ElicitParams, metaclass=SpellingMeta):
    """Params of `elicitation/create`: a form to fill (no `mode`, or "form"), or a page to visit ("url")."""


class ElicitRequestURLParams(elicitation.ElicitParams, metaclass=SpellingMeta):
    """Params of `elicitation/create`: a form to fill (no `mode`, or "form"), or a page to visit ("url")."""


class SamplingMessage(sampling.SamplingMessage, metaclass=SpellingMeta):
    """One message to or of a model: a block, from 2025-11-25 on also a list of them."""


class CreateMessageResult(sampling.CreateMessageResult, metaclass=SpellingMeta):
    """Result of `sampling/createMessage`, or the answer to it in a retry."""


class ModelHint(sampling.ModelHint, metaclass=SpellingMeta):
    """Part of the name of a model that would suit."""


class ModelPreferences(sampling.ModelPreferences, metaclass=SpellingMeta):
    """What matters in the choice of a model, each from 0 to 1."""


class Root(input_required.Root, metaclass=SpellingMeta):
    """A folder, as a `file:` URI."""


class ListRootsResult(input_required.ListRootsResult, metaclass=SpellingMeta):
    """Result of `roots/list`, or the answer to it in a retry."""


class ClientCapabilities(capabilities.ClientCapabilities, metaclass=SpellingMeta):
    """What a client can do for a server."""


class ElicitationCapability(capabilities.ElicitationCapability, metaclass=SpellingMeta):
    """`elicitation`: by form, by URL."""


class RootsCapability(capabilities.RootsCapability, metaclass=SpellingMeta):
    """`roots`: perhaps the client tells when they change."""


class SamplingCapability(capabilities.SamplingCapability, metaclass=SpellingMeta):
    """`sampling`: perhaps with context of servers, and with tools."""


class LoggingMessageNotificationParams(notifications.LoggingMessageParams, metaclass=SpellingMeta):
    """Params of `notifications/message`."""


class ErrorData(msgspec.Struct, kw_only=True):
    """A JSON-RPC error, as `McpError` takes it."""

    code: int
    message: str
    data: Any = None


ContentBlock: TypeAlias = content.ContentBlock
AnyUrl: TypeAlias = str
