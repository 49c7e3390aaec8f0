"""A child process that speaks lines over its stdio, and before that does what its first argument names."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

from accord.limits import Limits
from accord.transport.stdio import StdioTransport

CHILD = "import sys; print('the child prints'); print('and reads', repr(sys.stdin.read()))"


def noisy() -> None:
    for _ in range(2):
        print("a tool prints")
    sys.stdout.buffer.write(b"to the buffer\n")
    os.write(1, b"to descriptor 1\n")
    subprocess.run([sys.executable, "-c", CHILD], check=True)
    os.system("echo the shell prints")
    try:
        input("a question? ")
    except EOFError:
        print("input() has ended")
    print("read:", repr(sys.stdin.read()))


def stuck() -> None:
    """Block the event loop once the client is gone."""
    sys.stderr.write("stuck\n")
    sys.stderr.flush()
    time.sleep(1000)


async def main(what: str) -> None:
    print("buffered before it opens")
    transport = StdioTransport(Limits(grace_seconds=0.2, close_seconds=0.5), exit_when_stuck=what == "stuck")
    await transport.open()
    if what == "noisy":
        noisy()
    while messages := await transport.receive():
        for message in messages:
            assert isinstance(message, bytes)
            transport.send(message)
        transport.flush()
        await transport.drain()
        if what == "stuck":
            stuck()
    await transport.close()
    if what == "restored":
        print("stdout is back")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ""))
