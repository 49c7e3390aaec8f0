"""What one run of the client left behind: what was said both ways, the HTTP requests, and how the client ended.

Judges ask it: which requests of a method came, what came after the scene did something of its own (`after`), whether
the client went on as it does by itself (`as_usual`, compared with the run without surprises), or at least got away
from what it was given (`got_away`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import msgspec

from accord.check.clients.conversation import Conversation
from accord.check.clients.web import Exchange
from accord.check.reading import key
from accord.check.record import Said, objects
from accord.check.report import TransportName
from accord.check.rule import Broken, NotObserved
from accord.messages.base import JSONObject
from accord.wire.transcript import RECEIVED, SENT

Ending: TypeAlias = Literal["itself", "quiet", "deadline"]
"""`itself`: the client ended by itself. `quiet`: we ended it after it had said nothing for a while. `deadline`: we
ended it although it still spoke: it had for too long, or had said more than is kept."""

PATH = "/mcp"
"""Of the MCP endpoint over HTTP."""

_EVIDENCE = 12
_BEFORE = 2


class Message(msgspec.Struct, frozen=True):
    """One message of the client, and where it stood."""

    body: JSONObject
    said: Said
    conversation: Conversation

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


class Run:
    """One run of the client in one scene. Times are of the monotonic clock."""

    def __init__(self, scene: str, revision: str, transport: TransportName) -> None:
        self.scene: str = scene
        self.revision: str = revision
        self.transport: TransportName = transport
        self.conversations: list[Conversation] = []
        self.exchanges: list[Exchange] = []
        """What came over HTTP, in order."""
        self.connections: int = 0
        """Over HTTP: those that the client opened, whatever it said on them."""
        self.places: frozenset[str] = frozenset()
        """Over HTTP+SSE: the targets that streams named to post to."""
        self.strays: list[Exchange] = []
        """What came to the other origin, where nobody has any business."""
        self.turned_at: float | None = None
        """When the scene did something of its own; None where it never came to that."""
        self.began: float = 0.0
        self.finished: float = 0.0
        self.ending: Ending = "itself"
        self.exit_code: int | None = None
        self.full: str = ""
        """Why we stopped listening: it said more than is kept. Empty where it did not."""
        self.words: str = ""
        """The last lines that it wrote for people."""
        self.usual: Run = self
        """The run without surprises in the same revision."""

    # --- what was said ---------------------------------------------------------------------------------------------

    def messages(self) -> Iterator[Message]:
        """Everything that the client said and that is an object, in order."""
        return iter(sorted(self._messages(), key=lambda message: message.said.at))

    def _messages(self) -> Iterator[Message]:
        for conversation in self.conversations:
            for said in conversation.record.entries:
                if said.direction == RECEIVED:
                    yield from (Message(body, said, conversation) for body in objects(said.message))

    def requests(self, *methods: str) -> list[Message]:
        """The requests of the client, of these methods or of any."""
        return [
            each
            for each in self.messages()
            if "id" in each.body and each.method is not None and (not methods or each.method in methods)
        ]

    def notifications(self, *methods: str) -> list[Message]:
        """Its notifications, of these methods or of any."""
        return [
            each
            for each in self.messages()
            if "id" not in each.body and each.method is not None and (not methods or each.method in methods)
        ]

    def answers(self) -> list[Message]:
        """Its answers."""
        return [each for each in self.messages() if each.method is None]

    def answer_to(self, id: Any) -> JSONObject | None:
        """Its answer to a request of ours, with the very id."""
        found = [each.body for each in self.answers() if key(each.body.get("id")) == key(id)]
        return found[0] if found else None

    def declares(self, *path: str) -> bool:
        """Whether the client declared it in the handshake: `declares("sampling", "tools")`."""
        declared: Any = self.conversations[-1].declared if self.conversations else {}
        for name in path:
            if not isinstance(declared, dict) or not isinstance(declared.get(name), dict):
                return False
            declared = declared[name]
        return True

    def asked(self, *methods: str) -> list[JSONObject]:
        """Our requests."""
        return [
            body
            for conversation in self.conversations
            for said in conversation.record.entries
            if said.direction == SENT
            for body in objects(said.message)
            if body.get("method") in methods and "id" in body
        ]

    def posts(self) -> list[Exchange]:
        """The requests to the MCP endpoint by which messages came."""
        return [each for each in self.exchanges if each.verb == "POST" and each.path == PATH]

    def opened_at(self) -> float:
        """When the answer to the first initialize was complete; for ever after where there was none."""
        opened = [each.ended for each in self.exchanges if "mcp-session-id" in each.answered and each.ended is not None]
        return min(opened, default=float("inf"))

    @property
    def agreed(self) -> Any:
        """The revision that our first answer to initialize says; None where there was none."""
        for conversation in self.conversations:
            for body in conversation.record.sent():
                result = body.get("result")
                if isinstance(result, dict) and "protocolVersion" in result:
                    return result["protocolVersion"]
        return None

    def after(self) -> list[Message]:
        """What the client said after the scene had done something of its own, and before it was ended; pings aside."""
        if self.turned_at is None:
            return []
        return [each for each in self.messages() if self.turned_at < each.said.at <= self.finished and not _ping(each)]

    @property
    def methods(self) -> set[Any]:
        """The methods that the client used."""
        return {each.method for each in self.messages() if each.method is not None}

    @property
    def silence(self) -> float:
        """The longest time without a word of the client, in seconds, its start not counted."""
        times = [each.said.at for each in self.messages()] + [self.finished] * (self.ending == "itself")
        return max((later - earlier for earlier, later in pairwise(times)), default=0.0)

    def evidence(self, *about: Said) -> tuple[str, ...]:
        """What was said, as lines of a transcript: the messages in question, or those around what the scene did."""
        said = list(about) or self._in_question()
        lines = [each.line() for each in said[:_EVIDENCE]]
        return tuple(lines) if about else (*lines, f"# {self.how_it_ended}")

    def _in_question(self) -> list[Said]:
        """From what led the scene to do something of its own on; the last messages, where it never did."""
        said = sorted((each for one in self.conversations for each in one.record.entries), key=lambda each: each.at)
        turned = self.turned_at
        if turned is None:
            return said[-_EVIDENCE:]
        return said[max(0, sum(each.at < turned for each in said) - _BEFORE) :]

    def exchanged(self, request: JSONObject) -> tuple[str, ...]:
        """A request of ours and the answer to it, as lines of a transcript."""
        said = [each for conversation in self.conversations for each in conversation.record.entries]
        lines = [each.line() for each in said if _is_of(each, request["id"])]
        return (*lines, *(() if self.answer_to(request["id"]) is not None else ("# no answer came",)))

    @property
    def how_it_ended(self) -> str:
        """In words."""
        if self.ending == "itself":
            return f"the client ended with {self.exit_code}"
        if self.ending == "quiet":
            return "the client had to be ended"
        return f"the client went on and on, and was ended{': ' + self.full if self.full else ''}"

    # --- verdicts that many scenes share ---------------------------------------------------------------------------

    def reached(self) -> None:
        """Raises `NotObserved` where the scene never came to what it has in store."""
        if self.turned_at is None:
            raise NotObserved("the client never came to where the server does something of its own")

    def survived(self) -> None:
        """Raises `Broken` where the client ended by a signal of its own making."""
        self.reached()
        if self.ending == "itself" and self.exit_code is not None and self.exit_code < 0 <= (self.usual.exit_code or 0):
            raise Broken(f"the client crashed (signal {-self.exit_code})", evidence=self.evidence())

    def got_away(self, moment: float = 0.0) -> None:
        """Raises `Broken` where the client neither went on after that moment nor ended, though it does by itself."""
        self.survived()
        if self.ending == "itself" or any(each.said.at > moment for each in self.after()):
            return
        if self.usual.ending != "itself":
            raise NotObserved("the client stays open by itself: nobody can see whether it hangs")
        waited = self.finished - (self.turned_at or self.began)
        text = f"{waited:.0f} s later the client still waited: it neither went on nor told of an error"
        raise Broken(text, evidence=self.evidence())

    def as_usual(self) -> None:
        """Raises `Broken` where the client did less than without the surprise, or ended otherwise."""
        self.got_away()
        missing = sorted(str(each) for each in self.usual.methods - self.methods)
        if missing:
            raise Broken(f"the client did not come to {', '.join(missing)} any more", evidence=self.evidence())
        if self.ending == "itself" and self.usual.ending == "itself" and self.exit_code != self.usual.exit_code:
            was = self.usual.exit_code
            raise Broken(
                f"the client ended with {self.exit_code}, by itself it does with {was}", evidence=self.evidence()
            )


def _is_of(said: Said, id: Any) -> bool:
    """Whether it is our request with this id, or the client's answer to it."""
    found = [body for body in objects(said.message) if "id" in body and key(body["id"]) == key(id)]
    return any(("method" in body) == (said.direction == SENT) for body in found)


def _ping(message: Message) -> bool:
    return bool(message.method == "ping")


def code_of(answer: JSONObject | None) -> Any:
    """The code of the error in an answer; None where there is none."""
    error = (answer or {}).get("error")
    return error.get("code") if isinstance(error, dict) else None
