"""A server over HTTP for the time of a test."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import accord.sync
from accord import APIKeys, ConnectError, HTTPOptions, Principal, Server, TargetError
from accord.testing import served_over_http

from tests.testing.runs import WEATHER, run


def counter() -> Server:
    server = Server("counter")
    server.calls = 0  # type: ignore[attr-defined]

    @server.tool
    def count() -> int:
        server.calls += 1  # type: ignore[attr-defined]
        return server.calls  # type: ignore[attr-defined, no-any-return]

    return server


def test_a_server_object_is_served_in_this_process_and_ends_with_the_block() -> None:
    before = set(threading.enumerate())
    server = counter()
    with served_over_http(server) as url:
        assert url.startswith("http://127.0.0.1:")
        with accord.sync.Client(url) as client:
            assert client.call_tool("count").data == 1
    assert server.calls == 1  # type: ignore[attr-defined]
    with pytest.raises(ConnectError):
        accord.sync.Client(url).connect()
    started = set(threading.enumerate()) - before
    for thread in started:  # a thread that was told to end may need a moment to do so
        thread.join(20)
    assert not [thread.name for thread in started if thread.is_alive()]


def test_options_and_authentication_hold() -> None:
    server = Server("guarded", auth=APIKeys({"secret-key-1": Principal("ann", scopes=frozenset({"read"}))}))

    @server.tool(scopes={"read"})
    def read() -> str:
        return "text"

    with served_over_http(server, HTTPOptions(path="/other")) as url:
        assert url.endswith("/other")
        with accord.sync.Client({"url": url, "headers": {"Authorization": "Bearer secret-key-1"}}) as client:
            assert client.call_tool("read").text == "text"
        with pytest.raises(ConnectError, match="401"):
            accord.sync.Client(url).connect()


def test_a_file_is_served_by_a_process_of_its_own() -> None:
    with served_over_http(str(WEATHER)) as url, accord.sync.Client(url) as client:
        assert client.call_tool("forecast", {"city": "Oslo", "days": 1}).data


def test_a_file_that_does_not_start_is_an_error_with_its_words(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('the database is away')\n")
    with pytest.raises(ConnectError, match="the database is away"), served_over_http(str(broken)):
        pass


def test_a_url_is_itself_and_another_target_is_refused() -> None:
    with served_over_http("http://127.0.0.1:1/mcp") as url:
        assert url == "http://127.0.0.1:1/mcp"
    with pytest.raises(TargetError, match=r"pass a Server, FILE\.py or a URL"), served_over_http("some-command --here"):
        pass


def test_the_fixture_gives_the_url_and_takes_options(tmp_path: Path) -> None:
    conftest = """
        import pytest
        from accord import HTTPOptions, Server

        server = Server("desk")

        @server.tool
        def add(a: int, b: int) -> int:
            return a + b

        @pytest.fixture
        def accord_server():
            return server

        @pytest.fixture
        def accord_http_options():
            return HTTPOptions(path="/desk")
    """
    tests = """
        def test_plain(accord_http, accord_client_to):
            assert accord_http.endswith("/desk")
            with accord_client_to(accord_http) as client:
                assert client.call_tool("add", {"a": 1, "b": 2}).data == 3

        async def test_async(accord_http, accord_client_to):
            async with accord_client_to(accord_http) as client:
                assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 3
    """
    done = run(tmp_path, tests, conftest=conftest)
    assert done.passed == 2, done
