"""The examples do what they promise, for a pipe, for a terminal, and with nothing in the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = str(Path(__file__).parents[2] / "examples" / "demo.py")


def test_the_demo_passes_with_an_empty_environment() -> None:
    done = subprocess.run([sys.executable, DEMO], env={}, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Everything as expected" in done.stdout
    assert "progress 5/5  measured Singapore" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_the_demo_is_live_on_a_terminal() -> None:
    ours, theirs = os.openpty()
    environment = {"TERM": "xterm", "PYTHONUTF8": "1"}
    with subprocess.Popen([sys.executable, DEMO], env=environment, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while data := os.read(ours, 65536):
                shown += data
        except OSError:  # Linux ends a terminal this way
            pass
        os.close(ours)
    assert process.returncode == 0
    assert "╭──" in shown.decode()
    assert b"\r\x1b[2K" in shown


def test_the_demo_fails_when_something_is_not_as_expected(tmp_path: Path) -> None:
    source = Path(DEMO).read_text(encoding="utf-8")
    (tmp_path / "demo.py").write_text(source.replace("68.0", "69.0"), encoding="utf-8")
    weather = Path(DEMO).with_name("weather.py").read_text(encoding="utf-8")
    (tmp_path / "weather.py").write_text(weather, encoding="utf-8")
    done = subprocess.run([sys.executable, str(tmp_path / "demo.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not as expected: 20 °C are 68.0 °F" in done.stderr
