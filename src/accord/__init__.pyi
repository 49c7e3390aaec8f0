from accord.auth.credential_store import CredentialStore as CredentialStore
from accord.auth.oauth import OAuth as OAuth
from accord.auth.program_grants import (
    ClientCredentials as ClientCredentials,
    EnterpriseManaged as EnterpriseManaged,
    WorkloadIdentity as WorkloadIdentity,
)
from accord.client.apps import AppDocument as AppDocument
from accord.client.cache import Cache as Cache
from accord.client.client import Client as Client
from accord.client.handlers import ClientContext as ClientContext
from accord.client.model_selection import HostModel as HostModel, choose_model as choose_model
from accord.client.notifications import Notice as Notice
from accord.client.results import ToolResult as ToolResult
from accord.client.retry import Reconnect as Reconnect
from accord.client.skills import LoadedSkill as LoadedSkill
from accord.client.subscription import (
    ListChanged as ListChanged,
    Missed as Missed,
    ResourceUpdated as ResourceUpdated,
    Subscription as Subscription,
)
from accord.client.tasks import TaskHandle as TaskHandle, TaskState as TaskState
from accord.errors import (
    AccordError as AccordError,
    AnswerError as AnswerError,
    AuthorizationError as AuthorizationError,
    ConnectError as ConnectError,
    ConnectionLost as ConnectionLost,
    DeclarationError as DeclarationError,
    EventsGone as EventsGone,
    HTTPError as HTTPError,
    InternalError as InternalError,
    InvalidParams as InvalidParams,
    InvalidResult as InvalidResult,
    LifespanError as LifespanError,
    LoginNeeded as LoginNeeded,
    MethodNotFound as MethodNotFound,
    Mismatch as Mismatch,
    MissingClientCapability as MissingClientCapability,
    ModelError as ModelError,
    NotConnected as NotConnected,
    NotExecuted as NotExecuted,
    NotSupported as NotSupported,
    OAuthError as OAuthError,
    OutcomeUnknown as OutcomeUnknown,
    PolicyError as PolicyError,
    ProtocolError as ProtocolError,
    RateLimited as RateLimited,
    RemoteProtocolError as RemoteProtocolError,
    RequestTimeout as RequestTimeout,
    ResourceNotFound as ResourceNotFound,
    SamplingDeclined as SamplingDeclined,
    SchemaError as SchemaError,
    SessionEnded as SessionEnded,
    SkillChanged as SkillChanged,
    StoreError as StoreError,
    StoreFull as StoreFull,
    TargetError as TargetError,
    ToolError as ToolError,
    UrlElicitationRequired as UrlElicitationRequired,
)
from accord.limits import (
    ClientLimits as ClientLimits,
    HTTPLimits as HTTPLimits,
    Limits as Limits,
    TaskLimits as TaskLimits,
)
from accord.messages.apps import APPS as APPS, CSP as CSP
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
from accord.messages.resources import ReadResourceResult as ReadResourceResult, ResourceTemplate as ResourceTemplate
from accord.messages.revision import REVISIONS as REVISIONS
from accord.messages.sampling import (
    CreateMessageParams as CreateMessageParams,
    CreateMessageResult as CreateMessageResult,
    ModelHint as ModelHint,
    ModelPreferences as ModelPreferences,
    SamplingMessage as SamplingMessage,
)
from accord.messages.skills import Skill as Skill, SkillFile as SkillFile
from accord.messages.tool_ui import ToolUI as ToolUI
from accord.messages.tools import CallToolResult as CallToolResult, Tool as Tool, ToolAnnotations as ToolAnnotations
from accord.schema.forms import Email as Email, Uri as Uri
from accord.server.apps.page import AppPage as AppPage
from accord.server.apps.ready_made import Chart as Chart, Form as Form, Table as Table
from accord.server.auth.api_keys import APIKeys as APIKeys
from accord.server.auth.authentication import Auth as Auth
from accord.server.auth.introspection import Introspection as Introspection
from accord.server.auth.jwt import JWT as JWT
from accord.server.auth.proxy.oauth_proxy import OAuthProxy as OAuthProxy
from accord.server.auth.refusals import Forbidden as Forbidden, Unauthorized as Unauthorized
from accord.server.compose.argument_schema import ArgumentChange as ArgumentChange
from accord.server.compose.change import ToolChange as ToolChange
from accord.server.compose.provider import Provided as Provided, Provider as Provider
from accord.server.core.content import CacheHint as CacheHint, ToolOutput as ToolOutput
from accord.server.core.context import Context as Context, RunningServer as RunningServer
from accord.server.core.principal import Principal as Principal, Upstream as Upstream
from accord.server.declare.completions import Completable as Completable
from accord.server.declare.handles import Handles as Handles
from accord.server.declare.header import Header as Header
from accord.server.declare.imported import Imported as Imported
from accord.server.declare.media import Audio as Audio, File as File, Image as Image
from accord.server.depends.markers import Depends as Depends
from accord.server.files.directory import Directory as Directory
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
from accord.server.skills.folder import SkillFolder as SkillFolder
from accord.server.tasks.options import Task as Task
from accord.store.base import Events as Events, Replay as Replay
from accord.store.memory import MemoryEvents as MemoryEvents
from accord.store.sqlite import SQLiteEvents as SQLiteEvents
from accord.store.sqlite_tasks import SQLiteTasks as SQLiteTasks
from accord.store.tasks import (
    AskedQuestion as AskedQuestion,
    MemoryTasks as MemoryTasks,
    TaskInput as TaskInput,
    TaskRecord as TaskRecord,
    Tasks as Tasks,
)
from accord.telemetry.base import Telemetry as Telemetry
from accord.telemetry.otel import OpenTelemetry as OpenTelemetry
from accord.transport.http.settings import HTTPSettings as HTTPSettings

