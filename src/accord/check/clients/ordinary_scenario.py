"""The scenario without surprises: by it is known which revisions a client speaks, and what it does by itself."""

from __future__ import annotations

from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.revision import RULES

ORDINARY = Scenario("ordinary", "a good server")


def speaks_revision(run: ClientRun) -> bool:
    """Whether the client went on in the revision of the run."""
    if not RULES[run.revision].handshake:
        return any(each.meta.get(PROTOCOL_VERSION) == run.revision for each in run.requests())
    return any(
        _continued_after_handshake(run, number)
        for number in {each.conversation.number for each in run.requests("initialize")}
    )


def _continued_after_handshake(run: ClientRun, number: int) -> bool:
    """Whether anything but pings followed the handshake in a conversation."""
    entry = [each for each in run.messages() if each.conversation.number == number and each.method != "ping"]
    opened = [index for index, each in enumerate(entry) if each.method == "initialize"]
    return bool(entry[opened[0] + 1 :])


def client_name(run: ClientRun) -> str:
    """What the client calls itself, with its version; empty if it did not say."""
    for request in run.requests():
        info = request.params.get("clientInfo", request.meta.get("io.modelcontextprotocol/clientInfo"))
        if isinstance(info, dict):
            return f"{info.get('name', '')} {info.get('version', '')}".strip()
    return ""
