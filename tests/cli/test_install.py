"""`accord install`: into each host, with the difference first, and out again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from accord import Client
from accord.cli.commands import accord
from accord.host.host_files import read_host_file
from accord.host.known_hosts import KNOWN_HOSTS
from accord.install.records import InstallRecords

from tests.cli.terminal import Terminal
from tests.install.test_target_entry import NAMES

WEATHER = 'from accord import Server\n\nserver = Server("weather")\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user, whose working directory has a server. No command may start a process."""
    folder, work = tmp_path / "home", tmp_path / "work"
    for each in (folder, work):
        each.mkdir()
    (work / "weather.py").write_text(WEATHER)
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("ACCORD_INSTALLS", str(tmp_path / "installs.db"))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)

    def refuse(*args: Any, **settings: Any) -> None:
        raise AssertionError(f"a process is started: {args}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "system", refuse)
    return folder


def install(*arguments: str) -> Result:
    return CliRunner().invoke(accord, ["install", *arguments])


def contents(folder: Path) -> dict[str, str]:
    return {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("host", KNOWN_HOSTS)
def test_a_file_is_installed_into_each_host_and_undone(home: Path, host: str) -> None:
    done = install("weather.py", "--to", host, "--yes")
    assert done.exit_code == 0, done.output
    assert "+" in done.stdout
    assert KNOWN_HOSTS[host].after in done.stderr
    (text,) = contents(home).values()
    assert str(Path("weather.py").absolute()) in text
    assert sys.executable in text
    listed = install("--list").stdout.split()
    assert listed[:3] == [host, "weather", "installed"]
    undone = install("--undo", "--to", host, "--yes")
    assert undone.exit_code == 0, undone.output
    assert contents(home) == {}
    assert InstallRecords().all() == []


@pytest.mark.parametrize("host", [name for name, each in KNOWN_HOSTS.items() if each.project_file])
def test_a_project_has_its_own_file(home: Path, host: str) -> None:
    assert install("weather.py", "--to", host, "--project", "--yes").exit_code == 0
    assert contents(home) == {}
    assert Path(str(KNOWN_HOSTS[host].project_file)).is_file()
    wrong = install("--undo", "--to", host, "--yes")
    assert (wrong.exit_code, wrong.stderr.startswith("error: accord has not installed a server into ")) == (2, True)
    assert install("--undo", "--to", host, "--project", "--yes").exit_code == 0
    assert not Path(str(KNOWN_HOSTS[host].project_file)).exists()


def test_without_a_terminal_and_yes_only_the_difference_is_shown(home: Path) -> None:
    done = install("weather.py", "--to", "cursor")
    assert done.exit_code == 2
    assert '+    "weather": {' in done.stdout
    assert "nothing was written; give --yes, or run it in a terminal" in done.stderr
    assert contents(home) == {}


def test_a_second_install_changes_nothing(home: Path) -> None:
    install("weather.py", "--to", "cursor", "--yes")
    before = contents(home)
    done = install("weather.py", "--to", "cursor", "--yes")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "it is installed already" in done.stderr
    assert contents(home) == before


def test_the_lines_around_a_change_have_no_secrets_of_others(home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(
        '{\n  "mcpServers": {\n    "a": {\n      "command": "x", "env": {"API_KEY": "hunter2"}\n    }\n  }\n}\n'
    )
    done = install("weather.py", "--to", "cursor", "--env", "TOKEN", "--yes")
    assert "hunter2" not in done.output
    assert '"TOKEN": "${env:TOKEN}"' in done.stdout
    assert "hunter2" in file.read_text()
    assert "hunter2" in (home / ".cursor" / "mcp.json.accord-backup").read_text()


def test_a_remote_server_is_installed_with_a_reference_to_its_token(home: Path) -> None:
    header = "Authorization: Bearer ${TOKEN}"
    done = install("https://example.com/mcp", "--to", "codex", "--header", header, "--yes")
    assert done.exit_code == 0, done.output
    assert (home / ".codex" / "config.toml").read_text() == (
        '[mcp_servers.example-com]\nurl = "https://example.com/mcp"\nbearer_token_env_var = "TOKEN"\n'
    )


REFUSED = [
    (["https://e.com/mcp", "--to", "claude-desktop"], "Claude Desktop can only start programs"),
    (
        ["weather.py", "--to", "claude-desktop", "--env", "KEY"],
        "Claude Desktop has no references to environment variables",
    ),
    (["weather.py", "--to", "cursor", "--env", "API_KEY=abc"], "env.API_KEY: this looks like a secret"),
    (["https://ann:pw@e.com/mcp", "--to", "cursor"], "url: this looks like a secret"),
    (["weather.py", "--to", "windsurf", "--project"], "Windsurf has no file in a project; these hosts have one"),
    (["weather.py", "--to", "cursor", "--env", "A B"], "'A B' is no name of an environment variable"),
    (["none.py", "--to", "cursor"], "none.py: no such file"),
    (["no-such-program", "--to", "cursor"], "no such program on the PATH"),
    (["weather.py", "--to", "emacs"], "'emacs' is not one of 'claude-desktop', 'claude-code'"),
    (["weather.py"], "give a TARGET and --to HOST; or --undo, or --list"),
    (["--to", "cursor"], "give a TARGET and --to HOST"),
    (["--undo", "--list"], "--undo and --list are two commands"),
    (["--undo"], "accord has not installed a server; accord install --list shows what is where"),
]


@pytest.mark.parametrize(
    ("arguments", "reason"), REFUSED, ids=lambda each: " ".join(each) if isinstance(each, list) else ""
)
def test_what_cannot_be_installed_is_refused(home: Path, arguments: list[str], reason: str) -> None:
    done = install(*arguments, "--yes")
    assert done.exit_code == 2
    assert reason in done.stderr
    assert contents(home) == {}
    assert InstallRecords().all() == []


def test_hostile_names_are_refused_and_nothing_is_written(home: Path) -> None:
    for name in NAMES:
        done = install("weather.py", "--to", "claude-code", "--yes", f"--name={name}")
        assert done.exit_code == 2 or name == "", ascii(name)
    install("--undo", "--to", "claude-code", "--yes")  # an empty name is none
    assert contents(home) == {}


@pytest.mark.parametrize("host", ["cursor", "codex", "goose"])
def test_a_file_that_cannot_be_parsed_is_left_unchanged(home: Path, host: str) -> None:
    path = Path(
        str(KNOWN_HOSTS[host].files["linux"][0])
        .replace("home:", f"{home}/")
        .replace("xdg:", f"{home}/.config/")
        .replace("codex:", f"{home}/.codex/")
    )
    path.parent.mkdir(parents=True)
    path.write_text("{\n[")
    done = install("weather.py", "--to", host, "--yes")
    assert done.exit_code == 2
    assert f"error: {path}:" in done.stderr
    assert path.read_text() == "{\n["


@pytest.mark.parametrize(("host", "module"), [("codex", "tomlkit"), ("goose", "ruamel.yaml")])
def test_a_missing_extra_is_named(home: Path, monkeypatch: pytest.MonkeyPatch, host: str, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    done = install("weather.py", "--to", host, "--yes")
    assert done.exit_code == 2
    assert "needs the extra `install`: pip install 'accord[install]'" in done.stderr
    assert contents(home) == {}


def test_an_undo_needs_the_name_where_there_are_several(home: Path) -> None:
    install("weather.py", "--to", "cursor", "--yes")
    install("weather.py", "--to", "cursor", "--yes", "--name", "other")
    done = install("--undo", "--yes")
    assert "choose one: --to cursor --name other, --to cursor --name weather" in done.stderr
    assert install("--undo", "weather.py", "--yes").exit_code == 0
    assert list(json.loads(contents(home)[".cursor/mcp.json"])["mcpServers"]) == ["other"]


def test_goose_has_names_in_lower_case(home: Path) -> None:
    done = install("weather.py", "--to", "goose", "--yes", "--name", "Weather")
    assert "goose does not exist yet; is goose installed?" in done.stderr
    assert "  weather:\n" in contents(home)[".config/goose/config.yaml"]
    assert install("--undo", "--yes", "--name", "Weather").exit_code == 0
    assert contents(home) == {}


def test_the_list_tells_what_is_where(home: Path) -> None:
    install("weather.py", "--to", "cursor", "--yes")
    install("weather.py", "--to", "zed", "--yes")
    install("weather.py", "--to", "gemini", "--project", "--yes")
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"theirs": {"command": "x"}}}')
    zed = home / ".config" / "zed" / "settings.json"
    zed.write_text(zed.read_text().replace("weather.py", "other.py"))
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("[")
    found = json.loads(install("--list", "--json").stdout)
    assert [(each["host"], each["name"], each["state"]) for each in found] == [
        ("cursor", "theirs", "by others"),
        ("cursor", "weather", "missing"),
        ("zed", "weather", "changed since"),
        ("gemini", "weather", "installed"),
        ("codex", "", "unreadable"),
    ]
    assert [each["line"] for each in found] == [1, None, 3, 3, None]
    shown = install("--list").stdout
    assert "config.toml:1:2: invalid TOML" in shown
    assert install("--list", "--to", "goose").stderr == "no host has a server\n"


def test_the_user_at_a_terminal_is_asked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    settings = {"HOME": str(home), "ACCORD_INSTALLS": str(home / "installs.db"), "WEATHER_KEY": "hunter2"}
    work = home.parent / "work"
    file = home / ".config" / "Claude" / "claude_desktop_config.json"
    arguments = ("install", "weather.py", "--to", "claude-desktop", "--env", "WEATHER_KEY")
    with Terminal(*arguments, cwd=work, **settings) as terminal:
        terminal.expect("has no references to environment variables")
        terminal.expect("Write it? [y/N]: ")
        terminal.type("n")
        terminal.expect("Nothing was written")
        assert terminal.process.wait() == 2
    assert not file.exists()
    with Terminal(*arguments, cwd=work, **settings) as terminal:
        terminal.expect("Write it? [y/N]: ")
        terminal.type("y")
        terminal.expect("claude_desktop_config.json? [y/N]: ")
        assert not file.exists()
        terminal.type("y")
        terminal.expect("written")
        assert terminal.process.wait() == 0
    assert "hunter2" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


KILLED = """
import os, signal, sys
from accord.cli import main
def kill(*paths):
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = kill
sys.argv = ["accord", "install", "weather.py", "--to", "cursor", "--yes"]
main()
"""


def test_an_install_that_was_killed_can_be_undone_or_repeated(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text("{}\n")
    environment = dict(os.environ)
    monkeypatch.undo()
    done = subprocess.run([sys.executable, "-c", KILLED], check=False, env=environment, cwd=home.parent / "work")
    assert done.returncode == -signal.SIGKILL
    assert file.read_text() == "{}\n"
    for arguments in (["--undo", "--to", "cursor"], ["weather.py", "--to", "cursor"], ["--undo", "--to", "cursor"]):
        command = [sys.executable, "-m", "accord", "install", *arguments, "--yes"]
        subprocess.run(command, check=True, env=environment, cwd=home.parent / "work", capture_output=True)
    assert file.read_text() == "{}\n"


@pytest.mark.parametrize("host", ["claude-desktop", "codex", "goose"])
async def test_an_installed_entry_starts_the_server_from_any_folder(
    home: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("weather.py", "--to", host, "--yes")
    (path,) = contents(home)
    entry = read_host_file(home / path, KNOWN_HOSTS[host].format).entries["weather"].entry
    monkeypatch.undo()
    monkeypatch.chdir(home)
    async with Client({**(entry or {}), "env": {"PATH": ""}}) as client:
        assert client.server_info is not None
        assert client.server_info.name == "weather"


def test_processes_that_install_at_once_lose_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment, work = dict(os.environ), home.parent / "work"
    monkeypatch.undo()
    processes = {}
    for number in range(6):
        arguments = ["install", "weather.py", "--to", "cursor", "--yes", "--name", f"s{number}"]
        command = [sys.executable, "-m", "accord", *arguments]
        processes[f"s{number}"] = subprocess.Popen(
            command, env=environment, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
    done = {name: (*each.communicate(), each.returncode) for name, each in processes.items()}
    refused = [error for _, error, code in done.values() if code]
    assert all("was changed by another program meanwhile; nothing was written" in each for each in refused)
    servers = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]
    assert sorted(servers) == [name for name, (_, _, code) in done.items() if code == 0]
    assert servers
    assert not list((home / ".cursor").glob(".*"))
