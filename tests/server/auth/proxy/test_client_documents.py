"""Clients whose ID is the URL of their metadata (CIMD): which documents are fetched, and which are accepted."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from accord.auth.steps import OAuthRequest, OAuthResponse
from accord.errors import AuthorizationError
from accord.server.auth.proxy import client_documents
from accord.server.auth.proxy.client_documents import DOCUMENT_BYTES, ClientDocuments, is_document_url, read_document
from accord.server.auth.proxy.endpoint_error import EndpointError

from tests.server.auth.proxy.proxying import REDIRECT_URI, Clock, proxied, send
from tests.waiting import until

URL = "https://client.example/accord.json"


def document(**changes: Any) -> dict[str, Any]:
    whole = {"client_id": URL, "client_name": "Desk", "redirect_uris": [REDIRECT_URI], **changes}
    return {name: value for name, value in whole.items() if value is not None}


class Web:
    """The web, with one document."""

    def __init__(self, answer: Any = None, status: int = 200, **headers: str) -> None:
        self.answer = document() if answer is None else answer
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.requests: list[OAuthRequest] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, request: OAuthRequest, account: str) -> OAuthResponse:
        self.requests.append(request)
        await self.open.wait()
        body = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
        return OAuthResponse(self.status, body, self.headers)


def _no_report(level: int, text: Callable[[], str]) -> None:
    """No log."""


# --- in the flow -----------------------------------------------------------------------------------------------------


async def test_a_client_with_a_document_logs_in_without_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxied() as shop:
        web = Web()
        monkeypatch.setattr(shop.auth._documents, "_send", web)
        page = await shop.browser().open(shop.login(URL).url)
        assert "<dd>Desk</dd>" in page.text
        assert "<dd>client.example</dd>" in page.text, "the host that vouches for the name"
        tokens = await shop.tokens(URL)
        assert (await shop.call(tokens["access_token"])).status == 200
        assert (await shop.refresh(tokens)).status == 200
        assert [request.url for request in web.requests] == [URL], "cached"
        assert not web.requests[0].follow_redirects


async def test_a_document_without_a_port_stands_for_any_on_localhost(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxied() as shop:
        uris = ["http://localhost/cb", "http://127.0.0.1/cb"]
        monkeypatch.setattr(shop.auth._documents, "_send", Web(document(redirect_uris=uris)))
        for uri, status in [
            ("http://localhost:8123/cb", 200),
            ("http://127.0.0.1:8123/cb", 200),
            ("http://localhost:8123/other", 400),
            ("http://localhost.evil.example/cb", 400),
        ]:
            assert (await shop.browser().open(shop.login(URL, redirect_uri=uri).url)).status == status, uri


PRIVATE = [
    "https://127.0.0.1/c.json",
    "https://localhost/c.json",
    "https://[::1]/c.json",
    "https://10.0.0.1/c.json",
    "https://192.168.1.1/c.json",
    "https://172.16.0.1/c.json",
    "https://169.254.169.254/c.json",
    "https://100.64.0.1/c.json",
    "https://[fd00::1]/c.json",
    "https://[fe80::1]/c.json",
    "https://[::ffff:127.0.0.1]/c.json",
    "https://0.0.0.0/c.json",
    "https://224.0.0.1/c.json",
]


@pytest.mark.parametrize("url", PRIVATE)
async def test_no_document_is_fetched_from_a_private_address(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither from a server on loopback, as here, nor from any other."""
    connected: list[Any] = []

    async def connect(*args: Any, **options: Any) -> None:
        connected.append(args)
        raise OSError

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", connect, raising=False)
    async with proxied() as shop:
        page = await shop.browser().open(shop.login(url).url)
        assert page.status == 400
        assert "public address" in page.text
    assert not connected


