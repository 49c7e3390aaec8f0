"""Ready-made pages: their size, their options in the page, what is refused, and that no data becomes HTML."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

import pytest

from accord import Chart, DeclarationError, Form, Server, Table


@dataclass
class Order:
    name: str
    size: Literal["S", "M"] = "M"
    count: int = 1


@dataclass
class Nested:
    order: Order


PAGES = {"chart": Chart("month", ["a", "b"], refresh="again"), "table": Table(["a"]), "form": Form(Order, "save")}


def document(page: Any) -> str:
    return Server("shop").add_ui("ui://shop/page", page).document


def options(page: Any) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="options">(.*?)</script>', document(page))
    assert found is not None
    result: dict[str, Any] = json.loads(found[1])
    return result


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_at_most_30_kb_and_loads_nothing(name: str) -> None:
    page = document(PAGES[name])
    assert len(page.encode()) <= 30_000
    assert "https://" not in page
    assert page.count("http://") == page.count('"http://www.w3.org/2000/svg"') <= 1


def test_no_page_writes_data_as_html() -> None:
    for file in resources.files("accord.server.apps").joinpath("static").iterdir():
        text = file.read_text("utf-8")
        found = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text)
        assert found == [], file.name


def test_options_and_titles_cannot_end_their_element() -> None:
    hostile = "</script><script>alert(1)</script><!--"
    page = document(Chart(hostile, hostile, title=hostile, titles={hostile: hostile}))
    assert "alert(1)</script>" not in page
    assert "<!--" not in page
    assert options(Table([hostile]))["columns"] == [hostile]


def test_the_fields_of_a_form_are_those_of_the_class() -> None:
    found = options(Form(Order, "save", submit="Save"))
    assert (found["tool"], found["submit"]) == ("save", "Save")
    assert found["fields"] == [
        {"name": "name", "kind": "text", "title": "name", "required": True, "choices": []},
        {
            "name": "size",
            "kind": "choice",
            "title": "size",
            "required": False,
            "default": "M",
            "choices": [["S", "S"], ["M", "M"]],
        },
        {"name": "count", "kind": "integer", "title": "count", "required": False, "default": 1, "choices": []},
    ]


def test_a_form_is_named_after_its_class() -> None:
    assert "<title>Order</title>" in document(Form(Order, "save"))
    assert "<title>New order</title>" in document(Form(Order, "save", title="New order"))


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: Chart("a", []), "at least one field"),
        (lambda: Chart("a", "b", kind="pie"), "'bar' or 'line', not 'pie'"),  # type: ignore[arg-type]
        (lambda: Table("a"), r"columns=\['a'\]"),
        (lambda: Form(str, "save"), "a class with attributes"),
        (lambda: Form(Nested, "save"), "which is flat"),
    ],
)
def test_a_page_that_cannot_be_made_is_an_error(make: Any, part: str) -> None:
    with pytest.raises(DeclarationError, match=part):
        make()
