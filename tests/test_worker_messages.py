"""Reports of tests that passed arrive whole, and what a worker sends during a test is sent together at its end."""

from __future__ import annotations

import io
from typing import Any

import pytest

from tests import worker_messages
from tests.worker_messages import TestMessages


def reported(outcome: Any) -> pytest.TestReport:
    extra = [("processor_seconds", 0.5)]
    place = ("test_a.py", 1, "test_one")
    return pytest.TestReport(
        "test_a.py::test_one", place, {"test_one": 1}, outcome, None, "call", [], 0.1, user_properties=extra
    )


def test_a_report_of_a_test_that_passed_arrives_whole_with_what_is_added_on_the_way() -> None:
    sent = reported("passed")
    message = worker_messages.pytest_report_to_serializable(sent)
    assert message is not None
    message["worker_id"] = "gw1"
    received = worker_messages.pytest_report_from_serializable(message)
    assert vars(received) == {**vars(sent), "worker_id": "gw1"}


@pytest.mark.parametrize("outcome", ["failed", "skipped"])
def test_other_reports_are_left_to_pytest(outcome: str) -> None:
    assert worker_messages.pytest_report_to_serializable(reported(outcome)) is None
    assert worker_messages.pytest_report_from_serializable({"$report_type": "TestReport"}) is None


class Stream(io.BytesIO):
    """Where a worker writes its messages; an attribute of `BytesIO` itself cannot be set."""


@pytest.mark.parametrize("fails", [False, True], ids=["a test that ends", "an error of pytest"])
def test_messages_are_held_while_a_test_runs_and_no_longer(fails: bool) -> None:
    stream = Stream()
    protocol = TestMessages(stream).pytest_runtest_protocol()
    next(protocol)
    stream.write(b"begun ")
    stream.write(b"report ")
    assert stream.getvalue() == b""
    with pytest.raises(KeyError if fails else StopIteration):
        protocol.throw(KeyError()) if fails else protocol.send(True)
    assert stream.getvalue() == b"begun report "
    stream.write(b"over")
    assert stream.getvalue() == b"begun report over"


def test_a_worker_writes_its_messages_where_they_are_held(request: pytest.FixtureRequest) -> None:
    held = [each for each in request.config.pluginmanager.get_plugins() if isinstance(each, TestMessages)]
    assert len(held) == hasattr(request.config, "workerinput")
