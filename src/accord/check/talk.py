"""One conversation with a server, as rules see it: say anything, hear everything.

answer = await talk.request("tools/list")            an Answer, be it a result or an error
page = await talk.result("tools/list")               the result; an error breaks the rule
pending = talk.begin("tools/call", {...})            sent, not waited for
talk.send(b"no JSON"); said = await talk.tide()      what came until the answer to a harmless request
"""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import UNSET

from accord.check.conversation import Conversation
from accord.check.record import Record, Reply
from accord.check.rule import Kind, NotObserved
from accord.check.settings import CheckSettings
from accord.check.speech import envelope_of
from accord.check.symptoms import ENDLESS
from accord.check.values import declares, shown
from accord.check.waiting import GONE, Answer, Pending
from accord.check.wires.base import Wire
from accord.check.wires.child import ChildWire
from accord.check.wires.http import Headers
from accord.messages.base import JSONObject
from accord.messages.meta import SERVER_INFO

NOBODY = "accord-check-nobody"
"""A name that nothing has."""

_PAGES = 200


class Origin(Protocol):
    """Where conversations with one server come from."""

    slow: set[Any]
    """Names of tools that did not answer in time."""
    outlived: float
    """Seconds for which the server was seen to run on after the end of its input."""

    async def raw(self, kind: Kind = "raw", case: str = "") -> Talk: ...

    async def open(self, kind: Kind = "own", case: str = "", *, capabilities: JSONObject | None = None) -> Talk: ...

    async def open_up(self, talk: Talk) -> None: ...

    async def second(self, case: str = "") -> Talk: ...


class Talk(Conversation):
    """A conversation with a server, in the words of its revision."""

    def __init__(self, wire: Wire, record: Record, settings: CheckSettings, doors: Origin) -> None:
        super().__init__(wire, record, settings)
        self.nobody: str = NOBODY
        self.hello: JSONObject = {}
        self.doors: Origin = doors
        self._lists: dict[str, list[JSONObject]] = {}

    # --- what the server is ------------------------------------------------------------------------------------

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
    def child(self) -> ChildWire:
        """The process of the server. Raises `NotObserved` where it is none of ours."""
        if not isinstance(self.wire, ChildWire):
            raise NotObserved("it is not a process of ours")
        return self.wire

    @property
    def harmless(self) -> str:
        """A method without params that every server of the revision answers, and that changes nothing."""
        return "ping" if self.rules.handshake else "server/discover"

    def has(self, path: str) -> bool:
        """Whether the server declared a capability: `tools`, `resources.subscribe`."""
        return declares(self.capabilities, path)

    def may_call(self, tool: JSONObject) -> bool:
        """Whether the settings allow this tool to be called."""
        hints = tool.get("annotations")
        reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True
        return self.settings.may_call(str(tool.get("name")), reads)

    async def tools(self) -> list[JSONObject]:
        """Return all tools, as they came; none if the server does not declare the capability."""
        tools = await self._listed("tools/list", "tools", "tools")
        self.schemas.update({str(tool.get("name")): tool["inputSchema"] for tool in tools if "inputSchema" in tool})
        return tools

    async def callable(self) -> list[JSONObject]:
        """Return the tools that may be called."""
        return [tool for tool in await self.tools() if self.may_call(tool) and tool.get("name") not in self.doors.slow]

    def leave_out(self, tool: JSONObject) -> None:
        """Do not call this tool again in this visit: it takes too long."""
        self.doors.slow.add(tool.get("name"))

    async def prompts(self) -> list[JSONObject]:
        return await self._listed("prompts/list", "prompts", "prompts")

    async def resources(self) -> list[JSONObject]:
        return await self._listed("resources/list", "resources", "resources")

    async def templates(self) -> list[JSONObject]:
        """Return all resource templates; none if the server does not know the method."""
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
            if page in found[-1:] and page.get("nextCursor") == params.get("cursor"):
                raise self.broken(f"{method} gives the same page again, and its own cursor", symptom=ENDLESS)
            found.append(page)
            if not isinstance(page.get("nextCursor"), str):
                return found
            params = {"cursor": page["nextCursor"]}
        raise self.broken(f"{method} does not end: {_PAGES} pages, and one more", symptom=ENDLESS)

    # --- saying ------------------------------------------------------------------------------------------------

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
        for pending in waiting:
            self.await_answer(pending)
        stream = self.send(items, misbehaved=misbehaved).stream
        for pending in waiting:
            pending.stream = stream
        return waiting

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

    async def greet(self) -> None:
        """Open it, where nothing was said yet. Raises `Unspoken`, and `Broken` when nothing sensible comes."""
        await self.doors.open_up(self)

    async def reopen(self, capabilities: JSONObject | None = None) -> Talk:
        """Open another conversation with the same server; `capabilities` are ours, all by default."""
        return await self.doors.open("own", self.record.case, capabilities=capabilities)

    async def second(self) -> Talk:
        """Return a second open conversation, which shared cases have in common: each leaves it as it was."""
        return await self.doors.second(self.record.case)

    async def another(self) -> Talk:
        """Open another conversation, in which nothing was said yet."""
        return await self.doors.raw("raw", self.record.case)
