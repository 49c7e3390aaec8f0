"""accord: the Model Context Protocol for Python.

    from accord import Server            # declare tools, resources, prompts; server.run()
    from accord import Client            # reach any server, in any revision

Names are loaded when they are first used, so that a server does not pay for a client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.client.cache import Cache as Cache
    from accord.client.client import Client as Client
    from accord.client.handlers import ClientContext as ClientContext
    from accord.client.model_selection import HostModel as HostModel, choose_model as choose_model
    from accord.client.notifications import Notice as Notice
    from accord.client.results import ToolResult as ToolResult
    from accord.client.retry import Reconnect as Reconnect
    from accord.client.subscription import (
        ListChanged as ListChanged,
        Missed as Missed,
        ResourceUpdated as ResourceUpdated,
        Subscription as Subscription,
    )
    from accord.errors import (
        AccordError as AccordError,
        AnswerError as AnswerError,
        ConnectError as ConnectError,
        ConnectionLost as ConnectionLost,
        DeclarationError as DeclarationError,
        EventsGone as EventsGone,
        HTTPError as HTTPError,
        InternalError as InternalError,
        InvalidParams as InvalidParams,
        InvalidResult as InvalidResult,
        LifespanError as LifespanError,
        MethodNotFound as MethodNotFound,
        Mismatch as Mismatch,
        MissingClientCapability as MissingClientCapability,
        NotConnected as NotConnected,
        NotExecuted as NotExecuted,
        NotSupported as NotSupported,
        OutcomeUnknown as OutcomeUnknown,
        ProtocolError as ProtocolError,
        RateLimited as RateLimited,
        RemoteProtocolError as RemoteProtocolError,
        RequestTimeout as RequestTimeout,
        ResourceNotFound as ResourceNotFound,
        SamplingDeclined as SamplingDeclined,
        SchemaError as SchemaError,
        SessionEnded as SessionEnded,
        StoreError as StoreError,
        TargetError as TargetError,
        ToolError as ToolError,
        UrlElicitationRequired as UrlElicitationRequired,
    )
    from accord.limits import Limits as Limits
    from accord.messages.completion import (
        Completion as Completion,
        PromptReference as PromptReference,
        ResourceTemplateReference as ResourceTemplateReference,
    )
    from accord.messages.content import (
        Annotations as Annotations,
        AudioContent as AudioContent,
        EmbeddedResource as EmbeddedResource,
        ImageContent as ImageContent,
        Resource as Resource,
        ResourceContents as ResourceContents,
        ResourceLink as ResourceLink,
        TextContent as TextContent,
        ToolResultContent as ToolResultContent,
        ToolUseContent as ToolUseContent,
    )
    from accord.messages.elicitation import ElicitParams as ElicitParams, ElicitResult as ElicitResult
    from accord.messages.extension import Extension as Extension
    from accord.messages.identity import Icon as Icon, Implementation as Implementation
    from accord.messages.input_required import Root as Root
    from accord.messages.methods import Method as Method
    from accord.messages.notifications import LoggingMessageParams as LoggingMessageParams
    from accord.messages.prompts import (
        GetPromptResult as GetPromptResult,
        Prompt as Prompt,
        PromptArgument as PromptArgument,
        PromptMessage as PromptMessage,
    )
    from accord.messages.resources import (
        ReadResourceResult as ReadResourceResult,
        ResourceTemplate as ResourceTemplate,
    )
    from accord.messages.revision import REVISIONS as REVISIONS
    from accord.messages.sampling import (
        CreateMessageParams as CreateMessageParams,
        CreateMessageResult as CreateMessageResult,
        ModelHint as ModelHint,
        ModelPreferences as ModelPreferences,
        SamplingMessage as SamplingMessage,
    )
    from accord.messages.tools import (
        CallToolResult as CallToolResult,
        Tool as Tool,
        ToolAnnotations as ToolAnnotations,
    )
    from accord.schema.forms import Email as Email, Uri as Uri
    from accord.server.compose.change import ArgumentChange as ArgumentChange, ToolChange as ToolChange
    from accord.server.compose.provider import Provided as Provided, Provider as Provider
    from accord.server.core.content import CacheHint as CacheHint, ToolOutput as ToolOutput
    from accord.server.core.context import Context as Context
    from accord.server.core.principal import Principal as Principal
    from accord.server.declare.completions import Completable as Completable
    from accord.server.declare.handles import Handles as Handles
    from accord.server.declare.header import Header as Header
    from accord.server.declare.import_mixin import Imported as Imported
    from accord.server.declare.media import Audio as Audio, File as File, Image as Image
    from accord.server.depends.markers import Depends as Depends
    from accord.server.files.directory import Directory as Directory
    from accord.server.http.auth import (
        APIKeys as APIKeys,
        Auth as Auth,
        Forbidden as Forbidden,
        Unauthorized as Unauthorized,
    )
    from accord.server.http.options import HTTPOptions as HTTPOptions
    from accord.server.input.questions import (
        Accepted as Accepted,
        Cancelled as Cancelled,
        Declined as Declined,
        Elicit as Elicit,
        ElicitUrl as ElicitUrl,
        Roots as Roots,
        Sample as Sample,
        Sampled as Sampled,
    )
    from accord.server.input.roots import RootList as RootList
    from accord.server.middleware.caching import (
        Caching as Caching,
        MemoryResults as MemoryResults,
        ResultStore as ResultStore,
    )
    from accord.server.middleware.errors import MaskErrors as MaskErrors, Retry as Retry
    from accord.server.middleware.limits import (
        MemoryRates as MemoryRates,
        RateLimit as RateLimit,
        RateStore as RateStore,
        SizeLimit as SizeLimit,
        SQLiteRates as SQLiteRates,
        Timeout as Timeout,
    )
    from accord.server.middleware.request import CallNext as CallNext, Middleware as Middleware, Request as Request
    from accord.server.middleware.scopes import RequireScopes as RequireScopes
    from accord.server.middleware.timing import Timing as Timing
    from accord.server.openapi.importer import OpenAPIOptions as OpenAPIOptions
    from accord.server.openapi.messages import APIAnswer as APIAnswer, APIRequest as APIRequest
    from accord.server.openapi.operation import Route as Route
    from accord.server.openapi.routes import READS_AS_RESOURCES as READS_AS_RESOURCES, RouteMap as RouteMap
    from accord.server.server import Server as Server
    from accord.store.base import Events as Events, Replay as Replay
    from accord.store.memory import MemoryEvents as MemoryEvents
    from accord.store.sqlite import SQLiteEvents as SQLiteEvents
    from accord.telemetry.base import Telemetry as Telemetry
    from accord.telemetry.otel import OpenTelemetry as OpenTelemetry
    from accord.transport.http.settings import HTTPSettings as HTTPSettings

__version__ = "0.1.0"

_HOMES = {
    "Accepted": "accord.server.input.questions",
    "AccordError": "accord.errors",
    "Annotations": "accord.messages.content",
    "AnswerError": "accord.errors",
    "APIAnswer": "accord.server.openapi.messages",
    "APIKeys": "accord.server.http.auth",
    "APIRequest": "accord.server.openapi.messages",
    "ArgumentChange": "accord.server.compose.change",
    "Audio": "accord.server.declare.media",
    "AudioContent": "accord.messages.content",
    "Auth": "accord.server.http.auth",
    "Cache": "accord.client.cache",
    "CacheHint": "accord.server.core.content",
    "Caching": "accord.server.middleware.caching",
    "CallNext": "accord.server.middleware.request",
    "CallToolResult": "accord.messages.tools",
    "Cancelled": "accord.server.input.questions",
    "choose_model": "accord.client.model_selection",
    "Client": "accord.client.client",
    "ClientContext": "accord.client.handlers",
    "Completable": "accord.server.declare.completions",
    "Completion": "accord.messages.completion",
    "ConnectError": "accord.errors",
    "ConnectionLost": "accord.errors",
    "Context": "accord.server.core.context",
    "CreateMessageParams": "accord.messages.sampling",
    "CreateMessageResult": "accord.messages.sampling",
    "DeclarationError": "accord.errors",
    "Declined": "accord.server.input.questions",
    "Depends": "accord.server.depends.markers",
    "Directory": "accord.server.files.directory",
    "Elicit": "accord.server.input.questions",
    "ElicitParams": "accord.messages.elicitation",
    "ElicitResult": "accord.messages.elicitation",
    "ElicitUrl": "accord.server.input.questions",
    "Email": "accord.schema.forms",
    "EmbeddedResource": "accord.messages.content",
    "Events": "accord.store.base",
    "EventsGone": "accord.errors",
    "Extension": "accord.messages.extension",
    "File": "accord.server.declare.media",
    "Forbidden": "accord.server.http.auth",
    "GetPromptResult": "accord.messages.prompts",
    "Handles": "accord.server.declare.handles",
    "Header": "accord.server.declare.header",
    "HostModel": "accord.client.model_selection",
    "HTTPError": "accord.errors",
    "HTTPOptions": "accord.server.http.options",
    "HTTPSettings": "accord.transport.http.settings",
    "Icon": "accord.messages.identity",
    "Image": "accord.server.declare.media",
    "ImageContent": "accord.messages.content",
    "Implementation": "accord.messages.identity",
    "Imported": "accord.server.declare.import_mixin",
    "InternalError": "accord.errors",
    "InvalidParams": "accord.errors",
    "InvalidResult": "accord.errors",
    "LifespanError": "accord.errors",
    "Limits": "accord.limits",
    "ListChanged": "accord.client.subscription",
    "LoggingMessageParams": "accord.messages.notifications",
    "MaskErrors": "accord.server.middleware.errors",
    "MemoryEvents": "accord.store.memory",
    "MemoryRates": "accord.server.middleware.limits",
    "MemoryResults": "accord.server.middleware.caching",
    "Method": "accord.messages.methods",
    "MethodNotFound": "accord.errors",
    "Middleware": "accord.server.middleware.request",
    "Mismatch": "accord.errors",
    "Missed": "accord.client.subscription",
    "MissingClientCapability": "accord.errors",
    "ModelHint": "accord.messages.sampling",
    "ModelPreferences": "accord.messages.sampling",
    "NotConnected": "accord.errors",
    "NotExecuted": "accord.errors",
    "Notice": "accord.client.notifications",
    "NotSupported": "accord.errors",
    "OpenAPIOptions": "accord.server.openapi.importer",
    "OpenTelemetry": "accord.telemetry.otel",
    "OutcomeUnknown": "accord.errors",
    "Principal": "accord.server.core.principal",
    "Prompt": "accord.messages.prompts",
    "PromptArgument": "accord.messages.prompts",
    "PromptMessage": "accord.messages.prompts",
    "PromptReference": "accord.messages.completion",
    "ProtocolError": "accord.errors",
    "Provided": "accord.server.compose.provider",
    "Provider": "accord.server.compose.provider",
    "RateLimit": "accord.server.middleware.limits",
    "RateLimited": "accord.errors",
    "RateStore": "accord.server.middleware.limits",
    "ReadResourceResult": "accord.messages.resources",
    "READS_AS_RESOURCES": "accord.server.openapi.routes",
    "Reconnect": "accord.client.retry",
    "RemoteProtocolError": "accord.errors",
    "Replay": "accord.store.base",
    "Request": "accord.server.middleware.request",
    "RequestTimeout": "accord.errors",
    "RequireScopes": "accord.server.middleware.scopes",
    "Resource": "accord.messages.content",
    "ResourceContents": "accord.messages.content",
    "ResourceLink": "accord.messages.content",
    "ResourceNotFound": "accord.errors",
    "ResourceTemplate": "accord.messages.resources",
    "ResourceTemplateReference": "accord.messages.completion",
    "ResourceUpdated": "accord.client.subscription",
    "ResultStore": "accord.server.middleware.caching",
    "Retry": "accord.server.middleware.errors",
    "REVISIONS": "accord.messages.revision",
    "Root": "accord.messages.input_required",
    "RootList": "accord.server.input.roots",
    "Roots": "accord.server.input.questions",
    "Route": "accord.server.openapi.operation",
    "RouteMap": "accord.server.openapi.routes",
    "Sample": "accord.server.input.questions",
    "Sampled": "accord.server.input.questions",
    "SamplingDeclined": "accord.errors",
    "SamplingMessage": "accord.messages.sampling",
    "SchemaError": "accord.errors",
    "Server": "accord.server.server",
    "SessionEnded": "accord.errors",
    "SizeLimit": "accord.server.middleware.limits",
    "SQLiteEvents": "accord.store.sqlite",
    "SQLiteRates": "accord.server.middleware.limits",
    "StoreError": "accord.errors",
    "Subscription": "accord.client.subscription",
    "TargetError": "accord.errors",
    "Telemetry": "accord.telemetry.base",
    "TextContent": "accord.messages.content",
    "Timeout": "accord.server.middleware.limits",
    "Timing": "accord.server.middleware.timing",
    "Tool": "accord.messages.tools",
    "ToolAnnotations": "accord.messages.tools",
    "ToolChange": "accord.server.compose.change",
    "ToolError": "accord.errors",
    "ToolOutput": "accord.server.core.content",
    "ToolResult": "accord.client.results",
    "ToolResultContent": "accord.messages.content",
    "ToolUseContent": "accord.messages.content",
    "Unauthorized": "accord.server.http.auth",
    "Uri": "accord.schema.forms",
    "UrlElicitationRequired": "accord.errors",
}
"""Every public name, and the module that it lives in."""

__all__ = [
    "READS_AS_RESOURCES",
    "REVISIONS",
    "APIAnswer",
    "APIKeys",
    "APIRequest",
    "Accepted",
    "AccordError",
    "Annotations",
    "AnswerError",
    "ArgumentChange",
    "Audio",
    "AudioContent",
    "Auth",
    "Cache",
    "CacheHint",
    "Caching",
    "CallNext",
    "CallToolResult",
    "Cancelled",
    "Client",
    "ClientContext",
    "Completable",
    "Completion",
    "ConnectError",
    "ConnectionLost",
    "Context",
    "CreateMessageParams",
    "CreateMessageResult",
    "DeclarationError",
    "Declined",
    "Depends",
    "Directory",
    "Elicit",
    "ElicitParams",
    "ElicitResult",
    "ElicitUrl",
    "Email",
    "EmbeddedResource",
    "Events",
    "EventsGone",
    "Extension",
    "File",
    "Forbidden",
    "GetPromptResult",
    "HTTPError",
    "HTTPOptions",
    "HTTPSettings",
    "Handles",
    "Header",
    "HostModel",
    "Icon",
    "Image",
    "ImageContent",
    "Implementation",
    "Imported",
    "InternalError",
    "InvalidParams",
    "InvalidResult",
    "LifespanError",
    "Limits",
    "ListChanged",
    "LoggingMessageParams",
    "MaskErrors",
    "MemoryEvents",
    "MemoryRates",
    "MemoryResults",
    "Method",
    "MethodNotFound",
    "Middleware",
    "Mismatch",
    "Missed",
    "MissingClientCapability",
    "ModelHint",
    "ModelPreferences",
    "NotConnected",
    "NotExecuted",
    "NotSupported",
    "Notice",
    "OpenAPIOptions",
    "OpenTelemetry",
    "OutcomeUnknown",
    "Principal",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptReference",
    "ProtocolError",
    "Provided",
    "Provider",
    "RateLimit",
    "RateLimited",
    "RateStore",
    "ReadResourceResult",
    "Reconnect",
    "RemoteProtocolError",
    "Replay",
    "Request",
    "RequestTimeout",
    "RequireScopes",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceNotFound",
    "ResourceTemplate",
    "ResourceTemplateReference",
    "ResourceUpdated",
    "ResultStore",
    "Retry",
    "Root",
    "RootList",
    "Roots",
    "Route",
    "RouteMap",
    "SQLiteEvents",
    "SQLiteRates",
    "Sample",
    "Sampled",
    "SamplingDeclined",
    "SamplingMessage",
    "SchemaError",
    "Server",
    "SessionEnded",
    "SizeLimit",
    "StoreError",
    "Subscription",
    "TargetError",
    "Telemetry",
    "TextContent",
    "Timeout",
    "Timing",
    "Tool",
    "ToolAnnotations",
    "ToolChange",
    "ToolError",
    "ToolOutput",
    "ToolResult",
    "ToolResultContent",
    "ToolUseContent",
    "Unauthorized",
    "Uri",
    "UrlElicitationRequired",
    "choose_model",
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
