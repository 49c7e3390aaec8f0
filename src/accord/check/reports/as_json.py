"""JSON: the whole report, for programs. `format` is 1 until what they read would have to be read otherwise."""

from __future__ import annotations

from typing import Any

import msgspec

from accord.check.report import Report
from accord.check.reports.visible import storable

FORMAT = 1


def as_json(report: Report) -> str:
    """The report, with its format and whether it failed."""
    return dumped({"format": FORMAT, "failed": report.failed, **msgspec.to_builtins(report)})


def dumped(data: dict[str, Any]) -> str:
    """JSON for files: indented, every text storable."""
    return f"{msgspec.json.format(msgspec.json.encode(storable(data)), indent=2).decode()}\n"
