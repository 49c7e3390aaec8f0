"""The table of hosts: the files of each host on each operating system, and rows that fit together."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

import pytest

from accord.errors import TargetError
from accord.host.known_hosts import KNOWN_HOSTS, Folders, KnownHost, OperatingSystem, known_host, user_folders

LINUX = Folders("linux", "/home/ann")
MACOS = Folders("macos", "/Users/ann")
WINDOWS = Folders("windows", "C:\\Users\\ann", {"APPDATA": "C:\\Users\\ann\\AppData\\Roaming"})
SUPPORT = "/Users/ann/Library/Application Support"
ROAMING = "C:\\Users\\ann\\AppData\\Roaming"
PACKAGED = "C:\\Users\\ann\\AppData\\Local\\Packages\\Claude_pzs8sxrjxfjjc\\LocalCache\\Roaming\\Claude"

FILES = {
    "claude-desktop": (
        ["/home/ann/.config/Claude/claude_desktop_config.json"],
        [f"{SUPPORT}/Claude/claude_desktop_config.json"],
        [f"{ROAMING}\\Claude\\claude_desktop_config.json", f"{PACKAGED}\\claude_desktop_config.json"],
    ),
    "claude-code": (["/home/ann/.claude.json"], ["/Users/ann/.claude.json"], ["C:\\Users\\ann\\.claude.json"]),
    "cursor": (
        ["/home/ann/.cursor/mcp.json"],
        ["/Users/ann/.cursor/mcp.json"],
        ["C:\\Users\\ann\\.cursor\\mcp.json"],
    ),
    "vscode": (
        ["/home/ann/.config/Code/User/mcp.json"],
        [f"{SUPPORT}/Code/User/mcp.json"],
        [f"{ROAMING}\\Code\\User\\mcp.json"],
    ),
    "windsurf": (
        ["/home/ann/.codeium/windsurf/mcp_config.json"],
        ["/Users/ann/.codeium/windsurf/mcp_config.json"],
        ["C:\\Users\\ann\\.codeium\\windsurf\\mcp_config.json"],
    ),
    "zed": (
        ["/home/ann/.config/zed/settings.json"],
        ["/Users/ann/.config/zed/settings.json"],
        [f"{ROAMING}\\Zed\\settings.json"],
    ),
    "gemini": (
        ["/home/ann/.gemini/settings.json"],
        ["/Users/ann/.gemini/settings.json"],
        ["C:\\Users\\ann\\.gemini\\settings.json"],
    ),
    "codex": (
        ["/home/ann/.codex/config.toml"],
        ["/Users/ann/.codex/config.toml"],
        ["C:\\Users\\ann\\.codex\\config.toml"],
    ),
    "goose": (
        ["/home/ann/.config/goose/config.yaml"],
        ["/Users/ann/.config/goose/config.yaml"],
        [f"{ROAMING}\\Block\\goose\\config\\config.yaml"],
    ),
}
PROJECT_FILES = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "zed": ".zed/settings.json",
    "gemini": ".gemini/settings.json",
    "codex": ".codex/config.toml",
}


def test_the_table_has_every_host_of_these_tests() -> None:
    assert list(KNOWN_HOSTS) == list(FILES)
    assert {name: host.project_file for name, host in KNOWN_HOSTS.items() if host.project_file} == PROJECT_FILES


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("folders", "column"), [(LINUX, 0), (MACOS, 1), (WINDOWS, 2)])
def test_each_host_has_its_files_on_each_operating_system(name: str, folders: Folders, column: int) -> None:
    flavour = PureWindowsPath if column == 2 else PurePosixPath
    assert list(known_host(name).user_files(folders)) == [flavour(each) for each in FILES[name][column]]


@pytest.mark.parametrize(
    ("name", "variable", "system", "expected"),
    [
        ("codex", "CODEX_HOME", "linux", "/other/config.toml"),
        ("claude-code", "CLAUDE_CONFIG_DIR", "macos", "/other/.claude.json"),
        ("vscode", "XDG_CONFIG_HOME", "linux", "/other/Code/User/mcp.json"),
        ("goose", "XDG_CONFIG_HOME", "macos", "/other/goose/config.yaml"),
        ("zed", "XDG_CONFIG_HOME", "macos", "/home/ann/.config/zed/settings.json"),
    ],
)
def test_an_environment_variable_moves_a_folder(
    name: str, variable: str, system: OperatingSystem, expected: str
) -> None:
    folders = Folders(system, "/home/ann", {variable: "/other"})
    assert str(known_host(name).user_files(folders)[0]) == expected


def test_a_relative_path_in_an_environment_variable_is_ignored() -> None:
    folders = Folders("linux", "/home/ann", {"XDG_CONFIG_HOME": "other"})
    assert str(known_host("goose").user_files(folders)[0]) == "/home/ann/.config/goose/config.yaml"


@pytest.mark.parametrize("host", KNOWN_HOSTS.values(), ids=lambda host: host.name)
def test_the_spelling_of_a_host_fits_together(host: KnownHost) -> None:
    form = host.format
    assert form.transports >= {"stdio"}
    assert set(form.types) <= form.transports
    assert form.reference is None or form.reference.count("%s") == 1
    assert (form.inputs is None) == ("input" not in (form.reference or ""))


def test_an_unknown_host_is_an_error_that_lists_the_hosts() -> None:
    with pytest.raises(TargetError, match="unknown host 'emacs'; there are claude-desktop, claude-code, cursor"):
        known_host("emacs")


def test_folders_have_no_environment_variables_in_their_repr() -> None:
    assert "hunter2" not in repr(Folders("linux", "/home/ann", {"TOKEN": "hunter2"}))
    assert user_folders().system in ("linux", "macos", "windows")
