"""Wrong clients, each a single change of a right one, and the rule that must catch it."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from contextlib import suppress
from typing import Any

from yarl import URL

from accord import AccordError, Client, ConnectionLost, Reconnect
from accord.transport.http.event_stream import EventStreamReader
from accord.transport.http.fetcher import Fetcher
from accord.wire.sse import SSEParser

from tests.check.clients.wrong import EXAMPLE, Change, Said, mutant

NEW = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
DECLARED = "io.modelcontextprotocol/clientCapabilities"
INFO = "io.modelcontextprotocol/clientInfo"
BATCHES = "2025-03-26"


def is_request(message: Said) -> bool:
    return "method" in message and "id" in message


def is_answer(message: Said) -> bool:
    return "method" not in message


def is_try(message: Any) -> bool:
    """Whether it asks for the newest revision, which the right client does first."""
    return isinstance(message, dict) and VERSION in (message.get("params") or {}).get("_meta", {})


def on(method: str, message: Said) -> bool:
    return message.get("method") == method


async def asked(client: Client, method: str, params: Said) -> Said:
    """A request as it is, and its result as it is."""
    result: Said = json.loads(bytes(await client.connection.request(method, params, timeout=10)))
    return result


# --- envelope ----------------------------------------------------------------------------------------------------


@mutant("client-envelope/valid")
def prints_a_log_line(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return [b"DEBUG listing tools", message] if on("tools/list", message) else message


@mutant("client-envelope/valid", over="http", revision=NEW)
def forgets_the_version_of_json_rpc(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return {**message, "jsonrpc": "1.0"} if on("tools/list", message) else message


@mutant("client-envelope/id")
def uses_fractions_as_ids(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return {**message, "id": 1.5} if on("tools/list", message) else message


@mutant("client-envelope/id-once")
def uses_an_id_a_second_time(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return {**message, "id": 3} if on("prompts/list", message) else message


@mutant("client-envelope/id-once", revision=NEW)
def uses_an_id_again_in_flight(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return [message, message] if on("prompts/list", message) else message


@mutant("client-envelope/response")
def answers_with_result_and_error(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return {**message, "result": {}, "error": {"code": 1, "message": "no"}} if is_answer(message) else message


@mutant("client-envelope/error")
def names_its_errors(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return {**message, "error": {"code": "unknown", "message": "no"}} if "error" in message else message


@mutant("client-envelope/no-answer-to-notifications")
def refuses_unknown_notifications(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}}
        return [message, refusal] if on("resources/list", message) else message


@mutant("client-envelope/single")
def sends_batches(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return json.dumps([message]).encode() if on("tools/list", message) else message


@mutant("client-envelope/batch", revision=BATCHES)
def does_not_understand_batches(change: Change) -> None:
    @change.hears
    def _(message: Any) -> Any:
        return None if isinstance(message, list) else message


@mutant("client-envelope/methods", revision=NEW)
def pings_where_there_is_no_ping(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return [{**message, "id": 9_000, "method": "ping"}, message] if on("tools/list", message) else message


@mutant("client-envelope/shapes")
def calls_with_a_list_of_arguments(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("tools/call", message):
            message["params"]["arguments"] = []
        return message


# --- opening -----------------------------------------------------------------------------------------------------


@mutant("client-opening/first")
def lists_before_it_opens(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        early = {"jsonrpc": "2.0", "id": 5_000, "method": "tools/list"}
        return [early, message] if on("initialize", message) else message


@mutant("client-opening/initialize")
def does_not_say_who_it_is(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("initialize", message):
            del message["params"]["clientInfo"]["version"]
        return message


@mutant("client-opening/initialized")
def never_says_that_it_is_ready(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return None if on("notifications/initialized", message) else message


@mutant("client-opening/no-early-requests")
def does_not_wait_for_the_handshake(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        early = {"jsonrpc": "2.0", "id": 5_000, "method": "tools/list"}
        return [message, early] if on("initialize", message) else message


@mutant("client-opening/version")
def asks_for_its_own_version(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("initialize", message):
            message["params"]["protocolVersion"] = "1.0.0"
        return message


@mutant("client-opening/latest")
def asks_for_an_older_revision(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("initialize", message):
            message["params"]["protocolVersion"] = "2024-11-05"
        return message


@mutant("client-opening/unsupported-version")
def takes_any_version(change: Change) -> None:
    @change.hears
    def _(message: Said) -> Any:
        result = message.get("result") or {}
        if "protocolVersion" in result:
            result["protocolVersion"] = "2025-11-25"
        return message


@mutant("client-opening/capabilities")
def uses_what_is_not_declared(change: Change) -> None:
    @change.hears
    def _(message: Said) -> Any:
        result = message.get("result") or {}
        if "protocolVersion" in result:
            result["capabilities"] = {"tools": {}}
        return message


@mutant("client-opening/unknown-things")
def stumbles_over_unknown_fields(change: Change) -> None:
    @change.hears
    def _(message: Said) -> Any:
        return None if "com.example/more" in (message.get("result") or {}) else message


@mutant("client-opening/refused")
def goes_on_after_a_refusal(change: Change) -> None:
    @change.hears
    def _(message: Said) -> Any:
        if "error" in message and message["error"]["code"] == -32603:
            info = {"name": "x", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            return {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return message


@mutant("client-opening/legacy-fallback")
def falls_back_after_one_code_only(change: Change) -> None:
    @change.hears
    def _(message: Said) -> Any:
        return None if (message.get("error") or {}).get("code") == -32602 else message

    change.options["limits"] = _patient()


def _patient() -> Any:
    import msgspec

    from accord.limits import DEFAULT_LIMITS

    client = msgspec.structs.replace(DEFAULT_LIMITS.client, probe_seconds=60.0, connect_seconds=60.0)
    return msgspec.structs.replace(DEFAULT_LIMITS, client=client)


@mutant("client-opening/no-older-in-meta", revision=NEW)
def writes_an_older_revision(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("tools/list", message):
            message["params"]["_meta"][VERSION] = "2025-11-25"
        return message


# --- metadata ----------------------------------------------------------------------------------------------------


@mutant("client-meta/required", revision=NEW)
def says_its_capabilities_once(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("tools/call", message):
            del message["params"]["_meta"][DECLARED]
        return message


@mutant("client-meta/client-info", revision=NEW)
def says_its_name_once(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("tools/call", message):
            message["params"]["_meta"].pop(INFO, None)
        return message


@mutant("client-meta/no-responses", revision=NEW)
def answers_in_the_newest_revision(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return [message, {"jsonrpc": "2.0", "id": "x", "result": {}}] if on("tools/list", message) else message


@mutant("client-meta/names")
def makes_up_keys(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("tools/call", message):
            message["params"].setdefault("_meta", {})["my key!"] = 1
        return message


@mutant("client-meta/result-type", revision=NEW)
def wants_a_result_type(change: Change) -> None:
    @change.hears
    def _(message: Said) -> Any:
        return None if "resultType" not in message.get("result", {"resultType": 1}) else message


# --- HTTP --------------------------------------------------------------------------------------------------------


def header(change: Change, name: str, value: str | None, *, verb: str = "POST") -> None:
    """Have a header be another one, but in tries of the newest revision."""

    @change.http
    def _(sent: str, headers: dict[str, str], body: Any) -> tuple[str, dict[str, str]]:
        kept = {key: text for key, text in headers.items() if key.lower() != name.lower()}
        if sent != verb or (is_try(body) and on("server/discover", body)):
            return sent, headers
        return sent, kept if value is None else kept | {name: value}


@mutant("client-http/accept", over="http")
def accepts_json_alone(change: Change) -> None:
    header(change, "Accept", "application/json")


@mutant("client-http/content-type", over="http")
def sends_text(change: Change) -> None:
    header(change, "Content-Type", "text/plain")


@mutant("client-http/one-endpoint", over="http")
def puts_its_messages(change: Change) -> None:
    @change.http
    def _(verb: str, headers: dict[str, str], body: Any) -> tuple[str, dict[str, str]]:
        return ("PUT", headers) if body and on("tools/list", body) else (verb, headers)


@mutant("client-http/get-accept", over="http")
def accepts_anything_in_a_get(change: Change) -> None:
    header(change, "Accept", "application/json", verb="GET")


@mutant("client-http/session-id", over="http")
def forgets_its_session(change: Change) -> None:
    header(change, "Mcp-Session-Id", None)


@mutant("client-http/session-delete", over="http")
def leaves_its_session(change: Change) -> None:
    @change.http
    def _(verb: str, headers: dict[str, str], body: Any) -> tuple[str, dict[str, str]]:
        return ("OPTIONS" if verb == "DELETE" else verb), headers


@mutant("client-http/session-ended", over="http")
def keeps_a_session_that_has_ended(change: Change) -> None:
    issued: list[str] = []

    @change.http
    def _(verb: str, headers: dict[str, str], body: Any) -> tuple[str, dict[str, str]]:
        issued.extend(text for name, text in headers.items() if name.lower() == "mcp-session-id")
        if body and on("initialize", body) and issued:
            headers["Mcp-Session-Id"] = issued[0]
        return verb, headers


@mutant("client-http/protocol-version", over="http")
def names_no_revision(change: Change) -> None:
    header(change, "MCP-Protocol-Version", None)


@mutant("client-http/protocol-version", over="http", revision=NEW)
def names_another_revision(change: Change) -> None:
    header(change, "MCP-Protocol-Version", "2025-11-25")


@mutant("client-http/agreed-version", over="http")
def names_the_revision_it_asked_for(change: Change) -> None:
    header(change, "MCP-Protocol-Version", "2025-06-18")


@mutant("client-http/method-header", over="http", revision=NEW)
def names_no_method(change: Change) -> None:
    header(change, "Mcp-Method", None)


@mutant("client-http/name-header", over="http", revision=NEW)
def names_another_tool(change: Change) -> None:
    @change.http
    def _(verb: str, headers: dict[str, str], body: Any) -> tuple[str, dict[str, str]]:
        return verb, {**headers, "Mcp-Name": "other"} if body and on("prompts/get", body) else headers


@mutant("client-http/parameter-headers", over="http", revision=NEW)
def mirrors_no_arguments(change: Change) -> None:
    header(change, "Mcp-Param-Region", None)


@mutant("client-http/invalid-parameter-headers", over="http", revision=NEW)
def calls_what_is_declared_wrongly(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("tools/call", message) and message["params"]["name"] == "mirror":
            return {**message, "params": {**message["params"], "name": "no-token"}}
        return message


@mutant("client-http/header-mismatch", over="http", revision=NEW)
def takes_a_mismatch_as_it_is(change: Change) -> None:
    @change.hears
    def _(message: Said) -> Any:
        if (message.get("error") or {}).get("code") == -32020:
            message["error"]["code"] = -32603
        return message


@mutant("client-http/no-resumption", over="http", revision=NEW)
def resumes_what_cannot_be_resumed(change: Change) -> None:
    header(change, "Last-Event-ID", "1")


@mutant("client-http/both-forms", over="http")
def reads_no_streams(change: Change) -> None:
    def look(verb: str, response: Any) -> None:
        if verb == "POST" and response.content_type == "text/event-stream":
            raise ConnectionLost("it is no JSON")

    change.responses.append(look)


@mutant("client-http/events", over="http")
def reads_data_of_one_line(change: Change) -> None:
    feed = SSEParser.feed

    def careless(self: SSEParser, chunk: bytes) -> list[Any]:
        return [event for event in feed(self, chunk) if b"\n" not in getattr(event, "data", b"")]

    change.patches.append((SSEParser, "feed", careless))


@mutant("client-http/resume", over="http")
def never_comes_back(change: Change) -> None:
    change.patches.append((EventStreamReader, "_update_position", lambda self, parser: None))


@mutant("client-http/retry", over="http")
def comes_back_at_once(change: Change) -> None:
    change.patches.append((EventStreamReader, "retry_delay", 0.0))


@mutant("client-http/no-get", over="http")
def ends_without_a_stream_of_the_server(change: Change) -> None:
    refused: list[int] = []

    def look(verb: str, response: Any) -> None:
        refused.extend([response.status] if verb == "GET" and response.status == 405 else [])
        if refused and verb == "POST":
            raise ConnectionLost("the server has no stream of its own")

    change.responses.append(look)


@mutant("client-http/redirect", over="http")
def follows_redirects_with_all_it_has(change: Change) -> None:
    def target(self: Fetcher, response: Any, *_: Any) -> URL:
        return URL(response.headers["Location"])

    change.patches.append((Fetcher, "_redirect_target", target))


# --- stdio -------------------------------------------------------------------------------------------------------


@mutant("client-stdio/close")
def kills_its_server(change: Change) -> None:
    change.main = _killing


async def _killing(target: str) -> None:
    """A client by hand, which kills its server when it is done."""
    import shlex

    process = await asyncio.create_subprocess_exec(
        *shlex.split(target), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    for message in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ):
        process.stdin.write(json.dumps(message).encode() + b"\n")
        if "id" in message:
            await process.stdout.readline()
    process.kill()
    await process.wait()


# --- what a server asks ------------------------------------------------------------------------------------------


def answers(change: Change, wrong: Any) -> None:
    """Have the answers of the client be others: `wrong(answer)`."""

    @change.sends
    def _(message: Said) -> Any:
        return wrong(message) if is_answer(message) else message


@mutant("client-answers/ping")
def does_not_answer_pings(change: Change) -> None:
    answers(change, lambda answer: None if answer.get("result") == {} else answer)


@mutant("client-answers/id-types")
def answers_with_text_as_id(change: Change) -> None:
    answers(change, lambda answer: {**answer, "id": str(answer["id"])})


@mutant("client-answers/unknown-method")
def drops_unknown_requests(change: Change) -> None:
    answers(change, lambda answer: None if "error" in answer else answer)


@mutant("client-answers/method-not-found")
def has_one_code_for_every_error(change: Change) -> None:
    answers(change, lambda answer: {**answer, "error": {"code": -1, "message": "no"}} if "error" in answer else answer)


@mutant("client-answers/undeclared")
def answers_what_it_did_not_declare(change: Change) -> None:
    change.options |= {"sampling": None, "sampling_tools": False}

    def wrong(answer: Said) -> Said:
        return {"jsonrpc": "2.0", "id": answer["id"], "result": {}} if "error" in answer else answer

    answers(change, wrong)


@mutant("client-answers/roots")
def answers_with_paths(change: Change) -> None:
    def wrong(answer: Said) -> Said:
        return {**answer, "result": {"roots": [{"uri": "/srv/a"}]}} if "roots" in answer.get("result", {}) else answer

    answers(change, wrong)


@mutant("client-answers/sampling")
def forgets_the_model(change: Change) -> None:
    def wrong(answer: Said) -> Said:
        answer.get("result", {}).pop("model", None)
        return answer

    answers(change, wrong)


@mutant("client-answers/sampling-tools")
def takes_tools_it_cannot_use(change: Change) -> None:
    change.options["sampling_tools"] = False

    def wrong(answer: Said) -> Said:
        return {"jsonrpc": "2.0", "id": answer["id"], "result": {}} if answer["id"] == "tools" else answer

    answers(change, wrong)


@mutant("client-answers/sampling-content")
def does_not_look_at_conversations(change: Change) -> None:
    def wrong(answer: Said) -> Said:
        return {"jsonrpc": "2.0", "id": answer["id"], "result": {}} if answer["id"] == "missing" else answer

    answers(change, wrong)


@mutant("client-answers/elicitation")
def says_ok(change: Change) -> None:
    def wrong(answer: Said) -> Said:
        return {**answer, "result": {"action": "ok"}} if "action" in answer.get("result", {}) else answer

    answers(change, wrong)


@mutant("client-answers/form")
def fills_forms_with_text(change: Change) -> None:
    def wrong(answer: Said) -> Said:
        result = answer.get("result", {})
        return {**answer, "result": {**result, "content": {"name": "x"}}} if result.get("content") else answer

    answers(change, wrong)


@mutant("client-answers/no-mode")
def wants_a_mode(change: Change) -> None:
    def wrong(answer: Said) -> Said:
        refused = {"jsonrpc": "2.0", "id": answer["id"], "error": {"code": -32602, "message": "mode is missing"}}
        return refused if "content" in answer.get("result", {}) and "action" in answer["result"] else answer

    answers(change, wrong)


@mutant("client-answers/undeclared-mode")
def agrees_to_any_page(change: Change) -> None:
    change.options["elicitation_modes"] = ("form",)

    def wrong(answer: Said) -> Said:
        accepted = {"jsonrpc": "2.0", "id": answer["id"], "result": {"action": "accept"}}
        return accepted if answer["id"] == "page" else answer

    answers(change, wrong)


@mutant("client-rounds/no-prefetch", revision=NEW)
@mutant("client-answers/no-prefetch")
def looks_at_every_page(change: Change) -> None:
    async def page(params: Any) -> Any:
        if params.url:
            await _fetch(params.url)
        return EXAMPLE.filled_in(params)

    change.options["elicitation"] = page


async def _fetch(url: str) -> None:
    host, _, path = url.removeprefix("http://").partition("/")
    reader, writer = await asyncio.open_connection(*host.split(":"))
    writer.write(f"GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    await reader.readline()
    writer.close()


# --- rounds ------------------------------------------------------------------------------------------------------


def retries(change: Change, wrong: Any) -> None:
    """Have the params of what is asked again be others: `wrong(params)`."""

    @change.sends
    def _(message: Said) -> Any:
        params = message.get("params") or {}
        if "requestState" in params or "inputResponses" in params:
            message["params"] = wrong(params)
        return message


@mutant("client-rounds/state", revision=NEW)
def trims_the_state(change: Change) -> None:
    retries(change, lambda params: {**params, "requestState": params.get("requestState", "").strip()})


@mutant("client-rounds/no-state", revision=NEW)
def makes_up_a_state(change: Change) -> None:
    retries(change, lambda params: {"requestState": "", **params})


@mutant("client-rounds/new-id", revision=NEW)
def asks_again_with_the_same_id(change: Change) -> None:
    ids: list[Any] = []

    @change.sends
    def _(message: Said) -> Any:
        params = message.get("params") or {}
        if ids and ("requestState" in params or "inputResponses" in params):
            return {**message, "id": ids.pop()}
        ids.extend([message["id"]] if params.get("name") == "echo" else [])
        return message


@mutant("client-rounds/responses", revision=NEW)
def answers_under_other_keys(change: Change) -> None:
    retries(change, lambda params: {**params, "inputResponses": {"1": {}}} if "inputResponses" in params else params)


def in_the_form(change: Change, wrong: Any) -> None:
    """Have the answer to a form be another: `wrong(answer)`."""

    def answered(params: Any) -> Any:
        responses = params.get("inputResponses") or {}
        forms = {key: wrong(each) for key, each in responses.items() if key == "the form"}
        return {**params, "inputResponses": {**responses, **forms}} if forms else params

    retries(change, answered)


@mutant("client-rounds/no-mode", revision=NEW)
def takes_a_form_without_a_mode_for_nothing(change: Change) -> None:
    in_the_form(change, lambda answer: {})


@mutant("client-rounds/form", revision=NEW)
def fills_in_text_whatever_is_wanted(change: Change) -> None:
    in_the_form(change, lambda answer: {**answer, "content": {"count": "5", "size": "small"}})


@mutant("client-rounds/same-request", revision=NEW)
def forgets_its_arguments(change: Change) -> None:
    retries(change, lambda params: {**params, "arguments": {"other": 1}})


@mutant("client-rounds/other-requests", revision=NEW)
def sends_the_state_with_everything(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("prompts/list", message):
            message["params"]["requestState"] = "state"
        return message


@mutant("client-rounds/bounded", revision=NEW)
def asks_for_ever(change: Change) -> None:
    async def use(client: Client) -> None:
        state = None
        for _ in range(150):
            params: Said = {"name": "echo", "arguments": {"text": "x"}}
            result = await asked(client, "tools/call", params | ({"requestState": state} if state else {}))
            state = result.get("requestState")

    change.use = use


# --- lists, changes, cancellation ---------------------------------------------------------------------------------


def cursors(change: Change, wrong: Any) -> None:
    """Have cursors be others: `wrong(cursor)`."""

    @change.sends
    def _(message: Said) -> Any:
        params = message.get("params") or {}
        if "cursor" in params:
            params["cursor"] = wrong(params["cursor"])
        return message


@mutant("client-pages/cursor")
def strips_cursors(change: Change) -> None:
    cursors(change, lambda cursor: cursor.replace(" ", ""))


@mutant("client-pages/page-size")
def stops_at_an_empty_page(change: Change) -> None:
    @change.hears
    def _(message: Said) -> Any:
        result = message.get("result") or {}
        if any(result.get(name) == [] for name in ("tools", "resources", "prompts")):
            result.pop("nextCursor", None)
        return message


@mutant("client-pages/empty-cursor", revision=NEW)
def stops_at_an_empty_cursor(change: Change) -> None:
    @change.hears
    def _(message: Said) -> Any:
        result = message.get("result") or {}
        if result.get("nextCursor") == "":
            del result["nextCursor"]
        return message


def _pages(limit: int) -> Any:
    async def use(client: Client) -> None:
        cursor = None
        for _ in range(limit):
            result = await asked(client, "tools/list", {"cursor": cursor} if cursor is not None else {})
            cursor = result.get("nextCursor")
            if cursor is None:
                return

    return use


@mutant("client-pages/bounded")
def reads_pages_for_ever(change: Change) -> None:
    change.use = _pages(2_000)


@mutant("client-pages/repeated-cursor")
def reads_the_same_page_for_ever(change: Change) -> None:
    change.use = _pages(2_000)


@mutant("client-changes/storm")
def lists_for_every_change(change: Change) -> None:
    async def use(client: Client) -> None:
        heard: list[Any] = []
        client.on("notifications/tools/list_changed", heard.append)
        await EXAMPLE.use(client)
        for _ in heard:
            await asked(client, "tools/list", {})

    change.use = use


@mutant("client-changes/roots-changed")
def tells_of_roots_without_having_said_so(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        told = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
        if on("initialize", message):
            message["params"]["capabilities"]["roots"] = {}
        return [message, told] if on("tools/list", message) else message


@mutant("client-cancel/own-active")
def cancels_what_nobody_asked(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "nobody"}}
        return [message, cancel] if on("tools/list", message) else message


@mutant("client-cancel/not-initialize")
def cancels_the_handshake(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if not on("initialize", message):
            return message
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}}
        return [message, cancel]


@mutant("client-cancel/by-notification", revision=NEW)
@mutant("client-cancel/on-timeout")
def keeps_quiet(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        return None if on("notifications/cancelled", message) else message


@mutant("client-cancel/by-closing", revision=NEW, over="http")
def posts_its_cancellations(change: Change) -> None:
    change.options["timeout"] = 1.0

    async def use(client: Client) -> None:
        await EXAMPLE.use(client)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}}
        await asyncio.to_thread(_post, client.connection.transport.name, cancel)

    change.use = use


def _post(url: str, message: Said) -> None:
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(message).encode(), headers), timeout=5).close()


@mutant("client-progress/token-type")
def uses_null_as_a_token(change: Change) -> None:
    @change.sends
    def _(message: Said) -> Any:
        if on("tools/call", message):
            message["params"]["_meta"] = {"progressToken": None}
        return message


@mutant("client-progress/token-once")
def uses_one_token(change: Change) -> None:
    async def use(client: Client) -> None:
        calls = [client.call_tool("echo", {"text": "x"}) for _ in range(4)]
        await asyncio.gather(*calls)

    change.use = use

    @change.sends
    def _(message: Said) -> Any:
        if on("tools/call", message):
            message["params"]["_meta"] = {"progressToken": "token"}
        return message


# --- rough weather -----------------------------------------------------------------------------------------------


def loses(change: Change, is_lost: Any) -> None:
    """Have the client lose what it hears, as one does that logs what it cannot read and tells nobody."""
    change.options["timeout"] = 60.0

    @change.hears
    def _(message: Any) -> Any:
        return None if is_lost(message) else message


@mutant("client-robust/bad-results")
def loses_bad_results(change: Change) -> None:
    loses(change, lambda message: message.get("result", 0) is None)


@mutant("client-robust/huge")
def loses_long_messages(change: Change) -> None:
    loses(change, lambda message: len(json.dumps(message)) > 1 << 20)


@mutant("client-robust/unknown-content")
def loses_unknown_content(change: Change) -> None:
    loses(change, lambda message: "com.example/hologram" in json.dumps(message))


@mutant("client-robust/hostile-text")
def loses_hostile_text(change: Change) -> None:
    loses(change, lambda message: "<script>" in json.dumps(message))


@mutant("client-robust/unknown-answers")
def ends_at_an_unknown_answer(change: Change) -> None:
    @change.hears
    def _(message: Said) -> Any:
        if message.get("id") == "nobody":
            raise SystemError("an answer to what nobody asked")
        return message


@mutant("client-changes/unknown-notification")
def loses_what_comes_after_the_unknown(change: Change) -> None:
    seen: list[Said] = []

    def is_lost(message: Said) -> bool:
        seen.extend([message] if on("notifications/unheard-of", message) else [])
        return bool(seen)

    loses(change, is_lost)


@mutant("client-changes/log-messages")
def wants_text_in_log_messages(change: Change) -> None:
    seen: list[Said] = []

    def is_lost(message: Said) -> bool:
        told = on("notifications/message", message) and not isinstance(message["params"]["data"], str)
        seen.extend([message] if told else [])
        return bool(seen)

    loses(change, is_lost)


def loses_after(change: Change, method: str) -> None:
    """Have the client end its reading at a notification."""
    seen: list[Said] = []

    def is_lost(message: Said) -> bool:
        seen.extend([message] if on(method, message) else [])
        return bool(seen)

    loses(change, is_lost)


@mutant("client-cancel/by-server")
def ends_at_an_unknown_cancellation(change: Change) -> None:
    loses_after(change, "notifications/cancelled")


@mutant("client-progress/unknown")
def ends_at_unknown_progress(change: Change) -> None:
    async def use(client: Client) -> None:
        with suppress(AccordError):
            await client.list_tools()
        with suppress(AccordError):
            await client.list_prompts()

    change.use = use
    loses_after(change, "notifications/progress")


@mutant("client-answers/unknown-completion")
def ends_at_an_unknown_completion(change: Change) -> None:
    loses_after(change, "notifications/elicitation/complete")


@mutant("client-changes/subscription-tag", revision=NEW)
def ends_at_an_unknown_subscription(change: Change) -> None:
    loses_after(change, "notifications/tools/list_changed")


@mutant("client-meta/unknown-result-type", revision=NEW)
def waits_for_a_result_it_knows(change: Change) -> None:
    loses(change, lambda message: (message.get("result") or {}).get("resultType") == "com.example/unheard-of")


@mutant("client-robust/dialect")
def waits_for_a_dialect_it_knows(change: Change) -> None:
    loses(change, lambda message: "unheard-of/schema" in json.dumps(message))


@mutant("client-changes/resubscribe", revision=NEW)
def subscribes_once(change: Change) -> None:
    change.options["reconnect"] = Reconnect()
    asked: list[Any] = []

    async def use(client: Client) -> None:
        asked.clear()
        async with client.subscribe(tools=True) as subscription:
            with suppress(AccordError):
                await client.list_tools()
            async for _ in subscription:
                continue

    change.use = use

    @change.sends
    def _(message: Said) -> Any:
        if not on("subscriptions/listen", message):
            return message
        asked.append(message)
        return message if len(asked) == 1 else None


async def _fetching(client: Client, schema: str) -> None:
    """A client that fetches every URL in what the tools say of themselves."""
    for tool in await client.list_tools():
        text = json.dumps(getattr(tool, schema, None), default=str)
        for part in text.split('"'):
            if part.startswith("http://"):
                await _fetch(part)
    await EXAMPLE.use(client)


@mutant("client-robust/remote-refs", revision=NEW)
def fetches_references(change: Change) -> None:
    change.use = lambda client: _fetching(client, "input_schema")


@mutant("client-robust/fetched-refs")
def fetches_references_of_old(change: Change) -> None:
    change.use = lambda client: _fetching(client, "input_schema")


@mutant("client-robust/icons")
def fetches_icons(change: Change) -> None:
    async def use(client: Client) -> None:
        for tool in await client.list_tools():
            for icon in tool.icons or []:
                if icon.src.startswith("http://"):
                    await _fetch(icon.src)

    change.use = use


@mutant("client-caching/no-polling", revision=NEW)
def polls(change: Change) -> None:
    async def use(client: Client) -> None:
        await EXAMPLE.use(client)
        result = await asked(client, "tools/list", {})
        for _ in range(20 if result.get("ttlMs") else 0):
            await asked(client, "tools/list", {})

    change.use = use


@mutant("client-caching/negative", revision=NEW)
def refuses_negative_times(change: Change) -> None:
    loses(change, lambda message: (message.get("result") or {}).get("ttlMs", 0) < 0)


@mutant("client-caching/absent", revision=NEW)
def wants_hints(change: Change) -> None:
    loses(change, lambda message: "tools" in (message.get("result") or {}) and "ttlMs" not in message["result"])
