"""One conversation with a server, as rules see it: say anything, hear everything.

answer = await talk.request("tools/list")            an Answer, be it a result or an error
page = await talk.result("tools/list")               the result; an error breaks the rule
pending = talk.begin("tools/call", {...})            sent, not waited for
talk.send(b"no JSON"); said = await talk.tide()      what came until the answer to a harmless request
"""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import UNSET

from accord.check.engine.rule import Kind, NotObserved
from accord.check.probes.client_messages import request_body
from accord.check.probes.content import ENDLESS, declares, preview_json
from accord.check.probes.message_log import LoggedResponse, MessageLog
from accord.check.probes.pending_answer import CONNECTION_LOST, Answer, PendingAnswer
from accord.check.probes.probe_connection import ProbeConnection
from accord.check.settings import CheckSettings
from accord.check.wires.base import Wire
from accord.check.wires.child import ChildWire
from accord.check.wires.http import Headers
from accord.messages.base import JSONObject
from accord.messages.meta import SERVER_INFO

UNKNOWN_NAME = "accord-check-nobody"
"""A name that nothing has."""

_PAGES = 200


class ProbeFactory(Protocol):
    """Where conversations with one server come from."""

    slow_tools: set[Any]
    """Names of tools that did not answer in time."""
    exit_delay: float
    """Seconds for which the server was seen to run on after the end of its input."""

    async def open_raw(self, kind: Kind = "raw", case: str = "") -> Probe: ...

    async def open(self, kind: Kind = "own", case: str = "", *, capabilities: JSONObject | None = None) -> Probe: ...

    async def negotiate(self, probe: Probe) -> None: ...

    async def second(self, case: str = "") -> Probe: ...


