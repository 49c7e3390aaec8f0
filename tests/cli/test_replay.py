"""`--record FILE` and `accord replay`, as processes."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from accord.testing.recording import read_messages, read_recorded
from accord.wire.session_file import ClosedEntry, ConnectedEntry, HTTPEntry, RemarkEntry, StderrEntry

from tests.cli.conftest import Run

COMMANDS = [
    ["list", "{shop}"],
    ["call", "{shop}", "echo", "text=hello"],
    ["read", "{shop}", "shop://hours"],
    ["prompt", "{shop}", "plan", "day=Monday"],
    ["complete", "{shop}", "plan", "day", "M"],
    ["watch", "{shop}", "--for", "0.2"],
    ["ping", "{shop}", "-n", "1"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_each_command_records(words: list[str], accord: Run, shop: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    done = accord(*(word.format(shop=shop) for word in words), "--record", str(file))
    session = read_recorded(file)
    assert session.header.program.startswith("accord ")
    assert session.header.redacted
    assert shop.startswith(session.header.target.removesuffix("…"))  # a long name is shortened
    assert len(session.header.target) > 10
    assert any(isinstance(entry, StderrEntry) and "hello from the import" in entry.text for entry in session.entries)
    methods = [message.method for message in read_messages(file) if message.by_client]
    assert methods[0] == "server/discover"
    assert "record" not in done.stderr


def test_verbose_and_record_have_the_same_messages(accord: Run, shop: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    done = accord("ping", shop, "-n", "1", "-vv", "--record", str(file))
    printed = [line for line in done.stderr.splitlines() if line.startswith(("→", "←"))]
    assert len(printed) == len(read_messages(file))


def test_secrets_are_recorded_only_if_wanted(accord: Run, shop: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    call = ["call", shop, "echo", "text=token=abcdefgh12345", "--record", str(file)]
    accord(*call)
    assert "abcdefgh12345" not in file.read_text()
    accord(*call, "--unredacted")
    assert "abcdefgh12345" in file.read_text()
    assert not read_recorded(file).header.redacted
    done = accord("ping", shop, "--unredacted")
    assert (done.returncode, "--unredacted needs --record FILE" in done.stderr) == (2, True)


def test_a_file_that_cannot_be_written_is_an_error(accord: Run, shop: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    done = accord("ping", shop, "--record", str(notes))
    assert done.returncode == 3
    assert "error: cannot record to" in done.stderr
    assert "is no session file" in done.stderr
    assert notes.read_text() == "mine"


def test_several_servers_are_recorded_to_one_file(accord: Run, shop: str, tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": ["-m", "accord", "run", shop]}
    configuration = tmp_path / "mcp.json"
    configuration.write_text(json.dumps({"mcpServers": {"one": server, "two": server}}))
    file = tmp_path / "both.jsonl"
    accord("list", str(configuration), "--record", str(file))
    opened = [entry for entry in read_recorded(file).entries if isinstance(entry, ConnectedEntry)]
    assert [entry.connection for entry in opened] == [1, 2]


# --- accord replay ---------------------------------------------------------------------------------------------------


@pytest.fixture
def recording(accord: Run, shop: str, tmp_path: Path) -> Path:
    """The recording of a call."""
    file = tmp_path / "echo.jsonl"
    accord("call", shop, "echo", "text=hello", "--record", str(file))
    return file


def replayed(recording: Path) -> str:
    return shlex.join([sys.executable, "-m", "accord", "replay", str(recording)])


def test_a_recording_serves_over_stdio(accord: Run, recording: Path) -> None:
    done = accord("call", replayed(recording), "echo", "text=hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    done = accord("call", replayed(recording), "echo", "text=other")
    assert done.returncode == 4
    assert "has no such request: tools/call echo; it has server/discover" in done.stderr


def test_a_recording_serves_over_http(accord: Run, recording: Path) -> None:
    command = [sys.executable, "-m", "accord", "replay", str(recording), "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = re.search(r"http://\S+/mcp", process.stderr.readline())
            assert url is not None
            second = recording.with_name("second.jsonl")
            done = accord("call", url[0], "echo", "text=hello", "-vv", "--record", str(second))
            assert (done.returncode, done.stdout) == (0, "hello\n")
            assert re.search(r"^# → HTTP 1: POST http://127.0.0.1:\d+/mcp$", done.stderr, re.MULTILINE)
            assert any(isinstance(entry, HTTPEntry) for entry in read_recorded(second).entries)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(100) == 0


def test_a_recording_is_compared_with_a_server(accord: Run, recording: Path, shop: str) -> None:
    done = accord("replay", str(recording), shop)
    assert done.returncode == 0
    assert done.stdout == f"{len(read_messages(recording))} messages, 0 differences\n"
    other = recording.with_name("other.py")
    other.write_text(Path(shop).read_text().replace("return text", "return text * 2"))
    done = accord("replay", str(recording), str(other))
    assert done.returncode == 1
    assert 'result.content.0.text: "hello" → "hellohello"' in done.stdout
    found = json.loads(accord("replay", str(recording), str(other), "--json").stdout)
    assert len(found["differences"]) == 1
    ignored = ["--ignore", "result.content.*", "--ignore", "result.structuredContent"]
    assert accord("replay", str(recording), str(other), *ignored).returncode == 0


def test_redacted_requests_are_mentioned(accord: Run, shop: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    accord("call", shop, "echo", "text=token=abcdefgh12345", "--record", str(file))
    done = accord("replay", str(file), shop)
    assert done.returncode == 0
    assert "1 recorded messages of the client have redacted values" in done.stderr


def test_a_recording_becomes_a_test(accord: Run, recording: Path, shop: str) -> None:
    for target in ([], [str(Path(shop).absolute())]):
        done = accord("replay", str(recording), *target, "--test")
        assert done.returncode == 0
        (recording.parent / "test_echo.py").write_text(done.stdout)
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_echo.py"],
            cwd=recording.parent, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "2 passed" in ran.stdout, ran.stdout


def test_a_damaged_file_is_reported(accord: Run, recording: Path) -> None:
    lines = recording.read_bytes().splitlines(keepends=True)
    recording.write_bytes(b"".join(lines[:-1]) + lines[-1][:-5])
    done = accord("replay", str(recording), "--test")
    assert done.returncode == 0
    assert "warning: " in done.stderr
    assert "the last line is incomplete; it is left out" in done.stderr
    recording.write_bytes(lines[0] + b"{}\n" + lines[1])
    for options in ([], ["--test"], ["server.py"]):
        done = accord("replay", str(recording), *options)
        assert done.returncode == 2
        assert f"error: {recording}: line 2 is invalid" in done.stderr


def test_a_message_that_is_nested_too_deep_is_not_replayed(accord: Run, recording: Path, shop: str) -> None:
    header = recording.read_bytes().splitlines(keepends=True)[0]
    params = b'{"name":"t","arguments":{"a":' + b"[" * 900 + b"]" * 900 + b"}}"
    message = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + b"}"
    line = b'{"kind":"message","at":0.1,"connection":1,"direction":"sent","message":' + message + b"}\n"
    recording.write_bytes(header + line)
    for options in ([], ["--test"], [shop]):
        done = accord("replay", str(recording), *options)
        assert (done.returncode, "message 1 is nested more than 256 levels deep" in done.stderr) == (2, True)


def test_options_that_exclude_each_other(accord: Run, recording: Path, shop: str) -> None:
    for options in (["--http", ":0", shop], ["--http", ":0", "--test"], ["--ignore", "x"], ["--http", "nowhere"]):
        assert accord("replay", str(recording), *options).returncode == 2
    assert accord("replay", str(recording.with_name("missing"))).returncode == 2


def test_a_check_is_recorded(accord: Run, shop: str, tmp_path: Path) -> None:
    for transport in ("stdio", "http"):
        file = tmp_path / f"{transport}.jsonl"
        words = ["--transport", transport, "--only", "ping", "--only", "tools/list*", "--revision", "2025-11-25"]
        done = accord("check", shop, *words, "--record", str(file))
        assert done.returncode == 0, done.stdout + done.stderr
        session = read_recorded(file)
        opened = {entry.connection for entry in session.entries if isinstance(entry, ConnectedEntry)}
        closed = {entry.connection for entry in session.entries if isinstance(entry, ClosedEntry)}
        assert opened == closed != set()
        assert any(isinstance(entry, RemarkEntry) and entry.text.startswith("case ") for entry in session.entries)
        assert {message.by_client for message in read_messages(file)} == {True, False}
        heads = [entry for entry in session.entries if isinstance(entry, HTTPEntry)]
        assert {entry.direction for entry in heads} == ({"sent", "received"} if transport == "http" else set())


def test_a_check_of_a_client_is_recorded(accord: Run, tmp_path: Path) -> None:
    program = tmp_path / "client.py"
    program.write_text(
        "import asyncio, sys\nfrom accord import Client\n"
        "async def main():\n    async with Client(sys.argv[1]) as client:\n"
        "        await client.list_tools()\nasyncio.run(main())\n"
    )
    file = tmp_path / "client.jsonl"
    client = shlex.join([sys.executable, str(program)]) + " {server}"
    words = ["--client-stdio", client, "--only", "client-opening", "--level", "must", "--revision", "2025-11-25"]
    accord("check", *words, "--record", str(file))
    calls = [message for message in read_messages(file) if message.method == "initialize"]
    assert calls
    assert not any(message.by_client for message in calls)  # the client's messages are received here
