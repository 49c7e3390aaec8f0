"""The ordinary scenario: it shows which revisions a client supports, and what it does on its own."""

from __future__ import annotations

from accord.check.clients.authorization_plan import AuthorizationPlan
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario
from accord.check.engine.rule import HTTP
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.revision import RULES

ORDINARY = Scenario("ordinary", "a good server")

GIVEN_CLIENT_ID = "accord-check-client"
"""The client ID of a client that is registered already."""
GIVEN_SECRET = "accord-check-secret"

LOGIN = Scenario(
    "auth-login",
    "a good server that demands access tokens",
    since="2025-03-26",
    over=HTTP,
    authorization=AuthorizationPlan(),
)
"""It shows whether a client logs in, which all other scenarios with authorization need."""


def logs_in(run: ClientRun) -> bool:
    """Return whether the client got a token and used it."""
    return run.login is not None and bool(run.login.authorized)


def speaks_revision(run: ClientRun) -> bool:
    """Return whether the client continued in the revision of the run."""
    if not RULES[run.revision].handshake:
        return any(each.meta.get(PROTOCOL_VERSION) == run.revision for each in run.requests())
    return any(
        _continued_after_handshake(run, number)
        for number in {each.conversation.number for each in run.requests("initialize")}
    )


def _continued_after_handshake(run: ClientRun, number: int) -> bool:
    """Return whether messages except pings followed the handshake."""
    entry = [each for each in run.messages() if each.conversation.number == number and each.method != "ping"]
    opened = [index for index, each in enumerate(entry) if each.method == "initialize"]
    return bool(entry[opened[0] + 1 :])


def client_name(run: ClientRun) -> str:
    """Return the name and version of the client; empty if unknown."""
    for request in run.requests():
        info = request.params.get("clientInfo", request.meta.get("io.modelcontextprotocol/clientInfo"))
        if isinstance(info, dict):
            return f"{info.get('name', '')} {info.get('version', '')}".strip()
    return ""
