"""Writing a host's file: atomic, beside a backup, never over what somebody else has written."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from accord.errors import TargetError
from accord.install.atomic_file import HostFileText

OLD = '{"a": "é"}\r\n'
NEW = '{"a": "é", "b": 2}\r\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "mcp.json"
    file.write_bytes(OLD.encode())
    return file


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_a_file_is_replaced_next_to_a_backup(path: Path) -> None:
    file = HostFileText.read(path, "json")
    file.replace(NEW)
    assert path.read_bytes() == NEW.encode()
    assert file.backup.read_bytes() == OLD.encode()
    assert names(path.parent) == ["mcp.json", "mcp.json.accord-backup"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o660])
def test_the_mode_of_a_file_is_preserved_and_the_backup_has_it_too(path: Path, mode: int) -> None:
    path.chmod(mode)
    file = HostFileText.read(path, "json")
    file.replace(NEW)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, file.backup)] == [mode, mode]


def test_a_new_file_is_created_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "mcp.json"
    HostFileText.read(path, "json").replace(NEW, private=True)
    assert path.read_bytes() == NEW.encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names(path.parent) == ["mcp.json"]


def test_a_symbolic_link_stays_and_its_file_is_written(path: Path) -> None:
    link = path.parent / "link" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(path)
    HostFileText.read(link, "json").replace(NEW)
    assert link.is_symlink()
    assert path.read_bytes() == NEW.encode()
    assert names(link.parent) == ["mcp.json"]


def test_a_dangling_link_gets_its_file(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder" / "file")
    HostFileText.read(link, "json").replace(NEW)
    assert (tmp_path / "folder" / "file").read_bytes() == NEW.encode()


@pytest.mark.parametrize("content", [b"{}", None])
def test_a_change_by_the_host_in_between_is_detected_and_not_lost(path: Path, content: bytes | None) -> None:
    file = HostFileText.read(path, "json")
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(TargetError, match="was changed by another program meanwhile; nothing was written"):
        file.replace(NEW)
    assert (path.read_bytes() if path.exists() else None) == content
    with pytest.raises(TargetError, match="was changed by another program meanwhile"):
        file.delete()
    assert not [each for each in names(path.parent) if each.endswith(".accord-new")]


def test_a_file_that_the_host_creates_in_between_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    file = HostFileText.read(path, "json")
    path.write_bytes(b"{}")
    with pytest.raises(TargetError, match="was changed by another program meanwhile"):
        file.replace(NEW)
    assert path.read_bytes() == b"{}"


KILLED = """
import os, signal, sys
from pathlib import Path
from accord.install.atomic_file import HostFileText
calls = []
def replace(*paths):
    calls.append(paths)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*paths)
rename, os.replace = os.replace, replace
HostFileText.read(Path(sys.argv[1]), "json").replace(sys.argv[3])
"""


@pytest.mark.parametrize("call", [1, 2])
def test_a_kill_between_temporary_file_and_rename_leaves_the_old_file_whole(path: Path, call: int) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(call), NEW], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == OLD.encode()
    for left_over in path.parent.glob(".*.accord-new"):
        os.utime(left_over, (0, 0))
    HostFileText.read(path, "json").replace(NEW)
    assert path.read_bytes() == NEW.encode()
    assert names(path.parent) == ["mcp.json", "mcp.json.accord-backup"]


FULL = """
import resource, signal, sys
from pathlib import Path
from accord.errors import TargetError
from accord.install.atomic_file import HostFileText
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = HostFileText.read(Path(sys.argv[1]), "json")
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    file.replace("[" + "1," * 10_000 + "1]")
except TargetError as exc:
    print(exc)
"""


def test_a_file_that_does_not_fit_is_not_written(path: Path) -> None:
    """The limit of the size of a file stands for a full disk: a write fails half-way."""
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], check=True, capture_output=True, text=True)
    assert done.stdout == f"{path} cannot be written: File too large; it is as it was\n"
    assert path.read_bytes() == OLD.encode()
    assert names(path.parent) == ["mcp.json", "mcp.json.accord-backup"]


def test_the_temporary_file_of_another_process_stays(path: Path) -> None:
    other = path.parent / ".mcp.json.0123.accord-new"
    other.write_text("half")
    HostFileText.read(path, "json").replace(NEW)
    assert other.read_text() == "half"


def test_a_folder_that_cannot_be_written_is_an_error(path: Path) -> None:
    file = HostFileText.read(path, "json")
    path.parent.chmod(0o500)
    try:
        if os.access(path.parent, os.W_OK):  # root: no mode stops it
            (path.parent / "mcp.json.accord-backup").mkdir()
        with pytest.raises(TargetError, match=r"cannot be written: .*; it is as it was"):
            file.replace(NEW)
    finally:
        path.parent.chmod(0o700)
    assert path.read_bytes() == OLD.encode()


def test_a_folder_in_the_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").mkdir()
    with pytest.raises(TargetError, match="is not a regular file"):
        HostFileText.read(tmp_path / "mcp.json", "json")


def test_a_parent_that_is_a_file_is_an_error(path: Path) -> None:
    file = HostFileText.read(path / "mcp.json", "json")
    with pytest.raises(TargetError, match=r"cannot be written: .*; it is as it was"):
        file.replace(NEW)
