"""Regular expressions that are compiled when they are first used.

Most expressions of accord are for errors, redaction and rare input. To compile them all takes a third of the start of a
server.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class LazyPattern:
    """An expression with the attributes of its `re.Pattern`; the first access to each of them looks it up there."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._pattern, self._flags), name)
        setattr(self, name, value)
        return value


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return an expression that is compiled on first use. Its first use raises `re.error` if it is invalid."""
    return cast("re.Pattern[AnyStr]", LazyPattern(pattern, flags))
