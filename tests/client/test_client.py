"""The main job, in every revision, over memory and over stdio to a real process: open, list, call, read, prompt."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import Client
from accord.errors import InvalidParams, LocalProtocolError, NotSupported, RequestTimeout, ResourceNotFound
from accord.messages.content import ImageContent, TextContent
from accord.messages.revision import REVISIONS

from tests.client.example import server
from tests.clock import Clock

EXAMPLE = Path(__file__).parent / "example.py"
TARGETS: dict[str, Any] = {"memory": server, "stdio": [sys.executable, str(EXAMPLE)]}


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Any:
    return TARGETS[request.param]


@asynccontextmanager
async def connected(target: Any, revision: str, **options: Any) -> AsyncIterator[Client]:
    async with asyncio.timeout(300), Client(target, revisions=[revision], **options) as client:
        assert client.revision == revision
        yield client


async def test_the_main_job(target: Any, revision: str) -> None:
    async with connected(target, revision) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("example", "1.2.3")
        assert client.instructions == "Use it to test."
        await client.ping()

        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools["forecast"].description == "Tell the weather."
        assert tools["forecast"].input_schema["properties"]["days"] == {
            "type": "integer",
            "default": 2,
            "description": "How many days.",
        }
        assert (await client.call_tool("echo", {"text": "hé \u2028 🎉"})).data == "hé \u2028 🎉"
        assert (await client.call_tool("echo_sync", {"text": "x"})).data == "x"

        assert [resource.uri for resource in await client.list_resources()] == ["test://fixed", "test://blob"]
        assert [each.uri_template for each in await client.list_resource_templates()] == ["test://items/{name}{?n}"]
        assert (await client.read_resource("test://fixed")).contents[0].text == "fixed text"
        assert (await client.read_resource("test://blob")).contents[0].blob == "AAE="
        read = await client.read_resource("test://items/a%2Fb?n=3")
        assert read.contents[0].text == '{"name":"a/b","n":3}'

        (prompt,) = await client.list_prompts()
        assert [(argument.name, argument.required) for argument in prompt.arguments or []] == [
            ("name", True),
            ("loud", False),
        ]
        got = await client.get_prompt("greet", {"name": "Ada", "loud": "true"})
        assert got.messages[0].content == TextContent(text="HELLO, ADA")


async def test_structured_results_are_data_in_every_revision(target: Any, revision: str) -> None:
    days = [{"city": "Oslo", "degrees": 20.5}, {"city": "Oslo", "degrees": 21.5}]
    structured = revision not in ("2024-11-05", "2025-03-26")
    async with connected(target, revision) as client:
        forecast = await client.call_tool("forecast", {"city": "Oslo"})
        today = await client.call_tool("today", {"city": "Oslo"})
        nothing = await client.call_tool("nothing")
    if structured:
        assert forecast.data == days
        assert today.data == {"city": "Oslo", "degrees": 21.0}
        assert nothing.data is None
    else:  # no such thing: the text says the same
        assert forecast.data.startswith('[{"city":"Oslo"')
        assert nothing.data == "null"
    wrapped = revision in ("2025-06-18", "2025-11-25")
    assert not structured or forecast.structured_content == ({"result": days} if wrapped else days)


async def test_a_tools_own_failure_is_a_result(target: Any, revision: str) -> None:
    async with connected(target, revision) as client:
        result = await client.call_tool("fail", {"why": "no luck"})
        assert result.is_error
        assert result.text == "no luck"
        misfit = await client.call_tool("forecast", {"city": "Oslo", "days": "three", "day": 1})
        assert misfit.is_error
        assert "days" in misfit.text
        assert "expected integer" in misfit.text


async def test_what_does_not_exist_is_an_error_by_its_kind(target: Any, revision: str) -> None:
    async with connected(target, revision) as client:
        with pytest.raises(InvalidParams, match="no tool 'nope'"):
            await client.call_tool("nope")
        with pytest.raises(InvalidParams, match="no prompt 'nope'"):
            await client.get_prompt("nope")
        with pytest.raises(ResourceNotFound) as raised:
            await client.read_resource("test://nope")
        assert raised.value.code == (-32602 if revision == "2026-07-28" else -32002)
        assert raised.value.data == {"uri": "test://nope"}
        with pytest.raises(NotSupported, match=f"no/such is not part of {revision}"):
            await client.connection.request("no/such")


async def test_progress_is_reported_in_order(target: Any, revision: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []
    async with connected(target, revision) as client:
        result = await client.call_tool(
            "slow", {"steps": 3}, on_progress=lambda progress, total, message: seen.append((progress, total, message))
        )
    assert result.data == "3 steps"
    said = revision != "2024-11-05"  # which has no message in progress
    assert seen == [(step, 3, f"step {step}" if said else None) for step in (1, 2, 3)]


async def test_content_of_several_kinds(target: Any, revision: str) -> None:
    async with connected(target, revision) as client:
        result = await client.call_tool("picture")
    assert result.content == [TextContent(text="a dot"), ImageContent(data="AAAA", mime_type="image/png")]


async def test_the_handler_sees_the_revision_the_client_and_its_meta(target: Any, revision: str) -> None:
    async with connected(target, revision) as client:
        seen = (await client.call_tool("who", meta={"com.example/trace": "abc"})).text
    assert f'"revision":"{revision}"' in seen
    assert '"client":"accord"' in seen
    assert '"com.example/trace":"abc"' in seen


async def test_a_timeout_fails_the_call_and_stops_it_at_the_server(target: Any, revision: str) -> None:
    async with connected(target, revision) as client:
        with pytest.raises(RequestTimeout, match=r"tools/call .* no answer or progress for 0.05 s"):
            await client.call_tool("wait", {"seconds": 30}, timeout=0.05)
        assert (await client.call_tool("echo", {"text": "still here"})).data == "still here"
        assert client.stats.cancels_sent == 1


async def test_progress_resets_the_timeout_but_not_the_total(target: Any, revision: str) -> None:
    async with connected(target, revision) as client:
        clock = Clock()
        times: dict[str, Any] = {"on_progress": lambda *_: clock.move(15), "timeout": 40}
        assert (await client.call_tool("slow", {"steps": 5}, **times)).data == "5 steps"
        assert clock.ahead == 75
        with pytest.raises(RequestTimeout, match="in total"):
            await client.call_tool("slow", {"steps": 5}, **times, total_timeout=50)


async def test_a_cancelled_call_is_cancelled_at_the_server(target: Any, revision: str) -> None:
    async with connected(target, revision) as client:
        call = asyncio.create_task(client.call_tool("wait", {"seconds": 30}))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await client.call_tool("echo", {"text": "still here"})).data == "still here"


async def test_connect_and_close_work_from_different_tasks(target: Any) -> None:
    client = Client(target)
    await asyncio.create_task(client.connect())
    assert client.revision == "2026-07-28"
    assert (await asyncio.create_task(client.call_tool("echo", {"text": "x"}))).data == "x"
    await asyncio.create_task(client.close())
    await client.close()


async def test_many_calls_at_once_get_their_own_answers(target: Any) -> None:
    async with connected(target, "2026-07-28") as client:
        results = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(200)))
    assert [result.data for result in results] == [str(n) for n in range(200)]


async def test_arguments_that_json_cannot_hold_are_refused_before_they_leave(target: Any) -> None:
    async with connected(target, "2026-07-28") as client:
        with pytest.raises(LocalProtocolError, match="nan is not a JSON number"):
            await client.call_tool("echo", {"text": float("nan")})
        for wrong in ("x", "", ["text"], 5):
            with pytest.raises(LocalProtocolError, match="arguments must be a mapping, such as"):
                await client.call_tool("echo", wrong)  # type: ignore[arg-type]
        assert (await client.call_tool("echo", {"text": "x"})).data == "x"


async def test_a_total_timeout_alone_is_named_in_its_error() -> None:
    async with connected(server, "2026-07-28") as client:
        with pytest.raises(RequestTimeout, match="in total"):
            await client.call_tool("wait", {"seconds": 30}, total_timeout=0.05)
