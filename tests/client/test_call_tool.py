"""The result of a tool call: its error flag, its data as a type, and the errors that a caller chooses."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

import accord.sync
from accord import Client, Server, ToolError
from accord.client.results import ResultReader, ToolResult
from accord.errors import InvalidResult, LocalProtocolError, ProtocolError, RequestTimeout
from accord.messages.revision import REVISIONS
from accord.transport.memory import MemoryTransport

server = Server("shop")


@dataclass
class Item:
    name: str
    price: float


class Page(pydantic.BaseModel):
    items: list[dict[str, Any]]
    total: int


@server.tool
def search(word: str) -> dict[str, Any]:
    return {"items": [{"name": word, "price": 2}], "total": 1}


@server.tool
def prices() -> list[float]:
    return [1, 2.5]


@server.tool
def greet() -> str:
    return "hello"


@server.tool
def fail() -> str:
    raise ToolError("no such item: 7")


@server.tool
async def wait() -> str:
    await asyncio.Event().wait()
    return "never"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_is_error_is_false_on_success_and_true_on_failure(revision: str) -> None:
    async with Client(server, revisions=[revision]) as client:
        assert (await client.call_tool("greet")).is_error is False
        assert (await client.call_tool("search", {"word": "tea"})).is_error is False
        assert (await client.call_tool("fail")).is_error is True


async def test_raise_on_error_raises_the_text_of_the_tool_with_its_result() -> None:
    async with Client(server) as client:
        with pytest.raises(ToolError, match=r"^no such item: 7$") as caught:
            await client.call_tool("fail", raise_on_error=True)
        assert isinstance(caught.value.result, ToolResult)
        assert caught.value.result.is_error
        assert (await client.call_tool("greet", raise_on_error=True)).text == "hello"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_type_returns_the_data_as_that_type(revision: str) -> None:
    async with Client(server, revisions=[revision]) as client:
        if revision >= "2025-06-18":  # before, no result had structured content
            assert await client.call_tool("search", {"word": "tea"}, type=Page) == Page(
                items=[{"name": "tea", "price": 2}], total=1
            )
            assert await client.call_tool("prices", type=list[float]) == [1.0, 2.5]
        assert await client.call_tool("greet", type=str) == "hello"


async def test_type_raises_for_a_failed_tool_and_for_data_that_do_not_fit() -> None:
    async with Client(server) as client:
        with pytest.raises(ToolError, match="no such item"):
            await client.call_tool("fail", type=str)
        with pytest.raises(
            InvalidResult, match=r"tool 'prices' returned data that does not match .*: \$\[1\]: expected"
        ):
            await client.call_tool("prices", type=list[int])
        with pytest.raises(InvalidResult, match=r"tool 'search'.*missing"):
            await client.call_tool("search", {"word": "tea"}, type=Item)


def test_the_blocking_client_has_the_same_options() -> None:
    with accord.sync.Client(server) as client:
        assert client.call_tool("prices", type=list[float]) == [1.0, 2.5]
        with pytest.raises(ToolError, match="no such item"):
            client.call_tool("fail", raise_on_error=True)


async def test_a_timeout_names_the_tool_the_seconds_and_the_option() -> None:
    async with Client(server) as client:
        with pytest.raises(RequestTimeout, match=r"tools/call 'wait' to .*no answer within 0\.0\d+ s.*total_timeout="):
            await client.call_tool("wait", total_timeout=0.05)
        with pytest.raises(RequestTimeout, match=r"tools/call 'wait' to .*progress for 0\.05 s.*raise timeout="):
            await client.call_tool("wait", timeout=0.05)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b'{"content": []}', False),
        (b'{"content": [], "isError": null}', False),
        (b'{"content":[],"isError":true}', True),
    ],
)
def test_a_server_may_leave_the_flag_out_or_send_null(sent: bytes, expected: bool) -> None:
    result = ResultReader("peer", strict=False).read("tools/call", ToolResult, msgspec.Raw(sent))
    assert result.is_error is expected


@pytest.mark.parametrize("flag", [b'"no"', b"1", b"[]"])
def test_a_flag_of_another_type_is_an_invalid_result(flag: bytes) -> None:
    with pytest.raises(InvalidResult, match="isError"):
        ResultReader("peer", strict=False).read(
            "tools/call", ToolResult, msgspec.Raw(b'{"content":[],"isError":' + flag + b"}")
        )


async def test_a_type_with_metadata_without_a_hash_is_converted() -> None:
    async with Client(server) as client:
        assert await client.call_tool("greet", type=Annotated[str, {"unhashable": []}]) == "hello"  # type: ignore[arg-type]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_encoded_arguments_are_sent_unchanged_on_one_line(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    send = MemoryTransport.send

    def spy(self: MemoryTransport, message: bytes) -> None:
        sent.append(message)
        send(self, message)

    monkeypatch.setattr(MemoryTransport, "send", spy)
    values = [b"1.10", b"1e400", b"12345678901234567890123", b'{"b":1.0,\n"a":[0.10000000000000001]}']
    async with Client(server, revisions=[revision]) as client:
        for value in values:
            with contextlib.suppress(ProtocolError):
                await client.call_tool("greet", {"x": msgspec.Raw(value)})
            (call,) = [message for message in sent if b'"tools/call"' in message]
            assert b'"arguments":{"x":%b}' % value.replace(b"\n", b" ") in call
            sent.clear()


@pytest.mark.parametrize("value", [b"", b"1 2", b"}", b"[", b"01", b"nan", b"[" * 5_000])
async def test_encoded_arguments_that_are_not_json_are_refused_before_they_are_sent(value: bytes) -> None:
    async with Client(server) as client:
        with pytest.raises(LocalProtocolError, match="the arguments cannot be encoded as JSON"):
            await client.call_tool("greet", {"x": msgspec.Raw(value)})
