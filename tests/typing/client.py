"""What a type checker knows of a client and its answers; read by mypy and pyright, never run."""

from __future__ import annotations

from typing import Any, assert_type

from accord import (
    Client,
    Completion,
    GetPromptResult,
    ReadResourceResult,
    ResourceUpdated,
    Server,
    Subscription,
    Tool,
    ToolResult,
)
from accord.client.subscription import SubscriptionEvent
from accord.sync import Client as BlockingClient

server = Server("typed")


async def answers() -> None:
    async with Client(server) as client:
        assert_type(client, Client)
        assert_type(await client.list_tools(), list[Tool])
        result = await client.call_tool("forecast", {"city": "Oslo"})
        assert_type(result, ToolResult)
        assert_type(result.text, str)
        assert_type(result.data, Any)
        assert_type(await client.read_resource("weather://oslo"), ReadResourceResult)
        assert_type(await client.get_prompt("plan", {"city": "Oslo"}), GetPromptResult)
        assert_type(await client.complete(prompt="plan", argument="city"), Completion)
        assert_type(await client.request("com.example/find", result=ToolResult), ToolResult | Any)


async def changes(client: Client) -> None:
    async with client.subscribe("weather://oslo", tools=True) as subscription:
        assert_type(subscription, Subscription)
        async for event in subscription:
            assert_type(event, SubscriptionEvent)
            if isinstance(event, ResourceUpdated):
                assert_type(event.uri, str)


async def targets() -> None:
    for client in (
        Client(server),
        Client("https://example.com/mcp"),
        Client(["python", "weather.py"]),
        Client({"command": "npx", "args": ["-y", "server"]}),
    ):
        await client.close()
    Client(3)  # type: ignore[arg-type]
    await Client(server).call_tool(3)  # type: ignore[call-overload]


def without_await() -> None:
    with BlockingClient(server, strict=True) as client:
        assert_type(client, BlockingClient)
        assert_type(client.list_tools(), list[Tool])
        assert_type(client.call_tool("forecast", {"city": "Oslo"}, timeout=3), ToolResult)
        assert_type(client.call_tool("forecast", {"city": "Oslo"}, type=list[str]), list[str])
        assert_type(client.get_prompt("plan"), GetPromptResult)
        client.call_tool("forecast", within=3)  # type: ignore[call-overload]
    BlockingClient(3)  # type: ignore[arg-type]
