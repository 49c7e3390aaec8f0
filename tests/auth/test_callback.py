"""The callback of a login: the browser of the user comes back to this machine."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from accord import AuthorizationError, Client, CredentialStore, OAuth
from accord.auth.callback import CallbackListener

from tests.auth.peers.browser import Browser
from tests.auth.place import place
from tests.interop.serving import free_port


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """What the browser of the user was answered with. It stays open, as those in a terminal, until it has a page."""
    found: list[tuple[int, str]] = []
    browser = Browser()

    def visit(url: str) -> bool:
        found.append(browser.get(browser.visit(url)))
        return True

    monkeypatch.setattr("webbrowser.open", visit)
    return found


async def first_of(pages: list[tuple[int, str]]) -> tuple[int, str]:
    """Return the only page, which the browser may still read when the login is over."""
    async with asyncio.timeout(30):
        while not pages:
            await asyncio.sleep(0.01)
    (page,) = pages
    return page


async def test_a_browser_that_comes_back_is_logged_in(tmp_path: Path, pages: list[tuple[int, str]]) -> None:
    store = CredentialStore(tmp_path / "credentials.db")
    async with place() as at, Client(at.url, auth=OAuth(interactive=True, store=store)) as client:
        assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["authorization"] == 1
    status, page = await first_of(pages)
    assert (status, "You are logged in" in page) == (200, True)


STRANGE: list[Callable[[str], str]] = [
    lambda callback: f"{callback.partition('?')[0]}?code=x&state=y",
    lambda callback: callback.partition("?")[0],
    lambda callback: f"{callback}&state=again",
    lambda callback: f"{callback.partition('?')[0]}?{'&'.join(f'a{index}=' for index in range(40))}",
    lambda callback: f"{callback.partition('?')[0]}?http://[",
]


@pytest.mark.parametrize(
    "strange", STRANGE, ids=["another state", "nothing", "twice", "many parameters", "a URL that is none"]
)
async def test_callbacks_of_others_do_not_end_a_login(
    strange: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any page in the browser of the user can send them."""
    browser, statuses = Browser(), []

    def visit(url: str) -> bool:
        callback = browser.visit(url)
        statuses.extend(browser.get(each)[0] for each in (strange(callback), callback))
        return True

    monkeypatch.setattr("webbrowser.open", visit)
    store = CredentialStore(tmp_path / "credentials.db")
    async with place() as at, Client(at.url, auth=OAuth(interactive=True, store=store)) as client:
        assert (await client.call_tool("who")).text == "alice"
    assert statuses == [400, 200]


async def test_a_login_that_fails_shows_why(tmp_path: Path, pages: list[tuple[int, str]]) -> None:
    store = CredentialStore(tmp_path / "credentials.db")
    async with place(user=lambda attempt: None) as at:
        with pytest.raises(Exception, match="access_denied"):
            await Client(at.url, auth=OAuth(interactive=True, store=store)).connect()
    status, page = await first_of(pages)
    assert (status, "Login failed" in page) == (400, True)


