"""How long tests take: `--record-durations` writes `durations.json` anew, and workers begin with the slowest files.

The file has the slowest test functions, each with all its cases, set-up, tear-down and child processes. The time of the
processor says what a test costs on any machine; the other one includes what it waits for, and what ran beside it.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence

import pytest

from tests.quick import DURATIONS, SLOW, WAITING, recorded

FUNCTIONS = 1000
"""How many the file has."""

PROCESSOR = "processor_seconds"
"""The name of a property of a report: the processor time of the test."""

STARTED = pytest.StashKey[float]()
"""The processor time at which a test started."""


class ProcessorTime:
    """Adds the processor time of each test to its last report; in every worker."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        item.stash[STARTED] = processor_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "teardown":
            report.user_properties.append((PROCESSOR, processor_seconds() - item.stash[STARTED]))
        return report


class Durations:
    """Sums the durations of one run by test function, and writes the file at its end; in one process."""

    def __init__(self) -> None:
        self.processor: defaultdict[str, float] = defaultdict(float)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.cases: defaultdict[str, int] = defaultdict(int)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        function = function_id(report)
        self.seconds[function] += report.duration
        if report.when == "teardown":
            self.cases[function] += 1
            self.processor[function] += next(value for name, value in report.user_properties if name == PROCESSOR)

    def pytest_sessionfinish(self) -> None:
        slowest = sorted(self.cases, key=lambda each: (-round(self._rank(each), 2), each))[:FUNCTIONS]
        total = self._row(list(self.cases))
        rows = ",\n".join(f"  {json.dumps(each)}: {json.dumps(self._row([each]))}" for each in slowest)
        DURATIONS.write_text(f'{{\n"total": {json.dumps(total)},\n"slowest": {{\n{rows}\n}}\n}}\n', encoding="utf-8")

    def _rank(self, function: str) -> float:
        """The larger share of what makes a function slow for the quick run."""
        return max(self.processor[function] / SLOW, self.seconds[function] / WAITING)

    def _row(self, functions: list[str]) -> dict[str, float]:
        return {
            "processor_seconds": round(sum(self.processor[each] for each in functions), 2),
            "seconds": round(sum(self.seconds[each] for each in functions), 2),
            "cases": sum(self.cases[each] for each in functions),
        }


def slow_files_first(ids: Sequence[str], workers: int) -> Iterator[int]:
    """Yield the places of the tests with these ids, so that each worker begins with the slowest files of its share.

    A worker that has no tests left takes some from the end of another's share: a long test there would run alone, when
    all others have ended. Shares are those of `--dist worksteal`; the tests of a file stay together.
    """
    rows = recorded()
    seconds = [row["seconds"] / row["cases"] if (row := rows.get(id.partition("[")[0])) else 0.0 for id in ids]
    end = 0
    for worker in range(workers):
        begin, end = end, end + (len(ids) - end) // (workers - worker)
        files: defaultdict[str, list[int]] = defaultdict(list)
        for place in range(begin, end):
            files[ids[place].partition("::")[0]].append(place)
        longest = {file: max(seconds[place] for place in places) for file, places in files.items()}
        for file in sorted(files, key=lambda each: -longest[each]):
            yield from files[file]


def function_id(test: pytest.Item | pytest.TestReport) -> str:
    """Return the id of a test without that of its case."""
    return test.nodeid.partition("[")[0]


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])
