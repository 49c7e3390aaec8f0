"""JSON: the whole report, for programs. `format` is 1 until what they read would have to be read otherwise."""

from __future__ import annotations

from typing import Any

import msgspec

from accord.check.report import Report
from accord.check.reports.visible import storable

FORMAT = 1


def as_json(report: Report) -> str:
    """The document."""
    return dumped(data(report))


def data(report: Report) -> dict[str, Any]:
    """The report as JSON data, with its format and whether it failed."""
    return {"format": FORMAT, "failed": report.failed, **storable(msgspec.to_builtins(report))}


def dumped(data: dict[str, Any]) -> str:
    """JSON for files, indented."""
    return f"{msgspec.json.format(msgspec.json.encode(data), indent=2).decode()}\n"
