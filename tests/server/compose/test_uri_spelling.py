"""One URI in many spellings: canonical forms, and what a pattern of a rule covers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import Server
from accord.server.compose.access import Viewer
from accord.server.compose.uri_spelling import MAX_SPELLINGS, SpellingCache, cache_spellings, canonical, spellings
from accord.server.core.visibility import Visibility
from accord.server.middleware.scopes import NamePattern

from tests.measure import assert_linear

SECRET = "docs://private/plan"
USERS = ("u%2f@", "u%2f%40", "u%2f%2540", "u%2f%252540", "u%2f%25252540")
MANY_READINGS = "docs://" + "".join(USERS) + "x;a:1/%252e%2e;b/y?%252fz"


def covers(pattern: str, uri: str) -> bool:
    return any(map(NamePattern(pattern).covers, spellings(uri)))


@pytest.mark.parametrize(
    ("uri", "form"),
    [
        ("docs://a/b", "docs://a/b"),
        ("DOCS://Host/Path", "docs://host/Path"),
        ("docs://%70rivate/%7e", "docs://private/~"),
        ("docs://a%2fb", "docs://a%2Fb"),
        ("mailto:Ann", "mailto:Ann"),
        ("plain", "plain"),
    ],
)
def test_a_canonical_uri_has_a_lower_host_and_no_needless_escapes(uri: str, form: str) -> None:
    assert canonical(uri) == form
    assert canonical(form) == form


@pytest.mark.parametrize(
    "uri",
    [
        SECRET,
        "docs://%70rivate/plan",
        "docs://private%2Fplan",
        "docs://%2570rivate/plan",
        "DOCS://PRIVATE/plan",
        "docs://open/../private/plan",
        "docs://./private//plan",
        "docs://open\\..\\private\\plan",
        "docs://private/plan?x=1",
        "docs://private/plan#x",
        "docs://private/plan/",
        "docs:///private/plan",
        "docs://private",
        "docs://private/",
        "docs://%70rivate",
        "docs://private?page=2",
        "docs://private./plan",
        "docs://private%20/plan",
        "docs://ann@private/plan",
        "docs://ann:pw%40x@private:80/plan",
        "docs://ann%40private/plan",
        "docs://private:/plan",
        "docs://priv\nate/plan",
        "docs://priv%0Aate/plan",
        "do\tcs://private/plan",
        " docs://private/plan",
        "\x01DOCS://private/plan",
        "docs://\uff50rivate/plan",
        "docs://priv\u200bate/plan",
        "docs://private;v=1/plan",
        "docs://open\\@private/plan",
        "docs://private\\@open/plan",
        "docs://private:http/plan",
        "docs://private::80/plan",
        "docs://open%252f%40private/plan",
        "docs://open%2f@%70rivate/plan",
        "docs://open?/../private/plan",
        "docs://open%3f%2f..%2fprivate/plan",
        "docs://open#/../private/plan",
        "docs://open%23%2f..%2fprivate/plan",
        "docs://priv\U000e0100ate/plan",
        "docs://private\u3002/plan",
    ],
)
def test_a_rule_on_what_is_below_covers_every_spelling_and_what_lists_it(uri: str) -> None:
    assert covers("docs://private/*", uri)
    assert covers("docs://%70rivate/*", uri)


def test_a_rule_on_one_uri_covers_it_with_parameters_behind_its_path() -> None:
    assert covers(SECRET, SECRET + ";v=1")


def test_a_rule_on_one_port_hides_nothing_at_another() -> None:
    hidden = Visibility()
    hidden.set(False, ["http://localhost:3000/x"], ())
    assert not hidden.is_visible(("http://localhost:3000/x",), ())
    assert not hidden.is_visible(("http://ann@localhost:3000/x",), ())
    assert hidden.is_visible(("http://localhost:4000/x",), ())
    assert not covers("http://localhost:3000/*", "http://localhost:4000/x")
    assert covers("http://localhost:3000/*", "http://ann@localhost:3000/x")


@pytest.mark.parametrize("uri", ["docs://privates", "docs://open/private2", "docs://a/plan", "note://private/plan"])
def test_a_rule_covers_nothing_beside_it(uri: str) -> None:
    assert not covers("docs://private/*", uri)


def test_a_rule_covers_what_a_file_system_that_ignores_case_takes_for_the_same() -> None:
    assert covers("docs://all/Private/*", "docs://all/PRIVATE/plan")
    assert covers("docs://all/private/plan.md", "docs://all/private/Plan.MD")


def test_names_of_tools_are_compared_as_they_are() -> None:
    assert spellings("delete_%61ll") == ("delete_%61ll",)
    assert covers("delete_*", "delete_all")
    assert not covers("delete_*", "Delete_all")
    assert not covers("delete/*", "delete")


@pytest.mark.parametrize("text", ["docs://{+path}", "docs://{a}/{b}", "docs://{name}{?page}"])
def test_the_text_of_a_template_covers_the_uris_that_it_matches(text: str) -> None:
    uri = {"docs://{+path}": "docs://a/b/c", "docs://{a}/{b}": "docs://a/b"}.get(text, "docs://a?page=1")
    assert covers(text, uri)
    assert covers(text, text)
    assert not covers(text, "note://a/b")


@given(st.text("private/%2e.\\A", min_size=1, max_size=12))
def test_spellings_hold_those_of_the_canonical_form(text: str) -> None:
    uri = f"docs://{text}"
    assert canonical(uri) in spellings(uri)
    assert spellings(uri)[0] == uri


def test_what_has_many_readings_has_a_bound_of_them() -> None:
    assert len(spellings(MANY_READINGS)) == MAX_SPELLINGS
    assert spellings(MANY_READINGS)[0] == MANY_READINGS


@pytest.mark.parametrize("text", ["./", "a/../", "%2e%2f", "%25", "%2525", ";a/", "\ufb01/", "?/../", "@", ":", "\\"])
def test_the_readings_of_a_repeated_text_are_few(text: str) -> None:
    assert len(spellings("docs://" + 1_000 * text)) < 16


def test_a_name_that_begins_with_dots_has_no_further_readings() -> None:
    """Nor has a backslash in it: file systems of POSIX allow both in honest names."""
    assert len(spellings("docs://a/..config/x\\y//z")) == len(spellings("docs://a/_config/x\\y//z"))


@pytest.mark.parametrize("part", ["A%2561/..;x\\", "%2561/../", "%25252f"])
def test_a_long_uri_with_many_readings_is_looked_up_in_few_of_them(part: str) -> None:
    server = Server("docs")
    server.resource("docs://secret", scopes={"admin"})(lambda: "")
    server.resource("docs://{+path}", unsafe_variables=True)(lambda path: path)
    registry, looked_up = server.registry, 0
    uri = f"docs://u@h:80/{part * (4000 // len(part))}?&a=%2561"
    offer, find = registry.resource(uri)[0], registry.find

    def counting(kind: str, name: str) -> Any:
        nonlocal looked_up
        looked_up += len(name)
        return find(kind, name)

    registry.find = counting  # type: ignore[method-assign]
    Viewer(frozenset()).can_read(registry, offer, uri)
    assert looked_up <= 100_000


@pytest.mark.parametrize("tail", ["/:", "/:%2525", "/:é"])
def test_the_spellings_of_a_long_uri_take_linear_time(tail: str) -> None:
    assert_linear(lambda size: spellings("a" * size + tail), 800)


def test_a_scheme_is_found_wherever_it_begins() -> None:
    assert [canonical(each) for each in ("/A:B", "1A+B:X", "%3fDOCS://Host/A", "A A:")] == [
        "/a:B", "1a+b:X", "%3Fdocs://host/A", "A a:",
    ]  # fmt: skip


def test_the_cached_spellings_of_listed_names_have_a_bound_in_bytes() -> None:
    cache, most = SpellingCache(10_000), 0
    for at in range(1_000):
        cache.add(f"docs://a%20{at}", (f"docs://a%20{at}", f"docs://a {at}"))
        most = max(most, len(cache.readings))
        assert f"docs://a%20{at}" in cache.readings
    assert 40 < most < 100


def test_spellings_are_the_same_from_the_cache() -> None:
    uri = "docs://x:1/a%20B/../c?b&a"
    expected = spellings(uri), spellings(uri, whole=True)
    cache_spellings([uri, "plain"])
    assert (spellings(uri), spellings(uri, whole=True)) == expected
