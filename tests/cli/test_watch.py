"""`accord watch` and `--log-level`: what a server tells unasked, as processes see it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from accord.messages.revision import REVISIONS

from tests.cli.conftest import Run

Watch = Callable[..., "subprocess.Popen[str]"]

TELLS = """
import os, sys, threading, time
from accord import Server

server = Server("tells")
print("pid", os.getpid(), file=sys.stderr, flush=True)


@server.resource("state://now")
def now() -> str:
    return "fine"


def tell() -> None:
    while True:  # it does not know since when it is watched
        server.resource_updated("state://now")
        time.sleep(0.02)


threading.Thread(target=tell, daemon=True).start()
"""

SPEAKS = """
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        known = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "s", "version": "1"}}
        send(id=asked["id"], result={**known, "capabilities": {"logging": {}}})
    elif asked["method"] == "logging/setLevel":
        send(id=asked["id"], result={})
        told = [("error", "disk \\x1b[2J full", "disk"), ("info", {"a": 1}, None), (asked["params"]["level"], "", None)]
        for level, data, logger in told:
            send(method="notifications/message", params={"level": level, "data": data, "logger": logger})
        send(method="notifications/message", params={"level": "alert", "data": "bye"})
    elif "id" in asked:
        send(id=asked["id"], error={"code": -32601, "message": "no"})
"""


FLOODS = """
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        known = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "s", "version": "1"}}
        send(id=asked["id"], result={**known, "capabilities": {"logging": {}, "resources": {"subscribe": True}}})
    elif asked["method"] == "resources/subscribe":
        for _ in range(40):
            send(method="notifications/message", params={"level": "info", "data": "x" * 1_000_000})
        if sys.argv[1:] != ["never"]:
            send(id=asked["id"], result={})
    elif "id" in asked:
        send(id=asked["id"], error={"code": -32601, "message": "no"})
"""

BURSTS = """
import json, sys

ID = "io.modelcontextprotocol/subscriptionId"
OFFERS = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
said = []

def send(**message):
    said.append(json.dumps({"jsonrpc": "2.0", **message}))

for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "server/discover":
        found = {"supportedVersions": ["2026-07-28"], "capabilities": OFFERS, "ttlMs": 0, "cacheScope": "private"}
        send(id=asked["id"], result={"resultType": "complete", **found})
    elif asked["method"] == "subscriptions/listen":
        meta = {"_meta": {ID: asked["id"]}}
        granted = {"notifications": {"resourceSubscriptions": ["state://now"]}, **meta}
        send(method="notifications/subscriptions/acknowledged", params=granted)
        for number in range(50):
            send(method="notifications/resources/updated", params={"uri": f"state://now/{number}", **meta})
        if sys.argv[1] == "ends":
            send(id=asked["id"], result={"resultType": "complete", **meta})
    print("\\n".join(said), flush=True)
    if asked["method"] == "subscriptions/listen" and sys.argv[1] == "dies":
        break
    said.clear()
"""


@pytest.fixture
def watch(environment: None, tmp_path: Path) -> Iterator[Watch]:
    """Begin to watch; what it says is read line by line."""
    with ExitStack() as stack:

        def begin(*arguments: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, "-m", "accord", "watch", *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                cwd=tmp_path,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield begin


def line_with(stream: Any, text: str) -> str:
    """The next line that has this in it."""
    for line in stream:
        if text in line:
            return str(line)
    raise AssertionError(f"{text!r} never came")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("revision", REVISIONS)
def test_changes_come_until_it_is_interrupted(
    watch: Watch, tmp_path: Path, revision: str, number: signal.Signals
) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    process = watch("tells.py", "--resource", "state://now", "--stderr", "--revision", revision)
    server = int(line_with(process.stderr, "pid ").split()[1])
    assert f"watching ({revision}): " in (granted := line_with(process.stderr, "watching"))
    assert granted.rstrip().endswith("state://now")
    for _ in range(3):
        assert line_with(process.stdout, "").split()[1:] == ["resources/updated", "state://now"]
    process.send_signal(number)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 0
    assert "Traceback" not in said
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


def test_a_reader_that_goes_ends_it(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    process = watch("tells.py", "--resource", "state://now")
    line_with(process.stdout, "state://now")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(20) == 141


def test_each_notification_is_a_json_object_in_a_line(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    process = watch("tells.py", "--resource", "state://now", "--json")
    found = json.loads(line_with(process.stdout, ""))
    assert found["method"] == "notifications/resources/updated"
    assert found["params"]["uri"] == "state://now"
    assert "at" in found


def test_it_ends_after_so_many_seconds(accord: Run, changing: str) -> None:
    for revision in ("2025-11-25", "2026-07-28"):
        done = accord("watch", changing, "--for", "0.1", "--revision", revision)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith(f"watching ({revision}): changes of the tools, ")


def test_what_a_server_says_before_it_is_watched_takes_bounded_memory(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "floods").write_text(FLOODS)
    process = watch(f"{sys.executable} floods", "--resource", "state://now")
    assert "watching" in line_with(process.stderr, "watching")
    line_with(process.stdout, "message")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=100)
    dropped, *_ = re.findall(r"warning: (\d+) notifications came faster", said)
    assert int(dropped) >= 20
    assert process.returncode == 0


def test_it_ends_in_time_though_the_server_does_not_answer(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "floods").write_text(FLOODS)
    done = accord("watch", f"{sys.executable} floods never", "--resource", "state://now", "--for", "0.2")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("how", ["ends", "dies"])
def test_what_came_before_the_end_is_shown(accord: Run, tmp_path: Path, how: str) -> None:
    (tmp_path / "bursts").write_text(BURSTS)
    done = accord("watch", f"{sys.executable} bursts {how}", "--resource", "state://now")
    shown = [line.split()[-1] for line in done.stdout.splitlines()]
    assert shown == [f"state://now/{number}" for number in range(50)]
    assert (done.returncode == 0) == (how == "ends")


def test_log_messages_come_with_their_level_and_steer_no_terminal(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "speaks.py").write_text(SPEAKS)
    process = watch(f"{sys.executable} speaks.py", "--log-level", "notice")
    assert line_with(process.stderr, "watching") == "watching (2025-06-18): log messages\n"
    assert process.stdout is not None
    shown = [line_with(process.stdout, "").split(None, 2)[1:] for _ in range(4)]
    assert shown == [
        ["message", "[error] disk: disk \\x1b[2J full\n"],
        ["message", '[info] {"a":1}\n'],
        ["message", "[notice]\n"],
        ["message", "[alert] bye\n"],
    ]


ASKS = """
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    said = json.loads(line)
    if said.get("method") == "initialize":
        known = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"}}
        send(id=said["id"], result={**known, "capabilities": {"logging": {}}})
    elif said.get("method") == "notifications/initialized":
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        send(id="q", method="elicitation/create", params={"message": "Name?", "requestedSchema": form})
    elif said.get("id") == "q":
        send(method="notifications/message", params={"level": "info", "data": said["result"]["content"]})
    elif "id" in said:
        send(id=said["id"], error={"code": -32601, "message": "no"})
