"""A child process for the battery: passes messages between its stdio and a Unix socket, whose path it is given."""

from __future__ import annotations

import asyncio
import socket
import sys

from accord.limits import DEFAULT_LIMITS
from accord.transport.base import Transport
from accord.transport.pipes import PipeTransport
from accord.transport.stdio import StdioTransport


async def pass_on(source: Transport, target: Transport) -> None:
    while messages := await source.receive():
        for message in messages:
            assert isinstance(message, bytes)
            target.send(message)
        await target.drain()
    await target.close()


async def main(path: str) -> None:
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(path)
    far = PipeTransport(connected.dup().detach(), connected.detach(), limits=DEFAULT_LIMITS)
    near = StdioTransport()
    await asyncio.gather(near.open(), far.open())
    await asyncio.gather(pass_on(near, far), pass_on(far, near))


asyncio.run(main(sys.argv[1]))
