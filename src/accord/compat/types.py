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
    logging,
    prompts,
    resources,
    roots,
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
    "_Held",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
URL_ELICITATION_REQUIRED = -32042


class Spelling(ModelMeta):
    """Makes a class that is written in another library's way, and is its base all the same."""

    def __call__(cls, *args: Any, **given: Any) -> Any:
        base: Any = cls.__base__
        if args:
            raise Different(f"{cls.__name__} takes its fields by name")
        return base(**respelled(base, given))

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.__base__)  # type: ignore[arg-type]


def respelled(type_: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a type as it names them: `isError` and `is_error` are one, its own `type` is left out, and so is
    what is None. Raises `Different` for a field that it does not have.
    """
    names = dict(zip(type_.__struct_encode_fields__, type_.__struct_fields__, strict=True))
    names |= {name: name for name in type_.__struct_fields__}
    found = {}
    for key, value in given.items():
        if value is None or (key in _TAGS and key not in names):
            continue
        if key not in names:
            raise Different(f"{type_.__name__} has no {key!r} in accord; it has {', '.join(type_.__struct_fields__)}")
        found[names[key]] = str(value) if type(value).__name__ == "AnyUrl" else value
    return found


_TAGS = ("type", "mode", "method")
"""What says of which type something is."""


class Annotations(content.Annotations, metaclass=Spelling):
    """As there."""


class TextContent(content.TextContent, metaclass=Spelling):
    """As there."""


class ImageContent(content.ImageContent, metaclass=Spelling):
    """As there."""


class AudioContent(content.AudioContent, metaclass=Spelling):
    """As there."""


class ResourceLink(content.ResourceLink, metaclass=Spelling):
    """As there."""


class EmbeddedResource(content.EmbeddedResource, metaclass=Spelling):
    """As there."""


class ResourceContents(content.ResourceContents, metaclass=Spelling):
    """As there."""


class _Held(Spelling):
    """Contents of one of the two kinds, which are one type here."""

    def __instancecheck__(cls, value: Any) -> bool:
        field = "text" if cls.__name__.startswith("Text") else "blob"
        return super().__instancecheck__(value) and getattr(value, field) is not None


class TextResourceContents(content.ResourceContents, metaclass=_Held):
    """As there."""


class BlobResourceContents(content.ResourceContents, metaclass=_Held):
    """As there."""


class Resource(content.Resource, metaclass=Spelling):
    """As there."""


class ResourceTemplate(resources.ResourceTemplate, metaclass=Spelling):
    """As there."""


class ReadResourceResult(resources.ReadResourceResult, metaclass=Spelling):
    """As there."""


class Tool(tools.Tool, metaclass=Spelling):
    """As there."""


class ToolAnnotations(tools.ToolAnnotations, metaclass=Spelling):
    """As there."""


class CallToolResult(tools.CallToolResult, metaclass=Spelling):
    """As there."""


class Prompt(prompts.Prompt, metaclass=Spelling):
    """As there."""


class PromptArgument(prompts.PromptArgument, metaclass=Spelling):
    """As there."""


class PromptMessage(prompts.PromptMessage, metaclass=Spelling):
    """As there."""


class GetPromptResult(prompts.GetPromptResult, metaclass=Spelling):
    """As there."""


class Icon(identity.Icon, metaclass=Spelling):
    """As there."""


class Implementation(identity.Implementation, metaclass=Spelling):
    """As there."""


class Completion(completion.Completion, metaclass=Spelling):
    """As there."""


class CompletionArgument(completion.CompletionArgument, metaclass=Spelling):
    """As there."""


class CompletionContext(completion.CompletionContext, metaclass=Spelling):
    """As there."""


class PromptReference(completion.PromptReference, metaclass=Spelling):
    """As there."""


class ResourceTemplateReference(completion.ResourceTemplateReference, metaclass=Spelling):
    """As there."""


class ElicitResult(elicitation.ElicitResult, metaclass=Spelling):
    """As there."""


class ElicitRequestFormParams(elicitation.ElicitParams, metaclass=Spelling):
    """As there."""


class ElicitRequestURLParams(elicitation.ElicitParams, metaclass=Spelling):
    """As there."""


class SamplingMessage(sampling.SamplingMessage, metaclass=Spelling):
    """As there."""


class CreateMessageResult(sampling.CreateMessageResult, metaclass=Spelling):
    """As there."""


class ModelHint(sampling.ModelHint, metaclass=Spelling):
    """As there."""


class ModelPreferences(sampling.ModelPreferences, metaclass=Spelling):
    """As there."""


class Root(roots.Root, metaclass=Spelling):
    """As there."""


class ListRootsResult(roots.ListRootsResult, metaclass=Spelling):
    """As there."""


class ClientCapabilities(capabilities.ClientCapabilities, metaclass=Spelling):
    """As there."""


class ElicitationCapability(capabilities.ElicitationCapability, metaclass=Spelling):
    """As there."""


class RootsCapability(capabilities.RootsCapability, metaclass=Spelling):
    """As there."""


class SamplingCapability(capabilities.SamplingCapability, metaclass=Spelling):
    """As there."""


class LoggingMessageNotificationParams(logging.LoggingMessageParams, metaclass=Spelling):
    """As there."""


class ErrorData(msgspec.Struct, kw_only=True):
    """A JSON-RPC error, as `McpError` takes it."""

    code: int
    message: str
    data: Any = None


ContentBlock: TypeAlias = content.ContentBlock
AnyUrl: TypeAlias = str
