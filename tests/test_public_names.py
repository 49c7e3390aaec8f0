"""What `import accord` offers is written in three places; they say the same."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import accord


def test_each_public_name_loads_and_is_listed() -> None:
    assert sorted(accord.__all__) == sorted(accord._HOMES)
    for name in accord.__all__:
        assert getattr(accord, name) is not None
    assert set(accord.__all__) <= set(dir(accord))


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(accord.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == accord._HOMES


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        accord.nothing  # noqa: B018
