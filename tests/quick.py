"""What a run with `--quick` leaves out: folders that need peers or a browser, and test functions that take long.

A function takes long if all its cases together took `SLOW` seconds of processor time in the run that `durations.json`
holds, or `WAITING` seconds by the clock, since a few wait for one timeout after the other. So there is no list to keep:
`scripts/test --record-durations` writes that file. Only the standard library is used, since `scripts/test` runs this
file before anything is installed: it prints the scripts that install what pytest with these arguments needs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).resolve().parent
DURATIONS = TESTS / "durations.json"

PEER_FOLDERS = tuple(
    TESTS / name
    for name in (
        "auth/peers",
        "check/known_bad",
        "check/peers",
        "conformance",
        "inspector/authorization/peers",
        "inspector/browser",
        "interop",
        "switching",
    )
)
"""Folders with tests that need peers. No test outside of them imports `tests.interop.peers`."""

BROWSER_FOLDERS = (TESTS / "inspector" / "browser", TESTS / "interop" / "apps")
"""Those with tests that need a browser as well. No test outside of them imports Playwright."""

INSTALLED_BY = {"scripts/peers": PEER_FOLDERS, "scripts/browser": BROWSER_FOLDERS}
"""The scripts that install what the tests in these folders need."""

SLOW = 0.2
"""Seconds of processor time of a test function, with set-up, tear-down and child processes."""

WAITING = 2.0
"""Seconds by the clock."""


def in_peer_folder(path: Path) -> bool:
    """Return whether a test in this file or folder may need peers."""
    return any(path.is_relative_to(folder) for folder in PEER_FOLDERS)


def needs(folders: Iterable[Path], arguments: Iterable[str]) -> bool:
    """Return whether a run of pytest with these arguments may collect a test in one of the folders."""
    arguments = list(arguments)
    if "--quick" in arguments:
        return False
    paths = [path for each in arguments if (path := Path(each.partition("::")[0]).resolve()).exists()]
    return not paths or any(
        path.is_relative_to(folder) or folder.is_relative_to(path) for path in paths for folder in folders
    )


def slow_functions() -> frozenset[str]:
    """Return the ids of the test functions that take long."""
    return frozenset(
        function
        for function, took in recorded().items()
        if took["processor_seconds"] >= SLOW or took["seconds"] >= WAITING
    )


def recorded() -> dict[str, dict[str, float]]:
    """Return the durations of the slowest test functions, by their ids."""
    slowest: dict[str, dict[str, float]] = json.loads(DURATIONS.read_text("utf-8"))["slowest"]
    return slowest


if __name__ == "__main__":
    print(*(script for script, folders in INSTALLED_BY.items() if needs(folders, sys.argv[1:])), sep="\n")
