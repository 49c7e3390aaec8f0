"""Types are built by one thread at a time: clients in several threads may start at once."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from pathlib import Path

import accord
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


CONTENT = """
import sys, threading
from accord.messages.content import decode_around_unknown
from accord.messages.prompts import GetPromptResult
from accord.messages.sampling import CreateMessageResult
from accord.messages.tools import CallToolResult

sys.setswitchinterval(1e-6)
ready = threading.Barrier(8)

def use(type_, raw):
    ready.wait()
    decode_around_unknown(raw, type_)

values = [
    (CallToolResult, b'{"content":[{"type":"new"},{"type":"text","text":"t"}]}'),
    (GetPromptResult, b'{"messages":[{"role":"user","content":{"type":"new"}}]}'),
    (CreateMessageResult, b'{"role":"assistant","model":"m","content":{"type":"new"}}'),
]
threads = [threading.Thread(target=use, args=values[number % 3]) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_convert_to_a_new_type_at_once() -> None:
    for _ in range(4):
        subprocess.run([sys.executable, "-c", CONTENT], check=True, timeout=60)


def test_values_are_converted_to_types_that_are_built() -> None:
    source = Path(accord.__file__).parent
    callers = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "check" not in path.parts  # the checker has one thread
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "msgspec.convert"
    }
    scalars = {"schema/form_fields.py", "server/auth/jwt.py", "server/auth/proxy/provider.py"}
    assert callers == scalars | {"locked_cache.py", "schema/convert.py"}  # `make_decoder` builds what that one converts


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
