"""One run of the authorization debugger at one server: which step is next, what runs, and what the page may see.

One step or action runs at a time, in a task of its own: a page that is closed does not end it. A command returns when
it has ended, or waits for the browser of the user.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from accord.auth.discovery import RESOURCE_STEP
from accord.auth.login import Login
from accord.auth.oauth import OAuth
from accord.auth.tokens import REFRESH_STEP
from accord.client.target import Remote
from accord.errors import AccordError, AuthorizationError
from accord.host.login_explanation import reach_cure
from accord.inspector.authorization.evidence import StepEvidence, StepRecord
from accord.inspector.authorization.login_steps import LoginSteps
from accord.inspector.authorization.redaction import EvidenceRedaction
from accord.inspector.authorization.run_state import RunActivity, RunState, StepSummary, UserPage
from accord.inspector.authorization.sentences import (
    ACTIONS,
    AUTHORIZATION_REQUEST,
    AUTHORIZED_REQUEST,
    CALLBACK,
    CHALLENGE,
    DEVICE_AUTHORIZATION,
    GRANT_STEPS,
    REVOCATION,
    STEPS,
    TOKEN_REQUEST,
)
from accord.inspector.authorization.settings import (
    ConfiguredProgram,
    RunSettings,
    initial_settings,
    program_settings,
)
from accord.inspector.authorization.token_actions import TokenActions
from accord.inspector.authorization.token_state import scopes_for_page, token_state
from accord.transport.http.settings import HTTPSettings
from accord.transport.recording import SessionRecorder
from accord.visible_text import single_line, truncate

_SHORT_CHARACTERS = 300

_STEPS_FROM = {step: {*STEPS[at:], DEVICE_AUTHORIZATION} for at, step in enumerate(STEPS)}
"""By step of a login in the browser, the steps that come after it or stand in its place."""


class AuthorizationRun:
    """A run at `server` with the login of its configuration. `changed` is called after each change of its state."""

    def __init__(
        self,
        server: Remote,
        login: OAuth | ConfiguredProgram,
        *,
        http: HTTPSettings | None = None,
        recorder: SessionRecorder | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._program = None if isinstance(login, OAuth) else login
        self._login = login if isinstance(login, OAuth) else OAuth()
        self._redaction = EvidenceRedaction()
        self._steps = LoginSteps(server, self._login, self._redaction, http=http, recorder=recorder)
        self._tokens = TokenActions(self._steps)
        self._steps.on_waiting = self._on_waiting
        self._changed = changed
        every = {step for steps in GRANT_STEPS.values() for step in steps}
        self._records = {step: StepRecord(step) for step in (*every, *ACTIONS)}
        self._settings = self._initial_settings()
        self._task: asyncio.Task[None] | None = None
        self._waits = asyncio.Event()
        self._saved: Login | None = None
        self._is_login_needed = True

    async def open(self) -> None:
        """Read the stored login. Raises `StoreError`."""
        await self._steps.open()
        self._apply(self._initial_settings())

    def _initial_settings(self) -> RunSettings:
        if self._program is not None:
            return program_settings(self._program)
        return initial_settings(self._login, self._steps.stored)

    async def close(self) -> None:
        """Stop what runs, and close all connections."""
        await self.stop()
        await self._steps.close()

    # --- steps -------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the grant, in order."""
        return GRANT_STEPS[self._settings.grant]

    @property
    def next_step(self) -> str | None:
        """The first step that was not done, or None."""
        return next((step for step in self.steps if self._records[step].state != "done"), None)

    async def step(self) -> None:
        """Perform the next step. Raises `AuthorizationError` if one runs already."""
        step = self.next_step
        if step is not None:
            await self._start(self._perform_all([step]))

    async def run(self) -> None:
        """Perform all further steps, until one fails. Raises `AuthorizationError` if one runs already."""
        step = self.next_step
        if step is not None:
            await self._start(self._perform_all(self.steps[self.steps.index(step) :]))

    async def repeat(self, step: str) -> None:
        """Perform a step again; those after it are pending then. Raises `AuthorizationError`."""
        if step not in self.steps:
            raise AuthorizationError(step, "there is no such step", f"the steps are {', '.join(self.steps)}")
        missing = next(
            (each for each in self.steps[: self.steps.index(step)] if self._records[each].state != "done"), None
        )
        if missing is not None and not (step == AUTHORIZED_REQUEST and self._steps.login is not None):
            raise AuthorizationError(step, f"it needs the step before it: {missing}", f"run that step first: {missing}")
        self._check_idle()
        self._reset(step)
        await self._start(self._perform_all([step]))

    async def stop(self) -> None:
        """Stop what runs."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def wait(self) -> None:
        """Wait until nothing runs."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def _reset(self, step: str) -> None:
        for each in self.steps[self.steps.index(step) :]:
            self._records[each] = StepRecord(each)

    def _check_idle(self) -> None:
        if self._task is not None and not self._task.done():
            running = next((each.step for each in self._records.values() if each.state in ("running", "waiting")), "")
            raise AuthorizationError(running or "authorization", "a step is running", "wait for its end, or stop it")

    async def _start(self, work: Awaitable[None]) -> None:
        """Run work in a task; return when it has ended, or waits for the user."""
        try:
            self._check_idle()
        except AuthorizationError:
            work.close()  # type: ignore[attr-defined]
            raise
        self._waits.clear()
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(lambda task: self._changed())
        waits = asyncio.ensure_future(self._waits.wait())
        try:
            await asyncio.wait([self._task, waits], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waits.cancel()

    async def _perform_all(self, steps: Sequence[str]) -> None:
        for step in steps:
            await self._perform(step, self._steps.perform)
            if self._records[step].state != "done":
                return
            if step == CHALLENGE:
                self._is_login_needed = self._steps.refusal is not None
                if not self._is_login_needed:
                    return

    async def _perform(self, step: str, function: Callable[[StepRecord], Awaitable[str]]) -> None:
        """Perform a step or an action, with a new record."""
        record = self._records[step] = StepRecord(step)
        record.state = "running"
        self._changed()
        try:
            record.text = await function(record)
            record.state = "done"
        except AuthorizationError as exc:
            record.fail(exc.step, exc.reason, exc.cure)
        except (AccordError, TimeoutError) as exc:
            record.fail(step, str(exc), reach_cure(exc))
        finally:
            if record.state in ("running", "waiting"):
                record.state = "stopped"
            self._changed()

    @property
    def activity(self) -> RunActivity:
        """The present activity of the run."""
        if self._task is None or self._task.done():
            return "idle"
        waits = any(self._records[step].state == "waiting" for step in self.steps)
        return "waiting" if waits else "running"

    def _on_waiting(self) -> None:
        self._waits.set()
        self._changed()

    # --- the browser -------------------------------------------------------------------------------------------

    @property
    def user_page(self) -> UserPage:
        """The page that the user opens to log in, checked to be https, or http on loopback. Raises
        `AuthorizationError`.
        """
        pending, device = self._steps.pending, self._steps.device
        if device is not None and self._records[DEVICE_AUTHORIZATION].state == "done":
            return UserPage(device.verification_uri_complete or device.verification_uri, device.user_code)
        if pending is None or self._records[AUTHORIZATION_REQUEST].state != "done":
            raise AuthorizationError(AUTHORIZATION_REQUEST, "there is no URL yet", "run the step first")
        return UserPage(pending.url)

    @property
    def authorization_url(self) -> str:
        """The whole URL of the authorization request. Raises `AuthorizationError`."""
        return self.user_page.url

    def receive_callback(self, url: str) -> None:
        """Receive the URL of a callback that the user pastes. Raises `AuthorizationError` unless the step waits."""
        if self._records[CALLBACK].state != "waiting" or not self._steps.callbacks.paste(url):
            raise AuthorizationError(CALLBACK, "no login waits for a callback", "run the callback step first")

    # --- settings ----------------------------------------------------------------------------------------------

    def change_settings(self, settings: RunSettings) -> None:
        """Use other settings for this run; the steps that they concern are pending then.

        Raises `AuthorizationError` if a step runs.
        """
        self._check_idle()
        if settings.client_secret is None and settings.client_id == self._settings.client_id:
            settings = msgspec.structs.replace(settings, client_secret=self._settings.client_secret)
        self._steps.previous = None
        first = settings.first_step_changed(self._settings)
        if settings.grant != self._settings.grant:
            for step in (*self.steps[1:], *GRANT_STEPS[settings.grant][1:]):
                self._records[step] = StepRecord(step)
        self._apply(settings)
        if first is not None:
            self._reset(next(step for step in self.steps if step in _STEPS_FROM[first]))
        self._changed()

    def _apply(self, settings: RunSettings) -> None:
        self._settings = settings
        self._redaction.add_secrets([settings.client_secret])
        self._steps.oauth = settings.applied(self._login)
        self._steps.grant_name = settings.grant
        self._steps.program = (lambda: settings.program(self._program)) if settings.grant == "program" else None
        self._steps.new_client = settings.new_client

    # --- tokens ------------------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Renew the tokens of the run. Raises `AuthorizationError` if there are none."""
        self._check_tokens(REFRESH_STEP)
        await self._start(self._perform(REFRESH_STEP, self._tokens.refresh))

    def expire(self) -> None:
        """Let the access token of the run expire, as far as the client knows. Raises `AuthorizationError`."""
        self._check_tokens(AUTHORIZED_REQUEST)
        self._check_idle()
        self._tokens.expire()
        self._reset(AUTHORIZED_REQUEST)
        self._changed()

    async def step_up(self, scopes: Sequence[str]) -> None:
        """Log in again with the scopes of before and these, or those that the last refusal names. Raises
        `AuthorizationError`.
        """
        self._check_tokens(AUTHORIZATION_REQUEST)
        self._check_idle()
        self._steps.step_up()
        if scopes:
            self._apply(msgspec.structs.replace(self._settings, scopes=list(scopes)))
        self._reset(RESOURCE_STEP)
        await self.run()

    async def log_out(self) -> None:
        """Revoke and forget the tokens of the run. Raises `AuthorizationError` if there are none."""
        self._check_tokens(REVOCATION)
        self._check_idle()
        self._reset(self.steps[-2])
        await self._start(self._perform(REVOCATION, self._tokens.revoke))

    async def log_out_stored(self) -> None:
        """Revoke and delete the stored login, as `accord logout` does. Raises `AuthorizationError`."""
        await self._start(self._perform(REVOCATION, self._tokens.revoke_stored))

    async def save(self) -> None:
        """Store the login of the run. Raises `AuthorizationError` if there is none, `StoreError`."""
        self._check_tokens(TOKEN_REQUEST)
        self._check_idle()
        if self._settings.grant == "program":
            cure = 'name it in the configuration: "auth": {"type": "client_credentials", ...}'
            raise AuthorizationError(TOKEN_REQUEST, "a program gets its tokens anew, and stores none", cure)
        await self._tokens.save()
        self._saved = self._steps.login
        self._changed()

    def _check_tokens(self, step: str) -> None:
        if self._steps.login is None:
            raise AuthorizationError(step, "the run has no tokens", "run all steps first")

    # --- views -------------------------------------------------------------------------------------------------

    def state(self) -> RunState:
        """Return what the page shows, without secrets."""
        steps, redaction, now = self._steps, self._redaction, time.time()
        return RunState(
            url=redaction.url(steps.server.url),
            steps=[self._summary(step) for step in self.steps],
            actions=[self._summary(step) for step in ACTIONS if self._records[step].state != "pending"],
            next_step=self.next_step,
            activity=self.activity,
            is_waiting=self.activity == "waiting",
            is_login_needed=self._is_login_needed,
            redirect_uri=steps.callbacks.redirect_uri or steps.oauth.redirect_uri,
            settings=msgspec.structs.replace(self._settings, client_secret=None),
            has_secret=bool(self._settings.client_secret),
            tokens=None if steps.login is None else token_state(steps.login, now, redaction),
            stored_tokens=None if steps.stored is None else token_state(steps.stored, now, redaction),
            is_saved=steps.login is not None and steps.login is self._saved,
            needed_scopes=scopes_for_page(steps.needed_scopes, redaction),
        )

    def _summary(self, step: str) -> StepSummary:
        record, redaction = self._records[step], self._redaction
        return StepSummary(
            step,
            record.state,
            truncate(single_line(redaction.text(record.text)), _SHORT_CHARACTERS),
            single_line(redaction.text(record.cure)),
        )

    def evidence(self, step: str) -> StepEvidence:
        """Return the evidence of a step or an action, without secrets. Raises `AuthorizationError` if there is no such
        step.
        """
        if step not in self._records:
            raise AuthorizationError(step, "there is no such step", f"the steps are {', '.join(self.steps)}")
        return self._records[step].evidence(self._redaction)

    def all_evidence(self) -> list[StepEvidence]:
        """Return the evidence of all steps and actions that were performed, without secrets."""
        return [each.evidence(self._redaction) for each in self._records.values() if each.state != "pending"]
