"""The browser of the tests is found where it is, and its absence is an error with a cure."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.inspector import chromium
from tests.inspector.chromium import BrowserMissing, find_browser, install

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH."""
    monkeypatch.delenv("ACCORD_BROWSER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_first_browser_on_the_path_is_found(path: Path) -> None:
    chrome = program(path / "google-chrome")
    assert find_browser() == chrome
    assert find_browser() == install()
    assert find_browser() != program(path / "chromium")
    assert find_browser() == path / "chromium"


def test_the_variable_names_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path / "chromium")
    monkeypatch.setenv("ACCORD_BROWSER", str(program(path / "other")))
    assert install() == path / "other"


def test_a_variable_that_names_no_program_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path / "chromium")
    monkeypatch.setenv("ACCORD_BROWSER", str(path / "absent"))
    with pytest.raises(BrowserMissing, match=r"ACCORD_BROWSER is '.*absent', which is not a program; install"):
        install()


def test_without_a_browser_the_error_has_a_cure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium, "can_install", lambda: False)
    with pytest.raises(BrowserMissing, match=r"install the Debian package chromium .* or set ACCORD_BROWSER"):
        install()


def test_an_installation_that_fails_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path / "apt-get").write_text("#!/bin/sh\nexit 100\n")
    (path / "apt-get").chmod(0o755)
    monkeypatch.setattr(chromium, "can_install", lambda: True)
    with pytest.raises(BrowserMissing, match=r"apt-get .* failed with exit code 100"):
        install()


def script(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [ROOT / "scripts" / "browser"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_the_script_prints_the_path(tmp_path: Path) -> None:
    named = program(tmp_path / "browser")
    environment = {**os.environ, "ACCORD_BROWSER": str(named), "HOME": str(tmp_path / "home")}
    run = script(environment)
    assert (run.returncode, run.stdout, run.stderr) == (0, f"{named}\n", "")
    environment["ACCORD_BROWSER"] = str(tmp_path / "absent")
    run = script(environment)
    assert run.returncode == 1
    assert "or set ACCORD_BROWSER to the path" in run.stderr
