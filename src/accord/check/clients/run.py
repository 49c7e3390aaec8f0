"""The record of one run of the client: messages of both sides, HTTP requests, and how the client ended.

Rules query it: the requests of a method, the messages after the scenario intervened (`messages_after`), whether the
client behaved as in the ordinary run (`require_ordinary_behavior`), or at least continued or ended with an error
(`require_progress`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import msgspec

from accord.check.clients.conversation import ClientConversation
from accord.check.clients.http_listener import ClientExchange
from accord.check.clients.login_log import LoginLog
from accord.check.engine.report import TransportName
from accord.check.engine.rule import NotObserved, Violation
from accord.check.probes.message_log import LogEntry, id_key, message_objects
from accord.messages.base import JSONObject
from accord.wire.transcript import RECEIVED, SENT

Ending: TypeAlias = Literal["itself", "quiet", "deadline"]
"""`itself`: the client ended on its own. `quiet`: the checker ended it after a silence. `deadline`: the checker ended
it although it was active, because of the time limit or the memory limit.
"""

PATH = "/mcp"
"""The path of the MCP endpoint over HTTP."""

_EVIDENCE = 12
_BEFORE = 2


class ClientMessage(msgspec.Struct, frozen=True):
    """One message of the client, with its session and its log entry."""

    body: JSONObject
    entry: LogEntry
    conversation: ClientConversation

    @property
    def method(self) -> Any:
        """Its method; None for a response."""
        return self.body.get("method")

    @property
    def params(self) -> JSONObject:
        """Its params, empty if it has none."""
        params = self.body.get("params")
        return params if isinstance(params, dict) else {}

    @property
    def meta(self) -> JSONObject:
        """Its `_meta`, empty if it has none."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class ClientRun:
    """One run of the client in one scenario. Times are of the monotonic clock."""

    def __init__(self, scenario: str, revision: str, transport: TransportName) -> None:
        self.scenario: str = scenario
        self.revision: str = revision
        self.transport: TransportName = transport
        self.conversations: list[ClientConversation] = []
        self.exchanges: list[ClientExchange] = []
        """All HTTP requests, in order."""
        self.connections: int = 0
        """Over HTTP: the number of connections of the client."""
        self.endpoint_paths: frozenset[str] = frozenset()
        """Over HTTP+SSE: the endpoints of its streams."""
        self.stray_requests: list[ClientExchange] = []
        """Requests to the other origin, to which a client must not send any."""
        self.login: LoginLog | None = None
        """The record of its logins, in a scenario with authorization."""
        self.intervened_at: float | None = None
        """The time of the first intervention of the scenario; None without one."""
        self.started_at: float = 0.0
        self.finished_at: float = 0.0
        self.ending: Ending = "itself"
        self.exit_code: int | None = None
        self.overflow: str = ""
        """Why the checker stopped reading, because of the memory limit; empty if it did not."""
        self.output: str = ""
        """The last lines of its output."""
        self.ordinary_run: ClientRun = self
        """The ordinary run in the same revision."""

    # --- what was said ---------------------------------------------------------------------------------------------

    def messages(self) -> Iterator[ClientMessage]:
        """Yield the messages of the client, in order."""
        return iter(sorted(self._messages(), key=lambda message: message.entry.at))

    def _messages(self) -> Iterator[ClientMessage]:
        for conversation in self.conversations:
            for entry in conversation.log.entries:
                if entry.direction == RECEIVED:
                    yield from (ClientMessage(body, entry, conversation) for body in message_objects(entry.message))

    def requests(self, *methods: str) -> list[ClientMessage]:
        """Return the requests of the client, with these methods or any."""
        return [
            each
            for each in self.messages()
            if "id" in each.body and each.method is not None and (not methods or each.method in methods)
        ]

    def notifications(self, *methods: str) -> list[ClientMessage]:
        """Return its notifications, with these methods or any."""
        return [
            each
            for each in self.messages()
            if "id" not in each.body and each.method is not None and (not methods or each.method in methods)
        ]

    def responses(self) -> list[ClientMessage]:
        """Return its responses."""
        return [each for each in self.messages() if each.method is None]

    def response_to(self, id: Any) -> JSONObject | None:
        """Return its response to a request from the server, by the id."""
        found = [each.body for each in self.responses() if id_key(each.body.get("id")) == id_key(id)]
        return found[0] if found else None

    def declares(self, *path: str) -> bool:
        """Return whether the client declared a capability: `declares("sampling", "tools")`."""
        declared: Any = self.conversations[-1].client_capabilities if self.conversations else {}
        for name in path:
            if not isinstance(declared, dict) or not isinstance(declared.get(name), dict):
                return False
            declared = declared[name]
        return True

    def server_requests(self, *methods: str) -> list[JSONObject]:
        """Return the requests from the server."""
        return [
            body
            for conversation in self.conversations
            for entry in conversation.log.entries
            if entry.direction == SENT
            for body in message_objects(entry.message)
            if body.get("method") in methods and "id" in body
        ]

    def posts(self) -> list[ClientExchange]:
        """Return the requests to the MCP endpoint with messages."""
        return [each for each in self.exchanges if each.verb == "POST" and each.path == PATH]

    def opened_at(self) -> float:
        """The time of the response to the first initialize; infinity without one."""
        opened = [
            each.ended_at
            for each in self.exchanges
            if "mcp-session-id" in each.response_headers and each.ended_at is not None
        ]
        return min(opened, default=float("inf"))

    @property
    def negotiated_revision(self) -> Any:
        """The revision in the first result of initialize; None without one."""
        for conversation in self.conversations:
            for body in conversation.log.sent_messages():
                result = body.get("result")
                if isinstance(result, dict) and "protocolVersion" in result:
                    return result["protocolVersion"]
        return None

    def messages_after(self) -> list[ClientMessage]:
        """Return what the client sent after the scenario intervened and before its end, without pings."""
        if self.intervened_at is None:
            return []
        return [
            each
            for each in self.messages()
            if self.intervened_at < each.entry.at <= self.finished_at and not _is_ping(each)
        ]

    @property
    def methods(self) -> set[Any]:
        """The methods that the client used."""
        return {each.method for each in self.messages() if each.method is not None}

    @property
    def longest_silence(self) -> float:
        """The longest silence of the client in seconds, without its start."""
        times = [each.entry.at for each in self.messages()] + [self.finished_at] * (self.ending == "itself")
        return max((later - earlier for earlier, later in pairwise(times)), default=0.0)

    def evidence(self, *about: LogEntry) -> tuple[str, ...]:
        """Return messages as lines of a transcript: the given ones, or those around the intervention of
        the scenario.
        """
        entry = list(about) or self._relevant_entries()
        lines = [each.line() for each in entry[:_EVIDENCE]]
        return tuple(lines) if about else (*lines, f"# {self.ending_text}")

    def _relevant_entries(self) -> list[LogEntry]:
        """Return the entries from the cause of the intervention on; the last ones without an intervention."""
        entry = sorted((each for one in self.conversations for each in one.log.entries), key=lambda each: each.at)
        turned = self.intervened_at
        if turned is None:
            return entry[-_EVIDENCE:]
        return entry[max(0, sum(each.at < turned for each in entry) - _BEFORE) :]

    def exchange_lines(self, request: JSONObject) -> tuple[str, ...]:
        """Return a request from the server and its response as lines of a transcript."""
        entry = [each for conversation in self.conversations for each in conversation.log.entries]
        lines = [each.line() for each in entry if _belongs_to_request(each, request["id"])]
        return (*lines, *(() if self.response_to(request["id"]) is not None else ("# no response",)))

    @property
    def ending_text(self) -> str:
        """The end of the run in words."""
        if self.ending == "itself":
            return f"the client exited with {self.exit_code}"
        if self.ending == "quiet":
            return "the checker ended the client"
        return f"the client did not end, and the checker ended it{': ' + self.overflow if self.overflow else ''}"

    # --- verdicts that many scenarios share ---------------------------------------------------------------------------

    def require_intervention(self) -> None:
        """Raise `NotObserved` if the scenario did not intervene."""
        if self.intervened_at is None:
            raise NotObserved("the client did nothing that the scenario changes")

    def require_no_crash(self) -> None:
        """Raise `Violation` if the client ended by a signal that the checker did not send."""
        self.require_intervention()
        if (
            self.ending == "itself"
            and self.exit_code is not None
            and self.exit_code < 0 <= (self.ordinary_run.exit_code or 0)
        ):
            raise Violation(f"the client crashed (signal {-self.exit_code})", evidence=self.evidence())

    def require_progress(self, moment: float = 0.0) -> None:
        """Raise `Violation` if the client neither continued after that time nor ended, although it ends on its own."""
        self.require_no_crash()
        if self.ending == "itself" or any(each.entry.at > moment for each in self.messages_after()):
            return
        if self.ordinary_run.ending != "itself":
            raise NotObserved("the client does not exit on its own, so a hang cannot be detected")
        waited = self.finished_at - (self.intervened_at or self.started_at)
        text = f"{waited:.0f} s later, the client was still waiting: it neither continued nor reported an error"
        raise Violation(text, evidence=self.evidence())

    def require_ordinary_behavior(self) -> None:
        """Raise `Violation` if the client did less than in the ordinary run, or ended differently."""
        self.require_progress()
        missing = sorted(str(each) for each in self.ordinary_run.methods - self.methods)
        if missing:
            raise Violation(f"the client no longer sent {', '.join(missing)}", evidence=self.evidence())
        if (
            self.ending == "itself"
            and self.ordinary_run.ending == "itself"
            and self.exit_code != self.ordinary_run.exit_code
        ):
            was = self.ordinary_run.exit_code
            raise Violation(
                f"the client exited with {self.exit_code}, but with {was} in the ordinary run", evidence=self.evidence()
            )


def _belongs_to_request(entry: LogEntry, id: Any) -> bool:
    """Return whether it is a request from the server with this id, or the response to it."""
    found = [body for body in message_objects(entry.message) if "id" in body and id_key(body["id"]) == id_key(id)]
    return any(("method" in body) == (entry.direction == SENT) for body in found)


def _is_ping(message: ClientMessage) -> bool:
    return bool(message.method == "ping")


def error_code(answer: JSONObject | None) -> Any:
    """Return the code of the error in a response; None without an error."""
    error = (answer or {}).get("error")
    return error.get("code") if isinstance(error, dict) else None
