"""How long an answer is waited for: a server that others keep from the processor is not silent."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from accord.check.engine.rule import Violation
from accord.check.probes.pending_answer import Answer, PendingAnswer
from accord.check.wires.base import ProcessorUse, processor_use
from accord.messages.base import JSONObject

from tests.waiting import until

LIMIT = 0.2
IDLE, WORKING = False, True


class Waiting:
    """Someone who waits for a peer whose use of the processor is known at each look; the last one stays."""

    answer_timeout = LIMIT
    last_received_at = 0.0

    def __init__(self, *uses: ProcessorUse | None) -> None:
        self._uses: Iterator[ProcessorUse | None] = iter(uses)
        self._last: ProcessorUse | None = None
        self.looks = 0

    def processor_use(self) -> ProcessorUse | None:
        self.looks += 1
        self._last = next(self._uses, self._last)
        return self._last

    def other_messages(self, since: int, id: object) -> list[JSONObject]:
        return []

    def violation(self, text: str, *, since: int | None = None, symptom: str = "", cause: str = "") -> Violation:
        return Violation(text, symptom=symptom)


def pending(waiting: Waiting) -> PendingAnswer:
    return PendingAnswer(waiting, {"jsonrpc": "2.0", "id": 1, "method": "ping"}, 0, 0)


@pytest.mark.parametrize(
    "uses",
    [
        pytest.param((None,), id="no process of ours"),
        pytest.param((ProcessorUse(1.0, IDLE),), id="one that does nothing"),
        pytest.param((ProcessorUse(1.0, WORKING), ProcessorUse(1.0 + LIMIT / 2, WORKING)), id="one that had its time"),
    ],
)
async def test_a_silent_server_is_waited_for_no_longer_than_the_limit(uses: tuple[ProcessorUse | None, ...]) -> None:
    waiting = Waiting(*uses)
    with pytest.raises(Violation, match=r"no response to ping in 0\.2 s"):
        await pending(waiting).wait(LIMIT)
    assert waiting.looks <= 2, "it was given up at the first look after the limit"


async def test_a_server_without_processor_time_is_awaited_until_it_answers() -> None:
    waiting = Waiting(ProcessorUse(1.0, WORKING), ProcessorUse(1.01, WORKING))
    request = pending(waiting)
    answered = asyncio.create_task(request.wait(LIMIT))
    await until(lambda: waiting.looks >= 4 or answered.done())
    assert not answered.done()
    request.future.set_result(Answer(request=request.request, id=1, message={}))
    assert (await answered).error is None


async def test_a_server_that_gets_no_processor_at_all_is_given_up_in_the_end() -> None:
    with pytest.raises(Violation):
        await pending(Waiting(ProcessorUse(1.0, WORKING))).wait(LIMIT / 4)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.parametrize(
    ("program", "works"),
    [
        ("while True: pass", True),
        ("import threading\nthreading.Thread(target=eval, args=['sum(iter(int, 1))']).start()", True),
        ("import sys; sys.stdin.read()", False),
    ],
    ids=["in its main thread", "in another thread", "waiting for input"],
)
def test_a_process_that_works_is_distinguished_from_one_that_waits(program: str, works: bool) -> None:
    code = f"print(flush=True)\n{program}"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            assert _comes_to(process.pid, works)
        finally:
            process.kill()


def _comes_to(group: int, works: bool) -> bool:
    """Whether it works, or waits, in the end: just now it may still be printing."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        use = processor_use(group)
        if use is not None and use.is_runnable is works:
            return True
        time.sleep(0.01)
    return False


def test_a_group_that_is_gone_has_no_use() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], start_new_session=True) as process:
        process.wait()
    assert processor_use(process.pid) is None
