"""A result with 10 MB of text: CPU time of the server, bytes on the wire, peak memory."""

from __future__ import annotations

from bench.measure import HERE, Child, Figure, compare, take_turns
from bench.wire import STATELESS, call, shake_hands

SIZE = 10_000_000
ROUNDS = 5
CALLS = 3

CPU_FLOOR = 19.0
"""The lowest measured milliseconds of this floor; the aim was set with a floor that copied more."""


def run() -> list[Figure]:
    floors, accords = take_turns(ROUNDS, lambda: of_server("floor.py"), lambda: of_server("servers.py"))
    rows = [
        ("10 MB of text", "ms CPU", 40 / CPU_FLOOR),
        ("10 MB of text: bytes on the wire", "per byte", 1.05),
        # Three times the size, where the floor stores it twice: as text, and as the line that contains it.
        ("10 MB of text: memory", "per byte", 3 / 2),
    ]
    return [
        compare(name, unit, [each[at] for each in floors], [each[at] for each in accords], aim)
        for at, (name, unit, aim) in enumerate(rows)
    ]


def of_server(program: str) -> tuple[float, float, float]:
    """Return the milliseconds of CPU time per call, and the bytes sent and the additional memory per byte of text."""
    request = call(STATELESS, "large", b'{"size":%d}')
    with Child(str(HERE / program), "large") as child:
        shake_hands(child, STATELESS)
        child.ask(request % (0, 100))
        cpu_before, idle, received = child.cpu, child.memory("VmRSS"), child.received
        for number in range(1, CALLS + 1):
            child.ask(request % (number, SIZE))
        cpu = (child.cpu - cpu_before) * 1e3 / CALLS
        sent = (child.received - received) / CALLS / SIZE
        return cpu, sent, (child.memory("VmHWM") - idle) / SIZE
