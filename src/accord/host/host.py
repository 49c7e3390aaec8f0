"""`Host`: one client per server of a configuration, and what the host is responsible for: consent, policy, audit."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from accord.client.client import Client
from accord.client.connect import session_recorder
from accord.client.results import ToolResult
from accord.client.retry import Reconnect
from accord.client.target import Command
from accord.errors import AccordError, DeclarationError, InvalidParams, NotConnected, TargetError, log_line
from accord.host.approvers import Approve, Approver, make_approver
from accord.host.audit.log import AuditLog
from accord.host.calls import Calls, Denied, HostCall, denied_result, encode_call_arguments
from accord.host.catalogue import HostCatalogue
from accord.host.configuration import Configuration, ConfiguredServer, configure, read_configuration
from accord.host.consent import Consent, digest
from accord.host.conversation import DEFAULT_RUN_LIMITS, RunLimits, RunResult, run
from accord.host.definitions import Definitions
from accord.host.hosted_server import HostedServer, HostedServerStatus, SampledTokens
from accord.host.models.model import LanguageModel, OnText, check_model
from accord.host.policy.policy import Policy
from accord.host.questions import (
    ElicitationHandler,
    SamplingLimits,
    ServerQuestions,
    current_run,
    real_folders,
)
from accord.host.reviews import Reviews
from accord.host.secret_references import with_secrets
from accord.host.state import HostState
from accord.host.supervision import Supervision
from accord.host.tool_search import CALL, SEARCH, SEARCH_TOOLS, CatalogueSearch, called_tool
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.completion import Completion
from accord.messages.content import Resource, ToolUseContent
from accord.messages.prompts import GetPromptResult, Prompt
from accord.messages.resources import ReadResourceResult, ResourceTemplate
from accord.messages.sampling import SamplingMessage
from accord.messages.tools import Tool
from accord.server.compose.mount_names import MountNames

log: logging.Logger = logging.getLogger("accord.host")

_START_SECONDS = 10.0
"""How long the start of the host waits for servers; slower ones are announced later."""
_LIST_SECONDS = 10.0
"""How long a list of resources waits for a server."""
_PING_SECONDS = 60.0
_APPROVAL_SECONDS = 300.0
_MAX_SAMPLING = 100
_RECONNECT = Reconnect(attempts=3)


class Host:
    """The host of several servers: `async with Host("mcp.json", approve=ask) as host:`.

    `configuration` is the path of a file with `mcpServers` (of accord or another host, see `accord install --list`),
    or a mapping of names to servers: `Server` objects, entries, commands, URLs. `found` says that the program found the
    file by itself; then no command starts that the user has not approved.

    `approve` answers prompts: a function that takes a prompt and returns a bool or a `PromptAnswer`, sync or async, a
    `TerminalApprover`, or an `ApprovalQueue`; without it, whatever needs an approval is denied. `models` answer
    sampling requests. `roots` are the folders that servers may use. `elicitation(params, context)` answers questions of
    servers to the user. `policy` replaces that of the file, and `audit`, a file or an `AuditLog`, the one that it
    names. `state` is the file of approvals, by default the user's. `record` is a session file for all connections.
    `on_change` is called when a list or the state of a server changes.

    A tool is named `server_tool`. Raises `TargetError`, `PolicyError` for an invalid configuration.
    """

    def __init__(
        self,
        configuration: str | os.PathLike[str] | Mapping[str, Any],
        *,
        approve: Approver | Approve | None = None,
        models: Sequence[LanguageModel] = (),
        roots: Sequence[str | os.PathLike[str]] = (),
        elicitation: ElicitationHandler | None = None,
        policy: Policy | None = None,
        audit: str | os.PathLike[str] | AuditLog | None = None,
        state: str | os.PathLike[str] | None = None,
        found: bool = False,
        record: str | os.PathLike[str] | None = None,
        on_change: Callable[[], None] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        approval_seconds: float = _APPROVAL_SECONDS,
        ping_seconds: float = _PING_SECONDS,
    ) -> None:
        self._source = configuration
        self._configuration = _read(configuration)
        if policy is not None and not isinstance(policy, Policy):
            raise DeclarationError(f"policy={policy!r:.200} is no Policy: give Policy.from_settings([...])")
        self._given_policy = policy
        self._given_audit = audit
        self._found = found
        self._record = None if record is None else session_recorder(record)
        self.models: tuple[LanguageModel, ...] = tuple(map(check_model, models))
        self.conversation: str = secrets.token_hex(8)
        """The id of this run, which grants for a conversation are bound to."""
        self._approver = make_approver(approve)
        self._approval_seconds = approval_seconds
        self._ping_seconds = ping_seconds
        self._limits = limits
        self._roots = real_folders(roots)
        self._elicitation = elicitation
        self._sampling_limits = SamplingLimits(_MAX_SAMPLING)
        self._state = HostState(state)
        self._servers: dict[str, HostedServer] = {}
        self._is_open = False
        self._is_closed = False
        self._closing: asyncio.Task[None] | None = None
        self._reloading = asyncio.Lock()
        self._replacing_audit = asyncio.Lock()
        self._leaving: set[asyncio.Future[Any]] = set()
        """Servers that are being closed."""
        self._reviews = Reviews(self._approver, self._state, approval_seconds)
        self._on_change = on_change or (lambda: None)
        self._search: CatalogueSearch | None = None
        self._searches_by_file = True
        self._apply_search_budget(self._configuration)
        self._calls = Calls(
            policy or self._configuration.policy(),
            Consent(seconds=approval_seconds),
            self._approver,
            self._state,
            None if found and audit is None else _audit_log(audit, self._configuration),
            self._servers.get,
            approval_seconds=approval_seconds,
            clients_approve=self._configuration.settings.approve == "client",
        )

    # --- lifetime ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Host:
        """Start the servers, and wait for them, at most 10 s; slower ones go on in the background.

        Raises `StoreError` if approvals cannot be stored, and `TargetError` if two tools, or two prompts, would have
        one name.
        """
        await self._state.__aenter__()
        self._is_open = True
        try:
            async with self._reloading:  # a reload meanwhile would start the same servers
                if self._calls.audit is not None:
                    await self._calls.audit.open()
                started = await self._start()
            await self._wait_for(started)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections, and the processes of the servers. If it is cancelled, it does so first."""
        self._is_closed = True
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await _finished(self._closing)

    async def _close(self) -> None:
        self._reviews.close()
        await self._end(list(self._servers.values()))
        await self._calls.close()
        self._servers.clear()
        if self._calls.audit is not None:
            await self._calls.audit.close()
        await self._state.__aexit__(None, None, None)

    async def _end(self, servers: Iterable[HostedServer]) -> None:
        """Close servers, also if this is cancelled."""
        closing = asyncio.gather(*map(self._end_one, servers), return_exceptions=True)
        self._leaving.add(closing)
        closing.add_done_callback(self._leaving.discard)
        await _finished(closing)

    async def _end_one(self, server: HostedServer) -> None:
        await server.close()
        self._reviews.withdraw(server.name)  # not before: until then it may have questions

    async def _start(self) -> list[HostedServer]:
        """Start the servers that are configured and not there; return them."""
        configured = self._configuration.servers.values()
        return [await self._add(each) for each in configured if each.name not in self._servers]

    async def _wait_for(self, started: Iterable[HostedServer]) -> None:
        """Wait until servers have started, and questions about them are answered. Raises `TargetError`."""
        settling = [asyncio.ensure_future(server.settled()) for server in started]
        if settling:
            _, late = await asyncio.wait(settling, timeout=_START_SECONDS)
            for task in late:
                task.cancel()
        await self._reviews.wait()
        if names := self._catalogue.equal_names():
            raise TargetError(f"two servers would have a {names[0]}; rename one of the servers")

    async def _add(self, configured: ConfiguredServer) -> HostedServer:
        definitions = Definitions(await self._state.pins(configured.key))
        if self._is_closed:
            raise NotConnected("the host is closed")
        supervision = Supervision(lazy=configured.settings.start == "lazy", reconnect=_RECONNECT)
        server = HostedServer(
            configured,
            definitions,
            supervision,
            self._make_client,
            on_change=self._on_change,
            on_definitions=self._reviews.check_definitions,
            ping_seconds=self._ping_seconds,
        )
        self._servers[configured.name] = server
        if configured.error:
            supervision.refuse("invalid", configured.error)
        elif self._found and configured.server is None:
            await self._check_command(server)
        else:
            server.start()
        return server

    async def _check_command(self, server: HostedServer) -> None:
        try:
            await self._reviews.check_command(server)
        except BaseException:  # a cancelled reload: the next one adds the server
            self._servers.pop(server.name, None)
            raise

    async def _make_client(self, server: HostedServer, on_state: Any, on_stderr: Any) -> Client:
        configured = server.configured
        questions = ServerQuestions(
            server,
            self.models,
            self._sampling_limits,
            self._approver,
            self._elicitation,
            self._roots,
            approval_seconds=self._approval_seconds,
        )
        needs_approval = self._found and configured.server is None
        if needs_approval and not await self._reviews.is_command_approved(server):
            raise NotConnected("its command changed since it was approved")
        if needs_approval:
            await self._replace_audit_log(self._configuration)  # not before: the file may be a stranger's
        target = configured.target(await with_secrets(configured.entry))
        if isinstance(target, Command):
            target = msgspec.structs.replace(target, label=configured.name)  # so that errors name the server
        return Client(
            target,
            timeout=configured.settings.timeout,
            limits=self._limits,
            reconnect=None if needs_approval else _RECONNECT,  # each start is checked
            trusted=configured.settings.trusted,
            on_state=on_state,
            on_stderr=on_stderr,
            record=self._record,
            **questions.options(),
        )

    # --- servers -----------------------------------------------------------------------------------------------

    @property
    def servers(self) -> dict[str, HostedServerStatus]:
        """Return the state of each server, by name."""
        return {name: server.status for name, server in self._servers.items()}

    async def settled(self) -> None:
        """Wait until each server is connected and its lists are read, or has failed, and until open prompts about
        servers are answered.
        """
        await self._reviews.wait(also_for_queues=True)
        await asyncio.gather(*(server.settled() for server in self._servers.values()))
        await self._reviews.wait(also_for_queues=True)

    async def start(self, name: str) -> None:
        """Start a server that is not connected, and wait for it. Raises `NotConnected`, `InvalidParams` without one."""
        server = self._servers.get(name)
        if server is None:
            raise InvalidParams(f"there is no server {name!r:.100}; there are {', '.join(self._servers)}")
        await server.ready()
        await server.settled()
        await self._reviews.wait()

    async def reload(self) -> None:
        """Read the configuration again: servers that changed are ended and started anew, all others go on.

        Approvals of a changed server lapse. For an invalid file, raises the errors of `Host`, and keeps the old one.
        """
        self._check_open()
        async with self._reloading:
            started = await self._reload()
        await self._wait_for(started)

    async def _reload(self) -> list[HostedServer]:
        configuration = _read(self._source)
        policy = self._given_policy or configuration.policy()
        if not self._found:
            await self._replace_audit_log(configuration, again=True)
        self._apply_search_budget(configuration)
        gone = [
            server
            for name, server in self._servers.items()
            if name not in configuration.servers or self._is_changed(server, configuration.servers[name])
        ]
        for server in gone:
            del self._servers[server.name]
        self._configuration, self._calls.policy = configuration, policy
        self._calls.clients_approve = configuration.settings.approve == "client"
        try:
            await self._end(gone)
            return await self._start()
        finally:
            self._on_change()

    def _is_changed(self, server: HostedServer, configured: ConfiguredServer) -> bool:
        """Return whether a server has to be ended: its entry changed, its error, or settings that need an approval."""
        before = server.configured
        settings_changed = configured.file_settings != before.file_settings
        return (configured.digest, configured.error) != (server.digest, before.error) or (
            self._found and settings_changed
        )

    async def _replace_audit_log(self, configuration: Configuration, *, again: bool = False) -> None:
        """Open the audit log that the file names now, then close the one before, also if this is cancelled. `again`
        opens the same one anew, as its file may have been moved. Raises `StoreError`.
        """
        await _finished(asyncio.ensure_future(self._open_audit_log(configuration, again)))

    async def _open_audit_log(self, configuration: Configuration, again: bool) -> None:
        async with self._replacing_audit:
            before, after = self._calls.audit, _audit_log(self._given_audit, configuration)
            if self._given_audit is not None or (not again and _audit_files(before) == _audit_files(after)):
                return
            if after is not None:
                await after.open()
            self._calls.audit = after
            if before is not None:
                await before.close()

    def _check_open(self) -> None:
        if not self._is_open:
            raise NotConnected("the host is not open: use it within `async with Host(...) as host:`")

    # --- tools -------------------------------------------------------------------------------------------------

    @property
    def _catalogue(self) -> HostCatalogue:
        self._check_open()
        return HostCatalogue({name: server.catalogue for name, server in self._servers.items()})

    async def list_tools(self) -> list[Tool]:
        """Return the approved tools of all servers; those of a server that is not connected as it listed them last.

        After `search_tools`, and if the definitions exceed its budget, the two tools for a search.
        """
        catalogue = self._catalogue
        if self._search is not None and self._searched(catalogue).is_active:
            return list(SEARCH_TOOLS)
        return [tool.shown for tool in catalogue.tools()]

    def search_tools(self, budget: int = 4000, *, limit: int = 20) -> None:
        """List `search_tools` and `call_tool` instead of all tools if their definitions exceed `budget` tokens.

        A search returns the definitions of at most `limit` tools, within the budget. Raises `DeclarationError`.
        """
        self._search = CatalogueSearch(budget, limit)
        self._searches_by_file = False

    def _apply_search_budget(self, configuration: Configuration) -> None:
        """Search as the file says, unless the program has called `search_tools`."""
        if self._searches_by_file:
            budget = configuration.settings.search_budget
            self._search = None if budget is None else CatalogueSearch(budget)

    def _searched(self, catalogue: HostCatalogue) -> CatalogueSearch:
        assert self._search is not None, "search_tools was called"
        self._search.update(catalogue.tools())
        return self._search

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        principal: str = "",
        approve: Approver | Approve | None = None,
        on_progress: Any = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> ToolResult:
        """Call a tool, once the policy or the user allows it; `principal` is who causes the call. `approve` asks the
        client that makes it, see `ClientApprover`: only if the configuration says `"approve": "client"`.

        A call that is denied returns a tool error that says why. While the user decides, `on_progress` is called.
        Raises `InvalidParams` for an unknown tool, `NotConnected` with the reason for a server that is not available,
        and the errors of `Client.call_tool`. A call is never sent twice unless the tool is marked as safe and its
        server as trusted.
        """
        catalogue = self._catalogue
        if name in (SEARCH, CALL) and self._search is not None:  # also if a tool of a server has this name
            searched = self._searched(catalogue)
            if searched.is_active or catalogue.find_tool(name) is None:
                if name == SEARCH:
                    return searched.search(arguments or {})
                name, arguments = called_tool(arguments or {})
        tool = catalogue.find_tool(name)
        if tool is None:
            raise self._unknown_tool(catalogue, name)
        server = self._servers[tool.server]
        encoded = encode_call_arguments(tool, arguments)
        call = HostCall(
            id=secrets.token_hex(8),
            principal=principal,
            conversation=self.conversation,
            server=server,
            tool=tool,
            encoded=encoded,
            arguments_digest=digest(encoded),
            run=current_run.get(),
            client=None if approve is None else make_approver(approve),
        )
        try:
            return await self._calls.call(call, on_progress=on_progress, timeout=timeout, total_timeout=total_timeout)
        except Denied as exc:
            return denied_result(exc)

    def _unknown_tool(self, catalogue: HostCatalogue, name: str) -> AccordError:
        if self._is_closed:
            return NotConnected("the host is closed")
        for server in self._servers.values():
            inner = MountNames(server.name).inner_name(name)
            if inner is not None and any(
                change.definition.key == ("tool", inner) for change in server.definitions.changes
            ):
                return InvalidParams(
                    f"the tool {name!r:.200} waits for an approval: its definition is new or has changed"
                )
        return catalogue.unknown_tool(name)

    @property
    def sampling_tokens(self) -> int:
        """Return the tokens of all sampling requests so far, and of their answers."""
        return self._sampling_limits.tokens

    def count_sampling(self) -> AbstractContextManager[SampledTokens]:
        """Count the tokens of sampling requests in a `with` block, as `run` does: those of the calls in it.

        A request while several blocks have calls at its server counts for each of them, and one without any call for
        all blocks, because it is not known what caused it.
        """
        return self._sampling_limits.count()

    async def run(
        self,
        model: LanguageModel,
        messages: str | Sequence[SamplingMessage],
        *,
        system: str | None = None,
        limits: RunLimits = DEFAULT_RUN_LIMITS,
        principal: str = "",
        on_text: OnText | None = None,
        on_call: Callable[[ToolUseContent], None] | None = None,
    ) -> RunResult:
        """Let a model call tools until it has an answer; the policy and the user decide about each call.

        `messages` is a question, or a conversation to go on with. `on_text` receives the text as it arrives, and
        `on_call` each call that the model proposes. Raises `ModelError`.
        """
        return await run(
            self,
            check_model(model),
            messages,
            system=system,
            limits=limits,
            principal=principal,
            on_text=on_text,
            on_call=on_call,
        )

    # --- prompts and resources ---------------------------------------------------------------------------------

    async def list_prompts(self) -> list[Prompt]:
        """Return the approved prompts of all servers, named `server_prompt`."""
        return self._catalogue.prompts()

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, principal: str = ""
    ) -> GetPromptResult:
        """Return a prompt with its arguments filled in; `principal` is who requests it. Raises `InvalidParams`,
        `NotConnected`.
        """
        prompt = self._catalogue.prompt(name)
        server = self._servers[prompt.server]
        client = await server.ready()
        with server.in_flight(principal, current_run.get()):
            return await client.get_prompt(prompt.name, arguments)

    async def complete(
        self,
        *,
        argument: str,
        value: str = "",
        prompt: str | None = None,
        template: str | None = None,
        principal: str = "",
    ) -> Completion:
        """Return completions of an argument of a prompt, or of a variable of a resource template.

        Raises `InvalidParams`, `NotConnected`, and `LocalProtocolError` unless exactly one of the two is given.
        """
        if prompt is not None and template is None:
            found = self._catalogue.prompt(prompt)
            server, prompt = self._servers[found.server], found.name
        else:
            server, template = self._of_uri(template or "")
        client = await server.ready()
        with server.in_flight(principal, current_run.get()):
            return await client.complete(prompt=prompt, template=template, argument=argument, value=value)

    async def list_resources(self) -> list[Resource]:
        """Return the resources of the connected servers: `weather://oslo` of `acme` as `weather://acme/oslo`."""
        found = await self._from_each(lambda client: client.list_resources())
        return [_renamed(item, MountNames(name).uri(item.uri), "uri") for name, items in found for item in items]

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """Return the resource templates of the connected servers, likewise."""
        found = await self._from_each(lambda client: client.list_resource_templates())
        return [
            _renamed(item, MountNames(name).uri(item.uri_template), "uri_template")
            for name, items in found
            for item in items
        ]

    async def read_resource(self, uri: str, *, principal: str = "") -> ReadResourceResult:
        """Return the contents of a resource by its URI in `list_resources`; `principal` is who requests it. Raises
        `InvalidParams`, `NotConnected`.
        """
        server, inner = self._of_uri(uri)
        client = await server.ready()
        with server.in_flight(principal, current_run.get()):
            return await client.read_resource(inner)

    def _of_uri(self, uri: str) -> tuple[HostedServer, str]:
        """Return the server of a URI or template, and its own form of it. Raises `InvalidParams`."""
        for name, server in self._servers.items():
            inner = MountNames(name).inner_uri(uri)
            if inner is not None:
                return server, inner
        raise InvalidParams(f"{uri!r:.200} is of no server: a URI has the name of its server, such as file://NAME/path")

    async def _from_each(self, read: Callable[[Client], Any]) -> list[tuple[str, Any]]:
        """Return the lists of all connected servers that answer in time."""

        async def one(server: HostedServer) -> Any:
            try:
                async with asyncio.timeout(_LIST_SECONDS):
                    return await read(await server.ready())
            except (AccordError, TimeoutError) as exc:
                log.warning("accord: the resources of %s are left out: %s", server.name, log_line(exc))
                return []

        asked = [each for each in self._servers.values() if each.state == "connected" and each.resources]
        return list(zip([each.name for each in asked], await asyncio.gather(*map(one, asked)), strict=True))


async def _finished(work: asyncio.Future[Any]) -> None:
    """Wait for work that takes a bounded time, also if this is cancelled meanwhile."""
    is_cancelled = False
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError
    work.result()


def _read(configuration: str | os.PathLike[str] | Mapping[str, Any]) -> Configuration:
    if isinstance(configuration, Mapping):
        return configure(configuration)
    if not isinstance(configuration, str | os.PathLike):
        raise DeclarationError(f"a host takes a file or a mapping of servers by name, not {configuration!r:.200}")
    return read_configuration(Path(configuration))


def _audit_log(given: str | os.PathLike[str] | AuditLog | None, configuration: Configuration) -> AuditLog | None:
    if isinstance(given, AuditLog):
        return given
    settings = configuration.settings
    if given is not None:
        return AuditLog(given)
    if settings.audit is None:
        return None
    anchor = None if settings.audit_anchor is None else configuration.folder / settings.audit_anchor
    return AuditLog(configuration.folder / settings.audit, anchor=anchor)


def _audit_files(audit: AuditLog | None) -> tuple[Path, Path | None] | None:
    return None if audit is None else (audit.path, audit.anchor)


def _renamed(item: Any, uri: str, field: str) -> Any:
    return msgspec.structs.replace(item, **{field: uri})
