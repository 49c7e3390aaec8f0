"""The formats of reports by name and file suffix, and the writing of reports."""

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
from accord.file_replacement import write_file


class ReportFormat(NamedTuple):
    """A format of reports: its file suffixes, and the function that renders a report or a fleet."""

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
"""The formats of a report."""

FLEET_FORMATS: ReportFormats = {
    "json": ReportFormat((".json",), as_json),
    "html": ReportFormat((".html", ".htm"), fleet_page),
}
"""The formats of a fleet."""


class ReportFile(NamedTuple):
    """A report to write: its format and its file."""

    format: ReportFormat
    file: Path


def parse_report_option(text: str, formats: ReportFormats = REPORT_FORMATS) -> ReportFile:
    """Return the format and file of `report.html` or `junit=results.txt`. Raises `TargetError` for others."""
    name, separator, file = text.partition("=")
    if separator and name in formats and file:
        return ReportFile(formats[name], Path(file))
    matching = [
        (suffix, each) for each in formats.values() for suffix in each.suffixes if text.lower().endswith(suffix)
    ]
    if not matching:
        known = ", ".join(f"{name} ({', '.join(each.suffixes)})" for name, each in formats.items())
        raise TargetError(
            f"unknown report format {text!r}; formats: {known}; write FILE with such a suffix, or FORMAT=FILE"
        )
    return ReportFile(max(matching, key=lambda each: len(each[0]))[1], Path(text))


def write_reports(report: Report | Fleet, reports: Iterable[ReportFile]) -> None:
    """Write all reports, and create their folders. Raises `TargetError` afterwards for those that cannot be written."""
    problems = [problem for each in reports if (problem := _write_problem(report, each))]
    if problems:
        raise TargetError("; ".join(problems))


def _write_problem(report: Report | Fleet, wanted: ReportFile) -> str | None:
    """Write a report; return the error message if that fails, or None."""
    try:
        wanted.file.parent.mkdir(parents=True, exist_ok=True)
        write_file(wanted.file, wanted.format.make(report).encode())
    except OSError as exc:
        return f"the report cannot be written to {wanted.file}: {exc.strerror}"
    return None
