"""The settings of one run: what the user changes for it. The configuration and the stored login stay as they are."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import msgspec

from accord.auth.discovery import RESOURCE_STEP
from accord.auth.login import Login
from accord.auth.oauth import OAuth
from accord.auth.program_grants import ClientCredentials, EnterpriseManaged, WorkloadIdentity
from accord.auth.registration import STEP as CLIENT_STEP
from accord.errors import AuthorizationError
from accord.inspector.authorization.sentences import AUTHORIZATION_REQUEST, STEPS, TOKEN_REQUEST, GrantName

ConfiguredProgram = ClientCredentials | WorkloadIdentity | EnterpriseManaged
"""A login of a program, as a configuration has it."""


class RunSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The choices of the user for a run; None or "" leaves a choice to the client."""

    client_id: str | None = None
    client_secret: str | None = None
    scopes: Sequence[str] | None = None
    resource: str | None = None
    issuer: str | None = None
    assume_pkce: bool = False
    new_client: bool = False
    """Whether the client registers anew, also if there is a stored registration."""
    grant: GrantName = "code"

    def __repr__(self) -> str:
        return f"RunSettings({self.client_id!r})"  # without the secret

    def applied(self, login: OAuth) -> OAuth:
        """Return the login of the configuration with these settings. It never asks the user: the debugger does."""
        return msgspec.structs.replace(
            login,
            client_id=self.client_id or None,
            client_secret=self.client_secret or None,
            scopes=list(self.scopes) if self.scopes else None,
            resource=self.resource or None,
            issuer=self.issuer or None,
            assume_pkce=self.assume_pkce,
            device=self.grant == "device",
            interactive=False,
        )

    def program(self, configured: ConfiguredProgram | None) -> ConfiguredProgram:
        """Return the login of a program with these settings: that of the configuration, or one with the client ID and
        the secret of the run. Raises `AuthorizationError` without a secret.
        """
        if configured is not None and not self.client_secret and self.client_id == configured.client_id:
            login = copy.copy(configured)
            login.scopes, login.issuer = self.scopes, self.issuer or None
            return login
        if not (self.client_id and self.client_secret):
            reason = "client credentials need a client ID and a secret"
            raise AuthorizationError(TOKEN_REQUEST, reason, "set both under Settings of this run")
        return ClientCredentials(
            self.client_id, secret=self.client_secret, scopes=self.scopes, issuer=self.issuer or None
        )

    def first_step_changed(self, before: RunSettings) -> str | None:
        """Return the first step that differs from a run with the settings of before, or None."""
        changed = [step for name, step in _STEPS.items() if getattr(self, name) != getattr(before, name)]
        return min(changed, key=STEPS.index, default=None)


_STEPS = {
    "grant": RESOURCE_STEP,
    "issuer": RESOURCE_STEP,
    "resource": RESOURCE_STEP,
    "client_id": CLIENT_STEP,
    "client_secret": CLIENT_STEP,
    "new_client": CLIENT_STEP,
    "scopes": AUTHORIZATION_REQUEST,
    "assume_pkce": AUTHORIZATION_REQUEST,
}
"""The first step that each setting concerns."""


def initial_settings(login: OAuth, stored: Login | None) -> RunSettings:
    """Return the settings of a run that nobody has changed: those of the configuration and of the stored login."""
    has_resource = stored is not None and stored.chosen_resource
    has_issuer = stored is not None and stored.chosen_issuer
    return RunSettings(
        client_id=login.client_id,
        client_secret=login.client_secret,
        scopes=None if login.scopes is None else list(login.scopes),
        resource=login.resource or (stored.discovery.resource if stored is not None and has_resource else None),
        issuer=login.issuer or (stored.discovery.issuer if stored is not None and has_issuer else None),
        assume_pkce=login.assume_pkce or (stored is not None and stored.assume_pkce),
        grant="device" if login.device else "code",
    )


def program_settings(login: ConfiguredProgram) -> RunSettings:
    """Return the settings of the login of a program."""
    scopes = None if login.scopes is None else list(login.scopes)
    return RunSettings(client_id=login.client_id, scopes=scopes, issuer=login.issuer, grant="program")
