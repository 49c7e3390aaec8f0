"""Other right servers for mutants of features: one with pages, one whose lists change, one that shows everything."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from accord import (
    Context,
    EmbeddedResource,
    GetPromptResult,
    Header,
    ImageContent,
    Limits,
    PromptMessage,
    ResourceContents,
    Server,
)
from accord.transport.base import Transport

from tests.check.mutants.correct_server import right

PNG = base64.b64encode(b"\x89PNG").decode()
PIXEL = ImageContent(data=PNG, mime_type="image/png")
FILE = EmbeddedResource(resource=ResourceContents(uri="right://file", mime_type="text/plain", text="text"))


def paged() -> Server:
    """Lists of several pages."""
    server = Server("paged", "1.0.0", limits=Limits(page_size=2))
    for number in range(5):
        server.tool(name=f"tool{number}", description="One of many.")(lambda: "done")
        server.resource(f"paged://text/{number}", name=f"text{number}")(lambda: "text")
    return server


def changing() -> Server:
    """Tools that change what is listed, and what a resource holds."""
    server = Server("changing", "1.0.0")
    found: list[str] = []

    @server.tool
    async def add_things() -> str:
        """One more of each."""
        found.append("more")
        server.tool(name=f"more{len(found)}", description="More.")(lambda: "more")
        server.prompt(name=f"more{len(found)}", description="More.")(lambda: "more")
        server.resource(f"right://more/{len(found)}", name="more")(lambda: "more")
        return "added"

    @server.tool
    async def touch() -> str:
        """Changes the text."""
        found.append("touched")
        server.resource_updated("right://text")
        return "touched"

    @server.resource("right://text", mime_type="text/plain")
    def text() -> str:
        """A text."""
        return f"changed {len(found)} times"

    @server.prompt
    def plan() -> str:
        """Plan."""
        return "Plan"

    return server


def showing() -> Server:
    """Pictures and files in results and prompts, an argument in a header, a log."""
    server = Server("showing", "1.0.0")

    @server.tool
    def picture() -> ImageContent:
        """A picture."""
        return PIXEL

    @server.tool
    def file() -> EmbeddedResource:
        """A file."""
        return FILE

    @server.tool
    def where(region: Annotated[str, Header("Region")]) -> str:
        """Runs in a region."""
        return region

    @server.tool
    def log_in(ctx: Context) -> str:
        """Logs."""
        ctx.info({"user": "somebody"})
        return "in"

    @server.prompt
    def look() -> GetPromptResult:
        """Something to look at."""
        return GetPromptResult(messages=[PromptMessage(role="user", content=each) for each in (PIXEL, FILE)])

    @server.resource("right://text", mime_type="text/plain")
    def text() -> str:
        """A text."""
        return "text"

    return server


class Fickle:
    """Wrong by itself: each connection has a tool, a prompt and a resource of its own."""

    def __init__(self) -> None:
        self._connections = 0

    async def serve(self, transport: Transport) -> None:
        self._connections += 1
        own: Any = right()
        own.tool(name=f"tool{self._connections}", description="Yours.")(lambda: "yours")
        own.prompt(name=f"prompt{self._connections}", description="Yours.")(lambda: "yours")
        own.resource(f"right://yours/{self._connections}", name="yours")(lambda: "yours")
        await own.serve(transport)
