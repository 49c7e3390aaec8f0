"""Environment variables in the texts of a configuration: `${NAME}`, `${NAME:-default}`, `${env:NAME}`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from accord.errors import TargetError

VARIABLE: re.Pattern[str] = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")


def expand(value: Any, path: str) -> Any:
    """Return the value at `path` of an entry with its environment variables replaced. Raises `TargetError`."""
    if isinstance(value, str):
        return VARIABLE.sub(lambda match: _variable(match, path), value)
    if isinstance(value, Mapping):
        return {key: expand(item, f"{path}.{key}") for key, item in value.items()}
    return [expand(item, path) for item in value] if isinstance(value, list | tuple) else value


def _variable(match: re.Match[str], path: str) -> str:
    name, default = match.groups()
    value = os.environ.get(name)
    if value or (value is not None and default is None):
        return value
    if default is None:
        raise TargetError(
            f"{path}: the environment variable {name} is not set; set it, or write ${{{name}:-a default}}"
        )
    return default  # as in a shell, also if the variable is empty
