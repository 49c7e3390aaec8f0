"""Names in the sources: standard terms, each class name once, no function without a name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCES = Path(__file__).parent.parent / "src" / "accord"
MODULES = sorted(SOURCES.rglob("*.py"))

OTHER_LIBRARIES = ("compat",)
"""Folders that offer the classes of another library, under its names."""
TWICE = {"Client", "NoticeStream", "Subscription", "TaskHandle"}
"""Those of `accord` and of `accord.sync`: the same for programs with and without an event loop."""

RETIRED = (
    "tide",
    "weather",
    "lane",
    "doors",
    "patrol",
    "patience",
    "telling",
    "told",
    "said",
    "heard",
    "hearing",
    "spoken",
    "unasked",
    "standing",
    "careful",
    "discreet",
    "misshapen",
    "kept",
    "repertoire",
    "shown",
    "tell",
    "hear",
    "meant",
)
"""Private words for which the field has a term: no class, module, function or test is named by one of them, and no
heading."""
ORDINARY = {"weather", "patience", "shown"}
"""Those that tests use in their ordinary meaning."""
NOT_FOR_MODULES = (
    "asking",
    "behind",
    "corners",
    "dying",
    "ends",
    "extent",
    "figures",
    "leaving",
    "mistakes",
    "mortal",
    "reborn",
    "seen",
    "served",
    "speaking",
    "together",
    "trouble",
    "unasked",
    "visits",
    "way",
    "ways",
    "wayward",
    "wolves",
)
"""Words that a sentence may have and no module of tests: what a reader searches for is the module or the feature."""
RULES = "check/rules/"
"""Functions that are rules of the checker are named by the ids of the rules, which users write in their settings."""


class Definition(NamedTuple):
    """A class or function."""

    name: str
    lineno: int
    is_class: bool


@cache
def definitions(module: Path) -> list[Definition]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        Definition(node.name, node.lineno, isinstance(node, ast.ClassDef))
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, kinds)
    ]


@cache
def words(name: str) -> list[str]:
    """`JSONSchemaReader` and `json_schema_reader` are both json, schema, reader."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def headings(page: str) -> list[str]:
    """The headings of a page, without comments in its snippets."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^#+ (.+)$", text, re.MULTILINE)


def test_headings_are_read_without_comments_in_snippets() -> None:
    assert headings("# One\n```sh\n# a comment\n```\n## two\n") == ["One", "two"]


def test_no_class_name_is_defined_twice() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module in MODULES:
        where = module.relative_to(SOURCES)
        if where.parts[0] not in OTHER_LIBRARIES:
            for node in definitions(module):
                if node.is_class and node.name not in TWICE:
                    places[node.name].append(f"{where}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_every_function_has_a_name() -> None:
    found = [
        f"{module.relative_to(SOURCES)}:{node.lineno}"
        for module in MODULES
        for node in definitions(module)
        if not node.name.strip("_")
    ]
    assert found == []


@pytest.mark.parametrize("retired", RETIRED)
def test_no_name_has_a_retired_word(retired: str) -> None:
    found = [str(module.relative_to(SOURCES)) for module in MODULES if retired in words(module.stem)]
    found += [
        f"{module.relative_to(SOURCES)}:{node.lineno} {node.name}"
        for module in MODULES
        for node in definitions(module)
        if retired in words(node.name) and (node.is_class or RULES not in module.as_posix())
    ]
    assert found == []


@pytest.mark.parametrize("retired", [word for word in RETIRED if word not in ORDINARY])
def test_no_test_and_no_heading_has_a_retired_word(retired: str) -> None:
    root = SOURCES.parent.parent
    found = [
        f"{module.relative_to(root)}:{node.lineno} {node.name}"
        for module in sorted((root / "tests").rglob("test_*.py"))
        for node in definitions(module)
        if node.name.startswith("test_") and retired in words(node.name)
    ]
    for page in sorted([*(root / "docs").rglob("*.md"), *root.glob("*.md")]):
        for heading in headings(page.read_text("utf-8")):
            if retired in words(heading):
                found.append(f"{page.relative_to(root)}: {heading}")
    assert found == []


@pytest.mark.parametrize("retired", [*RETIRED, *NOT_FOR_MODULES])
def test_no_module_of_tests_has_a_retired_word(retired: str) -> None:
    tests = SOURCES.parent.parent / "tests"
    assert [
        str(module.relative_to(tests)) for module in sorted(tests.rglob("*.py")) if retired in words(module.stem)
    ] == []
