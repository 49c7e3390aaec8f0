"""A handler that finds nothing says so in the words of each revision, also where it does not name the URI."""

from __future__ import annotations

import pytest

from accord import Client, ProtocolError, ResourceNotFound, Server

server = Server("notes")


@server.resource("notes://{day}")
def note(day: str) -> str:
    raise ResourceNotFound("no note for that day")


@server.resource("other://{day}")
def other(day: str) -> str:
    raise ResourceNotFound(uri="notes://elsewhere")


@pytest.mark.parametrize(("revision", "code"), [("2025-11-25", -32002), ("2026-07-28", -32602)])
async def test_it_reaches_the_client_as_what_it_is(revision: str, code: int) -> None:
    async with Client(server, revisions=[revision]) as client:
        with pytest.raises(ResourceNotFound) as missing:
            await client.read_resource("notes://monday")
        assert (missing.value.code, missing.value.uri) == (code, "notes://monday")
        with pytest.raises(ProtocolError) as elsewhere:  # not the one asked for: -32602 can mean many things
            await client.read_resource("other://monday")
        assert (elsewhere.value.code, elsewhere.value.data) == (code, {"uri": "notes://elsewhere"})
