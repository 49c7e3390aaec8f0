"""What one of several peer clients does with examples/everything.py, while the others are there (test_http_together).

    mixed_revisions_story.py mcp1|mcp2 [--revision REVISION] -- URL

It writes a line once it has opened the server, waits for one, and then writes what came of its calls.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from typing import Any

import story


async def play(connect: story.Connect, target: story.Target, revision: str | None) -> dict[str, Any]:
    steps: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)

    async with connect(target, revision) as client:
        print(json.dumps({"revision": client.opened().revision}), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        tools = {"who": {}, "measure": {"city": "Oslo", "days": 1}, "test_tool_with_progress": {}}
        calls = await asyncio.gather(*(story.outcome(client.call(*call, progress)) for call in tools.items()))
        return {
            "calls": dict(zip(tools, calls, strict=True)),
            "progress": steps,
            "read": await story.outcome(client.read("test://static-text")),
            "prompt": await story.outcome(client.prompt("test_simple_prompt", {})),
        }


if __name__ == "__main__":
    program = importlib.import_module(f"{sys.argv.pop(1)}_client")
    print(json.dumps(asyncio.run(play(program.connect, *story.arguments()))))
