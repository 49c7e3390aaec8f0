"""Look-around that reads ahead in a repetition takes a power of the length of a text, which is known before."""

from __future__ import annotations

from typing import Any

import pytest

from accord.errors import Mismatch
from accord.schema.pattern_degree import captures_ahead, degree
from accord.schema.validate import compile

from tests.measure import costs_at_most


@pytest.mark.parametrize(
    ("pattern", "power"),
    [
        (r"^[a-z]*$", 1),
        (r"^(?=.*\d)(?=.*[a-z])(?!.*--)[a-z0-9-]+$", 1),
        (r"(?m)^(?=.*x).*$", 1),
        (r"^(?:(?!--)[a-z-])+$", 1),
        (r"^(?:(?!</b>)[\s\S])*$", 1),
        (r"^(?=.*\p{Lu})(?<name>[^x]+)\k<name>$", 1),
        (r"^(?:(?=a*)a)?z", 1),
        (r"^(?:(?=a*)a)*z", 2),
        (r"^(?:(?=a*)a)+?z", 2),
        (r"^(?:(?![ab]*c)a){1,100000}z", 2),
        (r"^(?:(?=[ab]{0,100}c|a)a)*z", 2),
        (r"^(?:(?<=^a*)a)*z", 2),
        (r"^(a*)(?:\1|b)*z", 2),
        (r"^(?<x>a*)(?:\k<x>|b)*z", 2),
        (r"^(?:x|(?:y|(?:(?=a*)a)))*z", 2),
        (r"^(?:(?=(?:(?=a*)a)*)a)*z", 3),
        (r"^(?:(?=\cA*)a)*z", 2),
        (r"^(?:(?=a)|(?=b)){1,90000}z", 9),
        (r"^(?:(?=a)|(?=b)){90000,}z", 9),
        (r"(?:" * 20 + r"(?=a*)a" + r")*" * 20, 9),
    ],
)
def test_the_degree_counts_repetitions_around_what_reads_ahead(pattern: str, power: int) -> None:
    assert degree(pattern) == power


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": r"^(?:(?=a*)a)*z"}, "a" * 80_000),
        ({"pattern": r"^(?:(?=[ab]*c|a)a)*z"}, "a" * 80_000),
        ({"pattern": r"^(?:(?<=^a*)a)*z"}, "a" * 80_000),
        ({"pattern": r"^(?:(?=(?:(?=a*)a)*)a)*z"}, "a" * 2_000),
        ({"items": {"pattern": r"^(?:(?=a*)a)*z"}}, ["a" * 8_000] * 100),
        ({"propertyNames": {"pattern": r"^(?:(?=a*)a)*z"}}, {"a" * 80_000: 1}),
    ],
)
def test_a_text_that_would_take_a_power_of_its_length_is_refused(schema: Any, value: Any) -> None:
    with costs_at_most(50), pytest.raises(Mismatch, match="too much text for the patterns of this schema"):
        compile(schema).validate(value)


def test_short_texts_fit_a_pattern_that_reads_ahead_at_each_character() -> None:
    compile({"items": {"pattern": r"^(?:(?!.*--)[a-z-])+$"}}).validate(["a-b-c" * 8] * 50)
    with pytest.raises(Mismatch, match="does not match"):
        compile({"pattern": r"^(?:(?!.*--)[a-z-])+$"}).validate("a--b")


@pytest.mark.parametrize(
    ("pattern", "captures"),
    [
        (r"(?!(?:(.*)){15})z", True),
        (r"^(?=(?<name>a))x", True),
        (r"(?:(?=\cA(b)))x", True),
        (r"^(?=(?:a|b))(c)$", False),
        (r"^(a)\1$", False),
    ],
)
def test_groups_in_look_around_are_known(pattern: str, captures: bool) -> None:
    assert captures_ahead(pattern) is captures
