"""The HTML page: whole in itself, and no text in it is anything but text."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

from accord.check.reports.html import joined, link, tag, untrusted_text
from accord.check.reports.report_page import report_page
from accord.visible_text import visible

from tests.check.reports import samples
from tests.check.reports.hostile import TEXTS

VOID = ("meta", "input")


class Read(HTMLParser):
    """The elements of a page, whether each was closed, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: dict[str, str] = {}
        self.wrong: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open:
            self.text[self.open[-1]] = self.text.get(self.open[-1], "") + data

    def handle_comment(self, data: str) -> None:
        self.wrong.append(data)

    def structure(self) -> list[tuple[str, list[str]]]:
        return [(tag, sorted(attributes)) for tag, attributes in self.elements if tag != "mark"]


def is_sound(page: Read) -> None:
    assert not page.wrong
    assert not page.open
    names = {name for _, attributes in page.elements for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in ("style", "src", "srcset", "action")]
    assert [name for name, _ in page.elements if name in ("script", "style")] == ["style", "script"]
    for name, attributes in page.elements:
        assert name not in ("link", "iframe", "object", "embed", "base", "img")
        if name == "a":
            assert (attributes["href"] or "").startswith("https://")


def test_the_page_is_valid_and_loads_nothing_else() -> None:
    source = report_page(samples.realistic())
    is_sound(Read(source))
    assert "@import" not in source
    assert "url(" not in source


def test_the_policy_allows_this_style_and_this_script_and_nothing_else() -> None:
    page = Read(report_page(samples.realistic()))
    policy = next(each["content"] for _, each in page.elements if each.get("http-equiv") == "Content-Security-Policy")
    hashes = {name: b64encode(sha256(page.text[name].encode()).digest()).decode() for name in ("style", "script")}
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
        "base-uri 'none'; form-action 'none'"
    )


PLAIN = Read(report_page(samples.filled("x"))).structure()


@given(TEXTS.filter(str.strip))
@settings(max_examples=60)
def test_no_text_changes_the_structure_of_the_page(text: str) -> None:
    page = Read(report_page(samples.filled(text)))
    is_sound(page)
    assert page.structure() == PLAIN


@given(TEXTS)
def test_what_is_shown_reads_as_it_is_visible(text: str) -> None:
    class Text(HTMLParser):
        seen = ""

        def handle_data(self, data: str) -> None:
            self.seen += data

    reader = Text()
    reader.feed(str(joined(untrusted_text(text))))
    reader.close()
    assert reader.seen == visible(text)


def test_every_finding_is_reported_with_its_evidence_and_its_command() -> None:
    page = report_page(samples.realistic())
    for finding in samples.realistic().findings:
        assert f"<code>{finding.rule}</code>" in page
        assert str(untrusted_text(finding.says)) in page
        assert str(untrusted_text(finding.text)) in page
        assert all(str(untrusted_text(line)) in page for line in finding.evidence)
        assert not finding.repeat or str(untrusted_text(finding.repeat)) in page


def test_the_board_has_a_cell_for_each_visit() -> None:
    board = report_page(samples.realistic()).partition("<tbody>")[2].partition("</tbody>")[0]
    assert board.count("<td>") == 10
    assert re.findall(r'scope="row">([\d-]+)<', board) == [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
    ]


def test_every_rule_can_be_filtered_by_its_area_and_its_verdict() -> None:
    page = Read(report_page(samples.realistic()))
    items = [
        (each["data-area"], each["data-verdict"]) for _, each in page.elements if "item" in (each.get("class") or "")
    ]
    assert ("http", "fail") in items
    assert ("envelope", "pass") in items
    assert len(items) == len(samples.realistic().findings) + sum(map(len, samples.AREAS.values()))


def test_a_clean_report_says_that_nothing_was_found() -> None:
    assert "No findings." in report_page(samples.report([samples.outcome("tools/unknown-name")]))


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "https://a.example/ x", "data:text/html,x", "//evil.example", ""]
)
def test_only_addresses_of_the_web_become_links(url: str) -> None:
    assert "<a" not in link(url)
    assert "<a" in link("https://a.example/x#y")


def test_attributes_are_escaped_and_named_as_html_names_them() -> None:
    drawn = tag("details", "<&", class_="a", data_area='"><script>', open=True, hidden=False)
    assert drawn == '<details class="a" data-area="&quot;&gt;&lt;script&gt;" open>&lt;&amp;</details>'
