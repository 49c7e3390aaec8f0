"""The pytest plugin: fixtures for tests of servers and of clients, and `async def` tests without another plugin.

    def test_forecast(accord_client):               # or: async def, with await before each call
        assert accord_client.call_tool("forecast", {"city": "Oslo"}).data == "rain"

The fixture `accord_server` returns the server, or the pytest setting `accord_server` names it. Every run of pytest
loads this plugin where accord is installed, so it imports accord only when a test uses a fixture.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from accord.client.client import Client as AsyncClient
    from accord.client.target import Target
    from accord.server.http.options import HTTPOptions
    from accord.sync.client import Client
    from accord.testing.clients import ClientFixture

_SECONDS = 60.0
_FIXTURES = frozenset(("accord_client", "accord_client_to", "accord_replay", "accord_server", "accord_surface"))
_CLIENTS: pytest.StashKey[ClientFixture] = pytest.StashKey()


class ClientTo(Protocol):
    """The type of `accord_client_to`, which returns an unconnected client, sync or async as the test is."""

    def __call__(self, target: Target | None = None, **options: Any) -> Any: ...


class Check(Protocol):
    """The type of `accord_surface` and `accord_replay`, which compare a server with a file."""

    def __call__(self, file: str | Path, target: Target | None = None, **options: Any) -> None: ...


# --- options -------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register `--accord-update` and the settings."""
    group = parser.getgroup("accord")
    group.addoption("--accord-update", action="store_true", help="write the current surfaces and transcripts")
    parser.addini("accord_server", "the server that accord_client is connected to: a command, FILE.py[:name], a URL")
    parser.addini("accord_timeout", f"timeout of a test with a client, in seconds; 0: none (default: {_SECONDS:g})")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "accord: run this `async def` test on an event loop of its own")


def _seconds(config: pytest.Config) -> float | None:
    """Return the timeout of a test in seconds, or None for no limit, as also in a debugger."""
    text = str(config.getini("accord_timeout") or _SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        raise pytest.UsageError(f"accord_timeout = {text!r} is not a number of seconds") from None
    return None if config.getoption("usepdb", False) else seconds or None


# --- fixtures ------------------------------------------------------------------------------------------------------


@pytest.fixture
def accord_server(pytestconfig: pytest.Config) -> Target:
    """Return the server under test, as `accord.Client` takes it. Define this fixture in your conftest.py."""
    target = str(pytestconfig.getini("accord_server"))
    if not target:
        raise pytest.UsageError(
            "no server to test: define a fixture `accord_server` that returns it (a Server, FILE.py, a URL), or set "
            "accord_server in the settings of pytest"
        )
    file = pytestconfig.rootpath / target
    return str(file) if file.name.partition(":")[0].endswith(".py") else target


@pytest.fixture
def accord_options() -> Mapping[str, Any]:
    """Return the options of `accord_client`, those of `accord.Client`. Override this fixture to change the defaults."""
    return {}


@pytest.fixture
def accord_client_to(request: pytest.FixtureRequest) -> Iterator[ClientTo]:
    """Return a function `accord_client_to(target, **options)` that makes a client.

    It makes an `accord.Client` in an `async def` test and an `accord.sync.Client` in others. Enter the client, or call
    `connect()`; the plugin closes clients that are open at the end of the test.
    """
    from accord.testing.clients import ClientFixture

    def make(target: Target | None = None, **options: Any) -> AsyncClient | Client:
        return clients.make(request.getfixturevalue("accord_server") if target is None else target, options)

    is_async = inspect.iscoroutinefunction(request.function)
    clients = ClientFixture(request.node.nodeid, is_async, _seconds(request.config))
    request.node.stash[_CLIENTS] = clients
    with clients:
        yield make


@pytest.fixture
def accord_client(
    accord_client_to: ClientTo, accord_options: Mapping[str, Any], request: pytest.FixtureRequest
) -> AsyncClient | Client:
    """Return a connected client of `accord_server`: `accord.Client` in async tests, `accord.sync.Client` in others."""
    client: AsyncClient | Client = accord_client_to(**accord_options)
    request.node.stash[_CLIENTS].open(client)
    return client


@pytest.fixture
def accord_http(accord_server: Target, accord_http_options: HTTPOptions | None) -> Iterator[str]:
    """Return the URL of `accord_server` over HTTP, on a free port; see `accord.testing.served_over_http`."""
    from accord.testing.http import served_over_http

    with served_over_http(accord_server, accord_http_options) as url:
        yield url


@pytest.fixture
def accord_http_options() -> HTTPOptions | None:
    """Return the `HTTPOptions` of `accord_http`. Override this fixture to change the defaults."""
    return None


@pytest.fixture
def accord_surface(request: pytest.FixtureRequest) -> Check:
    """Return a function that compares a server with a file: `accord_surface("weather.surface.json")`.

    `pytest --accord-update` writes the file. See `accord.testing.assert_surface`.
    """
    from accord.testing.surfaces import assert_surface

    return _check(request, assert_surface)


@pytest.fixture
def accord_replay(request: pytest.FixtureRequest) -> Check:
    """Return a function that replays a recording against `accord_server`: `accord_replay("forecast.jsonl")`.

    `pytest --accord-update` records the file again. See `accord.testing.replay`.
    """
    from accord.testing.replayer import replay

    return _check(request, replay)


def _check(request: pytest.FixtureRequest, compare: Callable[..., None]) -> Check:
    """Return a check for one test: file names are relative to the test's folder, `--accord-update` writes files."""

    def check(file: str | Path, target: Target | None = None, **options: Any) -> None:
        __tracebackhide__ = True
        if target is None:
            target = request.getfixturevalue("accord_server")
        update = request.config.getoption("accord_update")
        compare(file=request.path.parent / file, target=target, update=update, **options)

    return check


# --- tests that are `async def` ------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Connect and close the clients of an async test on the event loop that runs it, whichever plugin runs it."""
    clients = item.stash.get(_CLIENTS, None)
    if clients is None or not clients.is_async or not isinstance(item, pytest.Function):
        return (yield)
    test = item.obj
    item.obj = clients.around(test)
    try:
        return (yield)
    finally:
        item.obj = test


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test that uses accord's fixtures or marker, if no other plugin has run it before."""
    uses_accord = _FIXTURES & set(pyfuncitem.fixturenames) or pyfuncitem.get_closest_marker("accord")
    if not uses_accord or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    import asyncio

    argument_names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in argument_names}))
    return True
