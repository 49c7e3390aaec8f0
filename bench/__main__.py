"""Run the benchmarks, print a table, and save the figures.

python -m bench                      all but the long ones, in a few minutes
python -m bench --only stdio         one benchmark, or several
python -m bench --json bench/last.json
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.measure import CORES, Figure

BENCHMARKS = (
    *("start", "stdio", "client", "large", "inside", "state", "asking", "subscriptions", "tasks"),
    *("http_start", "http", "http_client", "http_sessions", "auth", "host"),
)
LONG = ("http_growth", "auth_peers")
"""Benchmarks that run only when they are named."""


class Report(msgspec.Struct):
    """The saved figures of a run."""

    date: str
    python: str
    machine: str
    figures: dict[str, list[Figure]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="accord against the least that does the job")
    names = (*BENCHMARKS, *LONG)
    parser.add_argument("--only", action="append", choices=names, help="run this one (may be given again)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures; others in the file stay")
    options = parser.parse_args()
    if sys.platform != "linux":
        sys.exit("the benchmarks read clocks that only Linux has")
    figures = {}
    print(row("", "floor", "accord", "unit", "ratio", "(rounds)", "aim", ""))
    for name in options.only or BENCHMARKS:
        figures[name] = run_benchmark(name)
        print(f"\n{name}", *map(line, figures[name]), sep="\n", flush=True)
    if options.json is not None:
        save(options.json, figures)


def run_benchmark(name: str) -> list[Figure]:
    """Return the figures of one benchmark, which may pin this process to a core."""
    cores = os.sched_getaffinity(0)
    try:
        figures: list[Figure] = importlib.import_module(f"bench.{name}").run()
    finally:
        os.sched_setaffinity(0, cores)
    return figures


def line(figure: Figure) -> str:
    aim = "" if figure.aim is None else f"{figure.aim:.2f}"
    spread = f"({figure.low:.2f}-{figure.high:.2f})"
    numbers = f"{figure.floor:.2f}", f"{figure.accord:.2f}", figure.unit, f"{figure.ratio:.2f}"
    return row(f"  {figure.name}", *numbers, spread, aim, figure.state)


def row(name: str, floor: str, accord: str, unit: str, ratio: str, spread: str, aim: str, state: str) -> str:
    return f"{name:<50} {floor:>8} {accord:>8} {unit:<8} {ratio:>6} {spread:>15} {aim:>6} {state}".rstrip()


def save(file: Path, figures: dict[str, list[Figure]]) -> None:
    saved = msgspec.json.decode(file.read_bytes(), type=Report).figures if file.exists() else {}
    machine = f"{platform.system()} {platform.machine()}, {len(CORES)} cores"
    report = Report(f"{datetime.now(UTC):%Y-%m-%d}", platform.python_version(), machine, {**saved, **figures})
    file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")


if __name__ == "__main__":
    main()
