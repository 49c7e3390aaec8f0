"""`FairSemaphore`: whose turn is next."""

from __future__ import annotations

import asyncio

from accord.server.core.fair_semaphore import FairSemaphore

from tests.waiting import until


class Work:
    """Operations that hold a slot until they are released, in the order in which they got it."""

    def __init__(self, slots: int) -> None:
        self.semaphore = FairSemaphore(slots)
        self.begun: list[str] = []
        self.release = asyncio.Semaphore(0)

    async def hold(self, account: str) -> None:
        async with self.semaphore.slot(account):
            self.begun.append(account)
            await self.release.acquire()

    def start(self, accounts: str) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.hold(account)) for account in accounts]


async def test_free_slots_go_to_all_accounts_in_turn() -> None:
    work = Work(2)
    tasks = work.start("aaaaaab")
    await until(lambda: len(work.begun) == 2)
    tasks += work.start("bc")
    for _ in tasks:
        work.release.release()
    await asyncio.gather(*tasks)
    assert "".join(work.begun) == "aaabcabaa"


async def test_the_slots_are_a_limit_and_come_back() -> None:
    work = Work(3)
    for _ in range(2):
        tasks = work.start("abcabc")
        await until(lambda: len(work.begun) == 3)
        await asyncio.sleep(0)
        assert len(work.begun) == 3
        for _ in tasks:
            work.release.release()
        await asyncio.gather(*tasks)
        work.begun.clear()


async def test_a_slot_is_not_lost_with_an_operation_that_is_cancelled() -> None:
    work = Work(1)
    async with work.semaphore.slot("a"):
        waiting, chosen, last = work.start("bcd")
        await asyncio.sleep(0)
        waiting.cancel()
    chosen.cancel()  # it has the slot now, and has not run yet
    work.release.release()
    await last
    await asyncio.wait([waiting, chosen])
    assert work.begun == ["d"]
    async with work.semaphore.slot("a"):
        pass
