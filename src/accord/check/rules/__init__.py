"""Every rule, in the order in which they are tried and reported."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module

from accord.check.rule import Rule

AREAS: tuple[str, ...] = (
    "shapes",
)
"""Modules of this folder that have rules about servers."""

CLIENT_AREAS: tuple[str, ...] = (
    "client_envelope",
)
"""The same about clients."""


@cache
def server_rules() -> tuple[Rule, ...]:
    """Those about servers."""
    return tuple(_rules(AREAS))


@cache
def client_rules() -> tuple[Rule, ...]:
    """Those about clients."""
    return tuple(_rules(CLIENT_AREAS))


def _rules(areas: tuple[str, ...]) -> Iterator[Rule]:
    for area in areas:
        module = import_module(f"{__name__}.{area}")
        yield from (value for value in vars(module).values() if isinstance(value, Rule) and value.cases)
