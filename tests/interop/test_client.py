"""accord's client with servers on other people's SDKs: the story (see servers/story.py), in the client's own words.

Each server is there over stdio, and over HTTP in each of its ways (see servers/http_arguments.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from accord import (
    REVISIONS,
    Client,
    ClientLimits,
    ConnectError,
    ImageContent,
    InvalidParams,
    Limits,
    ProtocolError,
    TextContent,
)

from tests.interop.conftest import Visit, Visiting
from tests.interop.peers import SDKS, peer_server
from tests.interop.servers.story import CALLS, PNG
from tests.interop.serving import serving

SERVERS = [
    *((sdk, way) for sdk in SDKS for way in ("stdio", "mcp", "stateless", "sse")),
    ("ts2", "mcp"),
]

SPOKEN = {"mcp2": "2026-07-28", "mcp1": "2025-11-25", "fastmcp": "2026-07-28", "ts2": "2026-07-28"}
"""The newest revision of each server, which the client finds by itself; over HTTP+SSE none is newer than 2025-11-25."""

PATHS = {"mcp": "mcp", "stateless": "mcp", "sse": "sse"}

INTRODUCTIONS = {
    "mcp2": ("mcp2", "2.3.0", "A peer on mcp 2."),
    "mcp1": ("mcp1", "1.30.0", "A peer on mcp 1."),
    "fastmcp": ("fastmcp", "4.1.2", "A peer on FastMCP."),
    "ts2": ("ts2", "2.4.0", "A peer on TypeScript 2."),
}

FAILURES = {
    "mcp2": "Error executing tool fail",  # since 2.0 it keeps what a tool raised to itself
    "mcp1": "Error executing tool fail: it went wrong",
    "fastmcp": "Error calling tool 'fail': it went wrong",
    "ts2": "it went wrong",
}

NO_SUCH_TOOL = {
    "mcp2": "Unknown tool: nothing",
    "mcp1": "Unknown tool: nothing",
    "fastmcp": "Unknown tool: 'nothing'",
}
"""These three answer a failed call, and not the -32602 that the specification asks for."""

ERRORS = {
    "mcp2": {"resource": -32602, "prompt": -32603},
    "mcp1": {"resource": 0, "prompt": 0},
    "fastmcp": {"resource": -32602, "prompt": -32602},
    "ts2": {"resource": -32602, "prompt": -32602},
}


@pytest.fixture(scope="module", params=SERVERS, ids="-".join)
def server(request: pytest.FixtureRequest) -> tuple[Any, str]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def sdk(server: tuple[Any, str]) -> Any:
    return server[0]


@pytest.fixture(scope="module")
def peer(server: tuple[Any, str], visiting: Visiting) -> Iterator[Visit]:
    sdk, way = server
    if way == "stdio":
        # what imports for long on a busy machine answers the probe late, not never
        with visiting(peer_server(sdk), strict=True, limits=Limits(client=ClientLimits(probe_seconds=20))) as visit:
            yield visit
        return
    with serving([*peer_server(sdk), way]) as at, visiting(f"{at.url}/{PATHS[way]}", strict=True) as visit:
        yield visit


def test_the_newest_revision_of_both_is_used(peer: Visit, server: tuple[str, str]) -> None:
    sdk, way = server
    assert peer.client.revision == ("2025-11-25" if way == "sse" else SPOKEN[sdk])


def test_the_server_introduces_itself(peer: Visit, sdk: str) -> None:
    info, capabilities = peer.client.server_info, peer.client.server_capabilities
    assert info is not None
    assert capabilities is not None
    assert (info.name, info.version, peer.client.instructions) == INTRODUCTIONS[sdk]
    assert None not in (capabilities.tools, capabilities.resources, capabilities.prompts)
    peer.run(peer.client.ping())


def test_everything_on_offer_is_listed(peer: Visit) -> None:
    tools = {tool.name: tool for tool in peer.run(peer.client.list_tools())}
    assert [*tools] == [*CALLS]
    assert [tool.description for tool in tools.values()] == [
        "Give back the text.",
        "Add two numbers.",
        "Fail.",
        "Take a few steps and say so.",
        "Show a picture.",
    ]
    assert tools["add"].input_schema["required"] == ["a", "b"]
    assert tools["add"].output_schema is not None
    assert tools["add"].output_schema["properties"]["sum"]["type"] == "integer"

    (today,) = peer.run(peer.client.list_resources())
    assert (today.uri, today.name, today.mime_type) == ("notes://today", "today", "text/plain")
    (notes,) = peer.run(peer.client.list_resource_templates())
    assert (notes.uri_template, notes.name) == ("notes://{day}", "notes")
    (plan,) = peer.run(peer.client.list_prompts())
    assert (plan.name, plan.description) == ("plan", "Plan a day.")
    assert [(argument.name, argument.required) for argument in plan.arguments or []] == [("city", True)]


def test_a_text_comes_back_as_it_was_sent(peer: Visit) -> None:
    result = peer.call("echo", **CALLS["echo"])
    assert result.data == result.text == CALLS["echo"]["text"]
    assert not result.is_error


def test_structured_content_is_the_data(peer: Visit) -> None:
    result = peer.call("add", **CALLS["add"])
    assert result.structured_content == {"sum": 5}
    assert result.data == {"sum": 5}


def test_a_picture_arrives_as_it_is(peer: Visit) -> None:
    assert peer.call("picture").content == [ImageContent(data=PNG, mime_type="image/png")]


def test_a_tool_that_fails_is_a_result_that_says_so(peer: Visit, sdk: str) -> None:
    result = peer.call("fail")
    assert result.is_error
    assert result.text == FAILURES[sdk]


def test_every_step_of_progress_arrives_in_order(peer: Visit, server: tuple[str, str]) -> None:
    steps: list[tuple[float, float | None, str | None]] = []
    call = peer.client.call_tool("slow", CALLS["slow"], on_progress=lambda *step: steps.append(step))
    assert peer.run(call).data == "done"
    answers_as_json = server[1] == "stateless"  # and there is no room for progress in that
    assert steps == ([] if answers_as_json else [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")])


def test_twenty_calls_at_once_get_each_its_own_answer(peer: Visit) -> None:
    async def all_at_once() -> list[Any]:
        calls = (peer.client.call_tool("echo", {"text": str(number)}) for number in range(20))
        return [result.data for result in await asyncio.gather(*calls)]

    assert peer.run(all_at_once()) == [str(number) for number in range(20)]


def test_resources_and_prompts_give_their_text(peer: Visit) -> None:
    for uri, words in {"notes://today": "buy milk", "notes://monday": "notes of monday"}.items():
        (contents,) = peer.run(peer.client.read_resource(uri)).contents
        assert (contents.uri, contents.mime_type, contents.text) == (uri, "text/plain", words)
    prompt = peer.run(peer.client.get_prompt("plan", {"city": "Oslo"}))
    (message,) = prompt.messages
    assert (prompt.description, message.role) == ("Plan a day.", "user")
    assert message.content == TextContent(text="Plan a day in Oslo.")


def test_a_missing_argument_or_tool_is_a_failed_call(peer: Visit, sdk: str) -> None:
    without = peer.call("echo")
    assert without.is_error
    assert "text" in without.text
    if sdk == "ts2":
        with pytest.raises(InvalidParams, match="Tool nothing not found"):
            peer.call("nothing")
        return
    unknown = peer.call("nothing")
    assert unknown.is_error
    assert unknown.text == NO_SUCH_TOOL[sdk]


def test_a_missing_resource_or_prompt_is_an_error_with_its_code(peer: Visit, server: tuple[str, str]) -> None:
    with pytest.raises(ProtocolError) as resource:
        peer.run(peer.client.read_resource("nothing://here"))
    with pytest.raises(ProtocolError) as prompt:
        peer.run(peer.client.get_prompt("nothing"))
    codes = {"resource": resource.value.code, "prompt": prompt.value.code}
    assert codes == ({"resource": -32602, "prompt": 0} if server == ("mcp2", "sse") else ERRORS[server[0]])


def test_nothing_that_the_server_sent_was_out_of_place(peer: Visit, server: tuple[str, str]) -> None:
    stats = peer.client.stats
    unanswered = 1 if server in (("mcp1", "mcp"), ("mcp1", "stateless")) else 0  # the probe: a status, and no answer
    assert stats.answers_received == stats.requests_sent - unanswered
    assert (stats.unknown_answers, stats.late_answers, stats.malformed, stats.ignored) == (0, 0, 0, 0)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_server_of_all_revisions_is_tested_in_each(revision: str, visiting: Visiting) -> None:
    with visiting(peer_server("mcp2"), revisions=[revision], strict=True) as peer:
        assert peer.client.revision == revision
        assert [tool.name for tool in peer.run(peer.client.list_tools())] == [*CALLS]
        assert peer.call("add", a=2, b=3).data == {"sum": 5}
        assert peer.call("fail").is_error
        peer.run(peer.client.ping())


async def test_a_server_that_is_too_old_for_what_is_allowed_is_refused_with_the_reason() -> None:
    with pytest.raises(ConnectError, match="only 2026-07-28 is allowed"):
        await Client(peer_server("mcp1"), revisions=["2026-07-28"]).connect()
