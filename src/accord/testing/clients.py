"""The clients of one test: of the kind that it needs, closed with it, bounded in time."""

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


class Clients:
    """What a test has opened. `is_async`: it is an `async def`; `seconds` is what it may take, None for any."""

    def __init__(self, test: str, is_async: bool, seconds: float | None) -> None:
        self.is_async: bool = is_async
        self._test = test
        self._seconds = seconds
        self._made: list[tuple[AnyClient, object]] = []
        self._wanted: list[AsyncClient] = []
        self._timer: threading.Timer | None = None
        self._is_late = False

    def make(self, target: Any, options: Mapping[str, Any]) -> AnyClient:
        """A client that is closed at the end of the test, if it is open then."""
        client = (AsyncClient if self.is_async else Client)(target, **options)
        self._made.append((client, target))
        return client

    def open(self, client: AnyClient) -> None:
        """Have it connected while the test runs: now, or where it is async as soon as there is a loop."""
        if isinstance(client, Client):
            client.connect()
        else:
            self._wanted.append(client)

    # --- a test that is plain ----------------------------------------------------------------------------------

    def __enter__(self) -> Clients:
        if self._seconds is not None and not self.is_async:
            self._timer = threading.Timer(self._seconds, self._end_late)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._end()
        if self._is_late:
            raise self._late("its clients were closed, and what waited for them failed")

    def _end_late(self) -> None:
        """The time is over: whatever waits for one of the clients fails."""
        self._is_late = True
        self._end()

    def _end(self) -> None:
        with ExitStack() as stack:
            for client, target in self._made:
                stack.callback(self._close, client, target)

    def _close(self, client: AnyClient, target: object) -> None:
        if isinstance(client, Client):
            with self._naming(target):
                client.close()

    # --- a test that is `async def` ----------------------------------------------------------------------------

    def around(self, test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        """The test, with its clients opened before and closed afterwards, all on the loop that runs it."""

        @wraps(test)
        async def run(*args: Any, **fixtures: Any) -> None:
            _check_loop()
            limit = asyncio.timeout(self._seconds)
            try:
                async with limit:
                    for client in self._wanted:
                        await client.connect()
                    await test(*args, **fixtures)
            except TimeoutError as exc:
                if not limit.expired():
                    raise
                raise self._late("above is where it waited") from exc
            finally:
                await self._end_async()

        return run

    async def _end_async(self) -> None:
        async with AsyncExitStack() as stack:
            for client, target in self._made:
                stack.push_async_callback(self._close_async, client, target)

    async def _close_async(self, client: AnyClient, target: object) -> None:
        if isinstance(client, AsyncClient):
            with self._naming(target):
                await client.close()

    # --- what went wrong ---------------------------------------------------------------------------------------

    def _late(self, more: str) -> TimeoutError:
        return TimeoutError(f"{self._test} took longer than {self._seconds:g} s (accord_timeout); {more}")

    @contextmanager
    def _naming(self, target: object) -> Iterator[None]:
        try:
            yield
        except Exception as exc:
            exc.add_note(f"while the client of {target} was closed, after {self._test}")
            raise


def _check_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "accord's clients run on asyncio, and this test does not; with anyio, have `anyio_backend` give 'asyncio'"
        ) from None
