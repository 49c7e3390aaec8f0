"""The runner, and the texts of results."""

from __future__ import annotations

from accord.host.doctor.diagnosis import Step, StepResult, StepTable, diagnose
from accord.host.doctor.known_facts import KnownFacts, Subject

from tests.host.doctor.conftest import Diagnose, text


def result_of(*results: StepResult) -> StepTable:
    """Steps with these results."""

    def step(result: StepResult) -> Step:
        async def check(facts: KnownFacts) -> StepResult:
            facts.redactor.add_permanent(["a-permanent-secret"])
            return result

        return Step(result.step, check)

    return StepTable(file=(), target=tuple(map(step, results)), program=(), url=(), protocol=())


async def test_the_first_failure_ends_the_checks() -> None:
    steps = result_of(
        StepResult("a", "warning"), StepResult("b", "failed"), StepResult("c", "passed"), StepResult("d", "passed")
    )
    diagnosis = await diagnose(Subject(name="x"), steps)
    assert [each.state for each in diagnosis.steps] == ["warning", "failed", "not-checked", "not-checked"]
    assert diagnosis.steps[2].evidence == ["the step before it failed: b"]
    assert diagnosis.failed is diagnosis.steps[1]


async def test_what_is_not_checked_ends_the_checks_too() -> None:
    steps = result_of(StepResult("a", "not-checked", ["no permission"]), StepResult("b", "passed"))
    diagnosis = await diagnose(Subject(name="x"), steps)
    assert [each.evidence for each in diagnosis.steps] == [["no permission"], ["no permission"]]
    assert diagnosis.failed is None


async def test_texts_are_redacted_escaped_and_bounded() -> None:
    lines = ["a\x1b[2J\u202eb\nc", "it has a-permanent-secret", "password=hunter2", "x" * 100_000]
    diagnosis = await diagnose(Subject(name="n\x00"), result_of(StepResult("a", "failed", lines * 50, "re\u200bmedy")))
    (step,) = diagnosis.steps
    assert step.evidence[0] == "a\\x1b[2J\\u202eb c"
    assert "a-permanent-secret" not in text(step)
    assert "hunter2" not in text(step)
    assert len(step.evidence) == 41
    assert step.evidence[-1] == "… and 160 more lines"
    assert max(map(len, step.evidence)) < 1_000
    assert step.remedy == "re\\u200bmedy"
    assert diagnosis.name == "n\\x00"


async def test_a_secret_in_a_command_line_is_not_shown(doctor: Diagnose) -> None:
    assert "abcdef0123456789" not in repr(await doctor("no-such-program --api-key abcdef0123456789"))