async def test_a_name_with_a_private_address_is_not_connected_to(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor is its address disclosed, or that it has one: the log has the reason."""
    from aiohttp.resolver import ThreadedResolver

    async def resolve(self: Any, host: str, port: int = 0, family: Any = 0) -> list[Any]:
        return [{"hostname": host, "host": "10.1.2.3", "port": port, "family": 2, "proto": 6, "flags": 0}]

    monkeypatch.setattr(ThreadedResolver, "resolve", resolve)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # it would resolve the name by itself
    async with proxied() as shop:
        page = await shop.browser().open(shop.login(URL).url)
        assert page.status == 400
        assert "cannot be fetched from a public address" in page.text
        assert "10.1.2.3" not in page.text
        assert "private" not in page.text
        assert "client.example (10.1.2.3) is a private address" in caplog.text


class SlowNames:
    """The name servers of strangers: they answer once the test lets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.asked: list[str] = []
        look_up = socket.getaddrinfo

        def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
            if not str(host).endswith(".slow.example"):
                return look_up(host, *args, **options)
            self.asked.append(host)
            self.open.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


async def test_slow_name_servers_of_strangers_delay_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default executor resolves the names of providers and issuers, in few threads."""
    names = SlowNames(monkeypatch)
    async with proxied() as shop:
        urls = [shop.login(f"https://n{each}.slow.example/c.json").url for each in range(64)]
        opened = [
            asyncio.create_task(send(shop.app, "GET", url, headers={"x-forwarded-for": f"192.0.2.{each // 4}"}))
            for each, url in enumerate(urls)
        ]
        try:
            await until(lambda: len(names.asked) >= 6)
            await asyncio.wait_for(asyncio.get_running_loop().getaddrinfo("localhost", 80), 4)
        finally:
            names.open.set()
            pages = await asyncio.gather(*opened)
        assert {page.status for page in pages} == {400}


async def test_look_ups_that_do_not_end_are_bounded_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch ends after 5 s, the thread of its look-up may go on."""
    monkeypatch.setattr(client_documents, "FETCH_SECONDS", 0.01)
    names = SlowNames(monkeypatch)
    async with proxied() as shop:

        async def open_page(name: str, address: str) -> None:
            url = shop.login(f"https://{name}.slow.example/c.json").url
            assert (await shop.browser().open(url, x_forwarded_for=address)).status == 400

        try:
            for each in range(20):
                await open_page(f"n{each}", "192.0.2.8")
            await until(lambda: len(names.asked) == 4)
            await open_page("honest", "192.0.2.9")
            await until(lambda: "honest.slow.example" in names.asked)
            for each in range(100):
                await open_page(f"m{each}", f"198.51.100.{each}")
            await until(lambda: len(names.asked) == 64)
        finally:
            names.open.set()
        await until(lambda: not shop.auth._lookups.running)
        await open_page("later", "192.0.2.8")
        await until(lambda: len(names.asked) == 65)


# --- documents -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        (URL, True),
        ("https://client.example:8443/a/b?x=1", True),
        ("http://client.example/c.json", False),
        ("http://127.0.0.1/c.json", False),
        ("https://client.example", False),
        ("https://client.example/", False),
        ("https://client.example/a/../b", False),
        ("https://client.example/a/%2e%2e/b", False),
        ("https://client.example/c#x", False),
        ("https://me@client.example/c", False),
        ("https://client.example/" + "x" * 3_000, False),
        ("HTTPS://client.example/c", False),
        ("some-id", False),
    ],
)
def test_which_client_ids_are_urls_of_documents(url: str, accepted: bool) -> None:
    assert is_document_url(url) is accepted


