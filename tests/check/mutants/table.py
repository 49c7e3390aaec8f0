"""The table of mutants: wrong servers, each a right one with one change, and the rule that must catch it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from accord.messages.revision import LATEST

from tests.check.mutants.change import Change


@dataclass(frozen=True)
class Mutant:
    """One wrong server. `server` makes the right one; None is the one of `correct_server.py`. Over stdio it is
    `program.py`, and the name of the change is its argument.
    """

    rule: str
    name: str
    make: Callable[[Change], None]
    revision: str
    over: Literal["memory", "http", "sse", "stdio"]
    calls: bool
    server: Callable[..., Any] | None
    cases: int = 0
    """How many calls are generated."""
    tokens: tuple[str, ...] = ()
    """Those of the principals."""
    trusts_checker: bool = False
    """Whether the checker issues the tokens: `server` gets the URL of the issuer."""

    @property
    def id(self) -> str:
        return f"{self.rule}: {self.name}"


MUTANTS: list[Mutant] = []


def faulty(rule: str, fault: str, revision: str = "2025-11-25") -> None:
    """Add a process that has this fault, of those that `program.py` knows."""
    MUTANTS.append(Mutant(rule, fault, lambda change: None, revision, "stdio", False, None))


def mutant(
    rule: str,
    *,
    revision: str = LATEST,
    over: Literal["memory", "http", "sse", "stdio"] = "memory",
    calls: bool = True,
    server: Callable[..., Any] | None = None,
    cases: int = 0,
    tokens: tuple[str, ...] = (),
    trusts_checker: bool = False,
) -> Callable[[Callable[[Change], None]], Callable[[Change], None]]:
    """Add a wrong server: the function makes the change. Its name says what is wrong. Tools may be called (`calls`)."""

    def add(make: Callable[[Change], None]) -> Callable[[Change], None]:
        name = make.__name__.replace("_", " ")
        MUTANTS.append(Mutant(rule, name, make, revision, over, calls, server, cases, tokens, trusts_checker))
        return make

    return add
