"""One inspected server: its target, its client, and what is known of its connection."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from accord.auth.oauth import OAuth
from accord.client.client import Client
from accord.client.reconnecting import ConnectionState
from accord.client.target import Command, InProcessServer, Remote
from accord.errors import AccordError, log_line
from accord.inspector.app_frames import EXTENSION
from accord.inspector.commands import InspectorError
from accord.limits import DEFAULT_LIMITS
from accord.messages.revision import HANDSHAKE, REVISIONS
from accord.redaction import redact, redact_beginning
from accord.visible_text import single_line, truncate, visible

STDERR_LINES = 500
"""The lines of stderr that are stored; the traffic has all of them."""
_LINE_CHARACTERS = 2_000
_TEXT_CHARACTERS = 20_000

InspectedTarget: TypeAlias = Command | Remote | InProcessServer
ServerOrigin: TypeAlias = Literal["command line", "configuration", "found", "page", "program"]
InspectedState: TypeAlias = Literal["idle", "connecting", "connected", "failed", "lost"]
ClientOptions: TypeAlias = Callable[[str], Mapping[str, Any]]
"""Returns options of `Client` for a server by name."""


class ServerDescription(msgspec.Struct, frozen=True, rename="camel"):
    """A server as the page shows it."""

    name: str
    target: str
    origin: ServerOrigin
    file: str
    """The configuration file, if there is one."""
    transport: Literal["process", "HTTP", "memory"]
    state: InspectedState
    error: str
    """Why it is not connected."""
    cure: str
    needs_approval: bool
    """Whether its command must be approved in the terminal before it starts."""
    only_revision: str
    """The revision that the user chose, if any."""
    revision: str
    era: Literal["", "handshake", "per-request"]
    """How the revision works: with a handshake, or with `_meta` in each request."""
    title: str
    version: str
    instructions: str
    capabilities_json: str
    connections: int
    """How often it was connected."""
    connected_seconds: float


class InspectedServer:
    """A server of the inspector. `on_change()` is called when its description changes.

    `options` are the sources of further options of its client: handlers, the recorder.
    """

    def __init__(
        self,
        name: str,
        target: InspectedTarget,
        origin: ServerOrigin,
        *,
        file: str = "",
        entry: Mapping[str, Any] | None = None,
        needs_approval: bool = False,
        options: tuple[ClientOptions, ...] = (),
        on_change: Callable[[], None],
    ) -> None:
        self.name: str = name
        self.target: InspectedTarget = target
        self.origin: ServerOrigin = origin
        self.file: str = file
        self.entry: Mapping[str, Any] | None = entry
        """Its entry in a file that accord found, with its references."""
        self.needs_approval: bool = needs_approval
        self.only_revision: str = ""
        self.stderr: deque[str] = deque(maxlen=STDERR_LINES)
        """The last lines that it wrote to stderr since it was last connected."""
        self.state: InspectedState = "idle"
        self._options = options
        self._on_change = on_change
        self._client: Client | None = None
        self._lock = asyncio.Lock()
        self._error = self._cure = ""
        self._connections = 0
        self._connected_at = 0.0
        self._last: dict[str, Any] = {}

    @property
    def client(self) -> Client:
        """Return the connected client. Raises `InspectorError`."""
        if self._client is None or self.state != "connected":
            raise InspectorError(f"{self.name} is not connected", "connect it on the page Servers")
        return self._client

    async def connect(self) -> None:
        """Connect, unless it is connected. Raises `InspectorError` if that fails."""
        async with self._lock:
            if self.state == "connected":
                return
            await self._end()
            self.stderr.clear()
            self._set_state("connecting")
            try:
                client = self._client = self._make_client()
                await client.connect()
            except AccordError as exc:
                self._fail(exc)
                raise InspectorError(f"{self.name} could not be connected: {self._error}", self._cure) from exc
            except BaseException:
                self._set_state("idle")
                raise
            if client.state == "lost":  # it ended right after the handshake
                raise InspectorError(f"{self.name} ended: {self._error}", self._cure)
            self._connections += 1
            self._connected_at = time.monotonic()
            self._set_state("connected")

    async def disconnect(self) -> None:
        """End the connection, and the process of the server."""
        async with self._lock:
            await self._end()
            self._set_state("idle")

    async def _end(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _make_client(self) -> Client:
        options: dict[str, Any] = {}
        for source in self._options:
            options |= source(self.name)
        target = self.target
        if isinstance(target, Remote) and "authorization" not in {name.lower() for name in target.headers or {}}:
            auth = target.auth if target.auth is not None else OAuth()
            # Only the authorization screen asks the user to log in.
            options["auth"] = msgspec.structs.replace(auth, interactive=False) if isinstance(auth, OAuth) else auth
        return Client(
            target,
            revisions=[self.only_revision] if self.only_revision else REVISIONS,
            limits=DEFAULT_LIMITS,
            on_stderr=self._on_stderr,
            on_state=self._on_state,
            cache=False,
            extensions=[EXTENSION],
            **options,
        )

    def _on_stderr(self, line: str) -> None:
        self.stderr.append(truncate(visible(line.expandtabs(4).rstrip()), _LINE_CHARACTERS))
        self._on_change()

    def _on_state(self, state: ConnectionState, error: AccordError | None) -> None:
        if state == "lost" and self.state in ("connecting", "connected"):
            if error is not None:
                self._describe_failure(error)
            self._set_state("lost")

    def _fail(self, error: AccordError) -> None:
        self._describe_failure(error)
        self._set_state("failed")

    def _describe_failure(self, error: AccordError) -> None:
        text = truncate(redact_beginning(str(error)), _LINE_CHARACTERS)
        self._error = "\n".join(map(log_line, text.splitlines()))  # the last lines may be those of stderr
        cure = truncate(log_line(getattr(error, "cure", "")), _LINE_CHARACTERS)
        self._cure = cure if cure and cure not in self._error else "see its diagnosis"

    def _set_state(self, state: InspectedState) -> None:
        self.state = state
        if state in ("connecting", "connected", "idle"):
            self._error = self._cure = ""
        if state == "connected":
            self._last = self._peer()
        self._on_change()

    def _peer(self) -> dict[str, Any]:
        client = self._client
        assert client is not None, "it is connected"
        info, capabilities = client.server_info, client.server_capabilities
        return {
            "revision": client.revision,
            "era": "handshake" if client.revision in HANDSHAKE else "per-request",
            "title": truncate(single_line(info.title or info.name), 200) if info else "",
            "version": truncate(single_line(info.version), 200) if info else "",
            "instructions": truncate(client.instructions or "", _TEXT_CHARACTERS),
            "capabilities_json": truncate(msgspec.json.encode(capabilities).decode(), _TEXT_CHARACTERS),
        }

    def describe(self) -> ServerDescription:
        """Return the server as the page shows it."""
        target = self.target
        transport: Any = (
            "process" if isinstance(target, Command) else "HTTP" if isinstance(target, Remote) else "memory"
        )
        peer = {"revision": "", "era": "", "title": "", "version": "", "instructions": "", "capabilities_json": ""}
        is_connected = self.state == "connected"
        return ServerDescription(
            name=self.name,
            target=truncate(redact(str(getattr(target, "name", target))), _LINE_CHARACTERS),
            origin=self.origin,
            file=self.file,
            transport=transport,
            state=self.state,
            error=self._error,
            cure=self._cure,
            needs_approval=self.needs_approval,
            only_revision=self.only_revision,
            connections=self._connections,
            connected_seconds=round(time.monotonic() - self._connected_at, 1) if is_connected else 0.0,
            **(peer | self._last),
        )
