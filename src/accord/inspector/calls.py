"""Running calls: of a tool, a prompt or a resource, with progress, log messages, cancellation and the exact result.

Arguments are sent as they were written, without white space between their parts. Results are files in the workspace's
folder, so a call takes little memory, and the page requests the result that it shows.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw

from accord.client.client import Client
from accord.client.notifications import Notice
from accord.errors import AccordError, ProtocolError, log_line
from accord.inspector.commands import InspectorError
from accord.messages.meta import LOG_LEVEL, InputResponseParams
from accord.messages.resources import ReadResourceParams
from accord.messages.revision import HANDSHAKE
from accord.schema.json_values import to_json
from accord.visible_text import truncate

MOST_CALLS = 100
"""Calls that are stored; the oldest finished one is dropped first."""
MOST_LOGS = 200
"""Log messages of one call; older ones are in the timeline."""
_TEXT = 2_000
_LOG_TEXT = 2_000
_CANCEL_SECONDS = 5.0

CallKind: TypeAlias = Literal["tool", "prompt", "resource"]
CallState: TypeAlias = Literal["running", "done", "tool error", "failed", "cancelled"]

METHODS: dict[CallKind, str] = {"tool": "tools/call", "prompt": "prompts/get", "resource": "resources/read"}

_TOKEN = re.compile(rb'("(?:[^"\\]|\\.)*+"?)|[ \t\r\n]+')


_NO_ARGUMENTS = Raw()


class ExactParams(InputResponseParams):
    """Params of `tools/call` and `prompts/get` whose arguments are JSON text: the types of the protocol would be
    decoded for the revision, which changes numbers such as 1e5, and drops duplicate names."""

    name: str
    arguments: Raw = _NO_ARGUMENTS


class CallRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The call to send: `name` is that of a tool or prompt, or the URI of a resource."""

    server: str
    kind: CallKind
    name: str
    arguments_json: str = ""
    output_schema_json: str = ""


class CallLog(msgspec.Struct, frozen=True, rename="camel"):
    """A log message that arrived while a call ran."""

    level: str
    logger: str
    data_json: str
    seconds: float


class CallProgress(msgspec.Struct, frozen=True):
    """The last progress that the server reported."""

    progress: float
    total: float | None
    message: str


class CallSummary(msgspec.Struct, rename="camel"):
    """One call, without its result. `first_row` and `end_row` are the rows of the traffic while it ran."""

    id: str
    request: CallRequest
    state: CallState
    seconds: float
    progress: CallProgress | None
    logs: list[CallLog]
    logs_dropped: int
    error: str
    code: int | None
    first_row: int
    end_row: int
    request_row: int | None
    """The row of its request; None before that is recorded."""
    size: int


class RunningCall:
    """One call, running or finished."""

    def __init__(self, id: str, request: CallRequest, file: Path, on_change: Callable[[], None]) -> None:
        self.id: str = id
        self.request: CallRequest = request
        self.file: Path = file
        """The file of the result; it exists if there is one."""
        self.state: CallState = "running"
        self.progress: CallProgress | None = None
        self.logs: deque[CallLog] = deque(maxlen=MOST_LOGS)
        self.task: asyncio.Task[None] | None = None
        self.first_row: int = 0
        self.end_row: int = 0
        self.request_row: int | None = None
        self.is_started: bool = False
        """Whether `first_row` is known."""
        self._on_change = on_change
        self._logged = 0
        self._started = time.monotonic()
        self._seconds: float | None = None
        self._error = ""
        self._code: int | None = None
        self._size = 0

    async def run(self, client: Client) -> None:
        """Send the request, and store the result or the error."""
        stop = client.on("notifications/message", self._on_log)
        try:
            result = await self._send(client)
            await asyncio.to_thread(_write_private, self.file, bytes(result))
            self._size = len(result)
            self._finish("tool error" if _is_error(result) else "done")
        except AccordError as exc:
            self._code = exc.code if isinstance(exc, ProtocolError) else None
            self._finish("failed", truncate(log_line(exc), _TEXT))
        except OSError as exc:
            self._finish("failed", f"the result could not be stored: {exc.strerror}")
        except asyncio.CancelledError:
            self._finish("cancelled")
        finally:
            stop()

    async def _send(self, client: Client) -> Raw:
        request = self.request
        arguments = Raw(compact(request.arguments_json)) if request.arguments_json else _NO_ARGUMENTS
        params: InputResponseParams = ExactParams(name=request.name, arguments=arguments)
        if request.kind == "resource":
            params = ReadResourceParams(uri=request.name)
        method = METHODS[request.kind]
        meta = None if client.revision in HANDSHAKE else {LOG_LEVEL: "debug"}
        return await client.request(method, params, result=Raw, meta=meta, on_progress=self._on_progress)

    def _on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress = CallProgress(progress, total, truncate(message or "", _TEXT))
        self._on_change()

    def _on_log(self, notice: Notice) -> None:
        params = notice.params
        data = truncate(to_json(params.data).decode(), _LOG_TEXT)
        self.logs.append(CallLog(params.level, truncate(params.logger or "", _TEXT), data, self.seconds))
        self._logged += 1
        self._on_change()

    def _finish(self, state: CallState, error: str = "") -> None:
        self._seconds = self.seconds
        self.state, self._error = state, error
        self._on_change()

    def on_task_done(self, task: asyncio.Task[None]) -> None:
        """Set the last state of a call that was cancelled before its request was sent."""
        if self.state == "running":
            self._finish("cancelled" if task.cancelled() else "failed")

    @property
    def seconds(self) -> float:
        """Return how long the call took, or has taken until now."""
        return self._seconds if self._seconds is not None else round(time.monotonic() - self._started, 4)

    def summary(self, *, brief: bool = False) -> CallSummary:
        """Return the call for the page; `brief`: without what may be long."""
        request = self.request
        if brief:
            request = CallRequest(request.server, request.kind, request.name)
        return CallSummary(
            id=self.id,
            request=request,
            state=self.state,
            seconds=self.seconds,
            progress=self.progress,
            logs=[] if brief else list(self.logs),
            logs_dropped=self._logged - (0 if brief else len(self.logs)),
            error=self._error,
            code=self._code,
            first_row=self.first_row,
            end_row=self.end_row,
            request_row=self.request_row,
            size=self._size,
        )


