"""Commands that reach a server, as processes: what they print, and with which code they end."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from accord.messages.revision import REVISIONS
from accord.wire.transcript import parse

from tests.cli.conftest import Run


def test_list_shows_everything(accord: Run, shop: str) -> None:
    done = accord("list", shop)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "shop 2.0.0 · revision 2026-07-28"
    assert [line for line in lines if line and line[0].isupper()] == ["Tools", "Resources", "Templates", "Prompts"]
    assert any(line.split() == ["echo(text:", "string)", "Give", "back", "the", "text."] for line in lines)
    assert any(line.split()[0] == "shop://{item}/photo" for line in lines if line)
    assert any(line.startswith("  plan(day, mood?)") for line in lines)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_list_as_json_has_the_names_of_the_protocol(accord: Run, shop: str) -> None:
    found = json.loads(accord("list", shop, "--json").stdout)
    assert list(found) == ["tools", "resources", "resourceTemplates", "prompts"]
    assert found["tools"][0]["inputSchema"]["required"] == ["text"]
    assert list(json.loads(accord("list", shop, "prompts", "--json").stdout)) == ["prompts"]


def test_list_of_what_a_server_does_not_have(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text("from accord import Server\nserver = Server('bare')\n@server.tool\ndef t(): ...")
    assert "Prompts" not in accord("list", "bare.py").stdout
    done = accord("list", "bare.py", "prompts")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("error: ")


def test_call_prints_text_as_it_is(accord: Run, shop: str) -> None:
    done = accord("call", shop, "echo", "text=grüße = 3\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "grüße = 3\n\n", "")


def test_call_reads_values_as_the_schema_says(accord: Run, shop: str) -> None:
    words = ["n=3", "f=2.5", "b=true", "tags=1", "tags=2", "size=L", 'point={"x": 1, "y": 2}']
    found = json.loads(accord("call", shop, "types", *words).stdout)
    assert found["n"] == "3"
    assert found["tags"] == "[1, 2]"
    assert found["point"] == "Point(x=1, y=2.0)"


def test_call_takes_arguments_as_json(accord: Run, shop: str, tmp_path: Path) -> None:
    (tmp_path / "args.json").write_text('{"text": "from a file"}')
    assert accord("call", shop, "echo", "--args", '{"text": "direct"}').stdout == "direct\n"
    assert accord("call", shop, "echo", "--args", "@args.json").stdout == "from a file\n"
    assert accord("call", shop, "echo", "--args", "-", stdin='{"text": "from stdin"}').stdout == "from stdin\n"
    assert accord("call", shop, "echo", "--args", '{"text": "direct"}', "text=word").stdout == "word\n"


def test_an_invalid_value_is_an_error_before_it_is_sent(accord: Run, shop: str) -> None:
    done = accord("call", shop, "types", "n=x")
    assert done.returncode == 2
    assert done.stderr.startswith("error: n: expected integer, got 'x'\n")


def test_call_as_json_is_the_result(accord: Run, shop: str) -> None:
    found = json.loads(accord("call", shop, "types", "n=1", "--json").stdout)
    assert found["structuredContent"]["n"] == "1"
    assert found["content"][0]["type"] == "text"
    assert "outputSchema" not in found


def test_a_tool_that_fails_is_exit_code_1(accord: Run, shop: str) -> None:
    done = accord("call", shop, "fail")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: fail failed: sold out\\x1b[2J\n"
    done = accord("call", shop, "fail", "--json")
    assert (done.returncode, json.loads(done.stdout)["isError"]) == (1, True)


def test_an_unknown_tool_is_exit_code_4_with_a_guess(accord: Run, shop: str) -> None:
    done = accord("call", shop, "ehco", "text=x")
    assert (done.returncode, done.stdout) == (4, "")
    assert "did you mean 'echo'?" in done.stderr
    found = json.loads(accord("call", shop, "ehco", "--json").stdout)
    assert found["error"]["code"] == -32602


def test_progress_is_shown_on_stderr(accord: Run, shop: str) -> None:
    done = accord("call", shop, "slow")
    assert done.stdout == "done\n"
    assert done.stderr.splitlines()[-1] == "progress: 2/2 step 2"


def test_pictures_are_described_and_saved(accord: Run, shop: str, tmp_path: Path) -> None:
    assert accord("call", shop, "picture").stdout == "[image] image/png, 9 bytes; --output FILE saves it\n"
    done = accord("call", shop, "picture", "--output", "it.png")
    assert (done.stdout, done.stderr) == ("", "it.png: image/png, 9 bytes\n")
    assert (tmp_path / "it.png").read_bytes() == b"a picture"
    assert accord("call", shop, "picture", "-o", "-").stdout == "a picture"
    assert accord("call", shop, "echo", "text=x", "-o", "it.txt").returncode == 2
    assert accord("call", shop, "picture", "-o", "no/such/folder").returncode == 2


def test_the_data_beside_a_picture_that_is_saved_are_printed(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "chart.py").write_text(
        "from accord import Image, Server, ToolOutput\n"
        "server = Server('chart')\n"
        "@server.tool\n"
        "def chart() -> ToolOutput[list[int]]:\n"
        "    return ToolOutput([1, 2], content=[Image(data=b'a picture')])\n"
    )
    done = accord("call", "chart.py", "chart", "--output", "it.png")
    assert json.loads(done.stdout) == [1, 2]
    assert (tmp_path / "it.png").read_bytes() == b"a picture"


def test_read(accord: Run, shop: str) -> None:
    assert accord("read", shop, "shop://hours").stdout == "9 to 5\n"
    assert accord("read", shop, "shop://cup/photo").stdout == "[binary] image/png, 3 bytes; --output FILE saves it\n"
    assert accord("read", shop, "shop://cup/photo", "-o", "-").stdout == "cup"
    found = json.loads(accord("read", shop, "shop://hours", "--json").stdout)
    assert found["contents"] == [{"uri": "shop://hours", "mimeType": "text/plain", "text": "9 to 5"}]
    done = accord("read", shop, "shop://nothing")
    assert done.returncode == 4
    assert "shop://nothing" in done.stderr


def test_prompt(accord: Run, shop: str) -> None:
    assert accord("prompt", shop, "plan", "day=1").stdout == "user:\na calm 1\n"
    found = json.loads(accord("prompt", shop, "plan", "day=1", "mood=wild", "--json").stdout)
    assert found["messages"] == [{"role": "user", "content": {"type": "text", "text": "a wild 1"}}]
    assert accord("prompt", shop, "plan").returncode == 4


@pytest.mark.parametrize("revision", REVISIONS)
def test_ping_in_each_revision(accord: Run, shop: str, revision: str) -> None:
    found = json.loads(accord("ping", shop, "-n", "2", "--json", "--revision", revision).stdout)
    assert found["revision"] == revision
    assert len(found["roundTripsMs"]) == 2
    assert accord("ping", shop, "--revision", revision).stdout.count(" ms\n") == 5


def test_verbose_shows_each_message_in_one_line(accord: Run, shop: str) -> None:
    done = accord("call", shop, "slow", "-v", "--revision", "2025-06-18")
    assert done.stdout == "done\n"
    shown = [line[9:] for line in done.stderr.splitlines() if line[8:9] in "→←"]
    assert [line.split(" ")[1] for line in shown if not line.startswith(" #")] == [
        "notifications/initialized",
        "notifications/progress",
        "notifications/progress",
    ]
    assert shown[0].startswith(' #1 initialize {"protocolVersion":"2025-06-18"')
    assert any(line.startswith(' #2 tools/call {"name":"slow"') for line in shown)


def test_very_verbose_is_a_transcript(accord: Run, shop: str) -> None:
    lines = accord("ping", shop, "-vv", "-n", "1").stderr
    entries = list(parse(lines))
    assert [entry.direction for entry in entries] == ["→", "←", "→", "←"]
    assert json.loads(entries[0].message)["method"] == "server/discover"


def test_stderr_of_the_server_is_shown_when_asked_for(accord: Run, shop: str) -> None:
    assert "a print" not in accord("call", shop, "echo", "text=x").stderr
    assert "a print" in accord("call", shop, "echo", "text=x", "--stderr").stderr


def test_environment_and_directory_of_the_server(accord: Run, shop: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    done = accord("call", shop, "environment", "name=COLOUR", "--env", "COLOUR=blue=green", "--cwd", "elsewhere")
    assert done.stdout == f"blue=green in {(tmp_path / 'elsewhere').resolve()}\n"


# --- when it does not go well ----------------------------------------------------------------------------------


def test_a_server_that_exits_is_reported_with_its_code_and_last_output(accord: Run, shop: str) -> None:
    done = accord("call", shop, "die")
    assert (done.returncode, done.stdout) == (3, "")
    assert "exited with code 9" in done.stderr
    assert done.stderr.count("last words") == 1
    found = json.loads(accord("call", shop, "die", "--json").stdout)["error"]
    assert (found["type"], found["exitCode"]) == ("ConnectionLost", 9)
    assert "last words" in found["stderr"]


def test_a_command_that_does_not_exist(accord: Run) -> None:
    done = accord("list", "no-such-command-at-all --fast")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no-such-command-at-all" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_of_another_protocol(accord: Run) -> None:
    done = accord("list", shlex.join([sys.executable, "-c", "print('hello')"]))
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


def test_no_answer_in_time_is_exit_code_5(accord: Run, shop: str) -> None:
    assert accord("call", shop, "hang", "--timeout", "1.5").returncode == 5
    silent = shlex.join([sys.executable, "-c", "import sys; sys.stdin.read()"])
    assert accord("ping", silent, "--timeout", "0.2").returncode == 5


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupting_closes_the_server(accord: Run, shop: str, number: int, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "accord", "call", shop, "hang", "--stderr"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process:
        while "hanging" not in process.stderr.readline():
            pass
        process.send_signal(number)
        _, said = process.communicate(timeout=100)
    assert process.returncode == code
    assert "Traceback" not in said


def test_a_closed_pipe_ends_quietly(accord: Run, shop: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing) as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "accord", "list", shop], stdout=pipe, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_words_of_a_server_do_not_steer_the_terminal(accord: Run, tmp_path: Path) -> None:
    (tmp_path / "rude.py").write_text(
        "from accord import Server\nserver = Server('rude\\x1b[2J')\n"
        "@server.tool(description='clear\\x1b[2J \\u202e')\ndef t(): ..."
    )
    done = accord("list", "rude.py")
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert r"\x1b[2J" in done.stdout
