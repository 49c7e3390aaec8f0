"""accord: the Model Context Protocol for Python.

    from accord import Server            # declare tools, resources, prompts; server.run()
    from accord import Client            # reach any server, in any revision

Names are loaded when they are first used, so that a server does not pay for a client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.client.answers import ToolResult as ToolResult
    from accord.client.client import Client as Client
    from accord.errors import (
        AccordError as AccordError,
        ConnectError as ConnectError,
        ConnectionLost as ConnectionLost,
        DeclarationError as DeclarationError,
        InternalError as InternalError,
        InvalidParams as InvalidParams,
        InvalidResult as InvalidResult,
        MethodNotFound as MethodNotFound,
        NotConnected as NotConnected,
        NotSupported as NotSupported,
        ProtocolError as ProtocolError,
        RemoteProtocolError as RemoteProtocolError,
        RequestTimeout as RequestTimeout,
        ResourceNotFound as ResourceNotFound,
        SchemaError as SchemaError,
        TargetError as TargetError,
        ToolError as ToolError,
    )
    from accord.limits import Limits as Limits
    from accord.messages.content import (
        Annotations as Annotations,
        AudioContent as AudioContent,
        EmbeddedResource as EmbeddedResource,
        ImageContent as ImageContent,
        ResourceContents as ResourceContents,
        ResourceLink as ResourceLink,
        TextContent as TextContent,
    )
    from accord.messages.identity import Icon as Icon, Implementation as Implementation
    from accord.messages.prompts import GetPromptResult as GetPromptResult, PromptMessage as PromptMessage
    from accord.messages.revision import REVISIONS as REVISIONS
    from accord.messages.tools import (
        CallToolResult as CallToolResult,
        Tool as Tool,
        ToolAnnotations as ToolAnnotations,
    )
    from accord.server.context import Context as Context
    from accord.server.server import Server as Server

__version__ = "0.1.0"

_HOMES = {
    "AccordError": "accord.errors",
    "Annotations": "accord.messages.content",
    "AudioContent": "accord.messages.content",
    "CallToolResult": "accord.messages.tools",
    "Client": "accord.client.client",
    "ConnectError": "accord.errors",
    "ConnectionLost": "accord.errors",
    "Context": "accord.server.context",
    "DeclarationError": "accord.errors",
    "TargetError": "accord.errors",
    "SchemaError": "accord.errors",
    "RemoteProtocolError": "accord.errors",
    "NotSupported": "accord.errors",
    "NotConnected": "accord.errors",
    "MethodNotFound": "accord.errors",
    "InvalidResult": "accord.errors",
    "InternalError": "accord.errors",
    "EmbeddedResource": "accord.messages.content",
    "GetPromptResult": "accord.messages.prompts",
    "Icon": "accord.messages.identity",
    "ImageContent": "accord.messages.content",
    "Implementation": "accord.messages.identity",
    "InvalidParams": "accord.errors",
    "Limits": "accord.limits",
    "PromptMessage": "accord.messages.prompts",
    "ProtocolError": "accord.errors",
    "REVISIONS": "accord.messages.revision",
    "RequestTimeout": "accord.errors",
    "ResourceContents": "accord.messages.content",
    "ResourceLink": "accord.messages.content",
    "ResourceNotFound": "accord.errors",
    "Server": "accord.server.server",
    "TextContent": "accord.messages.content",
    "Tool": "accord.messages.tools",
    "ToolAnnotations": "accord.messages.tools",
    "ToolError": "accord.errors",
    "ToolResult": "accord.client.answers",
}
"""Every public name, and the module that it lives in."""

__all__ = [
    "REVISIONS",
    "AccordError",
    "Annotations",
    "AudioContent",
    "CallToolResult",
    "Client",
    "ConnectError",
    "ConnectionLost",
    "Context",
    "DeclarationError",
    "EmbeddedResource",
    "GetPromptResult",
    "Icon",
    "ImageContent",
    "Implementation",
    "InternalError",
    "InvalidParams",
    "InvalidResult",
    "Limits",
    "MethodNotFound",
    "NotConnected",
    "NotSupported",
    "PromptMessage",
    "ProtocolError",
    "RemoteProtocolError",
    "RequestTimeout",
    "ResourceContents",
    "ResourceLink",
    "ResourceNotFound",
    "SchemaError",
    "Server",
    "TargetError",
    "TextContent",
    "Tool",
    "ToolAnnotations",
    "ToolError",
    "ToolResult",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'accord' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
