"""The methods of a client, one for each request of the protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import msgspec
from msgspec import Raw

from accord.client.cache import READ_METHOD, CacheableRequest
from accord.client.multi_round_trip import InputResponder
from accord.client.requests import Requests, always_retry, never_retry
from accord.client.results import TaskCreated, ToolResult, encode_arguments
from accord.client.tasks import TaskHandle, TaskRequests, result_or_cancel
from accord.client.tools import MirroredTools, ToolCatalog
from accord.errors import InvalidParams, InvalidResult, LocalProtocolError, Mismatch, ResourceNotFound, ToolError
from accord.limits import Limits
from accord.messages.base import Meta
from accord.messages.completion import (
    CompleteParams,
    CompleteResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    Reference,
    ResourceTemplateReference,
)
from accord.messages.content import Resource, ResourceContents
from accord.messages.meta import InputResponseParams
from accord.messages.prompts import GetPromptParams, GetPromptResult, ListPromptsResult, Prompt
from accord.messages.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceParams,
    ReadResourceResult,
    ResourceTemplate,
)
from accord.messages.skills import GetSkillParams, GetSkillResult, ListSkillsResult, Skill
from accord.messages.tasks import TaskMetadata
from accord.messages.tools import CallToolParams, ListToolsResult, Tool

if TYPE_CHECKING:
    from accord.client.apps import AppDocument
    from accord.client.skills import LoadedSkill


def completion_params(
    reference: Reference | None,
    prompt: str | None,
    template: str | None,
    argument: str,
    value: str,
    context: Mapping[str, str] | None,
) -> CompleteParams:
    """Return the params of `completion/complete`. Raises `LocalProtocolError` unless exactly one reference is given."""
    references = [
        candidate
        for candidate in (
            reference,
            None if prompt is None else PromptReference(name=prompt),
            None if template is None else ResourceTemplateReference(uri=template),
        )
        if candidate is not None
    ]
    if len(references) != 1:
        raise LocalProtocolError("complete() needs exactly one of a reference, `prompt` and `template`")
    return CompleteParams(
        ref=references[0],
        argument=CompletionArgument(name=argument, value=value),
        context=CompletionContext(arguments=dict(context)) if context else None,
    )


T = TypeVar("T")

ProgressCallback = Callable[[float, float | None, str | None], Awaitable[None] | None]
"""Called with progress, total and message, as the server sent them."""


class RequestMethods:
    """The requests of one client. `name` is the server's name in errors; the other arguments are those of `Client`."""

    def __init__(
        self,
        requests: Requests,
        responder: InputResponder,
        name: str,
        limits: Limits,
        *,
        strict: bool,
        trusted: bool,
    ) -> None:
        self._requests = requests
        self._server_name = name
        self._mirrored_tools = MirroredTools(name, self._list_tools)
        self._task_requests = TaskRequests(requests, responder, name)
        self._tools = ToolCatalog(name, self._list_tools, limits, strict=strict, trusted=trusted)

    def _invalidate(self) -> None:
        """Discard cached server state."""
        self._requests.clear_cache()
        self._tools.invalidate()

    # --- lists -------------------------------------------------------------------------------------------------

    async def list_tools(self, *, fresh: bool = False) -> list[Tool]:
        """Return all tools, over all pages within the limits. `fresh`: bypass the cache, here as in the other lists.

        Over HTTP in 2026-07-28, tools with an invalid declaration of arguments in headers are left out, with a warning
        that says why.
        """
        return await self._list_tools(fresh=fresh)

    async def _list_tools(self, **options: Any) -> list[Tool]:
        changes = self._tools.generation
        tools = await self._requests.all("tools/list", ListToolsResult, lambda result: result.tools, **options)
        usable = self._mirrored_tools.learn(tools)
        self._tools.learn(usable, changes)
        return usable

    async def list_resources(self, *, fresh: bool = False) -> list[Resource]:
        """Return all resources with a fixed URI, over all pages within the limits."""
        return await self._requests.all(
            "resources/list", ListResourcesResult, lambda result: result.resources, fresh=fresh
        )

    async def list_resource_templates(self, *, fresh: bool = False) -> list[ResourceTemplate]:
        """Return all resource templates, over all pages within the limits."""
        return await self._requests.all(
            "resources/templates/list",
            ListResourceTemplatesResult,
            lambda result: result.resource_templates,
            fresh=fresh,
        )

    async def list_prompts(self, *, fresh: bool = False) -> list[Prompt]:
        """Return all prompts, over all pages within the limits."""
        return await self._requests.all("prompts/list", ListPromptsResult, lambda result: result.prompts, fresh=fresh)

    # --- requests ----------------------------------------------------------------------------------------------

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_progress: ProgressCallback | None = None,
        meta: Meta | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
        raise_on_error: bool = False,
    ) -> ToolResult: ...

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        type: type[T],
        on_progress: ProgressCallback | None = None,
        meta: Meta | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
        raise_on_error: bool = False,
    ) -> T: ...

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        type: type[T] | None = None,
        on_progress: ProgressCallback | None = None,
        meta: Meta | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
        raise_on_error: bool = False,
    ) -> ToolResult | T:
        """Call a tool and return its result. A tool error is a result with `is_error`; with `raise_on_error` it raises
        `ToolError`, whose `result` is that result.

        With `type`, return the data of the result as that type: a dataclass, a pydantic model, `list[int]`; a tool
        error raises `ToolError`, and data that do not fit raise `InvalidResult`.

        `timeout` (seconds) bounds the time without a message before the call fails, and progress resets it;
        `total_timeout` bounds the whole call. Structured content is validated against the tool's output schema. Raises
        `ProtocolError` (an unknown tool is -32602), `RequestTimeout`, `ConnectionLost`, `InvalidResult`,
        `NotSupported`; and `OutcomeUnknown` if a reconnecting client may not send the call again (server, Tools).
        """
        task = await self._start_call(name, arguments, meta, on_progress, timeout, total_timeout, as_task=False)
        answer = (
            task
            if isinstance(task, ToolResult)
            else await result_or_cancel(task, task.result(timeout=timeout, total_timeout=total_timeout))
        )
        result = await self._tools.check_result(name, answer, timeout=timeout, total_timeout=total_timeout)
        if result.is_error and (raise_on_error or type is not None):
            raise ToolError(result.text or f"tool {name!r} failed and did not say why", result=result)
        if type is None:
            return result
        try:
            return result.data_as(type)
        except Mismatch as exc:
            raise InvalidResult(f"tool {name!r} returned data that does not match {type!r}: {exc}") from exc

    async def _start_call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        meta: Meta | None,
        on_progress: ProgressCallback | None,
        timeout: float | None,
        total_timeout: float | None,
        *,
        as_task: bool,
    ) -> ToolResult | TaskHandle:
        """Send a call, and return its result, or the task that it has become."""
        params = CallToolParams(name=name, arguments=encode_arguments(arguments))
        total = self._requests.total_timeout if total_timeout is None else total_timeout
        options: dict[str, Any] = {"meta": meta, "on_progress": on_progress, "timeout": timeout}
        options["may_repeat"] = lambda: self._tools.may_repeat(name)
        if self._requests.may_request_tasks and await self._tools.runs_as_task(name, as_task):
            params = msgspec.structs.replace(params, task=TaskMetadata())
            raw = await self._requests.raw("tools/call", params, total_timeout=total, **options)
            return self._task_requests.created_in_core(bytes(raw))

        def send(total: float | None) -> Awaitable[ToolResult]:
            return self._requests.with_input("tools/call", ToolResult, params, total_timeout=total, **options)

        try:
            return await self._mirrored_tools.call(total, send)
        except TaskCreated as created:
            if not self._requests.accepts_tasks:
                raise
            return self._task_requests.created(created.raw)

    # --- tasks -------------------------------------------------------------------------------------------------

    async def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_progress: ProgressCallback | None = None,
        meta: Meta | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> TaskHandle:
        """Call a tool, and return as soon as the server has begun a task for it, or has the result: `await
        handle.result()`. `call_tool` does both. Timeouts and errors as for `call_tool`.
        """
        started = await self._start_call(name, arguments, meta, on_progress, timeout, total_timeout, as_task=True)
        return self._task_requests.handle("", started) if isinstance(started, ToolResult) else started

    def task(self, id: str) -> TaskHandle:
        """Return the handle of a task that this client, or another process, has started."""
        return self._task_requests.handle(id)

    async def read_resource(
        self,
        uri: str,
        *,
        fresh: bool = False,
        on_progress: ProgressCallback | None = None,
        meta: Meta | None = None,
        timeout: float | None = None,
    ) -> ReadResourceResult:
        """Read a resource; `fresh`: bypass the cache. Raises `ResourceNotFound`, and the errors of `call_tool`."""
        try:
            return await self._requests.cached_with_input(
                CacheableRequest(READ_METHOD, uri),
                ReadResourceResult,
                ReadResourceParams(uri=uri),
                fresh=fresh,
                meta=meta,
                on_progress=on_progress,
                timeout=timeout,
            )
        except InvalidParams as exc:
            # From 2026-07-28 on, an unknown resource is reported so: -32602 with the URI.
            if isinstance(exc.data, dict) and exc.data.get("uri") == uri:
                raise ResourceNotFound(exc.message, uri=uri, code=exc.code, data=exc.data) from None
            raise

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        meta: Meta | None = None,
        timeout: float | None = None,
    ) -> GetPromptResult:
        """Return the messages of a prompt. Raises the errors of `call_tool`."""
        params = GetPromptParams(name=name, arguments=encode_arguments(arguments))
        return await self._requests.with_input("prompts/get", GetPromptResult, params, meta=meta, timeout=timeout)

    async def complete(
        self,
        reference: Reference | None = None,
        *,
        argument: str,
        value: str = "",
        prompt: str | None = None,
        template: str | None = None,
        context: Mapping[str, str] | None = None,
        meta: Meta | None = None,
        timeout: float | None = None,
    ) -> Completion:
        """Return suggested values for an `argument` of a prompt or of a resource template, of which `value` is typed.

        `context` are arguments that already have a value (from 2025-06-18 on; left out before). Raises the errors of
        `call_tool`, and `LocalProtocolError` unless exactly one of `reference`, `prompt` and `template` is given.
        """
        params = completion_params(reference, prompt, template, argument, value, context)
        result = await self._requests.read("completion/complete", CompleteResult, params, meta=meta, timeout=timeout)
        return result.completion

    # --- skills ------------------------------------------------------------------------------------------------

    async def list_skills(self, *, fresh: bool = False) -> list[Skill]:
        """Return the entries of all skills that the server lists; it may have more, see `get_skill`. Nothing is read.

        Raises `NotSupported` for a server without skills (extension Skills, 2026-07-28).
        """
        return await self._requests.all("skills/list", ListSkillsResult, lambda result: result.skills, fresh=fresh)

    async def get_skill(self, uri: str) -> Skill:
        """Return the entry of one skill, as it is now; `uri` is that of its `SKILL.md`. Raises `InvalidParams` for an
        unknown one, and `NotSupported`.
        """
        return (await self._requests.read("skills/get", GetSkillResult, GetSkillParams(uri=uri))).skill

    async def load_skill(self, skill: Skill | str) -> LoadedSkill:
        """Read the `SKILL.md` of an entry, or of the URI of one, and verify it: its digest, size and frontmatter.

        Call it when the skill is needed, after the user has approved the entry. The text comes from the server: tell
        the model so, and start no program for it unasked. Raises `SkillChanged`, `RemoteProtocolError` for an entry
        that is invalid or beyond the limits (512 files, 16 MiB), and the errors of `read_resource`.
        """
        from accord.client.skills import load_skill

        entry = await self.get_skill(skill) if isinstance(skill, str) else skill
        return await load_skill(self._server_name, entry, self._read_fresh)

    async def read_skill_file(self, skill: Skill | LoadedSkill, path: str) -> bytes:
        """Return a file of a skill, verified: `path` is relative to its folder, "templates/invoice.md". Raises as
        `load_skill`, and `SkillChanged` for a file that the entry does not list.
        """
        from accord.client.skills import LoadedSkill, read_skill_file

        entry = skill.entry if isinstance(skill, LoadedSkill) else skill
        return await read_skill_file(self._server_name, entry, path, self._read_fresh)

    async def _read_fresh(self, uri: str) -> list[ResourceContents]:
        return (await self.read_resource(uri, fresh=True)).contents

    # --- pages -------------------------------------------------------------------------------------------------

    async def read_ui(self, tool: Tool, *, fresh: bool = False) -> AppDocument:
        """Read the page in which a tool shows its results (extension MCP Apps); see `Tool.ui`. A client that shows
        pages declares it: `Client(target, extensions=[APPS])`.

        A page is a program of the server: show it only in a sandbox with another origin than yours, and under its
        policy. Raises `LocalProtocolError` for a tool without a page, `RemoteProtocolError` for a resource that is no
        page, and the errors of `read_resource`.
        """
        from accord.client.apps import page_of, read_document

        uri = page_of(tool)
        return read_document(self._server_name, uri, (await self.read_resource(uri, fresh=fresh)).contents)

    # --- low level, for extensions -----------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: Any = None,
        *,
        result: type[T],
        meta: Meta | None = None,
        on_progress: ProgressCallback | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
        repeatable: bool = False,
    ) -> T | Any:
        """Send a request of the protocol or of an extension; return its result as the type `result`, or as the type
        that an extension registered for its `resultType`. The other methods do not accept results of extensions.

        With `result=msgspec.Raw`, return the JSON that the server sent, unchanged; input requests of a `tools/call`,
        `prompts/get` or `resources/read` are answered. `repeatable` means that the request may be sent twice. Raises
        the errors of `call_tool`.
        """
        if result is cast(Any, Raw) and isinstance(params, InputResponseParams):
            options: dict[str, Any] = {"meta": meta, "on_progress": on_progress, "timeout": timeout}
            options["may_repeat"] = always_retry if repeatable else never_retry
            return await self._request_json(method, params, total_timeout, options)
        return await self._requests.read_open(
            method,
            result,
            params,
            meta=meta,
            on_progress=on_progress,
            timeout=timeout,
            total_timeout=total_timeout,
            may_repeat=always_retry if repeatable else never_retry,
        )

    async def _request_json(
        self, method: str, params: InputResponseParams, total_timeout: float | None, options: dict[str, Any]
    ) -> Any:
        """Return the JSON of a result, after the rounds in which the server asked for input."""

        def send(total: float | None) -> Awaitable[Any]:
            return self._requests.with_input(method, Raw, params, total_timeout=total, **options)

        total = self._requests.total_timeout if total_timeout is None else total_timeout
        if method != "tools/call":
            return await send(total)
        try:
            return await self._mirrored_tools.call(total, send)
        except TaskCreated as created:
            if not self._requests.accepts_tasks:
                raise
            task = self._task_requests.created(created.raw)
            json = task.result_json(timeout=options["timeout"], total_timeout=total)
            return await result_or_cancel(task, json)

    def _learn_tools(self, tools: list[Tool]) -> list[Tool]:
        """Use a list of tools that `request` returned; return those that may be called."""
        usable = self._mirrored_tools.learn(tools)
        self._tools.learn(usable, self._tools.generation)
        return usable
