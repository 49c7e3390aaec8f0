"""docs/requirements.md, made of `accord.check.requirements` and of the rules.

`pytest tests/check/test_requirements_table.py --update` writes the page anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from accord.check.engine.findings import spec_url
from accord.check.engine.rule import Rule
from accord.check.requirements import EXTENSIONS, KINDS, Kind, Sentence, sentences
from accord.check.rules import rules_by_role
from accord.check.settings import LEVELS
from accord.messages.base import Life
from accord.messages.revision import REVISIONS

HEAD = """# Requirements

This page lists every sentence of the specification with MUST, SHOULD or MAY, in five revisions and the extensions
for tasks and authorization. For each sentence it names the rules of [`accord check`](checking.md) that judge it, or the
reason why no rule can.

A sentence is identified by its page and its number on that page; the text is in the specification. The page `schema`
stands for the comments in `schema.ts`: there, paragraphs and list items count, also those that have "must" or "should"
in lower case. This page is generated from `check/requirements` and `check/rules`. Tests fail if it is out of date, or
if a sentence of the specification is missing.
"""

MEANINGS: dict[Kind, str] = {
    "rule": "judged by rules; each rule has a case that detects a violation",
    "inside": "about internal behaviour, which no message shows",
    "permission": "a permission; accord check accepts both behaviours",
    "person": "about users, user interfaces, models or operators",
    "heading": "introduces other sentences, which are counted themselves, or defines a term",
    "third-party": "about what only a login shows of an authorization server, or about an identity provider",
    "advice": "a recommendation that no message shows",
}

REPOSITORY = "https://github.com/modelcontextprotocol/modelcontextprotocol/blob/main"

SOURCES = (*REVISIONS, *EXTENSIONS)

ROLES = {role: rules for role, rules in rules_by_role().items() if rules}
"""The rules, by whom they are about."""

NUMBER = len("01")
"""Digits of a sentence's number, at least."""


def page() -> str:
    """The page as Markdown."""
    return "\n".join([HEAD, *_sentences(), *_rules(), *_map()])


# --- the counts ------------------------------------------------------------------------------------------------------


def _sentences() -> Iterator[str]:
    counted = Counter((each.kind, each.source) for each in sentences())
    yield "## Summary\n"
    yield from _head(("sentences", *SOURCES, "all", "meaning"))
    for kind in KINDS:
        yield _line((kind, *_numbers(counted[kind, source] for source in SOURCES), MEANINGS[kind]))
    totals = (sum(counted[kind, source] for kind in KINDS) for source in SOURCES)
    yield _line(("all", *_numbers(totals), ""))
    yield ""


def _numbers(found: Iterable[int]) -> tuple[str, ...]:
    """Numbers, and their sum."""
    numbers = list(found)
    return tuple(f"{number:,}" for number in (*numbers, sum(numbers)))


def _rules() -> Iterator[str]:
    yield from _head(("rules", *LEVELS, "all", "cases"))
    for role, rules in ROLES.items():
        levels = Counter(rule.level for rule in rules)
        cases = sum(len(rule.cases) for rule in rules)
        yield _line((f"about {role}", *_numbers(levels[level] for level in LEVELS), f"{cases:,}"))
    yield ""


# --- the map ---------------------------------------------------------------------------------------------------------


def _map() -> Iterator[str]:
    for name in sorted({each.page for each in sentences()}):
        yield from _page(name, [each for each in sentences() if each.page == name])
    for role, rules in ROLES.items():
        yield from _listed(f"Rules about {role}", rules)


def _page(name: str, found: Sequence[Sentence]) -> Iterator[str]:
    """A row for each outcome, with the sentences of each source that share it."""
    sources = [source for source in SOURCES if any(each.source == source for each in found)]
    rows: dict[tuple[Kind, str], list[Sentence]] = {}
    for each in found:
        rows.setdefault((each.kind, each.rest), []).append(each)
    yield f"## {name}\n"
    yield from _head((*(_linked(name, source) for source in sources), "kind", "rules, or the reason why there is none"))
    for (kind, rest), group in rows.items():
        yield _line((*(_in(source, group) for source in sources), kind, _outcome(kind, rest)))
    yield ""


def _linked(name: str, source: str) -> str:
    """A source, and where it has the page."""
    return source if source in EXTENSIONS else f"[{source}]({_address(name, source)})"


def _address(name: str, revision: str) -> str:
    """Not every revision has its schema for a page of its site: all have it in the repository."""
    return f"{REPOSITORY}/schema/{revision}/schema.ts" if name == "schema" else spec_url(name, revision)


def _in(source: str, group: Iterable[Sentence]) -> str:
    """The numbers of the sentences that a source has of them: `03, 05-08`."""
    numbers = sorted(_number(each) for each in group if each.source == source)
    runs = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    return ", ".join(_span([number for _, number in run]) for _, run in runs)


def _span(run: Sequence[int]) -> str:
    first, last = (f"{number:0{NUMBER}}" for number in (run[0], run[-1]))
    return first if len(run) == 1 else f"{first}-{last}"


def _number(sentence: Sentence) -> int:
    return int(sentence.id.partition("#")[2])


def _outcome(kind: Kind, rest: str) -> str:
    return ", ".join(f"`{id}`" for id in rest.split()) if kind == "rule" else _escaped(rest)


# --- the rules -------------------------------------------------------------------------------------------------------


def _listed(title: str, rules: Iterable[Rule]) -> Iterator[str]:
    yield f"## {title}\n"
    yield from _head(("rule", "level", "revisions", "cases", "requirement"))
    for rule in rules:
        yield _line((f"`{rule.id}`", rule.level, _life(rule.life), f"{len(rule.cases)}", _escaped(rule.says)))
    yield ""


def _life(life: Life) -> str:
    """From the first revision to the last: `2025-06-18 to 2025-11-25`; `all`."""
    first = life.since or REVISIONS[0]
    last = REVISIONS[REVISIONS.index(life.until) - 1] if life.until else REVISIONS[-1]
    if (first, last) == (REVISIONS[0], REVISIONS[-1]):
        return "all"
    return first if first == last else f"{first} to {last}"


def _head(cells: Sequence[str]) -> Iterator[str]:
    yield _line(cells)
    yield _line(["---"] * len(cells))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
