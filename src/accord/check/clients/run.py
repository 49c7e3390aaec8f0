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
from accord.check.engine.report import TransportName
from accord.check.engine.rule import NotObserved, Violation
from accord.check.probes.message_log import LogEntry, message_objects
from accord.check.probes.message_reader import id_key
from accord.messages.base import JSONObject
from accord.wire.transcript import RECEIVED, SENT

Ending: TypeAlias = Literal["itself", "quiet", "deadline"]
"""`itself`: the client ended by itself. `quiet`: we ended it after it had said nothing for a while. `deadline`: we
ended it although it still spoke: it had for too long, or had said more than is kept."""

PATH = "/mcp"
"""Of the MCP endpoint over HTTP."""

_EVIDENCE = 12
_BEFORE = 2


class ClientMessage(msgspec.Struct, frozen=True):
    """One message of the client, and where it stood."""

    body: JSONObject
    entry: LogEntry
    conversation: ClientConversation

    @property
    def method(self) -> Any:
        """Its method; None for an answer."""
        return self.body.get("method")

    @property
    def params(self) -> JSONObject:
        """Its params, empty where it has none."""
        params = self.body.get("params")
        return params if isinstance(params, dict) else {}

    @property
    def meta(self) -> JSONObject:
        """Its `_meta`, empty where it has none."""
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
        """What came over HTTP, in order."""
        self.connections: int = 0
        """Over HTTP: those that the client opened, whatever it said on them."""
        self.endpoint_paths: frozenset[str] = frozenset()
        """Over HTTP+SSE: the targets that streams named to post to."""
        self.stray_requests: list[ClientExchange] = []
        """What came to the other origin, where nobody has any business."""
        self.intervened_at: float | None = None
        """When the scenario did something of its own; None where it never came to that."""
        self.started_at: float = 0.0
        self.finished_at: float = 0.0
        self.ending: Ending = "itself"
        self.exit_code: int | None = None
        self.overflow: str = ""
        """Why we stopped listening: it said more than is kept. Empty where it did not."""
        self.output: str = ""
        """The last lines that it wrote for people."""
        self.ordinary_run: ClientRun = self
        """The run without surprises in the same revision."""

    # --- what was said ---------------------------------------------------------------------------------------------

    def messages(self) -> Iterator[ClientMessage]:
        """Everything that the client said and that is an object, in order."""
        return iter(sorted(self._messages(), key=lambda message: message.entry.at))

    def _messages(self) -> Iterator[ClientMessage]:
        for conversation in self.conversations:
            for entry in conversation.log.entries:
                if entry.direction == RECEIVED:
                    yield from (ClientMessage(body, entry, conversation) for body in message_objects(entry.message))

    def requests(self, *methods: str) -> list[ClientMessage]:
        """The requests of the client, of these methods or of any."""
        return [
            each
            for each in self.messages()
            if "id" in each.body and each.method is not None and (not methods or each.method in methods)
        ]

    def notifications(self, *methods: str) -> list[ClientMessage]:
        """Its notifications, of these methods or of any."""
        return [
            each
            for each in self.messages()
            if "id" not in each.body and each.method is not None and (not methods or each.method in methods)
        ]

    def responses(self) -> list[ClientMessage]:
        """Its answers."""
        return [each for each in self.messages() if each.method is None]

    def response_to(self, id: Any) -> JSONObject | None:
        """Its answer to a request of ours, with the very id."""
        found = [each.body for each in self.responses() if id_key(each.body.get("id")) == id_key(id)]
        return found[0] if found else None

    def declares(self, *path: str) -> bool:
        """Whether the client declared it in the handshake: `declares("sampling", "tools")`."""
        declared: Any = self.conversations[-1].client_capabilities if self.conversations else {}
        for name in path:
            if not isinstance(declared, dict) or not isinstance(declared.get(name), dict):
                return False
            declared = declared[name]
        return True

    def server_requests(self, *methods: str) -> list[JSONObject]:
        """Our requests."""
        return [
            body
            for conversation in self.conversations
            for entry in conversation.log.entries
            if entry.direction == SENT
            for body in message_objects(entry.message)
            if body.get("method") in methods and "id" in body
        ]

    def posts(self) -> list[ClientExchange]:
        """The requests to the MCP endpoint by which messages came."""
        return [each for each in self.exchanges if each.verb == "POST" and each.path == PATH]

    def opened_at(self) -> float:
        """When the answer to the first initialize was complete; for ever after where there was none."""
        opened = [
            each.ended_at
            for each in self.exchanges
            if "mcp-session-id" in each.response_headers and each.ended_at is not None
        ]
        return min(opened, default=float("inf"))

    @property
    def negotiated_revision(self) -> Any:
        """The revision that our first answer to initialize says; None where there was none."""
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
        """The longest time without a word of the client, in seconds, its start not counted."""
        times = [each.entry.at for each in self.messages()] + [self.finished_at] * (self.ending == "itself")
        return max((later - earlier for earlier, later in pairwise(times)), default=0.0)

    def evidence(self, *about: LogEntry) -> tuple[str, ...]:
        """What was said, as lines of a transcript: the messages in question, or those around what the scenario did."""
        entry = list(about) or self._relevant_entries()
        lines = [each.line() for each in entry[:_EVIDENCE]]
        return tuple(lines) if about else (*lines, f"# {self.ending_text}")

    def _relevant_entries(self) -> list[LogEntry]:
        """From what led the scenario to do something of its own on; the last messages, where it never did."""
        entry = sorted((each for one in self.conversations for each in one.log.entries), key=lambda each: each.at)
        turned = self.intervened_at
        if turned is None:
            return entry[-_EVIDENCE:]
        return entry[max(0, sum(each.at < turned for each in entry) - _BEFORE) :]

    def exchange_lines(self, request: JSONObject) -> tuple[str, ...]:
        """A request of ours and the answer to it, as lines of a transcript."""
        entry = [each for conversation in self.conversations for each in conversation.log.entries]
        lines = [each.line() for each in entry if _belongs_to_request(each, request["id"])]
        return (*lines, *(() if self.response_to(request["id"]) is not None else ("# no answer came",)))

    @property
    def ending_text(self) -> str:
        """In words."""
        if self.ending == "itself":
            return f"the client ended with {self.exit_code}"
        if self.ending == "quiet":
            return "the client had to be ended"
        return f"the client went on and on, and was ended{': ' + self.overflow if self.overflow else ''}"

    # --- verdicts that many scenarios share ---------------------------------------------------------------------------

    def require_intervention(self) -> None:
        """Raises `NotObserved` where the scenario never came to what it has in store."""
        if self.intervened_at is None:
            raise NotObserved("the client never came to where the server does something of its own")

    def require_no_crash(self) -> None:
        """Raises `Violation` where the client ended by a signal of its own making."""
        self.require_intervention()
        if (
            self.ending == "itself"
            and self.exit_code is not None
            and self.exit_code < 0 <= (self.ordinary_run.exit_code or 0)
        ):
            raise Violation(f"the client crashed (signal {-self.exit_code})", evidence=self.evidence())

    def require_progress(self, moment: float = 0.0) -> None:
        """Raises `Violation` where the client neither went on after that moment nor ended, though it does by itself."""
        self.require_no_crash()
        if self.ending == "itself" or any(each.entry.at > moment for each in self.messages_after()):
            return
        if self.ordinary_run.ending != "itself":
            raise NotObserved("the client does not exit by itself, so a hang cannot be detected")
        waited = self.finished_at - (self.intervened_at or self.started_at)
        text = f"{waited:.0f} s later the client still waited: it neither went on nor told of an error"
        raise Violation(text, evidence=self.evidence())

    def require_ordinary_behavior(self) -> None:
        """Raises `Violation` where the client did less than without the surprise, or ended otherwise."""
        self.require_progress()
        missing = sorted(str(each) for each in self.ordinary_run.methods - self.methods)
        if missing:
            raise Violation(f"the client did not come to {', '.join(missing)} any more", evidence=self.evidence())
        if (
            self.ending == "itself"
            and self.ordinary_run.ending == "itself"
            and self.exit_code != self.ordinary_run.exit_code
        ):
            was = self.ordinary_run.exit_code
            raise Violation(
                f"the client ended with {self.exit_code}, by itself it does with {was}", evidence=self.evidence()
            )


def _belongs_to_request(entry: LogEntry, id: Any) -> bool:
    """Whether it is our request with this id, or the client's answer to it."""
    found = [body for body in message_objects(entry.message) if "id" in body and id_key(body["id"]) == id_key(id)]
    return any(("method" in body) == (entry.direction == SENT) for body in found)


def _is_ping(message: ClientMessage) -> bool:
    return bool(message.method == "ping")


def error_code(answer: JSONObject | None) -> Any:
    """The code of the error in an answer; None where there is none."""
    error = (answer or {}).get("error")
    return error.get("code") if isinstance(error, dict) else None
