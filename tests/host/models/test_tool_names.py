"""Names of tools: any name becomes one that providers allow, and comes back unchanged."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from accord.host.models.tool_names import ToolNames


@given(st.lists(st.text(max_size=100), unique=True))
def test_each_name_has_an_allowed_alias_of_its_own(names: list[str]) -> None:
    found = ToolNames(names)
    aliases = [found.encode(name) for name in names]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", alias) for alias in aliases)
    assert [found.decode(alias) for alias in aliases] == names


def test_an_allowed_name_stays_as_it_is() -> None:
    assert ToolNames(["a.b", "git_log-2"]).encode("git_log-2") == "git_log-2"


def test_a_tool_that_is_named_like_an_alias_is_not_mistaken_for_it() -> None:
    alias = ToolNames(["a.b"]).encode("a.b")
    names = ToolNames(["a.b", alias])
    assert names.decode(alias) == alias
    assert names.decode(names.encode("a.b")) == "a.b"
    assert names.encode("a.b") != alias


def test_an_unknown_alias_is_a_name_of_its_own() -> None:
    assert ToolNames(["a.b"]).decode("never_sent") == "never_sent"
