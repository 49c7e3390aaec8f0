"""Look-ups of names that strangers chose: results as those of the loop, and a bound on their threads."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from accord.auth.http import OAuthClient
from accord.auth.lookups import Lookups
from accord.auth.steps import OAuthRequest
from accord.auth.urls import Reach
from accord.errors import AuthorizationError

from tests.server.auth.issuer import issuing
from tests.waiting import until


async def test_a_name_has_the_addresses_that_the_loop_finds() -> None:
    options = {"type": socket.SOCK_STREAM, "family": socket.AF_INET}
    found = await Lookups().getaddrinfo("localhost", 80, **options)
    assert found == await asyncio.get_running_loop().getaddrinfo("localhost", 80, **options)


async def test_a_request_reaches_the_host_of_a_name() -> None:
    async with issuing() as issuer:
        url = issuer.url.replace("127.0.0.1", "localhost")
        client = OAuthClient(url, reach=Reach.LOOPBACK, lookups=Lookups())
        try:
            assert (await client.send(OAuthRequest("keys", "GET", f"{url}/jwks", {}))).status == 200
        finally:
            await client.close()


async def test_an_unknown_name_is_an_error_and_frees_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*args: Any, **options: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    some = Lookups()
    with pytest.raises(socket.gaierror, match="unknown"):
        await some.getaddrinfo("x.example", 443)
    assert not some.running


async def test_a_look_up_counts_until_its_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def getaddrinfo(*args: Any, **options: Any) -> Any:
        answered.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    whole = Lookups(2)
    some, others, more = (Lookups(1, whole) for _ in range(3))
    try:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(some.getaddrinfo("x.example", 443), 0.01)
        with pytest.raises(AuthorizationError, match="too many names"):
            await some.getaddrinfo("y.example", 443)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(others.getaddrinfo("x.example", 443), 0.01)
        with pytest.raises(AuthorizationError, match="too many names"):
            await more.getaddrinfo("y.example", 443)
    finally:
        answered.set()
    await until(lambda: not whole.running)
    assert (some.running, others.running, more.running) == (0, 0, 0)
    assert await some.getaddrinfo("y.example", 443) == []
