"""A badge in SVG, flat: `mcp 2026-07-28 | 100`."""

from __future__ import annotations

from accord.check.engine.report import Report
from accord.check.reports.html import Markup, joined, tag

_COLOURS = ((100, "#3c9a2c"), (95, "#7f9a17"), (80, "#a67c00"), (60, "#c05621"), (0, "#c3342f"))
"""The colours by minimum score, each readable with white text."""

_WIDTHS = {**dict.fromkeys("ijl.,:;|!'()[]", 3.9), **dict.fromkeys(" ftr-/", 4.6), **dict.fromkeys("mwMW@", 10.2)}
_WIDTH = 6.9
"""The approximate width of a character in Verdana 11 px; `textLength` makes it exact."""

_PADDING = 6


def badge(report: Report) -> str:
    """Return the badge of a report: the checked revisions and the score."""
    return draw_badge(_label(report), str(report.score) if report.visits else "unknown", colour(report))


def colour(report: Report) -> str:
    """Return the colour of the score."""
    return "#6b7280" if not report.visits else next(each for least, each in _COLOURS if report.score >= least)


def draw_badge(label: str, value: str, colour: str) -> str:
    """Return SVG with two texts side by side."""
    left, right = _width(label), _width(value)
    title = f"{label}: {value}"
    drawing = tag(
        "svg",
        tag("title", title),
        tag("clipPath", tag("rect", width=left + right, height=20, rx=3), id="round"),
        tag(
            "g",
            tag("rect", width=left, height=20, fill="#454a52"),
            tag("rect", x=left, width=right, height=20, fill=colour),
            clip_path="url(#round)",
        ),
        tag("g", _text(label, 0, left), _text(value, left, right), fill="#fff", font_size=11, **_FONT),
        xmlns="http://www.w3.org/2000/svg",
        width=left + right,
        height=20,
        viewBox=f"0 0 {left + right} 20",
        role="img",
        aria_label=title,
    )
    return f"{drawing}\n"


_FONT = {"font_family": "Verdana,Geneva,DejaVu Sans,sans-serif", "text_anchor": "middle"}


def _label(report: Report) -> str:
    revisions = sorted({each.revision for each in report.visits})
    return f"mcp {revisions[0]} to {revisions[-1]}" if len(revisions) > 1 else " ".join(["mcp", *revisions])


def _width(text: str) -> int:
    return round(_inner(text)) + 2 * _PADDING


def _inner(text: str) -> float:
    return sum(_WIDTHS.get(each, _WIDTH) for each in text)


def _text(text: str, left: int, width: int) -> Markup:
    """Return the text centred in its half, with a shadow."""
    middle, length = f"{left + width / 2:g}", f"{_inner(text):g}"
    return joined(
        tag("text", text, x=middle, y=15, textLength=length, fill="#010101", fill_opacity="0.3", aria_hidden="true"),
        tag("text", text, x=middle, y=14, textLength=length),
    )
