"""What a person sees of a command before it starts, and what its approval is bound to."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from accord.client.target import Command, Remote, parse
from accord.host.command_approval import describe_target


def lines(target: Command | Remote) -> str:
    return "\n".join(describe_target(target).lines())


@pytest.mark.parametrize(
    ("words", "source"),
    [
        ("npx -y some-server", "npm as some-server"),
        ("npx @scope/server", "npm as @scope/server"),
        ("uvx some-server --flag", "PyPI as some-server"),
        ("pipx run some-server", "PyPI as some-server"),
        ("npx -y some-server@latest", "npm as some-server@latest"),
        ("npx -y some-server@^1.2.3", "npm as some-server@^1.2.3"),
        ("npx -y some-server@1", "npm as some-server@1"),
        ("npx --registry http://1@2.3.4 some-server", "npm as some-server"),
        ("npx -p some-server start@1.2.3", "npm as some-server"),
        ("npx --package=some-server start@1.2.3", "npm as some-server"),
        ("npx --unknown 1@1.2.3 some-server", "npm as some-server"),
        ("npm exec some-server", "npm as some-server"),
        ("pnpm dlx some-server", "npm as some-server"),
        ("uv tool run some-server", "PyPI as some-server"),
        ("uvx --python 3.12 some-server", "PyPI as some-server"),
        ("uvx some-server@latest", "PyPI as some-server@latest"),
        ("uvx some-server>=1.2", "PyPI as some-server>=1.2"),
        ("uvx --from some-server start", "PyPI as some-server"),
        ("uvx --from git+https://x@1.example/a start", "PyPI as git+https://x@1.example/a"),
        ("uvx --with more some-server==1.2", "PyPI as more"),
        ("uvx --with=more==1 some-server", "PyPI as some-server"),
        ("npx -y some-server@1.2.3 --package other", None),
        ("npx -p some-server@1.2.3 start", None),
        ("uvx --from some-server==1.2 start", None),
        ("uvx some-server@1.2 other", None),
        ("npm run some-server", None),
        ("uv run server.py", None),
        ("npx -y @scope/server@1.2.3", None),
        ("uvx some-server==1.2.3", None),
        ("uvx some-server@1.2.3", None),
        ("python server.py", None),
    ],
)
def test_a_package_without_a_version_is_whatever_is_published_today(words: str, source: str | None) -> None:
    text = lines(Command(tuple(words.split())))
    if source is None:
        assert "published today" not in text
    else:
        assert f"whatever is published today on {source}" in text


def test_hidden_characters_are_shown_and_values_of_variables_are_not() -> None:
    text = lines(Command((sys.executable, "a\u202eb", "c d"), {"API_KEY": "s3cret"}))
    assert "a\\u202eb 'c d'" in text
    assert "API_KEY" in text
    assert "s3cret" not in text


def test_a_url_is_shown_in_full_with_the_names_of_its_headers() -> None:
    text = lines(Remote("https://example.com/mcp?x=1", {"X-Key": "s3cret"}))
    assert text == "connects to: https://example.com/mcp?x=1\nheaders: X-Key"


def test_a_change_of_a_script_changes_the_digest(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text("one")
    target = Command((sys.executable, "server.py"), cwd=str(tmp_path))
    before = describe_target(target).digest
    assert describe_target(target).digest == before
    script.write_text("two")
    assert describe_target(target).digest != before


def test_a_program_that_is_not_there_is_described() -> None:
    assert "program: not found" in lines(Command(("no-such-program-anywhere",)))


def description(entry: dict[str, Any]) -> Any:
    target: Any = parse(entry)
    return describe_target(target, entry)


def script(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)
    return path


@pytest.mark.skipif(os.name != "posix", reason="a relative program starts in the folder of the child (POSIX)")
@pytest.mark.parametrize("entry", [{"command": "./run"}, {"command": "run", "env": {"PATH": "bin:."}}])
def test_a_relative_program_is_the_one_in_the_folder_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    script(tmp_path / "run", "#!/bin/sh\necho harmless\n")
    program = script(tmp_path / "sub" / "run", "#!/bin/sh\necho 1\n")
    entry = entry | {"cwd": str(tmp_path / "sub")}
    before = description(entry)
    assert before.program == os.path.realpath(program)
    script(program, "#!/bin/sh\necho 2\n")
    assert description(entry).digest != before.digest


@pytest.mark.parametrize("key", ["env", "headers"])
def test_a_changed_value_needs_a_new_approval_and_is_not_shown(key: str) -> None:
    base: dict[str, Any] = {"command": "python"} if key == "env" else {"url": "https://example.com/mcp"}
    one = description(base | {key: {"NODE_OPTIONS": "--require ./good.js"}})
    other = description(base | {key: {"NODE_OPTIONS": "--require ./evil.js"}})
    assert one.digest != other.digest
    assert "good.js" not in "\n".join(one.lines())


def test_the_value_of_a_referenced_variable_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"command": "python", "env": {"KEY": "${SHOP_KEY}"}}
    monkeypatch.setenv("SHOP_KEY", "one")
    before = description(entry)
    monkeypatch.setenv("SHOP_KEY", "two")
    assert description(entry).digest == before.digest


def test_a_file_named_in_an_option_is_covered(tmp_path: Path) -> None:
    file = script(tmp_path / "hook.js", "1")
    entry = {"command": "python", "args": [f"--require={file}"]}
    before = description(entry)
    script(file, "2")
    assert description(entry).digest != before.digest


def test_two_files_that_change_places_are_another_program(tmp_path: Path) -> None:
    entry = {"command": "python", "args": [str(tmp_path / "a.py"), str(tmp_path / "b.py")]}
    script(tmp_path / "a.py", "x")
    before = description(entry)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert description(entry).digest != before.digest


def test_a_variable_that_changes_what_runs_is_pointed_out() -> None:
    lines = description({"command": "python", "env": {"LD_PRELOAD": "x", "LANG": "C"}}).lines()
    (note,) = [line for line in lines if line.startswith("note:")]
    assert "LD_PRELOAD" in note
    assert "LANG" not in note
