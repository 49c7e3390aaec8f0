"""What both other libraries give a handler besides what accord does: `ctx.request_context`, `ctx.session`."""

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
    """accord's own, with their names; those who type it as `Context[ServerSession, AppContext]` may."""

    def __class_getitem__(cls, types: Any) -> type[CompatContext]:
        return cls

    @property
    def session(self) -> ContextSession:
        """What is told and asked of the client, besides by the context itself."""
        return ContextSession(self)

    @property
    def request_context(self) -> RequestContext:
        """The request, with what the lifespan yielded."""
        return RequestContext(self)

    @property
    def client_id(self) -> str | None:
        """What the client calls itself in the `_meta` of the request."""
        return self.meta.get("client_id")

    async def notify_tools_changed(self) -> None:
        """Tell clients that the tools are others now; accord tells them so by itself, at each change."""
        self.server.change_bus.list_changed("tools")

    async def notify_prompts_changed(self) -> None:
        """As `notify_tools_changed`."""
        self.server.change_bus.list_changed("prompts")

    async def notify_resources_changed(self) -> None:
        """As `notify_tools_changed`."""
        self.server.change_bus.list_changed("resources")

    async def notify_resource_updated(self, uri: str) -> None:
        """Tell those who subscribed to it."""
        self.server.resource_updated(str(uri))


class RequestContext:
    """The request that a context stands for."""

    def __init__(self, context: CompatContext) -> None:
        self._context = context

    @property
    def lifespan_context(self) -> Any:
        """What the lifespan yielded; an empty dict where there is none."""
        value = self._context.lifespan
        return {} if value is None else value

    @property
    def session(self) -> ContextSession:
        """As `CompatContext.session`."""
        return self._context.session

    @property
    def request_id(self) -> Any:
        """The id of the request."""
        return self._context.request_id

    @property
    def protocol_version(self) -> str:
        """The revision that the request is served in."""
        return self._context.revision

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the request."""
        return self._context.meta


class ContextSession:
    """The client of one call, to be told and asked."""

    def __init__(self, context: CompatContext) -> None:
        self._context = context

    async def send_tool_list_changed(self) -> None:
        """As `CompatContext.notify_tools_changed`."""
        await self._context.notify_tools_changed()

    async def send_prompt_list_changed(self) -> None:
        """As `CompatContext.notify_tools_changed`."""
        await self._context.notify_prompts_changed()

    async def send_resource_list_changed(self) -> None:
        """As `CompatContext.notify_tools_changed`."""
        await self._context.notify_resources_changed()

    async def send_resource_updated(self, uri: Any) -> None:
        """Tell those who subscribed to it."""
        await self._context.notify_resource_updated(uri)

    async def send_log_message(self, level: LoggingLevel, data: Any, logger: str | None = None, **_: Any) -> None:
        """Tell the client what happens here."""
        Native.log(self._context, level, data, logger)

    async def send_progress_notification(
        self, progress_token: Any, progress: float, total: float | None = None, message: str | None = None, **_: Any
    ) -> None:
        """Tell the client how far the call is; the token is the call's own."""
        self._context.report_progress(progress, total, message)

    async def send_elicit_complete(self, elicitation_id: str, related_request_id: Any = None) -> None:
        """Tell the client that its person is done at the page of that id."""
        self._context.server.complete_elicitation(elicitation_id)

    async def list_roots(self) -> ListRootsResult:
        """The folders that the client lets us work in."""
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
        """Ask the client's model."""
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
        """Whether the client declared all of it."""
        return _within(msgspec.to_builtins(capability), msgspec.to_builtins(self._context.client_capabilities))

    def __getattr__(self, name: str) -> Any:
        raise Different(f"ctx.session has no {name!r} in accord: the context itself tells and asks, as ctx.elicit does")


def _within(asked: Any, declared: Any) -> bool:
    if not isinstance(asked, dict):
        return bool(asked == declared)
    return isinstance(declared, dict) and all(
        key in declared and _within(value, declared[key]) for key, value in asked.items()
    )


class ResourceContent(msgspec.Struct):
    """What a resource holds, read in a handler: text or bytes."""

    content: str | bytes
    mime_type: str | None = None

    @classmethod
    def of(cls, contents: ResourceContents) -> ResourceContent:
        """What one of the contents of a resource holds."""
        held = contents.text if contents.text is not None else b64decode(contents.blob or "")
        return cls(held, contents.mime_type)


class NoOpContext:
    """A place for what is entered and left, and does nothing here."""

    def run(self) -> NoOpContext:
        """To be entered; nobody need."""
        return self

    async def __aenter__(self) -> NoOpContext:
        return self

    async def __aexit__(self, *_: object) -> None:
        return
