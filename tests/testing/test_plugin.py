"""The pytest plugin, in real runs of pytest, alone and beside the other plugins that run `async def` tests."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from accord import NotConnected, Server
from accord.testing.clients import ClientFixture

from tests.testing.runs import CONFTEST, WEATHER, needs, needs_us, run

pytestmark = [needs_us, pytest.mark.timeout(300)]

IN_MEMORY = """
    import os
    import pytest
    from accord import NotConnected, Server

    server = Server("desk")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def hang() -> None:
        import asyncio
        await asyncio.Event().wait()

    @pytest.fixture
    def accord_server():
        return server
"""

BOTH = """
    import asyncio

    def test_plain(accord_client):
        assert accord_client.call_tool("add", {"a": 1, "b": 2}).data == 3

    async def test_async(accord_client):
        assert (await accord_client.call_tool("add", {"a": 1, "b": 2})).data == 3

    class TestMethods:
        async def test_async(self, accord_client):
            assert (await accord_client.call_tool("add", {"a": 1, "b": 2})).data == 3

    async def test_another(accord_client_to, accord_server):
        async with accord_client_to(accord_server, revisions=["2025-06-18"]) as client:
            assert client.revision == "2025-06-18"
"""

BESIDE = {
    "alone": ["-p", "no:anyio"],
    "asyncio, strict": ["-o", "asyncio_mode=strict", "-o", "asyncio_default_fixture_loop_scope=function"],
    "asyncio, auto": ["-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"],
    "anyio": [],
    "anyio, auto": ["-o", "anyio_mode=auto"],
    "xdist": ["-n", "2"],
    "hypothesis": ["-p", "hypothesispytest"],
}
NEEDED = {"asyncio": "asyncio", "anyio": "anyio", "xdist": "xdist", "hypothesis": "hypothesispytest"}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(options, id=name, marks=[needs(NEEDED[name.partition(",")[0]])] if name != "alone" else [])
        for name, options in BESIDE.items()
    ],
)
def test_plain_and_async_tests_have_their_client(options: list[str], tmp_path: Path) -> None:
    ran = run(tmp_path, BOTH, *options, conftest=IN_MEMORY)
    assert (ran.passed, ran.code) == (4, 0), ran


@needs("asyncio")
def test_a_test_that_another_plugin_claims_is_run_by_it(tmp_path: Path) -> None:
    test = """
        import asyncio
        import pytest
        import pytest_asyncio

        @pytest_asyncio.fixture
        async def early(accord_client):
            await accord_client.connect()
            return asyncio.get_running_loop(), accord_client

        @pytest.mark.asyncio
        async def test_in_the_same_loop(early, accord_client):
            loop, client = early
            assert loop is asyncio.get_running_loop()
            assert client is accord_client
            assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 3
    """
    options = ["-o", "asyncio_mode=strict", "-o", "asyncio_default_fixture_loop_scope=function"]
    ran = run(tmp_path, test, *options, conftest=IN_MEMORY)
    assert (ran.passed, ran.code) == (1, 0), ran


@needs("anyio")
def test_a_test_that_is_marked_for_anyio_is_run_by_it(tmp_path: Path) -> None:
    test = """
        import pytest

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.mark.anyio
        async def test_it(accord_client):
            assert (await accord_client.call_tool("add", {"a": 1, "b": 2})).data == 3
    """
    ran = run(tmp_path, test, conftest=IN_MEMORY)
    assert (ran.passed, ran.code) == (1, 0), ran


async def nothing() -> None:
    """A test that does nothing."""


def test_a_test_on_another_kind_of_loop_gets_an_error_that_says_what_to_do() -> None:
    running = ClientFixture("test_it", True, 5).around(nothing)()
    with pytest.raises(RuntimeError, match="anyio_backend"):
        running.send(None)  # type: ignore[attr-defined]


def test_a_test_that_uses_nothing_of_it_is_left_alone(tmp_path: Path) -> None:
    ran = run(tmp_path, "async def test_it():\n    pass\n", "-p", "no:anyio")
    assert (ran.passed, ran.failed) == (0, 1)
    assert "not natively supported" in ran.output


def test_a_marked_test_is_run_without_a_fixture(tmp_path: Path) -> None:
    test = "import pytest\n\n@pytest.mark.accord\nasync def test_it():\n    assert False, 'it ran'\n"
    ran = run(tmp_path, test, "--strict-markers")
    assert "it ran" in ran.output


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    ran = run(tmp_path, BOTH, "-p", "no:accord", conftest="")
    assert "fixture 'accord_client' not found" in ran.output


def test_a_run_that_uses_nothing_of_it_loads_nothing_of_it(tmp_path: Path) -> None:
    test = """
        import sys

        def test_it():
            assert "accord.testing.plugin" in sys.modules
            loaded = {name for name in sys.modules if name.startswith(("accord.", "jsonschema", "msgspec"))}
            assert loaded == {"accord.lazy_names", "accord.testing", "accord.testing.plugin"}
    """
    ran = run(tmp_path, test, conftest="")
    assert ran.passed == 1, ran


# --- which server --------------------------------------------------------------------------------------------------


def test_a_missing_server_is_an_error_that_says_how_to_name_one(tmp_path: Path) -> None:
    ran = run(tmp_path, "def test_it(accord_client):\n    pass\n", conftest="")
    assert "define a fixture `accord_server`" in ran.output


def test_the_server_may_be_a_setting(tmp_path: Path) -> None:
    (tmp_path / "weather.py").write_text(WEATHER.read_text())
    (tmp_path / "tests").mkdir()
    test = "def test_it(accord_client):\n    assert accord_client.server_info.name == 'weather'\n"
    for target in ("weather.py", "weather.py:server"):
        ran = run(tmp_path, test, conftest="", ini=f"accord_server = {target}")
        assert ran.passed == 1, ran


def test_options_and_revisions_are_fixtures(tmp_path: Path) -> None:
    conftest = f"""{CONFTEST}
    @pytest.fixture(params=["2024-11-05", "2026-07-28"])
    def accord_options(request):
        return {{"revisions": [request.param], "timeout": 20}}
    """
    test = """
        def test_it(accord_client, accord_options):
            assert accord_client.revision in accord_options["revisions"]
    """
    ran = run(tmp_path, test, conftest=conftest)
    assert ran.passed == 2, ran


# --- the end -------------------------------------------------------------------------------------------------------

PID = """
    import os
    import pathlib
    from accord import NotConnected, Server
    server = Server("left")
    @server.tool
    def pid() -> str:
        return str(os.getpid())
