"""What a peer client does with calls that last, over HTTP (see test_http_sessions).

A peer client is a program, as in story: `CLIENT.py [--revision REVISION] -- URL` prints one JSON object with what came
of it. The server is accord_sessions.py. Only the standard library is used: the SDKs stay in the programs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import story


class Client(Protocol):
    """An SDK's client, open; what it returns is a pydantic model of the whole result."""

    revision: str | None

    async def call(self, name: str) -> Any: ...

    async def cancel(self) -> None:
        """Tell the server that `wait` is cancelled, if cancelling the task that called it does not."""
        ...


Connect = Callable[[str, "str | None"], AbstractAsyncContextManager[Client]]


def main(connect: Connect) -> None:
    """Run a peer client as a program."""
    target, revision = story.arguments()
    print(json.dumps(asyncio.run(play(connect(target.url, revision)))))


async def play(connection: AbstractAsyncContextManager[Client]) -> dict[str, Any]:
    """A call that is given up, and one whose stream ends early."""
    async with connection as client:
        return {
            "revision": client.revision,
            "cancelled": await given_up(client),
            "polled": await words(client, "poll"),
        }


async def given_up(client: Client) -> str:
    """What the server says of a call that nobody waits for any more."""
    call = asyncio.create_task(client.call("wait"))
    assert await words(client, "begun") == "begun"
    await client.cancel()
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    return await words(client, "ended")


async def words(client: Client, tool: str) -> str:
    async with asyncio.timeout(100):
        return str(story.plain(await client.call(tool))["content"][0]["text"])
