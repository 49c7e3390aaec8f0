"""The diagnosis of a server on the page: the steps of `accord doctor`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from accord.client.target import Command, Remote
from accord.host.doctor.diagnosis import StepResult, diagnose
from accord.host.doctor.known_facts import Subject
from accord.host.doctor.process_steps import NOT_STARTED
from accord.host.doctor.protocol_steps import STEPS
from accord.inspector.commands import InspectorError, PageCommand, ServerParams
from accord.inspector.workspace import Workspace

_STEP_SECONDS = 15.0
_NOT_APPROVED = "it starts only after you approve it in the terminal"


class DiagnosisView(msgspec.Struct, frozen=True):
    """The steps of `accord doctor` for one server. `failed` is the one that failed; empty if all passed."""

    server: str
    failed: str
    steps: list[StepResult]


async def diagnose_server(workspace: Workspace, params: ServerParams) -> DiagnosisView:
    """Connect to a server once more, step by step. One that needs an approval is started only after it.

    Takes up to a minute. Raises `InspectorError` for a server in this process.
    """
    server = workspace.server(params.server)
    if not isinstance(server.target, Command | Remote):
        raise InspectorError(f"{server.name} runs in this process, and has no steps", "see the log of this process")

    async def may_start(name: str, lines: list[str]) -> bool:
        try:
            await workspace.approve(server)  # which describes its entry too
        except InspectorError:
            return False
        return True

    subject = Subject(
        name=server.name,
        target=server.target,
        may_start=may_start if server.needs_approval else None,
        seconds=_STEP_SECONDS,
    )
    found = await diagnose(subject, STEPS)
    return DiagnosisView(server.name, found.failed.step if found.failed else "", [*map(_page_step, found.steps)])


def _page_step(step: StepResult) -> StepResult:
    """Return a step with the words of the page instead of those of the command."""
    if step.evidence != [NOT_STARTED]:
        return step
    return msgspec.structs.replace(step, evidence=[_NOT_APPROVED])


COMMANDS: Mapping[str, PageCommand] = {"servers/diagnose": PageCommand(ServerParams, diagnose_server)}
