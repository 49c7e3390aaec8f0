"""Names that look alike are found, whatever the alphabet, and at a bounded cost."""

from __future__ import annotations

import pytest

from accord.inspector.similar_names import MOST_GROUPS, similar_names

from tests.measure import assert_linear


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("read_file", "read_file", "the same name"),
        ("read_file", "read-file", "case and separators"),
        ("readFile", "read_file", "case and separators"),
        ("read_file", "re\u200bad_file", "hidden characters"),
        ("read_file", "r\u0435ad_file", "characters that look alike"),  # a Cyrillic letter
        ("PAY", "\u0420\u0410\u03a5", "characters that look alike"),
        ("read_file", "\uff52ead_file", "characters that look alike"),
        ("list_l", "list_1", "characters that look alike"),
        ("modern", "modem", "characters that look alike"),
        ("get_user", "get_users", "one character"),
        ("get_user", "set_user", "one character"),
        ("get_user", "get_usre", "one character"),
        ("send_mail", "sned_mail", "one character"),
    ],
)
def test_names_that_look_alike_are_found(first: str, second: str, reason: str) -> None:
    (found,) = similar_names(["other", first, "unlike", second])
    assert found.numbers == (1, 3)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("read_file", "write_file"),
        ("page_1", "page_2"),
        ("get", "set"),
        ("get_user", "get_group"),
        ("abcdef", "abfedc"),
    ],
)
def test_other_names_are_not_reported(first: str, second: str) -> None:
    assert not [*similar_names([first, second])]


def test_a_group_has_all_names_with_one_outline() -> None:
    (found,) = similar_names(["getUser", "get_user", "GET-USER", "get.user"])
    assert found.numbers == (0, 1, 2, 3)


def test_the_number_of_groups_is_bounded() -> None:
    assert len([*similar_names([f"tool_{number // 2:05}" for number in range(5_000)])]) == MOST_GROUPS


def test_the_cost_is_linear_also_where_all_names_are_near_each_other() -> None:
    def compare(count: int) -> None:
        assert (
            len([*similar_names([f"abcdefgh{chr(0x4E00 + number)}ijklmnop" for number in range(count)])]) <= MOST_GROUPS
        )

    assert_linear(compare, 200)
