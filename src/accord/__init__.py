"""accord: the Model Context Protocol for Python.

    from accord import Server            # declare tools, resources, prompts; server.run()
    from accord import Client            # reach any server, in any revision

Names are loaded when they are first used, so that a server does not pay for a client.

What most programs use is listed in `__all__`; the rest stands in `accord.types`, `accord.errors`, `accord.middleware`,
`accord.openapi`, `accord.http` and `accord.stores`, and can be imported from here as well. `__init__.pyi` tells the
same names to type checkers.
"""

from accord.lazy_names import homes_of, lazy_names

__version__ = "0.1.0"

_COMMON = homes_of(
    {
        "accord.client.apps": "AppDocument",
        "accord.client.cache": "Cache",
        "accord.client.client": "Client",
        "accord.client.handlers": "ClientContext",
        "accord.client.model_selection": "HostModel choose_model",
        "accord.client.notifications": "Notice",
        "accord.client.results": "ToolResult",
        "accord.client.skills": "LoadedSkill",
        "accord.client.retry": "Reconnect",
        "accord.client.tasks": "TaskHandle TaskState",
        "accord.client.subscription": "ListChanged Missed ResourceUpdated Subscription",
        "accord.errors": (
            "AccordError ConnectError ConnectionLost DeclarationError InvalidParams OutcomeUnknown ProtocolError "
            "RequestTimeout ResourceNotFound ToolError"
        ),
        "accord.auth.oauth": "OAuth",
        "accord.auth.program_grants": "ClientCredentials EnterpriseManaged WorkloadIdentity",
        "accord.limits": "ClientLimits HTTPLimits Limits TaskLimits",
        "accord.messages.apps": "APPS CSP",
        "accord.messages.content": "AudioContent EmbeddedResource ImageContent Resource ResourceLink TextContent",
        "accord.messages.extension": "Extension",
        "accord.messages.prompts": "Prompt PromptMessage",
        "accord.messages.resources": "ResourceTemplate",
        "accord.messages.revision": "REVISIONS",
        "accord.messages.skills": "Skill SkillFile",
        "accord.messages.tool_ui": "ToolUI",
        "accord.messages.tools": "CallToolResult Tool ToolAnnotations",
        "accord.schema.forms": "Email Uri",
        "accord.server.apps.page": "AppPage",
        "accord.server.apps.ready_made": "Chart Form Table",
        "accord.server.compose.argument_schema": "ArgumentChange",
        "accord.server.compose.change": "ToolChange",
        "accord.server.compose.provider": "Provided Provider",
        "accord.server.core.content": "CacheHint ToolOutput",
        "accord.server.core.context": "Context RunningServer",
        "accord.server.declare.completions": "Completable",
        "accord.server.declare.handles": "Handles",
        "accord.server.declare.header": "Header",
        "accord.server.declare.media": "Audio File Image",
        "accord.server.depends.markers": "Depends",
        "accord.server.files.directory": "Directory",
        "accord.server.core.principal": "Principal",
        "accord.server.auth.api_keys": "APIKeys",
        "accord.server.auth.introspection": "Introspection",
        "accord.server.auth.jwt": "JWT",
        "accord.server.auth.proxy.oauth_proxy": "OAuthProxy",
        "accord.server.http.options": "HTTPOptions",
        "accord.server.input.questions": "Accepted Cancelled Declined Elicit ElicitUrl Roots Sample Sampled",
        "accord.server.input.roots": "RootList",
        "accord.server.middleware.request": "CallNext Middleware Request",
        "accord.server.server": "Server",
        "accord.server.tasks.options": "Task",
        "accord.server.skills.folder": "SkillFolder",
        "accord.telemetry.base": "Telemetry",
        "accord.telemetry.otel": "OpenTelemetry",
        "accord.transport.http.settings": "HTTPSettings",
    }
)
"""The names that most programs use, and the module that each lives in."""

_HOMES = _COMMON | homes_of(
    {
        "accord.errors": (
            "AnswerError AuthorizationError EventsGone HTTPError InternalError InvalidResult LifespanError "
            "LoginNeeded MethodNotFound Mismatch MissingClientCapability ModelError NotConnected NotExecuted "
            "NotSupported OAuthError PolicyError RateLimited RemoteProtocolError SamplingDeclined SchemaError "
            "SessionEnded SkillChanged StoreError StoreFull TargetError UrlElicitationRequired"
        ),
        "accord.auth.credential_store": "CredentialStore",
        "accord.messages.completion": "Completion PromptReference ResourceTemplateReference",
        "accord.messages.content": "Annotations ResourceContents ToolResultContent ToolUseContent",
        "accord.messages.elicitation": "ElicitParams ElicitResult",
        "accord.messages.identity": "Icon Implementation",
        "accord.messages.input_required": "Root",
        "accord.messages.methods": "Method",
        "accord.messages.notifications": "LoggingMessageParams",
        "accord.messages.prompts": "GetPromptResult PromptArgument",
        "accord.messages.resources": "ReadResourceResult",
        "accord.messages.sampling": (
            "CreateMessageParams CreateMessageResult ModelHint ModelPreferences SamplingMessage"
        ),
        "accord.server.declare.imported": "Imported",
        "accord.server.auth.authentication": "Auth",
        "accord.server.core.principal": "Upstream",
        "accord.server.auth.refusals": "Forbidden Unauthorized",
        "accord.server.middleware.caching": "Caching MemoryResults ResultStore",
        "accord.server.middleware.errors": "MaskErrors Retry",
        "accord.server.middleware.limits": "MemoryRates RateLimit RateStore SQLiteRates SizeLimit Timeout",
        "accord.server.middleware.scopes": "RequireScopes",
        "accord.server.middleware.timing": "Timing",
        "accord.server.openapi.importer": "OpenAPIOptions",
        "accord.server.openapi.messages": "APIAnswer APIRequest",
        "accord.server.openapi.operation": "Route",
        "accord.server.openapi.routes": "READS_AS_RESOURCES RouteMap",
        "accord.store.base": "Events Replay",
        "accord.store.memory": "MemoryEvents",
        "accord.store.sqlite": "SQLiteEvents",
        "accord.store.sqlite_tasks": "SQLiteTasks",
        "accord.store.tasks": "AskedQuestion MemoryTasks TaskInput TaskRecord Tasks",
    }
)
"""Every name that can be imported from here."""

__all__ = list(_COMMON)  # pyright: ignore[reportUnsupportedDunderAll]: the stub lists them
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
