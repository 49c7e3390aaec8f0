"""The blocking `Client`: the methods of `accord.Client`, each of which waits for its result.

An `accord.Client` on a background event loop implements the protocol. `_signature_of` and `_constructor_of` copy the
types of its arguments and results.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from accord.client.client import Client as AsyncClient
from accord.client.notifications import Notice
from accord.client.reconnecting import ConnectionState
from accord.client.request_methods import ProgressCallback
from accord.client.results import ToolResult
from accord.client.roots import RootsLike
from accord.errors import NotConnected
from accord.limits import Limits
from accord.messages.base import Meta
from accord.messages.capabilities import ServerCapabilities
from accord.messages.identity import Implementation
from accord.session.stats import Stats
from accord.sync.background_loop import BackgroundLoop
from accord.sync.streams import NoticeStream, Subscription
from accord.sync.tasks import TaskHandle

P = ParamSpec("P")
T = TypeVar("T")

_CLOSE_SECONDS = 8.0
"""The timeout for closing an unclosed client, which may have a server process to end."""


def _signature_of(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[[Callable[..., T]], Callable[Concatenate[Client, P], T]]:
    """Copy the name, signature and docstring of a method of `accord.Client` to the method that waits for it."""
    return wraps(method)


def _constructor_of(
    constructor: Callable[Concatenate[AsyncClient, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Client, P], None]]:
    return wraps(constructor, assigned=("__annotations__",))


class Client:
    """A connection to a Model Context Protocol server, for programs that block: `with Client(target) as client:`.

    Arguments, methods and results are those of `accord.Client`. Any thread may use the client, also one with a running
    event loop. Callbacks run in the client's own thread, where they must not call the client; functions that answer
    server requests (`elicitation`, `sampling`) may. Ctrl-C cancels the pending call. An unclosed client is closed when
    it is collected, or when the program ends.
    """

    @_constructor_of(AsyncClient.__init__)
    def __init__(self, *args: Any, **options: Any) -> None:
        """See `accord.Client`."""
        self._client = AsyncClient(*args, **options)
        self._background = BackgroundLoop("client")
        self._lock = threading.Lock()
        self._transitions = 0  # calls of connect and close in progress
        self._end = weakref.finalize(self, _close_unclosed, self._client, self._background)

    # --- lifetime ----------------------------------------------------------------------------------------------

    def connect(self) -> Client:
        """Open the connection, or reopen a lost one; do nothing when it is open.

        Raises `ConnectError`, `ConnectionLost`, and `NotConnected` when the client is closed meanwhile, or was opened
        before this process was forked.
        """
        with self._transition():
            self._background.start()
            self._background.run(self._client.connect())
        return self

    def close(self) -> None:
        """Close the connection and end a server that is a child process; bounded in time, from any thread."""
        with self._transition():
            if self._background.is_running:
                with suppress(NotConnected):  # another thread has closed it
                    self._background.run(self._client.close())

    @contextmanager
    def _transition(self) -> Iterator[None]:
        """Keep the thread; end it after the last transition unless a connection is open."""
        with self._lock:
            self._transitions += 1
        try:
            yield
        finally:
            with self._lock:
                self._transitions -= 1
                if not self._transitions and not _is_connected(self._client):
                    self._background.stop()

    def __enter__(self) -> Client:
        return self.connect()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- connection --------------------------------------------------------------------------------------------

    @property
    def limits(self) -> Limits:
        """Return the limits of this client."""
        return self._client.limits

    @property
    def state(self) -> ConnectionState:
        """Return the state of the connection, see `accord.Client.state`."""
        return self._client.state

    @property
    def revision(self) -> str:
        """Return the protocol revision in use: "2026-07-28". Raises `NotConnected`, as the other properties do."""
        return self._client.revision

    @property
    def server_info(self) -> Implementation | None:
        """Return the server's name and version, if it sent them. For display, never for decisions."""
        return self._client.server_info

    @property
    def server_capabilities(self) -> ServerCapabilities | None:
        """Return the capabilities that the server declares."""
        return self._client.server_capabilities

    @property
    def instructions(self) -> str | None:
        """Return the server's instructions for a model."""
        return self._client.instructions

    @property
    def stats(self) -> Stats:
        """Return the counters of this connection."""
        return self._client.stats

    # --- requests ----------------------------------------------------------------------------------------------

    @_signature_of(AsyncClient.ping)
    def ping(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.ping(*args, **options))

    @_signature_of(AsyncClient.list_tools)
    def list_tools(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.list_tools(*args, **options))

    @_signature_of(AsyncClient.list_resources)
    def list_resources(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.list_resources(*args, **options))

    @_signature_of(AsyncClient.list_resource_templates)
    def list_resource_templates(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.list_resource_templates(*args, **options))

    @_signature_of(AsyncClient.list_prompts)
    def list_prompts(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.list_prompts(*args, **options))

    @overload
    def call_tool(
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
    def call_tool(
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

    @wraps(AsyncClient.call_tool)
    def call_tool(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.call_tool(*args, **options))

    @wraps(AsyncClient.start_tool)
    def start_tool(self, *args: Any, **options: Any) -> TaskHandle:
        return TaskHandle(self._background, self._background.run(self._client.start_tool(*args, **options)), self)

    def task(self, id: str) -> TaskHandle:
        """Return the handle of a task that this client, or another process, has started."""
        return TaskHandle(self._background, self._client.task(id), self)

    @_signature_of(AsyncClient.read_resource)
    def read_resource(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.read_resource(*args, **options))

    @_signature_of(AsyncClient.get_prompt)
    def get_prompt(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.get_prompt(*args, **options))

    @_signature_of(AsyncClient.complete)
    def complete(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.complete(*args, **options))

    @_signature_of(AsyncClient.list_skills)
    def list_skills(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.list_skills(*args, **options))

    @_signature_of(AsyncClient.get_skill)
    def get_skill(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.get_skill(*args, **options))

    @_signature_of(AsyncClient.load_skill)
    def load_skill(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.load_skill(*args, **options))

    @_signature_of(AsyncClient.read_skill_file)
    def read_skill_file(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.read_skill_file(*args, **options))

    @_signature_of(AsyncClient.read_ui)
    def read_ui(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.read_ui(*args, **options))

    @_signature_of(AsyncClient.set_log_level)
    def set_log_level(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.set_log_level(*args, **options))

    def request(
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
        """Send a request, as `accord.Client.request` does; `_signature_of` would lose the type of `result`."""
        return self._background.run(
            self._client.request(
                method,
                params,
                result=result,
                meta=meta,
                on_progress=on_progress,
                timeout=timeout,
                total_timeout=total_timeout,
                repeatable=repeatable,
            )
        )

    @_signature_of(AsyncClient.notify)
    def notify(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.notify(*args, **options))

    # --- notifications -----------------------------------------------------------------------------------------

    def on(self, method: str, callback: Callable[[Notice], Any]) -> Callable[[], None]:
        """Call `callback(notice)`, sync or async, for each notification of `method`; the returned function removes it.

        Calls are made in order, in the client's thread. An exception in a callback is logged; when more than
        `Limits.notices` wait, the oldest is dropped.
        """
        return partial(self._background.call, self._background.call(self._client.on, method, callback))

    def notifications(self, *methods: str) -> NoticeStream:
        """Return a stream of the notifications of these methods, or all: `with client.notifications() as stream`."""
        return NoticeStream(self._background, self._client.notifications(*methods), self)

    def subscribe(
        self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False
    ) -> Subscription:
        """Return a subscription to changes of resources and of lists: `with client.subscribe(uri) as subscription`.

        Entering it raises `NotSupported` when the server grants nothing of it, `RequestTimeout`, `ConnectionLost` and
        errors of the server. It continues after a reconnect. Raises `LocalProtocolError` for an empty subscription.
        """
        source = self._client.subscribe(*uris, tools=tools, prompts=prompts, resources=resources)
        return Subscription(self._background, source, self)

    def set_roots(self, roots: RootsLike) -> None:
        """Change the roots, and notify the server where the revision allows it.

        Raises `NotSupported` for a client without `roots`, `LocalProtocolError` for a root that is no folder.
        """
        self._background.call(self._client.set_roots, roots)


def _is_connected(client: AsyncClient) -> bool:
    with suppress(NotConnected):
        return client.connection is not None
    return False


def _close_unclosed(client: AsyncClient, background: BackgroundLoop) -> None:
    """Close an unclosed client at the end of the program, or when it is collected, in any thread."""
    if background.is_current_thread:  # this thread cannot wait for itself
        threading.Thread(target=_close_unclosed, args=(client, background), daemon=True).start()
        return
    if background.is_running:
        with suppress(Exception):  # no caller could handle an error
            background.run(client.close(), _CLOSE_SECONDS)
    background.discard()
