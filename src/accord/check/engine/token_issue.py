"""The checker as the issuer of a server's tokens, during a check: two principals get tokens that the server accepts.

The audience is that of the settings, else `resource` in the metadata of the server, else its URL. The scopes are those
of its challenge and its metadata.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from accord.check.engine.rule import NotApplicable, Violation
from accord.check.engine.server_target import ServerTarget
from accord.check.issuer.issuer_server import KEYS_PATH, serve_issuer
from accord.check.issuer.keys import TokenForge
from accord.check.probes.access import FORBIDDEN, UNAUTHORIZED, Access, describe
from accord.check.probes.message_log import LoggedResponse, MessageLog
from accord.check.settings import CheckSettings
from accord.check.wires.http import HTTPWire
from accord.errors import ConnectError, TargetError
from accord.messages.revision import LATEST, REVISIONS, RULES

SUBJECTS = ("accord-check-1", "accord-check-2")
"""The principals."""
_POLL_SECONDS = 0.5


def describe_issuer(issuer: str) -> str:
    """Return how to configure a server so that it trusts an issuer."""
    return (
        f"the issuer is {issuer}, its keys are at {issuer}{KEYS_PATH} (RS256), and the audience of its tokens is the "
        "`resource` of the server's metadata (--audience)"
    )


@asynccontextmanager
async def issue_tokens(target: ServerTarget, settings: CheckSettings) -> AsyncIterator[CheckSettings]:
    """Serve as the issuer, and return the settings with the tokens of two principals. Raises `ConnectError` if the
    server accepts none.
    """
    async with serve_issuer(settings.issuer, settings.audience) as forge:
        async with _connected(target, settings, forge) as access:
            await _learn_audience(access, forge)
            await _wait_for_trust(access, forge, settings.opening)
        tokens = tuple(forge.token(each) for each in SUBJECTS)
        target.forge = forge
        target.authorize(tokens)
        yield replace(settings, tokens=tokens)


@asynccontextmanager
async def _connected(target: ServerTarget, settings: CheckSettings, forge: TokenForge) -> AsyncIterator[Access]:
    revision = next((each for each in settings.revisions or REVISIONS if RULES[each].streamable), LATEST)
    log = MessageLog(revision, "http", "access")
    wire: Any = target.create_wire("http", log) if "http" in target.transports(revision) else None
    if not isinstance(wire, HTTPWire):
        raise TargetError("--as-issuer is for servers over HTTP: give a URL, or FILE.py")
    await wire.open()
    try:
        yield Access(wire, log, replace(settings, passive=False), has_credentials=True, forge=forge)
    finally:
        await wire.close()


async def _learn_audience(access: Access, forge: TokenForge) -> None:
    try:
        challenge = await access.challenge()
        document = (await access.metadata()).document
    except (NotApplicable, Violation):  # for the rules that judge just this
        forge.audience = forge.audience or access.wire.url
        return
    resource, scopes = document.get("resource"), document.get("scopes_supported")
    forge.audience = forge.audience or (resource if isinstance(resource, str) else access.wire.url)
    listed = [each for each in scopes if isinstance(each, str)] if isinstance(scopes, list) else []
    forge.scopes = list(dict.fromkeys([*(challenge.scopes or ()), *listed]))


async def _wait_for_trust(access: Access, forge: TokenForge, seconds: float) -> None:
    """Wait until the server accepts a token, so that it can be started after the issuer."""
    response: LoggedResponse | None = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                response = await access.send(access.requests()[0], token=forge.token(SUBJECTS[0]))
                if response.status and response.status not in (UNAUTHORIZED, FORBIDDEN):
                    return
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        got = describe(response) if response is not None else "no response"
        challenge = response.headers.get("www-authenticate", "") if response is not None else ""
        raise ConnectError(
            f"the server refuses a valid token for {forge.audience}: {got} {challenge}\nconfigure it: "
            f"{describe_issuer(forge.issuer)}"
        ) from None
