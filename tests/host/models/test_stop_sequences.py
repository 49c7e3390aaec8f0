"""Stop sequences: the text ends before the one that is complete first, however the text is split."""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from accord.host.models.failures import ProviderFailure
from accord.host.models.stop_sequences import StopSequences

letters = st.text("ab", max_size=12)


def naive(text: str, sequences: list[str]) -> tuple[str, str | None]:
    """Look at one more character at a time, as a provider does with tokens."""
    for end in range(1, len(text) + 1):
        complete = [sequence for sequence in sequences if sequence and text[:end].endswith(sequence)]
        if complete:
            longest = max(complete, key=len)
            return text[: end - len(longest)], longest
    return text, None


@given(letters, st.lists(st.text("ab", max_size=4), max_size=4), st.lists(st.integers(0, 12), max_size=6))
@example("abab", ["bab", "ab"], [1, 2])
@example("aabb", ["aabb", "ab"], [])
def test_any_split_of_a_text_ends_at_the_same_place(text: str, sequences: list[str], cuts: list[int]) -> None:
    stop = StopSequences(sequences)
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    found = "".join(stop.feed(text[start:end]) for start, end in zip(places, [*places[1:], len(text)], strict=True))
    assert (found + stop.flush(), stop.found) == naive(text, sequences)


def test_text_that_cannot_be_a_stop_sequence_is_passed_on_at_once() -> None:
    stop = StopSequences(["END"])
    assert [stop.feed(piece) for piece in ("one E", "N two EN", "D three")] == ["one ", "EN two ", ""]
    assert stop.found == "END"


@pytest.mark.parametrize("sequences", [["x"] * 17, ["x" * 257]])
def test_sequences_are_limited(sequences: list[str]) -> None:
    with pytest.raises(ProviderFailure, match="at most 16, of at most 256 characters; nothing was sent"):
        StopSequences(sequences)