__all__ = [
    "APPS",
    "CSP",
    "JWT",
    "REVISIONS",
    "APIKeys",
    "Accepted",
    "AccordError",
    "AppDocument",
    "AppPage",
    "ArgumentChange",
    "Audio",
    "AudioContent",
    "Cache",
    "CacheHint",
    "CallNext",
    "CallToolResult",
    "Cancelled",
    "Chart",
    "Client",
    "ClientContext",
    "ClientCredentials",
    "ClientLimits",
    "Completable",
    "ConnectError",
    "ConnectionLost",
    "Context",
    "DeclarationError",
    "Declined",
    "Depends",
    "Directory",
    "Elicit",
    "ElicitUrl",
    "Email",
    "EmbeddedResource",
    "EnterpriseManaged",
    "Extension",
    "File",
    "Form",
    "HTTPLimits",
    "HTTPOptions",
    "HTTPSettings",
    "Handles",
    "Header",
    "HostModel",
    "Image",
    "ImageContent",
    "Introspection",
    "InvalidParams",
    "Limits",
    "ListChanged",
    "LoadedSkill",
    "Middleware",
    "Missed",
    "Notice",
    "OAuth",
    "OAuthProxy",
    "OpenTelemetry",
    "OutcomeUnknown",
    "Principal",
    "Prompt",
    "PromptMessage",
    "ProtocolError",
    "Provided",
    "Provider",
    "Reconnect",
    "Request",
    "RequestTimeout",
    "Resource",
    "ResourceLink",
    "ResourceNotFound",
    "ResourceTemplate",
    "ResourceUpdated",
    "RootList",
    "Roots",
    "RunningServer",
    "Sample",
    "Sampled",
    "Server",
    "Skill",
    "SkillFile",
    "SkillFolder",
    "Subscription",
    "Table",
    "Task",
    "TaskHandle",
    "TaskLimits",
    "TaskState",
    "Telemetry",
    "TextContent",
    "Tool",
    "ToolAnnotations",
    "ToolChange",
    "ToolError",
    "ToolOutput",
    "ToolResult",
    "ToolUI",
    "Uri",
    "WorkloadIdentity",
    "choose_model",
]

__version__: str
