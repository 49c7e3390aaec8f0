from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from accord.client.uri_index import URIIndex, is_part

uris = st.text("a/?#", max_size=6)


def test_a_part_is_below_its_whole() -> None:
    assert is_part("file:///a/b", "file:///a")
    assert is_part("file:///a/b", "file:///a/")
    assert is_part("file:///a", "file:///a")
    assert is_part("res://a?x=1", "res://a")
    assert not is_part("file:///ab", "file:///a")
    assert not is_part("file:///a", "file:///a/b")
    assert not is_part("file:///a", "file:///a/"), "it is named otherwise"


@given(added=st.sets(uris), removed=st.sets(uris), uri=uris)
def test_it_finds_the_parts_of_a_uri_and_what_it_is_a_part_of(added: set[str], removed: set[str], uri: str) -> None:
    index = URIIndex()
    for each in sorted(added):
        index.add(each)
    for each in added & removed:
        index.remove(each)
    left = added - removed
    assert index.related(uri) == {each for each in left if is_part(each, uri) or is_part(uri, each)}
