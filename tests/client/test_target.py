"""What a target means: entries of configurations above all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accord import Client, Server, TargetError
from accord.client.target import Command, Remote, parse
from accord.errors import DeclarationError

from tests.cli.conftest import SHOP


def configuration(folder: Path, **servers: Any) -> str:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return str(file)


def test_variables_stand_for_those_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACCORD_TEST_SECRET", "hunter2")
    monkeypatch.setenv("ACCORD_TEST_EMPTY", "")
    monkeypatch.delenv("ACCORD_TEST_ABSENT", raising=False)
    file = configuration(
        tmp_path,
        local={
            "command": "${ACCORD_TEST_ABSENT:-python}",
            "args": ["--key=${ACCORD_TEST_SECRET}", "${env:ACCORD_TEST_SECRET}", "${ACCORD_TEST_EMPTY:-none}", "$HOME"],
            "env": {"KEY": "${ACCORD_TEST_SECRET}", "EMPTY": "${ACCORD_TEST_EMPTY}"},
        },
        remote={
            "url": "https://${ACCORD_TEST_ABSENT:-example.com}/mcp",
            "headers": {"Authorization": "Bearer ${ACCORD_TEST_SECRET}"},
        },
    )
    local = parse(f"{file}#local")
    assert isinstance(local, Command)
    assert local.argv == ("python", "--key=hunter2", "hunter2", "none", "$HOME")
    assert local.env == {"KEY": "hunter2", "EMPTY": ""}
    remote = parse(f"{file}#remote")
    assert isinstance(remote, Remote)
    assert (remote.url, remote.headers) == ("https://example.com/mcp", {"authorization": "Bearer hunter2"})
    for target in (local, remote):
        assert "hunter2" not in f"{target} {target!r}"


@pytest.mark.parametrize(
    ("entry", "where"),
    [
        ({"command": "x", "args": ["${ACCORD_TEST_ABSENT}"]}, "args"),
        ({"command": "x", "env": {"KEY": "a ${ACCORD_TEST_ABSENT}"}}, "env.KEY"),
        ({"url": "https://x/", "headers": {"X-Key": "${ACCORD_TEST_ABSENT}"}}, "headers.X-Key"),
    ],
)
def test_a_variable_that_is_missing_is_named_with_its_place(entry: Any, where: str, tmp_path: Path) -> None:
    file = configuration(tmp_path, it=entry, other=entry)
    with pytest.raises(TargetError) as caught:
        parse(f"{file}#it")
    assert str(caught.value) == (
        f"{file}#it: {where}: the environment variable ACCORD_TEST_ABSENT is not set; set it, "
        "or write ${ACCORD_TEST_ABSENT:-a default}"
    )


@pytest.mark.parametrize("field", ["url", "serverUrl", "httpUrl"])
def test_the_url_has_the_name_that_each_host_gives_it(field: str) -> None:
    found = parse({field: "https://example.com/mcp", "headers": {"X-A": "b"}, "disabled": False})
    assert isinstance(found, Remote)
    assert (found.url, found.headers) == ("https://example.com/mcp", {"x-a": "b"})


@pytest.mark.parametrize("field", ["mcpServers", "servers"])
def test_a_configuration_of_several_says_how_to_pick_one(field: str) -> None:
    config = {field: {"files": {"command": "x"}, "web": {"url": "https://x/"}}}
    with pytest.raises(TargetError) as caught:
        Client(config)
    assert str(caught.value) == (
        "this configuration has 2 servers ('files', 'web'), and a client has one: "
        f"give one entry, Client(config['{field}']['files'])"
    )


async def test_a_configuration_of_one_is_that_server(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    command = parse(str(tmp_path / "shop.py"))
    assert isinstance(command, Command)
    entry = {"command": command.argv[0], "args": list(command.argv[1:])}
    async with Client({"mcpServers": {"shop": entry}}) as client:
        assert client.server_info is not None
        assert client.server_info.name == "shop"


@pytest.mark.parametrize("name", ["new\nline", "ends\n", "\r\n"])
def test_a_name_with_a_line_break_is_that_of_a_server_and_no_command_line(name: str, tmp_path: Path) -> None:
    file = configuration(tmp_path, **{name: {"command": "python", "args": ["weather.py"]}})
    assert parse(f"{file}#{name}") == Command(("python", "weather.py"), label="python weather.py")


def test_a_server_in_this_process_is_itself() -> None:
    server = Server("x")
    assert parse(server) is server


@pytest.mark.parametrize("value", [False, True, 3])
def test_reconnect_takes_nothing_but_a_reconnect(value: Any) -> None:
    with pytest.raises(DeclarationError, match=r"leave it out, or give Reconnect\(\)"):
        Client("http://127.0.0.1:9/mcp", reconnect=value)
