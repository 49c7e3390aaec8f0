"""Real child processes, from their start to their certain end."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from accord.errors import ConnectError
from accord.limits import Limits
from accord.transport.process import ProcessGroup, child_environment, left_out
from accord.transport.subprocess import SubprocessTransport

from tests.waiting import until

CHILD = str(Path(__file__).parent / "child.py")
QUICK = Limits(close_seconds=0.3)


async def started(what: str, **kwargs: object) -> SubprocessTransport:
    kwargs.setdefault("limits", QUICK)
    transport = SubprocessTransport([sys.executable, CHILD, what], **kwargs)  # type: ignore[arg-type]
    await transport.open()
    return transport


async def line(transport: SubprocessTransport) -> str:
    (message,) = await transport.receive()
    assert isinstance(message, bytes)
    return message.decode()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_messages_pass_and_an_obedient_child_ends_at_the_end_of_its_input() -> None:
    transport = await started("echo")
    transport.send(b'{"id":1}')
    assert await line(transport) == '{"id":1}'
    await transport.close()
    assert "exited with code 0" in str(transport.lost())
    await transport.close()


async def test_an_exit_is_reported_with_its_code_and_the_last_lines_of_stderr() -> None:
    transport = await started("dies")
    assert await transport.receive() == []
    lost = transport.lost()
    assert (lost.exit_code, lost.stderr) == (3, "line one\nline two")
    assert str(lost).endswith('child.py dies" exited with code 3; last lines of stderr:\nline one\nline two')
    await transport.close()


async def test_a_signal_is_reported_by_its_name() -> None:
    transport = await started("killed")
    assert await transport.receive() == []
    assert "was ended by SIGKILL; it wrote nothing to stderr" in str(transport.lost())
    await transport.close()


async def test_a_child_that_closes_its_output_and_runs_on_is_an_error_that_says_so() -> None:
    transport = await started("closes_stdout")
    assert await transport.receive() == []
    assert "closed its output but still runs" in str(transport.lost())
    await transport.close()


async def test_a_child_that_ignores_every_signal_is_killed_in_the_end() -> None:
    transport = await started("deaf")
    pid = int(await line(transport))
    async with asyncio.timeout(100):
        await transport.close()
    assert not is_running(pid)
    assert transport.lost().exit_code == -9


@pytest.mark.parametrize("what", ["wrapper", "deaf_family"])
async def test_what_a_wrapper_leaves_behind_is_ended_too(what: str) -> None:
    patience = Limits(close_seconds=0.3 if what == "deaf_family" else 1000)
    transport = await started(what, limits=patience)
    pid = int(await line(transport))
    assert is_running(pid)
    async with asyncio.timeout(100):
        await transport.close()
    assert not is_running(pid)


async def test_the_exit_is_seen_though_a_daemon_holds_its_output() -> None:
    transport = await started("daemon")
    pid = int(await line(transport))
    async with asyncio.timeout(100):
        assert await transport.receive() == []
    assert transport.lost().exit_code == 4
    await transport.close()
    assert is_running(pid), "only the process group of a server ends with it"
    os.kill(pid, 9)


async def test_a_cancelled_close_goes_on_to_the_end() -> None:
    transport = await started("deaf")
    pid = int(await line(transport))
    closing = asyncio.create_task(transport.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await asyncio.gather(transport.close(), transport.close())
    assert not is_running(pid)


async def test_stderr_is_read_without_end_and_its_last_lines_are_stored() -> None:
    seen: list[str] = []
    transport = await started("chatter", on_stderr=seen.append)
    transport.send(b"{}")
    assert await line(transport) == "{}"
    await transport.close()
    assert len(seen) == 20_000
    assert transport.lost().stderr.splitlines() == [f"noise {n}" for n in range(19_980, 20_000)]


async def test_no_zombie_is_left() -> None:
    earlier = children()
    transport = await started("dies")
    await transport.receive()
    await transport.close()
    assert children() - earlier == set()


def test_a_process_that_ended_with_its_event_loop_is_removed_at_the_next_start() -> None:
    async def watch() -> ProcessGroup:
        return ProcessGroup(process, lambda: None)

    async def open_and_close() -> None:
        await (await started("dies")).close()

    command = [sys.executable, CHILD, "deaf"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    asyncio.run(watch()).kill()
    asyncio.run(until(lambda: not is_running(process.pid)))
    assert str(process.pid) in children()
    asyncio.run(open_and_close())
    assert str(process.pid) not in children()


def children() -> set[str]:
    """Return the processes that this one has started, those too that ended and were not waited for."""
    found = set()
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread of an earlier test that ended in the meantime
            found.update(path.read_text().split())
    return found


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["no-such-program-here"], "no-such-program-here is not on PATH"),
        (["./nowhere/program"], "no such file"),
        ([CHILD], "may not be executed"),
        (["a\0b"], "null byte"),
    ],
)
async def test_what_cannot_start_says_why(command: list[str], why: str) -> None:
    with pytest.raises(ConnectError, match=why) as caught:
        await SubprocessTransport(command).open()
    assert "cannot start" in str(caught.value)


async def test_a_missing_interpreter_and_a_missing_directory_are_errors(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(ConnectError, match="the interpreter in the first line of"):
        await SubprocessTransport([str(script)]).open()
    with pytest.raises(ConnectError, match=r"the directory .* does not exist"):
        await SubprocessTransport(["ls"], cwd=tmp_path / "none").open()


def test_the_environment_is_a_safe_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("TERM", "() { :; }; echo shellshock")
    safe = child_environment({"GIVEN": "1"}, inherit=False)
    assert {"PATH", "LC_TIME", "GIVEN"} <= set(safe)
    assert not {"API_KEY", "TERM"} & set(safe)
    assert child_environment(None, inherit=True)["API_KEY"] == "secret"


@pytest.mark.skipif(sys.platform == "win32", reason="the locale stands in the environment on POSIX")
async def test_a_child_inherits_the_variables_of_the_locale_but_not_others_that_begin_with_lc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    locale = "COLLATE CTYPE MESSAGES MONETARY NUMERIC TIME ADDRESS IDENTIFICATION MEASUREMENT NAME PAPER TELEPHONE ALL"
    inherited = {"LANG", "LANGUAGE", *(f"LC_{name}" for name in locale.split())}
    withheld = {"LC_TOKEN", "LC_", "LC_ALL_KEYS", "XLC_ALL"}
    for name in inherited | withheld:
        monkeypatch.setenv(name, "C")
    script = "import json, os; print(json.dumps(sorted(os.environ)))"
    transport = SubprocessTransport([sys.executable, "-S", "-E", "-c", script])
    await transport.open()
    try:
        (line,) = await transport.receive()
    finally:
        await transport.close()
    assert isinstance(line, bytes)
    assert {name for name in json.loads(line) if name in inherited | withheld} == inherited
    assert withheld <= set(left_out(None))


async def test_a_child_that_was_never_closed_ends_with_the_interpreter() -> None:
    program = (
        "import asyncio, sys\n"
        "from accord.transport.subprocess import SubprocessTransport\n"
        "async def main():\n"
        "    transport = SubprocessTransport([sys.executable, sys.argv[1], 'deaf'])\n"
        "    await transport.open()\n"
        "    print((await transport.receive())[0].decode())\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", program, CHILD]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=20, check=False)
    await until(lambda: not is_running(int(done.stdout)))  # what was killed takes a moment to end


def test_a_command_is_named_without_its_folders() -> None:
    deep = "/srv/" + "a/very/long/path/" * 9
    named = SubprocessTransport([f"{deep}bin/python", "-u", f"{deep}my server.py", "--root", "/", "docs/x"]).name
    assert named == "python -u 'my server.py' --root / docs/x"
