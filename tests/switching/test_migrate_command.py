"""`accord migrate FILE` at a command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from accord.cli.migrate import command
from accord.errors import TargetError

PROGRAM = "from fastmcp import FastMCP\n\nmcp = FastMCP('x')\n"


def migrate(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "accord", "migrate", *map(str, arguments)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=30)


def test_the_difference_is_shown_and_nothing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(PROGRAM)
    done = migrate(file)
    assert (done.returncode, file.read_text()) == (0, PROGRAM)
    assert "-from fastmcp import FastMCP\n+from accord.compat.fastmcp import FastMCP\n" in done.stdout


def test_it_is_written_on_request(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_bytes(b"\xef\xbb\xbf" + PROGRAM.replace("\n", "\r\n").encode())
    assert migrate("--write", "--native", file).returncode == 0
    assert file.read_bytes() == b"\xef\xbb\xbffrom accord import Server\r\n\r\nmcp = Server('x')\r\n"


def test_what_is_left_is_listed_by_line_and_the_exit_code_says_so(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("import os\nfrom fastmcp.server.auth import OAuthProxy\n")
    done = migrate(file)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{file}:2: fastmcp.server.auth.OAuthProxy: " in done.stderr


def test_a_file_is_as_it_was_where_it_cannot_be_written_whole(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(PROGRAM)
    small = "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)); "
    command = [sys.executable, "-B", "-c", small + "runpy.run_module('accord', run_name='__main__')"]
    arguments = ["migrate", "--write", "--no-start", str(file)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, file.read_text()) == (2, PROGRAM)
    assert f"{file} cannot be written" in done.stderr
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_keeps_its_mode_and_a_link_to_it_stays_one(tmp_path: Path) -> None:
    file, link = tmp_path / "server.py", tmp_path / "link.py"
    file.write_text(PROGRAM)
    file.chmod(0o750)
    link.symlink_to(file)
    assert migrate("--write", link).returncode == 0
    assert link.is_symlink()
    assert "accord.compat" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o750


def test_a_program_that_does_not_start_is_an_error_with_its_line_and_the_cure(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("from fastmcp import FastMCP\n\nmcp = FastMCP('x', auth=1)\n")
    done = migrate("--write", file)
    assert done.returncode == 1
    assert f"{file}:3: it does not start: auth= takes no int in accord: write accord.JWT" in done.stderr
    assert migrate("--no-start", file).returncode == 0


def test_a_program_that_starts_says_what_it_offers(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(PROGRAM + "@mcp.tool\ndef double(x: int) -> int: return 2 * x\n\nmcp.run()\n")
    done = migrate(file)
    assert (done.returncode, f"{file}: it starts, and offers 1 tool" in done.stderr) == (0, True)


def test_the_list_is_not_repeated_when_the_program_does_not_start(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("from fastmcp.server.auth import OAuthProxy\n")
    done = migrate(file)
    assert (done.returncode, done.stderr.count(f"{file}:1:")) == (1, 1)


def test_what_cannot_be_read_is_reported_with_its_place(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n")
    assert f"{broken}:1: " in migrate(broken).stderr
    assert "absent.py" in migrate(tmp_path / "absent.py").stderr
    assert migrate(broken).returncode not in (0, 1)


@pytest.mark.parametrize("codec", ["hex", "rot13", "undefined", "zlib"])
def test_a_program_in_a_codec_that_is_not_for_texts_is_reported(codec: str, tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(f"# coding: {codec}\n{PROGRAM}")
    done = migrate(file)
    assert (done.returncode, f"{file} cannot be read" in done.stderr) == (2, True)


@pytest.mark.parametrize("deep", ["-" * 50_000 + "1", "a" + ".b" * 50_000])
def test_a_program_that_is_nested_too_deeply_is_refused(deep: str, tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(f"{PROGRAM}x = {deep}\n")
    done = migrate("--write", "--no-start", file)
    assert done.returncode != 0
    assert "nothing was changed" in done.stderr
    assert "defect" not in done.stderr


def test_an_edit_that_was_saved_meanwhile_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "server.py"
    file.write_text(PROGRAM)
    edited = PROGRAM + "# edited\n"
    monkeypatch.setattr("accord.cli.migrate._confirm", lambda file: file.write_text(edited) > 0)
    with pytest.raises(TargetError, match="it changed meanwhile; nothing was written"):
        command.callback((file,), write=False, native=False, no_start=True)
    assert file.read_text() == edited


@pytest.mark.skipif(sys.platform == "win32", reason="files have no owner there")
def test_a_file_keeps_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "server.py"
    file.write_text(PROGRAM)
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)  # as if another user ran it
    monkeypatch.setattr(os, "chown", lambda path, user, group: given.append((user, group)))
    assert command.callback is not None
    command.callback((file,), write=True, native=False, no_start=True)
    assert given == [(file.stat().st_uid, file.stat().st_gid)]


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_ctrl_c_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    def press(*arguments: object) -> None:
        raise KeyboardInterrupt

    file = tmp_path / "server.py"
    file.write_text(PROGRAM)
    monkeypatch.setattr(os, moment, press)
    assert command.callback is not None
    with pytest.raises(KeyboardInterrupt):
        command.callback((file,), write=True, native=False, no_start=True)
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text() == PROGRAM


def test_a_program_whose_encoding_would_rewrite_its_bytes_is_refused(tmp_path: Path) -> None:
    """All lines became one."""
    file = tmp_path / "server.py"
    file.write_text(f"# coding: unicode_escape\n{PROGRAM}")
    done = migrate("--write", file)
    assert (done.returncode, file.read_text()) == (2, f"# coding: unicode_escape\n{PROGRAM}")
    assert f"{file} is in unicode_escape, which would change other bytes; save it as UTF-8 first" in done.stderr
