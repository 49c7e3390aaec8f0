"""The command as people and scripts run it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.forking import ForkedPrograms

Run = Callable[..., subprocess.CompletedProcess[str]]

COMMAND = Path(__file__).with_name("forked_accord.py")

SHOP = '''
import asyncio, base64, os, sys
from dataclasses import dataclass
from typing import Literal
from accord import Context, ImageContent, ResourceContents, Server, ToolError

print("hello from the import")
server = Server("shop", version="2.0.0")


@dataclass
class Point:
    x: int
    y: float


@server.tool
def echo(text: str) -> str:
    """Give back the text."""
    print("a print", file=sys.stderr)
    return text


@server.tool
def types(n: int, f: float = 0.5, b: bool = False, tags: list[int] = [], size: Literal["S", "L"] = "S",
          point: Point | None = None) -> dict[str, str]:
    """Tell what came."""
    given = dict(n=n, f=f, b=b, tags=tags, size=size, point=point)
    return {key: repr(value) for key, value in given.items()}


@server.tool
def fail() -> str:
    """Fail."""
    raise ToolError("sold out\\x1b[2J")


@server.tool
async def slow(ctx: Context, steps: int = 2) -> str:
    """Take steps."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return "done"


@server.tool
async def hang() -> str:
    """Never answer."""
    print("hanging", file=sys.stderr, flush=True)
    await asyncio.sleep(3600)
    return ""


@server.tool
async def die() -> str:
    """Take the whole server down."""
    print("last words", file=sys.stderr, flush=True)
    os._exit(9)


@server.tool
def picture() -> ImageContent:
    """Show a picture."""
    return ImageContent(data=base64.b64encode(b"a picture").decode(), mime_type="image/png")


@server.tool
def environment(name: str) -> str:
    """Look something up."""
    return os.environ.get(name, "not set") + " in " + os.getcwd()


@server.resource("shop://hours", mime_type="text/plain")
def hours() -> str:
    """When it is open."""
    return "9 to 5"


@server.resource("shop://{item}/photo", mime_type="image/png")
def photo(item: str) -> bytes:
    return item.encode()


@server.prompt
def plan(day: str, mood: str = "calm") -> str:
    """Plan a day."""
    return f"a {mood} {day}"
'''

CHANGING = '''
import asyncio, os
from collections.abc import AsyncIterator
from accord import Context, Server

server = Server("changing")


@server.resource("state://now")
async def now(ctx: Context) -> str:
    """How it is."""
    ctx.debug("read")
    ctx.warning({"token": "abc", "is": "read\\n[error] forged"}, "state")
    return "fine"


@server.tool
async def change(ctx: Context) -> str:
    """Change something."""
    ctx.error("changing")
    server.resource_updated("state://now")
    server.tool(name="more")(lambda: "more")
    return "changed"


@server.prompt
def plan(city: str, country: str = "") -> str:
    """Plan a trip."""
    return city


@plan.complete("city")
def cities(prefix: str, country: str = "") -> list[str]:
    known = ["Oslo", "Osaka"] if not country else [f"Oslo ({country})"]
    return [name for name in [*known, *map(str, range(200))] if name.startswith(prefix)]


@server.resource("weather://{city}/now")
def weather(city: str) -> str:
    return city


@weather.complete("city")
def weather_cities(prefix: str) -> list[str]:
    return ["Lima\x1b[2J"]
'''


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """A file with a server that has some of everything; `FILE.py` is the target."""
    file = tmp_path / "shop.py"
    file.write_text(SHOP, encoding="utf-8")
    return str(file)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "ACCORD_TRACEBACK", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def forked() -> Iterator[ForkedPrograms]:
    with ForkedPrograms() as programs:
        yield programs


@pytest.fixture
def accord(environment: None, forked: ForkedPrograms, tmp_path: Path) -> Run:
    """Run `accord` with arguments, to its end: in a process of its own, whose imports were made before."""

    def run(*arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return forked.run(
            [sys.executable, str(COMMAND)],
            *arguments,
            input=stdin,
            folder=tmp_path,
            environment={**os.environ, **more},
            seconds=100,
        )

    return run


@pytest.fixture
def changing(tmp_path: Path) -> str:
    """A file with a server that changes when its tool is called, logs, and completes."""
    file = tmp_path / "changing.py"
    file.write_text(CHANGING, encoding="utf-8")
    return str(file)
