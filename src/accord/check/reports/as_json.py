"""JSON: the whole of a report, or of a fleet, for programs.

`format` is 1 until what they read would have to be read otherwise.
"""

from __future__ import annotations

from typing import Any

import msgspec

from accord.check.engine.fleet import Fleet
from accord.check.engine.report import Report
from accord.check.reports.wording import encodable

FORMAT = 1


def as_json(report: Report | Fleet) -> str:
    """The document."""
    return encode_indented(report_data(report))


def report_data(report: Report | Fleet) -> dict[str, Any]:
    """The same as JSON data, with its format and whether it failed."""
    conformant = {"conformant": not report.musts_broken} if isinstance(report, Report) else {}
    return {"format": FORMAT, "failed": report.failed, **conformant, **encodable(msgspec.to_builtins(report))}


def encode_indented(data: dict[str, Any]) -> str:
    """JSON for files, indented."""
    return f"{msgspec.json.format(msgspec.json.encode(data), indent=2).decode()}\n"
