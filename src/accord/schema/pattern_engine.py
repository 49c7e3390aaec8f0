"""The engines of patterns: one in linear time, and one for patterns with look-around or back-references, which
backtracks."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsonschema_rs import PatternOptionsType

PATTERN_BYTES = 10 << 20
"""Limit of the size of the compiled patterns of a schema: 50 ms. The engines apply it to each part of a pattern that
they compile alone."""

_SPECIAL = re.compile(r"\(\?(?!:)|\\[^dDwWsSnrtfv.\-/()\[\]{}*+?|^$\\]|[*+?}]\+")
"""What only one of the engines may know."""


@lru_cache(1_000)
def goes_back(pattern: str) -> bool:
    """Return whether a pattern needs a backtracking engine (look-around, back-references)."""
    import jsonschema_rs

    if _SPECIAL.search(pattern) is None:
        return False
    return not _compiles(pattern, jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES))


def fits(pattern: str, size: int, backtracks: bool | None = None) -> bool:
    """Return whether each part of a pattern that is compiled alone has at most `size` bytes: for the engine that
    backtracks or for the other one, by default the one that the pattern needs.
    """
    import jsonschema_rs

    backtracks = goes_back(pattern) if backtracks is None else backtracks
    engine = jsonschema_rs.FancyRegexOptions if backtracks else jsonschema_rs.RegexOptions
    return _compiles(pattern, engine(size_limit=size))


def _compiles(pattern: str, options: PatternOptionsType) -> bool:
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for({"pattern": pattern}, offline=True, pattern_options=options)
    except ValueError:
        return False
    return True
