"""The runs of the authorization debugger, one for each server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from accord.auth.oauth import OAuth
from accord.client.target import Remote
from accord.inspector.authorization.run import AuthorizationRun
from accord.inspector.authorization.run_state import RunActivity
from accord.inspector.authorization.settings import ConfiguredProgram
from accord.inspector.commands import InspectorError
from accord.inspector.servers import InspectedServer
from accord.inspector.topics import Topics
from accord.transport.http.settings import validated_headers
from accord.transport.recording import SessionRecorder

TOPIC = "authorization"


class RunChange(msgspec.Struct, frozen=True):
    """The value of the topic for one server: what the page shows has changed if `version` has."""

    version: int
    state: RunActivity


class AuthorizationRuns:
    """The runs by the names of their servers. `topics` tell pages what changed; `recorder` returns the recorder of all
    traffic.
    """

    def __init__(self, topics: Topics, recorder: Callable[[], SessionRecorder]) -> None:
        self._topics = topics
        self._recorder = recorder
        self._runs: dict[str, AuthorizationRun] = {}
        self._changes: dict[str, RunChange] = {}
        self._lock = asyncio.Lock()

    async def start(self, server: InspectedServer) -> AuthorizationRun:
        """Begin a run at a server, in place of the one before. Raises `InspectorError`, `StoreError`."""
        target = server.target
        login = _login_of(server.name, target)
        assert isinstance(target, Remote)
        async with self._lock:
            return await self._replace(server, target, login)

    async def _replace(
        self, server: InspectedServer, target: Remote, login: OAuth | ConfiguredProgram
    ) -> AuthorizationRun:
        await self.end(server.name)
        run = AuthorizationRun(target, login, recorder=self._recorder(), changed=lambda: self._publish(server.name))
        try:
            await run.open()
        except BaseException:
            await run.close()
            raise
        self._runs[server.name] = run
        self._publish(server.name)
        return run

    def run(self, name: str) -> AuthorizationRun:
        """Return the run at a server. Raises `InspectorError` if there is none."""
        found = self._runs.get(name)
        if found is None:
            raise InspectorError(f"no authorization was started at {name}", "start one on the page Authorization")
        return found

    def has_run(self, name: str) -> bool:
        """Return whether there is a run at a server."""
        return name in self._runs

    async def end(self, name: str) -> None:
        """End the run at a server, if there is one."""
        run = self._runs.pop(name, None)
        if run is not None:
            await run.close()

    async def close(self) -> None:
        """End all runs."""
        await asyncio.gather(*(self.end(name) for name in list(self._runs)))

    def _publish(self, name: str) -> None:
        run, before = self._runs.get(name), self._changes.get(name)
        version = 1 if before is None else before.version + 1
        self._changes[name] = RunChange(version, "idle" if run is None else run.activity)
        self._topics.changed(TOPIC, dict(self._changes))


def _login_of(name: str, target: object) -> OAuth | ConfiguredProgram:
    """Return the login of a user or of a program at a target. Raises `InspectorError` if there is none."""
    if not isinstance(target, Remote):
        raise InspectorError(f"{name} is no URL: only servers at a URL have logins", "choose another server")
    if "authorization" in validated_headers(target.headers or {}):
        cure = "leave it out of the configuration to log in"
        raise InspectorError(f"the configuration of {name} already has a token", cure)
    if target.auth is None:
        return OAuth()
    if not isinstance(target.auth, OAuth | ConfiguredProgram):
        raise InspectorError(f"{name} has a login of its own kind, whose steps are not known", "connect it")
    return target.auth
