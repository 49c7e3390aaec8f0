"""A bare transport to a target: for who plays a client, word by word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from accord.client.target import Command, InProcessServer, Remote, Target, parse
from accord.limits import DEFAULT_LIMITS
from accord.transport import memory
from accord.transport.base import Transport
from accord.transport.http.settings import HTTPSettings
from accord.transport.http.streamable import StreamableTransport
from accord.transport.subprocess import SubprocessTransport


@asynccontextmanager
async def open_transport(target: Target) -> AsyncIterator[Transport]:
    """A transport to the target, open. Raises `TargetError`, `ConnectError`."""
    async with AsyncExitStack() as stack:
        transport = await _make_transport(target, stack)
        stack.push_async_callback(transport.close)
        await transport.open()
        yield transport


async def _make_transport(target: Target, stack: AsyncExitStack) -> Transport:
    where = parse(target)
    if isinstance(where, Command):
        return SubprocessTransport(where.argv, name=str(where), env=where.env, cwd=where.cwd)
    if isinstance(where, Remote):
        settings = HTTPSettings(headers=dict(where.headers or {}))
        return StreamableTransport(where.url, name=str(where), settings=settings, limits=DEFAULT_LIMITS)
    if isinstance(where, InProcessServer):
        ours, theirs = memory.pair()
        serving = asyncio.ensure_future(where.serve(theirs))
        stack.push_async_callback(asyncio.wait, [serving])  # after the transport is closed, which ends it
        return ours
    return where
