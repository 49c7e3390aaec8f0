"""Headers of a request: what comes in many lines, what must come in one, and what the body must agree with."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from accord import APIKeys, Header, Server
from accord.server.http.options import HTTPOptions

from tests.server.http.http_clients import LATEST, Modern, encode, quick, request, site
from tests.server.http.raw import JSON

Lines = list[tuple[bytes, bytes]]


class Desk(Server):
    """A server that knows which of its functions ran."""

    def __init__(self, **options: Any) -> None:
        super().__init__("desk", "1", **{"limits": quick(), **options})
        self.ran: list[str] = []

        @self.tool
        async def danger() -> str:
            self.ran.append("danger")
            return "done"

        @self.tool
        async def query(region: Annotated[str, Header("Region")]) -> str:
            self.ran.append(region)
            return region

        @self.prompt
        async def greet() -> str:
            return "hello"

        @self.resource("desk://notes/{name}")
        async def notes(name: str) -> str:
            self.ran.append(name)
            return name


# --- headers and body --------------------------------------------------------------------------------------------

DANGER = {"name": "danger", "arguments": {}}
SUBJECTS: list[tuple[str, JSON, str]] = [
    ("tools/call", DANGER, "query"),
    ("tools/call", {**DANGER, "uri": 5}, "query"),
    ("tools/call", {**DANGER, "taskId": [5]}, "query"),
    ("tools/call", {**DANGER, "uri": "query"}, "query"),
    ("resources/read", {"uri": "desk://notes/ann"}, "desk://notes/bob"),
    ("resources/read", {"uri": "desk://notes/ann", "name": 5}, "desk://notes/bob"),
    ("resources/read", {"uri": "desk://notes/ann", "name": "desk://notes/bob"}, "desk://notes/bob"),
]


@pytest.mark.parametrize(("method", "params", "named"), SUBJECTS)
@pytest.mark.parametrize("there", [True, False])
async def test_no_other_param_keeps_the_name_from_being_checked(
    method: str, params: JSON, named: str, there: bool
) -> None:
    server = Desk()
    async with site(server) as here:
        client = Modern(here.raw)
        answer = await client.post(client.request(method, params), mcp_name=named if there else None)
        assert (answer.status, (await answer.json())["error"]["code"]) == (400, -32020)
    assert server.ran == []


@pytest.mark.parametrize("more", [{}, {"uri": 5}, {"taskId": 5}])
async def test_no_other_param_keeps_the_arguments_from_being_checked(more: JSON) -> None:
    server = Desk()
    async with site(server) as here:
        client = Modern(here.raw)
        message = client.request("tools/call", {"name": "query", "arguments": {"region": "eu"}, **more})
        answer = await client.post(message, mcp_param_region="us")
        assert (answer.status, (await answer.json())["error"]["code"]) == (400, -32020)
    assert server.ran == []


@pytest.mark.parametrize("more", [{"uri": 5}, {"taskId": 5}])
async def test_unused_params_may_be_anything(more: JSON) -> None:
    server = Desk()
    async with site(server) as here:
        client = Modern(here.raw)
        answer = await client.post(client.request("tools/call", {**DANGER, **more}))
        assert answer.status == 200
    assert server.ran == ["danger"]


NAMELESS: list[tuple[str, JSON]] = [
    ("tools/call", {"arguments": {}}),
    ("tools/call", {"name": 5, "arguments": {}}),
    ("tools/call", {"name": None, "uri": "danger"}),
    ("prompts/get", {"name": ["danger"]}),
    ("resources/read", {"uri": {}}),
    ("resources/read", {"name": "desk://notes/ann"}),
]


@pytest.mark.parametrize(("method", "params"), NAMELESS)
async def test_a_request_that_names_nothing_is_invalid_whatever_its_headers_name(method: str, params: JSON) -> None:
    server = Desk()
    async with site(server) as here:
        client = Modern(here.raw)
        headers = {**client.headers, "mcp-protocol-version": LATEST, "mcp-method": method, "mcp-name": "danger"}
        answer = await here.raw.send("POST", "/mcp", headers, encode(client.request(method, params)))
        assert (answer.status, (await answer.json())["error"]["code"]) == (200, -32602)
    assert server.ran == []


# --- headers in several lines ------------------------------------------------------------------------------------


async def answered(app: Any, more: Lines) -> tuple[int, bytes]:
    """Status and body of the answer to a call that has these lines too, in the place of its own of that name."""
    client = Modern(None)  # type: ignore[arg-type]
    message = client.request("tools/call", DANGER)
    own = {name.encode(): value.encode() for name, value in client.head(message).items()}
    lines = [line for line in own.items() if line[0] not in dict(more)]
    sent: list[JSON] = []

    async def receive() -> JSON:
        return {"type": "http.request", "body": encode(message)}

    async def send(event: JSON) -> None:
        sent.append(event)

    await app({"type": "http", "method": "POST", "path": "/mcp", "headers": [*lines, *more]}, receive, send)
    return sent[0]["status"], sent[1]["body"]


MANY: list[Lines] = [
    [(b"tracestate", b"a=1"), (b"tracestate", b"b=2")],
    [(b"baggage", b"a=1"), (b"baggage", b"b=2")],
    [(b"cache-control", b"no-cache"), (b"cache-control", b"no-store")],
    [(b"x-forwarded-proto", b"https"), (b"x-forwarded-proto", b"http")],
    [(b"accept", b"application/json"), (b"accept", b"text/event-stream")],
    [(b"mcp-name", b"danger"), (b"mcp-name", b"danger")],
]


@pytest.mark.parametrize("lines", MANY)
async def test_a_list_may_come_in_several_lines_and_one_value_may_be_repeated(lines: Lines) -> None:
    async with site(Desk()) as here:
        assert (await answered(here.app, lines))[0] == 200


SINGLE = ["authorization", "content-type", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-param-region"]
SINGLE += ["content-length", "mcp-session-id", "last-event-id"]


@pytest.mark.parametrize("name", SINGLE)
async def test_a_header_of_one_value_that_is_there_twice_and_differs_is_400(name: str) -> None:
    async with site(Desk()) as here:
        status, body = await answered(here.app, [(name.encode(), b"1"), (name.encode(), b"2")])
        assert (status, name.encode() in body) == (400, True)


@pytest.mark.parametrize("name", ["host", "origin"])
async def test_nor_may_the_host_or_the_origin_differ_from_line_to_line(name: str) -> None:
    async with site(Desk(), options=HTTPOptions(hosts=["*"], origins=["*"])) as here:
        lines = [(name.encode(), b"http://one.example"), (name.encode(), b"http://two.example")]
        if name == "host":
            lines = [(b"host", b"one.example"), (b"host", b"two.example")]
        assert (await answered(here.app, lines))[0] == 400


async def test_one_more_header_line_cannot_change_the_principal() -> None:
    """What a proxy adds stands beside what the client has sent: neither is taken for the whole."""

    class Vouched(APIKeys):
        async def authenticate(self, request: Any) -> Any:
            seen.append(request.headers[b"x-user"])
            return await super().authenticate(request)

    seen: list[bytes] = []
    async with site(Desk(auth=Vouched({"k": "ann"}))) as here:
        lines = [(b"authorization", b"Bearer k"), (b"x-user", b"root"), (b"x-user", b"ann")]
        assert (await answered(here.app, lines))[0] == 200
    assert seen == [b"root, ann"]


# --- as little as is asked ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("filling", [",", "a/b;q=0.1,"])
async def test_an_unreasonable_accept_is_406(filling: str) -> None:
    async with site(Desk()) as here:
        client = Modern(here.raw, accept=filling * 2_000 + "*/*")
        assert (await client.post(client.request("tools/list"))).status == 406
        assert (await here.raw.send("POST", "/mcp", client.headers, encode(request("ping")))).status == 406


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages"])
async def test_a_page_of_a_named_origin_may_ask_for_every_route(path: str) -> None:
    page = {"host": "localhost", "origin": "https://app.example.com", "access-control-request-method": "POST"}
    async with site(Desk(), options=HTTPOptions(origins=["https://app.example.com"])) as here:
        answer = await here.raw.send("OPTIONS", path, page)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (204, "https://app.example.com")
    async with site(Desk()) as here:
        answer = await here.raw.send("OPTIONS", path, {"host": "localhost"})
        assert answer.status == 405
