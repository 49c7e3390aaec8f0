"""A session with a server, for rules: send any message, read all messages.

answer = await probe.request("tools/list")          # an `Answer`, with a result or an error
page = await probe.result("tools/list")             # the result; an error raises `Violation`
pending = probe.begin("tools/call", {...})          # sent, without waiting
probe.send(b"no JSON"); more = await probe.fence()  # the messages before the response to a harmless request
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
"""A name that does not exist."""

_PAGES = 200


class ProbeFactory(Protocol):
    """Opens sessions with a server."""

    slow_tools: set[Any]
    """The names of tools that did not respond in time."""
    exit_delay: float
    """Seconds for which the server ran after the end of stdin."""

    async def open_raw(self, kind: Kind = "raw", case: str = "", *, token: str | None = None) -> Probe: ...

    async def open(
        self, kind: Kind = "own", case: str = "", *, capabilities: JSONObject | None = None, token: str | None = None
    ) -> Probe: ...

    async def negotiate(self, probe: Probe) -> None: ...

    async def second(self, case: str = "") -> Probe: ...


class Probe(ProbeConnection):
    """A session with a server, in its revision."""

    def __init__(self, wire: Wire, log: MessageLog, settings: CheckSettings, factory: ProbeFactory) -> None:
        super().__init__(wire, log, settings)
        self.unknown_name: str = UNKNOWN_NAME
        self.handshake_result: JSONObject = {}
        self.factory: ProbeFactory = factory
        self._lists: dict[str, list[JSONObject]] = {}

    # --- what the server is ------------------------------------------------------------------------------------

    @property
    def server_info(self) -> JSONObject:
        """The name and version of the server."""
        meta = self.handshake_result.get("_meta")
        found = self.handshake_result.get("serverInfo") or (meta.get(SERVER_INFO) if isinstance(meta, dict) else None)
        return found if isinstance(found, dict) else {}

    @property
    def capabilities(self) -> JSONObject:
        """The server capabilities."""
        found = self.handshake_result.get("capabilities")
        return found if isinstance(found, dict) else {}

    @property
    def process(self) -> ChildWire:
        """The process of the server. Raises `NotObserved` if it is not a process of the checker."""
        if not isinstance(self.wire, ChildWire):
            raise NotObserved("the server is not a process of the checker")
        return self.wire

    @property
    def harmless_method(self) -> str:
        """A method without params that each server of the revision answers, without an effect."""
        return "ping" if self.rules.handshake else "server/discover"

    def has_capability(self, path: str) -> bool:
        """Return whether the server declared a capability: `tools`, `resources.subscribe`."""
        return declares(self.capabilities, path)

    def may_call(self, tool: JSONObject) -> bool:
        """Return whether the settings allow calls of this tool."""
        hints = tool.get("annotations")
        reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True
        return self.settings.may_call(str(tool.get("name")), reads)

    async def tools(self) -> list[JSONObject]:
        """Return all tools; none if the server does not declare the capability."""
        tools = await self._list_all("tools/list", "tools", "tools")
        self.schemas.update({str(tool.get("name")): tool["inputSchema"] for tool in tools if "inputSchema" in tool})
        return tools

    async def callable_tools(self) -> list[JSONObject]:
        """Return the tools that the settings allow to call."""
        return [
            tool
            for tool in await self.tools()
            if self.may_call(tool) and tool.get("name") not in self.factory.slow_tools
        ]

    def exclude_tool(self, tool: JSONObject) -> None:
        """Do not call this tool again in this visit, because it takes too long."""
        self.factory.slow_tools.add(tool.get("name"))

    async def prompts(self) -> list[JSONObject]:
        return await self._list_all("prompts/list", "prompts", "prompts")

    async def resources(self) -> list[JSONObject]:
        return await self._list_all("resources/list", "resources", "resources")

    async def templates(self) -> list[JSONObject]:
        """Return all resource templates; none if the server does not have the method."""
        return await self._list_all("resources/templates/list", "resourceTemplates", "resources", optional=True)

    async def _list_all(self, method: str, key: str, needs: str, optional: bool = False) -> list[JSONObject]:
        if key not in self._lists:
            pages = await self.pages(method, key, optional) if self.has_capability(needs) else []
            self._lists[key] = [each for page in pages for each in page[key] if isinstance(each, dict)]
        return self._lists[key]

    async def pages(self, method: str, key: str, optional: bool = False) -> list[JSONObject]:
        """Yield each page of a list.

        Raises `Violation` if a result has no list with this key, or the list has no end. With `optional`, an error
        ends the list.
        """
        found: list[JSONObject] = []
        params: JSONObject = {}
        for _ in range(_PAGES):
            answer = await self.request(method, params)
            if answer.error is not None and optional:
                return found
            page = answer.result
            if not isinstance(page, dict) or not isinstance(page.get(key), list):
                raise self.violation(f"{method} returned no list {key!r}", symptom=f"list:{method}")
            if page in found[-1:] and page.get("nextCursor") == params.get("cursor"):
                raise self.violation(f"{method} returned the same page again, with its own cursor", symptom=ENDLESS)
            found.append(page)
            if not isinstance(page.get("nextCursor"), str):
                return found
            params = {"cursor": page["nextCursor"]}
        raise self.violation(f"{method} does not end after {_PAGES} pages", symptom=ENDLESS)

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
        """Send a request with all fields of the revision; `meta` is added to its `_meta`."""
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
        """Send a request and wait. Raises `Violation` only after a timeout and when the server ends."""
        return await self.begin(method, params, meta=meta, id=id, headers=headers).wait(seconds)

    async def result(self, method: str, params: JSONObject | None = None, **more: Any) -> JSONObject:
        """Send a request that must succeed, and return its result. Raises `Violation` for an error, too."""
        answer = await self.request(method, params, **more)
        if answer.error is not None:
            raise self.violation(f"{method} returned an error: {preview_json(answer.error)}")
        if not isinstance(answer.result, dict):
            raise self.violation(f"the result of {method} is not an object: {preview_json(answer.result)}")
        return answer.result

    def require_error(self, answer: Answer, code: int, what: str = "") -> None:
        """Raise `Violation` unless a response is an error with this code; `what` describes the request."""
        if answer.code != code:
            returned = preview_json(answer.error or answer.result)
            raise self.violation(f"{what or answer.request.get('method')} returned {returned}")

    def notify(self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", **request_body(self, method, params, meta)}, misbehaved=False)

    def build_request(
        self, method: str, params: JSONObject | None = None, *, meta: JSONObject | None = None, id: Any = UNSET
    ) -> JSONObject:
        """Build a request with all fields of the revision, to change it before it is sent."""
        number = self.next_id() if id is UNSET else id
        return {"jsonrpc": "2.0", "id": number, **request_body(self, method, params, meta)}

    async def post(self, message: Any, headers: Headers | None = None, *, misbehaved: bool = True) -> LoggedResponse:
        """Over HTTP: send any message, and wait until the response ends, or for the timeout."""
        stream = self.send(message, headers=headers, misbehaved=misbehaved).stream
        await self.wait_for_response_end(stream)
        return self.log.responses[stream - 1]

    def send_batch(self, items: list[Any], *, misbehaved: bool = False) -> list[PendingAnswer]:
        """Send several messages in one array; return the `PendingAnswer` of each request."""
        requests = [item for item in items if isinstance(item, dict) and "method" in item and "id" in item]
        waiting = [PendingAnswer(self, request, 0, len(self.log.entries)) for request in requests]
        for pending in waiting:
            self.add_pending(pending)
        stream = self.send(items, misbehaved=misbehaved).stream
        for pending in waiting:
            pending.stream = stream
        return waiting

    async def fence(self, seconds: float | None = None) -> list[JSONObject]:
        """Send a harmless request, and return the other messages before its response. Raises `Violation` without a
        response.
        """
        since = len(self.log.entries)
        answer = await self._request_fence(seconds)
        return self.other_messages(since, answer.id)

    async def _request_fence(self, seconds: float | None = None) -> Answer:
        """Send a harmless request; over HTTP, a missing response and status 500 are errors, too."""
        since = len(self.log.entries)
        answer = await self.request(self.harmless_method, seconds=seconds)
        if answer.error is not None and answer.code == 0 and (not answer.status or answer.status >= 500):
            raise self.violation(
                f"{self.harmless_method} returned {answer.error['message']}", since=since, symptom=CONNECTION_LOST
            )
        return answer

    async def send_and_fence(self, message: Any, *, headers: Headers | None = None) -> list[JSONObject]:
        """Send any message, and return the messages before the response to a harmless request."""
        since = len(self.log.entries)
        pending = self.send(message, headers=headers)
        answer = await self._request_fence()
        if self.http is not None:
            await self.wait_for_response_end(pending.stream)
        return self.other_messages(since, answer.id)

    async def negotiate(self) -> None:
        """Perform the handshake. Raises `UnsupportedRevision`, and `Violation` for an invalid response."""
        await self.factory.negotiate(self)

    async def open_another(self, capabilities: JSONObject | None = None) -> Probe:
        """Open another session with the same server; `capabilities` are the client capabilities, all by default."""
        return await self.factory.open("own", self.log.case, capabilities=capabilities)

    async def open_as_other(self) -> Probe:
        """Open a session of the second principal, in a case with two `principals`."""
        return await self.factory.open("own", self.log.case, token=self.settings.tokens[1])

    async def second(self) -> Probe:
        """Return a second session, which shared cases use: each must not change its state."""
        return await self.factory.second(self.log.case)

    async def open_another_raw(self) -> Probe:
        """Open another session without a handshake."""
        return await self.factory.open_raw("raw", self.log.case)
