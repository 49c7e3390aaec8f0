"""A list is there for the others, whatever is wrong with one of its items."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from accord import CallNext, Client, Request, Server

if TYPE_CHECKING:
    from elsewhere import Unknown  # type: ignore[import-not-found]


async def watching(request: Request, call_next: CallNext) -> object:
    return await call_next(request)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("middleware", [[], [watching]], ids=["made once", "made for each"])
async def test_a_tool_declared_while_serving_that_cannot_be_listed_is_left_out_and_logged(
    middleware: list[Callable[..., object]], revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("desk", middleware=middleware)  # type: ignore[arg-type]

    @server.tool
    def well() -> str:
        return "well"

    async with Client(server, revisions=[revision]) as client:

        @server.tool
        def broken(item: Unknown) -> str:
            return "never"

        assert [tool.name for tool in await client.list_tools()] == ["well"]
        assert (await client.call_tool("well")).text == "well"
        failed = await client.call_tool("broken", {"item": "x"})
        assert failed.is_error
        assert "Unknown" in failed.text
    assert "'broken' cannot be listed" in caplog.text
