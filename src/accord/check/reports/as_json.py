"""JSON: a complete report, or that of a fleet, for programs.

`format` is 1; an incompatible change will increase it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from accord.check.engine.fleet import Fleet
from accord.check.engine.report import Report
from accord.visible_text import encodable, readable

FORMAT = 1


def as_json(report: Report | Fleet) -> str:
    """Return the document."""
    return encode_indented(report_data(report))


def report_data(report: Report | Fleet) -> dict[str, Any]:
    """Return the report as JSON data, with `format` and `failed`."""
    conformant = {"conformant": not report.musts_broken} if isinstance(report, Report) else {}
    return {"format": FORMAT, "failed": report.failed, **conformant, **encodable(msgspec.to_builtins(report))}


def encode_indented(data: dict[str, Any]) -> str:
    """Return JSON for a file, indented unless its nesting would multiply its size."""
    return f"{readable(msgspec.json.encode(data))}\n"
