"""Sequences of calls: what fails only after others is found, with the shortest way there, and can be repeated."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from accord.check.engine.findings import build_findings
from accord.check.engine.report import Outcome, TransportName
from accord.check.fuzz.fuzz_result import FuzzFailure
from accord.check.fuzz.fuzz_run import replay_sequence, run_fuzzing
from accord.check.fuzz.sequences import CallStep, encode_steps, value_reference
from accord.check.rules.generated import generated_crash
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.cli.commands import accord
from accord.errors import TargetError
from accord.wire.transcript import SENT

from tests.check.fuzz.running import explored, last, names, repeated, within

FLOW = Path(__file__).parent / "sequence_server.py"
DYING = Path(__file__).parent / "crashing_server.py"
SPILLING = Path(__file__).parent / "spilling_server.py"
RECEIPT = {"receipt": value_reference(1, ("structuredContent", "receipt"))}


def flow(*wanted: str) -> str:
    return f"{sys.executable} {FLOW} {' '.join(wanted)}"


async def only(*wanted: str, cases: int = 60) -> FuzzFailure:
    """The one fault, which comes again when it is repeated."""
    (fault,) = (await explored(flow(*wanted), cases)).failures
    assert [each.rule for each in (await repeated(flow(*wanted), fault)).failures] == [fault.rule]
    return fault


@pytest.mark.parametrize(("tool", "rule"), [("refund", "generated/crash"), ("complain", "generated/refused")])
async def test_what_fails_for_a_fresh_id_of_a_fresh_id_is_found_with_the_three_calls_that_lead_there(
    tool: str, rule: str
) -> None:
    fault = await only("order", "pay", tool)
    assert (fault.rule, names(fault)) == (rule, ["order", "pay", tool])
    assert fault.steps[1].arguments == {"orderId": value_reference(0, ("structuredContent", "order", "id"))}
    assert last(fault).arguments == RECEIPT
    assert str(fault.violation()).startswith("after 'order' with {}, 'pay' with")
    assert sum("→" in line for line in fault.evidence) == 3


async def test_what_fails_after_another_call_is_found_though_nothing_of_it_is_used() -> None:
    fault = await only("use", "close")
    assert (fault.rule, names(fault)) == ("generated/crash", ["close", "use"])
    assert "exit code 6" in fault.text


async def test_links_in_results_and_in_what_they_lead_to_are_read() -> None:
    fault = await only("link")
    assert (fault.rule, names(fault)) == ("generated/crash", ["link", *["resources/read"] * 3])
    assert last(fault).arguments == {"uri": value_reference(2, ("contents", 0, "text", None, "uri"))}


async def test_cursors_are_followed() -> None:
    fault = await only("pages")
    assert (fault.rule, names(fault)) == ("generated/crash", ["resources/list"] * 4)
    assert last(fault).arguments == {"cursor": value_reference(2, ("nextCursor",))}


async def test_a_prompt_that_takes_anything_is_found() -> None:
    fault = await only("greet")
    assert fault.rule == "generated/prompt-arguments"
    assert last(fault).wrong == "missing"


async def test_a_prompt_that_ends_the_server_is_found_with_the_shortest_text_that_does() -> None:
    fault = await only("strict")
    assert fault.rule == "generated/crash"
    assert 5_000 < len(last(fault).arguments["name"]) < 10_000


async def test_a_prompt_that_refuses_an_argument_as_if_the_request_were_none_is_found() -> None:
    fault = await only("odd")
    assert fault.rule == "generated/codes"
    assert "-32600" in fault.text


async def test_the_variables_of_a_template_get_strange_values_and_none() -> None:
    fault = await only("notes")
    assert (fault.rule, last(fault).kind) == ("generated/internals", "template")
    assert len(last(fault).arguments["colour"]) == 1


async def test_what_is_proposed_for_a_variable_is_used_for_it() -> None:
    settings = CheckSettings(call_tools=True)
    _, records = await within(
        flow("notes", "completed"), settings, "2025-11-25", None, lambda doors: run_fuzzing(doors, cases=90)
    )
    said = [each for record in records for each in record.sent_messages() if each["method"] == "resources/read"]
    read = [each["params"]["uri"] for each in said]
    assert {"note://red", "note://green", "note://"} <= set(read)


async def test_a_completion_that_ends_the_server_is_found() -> None:
    found = await explored(flow("strict", "completed"), 60)
    (fault,) = [each for each in found.failures if last(each).kind == "completion"]
    assert (fault.rule, last(fault).name) == ("generated/crash", "strict name")
    assert last(fault).arguments == {"value": "\0"}


async def test_calls_of_what_may_not_be_called_are_not_repeated() -> None:
    steps = (CallStep(kind="tool", name="close"), CallStep(kind="tool", name="use"))
    settings = CheckSettings(call_tools=("use",))
    with pytest.raises(TargetError, match="may not be called: 'close'"):
        await within(flow("use", "close"), settings, "2025-11-25", None, lambda doors: replay_sequence(doors, steps))


def test_the_command_line_takes_calls_and_says_what_is_none() -> None:
    command = ["check", flow("use", "close"), "--revision", "2025-11-25", "--only", "generated/crash", "--call-tools"]
    steps = (CallStep(kind="tool", name="close"), CallStep(kind="tool", name="use"))
    found = CliRunner().invoke(accord, [*command, "--sequence", encode_steps(steps)])
    assert found.exit_code == 1
    assert "the server ends with exit code 6" in " ".join(found.output.split())
    refused = CliRunner().invoke(accord, [*command, "--sequence", "close"])
    assert refused.exit_code not in (0, 1)
    assert "invalid sequence of calls" in refused.output


async def test_a_check_of_one_sequence_says_what_came_of_it() -> None:
    steps = (CallStep(kind="tool", name="close"), CallStep(kind="tool", name="use"))
    settings = CheckSettings(
        call_tools=True, revisions=("2025-11-25",), only=("generated/crash",), sequence=encode_steps(steps)
    )
    report = await check_server(flow("use", "close"), settings)
    (finding,) = report.findings
    assert "'use' with {}: the server ends with exit code 6" in finding.text
    assert finding.repeat.endswith(f"--sequence '{encode_steps(steps)}'")
    assert report.generated == 1
    refused = await check_server(flow("use"), settings)
    assert "may not be called: 'close'" in refused.visits[0].error
    assert refused.failed


def test_the_command_that_repeats_a_finding_has_its_calls() -> None:
    fault = FuzzFailure(rule=generated_crash.id, steps=(CallStep(kind="tool", name="use"),), text="the server ends")
    outcome = Outcome(
        rule=generated_crash.id,
        case="",
        verdict="fail",
        level="must",
        revision="2025-11-25",
        transport="stdio",
        again=fault.violation().again,
    )
    (finding,) = build_findings(
        [outcome], {generated_crash.id: generated_crash}, "server", CheckSettings(call_tools=True, cases=9), "server"
    )
    assert finding.repeat.endswith("""--call-tools --sequence '[{"kind":"tool","name":"use"}]'""")


def test_calls_too_long_for_a_command_line_are_made_again_by_their_seed() -> None:
    fault = FuzzFailure(
        rule=generated_crash.id, steps=(CallStep(kind="tool", name="use", arguments={"note": "a" * 10_000}),), text=""
    )
    assert fault.violation().again == ()


@pytest.mark.parametrize(("over", "revision"), [("http", "2025-11-25"), ("sse", "2024-11-05")])
async def test_a_server_that_ends_is_not_taken_for_one_that_hangs_over(over: TransportName, revision: str) -> None:
    found = await explored(DYING, 40, over=over, revision=revision, timeout=2)
    (fault,) = found.failures
    assert (fault.rule, last(fault).name) == ("generated/crash", "die")
    assert "cannot be opened again" in found.stop_reason


async def sent(over: TransportName, revision: str, seed: int) -> list[Any]:
    """Every message that was sent, but for its id."""
    settings = CheckSettings(call_tools=True, seed=seed)
    found, records = await within(SPILLING, settings, revision, over, lambda doors: run_fuzzing(doors, cases=90))
    assert found.cases == 90
    assert found.sequences > 0
    assert [(fault.rule, last(fault).arguments["note"]) for fault in found.failures] == [("generated/internals", "'")]
    said = [each.message for record in records for each in record.entries if each.direction == SENT]
    return [msgspec.json.encode({key: value for key, value in message.items() if key != "id"}) for message in said]


@pytest.mark.parametrize(
    ("over", "revision"),
    [("stdio", "2025-11-25"), ("http", "2025-11-25"), ("http", "2026-07-28"), ("sse", "2024-11-05")],
)
async def test_the_same_seed_sends_the_same_bytes_over(over: TransportName, revision: str) -> None:
    first, second = await asyncio.gather(sent(over, revision, 3), sent(over, revision, 3))
    assert first == second
    assert len(first) > 90


async def test_another_seed_sends_others() -> None:
    assert await sent("stdio", "2025-11-25", 3) != await sent("stdio", "2025-11-25", 4)
