"""One conversation with a server, as rules see it: say anything, hear everything.

answer = await talk.request("tools/list")            an Answer, be it a result or an error
page = await talk.result("tools/list")               the result; an error breaks the rule
pending = talk.begin("tools/call", {...})            sent, not waited for
talk.send(b"no JSON"); said = await talk.tide()      what came until the answer to a harmless request
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from accord.check.record import Record, Reply, Said, objects
from accord.check.report import TransportName
from accord.check.rule import Broken, NotObserved
from accord.check.settings import CheckSettings
from accord.check.speech import CANNED, all_capabilities, envelope_of, http_headers
from accord.check.wires.base import Wire
from accord.check.wires.http import Headers, HTTPWire
from accord.messages.base import JSONObject, RequestId
from accord.messages.meta import SERVER_INFO
from accord.messages.revision import RULES, Rules
from accord.wire.lines import Unreadable
from accord.wire.sse import Event
from accord.wire.transcript import RECEIVED, SENT

if TYPE_CHECKING:
    from accord.check.opening import Doors

NOBODY = "accord-check-nobody"
"""A name that nothing has."""

_PAGES = 200
_BUSY = 6
"""A server that goes on saying other things has so many times as long for an answer."""
_LONGEST_PAUSE = 2.0
"""Seconds before a stream is taken up again, whatever the server wants."""
SILENT, GONE = "silent", "gone"


class Answer(msgspec.Struct, kw_only=True):
    """What came for one request. Over HTTP a refusal without a JSON-RPC message counts as an error with code 0."""

    request: JSONObject
    id: RequestId | None
    message: JSONObject
    raw: bytes = b""
    result: Any = UNSET
    error: JSONObject | None = None
    others: list[JSONObject] = msgspec.field(default_factory=list)
    """What else the server sent meanwhile."""
    status: int | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    seconds: float = 0.0

    @property
    def code(self) -> int | None:
        """That of the error; None for a result."""
        return None if self.error is None else self.error.get("code")


class Pending:
    """A request in flight."""

    def __init__(self, talk: Talk, request: JSONObject, stream: int, since: int) -> None:
        self.request: JSONObject = request
        self.id: Any = request.get("id")
        self.stream: int = stream
        self.since: int = since
        """How many entries the record had when it was sent."""
        self.future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._talk = talk
        self._began = asyncio.get_running_loop().time()

    @property
    def arrived(self) -> bool:
        """Whether its answer is there."""
        return self.future.done()

    async def answer(self, seconds: float | None = None) -> Answer:
        """Wait for it. Raises `Broken`: `silent` when none comes in time, `gone` when the server ends before."""
        limit = self._talk.patience if seconds is None else seconds
        if not await self._arrives(limit, limit * _BUSY if seconds is None else limit):
            what = self.request.get("method", "the message")
            raise self._talk.broken(f"no answer to {what} in {limit:g} s", since=self.since, symptom=f"{SILENT}:{what}")
        answer = self.future.result()
        answer.seconds = asyncio.get_running_loop().time() - self._began
        answer.others = self._talk.others(self.since, self.id)
        return answer

    async def _arrives(self, limit: float, most: float) -> bool:
        """Wait `limit` seconds since the server last said anything, `most` in all: it may have much to do."""
        clock = asyncio.get_running_loop().time
        began = clock()
        while not self.future.done():
            left = min(max(began, self._talk.heard_at) + limit, began + most) - clock()
            if left <= 0:
                return False
            await asyncio.wait([self.future], timeout=left)
        return True


class Talk:
    """One conversation. `answers` says what requests of the server get: a result, or a function of the request."""

    def __init__(self, wire: Wire, record: Record, settings: CheckSettings) -> None:
        self.wire: Wire = wire
        self.record: Record = record
        self.settings: CheckSettings = settings
        self.revision: str = record.revision
        self.rules: Rules = RULES[record.revision]
        self.transport: TransportName = wire.transport
        self.nobody: str = NOBODY
        self.hello: JSONObject = {}
        self.declared: JSONObject = all_capabilities(record.revision)
        """Our capabilities."""
        self.answers: dict[str, Any] = dict(CANNED)
        self.schemas: dict[str, JSONObject] = {}
        """The input schemas of tools, by name, as far as they were listed: arguments may stand in headers too."""
        self.alive: bool = True
        self.doors: Doors | None = None
        """Where it came from."""
        self._cut = ""
        self._closing: asyncio.Task[None] | None = None
        self._ids = itertools.count(1)
        self._pending: dict[Any, Pending] = {}
        self._listeners: list[Callable[[Said], None]] = []
        self._lists: dict[str, list[JSONObject]] = {}
        wire.on_heard = self._on_heard
        wire.on_end = self._on_end
        if isinstance(wire, HTTPWire):
            wire.on_reply = self._on_reply

    # --- what the server is ------------------------------------------------------------------------------------

    @property
    def http(self) -> HTTPWire | None:
        """The wire, where it is HTTP: `await talk.http.fetch("POST", body, headers)`."""
        return self.wire if isinstance(self.wire, HTTPWire) else None

    @property
    def server_info(self) -> JSONObject:
        """What the server calls itself."""
        meta = self.hello.get("_meta")
        found = self.hello.get("serverInfo") or (meta.get(SERVER_INFO) if isinstance(meta, dict) else None)
        return found if isinstance(found, dict) else {}

    @property
    def capabilities(self) -> JSONObject:
        """What the server declared."""
        found = self.hello.get("capabilities")
        return found if isinstance(found, dict) else {}

    @property
    def heard_at(self) -> float:
        """When the server last said anything, by the clock of the loop; 0 before. Over HTTP all conversations count."""
        records = self.doors.records if self.doors is not None and self.http is not None else [self.record]
        return max(_last(record) for record in records)

    @property
    def patience(self) -> float:
        """How long to wait for an answer, in seconds: a process that has said nothing yet may still be starting."""
        is_starting = self.transport == "stdio" and not any(each.direction == RECEIVED for each in self.record.entries)
        return self.settings.opening if is_starting else self.settings.timeout

    @property
    def harmless(self) -> str:
        """A method without params that every server of the revision answers, and that changes nothing."""
        return "ping" if self.rules.handshake else "server/discover"

    def has(self, path: str) -> bool:
        """Whether the server declared a capability: `tools`, `resources.subscribe`."""
        return declares(self.capabilities, path)

    def may_call(self, tool: JSONObject) -> bool:
        """Whether the person allows to call this tool."""
        hints = tool.get("annotations")
        reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True
        return self.settings.may_call(str(tool.get("name")), reads)

    async def tools(self) -> list[JSONObject]:
        """All of them, as they came; none where the server has no such capability."""
        tools = await self._listed("tools/list", "tools", "tools")
        self.schemas |= {str(tool.get("name")): tool["inputSchema"] for tool in tools if "inputSchema" in tool}
        return tools

    async def callable(self) -> list[JSONObject]:
        """The tools that may be called."""
        slow = self.doors.slow if self.doors is not None else ()
        return [tool for tool in await self.tools() if self.may_call(tool) and tool.get("name") not in slow]

    def leave_out(self, tool: JSONObject) -> None:
        """Call this tool no more in this visit: it takes too long."""
        if self.doors is not None:
            self.doors.slow.add(tool.get("name"))

    async def prompts(self) -> list[JSONObject]:
        return await self._listed("prompts/list", "prompts", "prompts")

    async def resources(self) -> list[JSONObject]:
        return await self._listed("resources/list", "resources", "resources")

    async def templates(self) -> list[JSONObject]:
        """None where the server does not know the method, too: it may have resources only."""
        return await self._listed("resources/templates/list", "resourceTemplates", "resources", optional=True)

    async def _listed(self, method: str, key: str, needs: str, optional: bool = False) -> list[JSONObject]:
        if key not in self._lists:
            pages = await self.pages(method, key, optional) if self.has(needs) else []
            self._lists[key] = [each for page in pages for each in page[key] if isinstance(each, dict)]
        return self._lists[key]

    async def pages(self, method: str, key: str, optional: bool = False) -> list[JSONObject]:
        """Every page of a list, asked for anew. Raises `Broken` for what is no list of `key`, and has no end.

        With `optional`, an error is as good as no more pages.
        """
        found: list[JSONObject] = []
        params: JSONObject = {}
        for _ in range(_PAGES):
            answer = await self.request(method, params)
            if answer.error is not None and optional:
                return found
            page = answer.result
            if not isinstance(page, dict) or not isinstance(page.get(key), list):
                raise self.broken(f"{method} gives no list {key!r}", symptom=f"list:{method}")
            found.append(page)
            if not isinstance(page.get("nextCursor"), str):
                return found
            params = {"cursor": page["nextCursor"]}
        raise self.broken(f"{method} does not end: {_PAGES} pages, and one more", symptom=f"endless:{method}")

    # --- saying ------------------------------------------------------------------------------------------------

    def next_id(self) -> int:
        """An id that was not used here."""
        return next(self._ids)

    def begin(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        id: Any = UNSET,
        headers: Headers | None = None,
    ) -> Pending:
        """Send a request, with all that the revision wants; `meta` is added to its `_meta`."""
        message = self.message(method, params, meta=meta, id=id)
        return self.send(message, headers=headers, misbehaved=False)

    async def request(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        id: Any = UNSET,
        seconds: float | None = None,
        headers: Headers | None = None,
    ) -> Answer:
        """Send a request and wait. Raises `Broken` for silence and for the end of the server only."""
        return await self.begin(method, params, meta=meta, id=id, headers=headers).answer(seconds)

    async def result(self, method: str, params: JSONObject | None = None, **more: Any) -> JSONObject:
        """The same for what must succeed. Raises `Broken` for an error, too."""
        answer = await self.request(method, params, **more)
        if answer.error is not None:
            raise self.broken(f"{method} is answered with an error: {shown(answer.error)}")
        if not isinstance(answer.result, dict):
            raise self.broken(f"the result of {method} is no object: {shown(answer.result)}")
        return answer.result

    def notify(self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", **envelope_of(self, method, params, meta)}, misbehaved=False)

    def send(
        self, message: Any, *, headers: Headers | None = None, misbehaved: bool = True, ending: bytes = b""
    ) -> Pending:
        """Send anything: bytes as they are, all else as JSON, with `ending` behind it. The `Pending` is that of its id,
        if it has one.
        """
        pending = self.expect(message, misbehaved=misbehaved)
        if self.alive:
            raw = self.record.entries[-1].raw
            assert isinstance(raw, bytes), "we sent it"
            own = http_headers(self, self.record.entries[-1].message)
            pending.stream = self.wire.send(raw + ending, {**own, **(headers or {})})
        return pending

    def expect(self, message: Any, *, misbehaved: bool = False) -> Pending:
        """Wait for the answer to what is sent in another way, and note that it is."""
        raw = message if isinstance(message, bytes) else msgspec.json.encode(message)
        pending = Pending(self, message if isinstance(message, dict) else {}, 0, len(self.record.entries))
        if not self.alive:
            pending.future.set_exception(self._gone(pending))
            pending.future.exception()
            return pending
        if isinstance(message, dict) and "method" in message and "id" in message and _hashable(message["id"]):
            self._pending.setdefault(_key(message["id"]), pending)
        self.record.add(SENT, raw, misbehaved=misbehaved, stream=len(self.record.replies) + 1)
        return pending

    def message(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None, id: Any = UNSET
    ) -> JSONObject:
        """A request with all that the revision wants, to be changed before it is sent."""
        number = self.next_id() if id is UNSET else id
        return {"jsonrpc": "2.0", "id": number, **envelope_of(self, method, params, meta)}

    async def post(self, message: Any, headers: Headers | None = None, *, misbehaved: bool = True) -> Reply:
        """Over HTTP: send anything, and wait until its response has ended, or the time is over."""
        stream = self.send(message, headers=headers, misbehaved=misbehaved).stream
        await self.settled(stream)
        return self.record.replies[stream - 1]

    def send_batch(self, items: list[Any], *, misbehaved: bool = False) -> list[Pending]:
        """Send several messages in one array; the `Pending` of each request among them."""
        requests = [item for item in items if isinstance(item, dict) and "method" in item and "id" in item]
        waiting = [Pending(self, request, 0, len(self.record.entries)) for request in requests]
        self._pending.update((_key(pending.id), pending) for pending in waiting)
        stream = self.send(items, misbehaved=misbehaved).stream
        for pending in waiting:
            pending.stream = stream
        return waiting

    # --- hearing -----------------------------------------------------------------------------------------------

    async def tide(self, seconds: float | None = None) -> list[JSONObject]:
        """Send a harmless request, and return what else came until its answer. Raises `Broken` as `request` does."""
        since = len(self.record.entries)
        answer = await self._fence(seconds)
        return self.others(since, answer.id)

    async def _fence(self, seconds: float | None = None) -> Answer:
        """A harmless request, answered; over HTTP no response, and 500, are the end of the server as well."""
        since = len(self.record.entries)
        answer = await self.request(self.harmless, seconds=seconds)
        if answer.error is not None and answer.code == 0 and (not answer.status or answer.status >= 500):
            raise self.broken(f"{self.harmless} gets {answer.error['message']}", since=since, symptom=GONE)
        return answer

    async def exchange(self, message: Any, *, headers: Headers | None = None) -> list[JSONObject]:
        """Send anything, and return what came until a harmless request was answered."""
        since = len(self.record.entries)
        pending = self.send(message, headers=headers)
        answer = await self._fence()
        if self.http is not None:
            await self.settled(pending.stream)
        return self.others(since, answer.id)

    async def hear(self, wanted: Callable[[JSONObject], bool], seconds: float | None = None) -> JSONObject | None:
        """The next message that is wanted; None when none comes in time."""
        found: asyncio.Future[JSONObject] = asyncio.get_running_loop().create_future()

        def listen(said: Said) -> None:
            try:
                for each in objects(said.message):
                    if not found.done() and wanted(each):
                        found.set_result(each)
            except Exception as exc:  # a defect of the rule: it belongs to who waits, not to whoever reads on
                found.set_exception(exc)

        self._listeners.append(listen)
        try:
            async with asyncio.timeout(self.settings.timeout if seconds is None else seconds):
                return await found
        except TimeoutError:
            return None
        finally:
            self._listeners.remove(listen)

    def others(self, since: int, id: Any) -> list[JSONObject]:
        """What the server has said since then, but the answer to `id`."""
        heard = (said for said in self.record.entries[since:] if said.direction == RECEIVED)
        return [each for said in heard for each in objects(said.message) if not _answers(each, id)]

    def reply(self, stream: int) -> Reply | None:
        """Over HTTP: what came for a request so far."""
        return self.record.replies[stream - 1] if 0 < stream <= len(self.record.replies) else None

    def broken(self, text: str, *, since: int | None = None, symptom: str = "", cause: str = "") -> Broken:
        """A `Broken` with what was said as evidence: since then, or last."""
        start = max(0, len(self.record.entries) - 4) if since is None else since
        return Broken(text, symptom=symptom, cause=cause, evidence=self.record.evidence(start))

    async def greet(self) -> None:
        """Open it, where nothing was said yet. Raises `Unspoken`, and `Broken` when nothing sensible comes."""
        assert self.doors is not None, "it came through a door"
        await self.doors.open_up(self)

    async def reopen(self, capabilities: JSONObject | None = None) -> Talk:
        """Another conversation with the same server, opened; with capabilities of ours other than all."""
        assert self.doors is not None, "it came through a door"
        return await self.doors.open("own", self.record.case, capabilities=capabilities)

    async def another(self) -> Talk:
        """Another one, in which nothing was said yet."""
        assert self.doors is not None, "it came through a door"
        return await self.doors.raw("raw", self.record.case)

    async def close(self) -> None:
        """End it, once. What the peer wrote to its stderr, and how it ended, is in the record then."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.wait([self._closing])  # whoever is late for it waits as well, and takes nobody's cancellation
        if not self._closing.cancelled():
            self._closing.result()

    async def _close(self) -> None:
        await self.wire.close()
        self.record.stderr = self.wire.stderr
        self.record.exit_code = self.wire.exit_code

    async def settled(self, stream: int) -> None:
        """Over HTTP: wait until the response to a POST has ended, or the time is over."""
        reply = self.reply(stream)
        if reply is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.timeout):
                    await reply.over.wait()

    def _on_heard(self, raw: bytes | Unreadable, stream: int) -> None:
        if self.record.room.full:
            self._cut_off(self.record.room.full)
            return
        said = self.record.add(RECEIVED, raw, stream=stream)
        for each in objects(said.message):
            if "method" in each:
                self._serve(each)
            elif _hashable(each.get("id")):
                self._settle(each, raw if isinstance(raw, bytes) else b"", stream)
        for listen in list(self._listeners):
            listen(said)

    def _cut_off(self, why: str) -> None:
        """Hear nothing more: what is not kept cannot be judged."""
        if not self._cut:
            self._cut = why
            self._on_end()
            self._closing = asyncio.create_task(self._close())

    def _settle(self, message: JSONObject, raw: bytes, stream: int) -> None:
        pending = self._pending.pop(_key(message.get("id")), None)
        if pending is None or pending.future.done():
            return
        reply = self.reply(pending.stream)
        error = message.get("error")
        pending.future.set_result(
            Answer(
                request=pending.request,
                id=message.get("id"),
                message=message,
                raw=raw,
                result=message.get("result", UNSET),
                error=error if isinstance(error, dict) else None if error is None else {"message": shown(error)},
                status=reply.status if reply else None,
                headers=reply.headers if reply else {},
            )
        )

    def _serve(self, message: JSONObject) -> None:
        """Answer what the server asks, as a good client does."""
        if "id" not in message:
            return
        method = message["method"]
        result = self.answers.get(method) if isinstance(method, str) else None
        if callable(result):
            result = result(message)
        said: JSONObject = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            said["error"] = {"code": -32601, "message": "Method not found"}
        else:
            said["result"] = result
        self.send(said, misbehaved=False)

    def _on_reply(self, reply: Reply) -> None:
        """A response has ended: a request that was to be answered on it, and was not, gets what HTTP said."""
        refused = reply.error or reply.status >= 300 or not reply.status
        if self.transport == "sse" and not refused:
            return
        waiting = [pending for pending in self._pending.values() if pending.stream == reply.stream]
        if waiting and not refused and self._resume(reply, waiting):
            return
        for pending in waiting:
            self._pending.pop(_key(pending.id), None)
            self._refuse(pending, reply)

    def _resume(self, reply: Reply, waiting: list[Pending]) -> bool:
        """Come back for the rest of a stream that ended early, as its events say; whether they do."""
        last = next((event.id for event in reversed(reply.events) if isinstance(event, Event) and event.id), None)
        if last is None or self.http is None:
            return False
        retry = next((event.retry for event in reversed(reply.events) if isinstance(event, Event) and event.retry), 0)
        asyncio.get_running_loop().call_later(min(retry / 1000, _LONGEST_PAUSE), self._come_back, last, waiting)
        return True

    def _come_back(self, last: str, waiting: list[Pending]) -> None:
        if self.alive and self.http is not None:
            stream = self.http.listen({"Last-Event-ID": last, "MCP-Protocol-Version": self.revision}).stream
            for pending in waiting:
                pending.stream = stream

    def _refuse(self, pending: Pending, reply: Reply) -> None:
        text = f"HTTP {reply.status}" if reply.status else reply.error
        text += ", and the stream ended without an answer" if reply.events else ""
        body = reply.body[:500].decode(errors="replace")
        message = f"{text}: {body}" if body else text
        if not pending.future.done():
            pending.future.set_result(
                Answer(
                    request=pending.request,
                    id=pending.id,
                    message={},
                    error={"code": 0, "message": message},
                    status=reply.status,
                    headers=reply.headers,
                )
            )

    def _on_end(self) -> None:
        self.alive = False
        for pending in list(self._pending.values()):
            if not pending.future.done():
                pending.future.set_exception(self._gone(pending))
                pending.future.exception()  # whoever waits gets it; nobody has to
        self._pending.clear()

    def _gone(self, pending: Pending) -> Broken | NotObserved:
        if self._cut:
            return NotObserved(self._cut)
        tail = f"; its last words:\n{self.wire.stderr[-600:]}" if self.wire.stderr else ""
        what = pending.request.get("method", "the message")
        return self.broken(
            f"no answer to {what}: {self.wire.lost}{tail}", since=pending.since, symptom=f"{GONE}:{what}"
        )


def _last(record: Record) -> float:
    return next((each.at for each in reversed(record.entries) if each.direction != SENT), 0.0)


def declares(capabilities: JSONObject, path: str) -> bool:
    """Whether a capability, or one inside it, is there."""
    value: Any = capabilities
    for key in path.split("."):
        if not isinstance(value, dict) or value.get(key) in (None, False):
            return False
        value = value[key]
    return True


def shown(value: Any, longest: int = 300) -> str:
    """A JSON value in one line, shortened."""
    text = msgspec.json.encode(value).decode(errors="replace")
    return text if len(text) <= longest else f"{text[:longest]}…"


def _hashable(id: Any) -> bool:
    return isinstance(id, int | str | float) or id is None


def _key(id: Any) -> tuple[type, Any]:
    return type(id), id


def _answers(message: JSONObject, id: Any) -> bool:
    return "method" not in message and message.get("id") == id and type(message.get("id")) is type(id)
