"""Types are built by one thread at a time: clients in several threads may start at once."""

from __future__ import annotations

import subprocess
import sys
import threading

from accord.locked_cache import locked_cache

PROGRAM = """
import sys, threading
from accord import Server
from accord.sync import Client

server = Server("shop", version="1")

@server.tool
def double(number: int) -> int:
    return 2 * number

sys.setswitchinterval(1e-6)
ready = threading.Barrier(4)

def use(revision):
    ready.wait()
    with Client(server, revisions=[revision]) as client:
        assert client.call_tool("double", {"number": 2}).structured_content == {"result": 4}, revision

revisions = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-11-25")
threads = [threading.Thread(target=use, args=[each]) for each in revisions]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_clients_in_several_threads_start_at_once() -> None:
    for _ in range(4):
        subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


def test_a_value_is_made_by_one_thread_at_a_time_and_remembered() -> None:
    inside = threading.Lock()
    made: list[int] = []

    @locked_cache
    def make(number: int) -> list[int]:
        assert inside.acquire(blocking=False), "another thread is making a value"
        made.append(number)
        inside.release()
        return [number]

    threads = [threading.Thread(target=lambda: [make(number) for number in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(made) == set(range(200))
    assert make(3) is make(3)
