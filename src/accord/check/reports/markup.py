"""HTML and SVG that cannot be broken by what stands in it: a plain text is always escaped, only `tag` makes markup."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from accord.check.reports.visible_text import escape_characters, runs, visible

_WEB = re.compile(r"https?://[!-~]+")


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


ElementContent: TypeAlias = "str | Markup | Iterable[str | Markup]"

_VOID = frozenset(("meta", "input", "br"))


def tag(name: str, /, *inside: ElementContent, **attributes: str | int | bool) -> Markup:
    """An element. Of the names of attributes a last `_` is left out and others are `-`; True stands for its name alone,
    False for none.
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{joined(*inside)}</{name}>")


def joined(*inside: ElementContent) -> Markup:
    """One after the other; what is not markup is escaped."""
    return Markup(
        "".join(_escape_part(each) for part in inside for each in ([part] if isinstance(part, str) else part))
    )


def untrusted_text(text: str) -> Markup:
    """What others wrote: isolated from the direction of writing around it, with what hides as a marked number."""
    pieces = [tag("mark", escape_characters(run)) if hidden else escape(run) for hidden, run in runs(text)]
    return Markup(f"<bdi>{''.join(pieces)}</bdi>")


def link(url: str) -> Markup:
    """A link to the web; any other address is no link, only its text."""
    return tag("a", url, href=url, rel="noreferrer") if is_web(url) else untrusted_text(url)


def is_web(url: str) -> bool:
    """Whether it is an address of the web, fit to be followed."""
    return _WEB.fullmatch(url) is not None


def _escape_part(text: str) -> str:
    return text if isinstance(text, Markup) else escape(visible(text))


def _attribute(key: str, value: str | int | bool) -> str:
    name = key.removesuffix("_").replace("_", "-")
    if isinstance(value, bool):
        return f" {name}" if value else ""
    return f' {name}="{escape(visible(str(value)))}"'
