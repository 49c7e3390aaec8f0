"""uv in pip's place: the same packages from the same places, in a tenth of the time.

It comes from PyPI as a wheel, pinned, into .cache/uv/. What pip is told, by its files and its environment, it is told
as well; where pip is told more than can be handed on, or there is no such wheel, pip does the work itself.
Only the standard library is used.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".cache" / "uv"
VERSION = "0.13.9"

HANDED_ON = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "cert": ("SSL_CERT_FILE", " "),
    "constraint": ("UV_CONSTRAINT", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
}
"""Settings of pip, the variables of uv that say the same, and what stands between several values."""

LEFT_OUT = {"disable-pip-version-check", "no-input", "quiet", "verbose", "no-color", "progress-bar", "root-user-action"}
"""Settings of pip that change nothing about what is installed."""


def environment() -> dict[str, str] | None:
    """The variables with which uv does as pip would; None where it cannot."""
    told = settings()
    if told is None or told.keys() - HANDED_ON.keys() - LEFT_OUT:
        return None
    all_are_one = "unsafe-best-match"  # to pip, which takes the best version wherever it is
    made = {"UV_CACHE_DIR": str(FOLDER / "cache"), "UV_INDEX_STRATEGY": all_are_one}
    for name, value in told.items():
        if name in HANDED_ON:
            variable, between = HANDED_ON[name]
            made[variable] = between.join(value.split())
    return made


def settings() -> dict[str, str] | None:
    """What pip is configured with, by the name of the setting; None where there is no pip that says it."""
    done = pip("config", "list")
    if done.returncode:
        return None
    lines = sorted(done.stdout.splitlines(), key=lambda line: line.startswith(":env:"))  # which has the last word
    pairs = (line.partition("=")[::2] for line in lines)
    return {name.rpartition(".")[2]: str(ast.literal_eval(value)) for name, value in pairs}


def command() -> list[str] | None:
    """The command, installed first where it is not there; None where there is no wheel of it for this machine."""
    target, fresh = FOLDER / VERSION, FOLDER / f"{VERSION}.new"
    if not target.exists():
        shutil.rmtree(fresh, ignore_errors=True)
        wheel = ["--quiet", "--no-deps", "--only-binary=:all:", "--target", str(fresh), f"uv=={VERSION}"]
        if pip("install", *wheel).returncode:
            return None
        fresh.rename(target)  # whole, or not at all
    return [str(target / "bin" / ("uv.exe" if os.name == "nt" else "uv"))]


def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the pip of this Python, which may have none."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
