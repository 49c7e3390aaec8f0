"""An agent of pydantic-ai with the tools of a server, for one server after the other: a URL, or a command as a list.

    pydantic_agent.py '["http://localhost:8000/mcp", ["python", "server.py"]]'

What it heard of each tool goes to stdout as JSON. Its model is one for tests: it calls every tool once, with arguments
made from their schemas.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.test import TestModel


async def heard(target: str | list[str]) -> dict[str, Any]:
    """What an agent hears of the tools of one server."""
    toolset = MCPToolset(target if isinstance(target, str) else StdioTransport(target[0], target[1:]))
    agent = Agent(TestModel(), toolsets=[toolset])
    async with agent:
        run = await agent.run("call everything")
    parts = [part for message in run.all_messages() for part in message.parts]
    return {part.tool_name: part.content for part in parts if isinstance(part, ToolReturnPart)}


async def main() -> None:
    print(json.dumps([await heard(target) for target in json.loads(sys.argv[1])]))


asyncio.run(main())
