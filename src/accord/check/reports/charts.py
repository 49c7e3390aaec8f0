"""Small drawings in SVG: a ring for a score, a bar for verdicts, a line for a history. Colours come from the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import pi

from accord.check.report import Verdict
from accord.check.reports.markup import Markup, tag
from accord.check.reports.wording import WORDS

_BAR: tuple[Verdict, ...] = ("pass", "warn", "fail", "not-observed", "not-applicable")
_RADIUS = 42


def grade(score: int) -> str:
    """The class of a score: `good`, `fair` or `poor`."""
    return "good" if score == 100 else "fair" if score >= 80 else "poor"


def ring(score: int) -> Markup:
    """The score in a ring that is closed as far."""
    around = 2 * pi * _RADIUS
    circle: dict[str, str | int] = {"cx": 50, "cy": 50, "r": _RADIUS, "fill": "none", "stroke_width": 8}
    arc = tag(
        "circle",
        **circle,
        class_=f"arc {grade(score)}",
        stroke_dasharray=f"{around * score / 100:.2f} {around:.2f}",
        transform="rotate(-90 50 50)",
    )
    number = tag("text", str(score), x=50, y=52, text_anchor="middle", dominant_baseline="middle")
    parts = (tag("circle", **circle, class_="track"), arc if score else "", number)
    return tag("svg", *parts, class_="ring", viewBox="0 0 100 100", role="img", aria_label=f"score {score} of 100")


def bar(counts: Mapping[Verdict, int]) -> Markup:
    """The verdicts as parts of one bar."""
    total = sum(counts.values()) or 1
    words = ", ".join(f"{counts.get(each, 0)} {WORDS[each]}" for each in _BAR)
    parts, left = [tag("title", words)], 0.0
    for verdict in _BAR:
        width = 100 * counts.get(verdict, 0) / total
        if width:
            parts.append(tag("rect", x=f"{left:.2f}", width=f"{width:.2f}", height=6, class_=verdict))
        left += width
    return tag(
        "svg", *parts, class_="bar", viewBox="0 0 100 6", preserveAspectRatio="none", role="img", aria_label=words
    )


def sparkline(scores: Sequence[int]) -> Markup:
    """The scores of earlier runs, the oldest first, and the last as a dot."""
    step = 100 / max(len(scores) - 1, 1)
    points = [(number * step, 22 - 20 * each / 100) for number, each in enumerate(scores)]
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line = tag("polyline", points=drawn, fill="none", vector_effect="non-scaling-stroke")
    dots = [tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=2) for x, y in points[-1:]]
    words = f"scores so far: {', '.join(map(str, scores))}"
    return tag("svg", line, *dots, class_="spark", viewBox="-4 -2 108 28", role="img", aria_label=words)
