"""The measures notice what they are there for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.measure import assert_linear, costs_at_most, slowness


def test_linear_work_passes() -> None:
    assert_linear(lambda size: sum(range(size)), 20_000)


def test_work_that_grows_with_the_square_is_noticed() -> None:
    with pytest.raises(AssertionError, match="for 10 times the size"):
        assert_linear(lambda size: [None for _ in range(size) for _ in range(size)], 100)


def test_work_that_takes_long_is_noticed() -> None:
    with pytest.raises(AssertionError, match="where a unit is"), costs_at_most(0.1):
        sum(range(1_000_000))
    with costs_at_most(50):
        sum(range(100_000))


def test_slowness_is_within_its_bounds() -> None:
    assert 1 <= slowness() <= 5


# --- no test depends on the speed of the machine -----------------------------------------------------------------

CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time"}


def is_elapsed(value: ast.expr, measured: set[str]) -> bool:
    """Return whether a value is the difference of a clock and an earlier time, or a name of one."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub):
        calls = [node.func for node in ast.walk(value) if isinstance(node, ast.Call) and not node.args]
        return not CLOCKS.isdisjoint(getattr(func, "attr", getattr(func, "id", "")) for func in calls)
    return isinstance(value, ast.Name) and value.id in measured


def is_fixed(value: ast.expr) -> bool:
    return all(
        isinstance(node, ast.Constant | ast.BinOp | ast.operator | ast.expr_context)
        or (isinstance(node, ast.Name) and node.id.isupper())
        for node in ast.walk(value)
    )


def fixed_bounds_of_times(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of assertions that a measured time is less than a number of seconds."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        assigned = [
            node for node in ast.walk(function) if isinstance(node, ast.Assign) and is_elapsed(node.value, set())
        ]
        measured = {target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)}
        for statement in (node for node in ast.walk(function) if isinstance(node, ast.Assert)):
            for compared in (node for node in ast.walk(statement.test) if isinstance(node, ast.Compare)):
                sides = [compared.left, *compared.comparators]
                for left, operator, right in zip(sides, compared.ops, sides[1:], strict=False):
                    is_less = isinstance(operator, ast.Lt | ast.LtE) and is_elapsed(left, measured) and is_fixed(right)
                    is_more = isinstance(operator, ast.Gt | ast.GtE) and is_elapsed(right, measured) and is_fixed(left)
                    if is_less or is_more:
                        yield compared.lineno


def test_no_test_fails_because_the_machine_is_slow() -> None:
    """Use `costs_at_most`, `assert_linear`, `slowness()` or `tests/clock.py`, or count operations."""
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(Path(__file__).parent.rglob("*.py"))}
    found = [
        f"{file.name}:{line}"
        for file, text in texts.items()
        if any(f"{clock}() -" in text for clock in CLOCKS)
        for line in fixed_bounds_of_times(ast.parse(text))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("assert time.monotonic() - begun < 5", True),
        ("took = perf_counter() - begun\n    assert 0.1 < took <= 2 * SECONDS", True),
        ("assert 1 > time.process_time() - begun", True),
        ("assert time.monotonic() - begun > 5", False),
        ("assert time.monotonic() - begun < 5 * slowness()", False),
        ("assert took < 5 * floor", False),
        ("assert time.monotonic() < deadline", False),
    ],
)
def test_a_time_with_a_fixed_bound_is_found(text: str, is_found: bool) -> None:
    assert [*fixed_bounds_of_times(ast.parse(f"def f():\n    {text}\n"))] == [text.count("\n") + 2] * is_found