class InspectedCalls:
    """The calls of a workspace. `rows()` returns the rows of the traffic so far, when they are written, and `requests(
    first, method, name)` those of requests from a row on. `on_change(running)` is called when a call changed, and each
    call runs in the context of `calling(server, name)`."""

    def __init__(
        self,
        folder: Path,
        *,
        rows: Callable[[], Any],
        requests: Callable[[int, str, str], Iterable[int]],
        on_change: Callable[[int], None],
        calling: Callable[[str, str], AbstractContextManager[None]],
    ) -> None:
        self._folder = folder
        self._calling = calling
        self._rows = rows
        self._requests = requests
        self._on_change = on_change
        self._calls: dict[str, RunningCall] = {}
        self._ids = count(1)

    def start(self, client: Client, request: CallRequest) -> RunningCall:
        """Start a call. Raises `InspectorError` for arguments that are no JSON object, or too many running calls."""
        if request.arguments_json:
            compact(request.arguments_json)
        self._drop_oldest()
        id = str(next(self._ids))
        call = RunningCall(id, request, self._folder / f"call-{id}.json", self._changed)
        self._calls[id] = call
        call.task = asyncio.get_running_loop().create_task(self._run(call, client))
        call.task.add_done_callback(call.on_task_done)
        self._changed()
        return call

    async def _run(self, call: RunningCall, client: Client) -> None:
        call.first_row = await self._rows()
        call.is_started = True
        try:
            with self._calling(call.request.server, f"{call.request.name[:100]} (call {call.id})"):
                await call.run(client)
        finally:
            call.end_row = await self._rows()
            self._changed()

    def get(self, id: str) -> RunningCall:
        """Return a call. Raises `InspectorError`."""
        call = self._calls.get(id)
        if call is None:
            raise InspectorError("this call is no longer stored", "repeat it", status=404)
        return call

    def all(self, server: str) -> list[RunningCall]:
        """Return the calls of a server, the newest first."""
        self._find_requests()
        return [call for call in reversed(self._calls.values()) if call.request.server == server]

    def _find_requests(self) -> None:
        """Find the rows of requests: of equal calls at the same time, the first one sent the first request."""
        found = {call.request_row for call in self._calls.values()}
        for call in self._calls.values():
            if call.request_row is None and call.is_started:
                rows = self._requests(call.first_row, METHODS[call.request.kind], call.request.name)
                call.request_row = next((row for row in rows if row not in found), None)
                found.add(call.request_row)

    async def cancel(self, id: str) -> RunningCall:
        """Cancel a call, and tell the server. Raises `InspectorError`."""
        call = self.get(id)
        if call.task is not None and not call.task.done():
            call.task.cancel()
            await asyncio.wait([call.task], timeout=_CANCEL_SECONDS)
        return call

    async def close(self) -> None:
        """Cancel all calls."""
        tasks = [call.task for call in self._calls.values() if call.task is not None and not call.task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCEL_SECONDS)

    def _changed(self) -> None:
        self._on_change(sum(call.state == "running" for call in self._calls.values()))

    def _drop_oldest(self) -> None:
        if len(self._calls) < MOST_CALLS:
            return
        oldest = next((call for call in self._calls.values() if call.state != "running"), None)
        if oldest is None:
            raise InspectorError(f"{MOST_CALLS} calls are running", "cancel some")
        del self._calls[oldest.id]
        oldest.file.unlink(missing_ok=True)


def compact(text: str) -> bytes:
    """Return a JSON object without white space between its parts, and otherwise unchanged. Raises `InspectorError`."""
    try:
        data = text.encode()
        msgspec.json.decode(data, type=dict[str, Raw])
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as exc:
        raise InspectorError(
            f"the arguments are not a JSON object: {exc}", "correct the JSON text", status=400
        ) from exc
    return _TOKEN.sub(lambda match: match[1] or b"", data)


def _is_error(result: Raw) -> bool:
    try:
        return msgspec.json.decode(result, type=dict[str, Raw]).get("isError") == Raw(b"true")
    except msgspec.MsgspecError:
        return False


def _write_private(file: Path, content: bytes) -> None:
    file.touch(0o600)
    try:
        file.write_bytes(content)
    except OSError:
        file.unlink()  # it would be a part of the result
        raise
