"""JUnit XML, as its readers read it."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import msgspec
from hypothesis import given, settings

from accord.check.engine.baseline import Baseline, BaselineEntry, apply
from accord.check.engine.report import UntestedRevision
from accord.check.reports.junit import junit
from accord.visible_text import visible

from tests.check.reports import samples
from tests.check.reports.hostile import TEXTS

ORDER = ("properties", "testcase", "system-out", "system-err")
"""In which a suite has its parts, by the schema of Ant."""


def read(text: str) -> Element:
    return ElementTree.fromstring(text)


def is_sound(root: Element) -> None:
    """What the schemas of Ant and of Jenkins ask for."""
    assert root.tag == "testsuites"
    assert not root.attrib
    for number, suite in enumerate(root):
        assert {"name", "timestamp", "hostname", "time", "package"} <= suite.attrib.keys()
        assert suite.get("id") == str(number)
        parts = [each.tag for each in suite]
        assert parts == sorted(parts, key=ORDER.index)
        for kind, name in (("testcase", "tests"), ("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert suite.get(name) == str(len(list(suite.iter(kind))))
        for case in suite.iter("testcase"):
            assert {"name", "classname", "time"} == case.attrib.keys()
            assert len(case) <= 1
            assert all(each.tag in ("skipped", "error", "failure") for each in case)
            assert all(each.get("type") for each in case if each.tag != "skipped")


def test_each_visit_is_a_suite_and_each_rule_of_it_a_case() -> None:
    root = read(junit(samples.realistic()))
    is_sound(root)
    rules = sum(map(len, samples.AREAS.values()))
    assert [len(suite.findall("testcase")) for suite in root] == [rules] * 10 + [1]
    assert root[0].get("name") == "2024-11-05 over stdio"


def test_a_broken_must_fails_with_what_was_seen_and_the_bytes() -> None:
    broken = samples.outcome("tools/x", "fail", text="a result came", cause="No look-up.", evidence=("→ {}", "← []"))
    failure = read(junit(samples.report([samples.outcome("tools/x"), broken]))).find(".//failure")
    assert failure is not None
    assert (failure.get("message"), failure.get("type")) == ("a result came", "must")
    assert failure.text == "the usual way: a result came\nNo look-up.\n→ {}\n← []"


def test_a_broken_should_does_not_fail_and_is_no_plain_pass() -> None:
    suite = read(junit(samples.report([samples.outcome("tools/x", "warn", level="should", text="it is slow")])))[0]
    assert suite.get("failures") == "0"
    assert [each.get("message") for each in suite.iter("skipped")] == ["warning: SHOULD broken: it is slow"]
    assert suite.findtext("system-out") == "warning: tools/x: it is slow"


def test_a_revision_that_could_not_be_tested_is_an_error_of_its_own() -> None:
    untested = UntestedRevision(revision="2025-06-18", transport="stdio", text="no answer to initialize in 5 s")
    report = msgspec.structs.replace(samples.realistic(), untested=(untested,))
    root = read(junit(report))
    is_sound(root)
    assert [each.get("message") for each in root.iter("error")] == ["not tested: no answer to initialize in 5 s"]


def test_what_was_not_judged_is_skipped_and_says_why() -> None:
    root = read(junit(samples.report([samples.outcome("a/b", "not-applicable", text="no tools")])))
    skipped = root.find(".//skipped")
    assert skipped is not None
    assert skipped.get("message") == "not applicable: no tools"


def test_what_the_baseline_has_is_skipped_and_what_is_stale_fails() -> None:
    outcomes = [samples.outcome("tools/x", "fail", text="wrong"), samples.outcome("tools/y")]
    known = Baseline(accepted=(BaselineEntry(rule="tools/x"), BaselineEntry(rule="tools/y")))
    root = read(junit(apply(samples.report(outcomes, [samples.finding("tools/x")]), known)))
    is_sound(root)
    assert [each.get("message") for each in root.iter("skipped")] == ["accepted by the baseline: wrong"]
    assert [each.get("type") for each in root.iter("failure")] == ["stale"]
    assert root[1].get("name") == "baseline"


def test_a_visit_that_ended_early_is_an_error() -> None:
    root = read(junit(samples.filled("it died")))
    assert [each.get("message") for each in root.iter("error")] == ["it died"]


@given(TEXTS)
@settings(max_examples=60)
def test_any_text_is_read_back_as_it_is_visible(text: str) -> None:
    root = read(junit(samples.filled(text)))
    is_sound(root)
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("message") == visible(text)
