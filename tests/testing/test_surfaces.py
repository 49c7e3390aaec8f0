"""What a server offers is compared with a file, and each difference is told by its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import Server
from accord.messages.revision import REVISIONS
from accord.sync import Client
from accord.testing import assert_surface, surface
from accord.testing.files import differences

from tests.testing.shops import shop


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_has_not_changed_passes_in_every_revision(revision: str, tmp_path: Path) -> None:
    file = tmp_path / "surfaces" / "shop.json"
    assert_surface(shop(), file, update=True, revisions=[revision])
    written = file.read_bytes()
    assert_surface(shop(), file, revisions=[revision])
    assert_surface(shop(), file, update=True, revisions=[revision])
    assert file.read_bytes() == written
    assert json.loads(written)["revision"] == revision


def test_each_difference_is_reported_by_its_place(tmp_path: Path) -> None:
    file = tmp_path / "shop.json"
    assert_surface(shop(), file, update=True)
    with pytest.raises(AssertionError) as caught:
        assert_surface(shop(changed=True), file)
    first, *lines = str(caught.value).splitlines()
    assert "(differences: 4; --accord-update, or update=True, accepts them)" in first
    assert [tuple(line.strip().split(" (")) for line in lines] == [
        ('breaking  capabilities.prompts: removed: {"listChanged":true}', f"{FAIL})"),
        (
            'breaking  prompts.praise: removed: {"arguments":[{"name":"item","required":true}],"name":"praise"}',
            f"{ASK})",
        ),
        ('risky     instructions: "Be brief." → "Be quick."', f"{READ})"),
        ("risky     tools.price.inputSchema.properties.count.default: 1 → 2", f"{OMIT})"),
    ]


FAIL = "clients that use it fail, or wait in vain"
ASK = "requests with the old name get an error"
READ = "models read it, and may behave differently"
OMIT = "calls that omit it get another value"


def test_no_text_of_a_server_controls_the_terminal() -> None:
    (key,) = differences({}, {"\x1b[2J\n": 1})
    (value,) = differences({"a": 1}, {"a": "\x9b2J\u202e"})
    assert (key, value) == (r"\x1b[2J\n: added: 1", r'a: 1 → "\x9b2J\u202e"')


def test_what_has_only_other_words_is_safe(tmp_path: Path) -> None:
    file = tmp_path / "shop.json"
    assert_surface(shop(), file, update=True)
    kept = json.loads(file.read_text())
    kept["tools"]["bake"]["inputSchema"]["properties"]["breads"]["type"] = ["integer"]
    file.write_text(json.dumps(kept))
    with pytest.raises(AssertionError, match=r"\n  safe      tools.bake.inputSchema.properties.breads.type: "):
        assert_surface(shop(), file)


def test_what_is_ignored_may_differ(tmp_path: Path) -> None:
    file = tmp_path / "shop.json"
    assert_surface(shop(), file, update=True)
    assert_surface(shop(changed=True), file, ignore=["instructions", "*prompts*", "tools.*.default"])


def test_no_file_is_an_error_that_says_how_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"shop.json does not exist: write it with pytest --accord-update"):
        assert_surface(shop(), tmp_path / "shop.json")
    assert not (tmp_path / "shop.json").exists()


def test_a_broken_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "shop.json").write_text("<<<<<<<")
    with pytest.raises(AssertionError, match="is not JSON"):
        assert_surface(shop(), tmp_path / "shop.json")


def test_a_server_that_offers_nothing_has_a_surface() -> None:
    with Client(Server("bare")) as client:
        found = surface(client)
    assert (found["tools"], found["prompts"], found["resources"], found["resourceTemplates"]) == ({}, {}, {}, {})


def test_a_client_that_is_open_is_looked_through(tmp_path: Path) -> None:
    with Client(shop()) as client:
        assert_surface(client, tmp_path / "shop.json", update=True)
        assert client.call_tool("price", {"item": "bread"}).data == 2.0


# --- differences ---------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@given(JSON, JSON)
def test_there_are_differences_unless_it_is_the_same(was: Any, now: Any) -> None:
    assert bool(differences(was, now)) is not same(was, now)
    assert len(differences(was, now)) == len(differences(now, was))


@given(JSON, JSON)
def test_what_is_all_ignored_has_none(was: Any, now: Any) -> None:
    assert differences({"a": was}, {"a": now}, ["a"]) == []


def test_true_is_not_one() -> None:
    assert differences({"a": True}, {"a": 1}) == ["a: true → 1"]
    assert differences([1], [1, 2]) == ["1: added: 2"]
    assert differences(1, 2) == ["the value: 1 → 2"]


def test_a_very_long_name_is_not_repeated_for_each_difference_below_it() -> None:
    """Some megabytes of a server became gigabytes of differences."""
    name = "a" * 100_000
    found = differences({name: [0] * 500}, {name: [1] * 500})
    assert len(found) == 500
    assert sum(map(len, found)) < 2_000_000
