"""A principal in memory: what a server in this process shows to whom."""

from __future__ import annotations

from typing import Any

import pytest

from accord import Cache, Client, Context, InvalidParams, Principal, Server, TargetError
from accord.messages.revision import REVISIONS
from accord.sync import Client as Blocking

ANN, EVE = Principal("ann", frozenset({"admin"})), Principal("eve")


def guarded() -> Server:
    server = Server("guarded")
    server.tool("wipe", scopes={"admin"})(lambda: "wiped")

    @server.tool
    def who(ctx: Context) -> str:
        return "nobody" if ctx.principal is None else ctx.principal.id

    return server


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("principal", "names"), [(ANN, ["wipe", "who"]), (EVE, ["who"]), (None, ["wipe", "who"])])
async def test_a_client_in_memory_is_the_principal_that_it_is_given(
    revision: str, principal: Principal | None, names: list[str]
) -> None:
    async with Client(guarded(), principal=principal, revisions=[revision]) as client:
        assert [tool.name for tool in await client.list_tools()] == names
        assert (await client.call_tool("who")).text == ("nobody" if principal is None else principal.id)
        if "wipe" not in names:
            with pytest.raises(InvalidParams, match="no tool 'wipe'"):
                await client.call_tool("wipe")


async def test_two_principals_share_no_results_in_one_cache() -> None:
    server, cache = guarded(), Cache()
    for _ in range(2):
        for principal, count in ((ANN, 2), (EVE, 1)):
            async with Client(server, principal=principal, cache=cache) as client:
                assert len(await client.list_tools()) == count


def test_a_client_that_blocks_takes_one_too() -> None:
    with Blocking(guarded(), principal=EVE) as client:
        assert [tool.name for tool in client.list_tools()] == ["who"]


@pytest.mark.parametrize(("target", "principal"), [("http://127.0.0.1:1/mcp", ANN), (guarded(), "ann")])
def test_a_principal_without_an_id_is_refused(target: Any, principal: Any) -> None:
    with pytest.raises(TargetError, match="principal="):
        Client(target, principal=principal)
