"""An agent framework, pydantic-ai, with the tools of accord's servers: over stdio, and over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.interop.peers import PROGRAMS, peer_python
from tests.interop.serving import SECONDS, serving

SERVER = """
import sys
from pydantic import BaseModel
from accord import Server

server = Server("tools")


class Point(BaseModel):
    x: int
    y: int = 2


@server.tool
def double(number: int) -> int:
    return 2 * number


@server.tool
def move(point: Point, label: str | None = None) -> Point:
    return Point(x=point.x + 1, y=point.y)


@server.tool
def say() -> str:
    return "hello"


server.run(http=sys.argv[1]) if len(sys.argv) > 1 else server.run()
"""


def test_an_agent_of_pydantic_ai_calls_every_tool_over_stdio_and_http(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    command = [sys.executable, str(tmp_path / "server.py")]
    with serving(command) as server:
        targets = json.dumps([command, f"{server.url}/mcp"])
        program = [str(peer_python("agents")), str(PROGRAMS / "pydantic_agent.py"), targets]
        done = subprocess.run(
            program, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
        )
    assert done.returncode == 0, f"the agent failed:\n{done.stderr[-4000:]}"
    assert json.loads(done.stdout) == [{"double": 0, "move": {"x": 1, "y": 2}, "say": "hello"}] * 2
