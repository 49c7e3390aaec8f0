"""`Client`: a connection to any server."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import sha256
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from accord.client.cache import Cache, ClientCache
from accord.client.connect import Connector, RecordTarget
from accord.client.elicitation import Mode
from accord.client.input_handlers import InputHandlers
from accord.client.multi_round_trip import InputResponder
from accord.client.notifications import Notice, NoticeStream, NotificationRouter
from accord.client.reconnecting import ConnectionState, ReconnectingConnection
from accord.client.request_methods import RequestMethods
from accord.client.requests import Requests
from accord.client.results import ResultReader
from accord.client.retry import Reconnect
from accord.client.roots import RootsLike
from accord.client.subscription import Subscription, subscription_filter
from accord.client.subscriptions import SubscriptionManager
from accord.client.target import ClientAuth, Command, InProcessServer, PrincipalLike, Remote, Target, identity, parse
from accord.errors import AccordError, ConnectionLost, DeclarationError, TargetError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.base import JSONObject, LoggingLevel, Meta
from accord.messages.capabilities import ServerCapabilities
from accord.messages.extension import Extension, results_of, rows_of, settings_of
from accord.messages.identity import Implementation
from accord.messages.methods import table
from accord.messages.notifications import LoggingMessageParams
from accord.messages.resources import ResourceUpdatedParams
from accord.messages.revision import REVISIONS
from accord.messages.skills import SKILLS
from accord.messages.task_extension import TASKS
from accord.session.events import NotificationReceived
from accord.session.negotiation import check_revisions
from accord.session.peer_info import PeerInfo
from accord.session.stats import Stats
from accord.transport.base import Transport
from accord.transport.connection import Connection
from accord.transport.http.settings import HTTPSettings
from accord.transport.request_sender import size_of

if TYPE_CHECKING:
    from accord.client.instrumentation import ClientInstrumentation
    from accord.telemetry.base import Telemetry

_PAGE_COMPLETE = "notifications/elicitation/complete"
_ROOTS_CHANGED = "notifications/roots/list_changed"
_TOOLS_CHANGED = "notifications/tools/list_changed"

_INFO = Implementation(name="accord", version="0.1.0")


class Client(RequestMethods):
    """A connection to a Model Context Protocol server, over any transport and in any revision.

    `target`: a URL, a command line or list, `FILE.py[:server]`, an `mcpServers` entry, a `Server`, or a transport (see
    `accord.client.target`). Use it as `async with Client(target) as client:`, or call `connect()` and `close()`, from
    any task.

    `timeout` (seconds) bounds the time without a message before a request fails, and progress resets it;
    `total_timeout` bounds the whole request. `strict` turns warnings about results that violate their own schema into
    errors. `on_stderr` receives the lines that a child process writes to stderr, and `on_state(state, error)` each
    change of `state`, with the error where one is the cause. `record` is the path of a session file, which is written
    without secrets, or an `accord.testing.Recording`; `connect` raises `ConnectError` if the file cannot be written.

    The handlers decide which capabilities the client declares. `elicitation(params)` asks the user and returns the
    content of the form (a mapping, a record, or a plain value for a form of one field), `None` to decline, or an
    `ElicitResult`; `elicitation_modes` are the modes that it supports: "form", "url"; `on_elicitation_complete(id)` is
    called when the server reports that the user has finished a URL elicitation. `sampling(params)` asks the model and
    returns a `CreateMessageResult`, a text, or `None` to decline; `sampling_tools` declares that it passes tools to
    the model. `roots` are paths, `file:` URIs, or a function that returns them. Each handler may be `async def` or, in
    a thread of its own, plain, and may take a `ClientContext` as well. The time of handlers, at most
    `Limits.answer_seconds`, counts neither for `timeout` nor for `total_timeout`, in any revision.

    `on_log(message)` receives the log messages of the server, from `log_level` on ("info" if there is an `on_log`),
    and `on_notification(notice)` all notifications. With `cache`, results are stored as long as the server allows;
    clients that share one `Cache` share public results. With `reconnect=Reconnect()`, a server that dies is started
    again; `trusted` means that the client trusts the annotations of its tools, so that a call of a read-only or
    idempotent tool may be sent again. For a server at a URL, `auth` is a bearer token, or how to log in: `OAuth()`;
    `http` has headers, a proxy, TLS settings. `principal` is for a `Server` in this process, to test access control:
    the server checks the scopes of that `Principal`, as over HTTP; without one, the client has no scopes.

    `extensions` and `experimental` are declared as capabilities; `request`, `notify` and `on` send and receive the
    messages of extensions. `telemetry` observes the requests: `OpenTelemetry()`.
    """

    def __init__(
        self,
        target: Target,
        *,
        info: Implementation = _INFO,
        revisions: Sequence[str] = REVISIONS,
        timeout: float | None = None,
        total_timeout: float | None = None,
        strict: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        on_stderr: Callable[[str], None] | None = None,
        on_state: Callable[[ConnectionState, AccordError | None], None] | None = None,
        record: RecordTarget | None = None,
        elicitation: Callable[..., Any] | None = None,
        elicitation_modes: Sequence[Mode] = ("form",),
        on_elicitation_complete: Callable[[str], Any] | None = None,
        sampling: Callable[..., Any] | None = None,
        sampling_tools: bool = False,
        roots: RootsLike | None = None,
        on_log: Callable[[LoggingMessageParams], Any] | None = None,
        on_notification: Callable[[Notice], Any] | None = None,
        log_level: LoggingLevel | None = None,
        cache: bool | Cache = True,
        reconnect: Reconnect | None = None,
        trusted: bool = False,
        extensions: Sequence[Extension] = (),
        experimental: Mapping[str, JSONObject] | None = None,
        http: HTTPSettings | None = None,
        auth: str | ClientAuth | None = None,
        principal: PrincipalLike | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        parsed = parse(target)
        all_extensions = (*extensions, *(each for each in (SKILLS, TASKS) if each not in extensions))
        if auth is None and isinstance(parsed, Remote):
            auth = parsed.auth
        if reconnect is not None and not isinstance(reconnect, Reconnect):
            raise DeclarationError(f"reconnect={reconnect!r:.200} is no Reconnect: leave it out, or give Reconnect()")
        if reconnect is not None and not isinstance(parsed, Command | Remote | InProcessServer):
            raise TargetError("a transport cannot be opened twice; with reconnect=, give a command, a URL or a Server")
        name = str(getattr(parsed, "name", parsed))
        self.limits = limits
        self._input_handlers = InputHandlers(
            name,
            limits,
            elicitation=elicitation,
            elicitation_modes=elicitation_modes,
            on_elicitation_complete=on_elicitation_complete,
            sampling=sampling,
            sampling_tools=sampling_tools,
            roots=roots,
        )
        capabilities = msgspec.structs.replace(
            self._input_handlers.capabilities,
            extensions=settings_of([each for each in all_extensions if each.declared_by == "both"]),
            experimental=dict(experimental) if experimental else None,
        )
        instrumentation = None if telemetry is None else _instrument(telemetry, parsed)
        connector = Connector(
            parsed,
            PeerInfo(info, capabilities),
            check_revisions(revisions),
            limits,
            self._input_handlers.handle
            if instrumentation is None
            else instrumentation.handler(self._input_handlers.handle),
            on_stderr,
            record,
            on_notification=self._on_notification,
            methods=rows_of(all_extensions),
            http=http,
            auth=auth,
            principal=principal,
        )
        self._connection = ReconnectingConnection(
            connector,
            reconnect,
            prepare=self._prepare,
            ended=self._on_connection_ended,
            prepare_seconds=limits.client.connect_seconds,
        )
        self._connection.on_state = on_state
        self._cache = ClientCache(
            cache if isinstance(cache, Cache) else Cache(limits, off=not cache),
            _identity(parsed, http, auth, principal),
            stores_private=http is None or not callable(http.headers),
        )
        connector.authorization.on_login = self._cache.clear
        responder = InputResponder(self._input_handlers, limits)
        requests = (Requests if instrumentation is None else instrumentation.requests)(
            self._connection,
            ResultReader(name, strict=strict, kinds=results_of(extensions)),
            responder,
            self._cache,
            limits,
            timeout if timeout is not None else limits.client.request_seconds,
            total_timeout if total_timeout is not None else limits.client.total_seconds,
            log_level or ("info" if on_log is not None else None),
        )
        super().__init__(requests, responder, name, limits, strict=strict, trusted=trusted)
        self._notifications = NotificationRouter(limits)
        self._subscriptions = SubscriptionManager(
            self._connection.ready,
            self._notifications,
            requests.timeout,
            self._invalidate,
            connector.authorization.after_login,
        )
        self._notifications.on(
            _PAGE_COMPLETE, lambda notice: self._input_handlers.on_elicitation_complete(notice.params)
        )
        if on_log is not None:
            self._notifications.on("notifications/message", lambda notice: on_log(notice.params))
        if on_notification is not None:
            self._notifications.on(None, on_notification)

    # --- lifetime ----------------------------------------------------------------------------------------------

    async def connect(self) -> Client:
        """Open the connection, or reopen a lost one; do nothing when it is open.

        Raises `ConnectError`, `ConnectionLost`, and `NotConnected` when the client is closed meanwhile.
        """
        await self._connection.open()
        return self

    async def close(self) -> None:
        """Close the connection and end a server that is a child process; bounded in time, from any task."""
        await self._connection.close()
        await self._notifications.finish_callbacks()

    async def _prepare(self, connection: Connection, again: bool) -> None:
        """Restore the state of the client on a new connection, and discard cached server state."""
        if again:
            self._invalidate()
        self._mirrored_tools.use(connection)
        await self._requests.use(connection)
        await self._subscriptions.use(connection)
        self._notifications.is_live = True

    def _on_connection_ended(self, error: ConnectionLost | None) -> None:
        self._subscriptions.close(error)
        self._notifications.end(error)

    async def __aenter__(self) -> Client:
        return await self.connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- connection --------------------------------------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        """Return the connection. Raises `NotConnected`."""
        return self._connection.connection

    @property
    def state(self) -> ConnectionState:
        """Return the state of the connection: "closed", "connecting", "connected", "reconnecting", or "lost" for good
        unless `connect` is called.
        """
        return self._connection.state

    @property
    def revision(self) -> str:
        """Return the protocol revision in use: "2026-07-28"."""
        return self.connection.revision

    @property
    def server_info(self) -> Implementation | None:
        """Return the server's name and version, if it sent them. For display, never for decisions."""
        peer = self.connection.session.peer_info
        return peer.info if peer is not None else None

    @property
    def server_capabilities(self) -> ServerCapabilities | None:
        """Return the capabilities that the server declares."""
        peer = self.connection.session.peer_info
        return peer.capabilities if peer is not None else None

    @property
    def instructions(self) -> str | None:
        """Return the server's instructions for a model."""
        peer = self.connection.session.peer_info
        return peer.instructions if peer is not None else None

    @property
    def stats(self) -> Stats:
        """Return the counters of this connection."""
        return self.connection.stats

    async def ping(self) -> None:
        """Check that the server responds: by `ping`, or by `server/discover` in revisions without a ping."""
        connection = await self._connection.ready(self._requests.timeout)
        await self._requests.raw("ping" if connection.session.rules.handshake else "server/discover")

    # --- notifications -----------------------------------------------------------------------------------------

    async def set_log_level(self, level: LoggingLevel) -> None:
        """Make the server send log messages from `level` on, also on later connections.

        Raises `NotSupported` through 2025-11-25 when the server has no log messages, `LocalProtocolError` for an
        invalid level.
        """
        await self._requests.set_level(level)

    def on(self, method: str, callback: Callable[[Notice], Any]) -> Callable[[], None]:
        """Call `callback(notice)`, sync or async, for each notification of `method`; the returned function removes it.

        Calls are made in order. An exception in a callback is logged; when more than `Limits.notices` wait, the oldest
        is dropped.
        """
        return self._notifications.on(method, callback)

    def notifications(self, *methods: str) -> NoticeStream:
        """Return a stream of these notifications, or all: `async with client.notifications() as stream`."""
        return NoticeStream(self._notifications, frozenset(methods))

    def subscribe(
        self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False
    ) -> Subscription:
        """Return a subscription to resources and lists: `async with client.subscribe(uri) as subscription`.

        Entering it raises `NotSupported` when the server grants nothing of it, `RequestTimeout`, `ConnectionLost` and
        errors of the server. It continues after a reconnect. Raises `LocalProtocolError` for an empty subscription.
        """
        return Subscription(
            self._subscriptions, subscription_filter(uris, tools, prompts, resources), self.limits.notices
        )

    def _on_notification(self, event: NotificationReceived) -> None:
        name = event.method.name
        self._cache.on_notification(name)
        if name == _TOOLS_CHANGED:
            self._tools.invalidate()
        notice = self._notifications.read(event)
        if notice is not None:
            if isinstance(notice.params, ResourceUpdatedParams):
                self._cache.invalidate_resource(notice.params.uri)
            self._subscriptions.on_notification(notice)
            self._notifications.dispatch(notice, size_of(event))

    # --- roots and extensions ----------------------------------------------------------------------------------

    def set_roots(self, roots: RootsLike) -> None:
        """Change the roots, and notify the server where the revision allows it.

        Raises `NotSupported` for a client without `roots`, `LocalProtocolError` for a root that is no folder.
        """
        self._input_handlers.set_roots(roots)
        if self._connection.is_open and _ROOTS_CHANGED in table(self.revision, "client"):
            self.connection.notify(_ROOTS_CHANGED)

    async def notify(self, method: str, params: Any = None, *, meta: Meta | None = None) -> None:
        """Send a notification of the protocol or an extension. Raises `NotSupported`, `NotConnected`."""
        connection = await self._connection.ready(self._requests.timeout)
        connection.notify(method, params, meta=meta)


def _identity(
    target: Command | Remote | InProcessServer | Transport,
    http: HTTPSettings | None,
    auth: str | ClientAuth | None,
    principal: PrincipalLike | None,
) -> Hashable:
    """Return the key under which clients share results: the server, and who they are. Clients with a login share none:
    their user may change.
    """
    server = identity(target, http)
    if auth is not None:
        return server, sha256(auth.encode()).digest() if isinstance(auth, str) else object()
    return server if principal is None else (server, principal.id, principal.scopes)


def _instrument(telemetry: Telemetry, target: Command | Remote | InProcessServer | Transport) -> ClientInstrumentation:
    from accord.client.instrumentation import ClientInstrumentation

    return ClientInstrumentation(telemetry, target)
