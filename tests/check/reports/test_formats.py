"""Each form by its name and its end; JSON and badges, which have little else to them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given, settings

from accord.check.engine.report import Report
from accord.check.reports.as_json import as_json, encode_indented
from accord.check.reports.badge import badge, draw_badge
from accord.check.reports.formats import FLEET_FORMATS, REPORT_FORMATS, ReportFile, parse_report_option, write_reports
from accord.errors import TargetError

from tests.check.reports import samples
from tests.check.reports.hostile import TEXTS


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("out/r.json", "json"),
        ("r.xml", "junit"),
        ("r.sarif", "sarif"),
        ("r.sarif.json", "sarif"),
        ("R.MD", "markdown"),
        ("r.html", "html"),
        ("a=b.svg", "badge"),
    ],
)
def test_a_file_is_known_by_its_end(text: str, form: str) -> None:
    assert parse_report_option(text) == ReportFile(REPORT_FORMATS[form], Path(text))


def test_a_form_can_be_named() -> None:
    assert parse_report_option("junit=results.txt") == ReportFile(REPORT_FORMATS["junit"], Path("results.txt"))


@pytest.mark.parametrize("text", ["report", "report.pdf", "junit=", "", "nothing=x"])
def test_what_no_form_fits_is_an_error_that_lists_them(text: str) -> None:
    with pytest.raises(TargetError, match=r"unknown report format .*; formats: json \(\.json\), junit \(\.xml\)"):
        parse_report_option(text)


def test_several_are_written_at_once_with_their_folders(tmp_path: Path) -> None:
    files = [tmp_path / "deep" / f"report{form.suffixes[0]}" for form in REPORT_FORMATS.values()]
    write_reports(samples.realistic(), [parse_report_option(str(file)) for file in files])
    assert all(file.read_text(encoding="utf-8").endswith("\n") for file in files)


def test_one_that_cannot_be_written_is_reported_and_the_others_are_written(tmp_path: Path) -> None:
    (tmp_path / "taken.json").mkdir()
    reports = [
        ReportFile(REPORT_FORMATS["json"], tmp_path / "taken.json"),
        ReportFile(REPORT_FORMATS["badge"], tmp_path / "badge.svg"),
    ]
    with pytest.raises(TargetError, match=r"cannot be written to .*taken\.json: Is a directory"):
        write_reports(samples.realistic(), reports)
    assert (tmp_path / "badge.svg").exists()


def test_a_fleet_has_forms_of_its_own(tmp_path: Path) -> None:
    files = [parse_report_option(str(tmp_path / name), FLEET_FORMATS) for name in ("fleet.json", "fleet.html")]
    write_reports(samples.fleet(), files)
    assert msgspec.json.decode((tmp_path / "fleet.json").read_bytes())["failed"] is True
    assert (tmp_path / "fleet.html").read_text().startswith("<!doctype html>")
    with pytest.raises(TargetError, match=r"formats: json \(\.json\), html \(\.html, \.htm\); write FILE"):
        parse_report_option("fleet.svg", FLEET_FORMATS)


@pytest.mark.parametrize("form", REPORT_FORMATS)
def test_the_same_report_is_the_same_text(form: str) -> None:
    assert REPORT_FORMATS[form].make(samples.realistic()) == REPORT_FORMATS[form].make(samples.realistic())


def test_json_holds_the_whole_report() -> None:
    text = as_json(samples.realistic())
    head = msgspec.json.decode(text)
    assert (head["format"], head["failed"], head["score"]) == (1, True, 81)
    assert msgspec.json.decode(text, type=Report) == samples.realistic()


def test_json_is_not_indented_if_nesting_would_multiply_its_size() -> None:
    deep = msgspec.json.decode("[" * 400 + "1," * 20_000 + "1" + "]" * 400)
    assert len(encode_indented({"value": deep})) < 100_000
    assert encode_indented({"value": [1]}) == '{\n  "value": [\n    1\n  ]\n}\n'


@given(TEXTS)
@settings(max_examples=60)
def test_json_can_be_read_whatever_a_peer_wrote(text: str) -> None:
    assert msgspec.json.decode(as_json(samples.filled(text)))["format"] == 1


def test_the_badge_names_the_revisions_and_the_score() -> None:
    title = "{http://www.w3.org/2000/svg}title"
    one = samples.report([samples.outcome("a/b", revision="2026-07-28")])
    assert ElementTree.fromstring(badge(one)).findtext(title) == "mcp 2026-07-28: 100"
    assert ElementTree.fromstring(badge(samples.realistic())).findtext(title) == "mcp 2024-11-05 to 2026-07-28: 81"
    assert ElementTree.fromstring(badge(samples.report([]))).findtext(title) == "mcp: unknown"


@given(TEXTS, TEXTS)
def test_any_text_fits_a_badge(label: str, value: str) -> None:
    root = ElementTree.fromstring(draw_badge(label, value, "#fff"))
    assert {each.tag.partition("}")[2] for each in root.iter()} == {"svg", "title", "clipPath", "rect", "g", "text"}
