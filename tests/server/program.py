"""A server with tools that a host would rather not meet; run as a program, it serves stdio."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

from accord import Server
from accord.limits import Limits

server = Server("program", "1", limits=Limits(grace_seconds=float(os.environ.get("GRACE", "4"))))


@server.tool
async def echo(text: str) -> str:
    return text


@server.tool
async def prints() -> str:
    print("this is not the protocol")
    return "printed"


@server.tool
def prints_in_a_thread() -> str:
    print("nor is this", flush=True)
    sys.stdout.write("nor that\n")
    return "printed"


@server.tool
async def writes_to_descriptor_1() -> str:
    os.write(1, b"raw bytes on descriptor 1\n")
    return "written"


@server.tool
def starts_a_child_that_prints() -> str:
    subprocess.run([sys.executable, "-c", "print('a child prints')"], check=True)
    return "started"


@server.tool
def reads_stdin() -> str:
    try:
        return f"read {input()!r}"
    except EOFError:
        return f"nothing to read, nor here: {os.read(0, 10)!r}"


def begun() -> None:
    """Say so before it waits, to who waits for that."""
    print("begun", file=sys.stderr, flush=True)


@server.tool
async def waits(seconds: float) -> str:
    begun()
    await asyncio.sleep(seconds)
    return "waited"


@server.tool
def waits_for_a_file(path: str) -> str:
    while not os.path.exists(path):
        time.sleep(0.01)
    return "waited"


@server.tool
def sleeps_in_a_thread(seconds: float) -> str:
    begun()
    time.sleep(seconds)
    return "slept"


@server.tool
async def blocks_the_loop(seconds: float) -> str:
    begun()
    time.sleep(seconds)
    return "blocked"


@server.tool
async def suspends_the_process() -> str:
    begun()
    time.sleep(0.3)  # meanwhile the input ends, and the server is watched
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(0.05)
    return "resumed"


@server.tool
async def swallows_cancellation(seconds: float) -> str:
    begun()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            await asyncio.sleep(until - time.monotonic())
        except asyncio.CancelledError:
            continue
    return "swallowed"


@server.tool
async def leaves_a_thread(seconds: float) -> str:
    threading.Thread(target=time.sleep, args=(seconds,)).start()
    return "left"


if __name__ == "__main__":
    server.run()
    print("after the server", file=sys.stderr)
