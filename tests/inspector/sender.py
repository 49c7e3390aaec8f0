"""Commands as a page sends them: parameters and results pass through JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from accord.client.target import parse
from accord.inspector.command_table import COMMANDS
from accord.inspector.workspace import Workspace

from tests.client.raw import OFFERS, Message, RawServer


class Page:
    """A page without a browser."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    async def send(self, command_name: str, /, **params: Any) -> Any:
        command = COMMANDS[command_name]
        decoded = msgspec.json.decode(msgspec.json.encode(params), type=command.params)
        return msgspec.json.decode(msgspec.json.encode(await command.function(self.workspace, decoded)))


@asynccontextmanager
async def page(*targets: Any, revision: str = "") -> AsyncIterator[Page]:
    """A page whose servers are connected, under the names "one", "two"..."""
    workspace = Workspace()
    try:
        for name, target in zip(("one", "two", "three"), targets, strict=False):
            server = workspace.add(name, parse(target), "program")
            server.only_revision = revision
            await server.connect()
        yield Page(workspace)
    finally:
        await workspace.close()


class PlayedServer:
    """A server that a test plays by hand: `raw` is there once a client has opened it."""

    def __init__(self, revision: str, offers: Message = OFFERS) -> None:
        self._revision = revision
        self._offers = offers
        self.raw: RawServer

    async def serve(self, transport: Any, **options: Any) -> None:
        self.raw = RawServer(transport, self._revision, self._offers)
        await self.raw.open()
        await asyncio.Event().wait()
