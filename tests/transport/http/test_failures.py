"""What goes wrong over HTTP, and how it is told: where it was, what it was, and what to do."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from accord import Client, ClientLimits, Limits
from accord.errors import ConnectError, ConnectionLost, HTTPError, NotExecuted, RemoteProtocolError
from accord.transport.http.event_stream import EventStreamReader
from accord.transport.http.failures import read_error
from accord.transport.http.fetcher import Fetcher
from accord.transport.http.settings import HTTPSettings
from accord.wire.sse import ServerSentEvent

from .site import Visit, modern, runs_out_of_time, site

QUICK = Limits(close_seconds=0.5, client=ClientLimits(connect_seconds=20))


async def refused_to_connect(url: str, http: HTTPSettings | None = None, auth: str | None = None) -> ConnectError:
    with pytest.raises(ConnectError) as caught:
        await Client(url, limits=QUICK, http=http, auth=auth).connect()
    return caught.value


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 "
        f"-addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}".split(),
        check=True,
        capture_output=True,
    )
    return key, certificate


def served_with(self_signed: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed[1], self_signed[0])
    return context


# --- opening ---------------------------------------------------------------------------------------------------


async def test_a_name_without_an_address_is_an_error_of_dns() -> None:
    error = await refused_to_connect("http://no-such-host.invalid/mcp")
    assert "DNS: there is no address for no-such-host.invalid" in str(error)
    assert isinstance(error.__cause__, NotExecuted)


async def test_a_port_where_nobody_listens_is_an_error_of_tcp() -> None:
    port = unused_port()
    error = await refused_to_connect(f"http://127.0.0.1:{port}/mcp")
    assert f"server/discover to http://127.0.0.1:{port}/mcp: TCP: no connection to 127.0.0.1:{port}" in str(error)
    assert "is the server running?" in str(error)
    assert str(error).count("/mcp") == 1


async def test_a_certificate_that_is_not_trusted_is_an_error_of_tls(self_signed: tuple[Path, Path]) -> None:
    async with site(modern(nothing), tls=served_with(self_signed)) as server:
        error = await refused_to_connect(server.url)
        assert "TLS: the certificate of 127.0.0.1" in str(error)
        assert "self" in str(error)
        assert "HTTPSettings(ssl=...)" in str(error)


async def test_a_certificate_that_is_trusted_is_enough(self_signed: tuple[Path, Path]) -> None:
    trusting = ssl.create_default_context(cafile=str(self_signed[1]))
    settings = HTTPSettings(ssl=trusting)
    async with (
        site(modern(nothing), tls=served_with(self_signed)) as server,
        Client(server.url, http=settings) as client,
    ):
        assert client.revision == "2026-07-28"


async def test_https_to_a_server_of_http_is_an_error_of_tls() -> None:
    async with site(modern(nothing)) as server:
        error = await refused_to_connect(server.url.replace("http:", "https:"))
        assert "TLS: no handshake with 127.0.0.1" in str(error)


async def test_a_missing_proxy_is_an_error_of_the_proxy() -> None:
    proxy = f"http://127.0.0.1:{unused_port()}"
    error = await refused_to_connect("http://example.invalid/mcp", HTTPSettings(proxy=proxy))
    assert "the proxy cannot be reached" in str(error)


async def test_a_proxy_gets_its_name_and_password_and_the_server_is_reached_through_it() -> None:
    async with site(modern(nothing)) as proxy:
        address = proxy.url.replace("/mcp", "").replace("//", "//ada:lovelace@")
        async with Client("http://example.invalid/mcp", http=HTTPSettings(proxy=address)) as client:
            assert client.revision == "2026-07-28"
        assert proxy.visits[0].path == "http://example.invalid/mcp"
        assert proxy.visits[0].headers["proxy-authorization"] == "Basic YWRhOmxvdmVsYWNl"


async def test_a_peer_without_http_is_an_error_that_says_so() -> None:
    async def play(visit: Visit) -> None:
        await visit.raw(b"SSH-2.0-OpenSSH_9.6\r\n")

    async with site(play) as server:
        assert "does not answer in HTTP" in str(await refused_to_connect(server.url))


@pytest.mark.parametrize("status", [401, 403, 429, 500, 502, 503])
async def test_a_status_that_is_not_about_the_request_ends_the_opening_at_once(status: int) -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(status, b"go away\x1b[31m", WWW_Authenticate='Bearer realm="x"')

    async with site(play) as server:
        error = await refused_to_connect(server.url)
        assert [visit.verb for visit in server.visits] == ["server/discover"]
    assert f"HTTP {status}" in str(error)
    assert 'Bearer realm="x"' in str(error)
    assert r"go away\x1b[31m" in str(error)
    cause = error.__cause__
    assert isinstance(cause, HTTPError)
    assert (cause.status, cause.challenge) == (status, 'Bearer realm="x"')


@pytest.mark.parametrize(("status", "text"), [(421, b"Invalid Host header"), (403, b"Host 'x' is not allowed")])
async def test_a_refused_host_says_which_name_was_used(status: int, text: bytes) -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(status, text)

    async with site(play) as server:
        assert "does not answer to the name '127.0.0.1'" in str(await refused_to_connect(server.url))


async def test_every_step_of_a_failed_opening_is_in_the_error() -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(404, f"no {visit.verb} here".encode())

    async with site(play) as server:
        error = str(await refused_to_connect(server.url))
        assert [visit.verb for visit in server.visits] == ["server/discover", "initialize", "GET"]
    for step in ("no server/discover here", "no initialize here", "no GET here", "HTTP+SSE"):
        assert step in error


async def test_a_page_in_the_place_of_an_answer_is_shown_in_part() -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(200, b"<!doctype html>\n<title>Welcome</title>" + b"x" * 10_000, "text/html")

    async with site(play) as server:
        error = str(await refused_to_connect(server.url))
    assert "text/html (HTTP 200) instead of a response" in error
    assert "<!doctype html> <title>Welcome</title>" in error
    assert len(error) < 2_000


async def test_secrets_of_ours_are_not_repeated() -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(401, f"bad token {visit.headers['authorization']}".encode())

    async with site(play) as server:
        error = await refused_to_connect(server.url, auth="very-secret-token")
    assert "very-secret-token" not in str(error)
    assert "[redacted]" in str(error)


# --- redirects -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_on_the_same_origin_is_followed_with_its_body(status: int) -> None:
    async def play(visit: Visit) -> None:
        if visit.path == "/mcp":
            await visit.respond(status, Location="/mcp/")
        else:
            await modern(nothing)(visit)

    async with site(play) as server, Client(server.url) as client:
        assert client.revision == "2026-07-28"
        assert server.visits[1].path == "/mcp/"
        assert server.visits[1].headers["mcp-method"] == "server/discover"


@pytest.mark.parametrize(
    "target", ["http://evil.example/mcp", "https://127.0.0.1/mcp", "//evil.example/", "file:///etc"]
)
async def test_a_redirect_to_another_origin_is_an_error_and_not_followed(target: str) -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(307, Location=target)

    async with site(play) as server:
        error = str(await refused_to_connect(server.url, auth="very-secret-token"))
        assert len(server.visits) == 1
    assert "another origin" in error
    assert target.rpartition("/")[0] in error


async def test_a_redirect_that_would_lose_the_body_is_an_error() -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(301, Location="/elsewhere")

    async with site(play) as server:
        assert "/elsewhere (HTTP 301" in str(await refused_to_connect(server.url))


async def test_redirects_in_a_circle_end() -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(307, Location="/mcp")

    async with site(play) as server:
        assert "redirected more than 5 times" in str(await refused_to_connect(server.url))


async def test_a_redirect_to_nowhere_is_an_error() -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(307)

    async with site(play) as server:
        assert "a redirect without a Location" in str(await refused_to_connect(server.url))


# --- calls -----------------------------------------------------------------------------------------------------


async def nothing(visit: Visit) -> None:
    """No other request is expected."""
    raise AssertionError(visit.verb)


RESPONSES = {
    "empty": (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n", HTTPError),
    "not JSON": (b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{"a":', HTTPError),
    "an array": (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]", HTTPError),
    "an error nested deep": (
        b'HTTP/1.1 400 X\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n{"error":' + b"[" * 9_991,
        HTTPError,
    ),
    "no type": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", HTTPError),
    "accepted": (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", HTTPError),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", HTTPError),
    "a strange status": (b"HTTP/1.1 799 Odd\r\nContent-Length: 0\r\n\r\n", HTTPError),
    "an empty stream": (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n",
        ConnectionLost,
    ),
    "nothing": (b"", ConnectionLost),
    "garbage": (b"\x00\xff\x00\r\n\r\n", RemoteProtocolError),
    "a wrong length": (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
        ConnectionLost,
    ),
}


@pytest.mark.parametrize("name", RESPONSES)
async def test_whatever_is_no_answer_is_a_clear_error(name: str, caplog: pytest.LogCaptureFixture) -> None:
    response, expected = RESPONSES[name]

    async def play(visit: Visit) -> None:
        await visit.raw(response)
        visit.close()

    async with site(modern(play)) as server, Client(server.url) as client:
        with pytest.raises(expected, match=r"tools/call to http://127\.0\.0\.1:\d+/mcp"):
            async with asyncio.timeout(100):
                await client.call_tool("echo")
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_body_that_never_ends_is_cut_by_the_timeout_of_the_call() -> None:
    async def play(visit: Visit) -> None:
        await visit.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not visit.gone.is_set():
            await visit.chunk(b" ")
            await asyncio.sleep(0.01)

    async with site(modern(play)) as server, Client(server.url) as client:
        await runs_out_of_time(client, "echo", server.seen("tools/call"))
        await asyncio.wait_for(server.of("tools/call")[0].gone.wait(), 100)


async def test_an_error_page_that_never_ends_is_an_error_all_the_same() -> None:
    async def play(visit: Visit) -> None:
        await visit.raw(b"HTTP/1.1 500 X\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not visit.gone.is_set():
            await visit.chunk(b"<p>oh</p>")
            await asyncio.sleep(0.05)

    async with site(modern(play)) as server, Client(server.url) as client:
        with pytest.raises(HTTPError, match="<p>oh</p>"):
            async with asyncio.timeout(100):
                await client.call_tool("echo")


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("resets", [False, True])
async def test_a_response_that_is_cut_at_any_byte_ends_its_call_and_no_other(streams: bool, resets: bool) -> None:
    cut = 0

    async def play(visit: Visit) -> None:
        nonlocal cut
        body = json.dumps(visit.done_message()).encode()
        kind = b"application/json"
        if streams:
            kind, body = b"text/event-stream", b"data: " + body + b"\n\n"
        whole = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (kind, len(body), body)
        cut = len(whole) if visit.message["params"]["name"] == "whole" else cut
        await visit.raw(whole[:cut])
        if cut < len(whole):
            visit.reset() if resets else visit.close()

    async with site(modern(play)) as server, Client(server.url) as client:
        assert (await client.call_tool("whole")).text == "done"
        for place in range(0, cut, 1 if cut < 60 else 3):
            cut = place
            with pytest.raises((ConnectionLost, RemoteProtocolError)):
                async with asyncio.timeout(100):
                    await client.call_tool("cut")
        assert (await client.call_tool("whole")).text == "done"


@pytest.mark.parametrize("error", [ValueError, RuntimeError, OSError])
async def test_what_goes_wrong_here_while_a_stream_is_read_is_not_taken_for_the_connection(
    error: type[Exception],
) -> None:
    async def play(visit: Visit) -> None:
        await visit.stream()
        await visit.event({"a": 1})
        await visit.gone.wait()

    def take(event: object) -> bool:
        raise error("a defect")

    async def room() -> None:
        return None

    async with site(play) as server:
        fetcher = Fetcher(server.url, HTTPSettings(), Limits())
        await fetcher.open()
        response = await fetcher.fetch("GET", {}, what="it")
        with pytest.raises(error, match="a defect") as caught:
            await EventStreamReader(1_000, room).read(response, take, "it")
        assert type(caught.value) is error
        response.close()
        await fetcher.close()


def test_long_event_ids_are_remembered_in_little_memory() -> None:
    """Each character of an id takes four bytes if one of them does: 32 MB for each stream."""

    async def room() -> None:
        return None

    reader = EventStreamReader(1_000, room)
    events = [ServerSentEvent(b"{}", id=f"{number}-\U0001f600{'a' * 8_000}") for number in range(200)]
    assert len([*reader._new_events(events)]) == 200
    reader._response += 1
    assert [*reader._new_events(events)] == []
    assert sum(map(sys.getsizeof, reader._event_ids)) < 50_000


def test_what_breaks_while_a_response_is_read_may_have_been_executed() -> None:
    for error in (ValueError("x"), RuntimeError("x"), OSError("x")):
        assert not isinstance(read_error(error, "it"), NotExecuted)
