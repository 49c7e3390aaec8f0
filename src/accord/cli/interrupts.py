"""Ctrl-C in commands that go on after it: it cancels the newest piece of work, and only that.

with Interrupts() as interrupts:                # outside of all work, Ctrl-C cancels the task of the `with` block
    answer = await interrupts.run(question())   # Ctrl-C cancels `question`, and raises `Interrupted` here
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from accord.cli.failures import INTERRUPTED

Result = TypeVar("Result")

_ENDS = {signal.SIGTERM: 143, **({signal.SIGHUP: 129} if hasattr(signal, "SIGHUP") else {})}
"""The signals that end a command, of which SIGHUP says that its terminal was closed, and its exit codes for them."""
_NO_HANDLER = (NotImplementedError, RuntimeError, ValueError)
"""Windows has no handlers of signals in an event loop, and no thread but the main one may add one."""


class Interrupted(Exception):
    """The user pressed Ctrl-C."""


class Interrupts:
    """The pieces of work that Ctrl-C cancels, the newest first."""

    def __init__(self) -> None:
        self.contexts: contextlib.AsyncExitStack = contextlib.AsyncExitStack()
        """The contexts that the command has entered: SIGTERM and SIGHUP do not cancel their end."""
        self._actions: list[Callable[[], object]] = []
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        task = asyncio.current_task()
        assert task is not None, "the command runs in an event loop"
        self._actions.append(task.cancel)
        self._before = signal.getsignal(signal.SIGINT)
        with contextlib.suppress(*_NO_HANDLER):
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._act)
        return self

    def __exit__(self, *exc: object) -> None:
        self._actions.clear()
        with contextlib.suppress(*_NO_HANDLER):
            if asyncio.get_running_loop().remove_signal_handler(signal.SIGINT):
                signal.signal(signal.SIGINT, self._before)  # that of `asyncio.run`, which cancels the main task

    def _act(self) -> None:
        self._actions[-1]()

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of `work`. Raises `Interrupted` once Ctrl-C has cancelled it."""
        task = asyncio.ensure_future(work)
        pressed = asyncio.Event()

        def cancel() -> None:
            pressed.set()
            task.cancel()

        self._actions.append(cancel)
        try:
            await asyncio.wait([task])
        finally:
            self._actions.remove(cancel)
            if not task.done():  # this task is cancelled itself
                task.cancel()
                await asyncio.wait([task])
        if task.cancelled() and pressed.is_set():
            raise Interrupted
        return task.result()


def run_interruptible(work: Callable[[Interrupts], Coroutine[Any, Any, int]]) -> int:
    """Run `work` in an event loop and return its exit code; Ctrl-C, SIGTERM and SIGHUP cancel it."""
    code = INTERRUPTED
    ends = False

    async def main() -> int:
        task = asyncio.current_task()
        assert task is not None, "asyncio.run creates a task"

        def terminate(number: signal.Signals) -> None:
            nonlocal code, ends
            if not ends:  # a terminal that closes ends the input, and then its shell and the system may send SIGHUP
                code, ends = _ENDS[number], True
                task.cancel()

        for number in _ENDS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                with contextlib.suppress(NotImplementedError):  # Windows: SIGTERM ends the process
                    asyncio.get_running_loop().add_signal_handler(number, terminate, number)
        nonlocal ends
        with Interrupts() as interrupts:
            async with interrupts.contexts:
                try:
                    return await work(interrupts)
                finally:
                    ends = True

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        return code
