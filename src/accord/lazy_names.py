"""Names of a package that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # that of `typing`, which takes nine tenths of the time of `import accord`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def homes_of(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name, from the names of each module, separated by spaces."""
    return {name: module for module, names in modules.items() for name in names.split()}


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names live in other modules."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = vars(sys.modules[package])[name] = getattr(__import__(homes[name], fromlist=[name]), name)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names
