"""Prompts are answered one at a time, and an answer is for the prompt that was shown."""

from __future__ import annotations

import asyncio
import threading

import pytest

from accord.host.approvers import ApprovalQueue, CallbackApprover, GrantRequest, PromptAnswer
from accord.host.consent import NotApproved
from accord.host.prompts import CommandPrompt, Prompt

from tests.waiting import until

ONE, OTHER = CommandPrompt("one", []), CommandPrompt("other", [])


async def test_a_plain_function_is_asked_about_one_prompt_at_a_time() -> None:
    """Two questions at once in a terminal would take each other's answers."""
    shown: list[str] = []
    may_answer = threading.Event()

    def ask(prompt: Prompt) -> bool:
        shown.append(prompt.server)
        may_answer.wait(30)
        return prompt.server == "other"

    approver = CallbackApprover(ask)
    one, other = (asyncio.create_task(approver.ask(prompt, 30)) for prompt in (ONE, OTHER))
    await until(lambda: shown != [])
    for _ in range(20):
        await asyncio.sleep(0)
    assert shown == ["one"]
    may_answer.set()
    assert ((await one).approved, (await other).approved) == (False, True)


async def test_a_late_answer_is_not_for_the_next_prompt() -> None:
    shown: list[str] = []
    keys = {"one": threading.Event(), "other": threading.Event()}

    def ask(prompt: Prompt) -> bool:
        shown.append(prompt.server)
        return keys[prompt.server].wait(30)

    approver = CallbackApprover(ask)
    assert not (await approver.ask(ONE, 0.01)).approved
    asking = asyncio.create_task(approver.ask(OTHER, 30))
    for _ in range(20):
        await asyncio.sleep(0)
    assert shown == ["one"]  # its question is still in the terminal
    keys["one"].set()
    await until(lambda: shown == ["one", "other"])
    assert not asking.done()
    keys["other"].set()
    assert (await asking).approved


async def test_an_unanswered_prompt_takes_no_thread_of_the_program() -> None:
    """The threads of the event loop also resolve names, and end with the program."""
    free = threading.Event()
    try:
        approver = CallbackApprover(lambda prompt: free.wait(30))
        await asyncio.gather(*(approver.ask(ONE, 0.01) for _ in range(50)))
        names = [thread.name for thread in threading.enumerate() if thread.name == "accord-question"]
        assert len(names) == 1
        assert all(thread.daemon for thread in threading.enumerate() if thread.name == "accord-question")
        assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), 30) == 1
    finally:
        free.set()


async def test_an_error_of_the_function_is_an_error_of_the_prompt_alone() -> None:
    answers = iter([ValueError("broken"), True])

    def ask(prompt: Prompt) -> bool:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    approver = CallbackApprover(ask)
    with pytest.raises(ValueError, match="broken"):
        await approver.ask(ONE, 30)
    assert (await approver.ask(OTHER, 30)).approved


async def test_a_queue_keeps_no_prompt_that_nobody_waits_for() -> None:
    def fail() -> None:
        raise ValueError("broken")

    queue = ApprovalQueue(fail)
    with pytest.raises(ValueError, match="broken"):
        await queue.ask(ONE, 30)
    assert queue.waiting == []

    queue = ApprovalQueue()
    asking = [asyncio.create_task(queue.ask(ONE, 30)) for _ in range(1_000)]
    await until(lambda: len(queue.waiting) == 1_000)
    ids = [waiting.id for waiting in queue.waiting]
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)
    assert queue.waiting == []
    with pytest.raises(NotApproved):
        queue.answer(ids[0], PromptAnswer(approved=True))


@pytest.mark.parametrize("seconds", [float("nan"), float("inf")])
def test_a_grant_without_a_real_end_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds"):
        GrantRequest(tool="*", seconds=seconds)
