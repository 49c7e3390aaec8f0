"""The names that can be imported from `accord`, its packages, and the modules that list them."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import accord
import accord.check
import accord.host
import accord.inspector
import accord.testing

LAZY = [accord, accord.check, accord.host, accord.inspector, accord.testing]
MODULES = [f"accord.{name}" for name in ("errors", "http", "middleware", "openapi", "stores", "types")]


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_each_name_loads_and_is_listed(package: ModuleType) -> None:
    homes = package._HOMES
    assert all(getattr(package, name) is getattr(import_module(homes[name]), name) for name in homes)
    assert set(package.__all__) <= set(homes) <= set(dir(package))


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_type_checkers_see_the_same_names(package: ModuleType) -> None:
    tree = ast.parse(Path(str(package.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    imported = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert {alias.asname: node.module for node in imported for alias in node.names} == package._HOMES
    (listed,) = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    assert sorted(ast.literal_eval(listed)) == sorted(package.__all__)


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_an_unknown_name_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_what_is_not_common_has_a_module_that_lists_it() -> None:
    listed = {name: getattr(import_module(module), name) for module in MODULES for name in public(module)}
    for name in set(accord._HOMES) - set(accord.__all__):
        assert listed.get(name) is getattr(accord, name), name


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_all_that_belongs_to_it(module: str) -> None:
    """What `accord` has of the same folders stands in the module as well."""
    homes = {
        getattr(import_module(module), name).__module__
        for name in public(module)
        if inspect.isclass(vars(import_module(module))[name])
    }
    missing = [name for name, home in accord._HOMES.items() if home in homes and name not in public(module)]
    assert not missing


def public(module: str) -> list[str]:
    found = import_module(module)
    return getattr(found, "__all__", None) or [
        name for name, value in vars(found).items() if getattr(value, "__module__", "") == module
    ]
