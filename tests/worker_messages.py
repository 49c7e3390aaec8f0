"""What a worker of pytest-xdist sends to the run, at less cost: the messages of one test together, and short reports.

A test has six messages, and three of them are reports of some thirty values each, which execnet would encode one by one
in Python. To send each alone wakes up the run each time: for a test that does little, all of that takes twice the time
of pytest itself.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator
from typing import Any

import pytest

PICKLED = "pickled report"
"""The key of a report in a message."""


class TestMessages:
    """Holds what a worker sends while a test runs, and sends it at its end; a process that a test forks has no part in
    it. If the worker crashes, the run knows which test it had begun.
    """

    __test__ = False

    def __init__(self, io: Any) -> None:
        """Write with the `write` of `io`, by which all messages of the worker go."""
        self._io = io
        self._write = io.write
        self._held: list[bytes] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._io.write = self._hold
        try:
            return (yield)
        finally:
            self._io.write = self._write
            held, self._held = self._held, []
            self._write(b"".join(held))

    def _hold(self, message: bytes) -> None:
        self._held.append(message)


def pytest_configure(config: pytest.Config) -> None:
    for plugin in config.pluginmanager.get_plugins() if hasattr(config, "workerinput") else ():
        if type(plugin).__name__ == "WorkerInteractor":
            config.pluginmanager.register(TestMessages(plugin.channel.gateway._io))


@pytest.hookimpl(tryfirst=True)
def pytest_report_to_serializable(report: pytest.CollectReport | pytest.TestReport) -> dict[str, Any] | None:
    """Encode the report of a phase that passed as one value; failures as ever."""
    if type(report) is pytest.TestReport and report.passed:
        return {PICKLED: pickle.dumps(report)}
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_report_from_serializable(data: dict[str, Any]) -> pytest.TestReport | None:
    if PICKLED not in data:
        return None
    report: pytest.TestReport = pickle.loads(data.pop(PICKLED))
    vars(report).update(data)  # what pytest-xdist adds: the worker, and the run
    return report
