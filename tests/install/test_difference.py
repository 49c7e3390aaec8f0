"""The difference between two texts of a file, as a user sees it."""

from __future__ import annotations

import pytest

from accord.install.difference import difference


def test_a_difference_has_three_lines_around_each_change() -> None:
    old = "\n".join(str(number) for number in range(40))
    new = old.replace("\n10\n", "\n10\nnew\n").replace("\n30\n", "\n")
    lines = difference(old, new, is_new_secret=False)
    assert lines == [
        " 8", " 9", " 10", "+new", " 11", " 12", " 13", "...", " 27", " 28", " 29", "-30", " 31", " 32", " 33",
    ]  # fmt: skip


@pytest.mark.parametrize(("is_new_secret", "shown"), [(False, "hunter2"), (True, "[redacted]")])
def test_secrets_of_other_lines_are_replaced(is_new_secret: bool, shown: str) -> None:
    lines = difference(
        '"password": "hunter3"\n', '"password": "hunter3"\n"api_key": "hunter2"\n', is_new_secret=is_new_secret
    )
    assert "hunter3" not in "".join(lines)
    assert shown in lines[-1]


def test_a_long_file_is_not_compared_where_it_is_equal() -> None:
    old = "x\n" * 200_000
    assert difference(old, old + "y\n", is_new_secret=False) == [" x", " x", " x", "+y"]
    assert difference("", "y\n", is_new_secret=False) == ["+y"]