@pytest.mark.parametrize(
    "body",
    [
        document(client_id="https://client.example/accord.jsoN"),
        document(client_id="https://client.example/accord.json/"),
        document(client_id=None),
        document(redirect_uris=None),
        document(redirect_uris=[]),
        document(redirect_uris=["javascript:alert(1)"]),
        document(redirect_uris=["http://client.example/cb"]),
        document(redirect_uris=[REDIRECT_URI] * 21),
        document(redirect_uris="https://client.example/cb"),
        document(client_name="x" * 201),
        document(client_secret="s"),
        document(client_secret_expires_at=0),
        document(token_endpoint_auth_method="client_secret_basic"),
        document(token_endpoint_auth_method="private_key_jwt"),
        [],
        None,
    ],
)
def test_an_invalid_document_is_refused(body: Any) -> None:
    with pytest.raises(EndpointError):
        read_document(URL, json.dumps(body).encode(), ())


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff", b"[" * 100_000, b'{"client_id": 1}'])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(EndpointError):
        read_document(URL, body, ())


@pytest.mark.parametrize(
    "web", [{"status": 404}, {"status": 302, "location": URL}, {"answer": b" " * DOCUMENT_BYTES * 2}]
)
async def test_only_a_small_document_at_the_url_itself_is_accepted(web: dict[str, Any]) -> None:
    documents = ClientDocuments(Web(**web), (), Clock(), _no_report)
    with pytest.raises(EndpointError):
        await documents.load(URL, "a")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({}, 300), ({"cache_control": "max-age=60"}, 60), ({"cache_control": "public, max-age=999999999"}, 86_400)],
)
async def test_a_document_is_cached_as_long_as_its_headers_allow(headers: dict[str, str], seconds: float) -> None:
    web, clock = Web(**headers), Clock()
    documents = ClientDocuments(web, (), clock, _no_report)
    await documents.load(URL, "a")
    clock.ahead += seconds - 1
    await documents.load(URL, "a")
    assert len(web.requests) == 1
    clock.ahead += 2
    await documents.load(URL, "a")
    assert len(web.requests) == 2


@pytest.mark.parametrize("header", ["no-store", "private, no-cache", "max-age=0"])
async def test_a_document_may_forbid_caching(header: str) -> None:
    web = Web(cache_control=header)
    documents = ClientDocuments(web, (), Clock(), _no_report)
    for _ in range(2):
        await documents.load(URL, "a")
    assert len(web.requests) == 2


async def test_failures_are_not_cached() -> None:
    web = Web(status=500)
    documents = ClientDocuments(web, (), Clock(), _no_report)
    with pytest.raises(EndpointError):
        await documents.load(URL, "a")
    web.status = 200
    assert (await documents.load(URL, "a")).client_id == URL


async def test_one_address_has_few_fetches_at_once_and_equal_ones_are_shared() -> None:
    web = Web()
    web.open.clear()
    documents = ClientDocuments(web, (), Clock(), _no_report)
    fetches = [asyncio.create_task(documents.load(URL, "a")) for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(EndpointError, match="too many") as found:
        await documents.load(f"{URL}?2", "a")
    assert found.value.status == 503
    other = asyncio.create_task(documents.load(URL, "b"))
    await asyncio.sleep(0)
    web.open.set()
    await asyncio.gather(*fetches, other)
    assert len(web.requests) == 1
    assert not documents._fetching


async def test_fetches_take_turns_by_address() -> None:
    web = Web()
    documents, done = ClientDocuments(web, (), Clock(), _no_report), list[str]()
    web.open.clear()

    async def load(address: str, number: int) -> None:
        with pytest.raises(EndpointError, match="is not its URL"):
            await documents.load(f"{URL}?{number}", address)
        done.append(address)

    tasks = [asyncio.create_task(load(f"attacker-{number % 20}", number)) for number in range(80)]
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(load("attacker-20", number)) for number in range(80, 84)]
    tasks.append(asyncio.create_task(load("honest", 84)))
    await until(lambda: len(web.requests) == 64)
    web.open.set()
    await asyncio.gather(*tasks)
    assert done.index("honest") < 82


async def test_an_error_of_the_network_is_an_error_of_the_client() -> None:
    async def send(request: OAuthRequest, account: str) -> OAuthResponse:
        raise AuthorizationError("connection", "refused")

    lines: list[str] = []
    documents = ClientDocuments(send, (), Clock(), lambda _, text: lines.append(text()))
    with pytest.raises(EndpointError, match="cannot be fetched from a public address"):
        await documents.load(URL, "a")
    assert lines == [f"the metadata document {URL} cannot be fetched: refused"]
