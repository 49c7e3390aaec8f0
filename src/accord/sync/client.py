"""The blocking `Client`: the verbs of the async one, each waited for.

What is said to the server is said by an `accord.Client`, on a loop in the background; nothing of the protocol is here.
Types of arguments and results are those of its methods, taken over by `_signature_of` and `_constructor_of`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from accord.client.client import Client as AsyncClient
from accord.client.notifications import Notice
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

P = ParamSpec("P")
T = TypeVar("T")

_CLOSE_SECONDS = 8.0
"""Seconds that closing a client which nobody closed may take: it may have a server process to end."""


def _signature_of(
    verb: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[[Callable[..., T]], Callable[Concatenate[Client, P], T]]:
    """Name, parameters, result and text of a verb of `accord.Client`, for the method that waits for it."""
    return wraps(verb)


def _constructor_of(
    made: Callable[Concatenate[AsyncClient, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Client, P], None]]:
    return wraps(made, assigned=("__annotations__",))


class Client:
    """A connection to a Model Context Protocol server, for programs that block: `with Client(target) as client:`.

    Arguments, verbs and results are those of `accord.Client`. Any thread may use it, one with a running event loop
    too. Callbacks are called in its own thread, where they may not call the client; functions that answer the server
    (`elicitation`, `sampling`) may. Ctrl-C cancels the call that waits. A client that nobody closes is closed when it
    is collected, or the program ends.
    """

    @_constructor_of(AsyncClient.__init__)
    def __init__(self, *args: Any, **options: Any) -> None:
        """See `accord.Client`."""
        self._client = AsyncClient(*args, **options)
        self._background = BackgroundLoop("client")
        self._lock = threading.Lock()
        self._connecting = 0
        self._end = weakref.finalize(self, _close_unclosed, self._client, self._background)

    # --- lifetime ----------------------------------------------------------------------------------------------

    def connect(self) -> Client:
        """Open the connection, also when it has died; when it is open, do nothing.

        Raises `ConnectError`, `ConnectionLost`, and `NotConnected` when the client is closed meanwhile.
        """
        with self._lock:
            self._connecting += 1
            self._background.start()
        try:
            self._background.run(self._client.connect())
        finally:
            with self._lock:
                self._connecting -= 1
                self._stop_if_idle()
        return self

    def close(self) -> None:
        """End the connection and, if it is a child process, the server; bounded in time, from any thread."""
        if self._background.is_running:
            with suppress(NotConnected):  # another thread has closed it
                self._background.run(self._client.close())
        with self._lock:
            self._stop_if_idle()

    def _stop_if_idle(self) -> None:
        """End the thread where nobody is connected or connects."""
        if not self._connecting and not _is_connected(self._client):
            self._background.stop()

    def __enter__(self) -> Client:
        return self.connect()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- who is there ------------------------------------------------------------------------------------------

    @property
    def limits(self) -> Limits:
        """The bounds that protect it."""
        return self._client.limits

    @property
    def revision(self) -> str:
        """The revision in use: "2026-07-28". Raises `NotConnected`, as the others here."""
        return self._client.revision

    @property
    def server_info(self) -> Implementation | None:
        """What the server says it is, if it says so. For display, never for decisions."""
        return self._client.server_info

    @property
    def server_capabilities(self) -> ServerCapabilities | None:
        """What the server says it offers."""
        return self._client.server_capabilities

    @property
    def instructions(self) -> str | None:
        """How the server wants to be used, for a model to read."""
        return self._client.instructions

    @property
    def stats(self) -> Stats:
        """Counters of this connection."""
        return self._client.stats

    # --- verbs -------------------------------------------------------------------------------------------------

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

    @_signature_of(AsyncClient.read_resource)
    def read_resource(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.read_resource(*args, **options))

    @_signature_of(AsyncClient.get_prompt)
    def get_prompt(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.get_prompt(*args, **options))

    @_signature_of(AsyncClient.complete)
    def complete(self, *args: Any, **options: Any) -> Any:
        return self._background.run(self._client.complete(*args, **options))

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
        """As `accord.Client.request`; written out, as the type that it takes is not carried over by `_signature_of`."""
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

    # --- what the server tells, and may know -------------------------------------------------------------------

    def on(self, method: str, callback: Callable[[Notice], Any]) -> Callable[[], None]:
        """Call `callback(notice)`, plain or async, for each notification of `method`; the returned function ends that.

        Calls are made in order, in the client's thread. What a callback raises is logged; beyond `Limits.notices` that
        wait, the oldest is dropped.
        """
        return partial(self._background.call, self._background.call(self._client.on, method, callback))

    def notifications(self, *methods: str) -> NoticeStream:
        """Notifications of these methods, or all, to iterate over: `with client.notifications() as stream`."""
        return NoticeStream(self._background, self._client.notifications(*methods), self)

    def subscribe(
        self, *uris: str, tools: bool = False, prompts: bool = False, resources: bool = False
    ) -> Subscription:
        """Changes of resources and of lists, to iterate over: `with client.subscribe(uri) as subscription`.

        Entering it raises `NotSupported` when the server grants nothing of it, `RequestTimeout`, `ConnectionLost` and
        what the server answers. It outlives a reconnect. Raises `LocalProtocolError` when nothing is asked for.
        """
        source = self._client.subscribe(*uris, tools=tools, prompts=prompts, resources=resources)
        return Subscription(self._background, source, self)

    def set_roots(self, roots: RootsLike) -> None:
        """Let the server work in other folders from now on, and tell it so where the revision has a way to.

        Raises `NotSupported` for a client that was made without `roots`, `LocalProtocolError` for what is no folder.
        """
        self._background.call(self._client.set_roots, roots)


def _is_connected(client: AsyncClient) -> bool:
    with suppress(NotConnected):
        return client.connection is not None
    return False


def _close_unclosed(client: AsyncClient, background: BackgroundLoop) -> None:
    """Close what nobody has closed: at the end of the program, or when the client is collected, in any thread."""
    if background.is_current_thread:  # which cannot wait for itself
        threading.Thread(target=_close_unclosed, args=(client, background), daemon=True).start()
        return
    if background.is_running:
        with suppress(Exception):  # there is nobody to tell
            background.run(client.close(), _CLOSE_SECONDS)
    background.discard()
