"""The processes that serve HTTP behind the proxy: the current one, and those that finish their calls."""

from __future__ import annotations

import asyncio

from accord.check.surface.schema_changes import Change
from accord.dev import announcements
from accord.dev.proxied_request import ProxiedRequest
from accord.dev.retry_owners import RetryOwners
from accord.messages.base import JSONObject, RequestId


class HTTPProcess:
    """A process that serves HTTP at a port of this machine."""

    def __init__(self, generation: int) -> None:
        self.generation: int = generation
        self.port: int = 0
        self.path: str = ""
        self.surface: JSONObject | None = None
        """The surface when it started; None if it may not be listed."""
        self.answered: bool = False
        self.requests: dict[ProxiedRequest, None] = {}
        """The requests in progress."""
        self.unanswered: dict[bytes, set[RequestId]] = {}
        """The requests whose responses come on a stream of HTTP+SSE, by the URL that they were posted to."""
        self.ended: asyncio.Event = asyncio.Event()
        """Set when the process has ended, and the proxy was told."""
        self.progressed: asyncio.Event = asyncio.Event()
        """Set when a request has ended."""

    @property
    def calls(self) -> list[ProxiedRequest]:
        """Return the requests in progress that are not streams."""
        return [each for each in self.requests if not each.is_stream]

    def begin(self, request: ProxiedRequest) -> None:
        """Note that a request is in progress here."""
        self.requests[request] = None
        if request.exchange is not None and request.target in self.unanswered:
            self.unanswered[request.target].add(request.exchange.id)
        if request.cancelled_id is not None:
            self.answer(request.target, request.cancelled_id)  # nothing else answers it

    def finish(self, request: ProxiedRequest) -> None:
        """Note that a request has ended, or has moved to another process."""
        self.requests.pop(request, None)
        self.unanswered.pop(request.endpoint, None)
        if request.exchange is not None and not request.is_accepted:
            self.answer(request.target, request.exchange.id)
        self.progressed.set()

    def answer(self, endpoint: bytes, id: RequestId) -> None:
        """Note the response to a request that was posted to a URL of HTTP+SSE."""
        self.unanswered.get(endpoint, set()).discard(id)
        self.progressed.set()


class HTTPProcesses:
    """The processes of the program `target`, one after the other."""

    def __init__(self, target: str, start_seconds: float) -> None:
        self.target: str = target
        self.current: HTTPProcess | None = None
        """The process that new requests go to."""
        self.retired: list[HTTPProcess] = []
        """The processes that finish their calls."""
        self.retry_owners: RetryOwners = RetryOwners()
        self.failure: str = f"{target} does not run"
        """Why no process is current."""
        self.is_expected: bool = True
        """Whether a process is about to take over."""
        self._start_seconds = start_seconds
        self._changed = asyncio.Event()  # set when a process has taken over, or none is expected any more

    def take_over(self, process: HTTPProcess) -> tuple[tuple[Change, ...], tuple[str, ...]]:
        """Send new requests to a process, and move the streams of the one before. Return what changed."""
        old, self.current, self.is_expected = self.current, process, False
        self._changed.set()
        if old is None:
            return (), ()
        self.retired.append(old)
        for request in [each for each in old.requests if each.is_stream and not each.endpoint]:
            request.stop(None)
        return announcements.compare(old.surface, process.surface)

    def retire_current(self) -> HTTPProcess | None:
        """Let the current process finish its calls before the next one is started. Return it."""
        process = self.current
        if process is not None:
            self.retired.append(process)
            self.current, self.is_expected = None, True
            self.fail("it was stopped")
        return process

    def lose(self, process: HTTPProcess, reason: str, *, is_expected: bool) -> None:
        """Note that a process is gone."""
        self.retry_owners.release(process.generation)
        if process in self.retired:
            self.retired.remove(process)
        if process is self.current:
            self.current, self.is_expected = None, is_expected
            self.fail(reason)

    def fail(self, reason: str) -> None:
        """Note why no process runs."""
        self.failure = f"{self.target} does not run: {reason}"
        self._changed.set()

    def is_finished(self, process: HTTPProcess) -> bool:
        """Return whether no call of a process is in progress, nor waits for answers."""
        return (
            not process.calls
            and not any(process.unanswered.values())
            and not self.retry_owners.is_awaited_by(process.generation)
        )

    def owner_of(self, request: ProxiedRequest) -> HTTPProcess | None:
        """Return the process whose stream of HTTP+SSE has the responses to what is posted to the URL of a request, or
        that waits for a retry with answers.
        """
        running = [each for each in (*self.retired, self.current) if each is not None]
        if found := [each for each in running if request.target in each.unanswered]:
            return found[0]
        if request.exchange is None:
            return None
        owner = self.retry_owners.claim(request.body, request.exchange.params)
        return next((each for each in running if each.generation == owner), None)

    async def wait(self) -> HTTPProcess | None:
        """Return the current process, after a wait for one that is expected."""
        try:
            async with asyncio.timeout(self._start_seconds):
                while self.current is None and self.is_expected:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        return self.current
