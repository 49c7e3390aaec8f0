"""The language of filters, and the rows that match."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from accord.inspector.traffic import text_search
from accord.inspector.traffic.filter import FilterError, FilterTerm, parse_filter
from accord.inspector.traffic.index import TrafficIndex
from accord.inspector.traffic.source import TrafficSource
from accord.inspector.traffic.text_search import SearchCancelled, rows_with_text

from tests.inspector.traffic.sessions import Script, usual


def test_terms_are_parsed() -> None:
    parsed = parse_filter('method:tools/* -kind:http,stderr time>500ms size<=2kB say "two words" at:1s..2s https://a/b')
    assert [(term.key, term.values, term.negated) for term in parsed] == [
        ("method", ("tools/*",), False),
        ("kind", ("http", "stderr"), True),
        ("time", (), False),
        ("size", (), False),
        ("", ("say",), False),
        ("", ("two words",), False),
        ("at", (), False),
        ("", ("https://a/b",), False),
    ]
    assert parsed[2].low == pytest.approx(0.5)
    assert parsed[3].high == 2_000
    assert (parsed[6].low, parsed[6].high) == (1.0, 2.0)
    assert parse_filter("  ") == ()
    assert parse_filter(r'"a \"b\" \\"') == (FilterTerm("", (r'a "b" \ '.strip(),)),)


@pytest.mark.parametrize(
    ("text", "error", "cure"),
    [
        ("methud:a", "unknown key 'methud'", "the keys are method, name, id, kind"),
        ("kind:htp", "unknown kind 'htp'", "choose request, response"),
        ("status:wrong", "unknown status 'wrong'", "or 4xx"),
        ("time:5s", "time needs a comparison", "time>500ms"),
        ("time>5", "'5' is no value of time", "write 1ms, 1s"),
        ("time>five", "'five' is no value of time", "time>500ms"),
        ("kind>http", "kind cannot be compared with >", "kind:request,response"),
        ("method:", "method: has no value", "method:tools/call"),
        ("-", "a minus sign stands alone", "-kind:stderr"),
        ('"open', "the quotation 'open' has no end", 'add " at its end'),
        ("connection:a", "'a' is no value of connection", "connection:2"),
        ("a " * 30, "the filter has 30 terms", "at most 20"),
        ("a" * 2_000, "the filter has 2000 characters", "at most 1000"),
    ],
)
def test_an_error_says_what_is_wrong_and_what_is_possible(text: str, error: str, cure: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert error in str(caught.value)
    assert cure in caught.value.cure


PARTS = st.sampled_from(
    [
        "method:",
        "time",
        ">",
        "<=",
        "500ms",
        "-",
        '"',
        "\\\\",
        " ",
        ":",
        "*",
        "[",
        "?",
        "a",
        "é",
        "size",
        "1e9",
        "..",
        "status:",
        "4xx",
        ",",
    ]
)


@given(st.lists(PARTS, max_size=12).map("".join) | st.text(max_size=30))
def test_any_text_is_a_filter_or_an_error(text: str) -> None:
    try:
        terms: tuple[FilterTerm, ...] | None = parse_filter(text)
    except FilterError:
        terms = None
    assert terms is None or bool(terms) is bool(text.strip())


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", list(range(9))),
        ("method:tools/call", [3, 4, 5, 6, 7]),
        ("method:TOOLS/*", [1, 2, 3, 4, 5, 6, 7]),
        ("method:*list", [1, 2]),
        ("method:tools/call status:error", [5, 6]),
        ("status:-32602", [5, 6]),
        ("status:lost", [7, 8]),
        ("name:price kind:request", [3, 7]),
        ("name:pri[ce]", []),
        ("time>500ms", [3, 4]),
        ("time<=20ms", [1, 2, 5, 6]),
        ("direction:received", [2, 4, 6]),
        ("-direction:sent -direction:received", [0, 8]),
        ("kind:message", list(range(1, 8))),
        ("kind:connected,lost", [0, 8]),
        ("id:3", [5, 6]),
        ("row>6", [7, 8]),
        ("connection:1 row<2", [0, 1]),
        ("connection:2", []),
        ("at:0s..20ms", [0, 1]),
        ("span:2", [3, 4]),
        ("crème", [3]),
        ("CRèME", [3]),
        ('"say \\"bread\\""', [4]),
        ("bread", [4]),
        ("-bread kind:response", [2, 6]),
        ("direction", []),
        ("received", []),
        ("shop.py", [0]),
        ("jsonrpc", list(range(1, 8))),
        ("jsonrpc price row>3", [7]),
        ("type:valid kind:response", [2, 4, 6]),
        ("type:invalid", []),
    ],
)
async def test_rows_match(text: str, rows: list[int], tmp_path: Path) -> None:
    source = await usual().open(tmp_path)
    assert (await source.rows(text)).tolist() == rows
    assert (await source.rows(text)).tolist() == rows


async def test_a_text_at_the_border_of_two_blocks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script()
    for number in range(50):
        script.request(number, "tools/call", name=f"needle-{number % 5}")
    source = await script.open(tmp_path)
    for size in range(10, 60):
        monkeypatch.setattr(text_search, "_BLOCK", size)
        assert rows_with_text(source.index, source.file, "needle-3", 0, 50, threading.Event()) == set(range(3, 50, 5))


async def test_rows_that_change_later_are_evaluated_again(tmp_path: Path) -> None:
    script = usual()
    lines = script.content().splitlines(keepends=True)
    file = tmp_path / "f.jsonl"
    file.write_bytes(b"".join(lines))
    index = TrafficIndex()
    source = TrafficSource("live", file, index)
    filters = ["status:pending", "status:error", "status:ok kind:request", "time>500ms", "price"]
    place = 0
    for line in lines:
        index.add_line(line, place)
        place += len(line)
        for text in filters:
            fresh = TrafficSource("fresh", file, index)
            assert (await source.rows(text)).tolist() == (await fresh.rows(text)).tolist(), text


async def test_a_search_is_replaced_by_a_later_one_of_the_same_view(tmp_path: Path) -> None:
    source = await usual().open(tmp_path)
    first, second = source._begin_search("timeline"), source._begin_search("timeline")
    other = source._begin_search("other")
    assert [each.is_set() for each in (first, second, other)] == [True, False, False]
    with pytest.raises(SearchCancelled):
        rows_with_text(source.index, source.file, "price", 0, 9, first)


async def test_messages_with_other_types_are_invalid(tmp_path: Path) -> None:
    script = Script()
    script.request(1, "tools/list")
    script.result(1, tools=[{"name": 5}])
    source = await script.open(tmp_path)
    assert (await source.rows("type:invalid")).tolist() == [1]
    assert source.types.mismatch(1) == (
        "the result of tools/list does not match its type in 2026-07-28: Expected `str`, got `int` (at $.tools[0].name)"
    )


async def test_a_line_that_is_no_json_is_invalid_also_before_the_revision_is_known(tmp_path: Path) -> None:
    script = Script()
    script.message(b"Server is listening ...", "received")
    script.message(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', "received")
    source = await script.open(tmp_path)
    assert (await source.rows("type:invalid")).tolist() == [0]
    assert "its logs to stderr" in source.types.mismatch(0)
