"""Runs of the authorization debugger, and the user who logs in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from accord import CredentialStore, OAuth
from accord.client.target import Remote
from accord.inspector.authorization.run import AuthorizationRun
from accord.testing import AuthServer


@asynccontextmanager
async def running(url: str, store: CredentialStore, **settings: Any) -> AsyncIterator[AuthorizationRun]:
    """A run at a URL, with settings of `OAuth`."""
    run = AuthorizationRun(Remote(url), OAuth(store=store, **settings))
    await run.open()
    try:
        yield run
    finally:
        await run.close()


def states(run: AuthorizationRun) -> list[str]:
    """Return the states of the eight steps."""
    return [each.state for each in run.state().steps]


async def return_to(run: AuthorizationRun, issuer: AuthServer) -> None:
    """Let the user consent, and paste the URL of the callback."""
    run.receive_callback(issuer.callback(run.authorization_url))
    await run.wait()


async def log_in(run: AuthorizationRun, issuer: AuthServer) -> None:
    """Run all steps; the user consents."""
    await run.run()
    assert run.state().is_waiting, run.all_evidence()
    await return_to(run, issuer)
