"""What a server says that it has: of what it declares, what is mounted, and what is provided."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from accord import Client, Provided, Provider, Server
from accord.messages.content import Resource
from accord.messages.tools import Tool


class Files(Provider):
    async def resources(self) -> Sequence[Resource]:
        return [Resource(uri="file:///a", name="a")]


class Commands(Provider):
    async def tools(self) -> Sequence[Provided]:
        return [Provided(Tool(name="run", input_schema={"type": "object"}), lambda arguments: "ran")]

    async def complete(self, ref: object, argument: str, typed: str) -> list[str]:
        return []


@pytest.mark.parametrize(
    ("provider", "declared"),
    [(Files(), {"resources"}), (Commands(), {"tools", "logging", "completions"}), (Provider(), set())],
)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_provider_makes_up_what_it_overrides(provider: Provider, declared: set[str], revision: str) -> None:
    server, outer = Server("desk"), Server("outer")
    server.add_provider(provider)
    outer.mount(server, "in")
    for each in (server, outer):
        async with Client(each, revisions=[revision]) as client:
            told = client.server_capabilities
            names = ("tools", "prompts", "resources", "completions", "logging")
            assert {name for name in names if getattr(told, name) is not None} == declared
