"""A file is written as a whole or not at all, whatever comes in between; a device or a pipe is written directly."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from accord.file_replacement import write_file

FULL_DISK = """
import resource, sys
from pathlib import Path
from accord.cli.content import BinaryContent, save as save_output
from accord.testing.files import write_expected
from accord.file_replacement import write_file

writers = {
    "plain": lambda file: write_file(file, b"x" * 9_000),
    "snapshot": lambda file: write_expected(file, "x" * 9_000),
    "output": lambda file: save_output([BinaryContent(b"x" * 9_000, "image/png")], str(file)),
}
resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))  # as on a disk that is full
try:
    writers[sys.argv[1]](Path(sys.argv[2]))
except Exception as exc:
    sys.exit(f"refused: {exc}")
"""


@pytest.mark.parametrize("writer", ["plain", "snapshot", "output"])
def test_a_file_that_cannot_be_written_is_as_it_was(tmp_path: Path, writer: str) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    command = [sys.executable, "-c", FULL_DISK, writer, file]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100)
    assert "refused" in done.stderr
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    write_file(link, b"after")
    assert link.is_symlink()
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"after", 0o640)


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"content")
    reader.join(100)
    assert got == [b"content"]
    assert pipe.is_fifo()
