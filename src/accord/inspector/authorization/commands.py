"""Commands of the authorization debugger. Each that changes a run returns its new state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from accord import __version__
from accord.errors import AuthorizationError
from accord.inspector.authorization.evidence import StepEvidence
from accord.inspector.authorization.run import AuthorizationRun
from accord.inspector.authorization.run_state import RunState, UserPage
from accord.inspector.authorization.sentences import GrantName
from accord.inspector.authorization.settings import RunSettings
from accord.inspector.authorization.token_state import TokenState
from accord.inspector.commands import CommandParams, Download, InspectorError, PageCommand, ServerParams
from accord.inspector.transfers import new_file
from accord.inspector.workspace import Workspace

_Text: TypeAlias = Annotated[str, Meta(max_length=4_096)]
_Scopes: TypeAlias = Annotated[Sequence[Annotated[str, Meta(max_length=1_024)]], Meta(max_length=200)]


class StepParams(ServerParams, frozen=True):
    """A step, by its name."""

    step: Annotated[str, Meta(max_length=100)]


class CallbackParams(ServerParams, frozen=True):
    """The URL that the browser shows at the end of a login."""

    url: str


class SettingsParams(ServerParams, frozen=True):
    """The settings of a run; an empty text is what the client would do by itself. Without `client_secret`, that of
    before is used again with the same client ID.
    """

    client_id: _Text = ""
    client_secret: _Text | None = None
    scopes: _Scopes = ()
    resource: _Text = ""
    issuer: _Text = ""
    assume_pkce: bool = False
    new_client: bool = False
    grant: GrantName = "code"

    def __repr__(self) -> str:
        return f"SettingsParams({self.client_id!r})"  # without the secret

    def settings(self) -> RunSettings:
        """Return the settings."""
        return RunSettings(
            client_id=self.client_id.strip() or None,
            client_secret=self.client_secret,
            scopes=[scope for scope in self.scopes if scope] or None,
            resource=self.resource.strip() or None,
            issuer=self.issuer.strip() or None,
            assume_pkce=self.assume_pkce,
            new_client=self.new_client,
            grant=self.grant,
        )


class StepUpParams(ServerParams, frozen=True):
    """The scopes to request in addition; without any, those that the last refusal names."""

    scopes: _Scopes = ()


class LogoutParams(ServerParams, frozen=True):
    """`stored`: log out of the stored login, rather than of that of the run."""

    stored: bool = False


class TokenStates(msgspec.Struct, frozen=True):
    """The tokens of the run, and those of the stored login."""

    run: TokenState | None
    stored: TokenState | None


class _Export(msgspec.Struct, frozen=True):
    program: str
    state: RunState
    evidence: list[StepEvidence]


async def start(workspace: Workspace, params: ServerParams) -> RunState:
    """Begin a run at a server, after an approval in the terminal where one is needed. Raises `InspectorError`."""
    server = workspace.server(params.server)
    if server.state != "connected":
        await workspace.approve(server)
    with _errors():
        return (await workspace.authorization.start(server)).state()


async def read_state(workspace: Workspace, params: ServerParams) -> RunState | None:
    """Return the state of the run at a server, or nothing if there is none."""
    name = workspace.server(params.server).name
    return workspace.authorization.run(name).state() if workspace.authorization.has_run(name) else None


async def read_evidence(workspace: Workspace, params: StepParams) -> StepEvidence:
    """Return the evidence of a step. Raises `InspectorError`."""
    with _errors():
        return await asyncio.to_thread(_run(workspace, params).evidence, params.step)


async def read_tokens(workspace: Workspace, params: ServerParams) -> TokenStates:
    """Return the states of the tokens. Raises `InspectorError`."""
    state = _run(workspace, params).state()
    return TokenStates(state.tokens, state.stored_tokens)


async def read_url(workspace: Workspace, params: ServerParams) -> UserPage:
    """Return the page for the user. It has the state of the login, or its code: no other answer does. Raises
    `InspectorError`.
    """
    with _errors():
        return _run(workspace, params).user_page


async def export(workspace: Workspace, params: ServerParams) -> Download:
    """Return the evidence of all steps as a file. Raises `InspectorError`."""
    run = _run(workspace, params)
    content = _Export(f"accord {__version__}", run.state(), await asyncio.to_thread(run.all_evidence))
    with new_file(workspace.folder) as stream:
        await asyncio.to_thread(stream.write, msgspec.json.format(msgspec.json.encode(content)))
    return Download(f"{params.server}-authorization.json", Path(stream.name), "application/json", delete=True)


def _run(workspace: Workspace, params: ServerParams) -> AuthorizationRun:
    return workspace.authorization.run(workspace.server(params.server).name)


@contextmanager
def _errors() -> Iterator[None]:
    """Translate errors for the page."""
    try:
        yield
    except AuthorizationError as exc:
        raise InspectorError(f"{exc.step}: {exc.reason}", exc.cure) from exc


Action: TypeAlias = Callable[[AuthorizationRun, Any], Awaitable[None] | None]


def _changing(params: type[CommandParams], action: Action) -> PageCommand:
    """Return a command that changes a run, and returns its new state."""

    async def change(workspace: Workspace, params: Any) -> RunState:
        run = _run(workspace, params)
        with _errors():
            changing = action(run, params)
            if changing is not None:
                await changing
        return run.state()

    return PageCommand(params, change)


COMMANDS: Mapping[str, PageCommand] = {
    "authorization/start": PageCommand(ServerParams, start),
    "authorization/state": PageCommand(ServerParams, read_state),
    "authorization/evidence": PageCommand(StepParams, read_evidence),
    "authorization/tokens": PageCommand(ServerParams, read_tokens),
    "authorization/url": PageCommand(ServerParams, read_url),
    "authorization/export": PageCommand(ServerParams, export),
    "authorization/step": _changing(ServerParams, lambda run, params: run.step()),
    "authorization/run": _changing(ServerParams, lambda run, params: run.run()),
    "authorization/repeat": _changing(StepParams, lambda run, params: run.repeat(params.step)),
    "authorization/stop": _changing(ServerParams, lambda run, params: run.stop()),
    "authorization/callback": _changing(CallbackParams, lambda run, params: run.receive_callback(params.url)),
    "authorization/settings": _changing(SettingsParams, lambda run, params: run.change_settings(params.settings())),
    "authorization/refresh": _changing(ServerParams, lambda run, params: run.refresh()),
    "authorization/expire": _changing(ServerParams, lambda run, params: run.expire()),
    "authorization/step-up": _changing(StepUpParams, lambda run, params: run.step_up(params.scopes)),
    "authorization/save": _changing(ServerParams, lambda run, params: run.save()),
    "authorization/logout": _changing(
        LogoutParams, lambda run, params: run.log_out_stored() if params.stored else run.log_out()
    ),
}
