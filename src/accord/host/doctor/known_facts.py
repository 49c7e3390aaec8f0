"""The facts that a diagnosis knows of a server so far, and its one attempt to connect.

The attempt is that of an ordinary client, with its traffic observed: what `accord doctor` finds is what `Client` does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from accord.auth.oauth import OAuth
from accord.client.client import Client
from accord.client.target import ClientAuth, Command, Remote
from accord.errors import AccordError, RequestTimeout
from accord.host.host_files import HostEntry, HostFile
from accord.host.known_hosts import MCP_SERVERS, FileFormat
from accord.limits import ClientLimits, Limits
from accord.messages.tools import Tool
from accord.transport.http.redaction import SecretRedactor
from accord.transport.recording import SessionRecorder
from accord.wire.session_file import ConnectedEntry, Entry, HTTPEntry, MessageEntry, SessionHeader, StderrEntry

SECONDS = 30.0
"""Time limit of a step, in seconds."""

_LINES = 20
_RESPONSES = 10
_EXCERPT = 4_000

MayStart = Callable[[str, list[str]], Awaitable[bool]]
"""Returns whether a server of this name, which the lines describe, may be started or contacted."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A server to diagnose: a target, or a server in a file."""

    name: str
    """The target, or the name in the file; empty if the file cannot be read."""
    path: Path | None = None
    file: HostFile | None = None
    """The content of the file, if it was read before: it may have a thousand servers."""
    form: FileFormat = MCP_SERVERS
    host: str = ""
    project: Path | None = None
    target: Command | Remote | None = None
    """The target, unless it is in a file."""
    may_start: MayStart | None = None
    """Asks before anything starts; None if the user named the server."""
    adjust: Callable[[Command | Remote], Command | Remote] = lambda target: target
    """Adds the options of the user."""
    seconds: float = SECONDS


class KnownFacts:
    """The facts known of a server; each step adds to them."""

    def __init__(self, subject: Subject) -> None:
        self.subject: Subject = subject
        self.file: HostFile | None = None
        self.entry: HostEntry | None = None
        self.target: Command | Remote | None = None
        self.tools: list[Tool] = []
        self.through_proxy: bool = False
        self.addresses: list[str] = []
        """The addresses of the server, of which the first accepts connections once that was checked."""
        self.port: int = 0
        self.attempt: ConnectionAttempt | None = None
        self.redactor: SecretRedactor = SecretRedactor()
        """The secrets of the entry."""
        self.user_secrets: SecretRedactor = SecretRedactor()
        """The secrets of the entry that are in the environment or the keyring, and not in the file."""

    async def connected(self) -> ConnectionAttempt:
        """Return the attempt to connect, which is made once."""
        if self.attempt is None:
            assert self.target is not None, "the steps of the configuration have passed"
            self.attempt = ConnectionAttempt(self.target, self.subject.seconds)
            await self.attempt.connect()
        return self.attempt

    async def close(self) -> None:
        """End the connection, and the process of the server."""
        if self.attempt is not None:
            await self.attempt.client.close()


class ConnectionAttempt:
    """One connection of a client, and what was observed of it."""

    def __init__(self, target: Command | Remote, seconds: float) -> None:
        self.error: AccordError | None = None
        self.stderr: deque[str] = deque(maxlen=_LINES)
        """The last lines of stderr."""
        self.noise: deque[str] = deque(maxlen=_LINES)
        """Lines on stdout that are no messages."""
        self.responses: deque[HTTPEntry] = deque(maxlen=_RESPONSES)
        """The last HTTP responses."""
        self._seconds = seconds
        self.client: Client = Client(
            target,
            auth=_login(target),
            timeout=seconds,
            total_timeout=seconds,
            limits=Limits(client=ClientLimits(connect_seconds=seconds, probe_seconds=min(5, seconds / 3))),
            record=SessionRecorder(self),
        )

    async def connect(self) -> None:
        """Connect, and store the error if that fails."""
        try:
            await asyncio.wait_for(self.client.connect(), 2 * self._seconds)
        except AccordError as exc:
            self.error = exc
        except TimeoutError as exc:
            self.error = AccordError(f"no connection within {2 * self._seconds:g} s")
            self.error.__cause__ = exc

    def causes(self) -> Iterator[BaseException]:
        """Yield the error and its causes."""
        cause: BaseException | None = self.error
        while cause is not None:
            yield cause
            cause = cause.__cause__

    @property
    def timed_out(self) -> bool:
        """Return whether the server did not answer in time."""
        return any(map(is_timeout, self.causes()))

    def begin(self, header: SessionHeader) -> None:
        """See `SessionSink.begin`."""

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """See `SessionSink.add_secrets`."""

    def write(self, entry: Entry) -> None:
        """Receive what the connection sends and receives; see `EntrySink.write`."""
        match entry:
            case ConnectedEntry():  # a server that ends at the first request is started a second time
                self.stderr.clear()
                self.noise.clear()
            case StderrEntry():
                self.stderr.append(entry.text[:_EXCERPT])
            case HTTPEntry(direction="received"):
                self.responses.append(entry)
            case MessageEntry(direction="received", exchange=0, message=msgspec.UNSET):
                binary = "" if entry.base64 is None else f"{len(entry.base64):,} bytes that are no text"
                self.noise.append((entry.text or binary)[:_EXCERPT])


def is_timeout(error: BaseException) -> bool:
    """Return whether an error is a timeout; that is an `OSError` too."""
    return isinstance(error, RequestTimeout | TimeoutError)


def _login(target: Command | Remote) -> ClientAuth | None:
    """Return the stored login of a URL, unless its headers already authenticate; the user is not asked."""
    if not isinstance(target, Remote) or any(name.lower() == "authorization" for name in target.headers or {}):
        return None
    if target.auth is not None and not isinstance(target.auth, OAuth):
        return target.auth
    return msgspec.structs.replace(target.auth or OAuth(), interactive=False)
