"""Progress: what stays is said once, and what moves is one line."""

from __future__ import annotations

import click

from accord.check.reports.progress_display import FleetProgressDisplay, ProgressDisplay

from tests.check.reports import samples

VISITS = samples.realistic().visits


def test_without_a_terminal_there_is_a_line_for_each_visit_that_ends() -> None:
    said: list[str] = []
    live = ProgressDisplay(said.append)
    live.visit_began("2024-11-05", "stdio", 21)
    live.case_done(samples.outcome("tools/x", "fail", revision="2024-11-05"))
    assert not said
    live.visit_ended(VISITS[0])
    assert click.unstyle("\n".join(said)) == (
        "✗ 2024-11-05 over stdio: score 90, 13 rules passed, 2 failed, 1 warned, 2 not observed, 3 not applicable; "
        "0.3 s"
    )


def test_at_a_terminal_one_line_moves_with_all_that_runs() -> None:
    said: list[str] = []
    moved: list[str] = []
    live = ProgressDisplay(said.append, moved.append, width=200)
    live.visit_began("2024-11-05", "stdio", 4)
    live.case_done(samples.outcome("tools/x", "fail", revision="2024-11-05"))
    live.visit_began("2026-07-28", "http", 0)
    assert moved == [
        "2024-11-05 over stdio ░░░░░░░░░░░░░░░░ 0/4",
        "2024-11-05 over stdio ████░░░░░░░░░░░░ 1/4  1 failed  tools/x",
        "2024-11-05 over stdio ████░░░░░░░░░░░░ 1/4  1 failed  tools/x  ·  2026-07-28 over http ░░░░░░░░░░░░░░░░ 0/0",
    ]
    live.visit_ended(VISITS[0])
    assert moved[-1] == "2026-07-28 over http ░░░░░░░░░░░░░░░░ 0/0"


def test_the_line_that_moves_is_never_wider_than_the_terminal() -> None:
    moved: list[str] = []
    live = ProgressDisplay(print, moved.append, width=30)
    live.visit_began("2024-11-05", "stdio", 4)
    assert [len(line) for line in moved] == [29]


def test_more_cases_than_were_announced_do_not_break_the_bar() -> None:
    moved: list[str] = []
    live = ProgressDisplay(print, moved.append)
    live.visit_began("2025-11-25", "stdio", 1)
    for _ in range(2):
        live.case_done(samples.outcome("tools/x"))
    assert moved[-1] == "2025-11-25 over stdio ████████████████ 2/1  tools/x"


def test_a_case_of_a_visit_that_never_began_is_no_matter() -> None:
    ProgressDisplay(print).case_done(samples.outcome("tools/x"))


def test_of_a_fleet_each_server_has_a_line_when_it_ends() -> None:
    said: list[str] = []
    live = FleetProgressDisplay(5, said.append)
    for checked in samples.fleet().servers:
        live.server_began(checked.name).visit_began("2025-11-25", "stdio", 3)
        live.server_ended(checked)
    assert list(map(click.unstyle, said)) == [
        "✗ weather: score 81, 15 rules passed, 3 failed, 1 warned, 2 not observed; 12.3 s",
        "✓ git: score 98, 1 rule passed, 1 warned; 4.2 s",
        "✓ memory: score 100, 1 rule passed; 3.1 s",
        "✗ broken: the server ended at once (exit code 1): no module named 'mcp'; 0.2 s",
        "✓ newcomer: score 100, 1 rule passed; 1.0 s",
    ]


def test_of_a_fleet_one_line_moves_with_all_servers_that_are_under_way() -> None:
    moved: list[str] = []
    live = FleetProgressDisplay(5, print, moved.append, width=200)
    git, weather = live.server_began("git"), live.server_began("weather")
    git.visit_began("2025-11-25", "stdio", 4)
    weather.visit_began("2024-11-05", "http", 4)
    bar = "░" * 16
    assert moved[-1] == f"0/5  ·  git 2025-11-25 over stdio {bar} 0/4  ·  weather 2024-11-05 over http {bar} 0/4"
    live.server_ended(samples.fleet().servers[1])
    weather.visit_ended(VISITS[1])
    weather.visit_began("2026-07-28", "http", 4)
    assert moved[-1] == f"1/5  ·  weather 2026-07-28 over http {bar} 0/4"
