"""The policy of a configuration file: its place in errors, and names that occur twice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from accord.errors import PolicyError, TargetError
from accord.host.configuration import configure, read_configuration
from accord.host.policy.call import ProposedCall

SERVERS = (
    '"mcpServers": {"files": {"command": "a"}, "my web": {"command": "b"}, "old": {"command": "c", "disabled": true}}'
)


def decision(tmp_path: Path, own: str) -> str:
    path = tmp_path / "mcp.json"
    path.write_text(f"{{{SERVERS}{own}}}", encoding="utf-8")
    return read_configuration(path).policy().decide(ProposedCall(server="files", tool="read")).decision


def test_the_rules_are_those_of_the_own_settings(tmp_path: Path) -> None:
    assert decision(tmp_path, ', "accord": {"policy": [{"name": "it", "decision": "allow"}] // all\n}') == "allow"


@pytest.mark.parametrize("own", ["", ', "accord": {}', ', "accord": {"policy": []}'])
def test_without_rules_each_call_needs_an_approval(tmp_path: Path, own: str) -> None:
    assert decision(tmp_path, own) == "ask"


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (', "accord": []', 'mcp.json: "accord": Expected'),
        (', "accord": {"policy": null}', "Expected `array`"),
        (r', "accord": {"policy": [{"name": "\ud800"}]}', "surrogates not allowed"),
        (',\n"accord": {\n"policy": [{"name": "x"}]}', "mcp.json:3: rule 1 ('x'): "),
        (', "accord": {},\n"accord": {}', 'mcp.json:2: "accord" occurs twice'),
        (', "accord": {"policy": [], "policy": []}', "mcp.json:1: 'policy' occurs twice"),
        (', "accord": {"policy": [\n{"name": "x", "decision": "deny", "decision": "allow"}]}', ":2: 'decision' occurs"),
    ],
)
def test_a_mistake_refuses_the_file_with_its_place(tmp_path: Path, own: str, expected: str) -> None:
    with pytest.raises((PolicyError, TargetError)) as caught:
        decision(tmp_path, own)
    assert expected in str(caught.value)


def test_an_entry_without_a_digest_is_an_error_of_that_entry_only(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(r'{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b", "args": ["\ud800"]}}}', "utf-8")
    servers = read_configuration(path).servers
    assert "half of a surrogate pair" in servers["b"].error
    assert not servers["a"].error
    assert servers["a"].digest != servers["b"].digest


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such paths")
def test_a_path_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "\udcff.json"
    path.write_text(f"{{{SERVERS}}}", "utf-8")
    with pytest.raises(TargetError, match="the path is not UTF-8"):
        read_configuration(path)


@pytest.mark.parametrize("server", ["files", "my_web", "old", "*", ["f*", "old"]])
def test_a_rule_names_configured_servers(tmp_path: Path, server: object) -> None:
    rule = f'{{"name": "x", "decision": "deny", "server": {server!r}}}'.replace("'", '"')
    assert decision(tmp_path, f', "accord": {{"policy": [{rule}]}}') in ("ask", "deny")


@pytest.mark.parametrize("server", ["fils", "my web", "Files", "g*", ["files", "other"]])
def test_a_rule_about_a_server_that_does_not_exist_is_an_error(tmp_path: Path, server: object) -> None:
    rule = f'{{"name": "x", "decision": "deny", "server": {server!r}}}'.replace("'", '"')
    with pytest.raises(PolicyError, match=r"no server has the name .*; there are "):
        decision(tmp_path, f', "accord": {{"policy": [{rule}]}}')


def test_servers_of_a_program_have_no_rules() -> None:
    assert configure({"a": "x"}).policy().rules == ()
