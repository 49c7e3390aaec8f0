"""The clients of one test: sync or async as the test needs, closed at its end, with a timeout."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import wraps
from types import TracebackType
from typing import Any

from accord.client.client import Client as AsyncClient
from accord.sync.client import Client

AnyClient = AsyncClient | Client


class ClientFixture:
    """The clients of one test. `is_async`: the test is an `async def`; `seconds` is its timeout, None for no limit."""

    def __init__(self, test: str, is_async: bool, seconds: float | None) -> None:
        self.is_async: bool = is_async
        self._test = test
        self._seconds = seconds
        self._clients: list[tuple[AnyClient, object]] = []
        self._to_connect: list[AsyncClient] = []
        self._timer: threading.Timer | None = None
        self._timed_out = False

    def make(self, target: Any, options: Mapping[str, Any]) -> AnyClient:
        """Return a client that is closed at the end of the test if it is still open."""
        client = (AsyncClient if self.is_async else Client)(target, **options)
        self._clients.append((client, target))
        return client

    def open(self, client: AnyClient) -> None:
        """Connect a client for the test: at once, or, if it is async, when the event loop runs."""
        if isinstance(client, Client):
            client.connect()
        else:
            self._to_connect.append(client)

    # --- sync tests --------------------------------------------------------------------------------------------

    def __enter__(self) -> ClientFixture:
        if self._seconds is not None and not self.is_async:
            self._timer = threading.Timer(self._seconds, self._on_timeout)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._close_all()
        if self._timed_out:
            raise self._timeout_error("its clients were closed, and pending calls failed")

    def _on_timeout(self) -> None:
        """Close the clients, so that pending calls fail."""
        self._timed_out = True
        self._close_all()

    def _close_all(self) -> None:
        with ExitStack() as stack:
            for client, target in self._clients:
                stack.callback(self._close, client, target)

    def _close(self, client: AnyClient, target: object) -> None:
        if isinstance(client, Client):
            with self._with_note(target):
                client.close()

    # --- async tests -------------------------------------------------------------------------------------------

    def around(self, test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        """Return the test with its clients connected before and closed afterwards, on the event loop that runs it."""

        @wraps(test)
        async def run(*args: Any, **fixtures: Any) -> None:
            _check_loop()
            limit = asyncio.timeout(self._seconds)
            try:
                async with limit:
                    for client in self._to_connect:
                        await client.connect()
                    await test(*args, **fixtures)
            except TimeoutError as exc:
                if not limit.expired():
                    raise
                raise self._timeout_error("the traceback above shows where it waited") from exc
            finally:
                await self._close_all_async()

        return run

    async def _close_all_async(self) -> None:
        async with AsyncExitStack() as stack:
            for client, target in self._clients:
                stack.push_async_callback(self._close_async, client, target)

    async def _close_async(self, client: AnyClient, target: object) -> None:
        if isinstance(client, AsyncClient):
            with self._with_note(target):
                await client.close()

    # --- errors ------------------------------------------------------------------------------------------------

    def _timeout_error(self, detail: str) -> TimeoutError:
        return TimeoutError(f"{self._test} took longer than {self._seconds:g} s (accord_timeout); {detail}")

    @contextmanager
    def _with_note(self, target: object) -> Iterator[None]:
        try:
            yield
        except Exception as exc:
            exc.add_note(f"raised while the client of {target} was closed after {self._test}")
            raise


def _check_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "accord's clients need asyncio, but this test runs on another event loop; with anyio, return 'asyncio' "
            "from the fixture `anyio_backend`"
        ) from None
