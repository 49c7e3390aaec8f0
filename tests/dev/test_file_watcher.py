"""The files that `accord dev` watches."""

from __future__ import annotations

from pathlib import Path

from accord.dev.file_watcher import FileWatcher


def test_each_change_in_a_directory_is_returned_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.txt"
    first.write_text("1")
    watcher = FileWatcher([tmp_path])
    assert watcher.poll() == set()
    first.write_text("11")
    second.write_text("2")
    assert watcher.poll() == {str(first), str(second)}
    assert watcher.poll() == set()
    first.unlink()
    assert watcher.poll() == {str(first)}
    assert watcher.poll() == set()


def test_hidden_files_and_bytecode_are_left_out(tmp_path: Path) -> None:
    watcher = FileWatcher([tmp_path])
    for folder in (".git", "__pycache__", "node_modules"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").write_text("1")
    (tmp_path / ".file.swp").write_text("1")
    assert watcher.poll() == set()


def test_a_file_that_changed_after_its_import_counts_as_changed(tmp_path: Path) -> None:
    module, report = tmp_path / "module.py", tmp_path / "imports"
    module.write_text("1")
    watcher = FileWatcher([], report)
    status = module.stat()
    report.write_text(f"{status.st_mtime_ns} {status.st_size} {module}\n{status.st_mtime_ns} 1")  # an unfinished line
    assert watcher.poll() == set()
    module.write_text("11")
    assert watcher.poll() == {str(module)}
    with report.open("a") as file:
        file.write(f" {module}\n{status.st_mtime_ns - 1} {status.st_size} {module}\n")  # an older process is late
    assert watcher.poll() == set()


def test_a_save_between_import_and_first_poll_is_noticed(tmp_path: Path) -> None:
    module, report = tmp_path / "module.py", tmp_path / "imports"
    module.write_text("1")
    watcher = FileWatcher([], report)
    report.write_text(f"{module.stat().st_mtime_ns} 1 {module}\n")
    module.write_text("11")
    assert watcher.poll() == {str(module)}
