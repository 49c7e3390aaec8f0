"""A server that keeps its events in a file, and is killed.

The process reads lines `FILE STEPS` and forks for each a child that serves; it says `PORT PID` on stdout, and `over`
when the child is gone. With `STEPS` over 0 the child kills itself after that many steps of SQLite's own machine.
"""

from __future__ import annotations

import asyncio
import os
import sys

from accord import Context, HTTPLimits, Limits, Server
from accord.server.http.options import HTTPOptions
from accord.server.http.serving.address import bind, parse_address
from accord.server.http.serving.serve import serve_app
from accord.store.sqlite import SQLiteEvents

from tests.store.killed import deadly, tell

REPORTS = 30


def server() -> Server:
    made = Server("mortal", "1", limits=Limits(progress_per_second=1e6, http=HTTPLimits(patience_seconds=0.01)))

    @made.tool
    async def steps(ctx: Context, name: str, count: int) -> str:
        for step in range(count):
            ctx.report_progress(step + 1, count, f"{name} {step}")
            await asyncio.sleep(0.001)
        return f"{name} done"

    @made.tool
    async def forever(ctx: Context) -> str:
        await asyncio.Event().wait()
        return ""

    return made


async def serve(file: str) -> None:
    sockets = bind(parse_address("127.0.0.1:0"))
    app = server().asgi(HTTPOptions(events=SQLiteEvents(file)))
    await serve_app(app, sockets, Limits(), lambda: tell(sockets[0].getsockname()[1], os.getpid()))


def main() -> None:
    for line in sys.stdin:
        file, steps = line.split()
        child = os.fork()
        if not child:
            if int(steps):
                deadly(int(steps))
            asyncio.run(serve(file))
            os._exit(0)
        os.waitpid(child, 0)
        tell("over")


if __name__ == "__main__":
    main()
