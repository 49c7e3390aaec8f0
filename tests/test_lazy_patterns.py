"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re
from typing import Any

import pytest

from accord.lazy_patterns import lazy_pattern


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The expressions that were compiled."""
    patterns: list[Any] = []
    real = re.compile

    def compile(pattern: Any, flags: int = 0) -> re.Pattern[Any]:
        patterns.append(pattern)
        return real(pattern, flags)

    monkeypatch.setattr(re, "compile", compile)
    return patterns


def test_an_expression_is_compiled_at_its_first_use(compiled: list[Any]) -> None:
    word = lazy_pattern(r"[a-z]+", re.IGNORECASE)
    assert not compiled
    assert word.fullmatch("Word")
    assert compiled == ["[a-z]+"]


def test_a_method_that_was_used_is_found_without_a_search_in_the_cache_of_re(compiled: list[Any]) -> None:
    byte = lazy_pattern(rb".", re.DOTALL)
    assert [byte.sub(b"-", b"\n"), byte.sub(b"+", b"\n")] == [b"-", b"+"]
    assert len(compiled) == 1


def test_it_has_the_attributes_of_an_expression() -> None:
    assert lazy_pattern("a|b").pattern == "a|b"
    with pytest.raises(AttributeError):
        _ = lazy_pattern("a").no_such_attribute  # type: ignore[attr-defined]


def test_an_invalid_expression_raises_at_its_first_use() -> None:
    invalid = lazy_pattern("(")
    with pytest.raises(re.error):
        invalid.match("")
