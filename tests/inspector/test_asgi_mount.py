"""`Inspector(server)` inside an application: the same page below a path, on another ASGI server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import uvicorn
from fastapi import FastAPI

from accord import Server
from accord.inspector import Inspector


def shop() -> Server:
    server = Server("shop")

    @server.tool
    def price(item: str) -> int:
        return len(item)

    return server


@asynccontextmanager
async def served(inspector: Inspector) -> AsyncIterator[str]:
    """Serve an application with the inspector at /inspect, and yield its address."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with inspector:
            yield

    app = FastAPI(lifespan=lifespan)
    app.mount("/inspect", inspector)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uvicorn_server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
        running = asyncio.create_task(uvicorn_server.serve([listener]))
        try:
            while not uvicorn_server.started:
                await asyncio.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/inspect"
        finally:
            uvicorn_server.should_exit = True
            await running


async def test_a_mounted_inspector_inspects_the_server_of_its_program() -> None:
    inspector = Inspector(shop())
    async with served(inspector) as base, aiohttp.ClientSession() as session:
        link = inspector.link(base)
        assert link.startswith(f"{base}/#token=")
        headers = {"accord-inspector-token": link.partition("=")[2]}

        async def send(command: str, **params: Any) -> Any:
            async with session.post(f"{base}/api/{command}", json=params, headers=headers) as answer:
                return await answer.json()

        async with session.get(base) as page:
            assert page.url.path == "/inspect/"
            assert 'src="main.js"' in await page.text()
        assert (await send("servers/connect", server="shop"))["state"] == "connected"
        assert (await send("servers/list"))["servers"][0]["transport"] == "memory"
        async with session.post(f"{base}/api/servers/list", json={}) as refused:
            assert refused.status == 401
