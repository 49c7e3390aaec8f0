"""One HTML file that needs nothing else, and may do nothing else: its policy allows its own style and script only."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from accord.check.reports.markup import ElementContent, Markup, tag
from accord.check.reports.visible_text import single_line

_HERE = Path(__file__).parent


def page(title: str, *body: ElementContent) -> str:
    """The document."""
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
    """What the policy calls this very text."""
    return f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"
