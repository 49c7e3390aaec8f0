"""What every test shares: hypothesis without a clock, `--update`, and no process left behind, by any worker."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import sys
import time
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis.database import DirectoryBasedExampleDatabase

from accord.client.connect import CONNECT_METHODS

from tests import short_failures, worker_messages
from tests.durations import Durations, ProcessorTime, function_id, slow_files_first
from tests.quick import in_peer_folder, slow_functions

if TYPE_CHECKING:
    from tests.inspector.browser.browser import BrowserThread

hypothesis.settings.register_profile(
    "accord",
    deadline=None,  # a busy machine is not a failure; pytest-timeout bounds the test
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # likewise
    database=DirectoryBasedExampleDatabase(Path(__file__).parent.parent / ".cache" / "hypothesis"),
)
hypothesis.settings.load_profile("accord")

os.environ["ACCORD_KEYRING"] = "0"  # no test writes into the keyring of whoever runs it, nor a process that it starts

MARK = "ACCORD_TEST_RUN"
"""In the environment of this run and, by inheritance, of every process that it starts."""

LEFT = pytest.StashKey[list[str]]()
"""What the workers of a run found left behind."""

GRACE = 20.0
"""Seconds that a process may take to end after the last test, on a busy machine."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write transcripts anew instead of comparing them")
    parser.addoption("--record-durations", action="store_true", help="write tests/durations.json anew")
    parser.addoption("--quick", action="store_true", help="leave out tests that need peers, and those that take long")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(short_failures)
    config.pluginmanager.register(worker_messages)
    if not config.getoption("--record-durations"):
        return
    config.pluginmanager.register(ProcessorTime())
    if hasattr(config, "workerinput"):
        return
    if config.args_source is not config.ArgsSource.TESTPATHS or any(map(config.getoption, ("-k", "-m", "--quick"))):
        raise pytest.UsageError("--record-durations needs a whole run: it takes no paths, -k, -m or --quick")
    config.pluginmanager.register(Durations())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.getoption("--quick") and in_peer_folder(collection_path) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        slow = slow_functions()
        left_out = {item for item in items if in_peer_folder(item.path) or function_id(item) in slow}
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]
    if hasattr(config, "workerinput"):
        places = slow_files_first([item.nodeid for item in items], config.workerinput["workercount"])
        items[:] = [items[place] for place in places]


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether files that hold expected output are to be written anew."""
    return bool(request.config.getoption("--update"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Forget how servers were reached: the kernel gives their ports to servers of later tests, of other revisions."""
    CONNECT_METHODS._methods.clear()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests, each in an event loop of its own, but for those that use the browser."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    thread: BrowserThread | None = pyfuncitem.funcargs.get("browser_thread")
    run = asyncio.run if thread is None else thread.run
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True


@pytest.fixture(scope="session")
def browser_thread() -> Iterator[BrowserThread]:
    """The browser of this worker, with its event loop. With a second one, a test could run in the wrong loop."""
    from tests.inspector.browser.browser import BrowserThread

    thread = BrowserThread()
    yield thread
    thread.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests gave to `record_property` for the end, in whichever process they ran: a line that is `told`, or
    what is `counted`, of which it says how many passed."""
    counts: dict[str, list[bool]] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in report.user_properties if report.when == "call" else ():
                if name == "told":
                    terminalreporter.write_line(value)
                elif name == "counted":
                    counts.setdefault(value, []).append(report.passed)
    for what, passed in counts.items():
        terminalreporter.write_line(f"{sum(passed)} of {len(passed)} {what}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected is no garbage: looking for some takes a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Tests and all modules stay to the end: to look for garbage, as some tests do, need not go through them again."""
    gc.collect()
    gc.freeze()


def pytest_sessionstart(session: pytest.Session) -> None:
    # Begun with `&` or `nohup`, what tests interrupt would inherit that it ignores these.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    run = os.environ.get(MARK, "") if hasattr(session.config, "workeroutput") else ""
    os.environ[MARK] = run + uuid.uuid4().hex  # a worker looks for what it started, the run for what any of them did


@pytest.hookimpl(trylast=True)  # after the workers have ended, where there are any
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process that outlives the tests is a leak: name it, end it, fail the run."""
    deadline = time.monotonic() + GRACE
    while (left := list(processes_left(os.environ[MARK]))) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid, _ in left:
        os.kill(pid, signal.SIGKILL)
    lines = [f"process {pid}: {command}" for pid, command in left]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = lines
    else:
        tell_left(session, [*session.config.stash.get(LEFT, []), *lines])


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_testnodedown(node: Any) -> None:
    """A worker of pytest-xdist has ended, and said what it found; nothing, where it crashed."""
    node.config.stash.setdefault(LEFT, []).extend(getattr(node, "workeroutput", {}).get("left", []))


def tell_left(session: pytest.Session, lines: list[str]) -> None:
    for line in lines:
        session.config.get_terminal_writer().line(f"\nleft behind by the tests: {line}", red=True)
    if lines and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def processes_left(mark: str) -> Iterator[tuple[int, str]]:
    """Living processes below this one, or orphaned with its mark in their environment; none without /proc."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            environment = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # gone meanwhile, or another user's
            continue
        ours = any(variable.startswith(f"{MARK}={mark}".encode()) for variable in environment.split(b"\0"))
        if int(entry.name) != os.getpid() and state != "Z" and (ours or int(parent) == os.getpid()):
            yield int(entry.name), command.strip()
