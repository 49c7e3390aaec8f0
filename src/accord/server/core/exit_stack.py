"""A faster `AsyncExitStack` for the context managers of a call, which takes five times as long for one generator and a
call that succeeds.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from typing import Any


class FastExitStack:
    """A stack of entered context managers."""

    __slots__ = ("_managers",)

    def __init__(self) -> None:
        self._managers: list[AbstractContextManager[Any] | AbstractAsyncContextManager[Any]] = []

    def enter(self, manager: AbstractContextManager[Any]) -> Any:
        """Enter a context manager, and return its value."""
        value = manager.__enter__()
        self._managers.append(manager)
        return value

    async def enter_async(self, manager: AbstractAsyncContextManager[Any]) -> Any:
        """Enter an asynchronous context manager, and return its value."""
        value = await manager.__aenter__()
        self._managers.append(manager)
        return value

    async def close(self) -> None:
        """Exit all after a call that succeeded, the last first. An exception that one raises is passed to the remaining
        ones, and raised.
        """
        managers = self._managers
        while managers:
            manager = managers.pop()
            try:
                if isinstance(manager, AbstractContextManager):
                    manager.__exit__(None, None, None)
                else:
                    await manager.__aexit__(None, None, None)
            except BaseException as exc:
                await self.fail(exc)
                raise

    async def fail(self, exc: BaseException) -> None:
        """Exit all after a call that raised `exc`. Raises `exc`, or the exception that replaces it; returns if one of
        them suppresses it.
        """
        async with AsyncExitStack() as stack:
            for manager in self._managers:
                if isinstance(manager, AbstractContextManager):
                    stack.push(manager)
                else:
                    stack.push_async_exit(manager)
            self._managers = []
            raise exc
