"""Names of tools and prompts: which can be listed and called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accord.errors import DeclarationError
from accord.messages.bounds import NAME_LENGTH
from accord.server.parameters import location

_LAMBDA = "<lambda>"


def check_name(kind: str, name: Any, function: Callable[..., Any] | None = None) -> None:
    """Raise `DeclarationError` for a name that no client could use. `function` is what the name is given to."""
    problem = _problem(name)
    if problem is None:
        return
    where = "" if function is None else f" ({location(function)})"
    raise DeclarationError(f'the {kind}{where} {problem}: give it one, as in name="total"')


def _problem(name: Any) -> str | None:
    if not isinstance(name, str):
        return f"has the name {name!r:.100}, which is no string"
    if not name:
        return "has an empty name"
    if name == _LAMBDA:
        return "is a lambda, which has no name of its own"
    if len(name) > NAME_LENGTH:
        return f"has a name of {len(name):,} characters, which is longer than {NAME_LENGTH:,}"
    try:
        name.encode()
    except UnicodeEncodeError:
        return f"has the name {name!a:.100}, which is not valid Unicode"
    return None