class Probe(ProbeConnection):
    """A conversation with a server, in the words of its revision."""

    def __init__(self, wire: Wire, log: MessageLog, settings: CheckSettings, factory: ProbeFactory) -> None:
        super().__init__(wire, log, settings)
        self.unknown_name: str = UNKNOWN_NAME
        self.handshake_result: JSONObject = {}
        self.factory: ProbeFactory = factory
        self._lists: dict[str, list[JSONObject]] = {}

    # --- what the server is ------------------------------------------------------------------------------------

    @property
    def server_info(self) -> JSONObject:
        """What the server calls itself."""
        meta = self.handshake_result.get("_meta")
        found = self.handshake_result.get("serverInfo") or (meta.get(SERVER_INFO) if isinstance(meta, dict) else None)
        return found if isinstance(found, dict) else {}

    @property
    def capabilities(self) -> JSONObject:
        """What the server declared."""
        found = self.handshake_result.get("capabilities")
        return found if isinstance(found, dict) else {}

    @property
    def process(self) -> ChildWire:
        """The process of the server. Raises `NotObserved` where it is none of ours."""
        if not isinstance(self.wire, ChildWire):
            raise NotObserved("it is not a process of ours")
        return self.wire

    @property
    def harmless_method(self) -> str:
        """A method without params that every server of the revision answers, and that changes nothing."""
        return "ping" if self.rules.handshake else "server/discover"

    def has_capability(self, path: str) -> bool:
        """Whether the server declared a capability: `tools`, `resources.subscribe`."""
        return declares(self.capabilities, path)

    def may_call(self, tool: JSONObject) -> bool:
        """Whether the settings allow this tool to be called."""
        hints = tool.get("annotations")
        reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True
        return self.settings.may_call(str(tool.get("name")), reads)

    async def tools(self) -> list[JSONObject]:
        """Return all tools, as they came; none if the server does not declare the capability."""
        tools = await self._list_all("tools/list", "tools", "tools")
        self.schemas.update({str(tool.get("name")): tool["inputSchema"] for tool in tools if "inputSchema" in tool})
        return tools

    async def callable_tools(self) -> list[JSONObject]:
        """Return the tools that may be called."""
        return [
            tool
            for tool in await self.tools()
            if self.may_call(tool) and tool.get("name") not in self.factory.slow_tools
        ]

    def exclude_tool(self, tool: JSONObject) -> None:
        """Do not call this tool again in this visit: it takes too long."""
        self.factory.slow_tools.add(tool.get("name"))

    async def prompts(self) -> list[JSONObject]:
        return await self._list_all("prompts/list", "prompts", "prompts")

    async def resources(self) -> list[JSONObject]:
        return await self._list_all("resources/list", "resources", "resources")

    async def templates(self) -> list[JSONObject]:
        """Return all resource templates; none if the server does not know the method."""
        return await self._list_all("resources/templates/list", "resourceTemplates", "resources", optional=True)

    async def _list_all(self, method: str, key: str, needs: str, optional: bool = False) -> list[JSONObject]:
        if key not in self._lists:
            pages = await self.pages(method, key, optional) if self.has_capability(needs) else []
            self._lists[key] = [each for page in pages for each in page[key] if isinstance(each, dict)]
        return self._lists[key]

    async def pages(self, method: str, key: str, optional: bool = False) -> list[JSONObject]:
        """Every page of a list, asked for anew. Raises `Violation` for what is no list of `id_key`, and has no end.

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
                raise self.violation(f"{method} gives no list {key!r}", symptom=f"list:{method}")
            if page in found[-1:] and page.get("nextCursor") == params.get("cursor"):
                raise self.violation(f"{method} gives the same page again, and its own cursor", symptom=ENDLESS)
            found.append(page)
            if not isinstance(page.get("nextCursor"), str):
                return found
            params = {"cursor": page["nextCursor"]}
        raise self.violation(f"{method} does not end: {_PAGES} pages, and one more", symptom=ENDLESS)

    # --- saying ------------------------------------------------------------------------------------------------

    def begin(
        self,
        method: str,
        params: JSONObject | None = None,
        *,
        meta: JSONObject | None = None,
        id: Any = UNSET,
        headers: Headers | None = None,
    ) -> PendingAnswer:
        """Send a request, with all that the revision wants; `meta` is added to its `_meta`."""
        message = self.build_request(method, params, meta=meta, id=id)
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
        """Send a request and wait. Raises `Violation` for silence and for the end of the server only."""
        return await self.begin(method, params, meta=meta, id=id, headers=headers).wait(seconds)

    async def result(self, method: str, params: JSONObject | None = None, **more: Any) -> JSONObject:
        """The same for what must succeed. Raises `Violation` for an error, too."""
        answer = await self.request(method, params, **more)
        if answer.error is not None:
            raise self.violation(f"{method} is answered with an error: {preview_json(answer.error)}")
        if not isinstance(answer.result, dict):
            raise self.violation(f"the result of {method} is no object: {preview_json(answer.result)}")
        return answer.result

    def notify(self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", **request_body(self, method, params, meta)}, misbehaved=False)

    def build_request(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None, id: Any = UNSET
    ) -> JSONObject:
        """A request with all that the revision wants, to be changed before it is sent."""
        number = self.next_id() if id is UNSET else id
        return {"jsonrpc": "2.0", "id": number, **request_body(self, method, params, meta)}

    async def post(self, message: Any, headers: Headers | None = None, *, misbehaved: bool = True) -> LoggedResponse:
        """Over HTTP: send anything, and wait until its response has ended, or the time is over."""
        stream = self.send(message, headers=headers, misbehaved=misbehaved).stream
        await self.wait_for_response_end(stream)
        return self.log.responses[stream - 1]

    def send_batch(self, items: list[Any], *, misbehaved: bool = False) -> list[PendingAnswer]:
        """Send several messages in one array; the `PendingAnswer` of each request among them."""
        requests = [item for item in items if isinstance(item, dict) and "method" in item and "id" in item]
        waiting = [PendingAnswer(self, request, 0, len(self.log.entries)) for request in requests]
        for pending in waiting:
            self.add_pending(pending)
        stream = self.send(items, misbehaved=misbehaved).stream
        for pending in waiting:
            pending.stream = stream
        return waiting

    async def fence(self, seconds: float | None = None) -> list[JSONObject]:
        """Send a harmless request, and return what else came until its answer. Raises `Violation` as `build_request`
        does."""
        since = len(self.log.entries)
        answer = await self._request_fence(seconds)
        return self.other_messages(since, answer.id)

    async def _request_fence(self, seconds: float | None = None) -> Answer:
        """A harmless request, answered; over HTTP no response, and 500, are the end of the server as well."""
        since = len(self.log.entries)
        answer = await self.request(self.harmless_method, seconds=seconds)
        if answer.error is not None and answer.code == 0 and (not answer.status or answer.status >= 500):
            raise self.violation(
                f"{self.harmless_method} gets {answer.error['message']}", since=since, symptom=CONNECTION_LOST
            )
        return answer

    async def send_and_fence(self, message: Any, *, headers: Headers | None = None) -> list[JSONObject]:
        """Send anything, and return what came until a harmless request was answered."""
        since = len(self.log.entries)
        pending = self.send(message, headers=headers)
        answer = await self._request_fence()
        if self.http is not None:
            await self.wait_for_response_end(pending.stream)
        return self.other_messages(since, answer.id)

    async def negotiate(self) -> None:
        """Open it, where nothing was said yet. Raises `UnsupportedRevision`, and `Violation` when nothing sensible
        comes."""
        await self.factory.negotiate(self)

    async def open_another(self, capabilities: JSONObject | None = None) -> Probe:
        """Open another conversation with the same server; `capabilities` are ours, all by default."""
        return await self.factory.open("own", self.log.case, capabilities=capabilities)

    async def second(self) -> Probe:
        """Return a second open conversation, which shared cases have in common: each leaves it as it was."""
        return await self.factory.second(self.log.case)

    async def open_another_raw(self) -> Probe:
        """Open another conversation, in which nothing was said yet."""
        return await self.factory.open_raw("raw", self.log.case)
