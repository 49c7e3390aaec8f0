"""What the patterns of a schema take to compile: known before, and not more than the engine takes for one."""

from __future__ import annotations

import pytest

from accord.errors import Mismatch, SchemaError
from accord.schema.pattern_engine import PATTERN_BYTES, fits
from accord.schema.pattern_size import pattern_size
from accord.schema.validate import compile

from tests.measure import costs_at_most

SETS = [
    *(
        "a",
        "é",
        "[ab]",
        "[a-z0-9_]",
        r"\w",
        r"\d",
        r"\s",
        r"\S",
        r"\W",
        r"\D",
        ".",
        "[^a]",
        "[à-ÿ]",
        r"[\u0100-\uffff]",
    ),
    *(r"\p{L}", r"\p{N}", r"\P{L}", r"[\p{L}\p{N} .,'-]", r"[^\p{L}]", r"\p{Script=Greek}", r"\p{ID_Continue}"),
    *("(?i)a", "(?i)k", r"(?i)\p{L}", "(?i)[à-ÿ]", "(?i)[^k]", "(?s).", r"[\s\S]", r"[^\s]", r"[\w\s-]"),
    *("(a)", "(?:a|b)", "(?:a|bc)", "(?:a?)", "(?:ab)?", "(?:a{3}){3}", "(?:(?:a*)*)", "(?:.{0,9}b)", r"(?:\d{2,}x)"),
    "[" + "".join(chr(0x800 + 67 * number) for number in range(200)) + "]",
    "(?i)[" + "".join(chr(0x400 + 2 * number) for number in range(200)) + "]",
]
"""Sets of characters, and what consists of them."""


@pytest.mark.parametrize("part", SETS)
def test_a_pattern_is_not_larger_than_its_estimate(part: str) -> None:
    repeated = f"^(?:{part}){{100}}$"
    assert fits(repeated, pattern_size(repeated).bytes)
    if not part.startswith("(?i)"):  # the flag would apply to a part of the pattern that Python does not know
        assert fits(f"(?!x){repeated}", pattern_size(f"(?!x){repeated}", backtracks=True).bytes)


@pytest.mark.parametrize("pattern", [r"^(?=.{9})(?i)(?!b|c).{9}$", r"\cA{300}", r"(?:\cA.{9}){90}"])
def test_the_estimate_of_a_pattern_that_python_cannot_parse_is_that_of_the_engine(pattern: str) -> None:
    assert fits(pattern, pattern_size(pattern).bytes)


HONEST = [
    (r"^(?=.{1,253}$)(?:(?!-)[A-Za-z0-9-]{1,63}(?<!-)\.)+[A-Za-z]{2,63}$", "www.example.com", "-www.example.com"),
    (r"^(?=.{1,255}$)(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*\.?$", "a.example", "a..example"),
    (r"^(?=.{1,254}$)(?=.{1,64}@)[\w.+-]+@[\w-]+(\.[\w-]+)+$", "ann@example.com", "ann@" + "a" * 300 + ".com"),
    (r"^.{1,255}$", "a" * 255, "a" * 256),
    (r"^.{1,1000}$", "é" * 1_000, "é" * 1_001),
    (r"^.{0,4096}$", "é" * 4_096, "é" * 4_097),
    (r"^[\s\S]{1,2000}$", "\n" * 2_000, "\n" * 2_001),
    (r"^\S{1,128}$", "a" * 128, "a b"),
    (r"^[^/]{1,255}$", "a" * 255, "a/b"),
    (r"^[\w\s-]{1,500}$", "a b-c" * 100, "a.b"),
    (r"^\p{L}{1,100}$", "é" * 100, "é1"),
    (r"^[\p{L}\p{N} .,'-]{1,200}$", "Anna-Lena O'Hara", "Anna_Lena"),
    (r"^(?!\s)(?!.*\s$).{1,1000}$", "a" * 1_000, " a"),
    (r"^(?!.*[\\/:*?]).{1,255}$", "file.txt", "a/b"),
]
"""Common patterns, with a text that matches and one that does not."""


@pytest.mark.parametrize(("pattern", "fitting", "other"), HONEST)
def test_common_patterns_are_compiled_and_check_texts_of_the_length_that_they_allow(
    pattern: str, fitting: str, other: str
) -> None:
    validator = compile({"pattern": pattern})
    validator.validate(fitting)
    with pytest.raises(Mismatch, match="does not match"):
        validator.validate(other)


def test_a_schema_may_have_many_common_patterns() -> None:
    texts = {f"p{number}": {"pattern": rf"^.{{1,{200 + number}}}$"} for number in range(30)}
    compile({"properties": texts}).validate(dict.fromkeys(texts, "a" * 200))


@pytest.mark.parametrize(
    "pattern",
    [
        "".join(f"(?=.{{0,230}}{number})" for number in range(1_500)),
        "".join(rf"(?!\p{{L}}{{5}}{number})" for number in range(1_500)),
        "|".join(rf"\p{{L}}{{9}}{number}" for number in range(1_000)),
        "".join(rf"(?!\w{{5}}{number})" for number in range(1_500)),
        r"^(?:.{1,1000}){1,1000}$",
        r"(?:\cA{1,1000}|(?=x)){1,100}" * 20,
        r"(){4294967294}",
    ],
)
def test_patterns_that_would_take_seconds_to_compile_are_refused(pattern: str) -> None:
    for schema in ({"pattern": pattern}, {"patternProperties": {pattern: True}}):
        with costs_at_most(20), pytest.raises(SchemaError):
            compile(schema)


def test_all_patterns_of_a_schema_are_counted_together() -> None:
    large = {f"p{number}": {"pattern": rf"^.{{1,{900 + number}}}$"} for number in range(20)}
    with pytest.raises(SchemaError, match=rf"take more than {PATTERN_BYTES:,} bytes to compile"):
        compile({"properties": large})


@pytest.mark.parametrize(
    "pattern",
    ["(?:a?b?){1100}[x-z]", "(?:(?:a?)?){1100}[x-z]", "(?:(a?)){1100}[x-z]", "(?:.?){4000}[x-z]", "(?i)(?:k?){9000}s"],
)
def test_optional_parts_count_by_their_number(pattern: str) -> None:
    """The engine follows each of them for each character: 70 µs, where 20 were counted."""
    with costs_at_most(100), pytest.raises(Mismatch, match="too much text for the patterns of this schema"):
        compile({"pattern": pattern}).validate("ab" * 24_000)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?<=(?:a{1,90000}){1,90000})z",
        r"(?<!(?:\p{L}{1,100}){1,100})z",
        r"^(?:x|(?<=[ab]{501}))z",
        r"(?<=\cA{90000})z",
        r"(?<=\p{L}{32})" * 20,
        r"(?<=(?:a{600,}))z",
    ],
)
def test_look_behind_that_would_take_gigabytes_to_compile_is_refused(pattern: str) -> None:
    for schema in ({"pattern": pattern}, {"patternProperties": {pattern: True}}):
        with pytest.raises(SchemaError, match="look-behind"):
            compile(schema)


@pytest.mark.parametrize(
    "pattern", [r"^(?=.{1,64}$)(?:[a-z0-9-]{1,63}(?<!-)\.)+[a-z]{2,63}$", r"(?<=\d{3}|\$)x", r"(?<!\p{Lu})x"]
)
def test_honest_look_behind_is_compiled(pattern: str) -> None:
    compile({"pattern": pattern})
