"""From nothing to a server at work: imports, a program with one tool, the first answer, a thousand tools.

Times by the wall clock are the lowest of the rounds: other programs can only add to them.
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
    """A bare interpreter takes 12 ms of the floor's 31; a program with one tool may add 60 to the 12."""
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
    """From the start of a program to its end, by the wall clock."""
    started = time.perf_counter()
    with Child("-c", program) as child:
        child.process.wait()  # not with a timeout: that looks only now and then, and a timer kills the child anyway
        taken = time.perf_counter() - started
        if child.process.returncode:
            raise RuntimeError(f"a program failed: {program}")
    return taken * 1e3


def first_answer() -> Figure:
    floors, accords = take_turns(ROUNDS, lambda: until_answer("floor.py"), lambda: until_answer("servers.py"))
    return compare("spawn to first answer", "ms", floors, accords, aim=90 / 31, pick=min)


def until_answer(program: str) -> float:
    """From the start of a server to the answer to its first call, after the opening and a list."""
    started = time.perf_counter()
    with Child(str(HERE / program), "calls") as child:
        shake_hands(child, SHAKEN)
        child.ask(_LIST % 1)
        child.ask(call(SHAKEN, "echo", b'{"text":"hello"}') % 2)
        return (time.perf_counter() - started) * 1e3


def thousand_tools() -> list[Figure]:
    """From the start of a server to the answer to its opening; its first list; one more, once it was made."""
    floors, accords = take_turns(7, lambda: start_and_list("floor.py"), lambda: start_and_list("servers.py"))
    names = "1,000 tools: start", "1,000 tools: first list", "1,000 tools: list"
    aims = 120 / 35.4, None, 2 / 0.78
    return [
        compare(name, "ms", [row[at] for row in floors], [row[at] for row in accords], aim, pick=min)
        for at, (name, aim) in enumerate(zip(names, aims, strict=True))
    ]


def start_and_list(program: str) -> tuple[float, float, float]:
    """Milliseconds until the opening is answered, of the first list, of one more."""
    marks = [time.perf_counter()]
    with Child(str(HERE / program), "many") as child:
        shake_hands(child, SHAKEN)
        marks.append(time.perf_counter())
        for number in range(1, _LISTS + 2):
            child.ask(_LIST % number)
            marks.append(time.perf_counter())
    start, first, *more = [(after - before) * 1e3 for before, after in pairwise(marks)]
    return start, first, median(more)
