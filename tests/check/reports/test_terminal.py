"""The report at a terminal."""

from __future__ import annotations

import click
from hypothesis import given, settings, strategies as st

from accord.check.reports.terminal import report_lines
from accord.visible_text import is_hidden

from tests.check.reports import samples
from tests.check.reports.hostile import TEXTS


def plain(lines: object) -> str:
    return click.unstyle("\n".join(lines))  # type: ignore[call-overload]


def test_a_finding_is_reported_with_all_that_helps_to_mend_it() -> None:
    first = plain(report_lines(samples.realistic(), width=120)).split("\n\n")[0]
    assert first.splitlines() == [
        "✗ tools/unknown-name  MUST  in all 10 visits",
        "  seen    a result came for 'no-such-tool-5f1c'",
        "  wanted  A call of a tool that does not exist is answered with an error.",
        "  cause   The handler answers whatever name it is given. Look the name up first, and answer -32602.",
        "  also    prompts/unknown-name",
        *(f"  {line}" for line in samples.EVIDENCE),
        f"  see     {samples.SPECIFICATION}/2025-11-25/server/tools#error-handling",
        "  repeat  accord check 'python examples/weather.py' --only tools/unknown-name --revision 2025-11-25",
    ]


def test_the_board_has_a_row_for_each_visit_and_the_last_line_sums_up() -> None:
    *lines, last = plain(report_lines(samples.realistic())).splitlines()
    assert "2026-07-28  http          81      14       2       1             2               2      0.3" in lines
    assert last == (
        "not conformant: 3 MUSTs broken; score 81: 15 rules passed, 3 failed, 1 warned, 2 not observed; "
        "4 findings; 1 known; "
        "702 generated cases (seed 7); 12.3 s"
    )


def test_findings_of_the_sdk_are_apart_from_those_of_the_server() -> None:
    findings = [samples.finding("a/b", sdk="mcp 1.30.0"), samples.finding("c/d"), samples.finding("e/f")]
    lines = plain(report_lines(samples.report([], findings, sdk="mcp 1.30.0"))).splitlines()
    rules = [line.split()[1] for line in lines if line.startswith("✗")]
    own, of_sdk = (
        lines.index(heading)
        for heading in (
            "In your server",
            "In mcp 1.30.0, the SDK: upgrade it, or report the bug to its maintainers",
        )
    )
    assert rules == ["c/d", "e/f", "a/b"]
    assert own < lines.index("✗ c/d  MUST  2025-11-25 over stdio") < of_sdk
    assert lines[-1].startswith("not conformant: 3 MUSTs broken (1 by the SDK, mcp 1.30.0); score")


def test_stale_entries_and_visits_that_ended_early_are_reported() -> None:
    text = plain(report_lines(samples.filled("it died")))
    assert "2025-11-25 over stdio ended early: it died" in text
    assert "in the baseline, but no longer found: it died; remove the entry" in text


def test_evidence_is_shortened_to_the_width_unless_all_is_wanted() -> None:
    long = samples.report([], [samples.finding("a/b", evidence=("← " + "x" * 500,))])
    assert "… (502 characters)" in plain(report_lines(long, width=80))
    assert "x" * 500 in plain(report_lines(long, width=80, verbose=True))


def test_a_finding_of_a_recorded_check_names_the_lines_of_the_session_file() -> None:
    recorded = samples.report([], [samples.finding("a/b", entries=(12, 13, 14, 18))])
    assert "file    lines 14 to 16, 20 of the session file" in plain(report_lines(recorded))
    assert "of the session file" not in plain(report_lines(samples.realistic()))


def test_a_text_of_megabytes_is_cut_before_it_is_wrapped() -> None:
    long = samples.report([], [samples.finding("a/b", text="x" * 5_000_000)])
    text = plain(report_lines(long, width=80))
    assert "… (5,000,000 characters)" in " ".join(text.split())
    assert len(text) < 50_000


def test_known_findings_are_reported_only_on_request() -> None:
    assert "stdio/only-messages" not in plain(report_lines(samples.realistic()))
    assert "✗ stdio/only-messages  MUST, known" in plain(report_lines(samples.realistic(), verbose=True))


def test_a_clean_report_is_a_board_and_one_line() -> None:
    lines = plain(report_lines(samples.report([samples.outcome("a/b")]))).splitlines()
    assert len(lines) == 4
    assert lines[-1] == "no MUST broken; score 100: 1 rule passed; 12.3 s"


@given(TEXTS, st.integers(0, 200))
@settings(max_examples=60)
def test_no_text_steers_the_terminal(text: str, width: int) -> None:
    lines = list(map(click.unstyle, report_lines(samples.filled(text), width=width, verbose=True)))
    assert not any(is_hidden(each) for line in lines for each in line)
    assert not any("\n" in line for line in lines)
