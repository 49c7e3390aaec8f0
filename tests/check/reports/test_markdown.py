"""The comment: short, and no text of a peer's is Markdown in it."""

from __future__ import annotations

import re

from hypothesis import given, settings

from accord.check.reports.markdown import markdown

from tests.check.reports import samples
from tests.check.reports.hostile import TEXTS


def test_the_comment_has_the_score_the_board_and_each_finding_folded() -> None:
    text = markdown(samples.realistic())
    assert text.startswith(
        "### accord check: not conformant: 3 MUSTs broken; score 81\n\n"
        "<p><code>weather 1.4.2</code></p>\n\n15 rules passed, 3 failed"
    )
    assert "| 2026-07-28 | http | 81 | 2 | 1 | 14 | 2 | 2 |" in text
    assert text.count("<details>") == text.count("</details>") == 4
    assert "<summary>✗ MUST <code>http/origin</code>: A request whose Origin" in text


def test_the_comment_says_how_many_findings_it_has_no_room_for() -> None:
    findings = [samples.finding(f"a/b{number}", evidence=("← " + "x" * 590,) * 12) for number in range(50)]
    text = markdown(samples.report([samples.outcome("a/b")], findings))
    told = re.search(r"(\d+) more findings: see the other reports\.", text)
    assert told is not None
    assert int(told[1]) + text.count("<details>") == 50
    assert len(text) <= 60_100


@given(TEXTS.filter(str.strip))
@settings(max_examples=60)
def test_no_text_escapes_from_its_html(text: str) -> None:
    blocks = markdown(samples.filled(text)).rstrip("\n").split("\n\n")
    heads = [re.match(r"###|<p>|\d|\||<details>", block) for block in blocks]
    assert [each[0] if each else None for each in heads] == ["###", "<p>", "0", "|", "<p>", "<p>", "<details>"]
    assert all(block.endswith("</p>") for block in blocks if block.startswith("<p>"))
    assert blocks[-1].endswith("</details>")
    assert blocks[-1].count("</details>") == 1
    assert "<script" not in blocks[-1]
