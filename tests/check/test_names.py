"""What `accord.check` offers is written in three places; they say the same."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from accord import check


def test_each_public_name_loads_and_is_listed() -> None:
    assert sorted(check.__all__) == sorted(check._HOMES)
    assert all(getattr(check, name) is not None for name in check.__all__)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(check.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == {name: f"accord.check.{home}" for name, home in check._HOMES.items()}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        check.nothing  # noqa: B018
