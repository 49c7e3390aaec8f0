"""An application of a few paths, served on sockets as a server's own is: `serving.py ADDRESS [LIMIT=VALUE]...`.

It says its address on stdout. ASYNCIO in the environment is the loop without uvloop, LOG an access log, FILES the file
descriptors it may have.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from typing import Any

if "FILES" in os.environ:
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(os.environ["FILES"]),) * 2)

from accord.server.http.access_log import ACCESS_LOG_STATE
from accord.server.http.serving.address import bind, bound_address, parse_address
from accord.server.http.serving.serve import new_loop, serve_app
from accord.server.run import run_to_end
from accord.transport.hangup import write_stderr_nowait

from tests.limits import limits_of

HEAD = {"type": "http.response.start", "status": 200}


class App:
    """Answers with its path, after what the path says."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()
        self.running: set[Any] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.running.add(scope["path"])
        try:
            await self.answer(scope, receive, send)
        finally:
            self.running.discard(scope["path"])

    async def answer(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        text = path.encode()
        if path.startswith("/wait"):
            await asyncio.sleep(float(path.rpartition("/")[2]))
        elif path.startswith("/last"):
            await self.closing.wait()
            await asyncio.sleep(0.2)
        elif path == "/block":
            print("blocked", flush=True)
            time.sleep(1000)
        elif path == "/leave-a-thread":
            asyncio.get_running_loop().run_in_executor(None, time.sleep, 1000)
        elif path == "/raise":
            raise ValueError("of the application")
        elif path == "/large":
            text = b"x" * (50 << 20)
        elif path == "/running":
            text = " ".join(sorted(self.running)).encode()
        elif path == "/until-gone":
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        elif path == "/echo":
            text, more = b"", True
            while more:
                event = await receive()
                text, more = text + event["body"], event["more_body"]
        elif path == "/known":
            scope["state"][ACCESS_LOG_STATE] |= {
                "mcp": "tools/call",
                "name": "a\n" * 500,
                "session": "0123456789abcdef",
                "key": "k",
            }
        elif path == "/stream":
            await send({**HEAD, "headers": [(b"content-type", b"text/event-stream")]})
            await send({"type": "http.response.body", "body": b"data: begun\n\n", "more_body": True})
            await self.closing.wait()
            await send({"type": "http.response.body", "body": b"data: bye\n\n"})
            return
        await send({**HEAD, "headers": [(b"content-length", b"%d" % len(text))]})
        await send({"type": "http.response.body", "body": text})

    async def drain(self, seconds: float) -> bool:
        self.closing.set()
        until = time.monotonic() + seconds
        while self.running and time.monotonic() < until:
            await asyncio.sleep(0.01)
        return not self.running

    async def close(self) -> None:
        write_stderr_nowait("closed\n")  # a test may leave the pipe full


async def main(address: str, *bounds: str) -> None:
    where = parse_address(address)
    sockets = bind(where)
    limits = limits_of(**{name: eval(value) for name, _, value in (each.partition("=") for each in bounds)})

    def started() -> None:
        print(bound_address(where, sockets), flush=True)

    await serve_app(App(), sockets, limits, started, access_log="LOG" in os.environ)


if __name__ == "__main__":
    loop = asyncio.new_event_loop() if "ASYNCIO" in os.environ else new_loop()
    run_to_end(main(*sys.argv[1:]), loop)
    write_stderr_nowait("after the server\n")
