"""The start of a server: imports, a program with one tool, the first response, a thousand tools.

Of wall-clock times, the lowest of the rounds counts, because other programs can only add to them.
"""

from __future__ import annotations

import time
from itertools import pairwise
from statistics import median

from bench.measure import HERE, Child, Figure, compare, take_turns
from bench.wire import SHAKEN, call, request, shake_hands

ROUNDS = 11

BARE = "pass"
FLOOR = "import msgspec"
IMPORT = "from accord import Server"
ONE_TOOL = """
from accord import Server

server = Server("one")

@server.tool
async def echo(text: str) -> str:
    '''Say it again.'''
    return text
"""

_LIST = request(SHAKEN, "tools/list", b"")
_LISTS = 20


def run() -> list[Figure]:
    return [*programs(), first_answer(), *thousand_tools()]


def programs() -> list[Figure]:
    """Measure programs: a bare interpreter takes 12 of the floor's 31 ms; a program with one tool may add 60 ms."""
    bare, floors, imports, tools = take_turns(
        ROUNDS,
        *(lambda program=program: milliseconds(program) for program in (BARE, FLOOR, IMPORT, ONE_TOOL)),
    )
    return [
        compare("bare interpreter", "ms", floors, bare, pick=min),
        compare("import", "ms", floors, imports, pick=min),
        compare("program with one tool", "ms", floors, tools, aim=(12 + 60) / 31, pick=min),
    ]


def milliseconds(program: str) -> float:
    """Return the wall-clock time from the start of a program to its end in milliseconds."""
    started = time.perf_counter()
    with Child("-c", program) as child:
        child.process.wait()  # without a timeout, which polls; a timer kills the child anyway
        elapsed = time.perf_counter() - started
        if child.process.returncode:
            raise RuntimeError(f"a program failed: {program}")
    return elapsed * 1e3


def first_answer() -> Figure:
    floors, accords = take_turns(ROUNDS, lambda: until_answer("floor.py"), lambda: until_answer("servers.py"))
    return compare("spawn to first answer", "ms", floors, accords, aim=90 / 31, pick=min)


def until_answer(program: str) -> float:
    """Return the milliseconds from the start of a server to its first call's response, after a handshake and a list."""
    started = time.perf_counter()
    with Child(str(HERE / program), "calls") as child:
        shake_hands(child, SHAKEN)
        child.ask(_LIST % 1)
        child.ask(call(SHAKEN, "echo", b'{"text":"hello"}') % 2)
        return (time.perf_counter() - started) * 1e3


def thousand_tools() -> list[Figure]:
    """Measure the time from the start of a server to its handshake; its first list; the next lists."""
    floors, accords = take_turns(7, lambda: start_and_list("floor.py"), lambda: start_and_list("servers.py"))
    names = "1,000 tools: start", "1,000 tools: first list", "1,000 tools: list"
    aims = 120 / 35.4, None, 2 / 0.78
    return [
        compare(name, "ms", [row[at] for row in floors], [row[at] for row in accords], aim, pick=min)
        for at, (name, aim) in enumerate(zip(names, aims, strict=True))
    ]


def start_and_list(program: str) -> tuple[float, float, float]:
    """Return the milliseconds until the handshake, of the first list, and of a later list."""
    marks = [time.perf_counter()]
    with Child(str(HERE / program), "many") as child:
        shake_hands(child, SHAKEN)
        marks.append(time.perf_counter())
        for number in range(1, _LISTS + 2):
            child.ask(_LIST % number)
            marks.append(time.perf_counter())
    start, first, *more = [(after - before) * 1e3 for before, after in pairwise(marks)]
    return start, first, median(more)
