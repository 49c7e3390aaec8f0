"""What operations are called: by their `operationId`, else by method and path, in characters that names may have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from accord.errors import DeclarationError
from accord.server.openapi.operation import Route

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 128
""" "Tool names SHOULD be between 1 and 128 characters in length" (Tools, Tool Names)."""


class OperationNames:
    """Gives each operation a name that no other has. `chosen` are names by `operationId`."""

    def __init__(self, chosen: Mapping[str, str], prefix: str | None) -> None:
        self._chosen = chosen
        self._prefix = f"{_plain(prefix)}_" if prefix else ""
        self._used: set[str] = set()
        self._numbers: dict[str, int] = {}

    def name_for(self, route: Route) -> str:
        """The name of an operation. Raises `DeclarationError` for one that was chosen and cannot be a name."""
        chosen = self._chosen.get(route.id or "")
        if chosen is not None and (chosen != _plain(chosen) or not chosen):
            raise DeclarationError(f"{chosen!r:.100} is no name: letters, digits, `_`, `-` and `.`")
        wanted = self._prefix + (
            chosen or _plain(_short(route)) or _plain(f"{route.method.lower()}_{route.path.strip('/')}")
        )
        name = plain = wanted[:_LONGEST]
        number = self._numbers.get(plain, 1)
        while name in self._used:
            number += 1
            name = f"{wanted[: _LONGEST - len(str(number)) - 1]}_{number}"
        self._numbers[plain] = number
        self._used.add(name)
        return name


def _short(route: Route) -> str:
    """The `operationId`, without the path and the method that FastAPI appends to the name of a function."""
    if route.id is None:
        return ""
    appended = re.sub(r"\W", "_", route.path) + f"_{route.method.lower()}"
    return route.id.removesuffix(appended) or route.id


def _plain(text: str) -> str:
    return _NOT_IN_NAMES.sub("_", text).strip("_")
