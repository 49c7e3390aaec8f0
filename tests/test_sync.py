"""The blocking client: the verbs of the async one, from any thread, and nothing left behind."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import accord
from accord import Context, ResourceUpdated, Server
from accord.client import notifications, subscription
from accord.errors import ConnectError, ConnectionLost, LocalProtocolError, NotConnected, ProtocolError, RequestTimeout
from accord.messages.revision import REVISIONS
from accord.sync import Client, NoticeStream, Subscription
from accord.transport.base import Transport

WEATHER = str(Path(__file__).parent.parent / "examples" / "weather.py")
ASYNC_ONLY = {"connection"}
"""The connection belongs to its loop: what can be asked of it, can be asked of the client."""


@pytest.fixture
def cancelled() -> threading.Event:
    """Whether the tool that hangs was cancelled."""
    return threading.Event()


@pytest.fixture
def server(cancelled: threading.Event) -> Server:
    server = Server("desk", version="1.2.0", instructions="Be brief.")

    @server.tool
    async def add(a: int, b: int, ctx: Context) -> int:
        ctx.report_progress(1, 2, "adding")
        return a + b

    @server.tool
    async def hang(ctx: Context) -> None:
        ctx.report_progress(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    @server.tool
    async def touch() -> None:
        server.resource_updated("desk://drawer")

    @server.tool
    async def order(ctx: Context) -> str:
        answer = await ctx.elicit("What?", str)
        return f"a {answer.data}"

    @server.resource("desk://drawer")
    def drawer() -> str:
        return "a pen"

    @server.prompt
    def letter(to: str) -> str:
        return f"Write to {to}."

    return server


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    for thread in ours():
        thread.join(100)
    assert not ours()


def ours() -> list[threading.Thread]:
    """The threads of clients that live."""
    return [thread for thread in threading.enumerate() if thread.name == "accord client"]


# --- the same as the async one --------------------------------------------------------------------------------------


def names(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def test_no_verb_is_missing() -> None:
    assert names(Client) == names(accord.Client) - ASYNC_ONLY | {"limits"}


@pytest.mark.parametrize("name", [*sorted(names(Client) - {"limits"}), "__init__"])
def test_each_verb_has_the_same_parameters(name: str) -> None:
    ours, theirs = getattr(Client, name), getattr(accord.Client, name)
    if not callable(theirs):
        assert inspect.signature(ours.fget) == inspect.signature(theirs.fget)
    else:
        mine, other = inspect.signature(ours), inspect.signature(theirs)
        assert list(mine.parameters.values()) == list(other.parameters.values())
        assert mine.return_annotation == other.return_annotation
    assert not inspect.iscoroutinefunction(ours)
    assert ours.__doc__


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(NoticeStream, notifications.NoticeStream), (Subscription, subscription.Subscription)],
)
def test_iteration_yields_the_same(ours: type, theirs: type) -> None:
    attributes = {"wish", "granted"} if theirs is subscription.Subscription else set()
    assert names(ours) - {"get"} == names(theirs) - {"add", "deliver", "end"} | attributes


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("target", ["memory", "stdio"])
def test_the_main_job(target: str, revision: str, server: Server) -> None:
    if target == "stdio":
        with Client(WEATHER, revisions=[revision]) as client:
            assert client.call_tool("convert", {"degrees": 20, "to": "F"}).text == "68.0"
            return
    with Client(server, revisions=[revision]) as client:
        seen: list[Any] = []
        client.ping()
        result = client.call_tool("add", {"a": 1, "b": 2}, on_progress=lambda *told: seen.append(told))
        assert (result.text, seen[0][:2]) == ("3", (1, 2))
        assert client.read_resource("desk://drawer").contents[0].text == "a pen"
        assert client.get_prompt("letter", {"to": "Ada"}).messages[0].content.text == "Write to Ada."
        assert [tool.name for tool in client.list_tools()] == ["add", "hang", "touch", "order"]
        assert (client.revision, client.instructions) == (revision, "Be brief.")
        with pytest.raises(ProtocolError, match="nothing"):
            client.call_tool("nothing")


# --- what is told, and asked ----------------------------------------------------------------------------------------


def test_a_subscription_is_iterated_over(server: Server) -> None:
    with Client(server) as client, client.subscribe("desk://drawer") as subscription:
        client.call_tool("touch")
        assert next(subscription) == ResourceUpdated("desk://drawer")
        assert subscription.uris == ["desk://drawer"]
        with pytest.raises(RequestTimeout, match=r"0\.01 s"):
            subscription.get(timeout=0.01)
        client.call_tool("touch")
        assert subscription.get(timeout=100) == ResourceUpdated("desk://drawer")
        client.close()
        assert list(subscription) == []
        assert subscription.get() is None


def test_callbacks_are_called_until_they_are_removed(server: Server) -> None:
    told: list[str] = []
    with Client(server, revisions=["2025-11-25"]) as client, client.notifications() as stream:
        remove = client.on("notifications/tools/list_changed", lambda notice: told.append(notice.method))
        server.tool(name="new")(lambda: "new")
        assert stream.get(timeout=100) is not None
        remove()
        server.remove_tool("new")
        assert stream.get(timeout=100) is not None
    assert told == ["notifications/tools/list_changed"]


def test_who_answers_the_server_may_call_it(server: Server) -> None:
    def ask(params: Any) -> str:
        return str(client.call_tool("add", {"a": 1, "b": 2}).text)

    with Client(server, elicitation=ask) as client:
        assert client.call_tool("order").text == "a 3"


def test_a_callback_that_calls_its_client_gets_an_error_with_the_reason(server: Server, caplog: Any) -> None:
    with Client(server) as client:
        client.call_tool("add", {"a": 1, "b": 2}, on_progress=lambda *_: client.ping())
    assert "a callback of a blocking client cannot wait" in caplog.text


def test_a_callback_that_exits_leaves_nobody_waiting(server: Server, caplog: Any) -> None:
    def leave(*_: Any) -> None:
        raise SystemExit(3)

    with Client(server) as client, pytest.raises(NotConnected):
        client.call_tool("hang", on_progress=leave)
    assert "its thread ends, as a callback raised SystemExit(3)" in caplog.text


# --- lifetime -------------------------------------------------------------------------------------------------------


def test_a_client_is_opened_again(server: Server) -> None:
    client = Client(server)
    for _ in range(3):
        with client:
            assert client.call_tool("add", {"a": 1, "b": 2}).data == 3
        assert not ours()
    client.close()


def test_a_client_that_is_not_connected_says_so(server: Server) -> None:
    client = Client(server)
    client.close()
    with pytest.raises(NotConnected, match="connect"):
        client.ping()
    with pytest.raises(NotConnected):
        assert client.revision


def test_a_server_that_cannot_be_started_leaves_no_thread() -> None:
    with pytest.raises(ConnectError, match="no-such-program"):
        Client("no-such-program").connect()
    assert not ours()


def test_a_server_that_exits_is_reported(tmp_path: Path) -> None:
    mortal = (
        "import os\nfrom accord import Server\nserver = Server('mortal')\nserver.tool(name='die')(lambda: os._exit(7))"
    )
    (tmp_path / "mortal.py").write_text(mortal)
    with Client(tmp_path / "mortal.py") as client, pytest.raises(ConnectionLost, match="exited with code 7"):
        client.call_tool("die")


def test_many_threads_use_one_client(server: Server) -> None:
    with Client(server) as client, ThreadPoolExecutor(8) as pool:
        sums = pool.map(lambda n: client.call_tool("add", {"a": n, "b": 1}).data, range(100))
        assert list(sums) == list(range(1, 101))


def test_many_threads_open_and_close_one_client(server: Server) -> None:
    """Whatever they do to each other, nobody waits forever, and no thread is left."""
    client = Client(server)

    def work(n: int) -> None:
        try:
            with client:
                client.call_tool("add", {"a": n, "b": 1})
        except (NotConnected, ConnectionLost):
            pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(100)))
    client.close()
    assert not ours()


def test_a_connect_that_fails_while_the_client_closes_does_not_end_its_thread(server: Server) -> None:
    served = threading.Event()

    async def serve(transport: Transport) -> None:
        await server.serve(transport)
        served.set()

    def reopen(state: str, error: Exception | None) -> None:
        if state == "closed":
            with pytest.raises(LocalProtocolError, match="callback"):
                client.connect()

    target: Any = SimpleNamespace(serve=serve)
    client = Client(target, on_state=reopen).connect()
    client.close()
    assert served.is_set()


def test_a_call_fails_when_another_thread_closes(server: Server) -> None:
    running = threading.Event()

    def hang() -> None:
        with pytest.raises(NotConnected):
            client.call_tool("hang", on_progress=lambda *_: running.set())

    with Client(server) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(hang)
        assert running.wait(100)
        client.close()
        waiting.result(10)


async def test_it_works_where_a_loop_runs(server: Server) -> None:
    with Client(server) as client:
        assert client.call_tool("add", {"a": 1, "b": 2}).data == 3


def test_a_client_that_is_collected_is_closed() -> None:
    client = Client(WEATHER).connect()
    client.ping()
    del client
    assert not ours()


# --- Ctrl-C, and the end of the program -----------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_cancels_the_call_and_no_more(server: Server, cancelled: threading.Event) -> None:
    def interrupt(*_: Any) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with Client(server) as client:
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("hang", on_progress=interrupt)
        assert client.call_tool("add", {"a": 1, "b": 2}).data == 3
        assert cancelled.wait(100)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_what_a_signal_handler_raises_cancels_the_call(server: Server, cancelled: threading.Event) -> None:
    class Alarm(Exception):
        pass

    def raise_alarm(*_: Any) -> None:
        raise Alarm

    def interrupt(*_: Any) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, raise_alarm)
    try:
        with Client(server) as client:
            with pytest.raises(Alarm):
                client.call_tool("hang", on_progress=interrupt)
            assert cancelled.wait(100)
    finally:
        signal.signal(signal.SIGUSR1, before)


FORKS = {
    "new": ("", "3"),
    "open": ("client.connect()", "NotConnected"),
    "closed": ("client.connect().close()", "NotConnected"),
}
"""What a program does with its client before it forks, and what a call in the forked process then brings."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("before", FORKS)
def test_a_forked_process_neither_waits_for_nor_harms_the_client_of_its_parent(before: str, tmp_path: Path) -> None:
    first, brings = FORKS[before]
    program = f"""
        import os, signal
        from accord.sync import Client
        client = Client("server.py")
        def add():
            return client.connect().call_tool("add", {{"a": 1, "b": 2}}).text
        {first}
        signal.alarm(90)
        child = os.fork()
        if not child:
            signal.alarm(90)
            try:
                print(add(), flush=True)
            except Exception as exc:
                print(type(exc).__name__, flush=True)
            raise SystemExit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        print(add(), flush=True)
        client.close()
    """
    server = """
        from accord import Server
        server = Server("adder")
        @server.tool
        def add(a: int, b: int) -> int:
            return a + b
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    (tmp_path / "server.py").write_text(textwrap.dedent(server))
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "program.py"]  # a fork of a process with threads
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.split() == [brings, "3"], done.stderr
    assert done.returncode == 0, done.stderr


ENDS: dict[str, str] = {
    "returns": "",
    "raises": "raise ValueError",
    "exits": "sys.exit(3)",
    "calls": "threading.Thread(target=client.call_tool, args=('hang',), daemon=True).start(); client.ping()",
    "forgets": "client.other = client",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_does_not_close_ends_and_leaves_no_process(end: str, tmp_path: Path) -> None:
    program = f"""
        import os, sys, threading, pathlib
        from accord.sync import Client
        client = Client("server.py").connect()
        pathlib.Path("pid").write_text(client.call_tool("pid").text)
        {ENDS[end]}
    """
    server = """
        import os, asyncio
        from accord import Server
        server = Server("left")
        @server.tool
        def pid() -> str:
            return str(os.getpid())
        @server.tool
        async def hang() -> None:
            await asyncio.Event().wait()
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    (tmp_path / "server.py").write_text(textwrap.dedent(server))
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == {"raises": 1, "exits": 3}.get(end, 0), done.stderr
    assert {"raises": "ValueError", "calls": "NotConnected"}.get(end, "") in done.stderr
    assert end in ("raises", "calls") or not done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
