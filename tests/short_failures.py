"""Short failures: with `--tb=short`, one has some 60 lines at most, so that an excerpt of a run shows several.

Only what repeats is left out: the middle of long tracebacks, of long values and of long output.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

import pytest
from _pytest._code.code import ExceptionChainRepr

ENTRIES = 6
"""Calls of one traceback."""

LINES = 16
"""Lines of one call, and of one section of output."""

WIDTH = 500
"""Characters of a line."""

EXCEPTIONS = 3
"""Exceptions of one chain: the first, and the last ones."""

T = TypeVar("T")


def shorten(report: pytest.TestReport) -> None:
    """Shorten what a report says of a failure."""
    if isinstance(report.longrepr, ExceptionChainRepr):
        chain = report.longrepr.chain
        report.longrepr.chain = [*chain[:1], *chain[1:][-EXCEPTIONS + 1 :]]
        for traceback, _, _ in report.longrepr.chain:
            traceback.reprentries = _ends(traceback.reprentries, ENTRIES)
            for entry in traceback.reprentries:
                entry.lines = shortened(entry.lines, "E   ")
    report.sections = [(name, "\n".join(shortened(text.splitlines()))) for name, text in report.sections]


def shortened(lines: Sequence[str], mark: str = "") -> list[str]:
    """Return the first and the last lines, with a note of how many are left out between them."""
    short = [line if len(line) <= WIDTH else f"{line[:WIDTH]} ... ({len(line):,} characters)" for line in lines]
    if len(short) <= LINES:
        return short
    return [*short[: LINES // 2], f"{mark}... ({len(short) - LINES} lines) ...", *short[-LINES // 2 :]]


def _ends(items: Sequence[T], most: int) -> list[T]:
    return [*items] if len(items) <= most else [*items[: most // 2], *items[-most // 2 :]]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and item.config.getoption("tbstyle") == "short":
        shorten(report)
    return report
