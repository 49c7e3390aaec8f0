"""The life of the processes behind the relay: they start, are prepared, take over, retire and end.

A new process receives the session of the host and lists its surface before it takes over. If the host has sent nothing
yet, it answers a ping instead. The first process of all takes over at once, so that the host waits for nothing else.
"""

from __future__ import annotations

from accord.dev import announcements
from accord.dev.actions import Finished, Restart, StartFailed, ToHost, TookOver
from accord.dev.host_requests import HostRequests
from accord.dev.preparation import Preparation, PreparationFailed
from accord.dev.relay_state import RelayState
from accord.dev.relayed_process import ProcessPhase, RelayedProcess
from accord.dev.rewriting import request
from accord.dev.unavailable import ended_reason, expired_reason
from accord.messages.base import JSONObject
from accord.messages.envelope import Incoming


class ProcessLifecycle:
    """The processes of one relay."""

    def __init__(self, state: RelayState, requests: HostRequests) -> None:
        self._state = state
        self._requests = requests

    # --- what the driver reports ----------------------------------------------------------------------------------

    def start(self, generation: int) -> None:
        """Note that a process was started."""
        process = self._state.processes[generation] = RelayedProcess(generation)
        self._state.is_expected = True
        if self._state.session.is_known:
            self.prepare(process, replays=True)
        elif self._state.active is None:
            self._take_over(process)  # nothing to compare with
        elif self._requests.is_empty:
            self._check_runs(process)

    def retire(self) -> None:
        """Stop sending requests to the active process before the next one is started (`--stop-first`)."""
        active, self._state.active, self._state.is_expected = self._state.active, None, True
        if active is not None:
            self._requests.detach_subscriptions(active)
            self._retire(active)

    def expire(self, generation: int) -> None:
        """End the requests of a retiring process, whose grace is over."""
        if (process := self._state.processes.pop(generation, None)) is not None:
            self._release(process, expired_reason())

    def end(self, generation: int, reason: str) -> None:
        """Note that a process has ended, or that it is given up."""
        process = self._state.processes.pop(generation, None)
        if process is None:
            return
        if process.phase is ProcessPhase.STARTING:
            self._end_of_start(process, reason)
            return
        if process.phase is ProcessPhase.ACTIVE:
            self._state.active = None
            self._end_of_active(process, reason)
        self._release(process, ended_reason(reason))

    def abandon(self, generation: int) -> None:
        """Forget a process that has not taken over, because a newer version is about to start."""
        if (process := self._state.processes.pop(generation, None)) is not None:
            self._release(process, "a newer version has started")

    def _end_of_start(self, process: RelayedProcess, reason: str) -> None:
        self._state.emit(StartFailed(process.generation, reason))
        if self._state.active is None and not self._state.starting:
            self._fail(reason)
        self._release(process, reason)

    def _end_of_active(self, process: RelayedProcess, reason: str) -> None:
        if starting := self._state.starting:
            if starting[-1].preparation is None:
                self._take_over(starting[-1])
        elif process.answered:
            self._state.is_expected = True
            self._state.emit(Restart(reason))
        else:
            self._state.emit(StartFailed(process.generation, reason))
            self._fail(reason)

    def _fail(self, reason: str) -> None:
        """Note that no process is expected."""
        self._state.is_expected, self._state.surface = False, None
        self._state.failure = f"{self._state.target} does not run: {reason}"
        self._requests.fail_waiting()

    def _release(self, process: RelayedProcess, reason: str) -> None:
        """End all that depends on a process that is gone."""
        self._state.retry_owners.release(process.generation)
        for message in self._state.questions.release(process.generation, reason):
            self._state.emit(ToHost(message))
        self._requests.release(process, reason)

    # --- preparation ----------------------------------------------------------------------------------------------

    def prepare(self, process: RelayedProcess, *, replays: bool) -> None:
        """List the surface of a process; with `replays`, replay the session to it first."""
        process.preparation = Preparation(self._state.session, self._state.new_id, replays=replays)
        process.is_stale = False
        self._state.send_all(process, process.preparation.begin())
        self._check_prepared(process)

    def prepare_waiting(self) -> None:
        """Begin with a process that was started before the host had said who it is."""
        for each in self._state.starting:
            if self._state.session.is_known and each.preparation is None:
                self.prepare(each, replays=True)
            elif not self._state.session.is_known and self._requests.is_empty and each.ping is None:
                self._check_runs(each)

    def _check_runs(self, process: RelayedProcess) -> None:
        """Send a ping, the one request that a process answers before a handshake."""
        process.ping = self._state.new_id()
        self._state.send(process, request(process.ping, "ping"))

    def answered_ping(self, process: RelayedProcess) -> None:
        """Let a process take over that runs, if the host has still sent nothing to replay."""
        process.ping = None
        if process.phase is ProcessPhase.STARTING and not self._state.session.is_known and self._requests.is_empty:
            self._take_over(process)

    def receive_preparation(self, process: RelayedProcess, preparation: Preparation, incoming: Incoming) -> None:
        """Process the answer to a request of a preparation."""
        try:
            self._state.send_all(process, preparation.receive(incoming))
        except PreparationFailed as exc:
            self._state.processes.pop(process.generation)
            self._end_of_start(process, str(exc))
        else:
            self._check_prepared(process)

    def lists_changed(self, process: RelayedProcess) -> None:
        """List the surface of the active process again, because it has changed it itself."""
        if process.preparation is not None:
            process.is_stale = True
        elif self._state.surface is not None:
            self.prepare(process, replays=False)

    def _check_prepared(self, process: RelayedProcess) -> None:
        preparation = process.preparation
        if preparation is None or not preparation.done:
            return
        process.preparation = None
        if process.phase is ProcessPhase.STARTING:
            process.level, process.uris = preparation.level, preparation.uris
            process.is_initialized = True
            self._take_over(process, preparation.surface)
        elif process is self._state.active:
            before, self._state.surface = self._state.surface, preparation.surface
            if process.is_unannounced:
                self._requests.announce(announcements.compare(before, preparation.surface)[1])
                process.is_unannounced = process.is_stale
        if process.is_stale and process is self._state.active:
            self.prepare(process, replays=False)

    # --- succession -----------------------------------------------------------------------------------------------

    def _take_over(self, process: RelayedProcess, surface: JSONObject | None = None) -> None:
        old, self._state.active = self._state.active, process
        process.phase, self._state.is_expected, process.preparation = ProcessPhase.ACTIVE, False, None
        before, self._state.surface = self._state.surface, surface
        changes, changed = announcements.compare(before, surface) if self._state.session.is_known else ((), ())
        if old is not None:
            self._requests.detach_subscriptions(old)
        self._requests.attach_subscriptions(process)
        self.restore_state(process)
        held, process.held = process.held, []
        for message in held:
            self._state.emit(ToHost(message))
        self._requests.send_waiting(process)
        announced = changed if self._requests.announce(changed) else ()
        self._state.emit(TookOver(process.generation, None if old is None else old.generation, changes, announced))
        if old is not None:
            self._retire(old)

    def restore_state(self, process: RelayedProcess) -> None:
        """Send the difference between the state that a process knows and that of the session."""
        session = self._state.session
        if session.handshake is None:
            return
        if session.log_level not in (None, process.level):
            self._state.send_ignored(process, "logging/setLevel", {"level": session.log_level})
        for uri in process.uris.keys() - session.uris.keys():
            self._state.send_ignored(process, "resources/unsubscribe", {"uri": uri})
        for uri in [each for each in session.uris if each not in process.uris]:
            self._state.send_ignored(process, "resources/subscribe", {"uri": uri})
        process.level, process.uris = session.log_level, dict(session.uris)

    def _retire(self, process: RelayedProcess) -> None:
        process.phase = ProcessPhase.RETIRING
        process.preparation = None
        self.check_finished(process)

    def check_finished(self, process: RelayedProcess) -> None:
        """Let a retiring process end that has no requests, and no call that waits for answers to its questions."""
        is_needed = self._state.retry_owners.is_awaited_by(process.generation)
        if process.phase is ProcessPhase.RETIRING and not is_needed and not self._requests.is_answered_by(process):
            self._state.emit(Finished(process.generation))
