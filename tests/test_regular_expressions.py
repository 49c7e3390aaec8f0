"""Each regular expression of the package takes linear time, whatever the text.

The texts are made from the expression itself: what leads to each of its repeats, then many of what the repeat takes,
then something that does not fit. A new expression is covered by itself.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from re import (
    _constants as ops,  # type: ignore[attr-defined]
    _parser as parser,  # type: ignore[attr-defined]
)
from types import BuiltinMethodType
from typing import Any

import pytest

import accord
from accord.lazy_patterns import LazyPattern
from accord.redaction import forms

from tests.measure import assert_linear, processor_seconds

SOURCE = Path(accord.__file__).parent
METHODS = ("match", "fullmatch", "search", "finditer")
ALIKE = {"sub": "finditer", "subn": "finditer", "split": "finditer", "findall": "finditer"}
CALLED = "|".join((*METHODS, *ALIKE))

LOCAL = {
    "accord.cli.values._WORD": "a word of the command line",
    "accord.client.target._CONFIG": "a name of a file that the program gives",
    "accord.cli.settings._HEADER": "a word of the command line",
}
"""Expressions that never see a text of a peer."""

LOCAL_MODULES = ("accord.server.declare.docstring", "accord.docstring:", "accord.migrate.", "accord.compat.")
"""They read the program itself."""

ENDS = ("", "\0")
SAMPLES = "a1A \t\n\"'\\-._/:%{}[]<>@=;,é"
SIZE = 500
CLASSES = (ops.IN, ops.LITERAL, ops.NOT_LITERAL, ops.ANY)


# Expressions, and how they are used


@cache
def sources() -> dict[Path, str]:
    return {path: path.read_text() for path in SOURCE.rglob("*.py")}


def expressions() -> Iterator[tuple[str, re.Pattern[Any], str | None]]:
    """Each name with an expression under it, of a module, or in a tuple, list or dict of one; and the method that it is
    there for, if it is for one.
    """
    for found in pkgutil.walk_packages([str(SOURCE)], "accord."):
        if not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            for name, value in list(vars(module).items()):
                yield from ((f"{found.name}.{name}", *each) for each in inside(value, 3))
    for _, marked in forms._MARKED:
        yield "accord.redaction.forms._MARKED", re.compile(marked), "sub"
    for path, text in sources().items():
        for node in ast.walk(ast.parse(text)) if re.search(rf"\bre\s*\.\s*(?:{CALLED})\b", text) else ():
            match node:
                case ast.Call(ast.Attribute(ast.Name("re"), method), [ast.Constant(pattern), *_]):
                    if method in {*METHODS, *ALIKE}:
                        yield f"accord.{path.stem}:{node.lineno}", re.compile(pattern), method


def inside(value: Any, depth: int) -> Iterator[tuple[re.Pattern[Any], str | None]]:
    if isinstance(value, re.Pattern):
        yield value, None
    elif isinstance(value, LazyPattern):
        yield re.compile(value.pattern, value.flags), None
    elif type(value) is BuiltinMethodType and isinstance(value.__self__, re.Pattern):
        yield value.__self__, value.__name__
    elif depth and type(value) in (tuple, list, dict):
        for each in value.values() if type(value) is dict else value:
            yield from inside(each, depth - 1)


def methods(name: str) -> set[str]:
    """How the code uses an expression; as a search, where that cannot be seen."""
    return {ALIKE.get(each, each) for each in calls()[name.rpartition(".")[2]]} or {"search"}


@cache
def calls() -> dict[str, set[str]]:
    """The methods of expressions that the code calls, by what it calls them on."""
    found = defaultdict[str, set[str]](set)
    for text in sources().values():
        for name, method in re.findall(rf"\b(\w+)(?=(?:\[\w+\])?\.({CALLED})\b)", text):
            found[name].add(method)
    return found


# Hostile texts


def attacks(pattern: re.Pattern[Any]) -> set[tuple[str, str, str]]:
    """How texts begin, what is repeated in them, and how they end."""
    written = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(written, pattern.flags)
    whole = sample(tree)
    pairs = {pair for before, pump in pumps(tree, "") for pair in ((before, pump), ("", before + pump))}
    pairs |= {("", whole), ("", whole[:-1])}
    marks = {*'a1A "\\\n', *(char for char in written if not char.isalnum())}
    pairs |= {(before, mark) for mark in marks for before in ("", whole)}
    return {(before, pump, end) for before, pump in pairs if pump for end in ENDS}


def pumps(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """For each repeat without a small bound: what leads to it, and what it takes."""
    for op, value in tree:
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            if value[1] is ops.MAXREPEAT or value[1] > 10:
                yield from ((before, taken) for taken in taken_by(value[2]))
            yield from pumps(value[2], before)
        for inner in branches(op, value):
            yield from pumps(inner, before)
        before += example(op, value)


def branches(op: Any, value: Any) -> list[Any]:
    if op is ops.BRANCH:
        return list(value[1])
    if op in (ops.SUBPATTERN, ops.ASSERT, ops.ASSERT_NOT):
        return [value[-1]]
    return [value] if op is ops.ATOMIC_GROUP else []


def taken_by(tree: Any) -> set[str]:
    """Texts that a repeat takes at once: with each kind of character at each place, and of each branch."""
    nodes = list(tree)
    found = {
        sample(nodes[:at]) + char + sample(nodes[at + 1 :])
        for at, (op, value) in enumerate(nodes)
        if op in CLASSES
        for char in characters(op, value)
    }
    for op, value in nodes:
        repeated = [value[2]] if op in (ops.MAX_REPEAT, ops.MIN_REPEAT) else branches(op, value)
        found |= {each for inner in repeated for each in taken_by(inner)}
    return {sample(tree), *found}


def sample(tree: Any) -> str:
    """A text that the expression may match."""
    return "".join(example(op, value) for op, value in tree)


def example(op: Any, value: Any) -> str:
    if op in CLASSES:
        return characters(op, value)[0]
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return sample(value[2]) * max(value[0], 1)
    inner = [] if op in (ops.ASSERT, ops.ASSERT_NOT) else branches(op, value)
    return sample(inner[0]) if inner else ""


def characters(op: Any, value: Any) -> list[str]:
    """Some of the characters that a class takes, each of another kind."""
    if op is ops.LITERAL:
        return [chr(value)]
    if op is ops.IN:
        denied = any(kind is ops.NEGATE for kind, _ in value)
        accepts = lambda char: any(takes(kind, each, char) for kind, each in value) != denied  # noqa: E731
    else:
        accepts = lambda char: op is ops.ANY or ord(char) != value  # noqa: E731
    rest = (chr(each[0] if kind is ops.RANGE else each) for kind, each in value) if op is ops.IN else ()
    return [char for char in SAMPLES if accepts(char)] or [next(iter(rest), "a")]


CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def takes(kind: Any, value: Any, char: str) -> bool:
    if kind is ops.CATEGORY:
        _, denied, name = str(value).rpartition("NOT_")
        return bool(re.match(CATEGORIES[name.removeprefix("CATEGORY_")], char)) != bool(denied)
    if kind is ops.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    return bool(kind is ops.LITERAL and ord(char) == value)


# Time


def slow(pattern: re.Pattern[Any], method: str, attack: tuple[str, str, str]) -> bool:
    """Whether a text may take more than linear time; another look at it has to show that it does."""

    def seconds(size: int) -> float:
        return processor_seconds(partial(work, pattern, method, attack, size))

    if any(seconds(size) > 0.005 for size in (16, 24, 32, 40, 48)):
        return True
    return (long := seconds(4 * SIZE)) > 0.001 and long > 7 * seconds(SIZE)


def text(pattern: re.Pattern[Any], attack: tuple[str, str, str], size: int) -> Any:
    before, pump, end = attack
    made = before + pump * (size // len(pump) + 1) + end
    return made if isinstance(pattern.pattern, str) else made.encode("latin-1", "replace")


def work(pattern: re.Pattern[Any], method: str, attack: tuple[str, str, str], size: int) -> None:
    use(pattern, method, text(pattern, attack, size))


def use(pattern: re.Pattern[Any], method: str, text: Any) -> None:
    if method == "finditer":
        for _ in pattern.finditer(text):
            pass
    else:
        getattr(pattern, method)(text)


def all_uses() -> list[tuple[str, re.Pattern[Any], str]]:
    uses = {
        (pattern.pattern, pattern.flags, method): (name, pattern, method)
        for name, pattern, bound in sorted(expressions(), key=lambda each: (each[0], each[2] or ""), reverse=True)
        if name not in LOCAL and not name.startswith(LOCAL_MODULES)
        for method in (sorted({ALIKE.get(bound, bound)} if bound else methods(name)))
    }
    return sorted(uses.values(), key=lambda each: (each[0], each[2]))


def test_each_expression_takes_linear_time() -> None:
    """One test: to find the expressions takes longer than to collect the tests of a folder."""
    uses = all_uses()
    assert len(uses) > 200
    wrong = []
    for name, pattern, method in uses:
        for attack in sorted(attacks(pattern)):
            if slow(pattern, method, attack):
                try:
                    assert_linear(partial(work, pattern, method, attack), SIZE, 10)
                except AssertionError as exc:
                    wrong.append(f"{name}-{method}: a text that begins, goes on and ends with {attack}: {exc}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"^\s+at \w+", "search"),
        (r'"(?:[^"\\]|\\.)*"', "finditer"),
        (r"(a+)+$", "match"),
        (r"[a-z]*:", "search"),
        (r"(?:a|b|ab)*c", "match"),
        (rb"\s+$", "search"),
        (r"\w+\s*\w+\s*!", "match"),
    ],
)
def test_a_slow_expression_is_seen(pattern: Any, method: str) -> None:
    compiled = re.compile(pattern, re.M)
    assert any(slow(compiled, method, attack) for attack in sorted(attacks(compiled)))
