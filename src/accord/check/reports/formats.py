"""Every form of report by its name and by the ends of files, and writing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from accord.check.engine.fleet import Fleet
from accord.check.engine.report import Report
from accord.check.reports.as_json import as_json
from accord.check.reports.badge import badge
from accord.check.reports.fleet_page import fleet_page
from accord.check.reports.junit import junit
from accord.check.reports.markdown import markdown
from accord.check.reports.report_page import report_page
from accord.check.reports.sarif import sarif
from accord.errors import TargetError


class ReportFormat(NamedTuple):
    """A form of report: how files of it end, and what makes its text of a report, or of a fleet."""

    suffixes: tuple[str, ...]
    make: Callable[[Any], str]


ReportFormats: TypeAlias = Mapping[str, ReportFormat]

REPORT_FORMATS: ReportFormats = {
    "json": ReportFormat((".json",), as_json),
    "junit": ReportFormat((".xml",), junit),
    "sarif": ReportFormat((".sarif", ".sarif.json"), sarif),
    "markdown": ReportFormat((".md", ".markdown"), markdown),
    "html": ReportFormat((".html", ".htm"), report_page),
    "badge": ReportFormat((".svg",), badge),
}
"""Of a report."""

FLEET_FORMATS: ReportFormats = {
    "json": ReportFormat((".json",), as_json),
    "html": ReportFormat((".html", ".htm"), fleet_page),
}
"""Of a fleet."""


class ReportFile(NamedTuple):
    """A report that is to be written: its form, and the file."""

    form: ReportFormat
    file: Path


def parse_report_option(text: str, forms: ReportFormats = REPORT_FORMATS) -> ReportFile:
    """What `report.html` or `junit=results.txt` asks for. Raises `TargetError` for what no form fits."""
    name, given, file = text.partition("=")
    if given and name in forms and file:
        return ReportFile(forms[name], Path(file))
    fitting = [(end, form) for form in forms.values() for end in form.suffixes if text.lower().endswith(end)]
    if not fitting:
        ends = ", ".join(f"{form} ({', '.join(each.suffixes)})" for form, each in forms.items())
        raise TargetError(
            f"{text!r} names no form of report; there are {ends}: give FILE with such an end, or FORM=FILE"
        )
    return ReportFile(max(fitting, key=lambda each: len(each[0]))[1], Path(text))


def write_reports(report: Report | Fleet, reports: Iterable[ReportFile]) -> None:
    """Write each of them, with the folder that it stands in. Raises `TargetError` for those that cannot be written,
    once the others are.
    """
    problems = [problem for each in reports if (problem := _write_problem(report, each))]
    if problems:
        raise TargetError("; ".join(problems))


def _write_problem(report: Report | Fleet, wanted: ReportFile) -> str | None:
    """Why it could not be written, if it could not."""
    try:
        wanted.file.parent.mkdir(parents=True, exist_ok=True)
        wanted.file.write_text(wanted.form.make(report), encoding="utf-8", newline="\n")
    except OSError as exc:
        return f"the report cannot be written to {wanted.file}: {exc.strerror}"
    return None
