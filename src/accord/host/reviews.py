"""Approvals that a person gives once for each server: its command, and its definitions. Asked in the background."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any

from accord.client.target import Command, Remote
from accord.errors import TargetError, log_line
from accord.host.approvers import Approver
from accord.host.command_approval import CommandDescription, describe_target
from accord.host.hosted_server import HostedServer
from accord.host.prompts import CommandPrompt, DefinitionsPrompt
from accord.host.secret_references import without_login_settings
from accord.host.state import HostState

log: logging.Logger = logging.getLogger("accord.host")

_START_SECONDS = 10.0
_MAX_QUESTIONS, _QUESTIONS_SECONDS = 5, 60.0
"""At most so many questions about the definitions of a server in so many seconds."""


class Reviews:
    """The open questions about the servers of one host. An answer is awaited for `seconds`."""

    def __init__(self, approver: Approver, state: HostState, seconds: float) -> None:
        self._approver = approver
        self._state = state
        self._seconds = seconds
        self._open: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._asked_at: dict[str, deque[float]] = {}
        """When the last questions about the definitions of a server were asked."""
        self._paused: dict[str, asyncio.TimerHandle] = {}
        self._is_closed = False

    async def wait(self, *, also_for_queues: bool = False) -> None:
        """Wait for the answers, unless they may take as long as a person likes."""
        if self._open and (self._approver.is_waited_for or also_for_queues):
            await asyncio.wait(self._open.values())

    def close(self) -> None:
        """Wait for no answer any more."""
        self._is_closed = True
        for task in self._open.values():
            task.cancel()
        for handle in self._paused.values():
            handle.cancel()

    def withdraw(self, name: str) -> None:
        """Ask nothing more about a server that is replaced: a new one of the same name has questions of its own."""
        for kind in ("command", "definitions"):
            if (task := self._open.pop((kind, name), None)) is not None:
                task.cancel()
        if (handle := self._paused.pop(name, None)) is not None:
            handle.cancel()

    # --- commands ----------------------------------------------------------------------------------------------

    async def check_command(self, server: HostedServer) -> None:
        """Start a server if its command was approved; ask otherwise."""
        if await self.is_command_approved(server):
            server.start()

    async def is_command_approved(self, server: HostedServer) -> bool:
        """Return whether what would start now was approved; refuse the server and ask otherwise."""
        configured = server.configured
        try:
            target = configured.target(without_login_settings(configured.entry))
            assert isinstance(target, Command | Remote), "a server in this process needs no approval"
            description = await _described(server, target)
        except TargetError as exc:
            server.refuse(str(exc))
            return False
        if await self._state.command(configured.key) == description.digest:
            return True
        server.refuse("its command waits for an approval")
        prompt = CommandPrompt(server.name, description.lines())
        self._ask(("command", server.name), self._approve_command(server, target, prompt, description.digest))
        return False

    async def _approve_command(
        self, server: HostedServer, target: Command | Remote, prompt: CommandPrompt, digest: str
    ) -> None:
        answer = await self._approver.ask(prompt, self._seconds)
        if not answer.approved:
            server.refuse(f"its command was not approved: {answer.reason or 'the user denied it'}")
        elif (await _described(server, target)).digest != digest:
            server.refuse("its command changed while the approval was given; start the host again")
        else:
            await self._state.approve_command(server.configured.key, digest)
            server.allow()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_START_SECONDS):
                    await server.settled()

    # --- definitions -------------------------------------------------------------------------------------------

    def check_definitions(self, server: HostedServer) -> None:
        """Ask about the definitions of a server that wait for an approval; about those that always change, after pauses
        that hold up nobody else.
        """
        if server.name not in self._paused:
            self._ask(("definitions", server.name), self._approve_definitions(server))

    async def _approve_definitions(self, server: HostedServer) -> None:
        while changes := server.definitions.changes:  # it may change again while a person decides
            if self._pauses(server):
                return
            answer = await self._approver.ask(DefinitionsPrompt(server.name, changes), self._seconds)
            if not answer.approved:
                if answer.reason:  # nobody has seen them
                    count, why = len(changes), log_line(answer.reason)
                    log.warning("accord: %d definitions of %s are not used: %s", count, server.name, why)
                return
            pins = [change.definition.pin(time.time()) for change in changes]  # what was shown
            await self._state.approve_definitions(server.configured.key, pins)
            server.approve(pins)

    def _pauses(self, server: HostedServer) -> bool:
        """Return whether too much was asked about a server; then it is asked later."""
        loop = asyncio.get_running_loop()
        asked = self._asked_at.setdefault(server.name, deque(maxlen=_MAX_QUESTIONS))
        if len(asked) < _MAX_QUESTIONS or asked[0] + _QUESTIONS_SECONDS <= loop.time():
            asked.append(loop.time())
            return False
        log.warning("accord: the definitions of %s change all the time; they are asked about later", server.name)
        self._paused[server.name] = loop.call_at(asked[0] + _QUESTIONS_SECONDS, self._resume, server)
        return True

    def _resume(self, server: HostedServer) -> None:
        self._paused.pop(server.name, None)
        self.check_definitions(server)

    def _ask(self, key: tuple[str, str], work: Coroutine[Any, Any, None]) -> None:
        running = self._open.get(key)
        if self._is_closed or (running is not None and not running.done()):
            work.close()
            return
        self._open[key] = task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(_report_failure)


async def _described(server: HostedServer, target: Command | Remote) -> CommandDescription:
    """Return what would start now. The program may be large: it is read in a thread. Raises `TargetError`."""
    configured = server.configured
    return await asyncio.to_thread(describe_target, target, configured.entry, configured.file_settings)


def _report_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("accord: an approval could not be asked for: %s", error, exc_info=error)
