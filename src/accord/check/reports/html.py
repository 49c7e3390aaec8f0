"""Safe HTML and SVG: plain texts are always escaped, only `tag` makes markup.

A page is one self-contained file, whose Content-Security-Policy allows only its own style and script. Drawings are SVG:
a ring for a score, a bar for verdicts, a line for a history. Their colours are in the style of the page.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from math import pi
from pathlib import Path
from typing import TypeAlias

from accord.check.engine.report import Verdict
from accord.check.reports.wording import WORDS
from accord.visible_text import escape_characters, runs, single_line, visible

_WEB = re.compile(r"https?://[!-~]+")


class Markup(str):
    """A text that is markup, and is not escaped again."""

    __slots__ = ()


ElementContent: TypeAlias = "str | Markup | Iterable[str | Markup]"

_VOID = frozenset(("meta", "input", "br"))


def tag(name: str, /, *inside: ElementContent, **attributes: str | int | bool) -> Markup:
    """Return an element. In attribute names, a final `_` is removed and others become `-`; True is a boolean attribute,
    False omits it.
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{joined(*inside)}</{name}>")


def joined(*inside: ElementContent) -> Markup:
    """Return the concatenation; texts that are not markup are escaped."""
    return Markup(
        "".join(_escape_part(each) for part in inside for each in ([part] if isinstance(part, str) else part))
    )


def untrusted_text(text: str) -> Markup:
    """Return a text of the peer as markup, with its writing direction isolated and hidden characters escaped."""
    pieces = [tag("mark", escape_characters(run)) if hidden else escape(run) for hidden, run in runs(text)]
    return Markup(f"<bdi>{''.join(pieces)}</bdi>")


def link(url: str) -> Markup:
    """Return a link for an HTTP URL, and plain text for any other URL."""
    return tag("a", url, href=url, rel="noreferrer") if is_web(url) else untrusted_text(url)


def is_web(url: str) -> bool:
    """Return whether a text is an HTTP URL."""
    return _WEB.fullmatch(url) is not None


def _escape_part(text: str) -> str:
    return text if isinstance(text, Markup) else escape(visible(text))


def _attribute(key: str, value: str | int | bool) -> str:
    name = key.removesuffix("_").replace("_", "-")
    if isinstance(value, bool):
        return f" {name}" if value else ""
    return f' {name}="{escape(visible(str(value)))}"'


_HERE = Path(__file__).parent


def page(title: str, *body: ElementContent) -> str:
    """Return the document."""
    style, script = _read("page.css"), _read("page.js")
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    head = tag(
        "head",
        "\n",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=f"{policy}; base-uri 'none'; form-action 'none'"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", single_line(title)),
        tag("style", style),
        "\n",
    )
    document = tag("html", head, "\n", tag("body", *body, "\n", tag("script", script)), lang="en")
    return f"<!doctype html>\n{document}\n"


def _read(name: str) -> Markup:
    return Markup((_HERE / name).read_text(encoding="utf-8"))


def _hash(source: str) -> str:
    """Return the hash of a text for the Content-Security-Policy."""
    return f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"


_BAR: tuple[Verdict, ...] = ("pass", "warn", "fail", "not-observed", "not-applicable")
_RADIUS = 42


def grade(score: int) -> str:
    """Return the CSS class of a score: `good`, `fair` or `poor`."""
    return "good" if score == 100 else "fair" if score >= 80 else "poor"


def ring(score: int) -> Markup:
    """Return a ring with the score in it, drawn as the fraction of a circle."""
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
    """Return a bar with a part for each verdict."""
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
    """Return a line of the scores, the oldest first, with a dot for the last one."""
    step = 100 / max(len(scores) - 1, 1)
    points = [(number * step, 22 - 20 * each / 100) for number, each in enumerate(scores)]
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line = tag("polyline", points=drawn, fill="none", vector_effect="non-scaling-stroke")
    dots = [tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=2) for x, y in points[-1:]]
    words = f"scores so far: {', '.join(map(str, scores))}"
    return tag("svg", line, *dots, class_="spark", viewBox="-4 -2 108 28", role="img", aria_label=words)