@pytest.fixture
def redirect_uris(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The redirect URI of each login in the browser."""
    found: list[str] = []
    browser = Browser()

    def visit(url: str) -> bool:
        found.extend(parse_qs(urlsplit(url).query)["redirect_uri"])
        browser.get(browser.visit(url))
        return True

    monkeypatch.setattr("webbrowser.open", visit)
    return found


@pytest.mark.parametrize("port", ["any", "given"])
async def test_the_next_login_uses_the_registered_redirect_uri(
    port: str, tmp_path: Path, redirect_uris: list[str]
) -> None:
    """Some authorization servers compare the port as well; it is used although connections of before linger there."""
    store = CredentialStore(tmp_path / "credentials.db")
    auth = OAuth(interactive=True, store=store, port=free_port() if port == "given" else 0)
    async with place() as at:
        for _ in range(2):
            async with Client(at.url, auth=auth) as client:
                assert (await client.call_tool("who")).text == "alice"
            at.issuer.revoke_all()
        assert at.issuer.counts["registration"] == 1
    first, second = redirect_uris
    assert first == second


async def test_a_client_that_the_user_registered_is_shown_with_its_redirect_uri(
    store: CredentialStore, redirect_uris: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a client with another one, only the browser would show the error."""
    async with place() as at:
        at.issuer.add_client("desk")
        async with Client(at.url, auth=OAuth(interactive=True, client_id="desk", store=store)):
            pass
    assert f"The client desk must have this redirect URI there: {redirect_uris[0]}\n" in capsys.readouterr().err


async def test_a_client_whose_port_is_in_use_registers_another(tmp_path: Path, redirect_uris: list[str]) -> None:
    store = CredentialStore(tmp_path / "credentials.db")
    async with place() as at:
        async with Client(at.url, auth=OAuth(interactive=True, store=store)):
            at.issuer.revoke_all()
        with socket.create_server(("127.0.0.1", urlsplit(redirect_uris[0]).port or 0)):
            async with Client(at.url, auth=OAuth(interactive=True, store=store)) as client:
                assert (await client.call_tool("who")).text == "alice"
        assert at.issuer.counts["registration"] == 2
    first, second = redirect_uris
    assert first != second


async def test_the_redirect_uri_is_on_this_machine_alone(tmp_path: Path, redirect_uris: list[str]) -> None:
    store = CredentialStore(tmp_path / "credentials.db")
    async with place() as at, Client(at.url, auth=OAuth(interactive=True, store=store)):
        assert [urlsplit(each).hostname for each in redirect_uris] == ["127.0.0.1"]


async def test_a_port_in_use_is_an_error_before_the_client_registers(
    tmp_path: Path, pages: list[tuple[int, str]]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        store = CredentialStore(tmp_path / "credentials.db")
        async with place() as at:
            text = (
                rf"callback: port {port} of this machine cannot be used: .*; end the program that uses it, or .*--port"
            )
            with pytest.raises(AuthorizationError, match=text):
                await Client(at.url, auth=OAuth(interactive=True, store=store, port=port)).connect()
            assert at.issuer.counts["registration"] == at.issuer.counts["authorization"] == 0
    assert pages == []


async def test_the_page_shows_nothing_of_the_callback_unescaped(tmp_path: Path, pages: list[tuple[int, str]]) -> None:
    store = CredentialStore(tmp_path / "credentials.db")
    async with place(faults={"login_error_script"}) as at:
        with pytest.raises(AuthorizationError, match="<script>"):
            await Client(at.url, auth=OAuth(interactive=True, store=store)).connect()
    status, page = await first_of(pages)
    assert status == 400
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not {"\x1b", "\u202e"} & set(page)


async def test_the_page_may_run_no_script_and_is_stored_nowhere() -> None:
    async with CallbackListener() as listener, aiohttp.ClientSession() as browser:

        async def answer() -> None:
            callback = await listener.receive()
            callback.answer("<b>Title</b>", "<img src=x onerror=alert(1)>")

        answering = asyncio.create_task(answer())
        async with browser.get(f"{listener.redirect_uri}?a=b") as response:
            page = await response.text()
            assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert response.headers["Cache-Control"] == "no-store"
        await answering
        assert not {"<b>", "<img"} & set(re.findall(r"<\w+>?", page))
        async with browser.get(listener.redirect_uri.replace("/callback", "/other")) as response:
            assert response.status == 404
        async with browser.post(listener.redirect_uri, data=b"x") as response:
            assert response.status == 405


async def test_the_end_of_a_login_answers_each_callback() -> None:
    """Any page in the browser can send them, a browser may send one twice, and a login may be cancelled."""
    async with aiohttp.ClientSession() as browser, asyncio.timeout(30):
        async with CallbackListener() as listener:
            visits = [asyncio.create_task(browser.get(f"{listener.redirect_uri}?state={each}")) for each in range(3)]
            (await listener.receive()).answer("You are logged in", "")
            await listener.receive()
            await listener.receive()
        assert sorted([(await visit).status for visit in visits]) == [200, 400, 400]


async def test_long_codes_arrive_and_longer_callbacks_are_refused_without_a_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with aiohttp.ClientSession() as browser, asyncio.timeout(30), CallbackListener() as listener:
        visit = asyncio.create_task(browser.get(f"{listener.redirect_uri}?code={'c' * 16_000}"))
        callback = await listener.receive()
        assert callback.query == f"code={'c' * 16_000}"
        callback.answer("You are logged in", "")
        assert (await visit).status == 200
        async with browser.get(f"{listener.redirect_uri}?code={'c' * 30_000}") as response:
            assert response.status == 400
    assert caplog.text == ""


async def test_the_end_of_a_login_waits_for_no_body() -> None:
    async with CallbackListener() as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(listener.redirect_uri).port)
        writer.write(b"POST /callback HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        assert b"405" in await reader.readline()
        async with asyncio.timeout(8):  # a server that waits for the body does so for 10 s
            await reader.read()
    writer.close()