"""


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_client_that_is_left_open_is_closed_with_its_test(kind: str, tmp_path: Path) -> None:
    (tmp_path / "left.py").write_text("\n".join(line[4:] for line in PID.splitlines()))
    tests = {
        "plain": """
            import pathlib

            def test_it(accord_client_to):
                client = accord_client_to("left.py").connect()
                pathlib.Path("pid").write_text(client.call_tool("pid").text)
                assert 0
        """,
        "async": """
            import pathlib

            async def test_it(accord_client_to):
                client = await accord_client_to("left.py").connect()
                pathlib.Path("pid").write_text((await client.call_tool("pid")).text)
                assert 0
        """,
    }
    ran = run(tmp_path, tests[kind] + GONE)
    assert (ran.passed, ran.failed, ran.errors) == (1, 1, 0), ran
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


GONE = """
            def test_it_is_gone():
                import os
                import pytest
                with pytest.raises(ProcessLookupError):
                    os.kill(int(pathlib.Path("pid").read_text()), 0)
"""

HANG = {
    "plain": "def test_it(accord_client):\n    accord_client.call_tool('hang')\n",
    "async": "async def test_it(accord_client):\n    await accord_client.call_tool('hang')\n",
}


@pytest.mark.parametrize("kind", HANG)
def test_a_test_that_hangs_is_ended(kind: str, tmp_path: Path) -> None:
    ran = run(tmp_path, HANG[kind], conftest=IN_MEMORY, ini="accord_timeout = 2")
    assert ran.failed == 1, ran
    assert "test_it.py::test_it took longer than 2 s (accord_timeout)" in ran.output
    assert "call_tool('hang')" in ran.output


def test_a_time_limit_that_is_none_is_refused(tmp_path: Path) -> None:
    ran = run(tmp_path, HANG["plain"], conftest=IN_MEMORY, ini="accord_timeout = soon")
    assert "accord_timeout = 'soon' is not a number of seconds" in ran.output


@pytest.mark.parametrize("is_async", [True, False])
def test_an_error_while_closing_says_whose_client_it_was(is_async: bool) -> None:
    """The others are closed all the same."""

    async def fail_async() -> None:
        raise OSError("the disk is full")

    def fail() -> None:
        raise OSError("the disk is full")

    desk, shop = Server("desk"), Server("shop")
    clients = ClientFixture("test_it", is_async, 5)
    open_, failing = clients.make(desk, {}), clients.make(shop, {})
    failing.close = fail_async if is_async else fail  # type: ignore[method-assign,assignment]
    clients.open(open_)
    with pytest.raises(OSError, match="disk") as caught:
        asyncio.run(clients.around(nothing)()) if is_async else clients.__exit__(None, None, None)  # type: ignore[arg-type]
    assert caught.value.__notes__ == [f"raised while the client of {shop!r} was closed after test_it"]
    with pytest.raises(NotConnected):
        assert open_.revision


def test_the_example_passes() -> None:
    example = WEATHER.with_name("test_weather.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:asyncio", str(example)]
    done = subprocess.run(command, cwd=example.parent, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
