"""docs/conformance.md: which scenario of the official suite is played where, made of the scenarios themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from accord.messages.revision import REVISIONS

from tests.conformance import basics, input_requests, stateless  # noqa: F401  each declares its scenarios
from tests.conformance.clients import CLIENT_SCENARIOS
from tests.conformance.scenario import ELSEWHERE, SCENARIOS

HEAD = """# Official conformance suite

The [official conformance suite](https://github.com/modelcontextprotocol/conformance) tests accord in two ways.

**Over HTTP**, the suite itself runs against the server [examples/everything.py](../examples/everything.py), which has
the tools, resources and prompts that the suite requires, and against the client
[tests/conformance/client.py](../tests/conformance/client.py).
[tests/conformance/test_official.py](../tests/conformance/test_official.py) runs all scenarios for 2025-11-25 and
2026-07-28, required and informational, the authorization of clients included, except those of extensions, and those of
clients for 2025-03-26. The two scenarios for authorization servers run against [`OAuthProxy`](oauth-proxy.md)
([tests/conformance/test_authorization_server.py](../tests/conformance/test_authorization_server.py)). The tests permit
no failure and no warning.
`python -m tests.conformance.suite` prints the scores.

**In memory**, the tests of accord run the scenarios of the suite that do not concern HTTP, because the suite uses only
HTTP and covers only two of the five revisions. They run in every revision that has the feature. Each message of accord
is validated strictly against the types of its revision. In the tables, ● links to the transcript.
"""


def page() -> str:
    """The page as Markdown."""
    lines = [HEAD, "## Servers\n", *_table(SCENARIOS.values(), ""), "", "## Clients\n"]
    lines += _table(CLIENT_SCENARIOS.values(), "client/")
    lines += ["", "## Scenarios not run in memory\n", "| scenario | reason |", "| --- | --- |"]
    lines += [f"| {name} | {why} |" for name, why in sorted(ELSEWHERE.items())]
    return "\n".join(lines) + "\n"


def _table(scenarios: Iterable[Any], folder: str) -> Iterator[str]:
    yield f"| scenario | {' | '.join(REVISIONS)} | content |"
    yield f"| --- | {' | '.join(':-:' for _ in REVISIONS)} | --- |"
    for scenario in scenarios:
        files = {
            revision: f"../tests/conformance/transcripts/{revision}/{folder}{scenario.name}.txt"
            for revision in REVISIONS
        }
        marks = [f"[●]({files[revision]})" if revision in scenario.revisions else "" for revision in REVISIONS]
        sentence = (inspect.getdoc(scenario.play) or "").split("\n\n")[0].replace("\n", " ")
        yield f"| {scenario.name} | {' | '.join(marks)} | {sentence} |"
