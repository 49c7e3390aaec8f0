"""The browser of the tests: Chromium as the system has it, since Playwright's own browsers cannot be downloaded in CI.

`scripts/browser` runs this file: it finds a browser or, as root on Debian, installs one. The tests ask it for the path:

    find_browser()    $ACCORD_BROWSER, or the first of `NAMES` on the PATH

Without a browser it raises `BrowserMissing`: a test that needs one fails then, it never skips.
Only the standard library is used, since this also runs before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

PACKAGES = ("chromium", "fonts-dejavu-core")
"""Debian's names. Without fonts a page has no text."""

LOCK_SECONDS = 300
"""How long apt waits for another apt."""


class BrowserMissing(Exception):
    """No browser is installed."""

    def __init__(self, found: str = f"none of {', '.join(NAMES)} is on the PATH") -> None:
        super().__init__(
            f"no browser for the tests: {found}; install the Debian package chromium"
            " (scripts/browser does so as root), or set ACCORD_BROWSER to the path of Chromium or Chrome"
        )


def find_browser() -> Path:
    """Return the path of the browser, or raise `BrowserMissing`."""
    named = os.environ.get("ACCORD_BROWSER")
    if named:
        path = shutil.which(named)
        if path is None:
            raise BrowserMissing(f"ACCORD_BROWSER is {named!r}, which is not a program")
        return Path(path)
    for name in NAMES:
        if path := shutil.which(name):
            return Path(path)
    raise BrowserMissing


def install() -> Path:
    """Return the path of the browser; install it first where that is possible and none is there."""
    try:
        return find_browser()
    except BrowserMissing:
        if os.environ.get("ACCORD_BROWSER") or not can_install():
            raise
    print(f"installing {', '.join(PACKAGES)} with apt", file=sys.stderr, flush=True)
    apt("update")
    apt("install", "--no-install-recommends", *PACKAGES)
    return find_browser()


def can_install() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt(*arguments: str) -> None:
    command = ["apt-get", "-qq", "--yes", "-o", f"DPkg::Lock::Timeout={LOCK_SECONDS}", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, check=False)
    if done.returncode:
        raise BrowserMissing(f"{' '.join(command)} failed with exit code {done.returncode}, its output is above")


if __name__ == "__main__":
    try:
        print(install())
    except BrowserMissing as error:
        sys.exit(str(error))
