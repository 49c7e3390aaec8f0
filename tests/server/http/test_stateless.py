"""2026-07-28 over HTTP: one POST is one exchange, and its headers say the same as its body."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest

from accord import Context, Header, Principal, Provided, Provider, Server, Tool, ToolAnnotations, ToolChange
from accord.messages.revision import HANDSHAKE
from accord.server.auth.api_keys import APIKeys
from accord.server.http.options import HTTPOptions

from tests.server.http.http_clients import (
    LATEST,
    META,
    Legacy,
    Modern,
    Stateful,
    both_ways,
    encode,
    notification,
    quick,
    request,
    sentinel,
    site,
    text,
    until,
)
from tests.server.http.raw import BASIC, JSON, SECONDS
from tests.server.json_grammar import VALUES, judge


def desk(**options: Any) -> Server:
    server = Server("desk", "1", **{"limits": quick(), **options})

    @server.tool
    async def echo(text: str) -> str:
        return text

    @server.tool
    async def take(value: Any) -> str:
        return "taken"

    @server.tool
    async def steps(ctx: Context, count: int) -> str:
        for step in range(count):
            ctx.report_progress(step + 1, count)
            ctx.info(f"step {step}")
            await asyncio.sleep(0)
        return "done"

    @server.tool
    async def ask(ctx: Context) -> str:
        return str((await ctx.elicit("which?", str)).action)

    @server.tool
    async def query(
        region: Annotated[str, Header("Region")],
        limit: Annotated[int, Header("Limit")] = 10,
        fresh: Annotated[bool, Header("Fresh")] = False,
    ) -> str:
        return f"{region} {limit} {fresh}"

    @server.resource("desk://notes/{name}")
    async def notes(name: str) -> str:
        return f"notes of {name}"

    @server.prompt
    async def greet(name: str) -> str:
        return f"greet {name}"

    return server


# --- what a request is answered ----------------------------------------------------------------------------------


@both_ways
async def test_a_call_with_nothing_to_stream_is_answered_with_json(way: str) -> None:
    async with site(desk(), way) as here:
        answer = await Modern(here.raw).call("echo", {"text": "hello"}, id="7")
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        said = await answer.json()
        assert (said["id"], text(said)) == ("7", "hello")
        assert "mcp-session-id" not in answer.headers


@both_ways
async def test_a_call_that_reports_is_answered_with_events_without_ids(way: str) -> None:
    async with site(desk(), way) as here:
        answer = await Modern(here.raw).call("steps", {"count": 3}, progressToken="p", logLevel="info")
        assert answer.streams
        assert answer.headers["x-accel-buffering"] == "no"
        assert "no-cache" in answer.headers["cache-control"]
        events = await answer.events()
        assert [event.id for event in events] == [None] * 7
        assert [event.data.get("method", "answer").rpartition("/")[2] for event in events] == [
            *["progress", "message"] * 3,
            "answer",
        ]
        assert text(events[-1].data) == "done"


async def test_an_id_is_answered_with_its_json_type() -> None:
    async with site(desk()) as here:
        for id in (7, "7", 0, -1, "", "é", 2**53 - 1):
            assert (await (await Modern(here.raw).call("echo", {"text": "x"}, id=id)).json())["id"] == id


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("server/discover", {}),
        ("tools/list", {}),
        ("resources/list", {}),
        ("resources/read", {"uri": "desk://notes/ann"}),
        ("prompts/get", {"name": "greet", "arguments": {"name": "ann"}}),
    ],
)
async def test_each_method_is_answered_in_a_post_of_its_own(method: str, params: JSON) -> None:
    async with site(desk()) as here:
        answer = await Modern(here.raw).ask(method, params)
        assert answer.status == 200
        assert "result" in await answer.json()


@pytest.mark.parametrize(
    ("method", "members", "status"),
    [
        ("tools/call", '"name":"x","name":"echo","arguments":{}', 200),
        ("tools/call", '"name":"echo","arguments":{"text":"a"},"arguments":{"text":"b"}', 200),
        ("tools/call", '"name":"echo","arguments":{"text":"a","text":"b"}', 200),
        ("tools/call", '"name":"echo","arguments":[]', 200),
        ("tools/call", '"name":"echo","arguments":{},"_meta":{}', 200),
        ("tools/list", '"cursor":"a","cursor":"b"', 200),
        ("tools/list", '"cursor":5', 200),
        ("tools/call", '"name":"echo","arguments":{"text":"a"},"_meta":{"x":1,"x":2,', 400),
        ("tools/call", '"name":"echo","arguments":{"text":"a"},"_meta":{"progressToken":[],', 400),
    ],
)
async def test_an_error_in_the_meta_is_400_and_one_in_other_params_200(method: str, members: str, status: int) -> None:
    meta = json.dumps({META + "protocolVersion": LATEST, META + "clientCapabilities": {}})
    params = members + meta[1:] if members.endswith(",") else f'{members},"_meta":{meta}'
    headers = {**BASIC, "mcp-protocol-version": LATEST, "mcp-method": method, "mcp-name": "echo"}
    body = f'{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{{{params}}}}}'.encode()
    async with site(desk()) as here:
        answer = await (await here.raw.begin("POST", "/mcp", headers, body)).start()
        assert (answer.status, (await answer.json())["error"]["code"]) == (status, -32602)


# --- the table of eras -------------------------------------------------------------------------------------------

WITHOUT = {META + "clientCapabilities": {}}
ERAS: list[tuple[str, str | None, str | None, int, int | None]] = [
    # name, header, revision in `_meta`, status, code
    ("both say 2026-07-28", LATEST, LATEST, 200, None),
    ("_meta without a header", None, LATEST, 400, -32020),
    ("_meta, and another header of a revision that is spoken", "2025-11-25", LATEST, 400, -32020),
    ("_meta, and a header that nobody knows", "1999-01-01", LATEST, 400, -32020),
    ("_meta, and an empty header", "", LATEST, 400, -32020),
    ("both unknown", "2099-01-01", "2099-01-01", 400, -32022),
    ("both older, where _meta has no business", "2025-11-25", "2025-11-25", 400, None),
    ("a header, and no revision in _meta", LATEST, None, 400, -32602),
    ("a header, and another revision in _meta", LATEST, "2025-11-25", 400, -32020),
    ("a header, and one in _meta that nobody knows", LATEST, "2099-01-01", 400, -32020),
    ("an unknown header alone", "2099-01-01", None, 400, -32022),
    ("nothing at all, and no session", None, None, 400, -32600),
]


@pytest.mark.parametrize(("header", "named", "status", "code"), [row[1:] for row in ERAS], ids=[row[0] for row in ERAS])
async def test_the_era_of_a_post(header: str | None, named: str | None, status: int, code: int | None) -> None:
    async with site(desk()) as here:
        client = Modern(here.raw)
        meta = WITHOUT if named is None else {**WITHOUT, META + "protocolVersion": named}
        message = request("tools/call", {"name": "echo", "arguments": {"text": "x"}, "_meta": meta}, id=5)
        answer = await client.post(message, mcp_protocol_version=header)
        said = await answer.json()
        assert answer.status == status, said
        if code is not None:
            assert said["error"]["code"] == code, said
            assert said["id"] == 5
        if code == -32022:
            assert said["error"]["data"] == {"supported": [LATEST], "requested": header}


@pytest.mark.parametrize("params", [None, {}, {"_meta": {}}, {"_meta": {META + "protocolVersion": LATEST}}])
async def test_a_request_without_all_of_its_meta_is_400_and_invalid_params(params: JSON | None) -> None:
    async with site(desk()) as here:
        answer = await Modern(here.raw).post(request("tools/list", params))
        assert answer.status == 400
        assert (await answer.json())["error"]["code"] == -32602


@pytest.mark.parametrize("header", ["mcp-session-id", "last-event-id"])
async def test_what_belongs_to_sessions_is_ignored(header: str) -> None:
    async with site(desk()) as here:
        client = Modern(here.raw, **{header: "anything-1"})
        assert text(await (await client.call("echo", {"text": "x"})).json()) == "x"


@both_ways
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"])
async def test_another_method_than_post_is_405_and_says_what_is_allowed(method: str, way: str) -> None:
    async with site(desk(), way) as here:
        answer = await here.raw.send(method, "/mcp", {**BASIC, "mcp-protocol-version": LATEST})
        assert answer.status == 405
        assert "POST" in answer.headers["allow"]
        await answer.end()


async def test_a_get_or_delete_of_a_revision_that_nobody_knows_is_400() -> None:
    async with site(desk()) as here:
        client = await Stateful(here.raw).open()
        for method in ("GET", "DELETE"):
            answer = await client.send(method, mcp_protocol_version="2099-01-01")
            assert answer.status == 400, method
            assert "2099-01-01" in (await answer.json())["error"]["message"]
        assert (await client.ask("ping")).status == 200


async def test_a_handshake_leaves_nothing_to_requests_of_their_own() -> None:
    async with site(desk()) as here:
        old, new = await Stateful(here.raw).open(), Modern(here.raw)
        await (await old.ask("logging/setLevel", {"level": "debug"})).end()
        assert not (await new.call("steps", {"count": 1})).streams
        refused = await new.call("ask")
        assert (refused.status, (await refused.json())["error"]["code"]) == (400, -32021)


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


@pytest.mark.parametrize(("method", "params"), [("initialize", HELLO), ("ping", {})])
async def test_a_method_of_the_handshake_without_meta_is_refused_and_changes_no_later_request(
    method: str, params: JSON
) -> None:
    async with site(desk()) as here:
        client = Modern(here.raw)
        for _ in range(2):
            refused = await client.post(request(method, params))
            assert (refused.status, (await refused.json())["error"]["code"]) == (400, -32602)
        await (await client.post(notification("notifications/initialized"))).end()
        refused = await client.post(request("tools/call", {"name": "echo", "arguments": {"text": "x"}}))
        assert (refused.status, (await refused.json())["error"]["code"]) == (400, -32602)
        assert text(await (await client.call("echo", {"text": "x"})).json()) == "x"


@pytest.mark.parametrize("stateless", [False, True])
async def test_a_list_that_the_server_offers_later_is_offered_to_addresses_that_connected_before(
    stateless: bool,
) -> None:
    server = Server("desk", "1", limits=quick())

    @server.tool
    async def echo(text: str) -> str:
        return text

    async with site(server, options=HTTPOptions(stateless=stateless)) as here:
        new, old = Modern(here.raw), Stateful(here.raw, **{"mcp-protocol-version": "2025-11-25"})
        clients = (new, old) if stateless else (new,)
        for client in clients:
            assert (await (await client.ask("prompts/list")).json())["error"]["code"] == -32601

        @server.prompt
        async def greet(name: str) -> str:
            return f"greet {name}"

        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for client in clients:
            listed = (await (await client.ask("prompts/list")).json())["result"]
            assert [prompt["name"] for prompt in listed["prompts"]] == ["greet"]
        discovered = (await (await new.ask("server/discover")).json())["result"]
        assert "prompts" in discovered["capabilities"]


# --- the table of statuses ---------------------------------------------------------------------------------------

STATUSES: list[tuple[str, str, JSON, int, int]] = [
    ("a method of no revision", "tools/guess", {}, 404, -32601),
    ("a method of older revisions: initialize", "initialize", {}, 404, -32601),
    ("a method of older revisions: ping", "ping", {}, 404, -32601),
    ("a method of older revisions: logging/setLevel", "logging/setLevel", {"level": "info"}, 404, -32601),
    ("a method of older revisions: subscribe", "resources/subscribe", {"uri": "desk://notes/ann"}, 404, -32601),
    ("a method of older revisions: unsubscribe", "resources/unsubscribe", {"uri": "desk://notes/ann"}, 404, -32601),
    ("a method that only servers send", "elicitation/create", {}, 404, -32601),
    ("a method behind a capability that is not there", "completion/complete", {}, 404, -32601),
    ("a capability that the client has not", "tools/call", {"name": "ask", "arguments": {}}, 400, -32021),
    ("a tool that is not there", "tools/call", {"name": "none", "arguments": {}}, 200, -32602),
    ("arguments that are no object", "tools/call", {"name": "echo", "arguments": [1]}, 200, -32602),
    ("params that do not fit", "prompts/get", {"name": "greet", "arguments": 7}, 200, -32602),
    ("a resource that is not there", "resources/read", {"uri": "desk://none"}, 200, -32602),
    ("a prompt that is not there", "prompts/get", {"name": "none"}, 200, -32602),
    ("a cursor that is none", "tools/list", {"cursor": "none"}, 200, -32602),
]


@pytest.mark.parametrize(
    ("method", "params", "status", "code"), [row[1:] for row in STATUSES], ids=[row[0] for row in STATUSES]
)
async def test_the_status_of_an_error(method: str, params: JSON, status: int, code: int) -> None:
    async with site(desk()) as here:
        answer = await Modern(here.raw).ask(method, params, id="e")
        said = await answer.json()
        assert (answer.status, said["error"]["code"], said["id"]) == (status, code, "e"), said
        if code == -32021:
            assert said["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


async def test_arguments_that_do_not_fit_are_a_result() -> None:
    async with site(desk()) as here:
        answer = await Modern(here.raw).call("echo", {"text": 7})
        assert answer.status == 200
        assert (await answer.json())["result"]["isError"] is True


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("method", ["notifications/cancelled", "notifications/progress", "notifications/none"])
async def test_a_notification_is_202_without_a_body_whatever_its_headers(method: str, named: bool) -> None:
    async with site(desk()) as here:
        answer = await Modern(here.raw).post(
            notification(method, {"requestId": 1}), **({} if named else {"mcp_method": None})
        )
        assert (answer.status, await answer.body()) == (202, b"")


async def test_a_cancel_that_is_posted_ends_nobodys_call() -> None:
    """ "Closing the SSE response stream MUST be treated by the server as cancellation of that request": no other is."""
    server, release = desk(), asyncio.Event()

    @server.tool
    async def waits() -> str:
        await release.wait()
        return "to the end"

    async with site(server) as here:
        client = Modern(here.raw)
        call = asyncio.create_task(client.call("waits", id=3))
        await until(here.busy)
        await client.post(notification("notifications/cancelled", {"requestId": 3}))
        release.set()
        assert text(await (await call).json()) == "to the end"


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
        b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
        b"[]",
        b"{}",
        b"",
        b"7",
        b"null",
        b'{"jsonrpc":"2.0","id":1',
        b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}',
        b"\xff\xfe{\x00}\x00",
    ],
)
async def test_a_body_that_is_no_request_is_400_and_the_next_one_is_served(body: bytes) -> None:
    async with site(desk()) as here:
        client = Modern(here.raw)
        headers = {**client.headers, "mcp-protocol-version": LATEST, "mcp-method": "tools/list"}
        answer = await here.raw.send("POST", "/mcp", headers, body)
        assert answer.status == 400
        assert (await answer.json())["error"]["code"] in (-32700, -32600, -32602)
        assert (await client.ask("tools/list")).status == 200


# --- headers and body --------------------------------------------------------------------------------------------

CALL = request(
    "tools/call",
    {"name": "echo", "arguments": {"text": "x"}, "_meta": {META + "protocolVersion": LATEST, **WITHOUT}},
)
MISMATCHES: list[tuple[str, JSON]] = [
    ("no Mcp-Method", {"mcp_method": None}),
    ("an empty Mcp-Method", {"mcp_method": ""}),
    ("another Mcp-Method", {"mcp_method": "tools/list"}),
    ("an Mcp-Method in capitals", {"mcp_method": "TOOLS/CALL"}),
    ("two values in Mcp-Method", {"mcp_method": "tools/call, tools/list"}),
    ("no Mcp-Name", {"mcp_name": None}),
    ("an empty Mcp-Name", {"mcp_name": ""}),
    ("another Mcp-Name", {"mcp_name": "steps"}),
    ("an Mcp-Name in capitals", {"mcp_name": "Echo"}),
    ("an Mcp-Name that begins alike", {"mcp_name": "echo2"}),
    ("an Mcp-Name of broken base64", {"mcp_name": "=?base64?ZWNobw?="}),
    ("an Mcp-Name of base64 that is no UTF-8", {"mcp_name": "=?base64?/w==?="}),
    ("an Mcp-Name of base64 of another name", {"mcp_name": sentinel("steps")}),
    ("an Mcp-Name of a wrapper without its end", {"mcp_name": "=?base64?ZWNobw=="}),
]


@pytest.mark.parametrize("headers", [row[1] for row in MISMATCHES], ids=[row[0] for row in MISMATCHES])
async def test_headers_that_say_something_else_than_the_body_are_400(headers: JSON) -> None:
    async with site(desk()) as here:
        answer = await Modern(here.raw).post(CALL, **headers)
        said = await answer.json()
        assert (answer.status, said["error"]["code"], said["id"]) == (400, -32020, 1), said


@pytest.mark.parametrize("name", ["echo", sentinel("echo")])
async def test_a_name_may_be_plain_or_encoded(name: str) -> None:
    async with site(desk()) as here:
        assert text(await (await Modern(here.raw).post(CALL, mcp_name=name)).json()) == "x"


@both_ways
async def test_a_name_that_is_no_ascii_comes_encoded(way: str) -> None:
    server = desk()
    server.tool(name="größe")(lambda: "groß")
    async with site(server, way) as here:
        client = Modern(here.raw)
        params = {"name": "größe", "arguments": {}, "_meta": client.meta()}
        answer = await client.post(request("tools/call", params), mcp_name=sentinel("größe"))
        assert text(await answer.json()) == "groß"


QUERIES: list[tuple[str, JSON, JSON, bool]] = [
    ("as it is", {"region": "eu"}, {"mcp-param-region": "eu"}, True),
    ("encoded", {"region": "grün"}, {"mcp-param-region": sentinel("grün")}, True),
    ("what looks encoded, encoded", {"region": "=?base64?x?="}, {"mcp-param-region": sentinel("=?base64?x?=")}, True),
    ("numbers", {"region": "eu", "limit": 42}, {"mcp-param-region": "eu", "mcp-param-limit": "42"}, True),
    (
        "numbers in another form",
        {"region": "eu", "limit": 42.0},
        {"mcp-param-region": "eu", "mcp-param-limit": "42"},
        True,
    ),
    ("truth", {"region": "eu", "fresh": True}, {"mcp-param-region": "eu", "mcp-param-fresh": "true"}, True),
    ("null, and no header", {"region": "eu", "limit": None}, {"mcp-param-region": "eu"}, True),
    (
        "another header that nobody asked for",
        {"region": "eu"},
        {"mcp-param-region": "eu", "mcp-param-other": "1"},
        True,
    ),
    ("missing", {"region": "eu"}, {}, False),
    ("different", {"region": "eu"}, {"mcp-param-region": "us"}, False),
    ("capitals", {"region": "eu"}, {"mcp-param-region": "EU"}, False),
    ("null, and a header", {"region": "eu", "limit": None}, {"mcp-param-region": "eu", "mcp-param-limit": "1"}, False),
    ("absent, and a header", {"region": "eu"}, {"mcp-param-region": "eu", "mcp-param-limit": "1"}, False),
    ("another number", {"region": "eu", "limit": 42}, {"mcp-param-region": "eu", "mcp-param-limit": "43"}, False),
    (
        "truth in another form",
        {"region": "eu", "fresh": True},
        {"mcp-param-region": "eu", "mcp-param-fresh": "1"},
        False,
    ),
    ("broken base64", {"region": "eu"}, {"mcp-param-region": "=?base64?!!?="}, False),
]


@pytest.mark.parametrize(
    ("arguments", "headers", "fits"), [row[1:] for row in QUERIES], ids=[row[0] for row in QUERIES]
)
async def test_an_argument_that_is_mirrored_in_a_header_is_checked(arguments: JSON, headers: JSON, fits: bool) -> None:
    async with site(desk()) as here:
        client = Modern(here.raw)
        params = {"name": "query", "arguments": arguments, "_meta": client.meta()}
        answer = await client.post(request("tools/call", params), **headers)
        said = await answer.json()
        if fits:
            assert (answer.status, "error" in said) == (200, False), said
        else:
            assert (answer.status, said["error"]["code"]) == (400, -32020), said


def region(region: Annotated[str, Header("Region")]) -> str:
    return region


class Regions(Provider):
    """A tool that is not declared."""

    async def tools(self) -> list[Provided]:
        place = {"type": "string", "x-mcp-header": "Region"}
        schema = {"type": "object", "properties": {"region": place}}
        return [Provided(Tool(name="provided", input_schema=schema), lambda arguments: arguments["region"])]


REGIONS = ("scoped", "provided", "newest", "versions", "inner_changed")


def regions() -> Server:
    """Tools that not everybody sees, that are provided, or that there are several versions of."""
    who = Principal("ann", frozenset({"a"}))
    server = Server("desk", limits=quick(), auth=APIKeys({"key": who}))
    server.tool(scopes={"a"}, name="scoped")(region)
    server.add_provider(Regions())
    server.tool(name="newest", version="1")(lambda: "")
    server.tool(name="newest", version="2")(region)
    server.tool(name="versions", version="1")(region)
    server.tool(name="versions", version="2", scopes={"b"})(lambda region: "")
    inner = Server("inner")
    inner.tool(scopes={"a"}, name="region")(region)
    server.mount(inner, "inner")
    server.change_tool("inner_region", ToolChange(name="inner_changed"))
    return server


@pytest.mark.parametrize("tool", REGIONS)
async def test_an_argument_is_checked_of_whichever_tool_is_called(tool: str) -> None:
    async with site(regions()) as here:
        client = Modern(here.raw, authorization="Bearer key")
        call = client.calling(tool, {"region": "eu"})
        assert text(await (await client.post(call, mcp_param_region="eu")).json()) == "eu"
        for headers in ({"mcp_param_region": "us"}, {}):
            answer = await client.post(call, **headers)
            assert (answer.status, (await answer.json())["error"]["code"]) == (400, -32020)


async def test_a_header_says_nothing_of_a_tool_that_is_called_by_another() -> None:
    server = regions()
    server.search_tools(budget=1)
    async with site(server) as here:
        client = Modern(here.raw, authorization="Bearer key")
        answer = await client.call("call_tool", {"name": "scoped", "arguments": {"region": "eu"}})
        assert text(await answer.json()) == "eu"


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_older_revisions_know_nothing_of_these_headers(revision: str) -> None:
    async with site(desk()) as here:
        client = await Stateful(here.raw, revision).open()
        answer = await client.call("query", {"region": "eu"})
        assert text(await answer.json()) == "eu 10 False"


# --- what is checked before a body is read -----------------------------------------------------------------------

TYPES: list[tuple[str | None, int]] = [
    ("application/json", 200),
    ("application/json; charset=utf-8", 200),
    ('APPLICATION/JSON;charset="UTF-8"', 200),
    (None, 415),
    ("", 415),
    ("text/plain", 415),
    ("application/x-www-form-urlencoded", 415),
    ("multipart/form-data; boundary=application/json", 415),
    ("text/plain; application/json", 415),
    ("application/jsonp", 415),
    ("application/json; charset=utf-16", 415),
]
CODINGS: list[tuple[str | None, int]] = [
    ("identity", 200),
    ("Identity", 200),
    ("", 200),
    ("gzip", 415),
    ("identity, br", 415),
    ("utf-8", 415),
]
ACCEPTS: list[tuple[str | None, int]] = [
    ("application/json, text/event-stream", 200),
    ("text/event-stream,application/json;q=0.1", 200),
    ("*/*", 200),
    ("application/*, text/*", 200),
    (None, 200),
    ("application/json", 406),
    ("text/event-stream", 406),
    ("application/json, text/event-stream;q=0", 406),
    ("text/html", 406),
    ("", 406),
]


@pytest.mark.parametrize("era", ["alone", "session"])
@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        *[("content_type", *row) for row in TYPES],
        *[("content_encoding", *row) for row in CODINGS],
        *[("accept", *row) for row in ACCEPTS],
    ],
)
async def test_the_types_of_a_post(header: str, value: str | None, status: int, era: str) -> None:
    async with site(desk()) as here:
        headers: dict[str, str | None] = {header: value}
        if era == "alone":
            answer = await Modern(here.raw).post(CALL, **headers)
        else:
            answer = await Stateful(here.raw).post(Stateful(here.raw).hello(), **headers)
        assert answer.status == status, await answer.body()


@pytest.mark.parametrize("accept", ["application/json", "text/html", ""])
async def test_a_get_that_takes_no_events_is_406(accept: str) -> None:
    async with site(desk()) as here:
        client = await Stateful(here.raw).open()
        assert (await client.send("GET", accept=accept)).status == 406


# --- JSON, good and bad ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["alone", "2025-11-25", "2025-03-26"])
async def test_each_json_text_is_accepted_or_one_error_and_never_the_servers_fault(era: str) -> None:
    async with site(desk()) as here:
        modern = Modern(here.raw)
        old = None if era == "alone" else await Stateful(here.raw, era).open()
        for case in VALUES:
            if old is not None:
                answer = await old.post(case.message())
            else:
                head = modern.head(request("tools/call", {"name": "take"}))
                body = case.message(b',"_meta":' + encode(modern.meta()))
                answer = await here.raw.send("POST", "/mcp", head, body)
            assert answer.status in (200, 400), (case.name, answer.status)
            said = await answer.json()
            assert answer.status == 200 or "error" in said
            judge(case, [said])
            after = await (modern.ask("tools/list") if old is None else old.ask("ping"))
            assert after.status == 200


# --- the disconnect is the cancel --------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("streams", [False, True])
async def test_going_away_cancels_the_handler(way: str, streams: bool) -> None:
    server, ended = desk(), asyncio.Event()

    @server.tool
    async def waits(ctx: Context) -> str:
        if streams:
            ctx.report_progress(1)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    async with site(server, way) as here:
        client = Modern(here.raw)
        if streams:
            answer = await client.call("waits", progressToken=1)
            await answer.event()
            await answer.leave()
        else:
            answer = await client.begin(client.calling("waits"))
            await until(here.busy)
            await answer.leave()
        async with asyncio.timeout(SECONDS):
            await ended.wait()


@pytest.mark.parametrize("more", [True, False], ids=["in pieces", "whole"])
@pytest.mark.parametrize("era", ["alone", "session"])
async def test_whoever_repeats_the_body_holds_nothing_up(era: str, more: bool) -> None:
    """A middleware in front may give the body again and again, and never tell that the client is gone."""
    server = desk()

    @server.tool
    async def turns(ctx: Context) -> str:
        ctx.report_progress(1)
        for _ in range(20):
            await asyncio.sleep(0)
        return "done"

    async with site(server) as here:
        new, old = Modern(here.raw), await Stateful(here.raw).open()
        message = (new if era == "alone" else old).calling("turns", progressToken=1)
        headers = new.head(message) if era == "alone" else old.headers
        given = 0

        async def receive() -> JSON:
            nonlocal given
            given += 1
            if given == 1_000:
                raise RuntimeError("the loop does not turn")
            return {"type": "http.request", "body": encode(message), "more_body": more and given > 1}

        sent: list[JSON] = []

        async def send(event: JSON) -> None:
            sent.append(event)

        head = [(name.encode(), value.encode()) for name, value in headers.items()]
        async with asyncio.timeout(SECONDS):
            await here.app({"type": "http", "method": "POST", "path": "/mcp", "headers": head}, receive, send)
        assert b"done" in b"".join(event.get("body", b"") for event in sent)
        assert given < 1_000


async def test_a_handler_that_does_not_end_when_cancelled_holds_nothing_up() -> None:
    server, release = desk(), asyncio.Event()

    @server.tool
    async def stubborn(ctx: Context) -> str:
        ctx.report_progress(1)
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    async with site(server) as here:
        client = Modern(here.raw)
        answer = await client.call("stubborn", progressToken=1)
        await answer.event()
        await answer.leave()
        await until(lambda: not here.busy())
        assert text(await (await client.call("echo", {"text": "next"})).json()) == "next"
        release.set()


# --- listening ---------------------------------------------------------------------------------------------------


@both_ways
async def test_a_subscription_is_acknowledged_notified_of_changes_and_tagged(way: str) -> None:
    server = desk()
    async with site(server, way) as here:
        wanted = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["desk://notes/ann"]}}
        stream = await Modern(here.raw).ask("subscriptions/listen", wanted, id="l")
        assert stream.streams
        acknowledged = await stream.message()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == wanted["notifications"]
        server.tool(name="later")(lambda: "x")
        server.resource_updated("desk://notes/ann")
        told = [await stream.message() for _ in range(2)]
        assert {each["method"] for each in told} == {
            "notifications/tools/list_changed",
            "notifications/resources/updated",
        }
        assert all(each["params"]["_meta"][META + "subscriptionId"] == "l" for each in told)
        await stream.leave()
        await until(lambda: not here.busy())


async def test_two_subscriptions_of_one_id_are_two() -> None:
    server = desk()
    async with site(server) as here:
        streams = [
            await Modern(here.raw).ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=1)
            for _ in range(2)
        ]
        for stream in streams:
            await stream.message()
        await streams[0].leave()
        await until(lambda: len(here.endpoint._stateless._listening) == 1)
        server.tool(name="later")(lambda: "x")
        assert (await streams[1].message())["method"] == "notifications/tools/list_changed"
        await streams[1].leave()


async def test_a_quiet_stream_says_now_and_then_that_it_lives() -> None:
    async with site(desk(limits=quick(http_keep_alive_seconds=0.01))) as here:
        stream = await Modern(here.raw).ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await stream.message()
        await until(lambda: b":\n\n" in stream._buffer)
        await stream.leave()


# --- asking over several posts -----------------------------------------------------------------------------------


def asking(**options: Any) -> Server:
    """A server whose tool asks: once it waits at the question, once it runs again."""
    server = desk(**options)
    server.ran = []  # type: ignore[attr-defined]

    @server.tool
    async def waits(ctx: Context) -> str:
        server.ran.append("waits")  # type: ignore[attr-defined]
        found = await ctx.elicit("who?", str)
        return f"{found.action} {getattr(found, 'data', '')}"

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def again(ctx: Context) -> str:
        found = await ctx.elicit("who?", str)
        return f"{found.action} {getattr(found, 'data', '')}"

    return server


def answers(said: JSON, value: str) -> JSON:
    """What a request needs to be asked again with this answer to everything."""
    result = said["result"]
    assert result["resultType"] == "input_required", said
    given = {key: {"action": "accept", "content": {"value": value}} for key in result["inputRequests"]}
    return {"requestState": result["requestState"], "inputResponses": given}


@both_ways
@pytest.mark.parametrize("tool", ["waits", "again"])
async def test_a_question_is_answered_in_another_post(tool: str, way: str) -> None:
    server = asking()
    async with site(server, way) as here:
        client = Modern(here.raw, {"elicitation": {}})
        first = await (await client.call(tool, id=1)).json()
        params = {"name": tool, "arguments": {}, **answers(first, "ann")}
        second = await client.ask("tools/call", params, id=2)
        assert text(await second.json()) == "accept ann"


@pytest.mark.parametrize("tool", ["waits", "again"])
async def test_the_state_of_another_principal_is_refused(tool: str) -> None:
    async with site(asking(auth=APIKeys({"k-ann": "ann", "k-bob": "bob"}))) as here:
        ann = Modern(here.raw, {"elicitation": {}}, authorization="Bearer k-ann")
        bob = Modern(here.raw, {"elicitation": {}}, authorization="Bearer k-bob")
        first = await (await ann.call(tool)).json()
        params = {"name": tool, "arguments": {}, **answers(first, "ann")}
        stolen = await (await bob.ask("tools/call", params, id=2)).json()
        assert stolen["error"]["code"] == -32602
        own = await (await ann.ask("tools/call", params, id=3)).json()
        assert text(own) == "accept ann"


async def test_two_retries_at_once_are_one_run_and_get_the_same_answer() -> None:
    server = asking()
    async with site(server) as here:
        client = Modern(here.raw, {"elicitation": {}})
        params = {"name": "waits", "arguments": {}, **answers(await (await client.call("waits")).json(), "ann")}
        said = await asyncio.gather(*(client.ask("tools/call", params, id=id) for id in (2, 3)))
        assert [text(await each.json()) for each in said] == ["accept ann"] * 2
        assert server.ran == ["waits"]  # type: ignore[attr-defined]


async def test_a_handler_that_waits_for_an_answer_ends_with_the_server() -> None:
    ended = asyncio.Event()
    server = desk()

    @server.tool
    async def waits(ctx: Context) -> str:
        try:
            await ctx.elicit("who?", str)
        finally:
            ended.set()
        return ""

    async with site(server) as here:
        client = Modern(here.raw, {"elicitation": {}})
        answers(await (await client.call("waits")).json(), "ann")
    assert ended.is_set()


# --- all at once -------------------------------------------------------------------------------------------------


async def test_three_eras_on_one_port() -> None:
    async with site(desk(), "socket", HTTPOptions(path="/mcp")) as here:
        new, old = Modern(here.raw), await Stateful(here.raw).open()
        oldest = await (await Legacy.connect(here.raw)).open()
        echo = {"name": "echo", "arguments": {"text": "all"}}
        assert text(await (await new.ask("tools/call", echo)).json()) == "all"
        assert text(await (await old.ask("tools/call", echo)).json()) == "all"
        assert text(await oldest.ask("tools/call", echo)) == "all"
        await oldest.stream.leave()


async def test_a_stream_that_nobody_reads_is_cut_and_its_handler_cancelled() -> None:
    ended = asyncio.Event()
    server = desk(limits=quick(logs_per_second=1e6, http_stream_bytes=100_000, http_write_seconds=0.2))

    @server.tool
    async def floods(ctx: Context) -> str:
        try:
            while True:
                ctx.info("x" * 1000)
                await asyncio.sleep(0)
        finally:
            ended.set()

    async with site(server, "socket") as here:
        answer = await Modern(here.raw).call("floods", logLevel="info")
        answer.reading.cancel()  # type: ignore[attr-defined]  # it takes nothing more, and stays
        async with asyncio.timeout(SECONDS):
            await ended.wait()
        await answer.leave()
