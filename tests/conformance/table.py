"""docs/conformance.md: which scenario of the official suite is played where, made of the scenarios themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from accord.messages.revision import REVISIONS

from tests.conformance import asking, basics, stateless  # noqa: F401  each declares its scenarios
from tests.conformance.clients import CLIENT_SCENARIOS
from tests.conformance.scenario import ELSEWHERE, SCENARIOS

HEAD = """# Conformance

The server of this page is [examples/everything.py](../examples/everything.py): the tools, resources and prompts that
the [official conformance suite](https://github.com/modelcontextprotocol/conformance) wants, by its names.

The suite itself is run against it, and against [tests/conformance/client.py](../tests/conformance/client.py), over
HTTP: [tests/conformance/test_official.py](../tests/conformance/test_official.py) plays all that 2025-11-25 and
2026-07-28 require, and what the suite only reports, but for authorization and tasks. Nothing may fail, nothing may
warn. `python -m tests.conformance.suite` prints the scores.

The suite speaks HTTP only, and says of two of the five revisions what they require. So its scenarios that are not about
HTTP itself are played here as well, over connections in memory, in every revision that has what they are about; what
passes is kept, for people to read. A ● is such a transcript. Every message of ours is held against the exact shape of
its revision.
"""


def page() -> str:
    """The page as Markdown."""
    lines = [HEAD, "## Servers\n", *_table(SCENARIOS.values(), ""), "", "## Clients\n"]
    lines += _table(CLIENT_SCENARIOS.values(), "client/")
    lines += ["", "## Not played in memory\n", "| | about |", "| --- | --- |"]
    lines += [f"| {name} | {why} |" for name, why in sorted(ELSEWHERE.items())]
    return "\n".join(lines) + "\n"


def _table(scenarios: Iterable[Any], folder: str) -> Iterator[str]:
    yield f"| | {' | '.join(REVISIONS)} | |"
    yield f"| --- | {' | '.join(':-:' for _ in REVISIONS)} | --- |"
    for scenario in scenarios:
        files = {
            revision: f"../tests/conformance/transcripts/{revision}/{folder}{scenario.name}.txt"
            for revision in REVISIONS
        }
        marks = [f"[●]({files[revision]})" if revision in scenario.revisions else "" for revision in REVISIONS]
        sentence = (inspect.getdoc(scenario.play) or "").split("\n\n")[0].replace("\n", " ")
        yield f"| {scenario.name} | {' | '.join(marks)} | {sentence} |"
