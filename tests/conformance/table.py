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

The [official conformance suite](https://github.com/modelcontextprotocol/conformance) speaks HTTP only, and says of two
of the five revisions what they require. Its scenarios that are not about HTTP itself are played here without it, over
connections in memory, in every revision that has what they are about; what passes is kept, for people to read. A ● is
such a transcript.

The server is [tests/conformance/server.py](../tests/conformance/server.py): the tools, resources and prompts that the
suite wants, by its names. Every message of ours is held against the exact shape of its revision as well.
"""


def page() -> str:
    """The page as Markdown."""
    lines = [HEAD, "## Servers\n", *_table(SCENARIOS.values(), ""), "", "## Clients\n"]
    lines += [*_table(CLIENT_SCENARIOS.values(), "client/"), "", "## Not played here\n", "| | about |", "| --- | --- |"]
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
