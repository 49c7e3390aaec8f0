"""The questions of a task, which a `tasks/result` request asks its client (2025-11-25)."""

from __future__ import annotations

import asyncio
import logging

from accord.errors import AccordError, ConnectionLost, MissingClientCapability, NotConnected, RequestTimeout, StoreFull
from accord.redaction import describe_redacted
from accord.server.core.peer import Peer
from accord.server.input.direct import request_response
from accord.server.tasks.runner import TaskRunner
from accord.server.tasks.stored_questions import StoredQuestion, decode_question, encode_failure
from accord.session.pending_request import PendingRequest
from accord.store.tasks import TaskInput, TaskRecord

log: logging.Logger = logging.getLogger("accord.server")

_AGAIN_SECONDS = 1.0
"""The interval at which an answer is stored again after an error of the store."""

_MAX_FULL = 10
"""Tries of an answer without room: the process that runs the task takes a limited number at once."""


class QuestionSender:
    """Sends the questions of a task as part of one `tasks/result` request: "When the requestor encounters the
    `input_required` status, it SHOULD preemptively call `tasks/result`". The task may run in another process.
    """

    def __init__(self, runner: TaskRunner, pending: PendingRequest, peer: Peer, seconds: float) -> None:
        self._runner = runner
        self._pending = pending
        self._peer = peer
        self._seconds = seconds
        self._sending: dict[tuple[str, str], asyncio.Task[None]] = {}
        """The attempts to ask, by task and key; each stays until the task has the answer."""
        self._storing: set[tuple[str, str]] = set()
        """Questions whose answers are being stored."""
        self._timed_out: set[tuple[str, str]] = set()
        """Questions that the client did not answer in time, while other clients were asked."""
        self._is_lost = False
        """Whether the client cannot be asked here any more."""

    def send(self, record: TaskRecord) -> None:
        """Ask the open questions of a task that no request asks this client; withdraw what is open no longer. Other
        clients are asked at the same time: a client may have gone whose session goes on, and its user has a new one.
        """
        open = {(record.id, key): question for key, question in record.questions.items()}
        for key in self._sending.keys() - open.keys():
            self._drop(key)
        for key in [each for each in open if self._is_free(each)]:
            question = decode_question(open[key])
            if self._can_ask(question):
                self._runner.asking.setdefault(key, set()).add(self._peer)
                self._sending[key] = asyncio.ensure_future(self._send(key, question))

    def close(self) -> None:
        """Withdraw all questions. What was not answered, another request asks again."""
        for key in list(self._sending):
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        self._sending.pop(key).cancel()
        if key not in self._storing:
            self._release(key)

    def _release(self, key: tuple[str, str]) -> None:
        """Let another request of this client ask a question."""
        asked = self._runner.asking.get(key, set())
        asked.discard(self._peer)
        if not asked:
            self._runner.asking.pop(key, None)
        running = self._runner.tasks.get(key[0])
        if running is not None:
            running.show_change()

    def _is_free(self, key: tuple[str, str]) -> bool:
        """Return whether no request asks this client. It is asked again after a timeout once no other client is asked:
        the handler would wait for ever.
        """
        asked = self._runner.asking.get(key, set())
        return not asked if key in self._timed_out else self._peer not in asked

    def _can_ask(self, question: StoredQuestion) -> bool:
        """Return whether the client can be asked: otherwise it waits until another client has answered."""
        try:
            self._peer.channel.session.require_client_capability(self._pending, question.needs)
        except MissingClientCapability:
            return False
        return not self._is_lost

    async def _send(self, key: tuple[str, str], question: StoredQuestion) -> None:
        method, params, needs = question.method, question.params, question.needs
        try:
            answer = await request_response(method, params, needs, self._pending, self._peer, self._seconds)
        except (asyncio.CancelledError, ConnectionLost, NotConnected):
            self._is_lost |= self._give_up(key)
            return
        except AccordError as error:  # the handler learns why it gets no answer
            if isinstance(error, RequestTimeout) and len(self._runner.asking.get(key, ())) > 1:
                self._timed_out.add(key)  # others may still answer
                self._give_up(key)
                return
            answer = encode_failure(error)
        self._storing.add(key)
        # goes on after the end of this request: the user would have to answer again
        await asyncio.shield(self._runner.spawn(self._store_answer(key, answer)))

    def _give_up(self, key: tuple[str, str]) -> bool:
        """End the attempt that runs now to ask a question; return False if it was withdrawn before."""
        if self._sending.get(key) is not asyncio.current_task():
            return False
        self._drop(key)
        return True

    async def _store_answer(self, key: tuple[str, str], answer: bytes) -> None:
        try:
            await self._try_to_store(key, answer)
        finally:
            self._storing.discard(key)
            if key not in self._sending:
                self._release(key)

    async def _try_to_store(self, key: tuple[str, str], answer: bytes) -> None:
        """Give the task an answer, also after errors of the store. One that has no room, tried several times, is
        replaced by that error.
        """
        fulls = 0
        while True:
            try:
                await self._runner.send(TaskInput(key[0], {key[1]: answer}))
                return
            except StoreFull as error:
                fulls += 1
                if fulls >= _MAX_FULL:
                    answer = encode_failure(error)
            except Exception as error:  # of any store
                log.error("accord: an answer for a task cannot be stored yet: %s", describe_redacted(error))
            if self._runner.closed:
                return
            await asyncio.sleep(_AGAIN_SECONDS)
