"""Whatever a server says: the right answer arrives, or an error that says what came; and the connection lives on.

Each test has a real process, `hostile.py`. How servers end is in `test_dead_server`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accord import Client
from accord.errors import InvalidResult, NotSupported, ProtocolError, RemoteProtocolError, RequestTimeout
from accord.messages.content import TextContent

from tests.client import hostile
from tests.client.raw import raw_server
from tests.limits import limits_of
from tests.measure import costs_at_most, slowness

SHORT = 0.1
"""Seconds for a call that gets no answer."""


@asynccontextmanager
async def connected(
    opening: str = "fine", listing: str = "one", seconds: float = 100, **options: Any
) -> AsyncIterator[Client]:
    limits = limits_of(close_seconds=0.3, **options.pop("bounds", {}))
    async with asyncio.timeout(seconds), Client(hostile.command(opening, listing), limits=limits, **options) as client:
        yield client


async def still_there(client: Client) -> bool:
    return (await client.call_tool("fine", timeout=20)).text == "right"


# --- bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["fine", "handshake"])
@pytest.mark.parametrize("garbage", ["garbage before", "garbage after", "invalid UTF-8", "carriage returns"])
async def test_garbage_around_an_answer_is_dropped(
    garbage: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(revision) as client:
        for _ in range(3):
            assert (await client.call_tool(garbage)).text == "right"
        assert await still_there(client)
        assert client.stats.errors_sent == 0, "the client answered garbage"
    kinds = [record.getMessage().partition("(")[2].partition(")")[0] for record in caplog.records]
    assert len(kinds) == len(set(kinds)), "each kind is logged once"


async def test_a_banner_on_stdout_is_dropped_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    async with connected("banner") as client:
        assert client.revision == "2026-07-28"
        assert await still_there(client)
    (warned,) = caplog.records
    assert "hostile.py" in warned.getMessage()
    assert "not JSON" in warned.getMessage()


async def test_an_answer_over_the_limit_is_skipped_and_fails_its_call_at_once() -> None:
    async with connected(bounds={"line_bytes": 1 << 20}) as client:
        with pytest.raises(RemoteProtocolError, match=r"answer to tools/call is lost: a line of more than 1,048,576"):
            await client.call_tool("too large first", {"bytes": 3 << 20})
        assert client.stats.malformed == 1
        assert (await client.call_tool("fine")).text == "right"


async def test_an_answer_over_the_limit_whose_id_is_last_fails_its_call_when_it_ends() -> None:
    async with connected(bounds={"line_bytes": 1 << 20}) as client:
        with pytest.raises(RemoteProtocolError, match=r"answer to tools/call is lost: a line of more than 1,048,576"):
            await client.call_tool("too large with its id last", {"bytes": 3 << 20}, timeout=20)
        assert client.stats.malformed == 1
        assert await still_there(client)


async def test_a_long_line_takes_linear_time() -> None:
    async def cpu(size: int) -> float:
        began = time.process_time()
        assert len((await client.call_tool("large", {"bytes": size})).text) == size
        return time.process_time() - began

    async with connected(seconds=150) as client:
        small, large = [min([await cpu(size) for _ in range(3)]) for size in (5_000_000, 50_000_000)]
    assert large < 10**1.5 * small, (small, large)  # 10 is linear, 100 is quadratic


@pytest.mark.parametrize("endless", ["endless line", "endless garbage"])
async def test_output_without_end_costs_neither_the_timeout_nor_memory(endless: str) -> None:
    async with connected(bounds={"line_bytes": 1 << 20}) as client:
        began = time.monotonic()
        with pytest.raises(RequestTimeout, match=r"tools/call '.*' to .*hostile.py.*no answer or progress for 0.3 s"):
            await client.call_tool(endless, timeout=0.3)
        assert time.monotonic() - began < 20 * slowness()
        transport: Any = client.connection.transport
        kept = [*transport._lines._parts, transport._lines._tail]
        assert sum(map(len, kept)) <= (1 << 20) + (256 << 10)
        assert sum(map(len, transport._lines._parts)) <= 1 << 20


# --- ids -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["id as text", "unknown id", "huge id"])
async def test_an_answer_with_another_id_is_not_the_answer(wrong: str) -> None:
    async with connected() as client:
        assert (await client.call_tool(wrong)).text == "right"
        assert await still_there(client)
        stats = client.stats
        assert (stats.unknown_answers, stats.malformed + stats.ignored) in [(1, 0), (0, 1)]


@pytest.mark.parametrize("wrong", ["id as float", "id null", "id true", "id a list"])
async def test_an_answer_without_a_readable_id_ends_the_calls_that_it_may_answer(wrong: str) -> None:
    async with connected() as client:
        with pytest.raises(RemoteProtocolError, match="without a readable id arrived, perhaps to tools/call"):
            await client.call_tool(wrong)
        assert await still_there(client)


UNREADABLE = [
    r'{"jsonrpc":"2.0","id":ID,"result":{"text":"cut: \ud83d"}}',
    '{"jsonrpc":"2.0","id":ID,"result":{"value":NaN}}',
    '{"jsonrpc":"2.0","id":ID,"result":{"text":"\xff\xfe"}}',
    '[{"jsonrpc":"2.0","id":ID,"result":{}}]',
    '{"jsonrpc":"2.0","id":ID,"result":' + "[" * 50_000 + "]" * 50_000 + "}",
    '{"result":' + "[" * 50_000 + "]" * 50_000 + ',"jsonrpc":"2.0","id":ID}',
    '{"jsonrpc":"2.0","id":ID,"result":{"con',
    '{"jsonrpc":"2.0","id":ID}',
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}',
    '{"jsonrpc":"2.0"}',
]


@pytest.mark.parametrize("opening", ["fine", "handshake"])
async def test_an_answer_that_cannot_be_read_ends_its_call_at_once_with_the_reason(opening: str) -> None:
    async with connected(opening) as client:
        for text in UNREADABLE:
            with pytest.raises(RemoteProtocolError, match="tools/call"):
                await client.call_tool("instead", {"text": text})
            assert await still_there(client)


async def test_the_first_of_two_answers_counts() -> None:
    async with connected() as client:
        for _ in range(3):
            assert (await client.call_tool("twice")).text == "right"
        assert await still_there(client)
        assert client.stats.duplicate_answers == 3


async def test_an_answer_after_the_timeout_is_dropped() -> None:
    async with connected() as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("too late", timeout=SHORT)
        assert await still_there(client)
        assert client.stats.late_answers == 1


async def test_answers_in_another_order_find_their_calls() -> None:
    async with connected() as client:
        calls = (client.call_tool("reversed", {"calls": 100, "text": str(n)}) for n in range(100))
        assert [result.text for result in await asyncio.gather(*calls)] == [str(n) for n in range(100)]


# --- answers that are none -------------------------------------------------------------------------------------------

RESULT = hostile.said("text")
NO_ANSWERS: list[tuple[dict[str, Any], str]] = [
    ({"jsonrpc": "2.0"}, "neither"),
    ({"jsonrpc": "2.0", "result": RESULT, "error": {"code": 1, "message": "m"}}, "both a result and an error"),
    ({"jsonrpc": "2.0", "error": "broken"}, "error"),
    ({"jsonrpc": "2.0", "error": None}, "error"),
    ({"jsonrpc": "2.0", "error": {}}, "error"),
    ({"jsonrpc": "2.0", "error": {"code": "E", "message": "m"}}, "error"),
    ({"jsonrpc": "2.0", "error": {"code": 1.5, "message": "m"}}, "error"),
    ({"jsonrpc": "2.0", "error": {"code": 1, "message": 5}}, "error"),
    ({"jsonrpc": "1.0", "result": RESULT}, "1.0"),
    ({"result": RESULT}, "jsonrpc"),
    ({"jsonrpc": "2.0", "result": None}, "null"),
    ({"jsonrpc": "2.0", "result": []}, "array"),
    ({"jsonrpc": "2.0", "result": {}}, "content"),
    ({"jsonrpc": "2.0", "result": {"content": 5}}, "content"),
    ({"jsonrpc": "2.0", "result": {"content": [5]}}, "content"),
    ({"jsonrpc": "2.0", "result": {"content": [{"type": ["text"]}]}}, "content"),
    ({"jsonrpc": "2.0", "result": {"content": [], "isError": "yes"}}, "isError"),
    ({"jsonrpc": "2.0", "result": {**RESULT, "resultType": 5}}, "resultType"),
    ({"jsonrpc": "2.0", "result": {**RESULT, "resultType": "dream"}}, "unknown resultType 'dream'"),
    ({"jsonrpc": "2.0", "result": {"resultType": "dream", "content": 5}}, "unknown resultType 'dream'"),
    ({"jsonrpc": "2.0", "result": {"resultType": "task", "task": {}}}, "task"),  # a task without an id, or none at all
]  # fmt: skip


@pytest.mark.parametrize("opening", ["fine", "handshake"])
async def test_an_answer_that_is_none_fails_its_call_at_once(opening: str) -> None:
    async with connected(opening) as client:
        for fields, says in NO_ANSWERS:
            with pytest.raises(RemoteProtocolError) as raised:
                await client.call_tool("raw", fields, timeout=20)
            assert says in str(raised.value), fields
            assert "hostile.py" in str(raised.value)
            assert "tools/call" in str(raised.value)
            if isinstance(raised.value, InvalidResult):
                assert json.loads(raised.value.raw) == fields["result"]
        assert await still_there(client)


async def test_a_question_is_distinguished_from_a_result() -> None:
    async with connected() as client:
        asked = {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}}
        with pytest.raises(NotSupported, match="asks for roots/list, which this client does not answer"):
            await client.call_tool("result", {"result": asked})


async def test_an_error_of_any_code_has_the_text_of_the_server() -> None:
    async with connected() as client:
        for code in (-1, 0, 1, -32000, -32099, 2**53, -32603):
            error = {"code": code, "message": "the disk is full", "data": {"free": 0}}
            with pytest.raises(ProtocolError, match="the disk is full") as raised:
                await client.call_tool("raw", {"jsonrpc": "2.0", "error": error}, timeout=20)
            assert (raised.value.code, raised.value.data) == (code, {"free": 0})


HOLOGRAM = {"type": "hologram", "rays": [1, {"deep": None}]}
UNKNOWN = [HOLOGRAM, {"type": 5}, {"text": "of no kind"}]


async def test_content_of_an_unknown_kind_stays_as_it_came() -> None:
    async with connected() as client:
        result = await client.call_tool("result", {"result": {"content": [*UNKNOWN, {"type": "text", "text": "x"}]}})
        assert result.content == [*UNKNOWN, TextContent(text="x")]
        assert result.text == "x"
        prompt = await client.get_prompt("any", {"result": {"messages": [{"role": "user", "content": HOLOGRAM}]}})  # type: ignore[dict-item]
        assert prompt.messages[0].content == HOLOGRAM


async def test_content_of_an_unknown_kind_is_an_error_on_request() -> None:
    async with connected(strict=True) as client:
        with pytest.raises(InvalidResult, match="hologram"):
            await client.call_tool("result", {"result": {"content": [HOLOGRAM]}})
        with pytest.raises(InvalidResult, match="hologram"):
            await client.get_prompt("any", {"result": {"messages": [{"role": "user", "content": HOLOGRAM}]}})  # type: ignore[dict-item]


# --- what comes unasked ----------------------------------------------------------------------------------------------


async def test_a_flood_of_notifications_does_not_hold_up_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with connected() as client:
        assert (await client.call_tool("flood", {"times": 100_000})).text == "right"
        assert client.stats.received > 100_000
    assert len(caplog.records) <= 4


async def test_requests_of_the_server_are_refused_and_its_ping_is_answered() -> None:
    methods = ["ping", "roots/list", "sampling/createMessage", "elicitation/create", "un/heard", "initialize"]
    for opening, ping in [("fine", -32601), ("handshake", None)]:
        async with connected(opening) as client:
            answers = json.loads((await client.call_tool("asks", {"methods": methods})).text)
            assert [answer.get("code") for answer in answers] == [ping] + [-32601] * 5
            assert all(method in answer["message"] for method, answer in zip(methods[1:], answers[1:], strict=True))
            assert ping is not None or answers[0] == {}
            assert await still_there(client)


async def test_a_server_that_sends_requests_and_never_reads_costs_neither_the_timeout_nor_memory() -> None:
    async with connected(bounds={"line_bytes": 1 << 20}) as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("asks and never reads", timeout=0.5)
        transport: Any = client.connection.transport
        assert transport._writer.pending < 4 << 20


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list"])
@pytest.mark.parametrize("bound", ["timeout", "total_timeout"])
async def test_requests_of_the_server_without_end_do_not_cost_the_timeout(method: str, bound: str) -> None:
    async def answer() -> None:
        await asyncio.sleep(0.01)  # so that some handler is always at work

    async def roots() -> list[str]:
        await answer()
        return []

    handlers: Any = {"sampling": answer, "elicitation": answer, "roots": roots}
    async with connected("handshake", seconds=20, **handlers) as client:
        times: dict[str, Any] = {bound: 0.2}
        with pytest.raises(RequestTimeout):
            await client.call_tool("asks without end", {"method": method}, **times)


@pytest.mark.parametrize(
    ("tool", "seen"), [("progress decreases", [1, 3, 4]), ("progress of nobody", [1, 2]), ("progress after", [])]
)
async def test_progress_that_makes_no_sense_is_dropped(tool: str, seen: list[float]) -> None:
    reports: list[float] = []
    async with connected() as client:
        for asked in (True, False):
            callback = (lambda progress, *_: reports.append(progress)) if asked else None
            assert (await client.call_tool(tool, on_progress=callback)).text == "right"
        assert await still_there(client)
    assert reports == seen


async def test_a_callback_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("mine")

    async with connected() as client:
        assert (await client.call_tool("progress decreases", on_progress=fails)).text == "right"
    assert caplog.text.count("a callback failed") == 1


# --- lists and schemas -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("listing", ["same cursor", "same cursor, no items", "new cursors", "full pages for ever"])
async def test_pages_without_end_are_an_error_that_names_the_limits(listing: str) -> None:
    async with connected(listing=listing, bounds={"client_pages": 200, "client_items": 5_000}) as client:
        with pytest.raises(RemoteProtocolError, match=r"tools/list is too long: [\d,]+ items .*200 pages, 5,000 items"):
            await client.list_tools()
        assert await still_there(client)


async def test_an_empty_cursor_is_followed() -> None:
    async with connected(listing="empty cursor") as client:
        assert len(await client.list_tools()) == 2


async def test_a_hundred_thousand_tools_are_taken() -> None:
    async with connected(listing="many") as client:
        with costs_at_most(500):
            assert len(await client.list_tools()) == 100_000


@pytest.mark.parametrize("listing", ["no list", "cursor is no text"])
async def test_a_list_that_is_none_is_an_error(listing: str) -> None:
    async with connected(listing=listing) as client:
        with pytest.raises(InvalidResult, match=r"hostile.py.*tools/list.*(tools|nextCursor)"):
            await client.list_tools()


_DOUBLED = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}
UNUSABLE: dict[str, Any] = {
    "remote reference": {"$ref": "http://127.0.0.1:9/schema.json"},
    "file reference": {"$ref": "file:///etc/passwd"},
    "reference to itself": {"$ref": "#"},
    "loop": {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    "dangling": {"$ref": "#/$defs/nowhere"},
    "place that no list has": {"allOf": [{}], "$ref": "#/allOf/" + "9" * 5_000},
    "bomb": {"$defs": {**_DOUBLED, "d30": {}}, "$ref": "#/$defs/d0"},
    "no schema": {"type": "dream"},
    "unheard dialect": {"$schema": "https://example.com/mine"},
    "dialect is no text": {"$schema": 5},
    "no pattern": {"properties": {"a": {"pattern": "("}}},
    "huge pattern": {"properties": {"a": {"pattern": "((a{1,1000}){1,1000}){1,1000}"}}},
    "deep": json.loads('{"items":' * 200 + "{}" + "}" * 200),
}
BROKEN: dict[str, Any] = {
    "catastrophic pattern": {"properties": {"a": {"pattern": "^(a+)+$"}}},
    "backtracking pattern": {"properties": {"a": {"pattern": "^(?=(a+)+$)(a|aa)+$"}}},
    "no match": {"type": "array"},
    "properties is a list": {"properties": {"result": {}}, "required": ["result"]},
}
VALUE = {"a": "a" * 50 + "!", "other": [1, None]}


@pytest.mark.parametrize("name", [*UNUSABLE, *BROKEN])
async def test_a_hostile_output_schema_costs_a_warning_and_never_the_result(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    schema = {**UNUSABLE, **BROKEN}[name]
    async with connected(listing=json.dumps(schema)) as client:
        for _ in range(2):
            with costs_at_most(300):
                result = await client.call_tool("structured", {"value": VALUE})
            assert result.structured_content == result.data == VALUE
    assert "hostile.py" in caplog.records[0].getMessage()
    assert "tool 'structured'" in caplog.records[0].getMessage()
    assert len(caplog.records) == (1 if name in UNUSABLE else 2)


@pytest.mark.parametrize("name", [*UNUSABLE, *BROKEN])
async def test_a_hostile_output_schema_is_an_error_on_request(name: str) -> None:
    async with connected(listing=json.dumps({**UNUSABLE, **BROKEN}[name]), strict=True) as client:
        for _ in range(2):
            with pytest.raises(InvalidResult, match=r"hostile.py.*tool 'structured'"):
                await client.call_tool("structured", {"value": VALUE})
        assert await still_there(client)


@pytest.mark.parametrize("schema", [{"properties": 5}, {"properties": None, "required": ["result"]}])
async def test_data_of_a_schema_that_is_none_is_the_content_as_it_came(schema: Any) -> None:
    async with connected(listing=json.dumps(schema)) as client:
        assert (await client.call_tool("structured", {"value": {"result": 1}})).data == {"result": 1}


@pytest.mark.parametrize("listing", ["refused", "silent", "no list", "same cursor, no items"])
async def test_a_result_is_not_lost_because_the_tools_cannot_be_listed(
    listing: str, caplog: pytest.LogCaptureFixture
) -> None:
    patience = 6 if listing == "silent" else 100  # the call is answered well before that
    async with connected(listing=listing, bounds={"client_pages": 10}) as client:
        for _ in range(2):
            result = await client.call_tool("structured", {"value": VALUE}, timeout=patience)
            assert result.data == VALUE
    (warned,) = (record for record in caplog.records if record.levelno == logging.WARNING)
    assert "tool 'structured'" in warned.getMessage()
    async with connected(listing=listing, bounds={"client_pages": 10}, strict=True) as client:
        for _ in range(2):
            with pytest.raises(InvalidResult, match="not checked, for lack of its schema: "):
                await client.call_tool("structured", {"value": VALUE}, timeout=patience)


async def test_a_single_page_with_too_many_items_is_refused() -> None:
    async with connected(listing="many", bounds={"client_items": 5_000}) as client:
        with pytest.raises(RemoteProtocolError, match=r"tools/list is too long: 100,000 items .* 5,000 items"):
            await client.list_tools()
        assert await still_there(client)


async def test_the_pages_of_a_list_are_bounded_in_bytes() -> None:
    async with connected(listing="full pages for ever", bounds={"client_list_bytes": 1_000_000}) as client:
        with pytest.raises(RemoteProtocolError, match=r"tools/list is too long: [\d,]+ items in 1,\d+,\d+ bytes"):
            await client.list_tools()
        assert await still_there(client)


LISTED = {
    "tools/list": ("list_tools", {"tools": [{"name": "good", "inputSchema": {"type": "object"}}]}),
    "prompts/list": ("list_prompts", {"prompts": [{"name": "good"}]}),
    "resources/list": ("list_resources", {"resources": [{"name": "good", "uri": "a://b"}]}),
    "resources/templates/list": (
        "list_resource_templates",
        {"resourceTemplates": [{"name": "good", "uriTemplate": "a://{b}"}]},
    ),
}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("method", LISTED)
async def test_an_invalid_item_is_left_out_of_a_list_and_reported(
    method: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    function, result = LISTED[method]
    (field,) = result
    for strict, items, listed in (
        (False, [*result[field], {"name": 5}, "x"], 1),
        (True, [*result[field], {"name": 5}, "x"], None),
        (False, [{"name": 5}, "x"], None),
    ):
        async with raw_server(revision, strict=strict) as (server, client):
            call = asyncio.ensure_future(getattr(client, function)())
            server.answer(await server.hear(), **{field: items}, ttlMs=0, cacheScope="private")
            if listed is None:
                with pytest.raises(InvalidResult, match=method):
                    await call
            else:
                assert [each.name for each in await call] == ["good"]
                assert f"{method}: an invalid item is left out, and 1 more" in caplog.text