"""


def test_requests_of_a_watched_server_are_answered(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    process = watch(f"{sys.executable} asks.py", "--answer", "name=Ada")
    assert line_with(process.stdout, "message").endswith('[info] {"name":"Ada"}\n')
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 0
    assert 'asks.py asks "Name?": name=Ada\n' in said


def test_what_is_not_granted_is_reported(accord: Run, changing: str) -> None:
    done = accord("watch", changing, "--for", "0.1", "--resource", "no://where", "--log-level", "info")
    assert done.returncode == 0
    assert "not told by this server: no://where, log messages by themselves\n" in done.stderr


def test_a_server_without_notifications_is_not_watched(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "mute.py").write_text(SPEAKS.replace('{"logging": {}}', "{}"))
    done = accord("watch", f"{sys.executable} mute.py")
    assert (done.returncode, done.stdout) == (4, "")
    assert "does not support these notifications" in done.stderr


def test_a_server_that_exits_ends_it(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    process = watch("tells.py", "--resource", "state://now", "--stderr")
    server = int(line_with(process.stderr, "pid ").split()[1])
    line_with(process.stdout, "state://now")
    os.kill(server, signal.SIGKILL)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 3
    assert "error: " in said


# --- log messages of other commands ----------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_log_messages_are_shown_on_stderr(accord: Run, changing: str, revision: str) -> None:
    done = accord("call", changing, "change", "--log-level", "info", "--revision", revision)
    assert (done.returncode, done.stdout, done.stderr) == (0, "changed\n", "[error] changing\n")
    done = accord("read", changing, "state://now", "--log-level", "debug", "--revision", revision)
    assert done.stderr.splitlines()[0] == "[debug] read"
    assert done.stderr.splitlines()[1].startswith("[warning] state: {")
    assert len(done.stderr.splitlines()) == 2
    assert accord("read", changing, "state://now", "--revision", revision).stderr == ""


def test_a_server_without_log_messages_is_reported(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(
        "from accord import Server\nserver = Server('b')\n@server.tool\ndef t() -> str: return 'x'"
    )
    done = accord("call", "bare.py", "t", "--log-level", "info")
    assert done.stderr == "warning: --log-level info: the server has no log messages\n"


CLINGS = """
import sys, time
from contextlib import asynccontextmanager
from accord import Server


@asynccontextmanager
async def lifespan(server):
    yield
    print("closing", file=sys.stderr, flush=True)
    time.sleep(100)


server = Server("clings", lifespan=lifespan)
server.resource("state://now")(lambda: "now")
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_does_not_wait_for_the_server(
    watch: Watch, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (tmp_path / "clings.py").write_text(CLINGS)
    process = watch("clings.py", "--resource", "state://now", "--stderr")
    line_with(process.stderr, "watching")
    process.send_signal(number)
    line_with(process.stderr, "closing")
    process.send_signal(number)
    _, said = process.communicate(timeout=100)
    assert process.returncode == code
    assert "Traceback" not in said
