"""The context attributes that both other libraries share: `ctx.request_context`, `ctx.session`."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import msgspec

from accord.compat.differ import Different
from accord.messages.base import LoggingLevel
from accord.messages.capabilities import ClientCapabilities
from accord.messages.content import ResourceContents
from accord.messages.input_required import ListRootsResult
from accord.server.core.context import Context as Native
from accord.server.input.questions import Sampled


class CompatContext(Native):
    """accord's context with the other libraries' attributes; `Context[ServerSession, AppContext]` is an annotation."""

    def __class_getitem__(cls, types: Any) -> type[CompatContext]:
        return cls

    @property
    def session(self) -> ContextSession:
        """Return the session, which sends notifications and requests to the client."""
        return ContextSession(self)

    @property
    def request_context(self) -> RequestContext:
        """Return the request, with the value of the lifespan."""
        return RequestContext(self)

    @property
    def client_id(self) -> str | None:
        """Return the client id in the `_meta` of the request, or None."""
        return self.meta.get("client_id")

    async def notify_tools_changed(self) -> None:
        """Notify clients that the list of tools changed; accord also does so at each change."""
        self.server.change_bus.list_changed("tools")

    async def notify_prompts_changed(self) -> None:
        """Notify clients that the list of prompts changed; accord also does so at each change."""
        self.server.change_bus.list_changed("prompts")

    async def notify_resources_changed(self) -> None:
        """Notify clients that the list of resources changed; accord also does so at each change."""
        self.server.change_bus.list_changed("resources")

    async def notify_resource_updated(self, uri: str) -> None:
        """Notify the subscribers of a resource."""
        self.server.resource_updated(str(uri))


class RequestContext:
    """The request of a context."""

    def __init__(self, context: CompatContext) -> None:
        self._context = context

    @property
    def lifespan_context(self) -> Any:
        """Return the value that the lifespan yielded, or an empty dict without a lifespan."""
        value = self._context.lifespan
        return {} if value is None else value

    @property
    def session(self) -> ContextSession:
        """Return the session, as `CompatContext.session` does."""
        return self._context.session

    @property
    def request_id(self) -> Any:
        """Return the id of the request."""
        return self._context.request_id

    @property
    def protocol_version(self) -> str:
        """Return the protocol revision of the request."""
        return self._context.revision

    @property
    def meta(self) -> dict[str, Any]:
        """Return the `_meta` of the request."""
        return self._context.meta


class ContextSession:
    """The session with the client, for the time of one call."""

    def __init__(self, context: CompatContext) -> None:
        self._context = context

    async def send_tool_list_changed(self) -> None:
        """Notify clients, as `CompatContext.notify_tools_changed` does."""
        await self._context.notify_tools_changed()

    async def send_prompt_list_changed(self) -> None:
        """Notify clients, as `CompatContext.notify_prompts_changed` does."""
        await self._context.notify_prompts_changed()

    async def send_resource_list_changed(self) -> None:
        """Notify clients, as `CompatContext.notify_resources_changed` does."""
        await self._context.notify_resources_changed()

    async def send_resource_updated(self, uri: Any) -> None:
        """Notify the subscribers of a resource."""
        await self._context.notify_resource_updated(uri)

    async def send_log_message(self, level: LoggingLevel, data: Any, logger: str | None = None, **_: Any) -> None:
        """Send a log message to the client."""
        Native.log(self._context, level, data, logger)

    async def send_progress_notification(
        self, progress_token: Any, progress: float, total: float | None = None, message: str | None = None, **_: Any
    ) -> None:
        """Send a progress notification to the client; the progress token is always that of the call."""
        self._context.report_progress(progress, total, message)

    async def send_elicit_complete(self, elicitation_id: str, related_request_id: Any = None) -> None:
        """Notify the client that the user finished the URL elicitation with this id."""
        self._context.server.complete_elicitation(elicitation_id)

    async def list_roots(self) -> ListRootsResult:
        """Return the folders that the client lets the server use."""
        return ListRootsResult(roots=list(await self._context.list_roots()))

    async def create_message(
        self,
        messages: Sequence[Any],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        include_context: Any = None,
        temperature: float | None = None,
        stop_sequences: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        model_preferences: Any = None,
        tools: list[Any] | None = None,
        tool_choice: Any = None,
        related_request_id: Any = None,
    ) -> Sampled:
        """Send a sampling request to the client's model and return the result."""
        return await self._context.sample(
            list(messages),
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            include_context=include_context,
            temperature=temperature,
            stop_sequences=stop_sequences,
            metadata=metadata,
            model=model_preferences,
            tools=tools,
            tool_choice=getattr(tool_choice, "mode", tool_choice),
        )

    def check_client_capability(self, capability: ClientCapabilities) -> bool:
        """Return whether the client declared every part of a capability."""
        return _within(msgspec.to_builtins(capability), msgspec.to_builtins(self._context.client_capabilities))

    def __getattr__(self, name: str) -> Any:
        raise Different(f"ctx.session has no {name!r} in accord: the context itself tells and asks, as ctx.elicit does")


def _within(required: Any, declared: Any) -> bool:
    if not isinstance(required, dict):
        return bool(required == declared)
    return isinstance(declared, dict) and all(
        key in declared and _within(value, declared[key]) for key, value in required.items()
    )


class ResourceContent(msgspec.Struct):
    """The content of a resource that a handler reads: text or bytes."""

    content: str | bytes
    mime_type: str | None = None

    @classmethod
    def of(cls, contents: ResourceContents) -> ResourceContent:
        """Return the content of one item of a `resources/read` result."""
        content = contents.text if contents.text is not None else b64decode(contents.blob or "")
        return cls(content, contents.mime_type)


class NoOpContext:
    """An async context manager that does nothing, for programs that must enter one."""

    def run(self) -> NoOpContext:
        """Return this context manager; a program need not enter it."""
        return self

    async def __aenter__(self) -> NoOpContext:
        return self

    async def __aexit__(self, *_: object) -> None:
        return
