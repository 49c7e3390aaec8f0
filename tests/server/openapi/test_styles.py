"""Each style writes a value as the specification's table of examples has it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given, strategies as st

from accord.errors import InvalidArguments
from accord.server.openapi.body import in_cookie, in_header, in_path, in_query
from accord.server.openapi.operation import APIParameter

LIST, TABLE = ["blue", "black", "brown"], {"R": 100, "G": 200, "B": 150}


def at(place: str, style: str, explode: bool, **more: Any) -> APIParameter:
    return APIParameter(name="color", place=place, style=style, explode=explode, **more)


@pytest.mark.parametrize(
    ("style", "explode", "text", "items", "table"),
    [
        ("simple", False, "blue", "blue,black,brown", "R,100,G,200,B,150"),
        ("simple", True, "blue", "blue,black,brown", "R=100,G=200,B=150"),
        ("label", False, ".blue", ".blue,black,brown", ".R,100,G,200,B,150"),
        ("label", True, ".blue", ".blue.black.brown", ".R=100.G=200.B=150"),
        ("matrix", False, ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"),
        ("matrix", True, ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"),
    ],
)
def test_in_a_path(style: str, explode: bool, text: str, items: str, table: str) -> None:
    parameter = at("path", style, explode)
    assert [in_path(parameter, value) for value in ("blue", LIST, TABLE)] == [text, items, table]


@pytest.mark.parametrize(
    ("style", "explode", "items", "table"),
    [
        ("form", True, "color=blue&color=black&color=brown", "R=100&G=200&B=150"),
        ("form", False, "color=blue,black,brown", "color=R,100,G,200,B,150"),
        ("spaceDelimited", False, "color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"),
        ("pipeDelimited", False, "color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"),
        (
            "deepObject",
            True,
            "color=blue&color=black&color=brown",
            "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
        ),
    ],
)
def test_in_a_query(style: str, explode: bool, items: str, table: str) -> None:
    parameter = at("query", style, explode)
    assert ["&".join(in_query(parameter, value)) for value in ("blue", LIST, TABLE)] == ["color=blue", items, table]


def test_what_is_nested_in_a_deep_object_is_found_by_its_path() -> None:
    value = {"a": {"b c": [1, 2]}, "d": None}
    pairs = parse_qsl("&".join(in_query(at("query", "deepObject", True), value)))
    assert pairs == [("color[a][b c]", "1"), ("color[a][b c]", "2")]


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (7, "7"), (2.5, "2.5"), ("a b&c", "a%20b%26c"), ({"x": [1]}, '{"x":[1]}')]
)
def test_values_are_written_as_json_has_them(value: Any, text: str) -> None:
    assert in_query(at("query", "form", False), value if not isinstance(value, dict) else [value]) == [
        f"color={text}" if not isinstance(value, dict) else "color=%7B%22x%22%3A%5B1%5D%7D"
    ]


def test_nothing_and_an_empty_list_are_left_out_of_a_query() -> None:
    assert in_query(at("query", "form", True), None) == []
    assert in_query(at("query", "form", True), []) == []
    assert in_query(at("query", "form", True), [None, 1]) == ["color=1"]


def test_a_parameter_with_a_media_type_is_json() -> None:
    assert in_query(at("query", "form", True, as_json=True), "x") == ["color=%22x%22"]
    assert in_header(at("header", "simple", False, as_json=True), {"a": 1}) == '{"a":1}'


def test_reserved_characters_stay_where_they_may_and_separate_nothing() -> None:
    assert in_query(at("query", "form", False, reserved=True), "a/b?c&d=e#f") == ["color=a/b?c%26d%3De%23f"]


def test_in_a_header_and_a_cookie() -> None:
    assert in_header(at("header", "simple", False), TABLE) == "R,100,G,200,B,150"
    assert in_header(at("header", "simple", True), TABLE) == "R=100,G=200,B=150"
    assert in_cookie(at("cookie", "form", True), 'a=b; c="d"') == ["color=a=b%3B%20c%3D%22d%22".replace("c%3D", "c=")]


def test_half_a_character_is_refused() -> None:
    with pytest.raises(InvalidArguments, match="surrogate"):
        in_query(at("query", "form", False), "\ud800")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_whatever_a_text_holds_a_query_gives_it_back(text: str) -> None:
    for style in ("form", "deepObject"):
        value = text if style == "form" else {"k": text}
        name = "color" if style == "form" else "color[k]"
        pieces = in_query(at("query", style, True), value)
        assert parse_qsl("&".join(pieces), keep_blank_values=True) == [(name, text)]
