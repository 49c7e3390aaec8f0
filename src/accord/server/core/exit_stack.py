"""What a call has entered, left when it is over: as `AsyncExitStack` does it, which takes five times as long for one
generator and a call that went well.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from typing import Any


class FastExitStack:
    """Context managers in the order in which they were entered."""

    __slots__ = ("_managers",)

    def __init__(self) -> None:
        self._managers: list[AbstractContextManager[Any] | AbstractAsyncContextManager[Any]] = []

    def enter(self, manager: AbstractContextManager[Any]) -> Any:
        """Enter one, to be left."""
        value = manager.__enter__()
        self._managers.append(manager)
        return value

    async def enter_async(self, manager: AbstractAsyncContextManager[Any]) -> Any:
        """Likewise."""
        value = await manager.__aenter__()
        self._managers.append(manager)
        return value

    async def close(self) -> None:
        """Leave all, after a call that went well. Raises what one of them raises, which those before it get to see."""
        held = self._managers
        while held:
            manager = held.pop()
            try:
                if isinstance(manager, AbstractContextManager):
                    manager.__exit__(None, None, None)
                else:
                    await manager.__aexit__(None, None, None)
            except BaseException as exc:
                await self.fail(exc)
                raise

    async def fail(self, exc: BaseException) -> None:
        """Leave all, after a call that raised. Raises `exc`, or what one of them makes of it; returns where one of them
        keeps it to itself.
        """
        async with AsyncExitStack() as stack:
            for manager in self._managers:
                if isinstance(manager, AbstractContextManager):
                    stack.push(manager)
                else:
                    stack.push_async_exit(manager)
            self._managers = []
            raise exc
