"""Where requests go and what they carry: redirects, headers, URLs and proxies; and that no secret is told."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from accord import Client
from accord.client.target import parse
from accord.errors import AccordError, ConnectError, ConnectionLost, HTTPError, TargetError
from accord.transport.http.redaction import SecretRedactor
from accord.transport.http.settings import HTTPSettings

from .site import Visit, modern, older, quiet, site

SECRET = "SECRET-0123456789"


# --- redirects -------------------------------------------------------------------------------------------------


async def test_requests_that_are_redirected_at_once_all_get_to_the_same_place() -> None:
    together = asyncio.Barrier(3)

    async def play(visit: Visit) -> None:
        if visit.path == "/a/mcp":
            await together.wait()
            await visit.respond(307, Location="v2/mcp")
        else:
            await visit.done()

    async with site(modern(play), path="/a/mcp") as server, Client(server.url) as client:
        results = await asyncio.gather(*(client.call_tool("echo") for _ in range(3)))
        assert [result.text for result in results] == ["done"] * 3
        assert {visit.path for visit in server.visits} == {"/a/mcp", "/a/v2/mcp"}


@pytest.mark.parametrize(("status", "again"), [(307, 3), (308, 1)])
async def test_only_a_redirect_for_good_is_remembered(status: int, again: int) -> None:
    async def play(visit: Visit) -> None:
        if visit.path == "/mcp":
            await visit.respond(status, Location="/other")
        else:
            await visit.done()

    async with site(modern(play)) as server, Client(server.url) as client:
        for _ in range(3):
            await client.call_tool("echo")
        assert [visit.path for visit in server.of("tools/call")].count("/mcp") == again


async def test_where_a_redirect_for_now_leads_on_for_good_is_not_remembered() -> None:
    async def play(visit: Visit) -> None:
        if visit.path == "/mcp":
            await visit.respond(307, Location="/b")
        elif visit.path == "/b":
            await visit.respond(308, Location="/c")
        else:
            await visit.done()

    async with site(modern(play)) as server, Client(server.url) as client:
        await client.call_tool("echo")
        await client.call_tool("echo")
        assert [visit.path for visit in server.of("tools/call")] == ["/mcp", "/b", "/c"] * 2


# --- secrets ---------------------------------------------------------------------------------------------------


async def test_the_query_of_the_url_is_in_no_error() -> None:
    async def redirect(visit: Visit) -> None:
        await visit.respond(307, Location=f"https://other.example/mcp?token={SECRET}")

    async def echo(visit: Visit) -> None:
        await visit.respond(400, f"your url is {visit.path}".encode())

    for play in (redirect, echo):
        async with site(play) as server:
            with pytest.raises(ConnectError) as caught:
                await Client(f"{server.url}?token={SECRET}").connect()
            assert SECRET not in str(caught.value)


async def test_a_token_that_a_server_repeats_is_not_printed() -> None:
    async def play(visit: Visit) -> None:
        token = visit.headers["authorization"]
        if visit.message["params"]["name"] == "challenge":
            await visit.respond(401, WWW_Authenticate=f'Bearer error="bad {token}"')
        elif visit.message["params"]["name"] == "error":
            await visit.error(-32602, f"bad header {token}", 400)
        else:
            await visit.respond(500, token.encode())

    async with site(modern(play)) as server, Client(server.url, auth=SECRET) as client:
        for name in ("challenge", "error", "body"):
            with pytest.raises(AccordError, match="redacted") as caught:
                await client.call_tool(name)
            assert SECRET not in repr(caught.value) + str(vars(caught.value))


async def test_the_id_of_the_session_is_in_no_error() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.respond(500, b"no: " + visit.headers["mcp-session-id"].encode())
        else:
            await quiet(visit)

    async with site(older(play, SECRET)) as server, Client(server.url) as client:
        with pytest.raises(HTTPError, match="redacted"):
            await client.call_tool("echo")


def test_a_lasting_secret_outlives_those_that_are_renewed() -> None:
    secrets = SecretRedactor()
    secrets.add_permanent([f"Bearer {SECRET}"])
    for n in range(200):
        secrets.add_recent([f"temporary-{n:05}"])
    assert secrets.redact(f"{SECRET} temporary-00199 temporary-00000") == "[redacted] [redacted] temporary-00000"


def test_only_the_text_of_an_error_is_changed() -> None:
    secrets = SecretRedactor()
    secrets.add_permanent(["2025-11-25"])
    error = b'{"id":1,"error":{"code":-32022,"message":"not 2025-11-25","data":{"supported":["2025-11-25"]}}}'
    shown = b'{"id":1,"error":{"code":-32022,"message":"not [redacted]","data":{"supported":["2025-11-25"]}}}'
    assert secrets.redact_error(error) == shown
    for other in (b'{"id":1,"result":{"message":"2025-11-25"}}', b"2025-11-25", b"\xff", b'{"error":"2025-11-25"}'):
        assert secrets.redact_error(other) == other


def test_a_target_shows_neither_a_password_nor_a_header() -> None:
    entry = {"url": f"https://u:{SECRET}@h/mcp?key={SECRET}", "headers": {"Authorization": f"Bearer {SECRET}"}}
    assert SECRET not in repr(parse(entry))
    for wrong in (f"https://u:{SECRET}@host:99999/", f"https://host:99999/?key={SECRET}"):
        with pytest.raises(TargetError) as caught:
            parse(wrong)
        assert SECRET not in str(caught.value)


# --- headers ---------------------------------------------------------------------------------------------------


async def test_each_header_is_sent_once_and_that_of_the_program_goes_before_that_of_the_configuration() -> None:
    heads: list[str] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    entry = {
        "url": f"http://127.0.0.1:{port}/",
        "headers": {"authorization": "Bearer theirs", "x-key": "old", "user-agent": "me", "X-More": "1"},
    }
    with pytest.raises(ConnectError):
        await Client(entry, auth="mine", http=HTTPSettings(headers={"X-Key": "new"})).connect()
    server.close()
    lines = heads[0].split("\r\n")
    for name, value in {"authorization": "bearer mine", "x-key": "new", "user-agent": "me", "x-more": "1"}.items():
        assert [line for line in lines if line.startswith(f"{name}:")] == [f"{name}: {value}"]


async def test_a_function_for_headers_adds_to_those_of_the_configuration() -> None:
    async with site(modern(quiet)) as server:
        entry = {"url": server.url, "headers": {"X-Key": "old", "X-More": "1"}}
        async with Client(entry, http=HTTPSettings(headers=lambda: {"x-key": "new"})):
            assert server.visits[0].headers["x-key"] == "new"
            assert server.visits[0].headers["x-more"] == "1"


@pytest.mark.parametrize("kind", [b";\xc3\xa9*", b"", b"/", b";;;", b"text/event-stream;;x", b"\xff"])
async def test_any_content_type_is_an_answer_or_none(kind: bytes) -> None:
    async def play(visit: Visit) -> None:
        await visit.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: %b\r\n\r\n{}" % kind)

    async with site(modern(play)) as server, Client(server.url) as client:
        with pytest.raises((HTTPError, ConnectionLost)) as caught:
            await client.call_tool("echo")
        assert "IndexError" not in str(caught.value)
    async with site(play) as server:
        for target in (server.url, {"url": server.url, "type": "sse"}):
            with pytest.raises(ConnectError) as refused:
                await Client(target).connect()
            assert "IndexError" not in str(refused.value)


# --- URLs and proxies ------------------------------------------------------------------------------------------


async def test_a_url_is_sent_as_it_was_written() -> None:
    async with site(modern(quiet), path="/a%2Fb?sig=a%2Fb%3D%2B&y=a+b%20c&z=%41") as server:
        async with Client(server.url):
            assert server.visits[0].path == "/a%2Fb?sig=a%2Fb%3D%2B&y=a+b%20c&z=%41"
        async with Client(server.url.split("/a%2Fb")[0] + "/straße"):
            assert server.visits[-1].path == "/stra%C3%9Fe"


@pytest.mark.parametrize("url", ["http://" + "ü" * 70 + ".de/", "http://xn--a/"])
async def test_a_name_that_no_server_can_have_is_no_target(url: str) -> None:
    with pytest.raises(TargetError, match="is not the URL of a server"):
        await Client(url).connect()


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "foo", "127.0.0.1:8080", "http://", "http://[::1"])
def test_a_proxy_that_is_no_http_proxy_is_refused(proxy: str) -> None:
    with pytest.raises(TargetError, match="is not an HTTP proxy"):
        HTTPSettings(proxy=proxy)


async def test_a_socks_proxy_of_the_environment_is_refused_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", f"socks5://u:{SECRET}@127.0.0.1:1")
    with pytest.raises(TargetError, match=r"'socks5://127\.0\.0\.1:1' is not an HTTP proxy") as caught:
        await Client("http://example.test/").connect()
    assert SECRET not in str(caught.value)


async def test_a_connection_notices_when_its_server_disappears_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []

    class Seen(socket.socket):
        def connect(self, address: Any) -> None:
            made.append(self)
            super().connect(address)

    monkeypatch.setattr("accord.transport.http.fetcher.socket.socket", Seen)
    async with site(modern(quiet)) as server, Client(server.url):
        assert [each.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) for each in made] == [1]
