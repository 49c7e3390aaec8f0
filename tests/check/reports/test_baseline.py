"""What is accepted, what is new, and what is stale."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

from accord.check.engine.baseline import Baseline, BaselineEntry, apply, load, save, update
from accord.check.engine.report import Report
from accord.cli.commands import accord
from accord.errors import TargetError

from tests.check.reports import samples

STDIO, HTTP = ("2025-11-25", "stdio"), ("2025-11-25", "http")


def failing(*places: tuple[str, str], symptom: str = "", rule: str = "tools/x", **given: Any) -> Report:
    """A rule that fails at these places, and passes at the other one."""
    outcomes = [
        samples.outcome(
            rule, "fail" if place in places else "pass", revision=place[0], transport=place[1], symptom=symptom, **given
        )
        for place in (STDIO, HTTP)
    ]
    return samples.report(outcomes, [samples.finding(rule, *places, symptom=symptom)] if places else [])


def accepted(*entries: BaselineEntry) -> Baseline:
    return Baseline(accepted=entries)


@pytest.mark.parametrize(
    ("entry", "known"),
    [
        (BaselineEntry(rule="tools/x"), True),
        (BaselineEntry(rule="tools/x", revision="2025-11-25"), True),
        (BaselineEntry(rule="tools/x", revision="2025-11-25", transport="stdio", symptom="silent"), True),
        (BaselineEntry(rule="tools/x", revision="2026-07-28"), False),
        (BaselineEntry(rule="tools/x", transport="http"), False),
        (BaselineEntry(rule="tools/x", symptom="gone"), False),
        (BaselineEntry(rule="tools/y"), False),
    ],
)
def test_an_entry_accepts_what_it_says_and_nothing_else(entry: BaselineEntry, known: bool) -> None:
    report = apply(failing(STDIO, symptom="silent"), accepted(entry))
    assert [each.known for each in report.findings] == [known]
    assert report.failed is not known or bool(report.stale)


def test_a_finding_that_is_seen_at_a_new_place_is_new() -> None:
    entry = BaselineEntry(rule="tools/x", transport="stdio")
    assert [each.known for each in apply(failing(STDIO, HTTP), accepted(entry)).findings] == [False]
    both = accepted(entry, BaselineEntry(rule="tools/x", transport="http"))
    assert [each.known for each in apply(failing(STDIO, HTTP), both).findings] == [True]


def test_of_two_causes_that_one_case_finds_an_entry_accepts_the_one_that_it_names() -> None:
    outcomes = [samples.outcome("tools/x", "fail", symptom=symptom) for symptom in ("shape:a", "shape:b")]
    report = samples.report(outcomes, [samples.finding("tools/x", symptom=each.symptom) for each in outcomes])
    accepts = update([report], Baseline()).accepted
    assert [each.symptom for each in accepts] == ["shape:a", "shape:b"]
    assert [each.known for each in apply(report, accepted(accepts[0])).findings] == [True, False]


def test_an_entry_whose_rule_passes_is_stale_and_fails() -> None:
    report = apply(failing(), accepted(BaselineEntry(rule="tools/x", revision="2025-11-25", symptom="silent")))
    assert report.stale == ("tools/x in 2025-11-25 (silent)",)
    assert report.failed


@pytest.mark.parametrize("verdict", ["not-applicable", "not-observed"])
def test_an_entry_whose_rule_was_not_judged_is_not_stale(verdict: Any) -> None:
    report = samples.report([samples.outcome("tools/x", verdict)])
    assert not apply(report, accepted(BaselineEntry(rule="tools/x"), BaselineEntry(rule="tools/never"))).stale


def test_an_entry_is_not_stale_while_its_rule_fails_for_the_cause_of_another() -> None:
    outcomes = [samples.outcome(rule, "fail", symptom="silent") for rule in ("tools/x", "tools/y")]
    report = samples.report(outcomes, [samples.finding("tools/x", also=("tools/y",), symptom="silent")])
    assert not apply(report, accepted(BaselineEntry(rule="tools/y"))).stale


def test_an_update_accepts_all_that_is_found_and_keeps_the_reasons() -> None:
    kept = BaselineEntry(rule="tools/x", why="until 3.0")
    stale, unjudged = BaselineEntry(rule="tools/z"), BaselineEntry(rule="tools/never")
    outcomes = [*failing(STDIO).outcomes, samples.outcome("tools/y", "fail"), samples.outcome("tools/z")]
    report = samples.report(outcomes, [samples.finding("tools/x"), samples.finding("tools/y")])
    assert update([report], accepted(stale, unjudged, kept)).accepted == (unjudged, kept, BaselineEntry(rule="tools/y"))


def test_an_update_names_the_places_where_others_pass() -> None:
    assert update([failing(STDIO, symptom="silent")], Baseline()).accepted == (
        BaselineEntry(rule="tools/x", revision="2025-11-25", transport="stdio", symptom="silent"),
    )
    assert update([failing(STDIO, HTTP)], Baseline()).accepted == (BaselineEntry(rule="tools/x"),)


def test_after_an_update_nothing_is_new_and_nothing_is_stale() -> None:
    report = samples.realistic()
    done = apply(report, update([report], Baseline()))
    assert all(each.known for each in done.findings)
    assert not done.stale
    assert not done.failed


def test_a_finding_whose_rule_passes_where_another_fails_for_its_cause_does_not_make_its_entry_stale() -> None:
    here = samples.outcome("tools/x", "fail", symptom="silent")
    there = [
        samples.outcome("tools/x", transport="http"),
        samples.outcome("tools/y", "fail", transport="http", symptom="silent"),
        samples.outcome("tools/x", revision="2024-11-05"),
    ]
    report = samples.report([here, *there], [samples.finding("tools/x", STDIO, HTTP, also=("tools/y",))])
    done = apply(report, update([report], Baseline()))
    assert (done.stale, done.failed) == ((), False)


def test_a_finding_of_some_runs_only_is_accepted_as_occasional_and_is_never_stale() -> None:
    runs = [failing(STDIO, HTTP), failing(), failing(STDIO, HTTP)]
    baseline = update(runs, Baseline())
    assert baseline.accepted == (BaselineEntry(rule="tools/x", occasional=True),)
    for report in runs:
        done = apply(report, baseline)
        assert (done.stale, done.failed) == ((), False)


def test_a_finding_at_other_places_in_each_run_does_not_fail_the_baseline_of_these_runs() -> None:
    runs = [failing(STDIO, symptom="silent"), failing(HTTP, symptom="silent"), failing(STDIO, HTTP, symptom="silent")]
    baseline = update(runs, Baseline())
    for report in runs:
        done = apply(report, baseline)
        assert (done.stale, done.failed) == ((), False)


def test_an_entry_that_no_run_confirms_is_removed_and_one_that_some_confirm_stays() -> None:
    stale = BaselineEntry(rule="tools/x", why="until 3.0")
    assert update([failing(), failing()], accepted(stale)).accepted == ()
    (kept,) = update([failing(), failing(STDIO, HTTP)], accepted(stale)).accepted
    assert (kept.rule, kept.occasional, kept.why) == ("tools/x", True, "until 3.0")


PINGS_NOT_ALWAYS = """
import json, pathlib, sys
starts = pathlib.Path(sys.argv[1])
starts.write_text(starts.read_text() + "x" if starts.exists() else "x")
is_faulty = len(starts.read_text()) in (2, 3)
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        info = {"name": "not always", "version": "1"}
        said = {"result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}}
    elif message["method"] == "ping" and not is_faulty:
        said = {"result": {}}
    else:
        said = {"error": {"code": -32601, "message": "unknown"}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
"""


def test_a_baseline_of_several_runs_holds_for_a_server_that_fails_in_some_of_them(tmp_path: Path) -> None:
    program, baseline = tmp_path / "server.py", tmp_path / "baseline.json"
    program.write_text(PINGS_NOT_ALWAYS)
    words = ["check", shlex.join([sys.executable, str(program), str(tmp_path / "starts")]), "--baseline", str(baseline)]
    words += ["--revision", "2025-11-25", "--only", "ping/answered"]
    written = CliRunner().invoke(accord, [*words, "--update-baseline", "--runs", "3"])
    assert (written.exit_code, written.exception) == (0, None), written.output
    assert [(each.rule, each.occasional) for each in load(baseline).accepted] == [("ping/answered", True)]
    (tmp_path / "starts").write_text("x")  # the next start, and the one that confirms it, are faulty again
    for _ in ("with the fault", "without it"):
        result = CliRunner().invoke(accord, words)
        assert result.exit_code == 0, result.output


def test_the_file_is_sorted_with_an_entry_a_line(tmp_path: Path) -> None:
    file = tmp_path / "new" / "baseline.json"
    save(accepted(BaselineEntry(rule="b/c", why='a "banner"'), BaselineEntry(rule="a/b", revision="2025-11-25")), file)
    assert file.read_text() == (
        '{\n  "format": 1,\n  "accepted": [\n'
        '    {"rule":"a/b","revision":"2025-11-25"},\n'
        '    {"rule":"b/c","why":"a \\"banner\\""}\n'
        "  ]\n}\n"
    )
    save(Baseline(), file)
    assert load(file) == Baseline()


texts = st.text(max_size=8)
maybe = st.none() | texts
entries = st.builds(
    BaselineEntry,
    rule=texts,
    revision=maybe,
    transport=st.sampled_from([None, "stdio", "http"]),
    symptom=maybe,
    why=texts,
)


@given(st.lists(entries))
def test_what_is_saved_is_loaded(tmp_path_factory: pytest.TempPathFactory, found: list[BaselineEntry]) -> None:
    file = tmp_path_factory.mktemp("baseline") / "baseline.json"
    save(accepted(*found), file)
    loaded = load(file)
    assert sorted(map(repr, loaded.accepted)) == sorted(map(repr, found))
    text = file.read_bytes()
    save(loaded, file)
    assert file.read_bytes() == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<<<<<<<", r"is not a baseline: JSON is malformed.*write it again with --update-baseline"),
        ('{"accepted": [{"rulee": "a/b"}]}', r"unknown field `rulee`.*accepted"),
        ('{"accepted": [{"why": "x"}]}', r"missing required field `rule`"),
        ('{"accepted": [{"rule": "a/b", "transport": "pigeon"}]}', r"pigeon.*accepted"),
        ('{"format": 2}', r"has format 2, but this version of accord reads 1"),
        ("[" * 100_000, r"is not a baseline"),
        ("\udcff", r"is not a baseline"),
    ],
)
def test_a_broken_file_is_an_error_that_says_what_to_do(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "baseline.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(TargetError, match=told):
        load(file)


def test_a_missing_file_is_an_error_that_says_what_writes_it(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"baseline\.json does not exist; write it with --update-baseline"):
        load(tmp_path / "baseline.json")


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"cannot be written to .*: Is a directory"):
        save(Baseline(), tmp_path)
