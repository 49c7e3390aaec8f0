"""One call of a tool, from its proposal to its outcome: policy, consent, audit.

    proposed → the policy decides → a grant, or a person, approves → recorded → decided again → sent → recorded

The arguments are encoded once. What the policy evaluates, the prompt shows and the approval covers is decoded from
these bytes, and they are what is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn

import msgspec

from accord.client.client import Client
from accord.client.results import ToolResult
from accord.errors import AccordError, ConnectionLost, NotConnected, RequestTimeout
from accord.host.approvers import Approver, PromptAnswer
from accord.host.audit.event import AuditEvent
from accord.host.audit.log import AuditLog
from accord.host.catalogue import CataloguedTool
from accord.host.consent import BoundCall, Consent, NotApproved, Proposal, digest
from accord.host.definitions import arguments_of
from accord.host.grants import CallGrant, GrantedCall, decode_grant, find_grant, new_id
from accord.host.hosted_server import HostedServer, SampledTokens
from accord.host.policy.call import ProposedCall
from accord.host.policy.policy import Policy, Verdict
from accord.host.prompts import CallPrompt, effect_of
from accord.host.state import MAX_ARGUMENTS, HostState
from accord.messages.base import JSONObject
from accord.messages.content import TextContent
from accord.redaction import redact
from accord.schema.json_values import to_json

_PROGRESS_SECONDS = 5.0
"""How often the caller learns that the call still waits for an approval."""
_CLOSE_SECONDS = 5.0
"""How long the end of the host waits for the outcomes of calls."""
_WAITING = "waiting for an approval"

_EventKind = Literal["proposal", "decision", "sending", "outcome"]


class HostCall(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A call as a host makes it."""

    id: str
    """The id of the call in the audit log."""
    principal: str
    conversation: str
    server: HostedServer
    tool: CataloguedTool
    encoded: bytes
    """The arguments as JSON, under the server's names."""
    arguments_digest: str
    """The digest of `encoded`."""
    run: SampledTokens | None = None
    """The run that makes the call."""
    client: Approver | None = None
    """Asks the client that makes the call."""

    @property
    def arguments(self) -> JSONObject:
        """Return the arguments, decoded from what is sent."""
        return arguments_of(self.encoded)


class Denied(AccordError):
    """A call that was not sent. The text is for the model or the program that made it."""


class _DenialRecorded(Denied):
    """A denial by the policy or a person, which is in the audit log."""


class Calls:
    """Makes calls under a policy. `find(name)` returns the server of a name, as it is configured now."""

    def __init__(
        self,
        policy: Policy,
        consent: Consent,
        approver: Approver,
        state: HostState,
        audit: AuditLog | None,
        find: Callable[[str], HostedServer | None],
        *,
        approval_seconds: float,
        clients_approve: bool,
    ) -> None:
        self.policy: Policy = policy
        self.clients_approve: bool = clients_approve
        """Whether the client that makes a call is asked about it, instead of the host's approver."""
        self._consent = consent
        self._approver = approver
        self._state = state
        self.audit: AuditLog | None = audit
        self._find = find
        self._approval_seconds = approval_seconds
        self.conversation_grants: list[CallGrant] = []
        """The grants of this run of the host, which are not stored."""
        self._in_flight: set[HostCall] = set()
        self._ended = asyncio.Event()
        self._asking: set[asyncio.Task[PromptAnswer]] = set()

    async def call(self, call: HostCall, *, on_progress: Any = None, **options: Any) -> ToolResult:
        """Make a call. Raises `Denied`, and the errors of `Client.call_tool` with the server's name."""
        self._in_flight.add(call)
        try:
            return await self._made(call, on_progress, options)
        finally:
            self._in_flight.discard(call)
            self._ended.set()

    async def close(self) -> None:
        """Deny the calls that wait for an approval, and wait until the others have recorded their outcome.

        The connections are closed, so that they end soon.
        """
        for asking in self._asking:
            asking.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                while self._in_flight:
                    self._ended.clear()
                    await self._ended.wait()

    async def _made(self, call: HostCall, on_progress: Any, options: Mapping[str, Any]) -> ToolResult:
        verdict, bound = self.policy.decide(_proposed(call)), self._bound(call)  # of one moment
        about = {"rule": verdict.rule, "policy": self.policy.version}
        try:
            await self._record("proposal", call, decision=verdict.decision, arguments=call.arguments, **about)
            client = await self._admitted_client(call, bound, verdict, on_progress)
        except _DenialRecorded:
            raise
        except BaseException as exc:
            await self._record("outcome", call, outcome="not sent", detail=str(exc) or type(exc).__name__)
            raise
        outcome, detail = "cancelled", ""
        try:
            await self._record("sending", call, arguments=call.arguments)
            self._check_unchanged(call, bound)  # it is written to the disk: that takes time
            self._check_verdict(call, verdict)
            call.server.check_ready(client)
            with call.server.in_flight(call.principal, call.run):
                result: ToolResult = await client.call_tool(
                    call.tool.definition.name, call.arguments, on_progress=on_progress, **options
                )
            outcome = "tool error" if result.is_error else "result"
            return result
        except Exception as exc:
            outcome, detail = _outcome(exc), str(exc)
            raise
        finally:
            await self._record("outcome", call, outcome=outcome, detail=detail)

    async def _admitted_client(
        self, call: HostCall, bound: BoundCall | None, verdict: Verdict, on_progress: Any
    ) -> Client:
        """Return the connected client once the call is allowed. Raises `Denied`, `NotConnected`."""
        self._check_unchanged(call, bound)
        assert bound is not None, "it is unchanged"
        proposal = await self._proposal(call, bound, verdict)
        try:
            if proposal is not None:
                await self._approve(call, proposal, verdict, on_progress)
            self._check_unchanged(call, bound)
            client = await call.server.ready()
            self._check_unchanged(call, bound)
            if proposal is not None:
                self._consent.redeem(proposal.token, bound, time.monotonic())
            return client
        except NotApproved as exc:
            raise Denied(f"{_name(call)} was not called: {exc}") from exc
        finally:
            if proposal is not None:
                self._consent.deny(proposal.token)  # without effect if it was used

    # --- decision ----------------------------------------------------------------------------------------------

    async def _proposal(self, call: HostCall, bound: BoundCall, verdict: Verdict) -> Proposal | None:
        """Return the proposal of a call that a person has to approve; None if it needs no approval. Raises `Denied`."""
        if verdict.decision == "deny":
            await self._deny(call, verdict, f"the rule {verdict.rule!r} of the host's policy denies it")
        grant = await self._grant(call) if verdict.decision == "ask" else None
        if verdict.decision == "ask" and grant is None:
            return self._consent.propose(bound, time.monotonic())
        by = "policy" if grant is None else f"grant {grant.id}"
        await self._record("decision", call, decision="allow", rule=verdict.rule, approver=by)
        return None

    async def _approve(self, call: HostCall, proposal: Proposal, verdict: Verdict, on_progress: Any) -> None:
        """Ask a person about a call. Raises `Denied` unless it is approved, and `NotApproved` if that came too late."""
        prompt = await self._prompt(call, proposal.token, verdict)
        answer = await self._ask(call, prompt, on_progress)
        if not answer.approved:
            reason = f": {answer.reason}" if answer.reason else ""
            await self._deny(call, verdict, f"the user did not approve it{reason}", answer.by or "user", prompt)
        self._consent.approve(proposal.token, time.monotonic())
        await self._remember(call, answer)
        about = {"rule": verdict.rule, "approver": answer.by or "user", "prompt": digest(prompt.text().encode())}
        await self._record("decision", call, decision="allow", **about)

    async def _deny(
        self, call: HostCall, verdict: Verdict, reason: str, by: str = "policy", prompt: CallPrompt | None = None
    ) -> NoReturn:
        shown = "" if prompt is None else digest(prompt.text().encode())
        await self._record("decision", call, decision="deny", rule=verdict.rule, approver=by, prompt=shown)
        raise _DenialRecorded(f"{_name(call)} was not called: {reason}")

    def _bound(self, call: HostCall) -> BoundCall | None:
        """Return what an approval of the call is bound to, as it is now; None if the call is no longer possible."""
        server = self._find(call.server.name)
        pin = server and server.definitions.find("tool", call.tool.definition.name)
        if server is not call.server or not pin or pin.digest != call.tool.pin.digest:
            return None
        return BoundCall(
            principal=call.principal,
            server=call.server.digest,
            tool=call.tool.definition.name,
            arguments=call.arguments_digest,
            definition=pin.digest,
            policy=self.policy.version,
        )

    def _check_unchanged(self, call: HostCall, before: BoundCall | None) -> None:
        """Raise `Denied` unless the server, the definition and the policy are those of the decision."""
        if before is None or self._bound(call) != before:
            raise Denied(_changed(call))

    def _check_verdict(self, call: HostCall, before: Verdict) -> None:
        """Raise `Denied` unless the policy allows the call or decides as before: a link may lead elsewhere by now."""
        now = self.policy.decide(_proposed(call))
        if now.decision != "allow" and (now.decision, now.rule) != (before.decision, before.rule):
            raise Denied(f"{_name(call)} was not called: the policy decides differently by now: {now.reason}")

    # --- prompt ------------------------------------------------------------------------------------------------

    async def _prompt(self, call: HostCall, token: str, verdict: Verdict) -> CallPrompt:
        tool, server = call.tool.definition, call.server.configured
        before = await self._state.last_arguments(call.principal, server.key, tool.name)
        annotations = tool.annotations
        return CallPrompt(
            token=token,
            principal=call.principal,
            server=server.name,
            tool=tool.name,
            title=tool.title or (annotations and annotations.title) or tool.name,
            description=tool.description or "",
            effect=effect_of(annotations, server.settings.trusted),
            arguments=call.arguments,
            before=None if before is None else arguments_of(before),
            reason=verdict.reason,
        )

    async def _ask(self, call: HostCall, prompt: CallPrompt, on_progress: Any) -> PromptAnswer:
        """Ask the person, or the client where it may answer. A client gives no grants. Raises `Denied` if that is not
        configured any more.
        """
        if call.client is None or not self.clients_approve:
            return await self._answer(self._approver, call, prompt, on_progress)
        answer = await self._answer(call.client, call, prompt, on_progress)
        if not self.clients_approve:
            raise Denied(_changed(call))
        return msgspec.structs.replace(answer, by="client", grant=None)

    async def _answer(self, approver: Approver, call: HostCall, prompt: CallPrompt, on_progress: Any) -> PromptAnswer:
        """Return the answer, and keep the call alive meanwhile. Raises `Denied` if the host is closed."""
        asking = asyncio.get_running_loop().create_task(approver.ask(prompt, self._approval_seconds))
        self._asking.add(asking)
        waited = 0
        try:
            while not asking.done():
                await asyncio.wait([asking], timeout=_PROGRESS_SECONDS)
                if on_progress is not None and not asking.done():
                    waited += 1
                    done = on_progress(waited, None, _WAITING)
                    if inspect.isawaitable(done):
                        await done
            if asking.cancelled():
                raise Denied(f"{_name(call)} was not called: the host is closed")
            return asking.result()
        finally:
            self._asking.discard(asking)
            asking.cancel()

    async def _remember(self, call: HostCall, answer: PromptAnswer) -> None:
        """Store the arguments of an approved call, and the grant that came with it."""
        server = call.server.configured
        if len(call.encoded) <= MAX_ARGUMENTS:  # to redact a megabyte could take seconds
            arguments = msgspec.json.encode(await asyncio.to_thread(redact, call.arguments))
            await self._state.set_last_arguments(call.principal, server.key, call.tool.definition.name, arguments)
        if answer.grant is None:
            return
        now = time.time()
        grant = CallGrant(
            id=new_id(),
            principal=call.principal,
            server=call.server.digest,
            server_name=server.name,
            tool=answer.grant.tool,
            at=now,
            expires=None if answer.grant.seconds is None else now + answer.grant.seconds,
            conversation=call.conversation if answer.grant.conversation else None,
            arguments=call.arguments_digest if answer.grant.same_arguments else None,
        )
        if grant.conversation is None:
            await self._state.add_grant(grant.id, msgspec.json.encode(grant))
        else:
            self.conversation_grants.append(grant)

    async def _grant(self, call: HostCall) -> CallGrant | None:
        asked = GrantedCall(
            principal=call.principal,
            server=call.server.digest,
            tool=call.tool.definition.name,
            arguments=call.arguments_digest,
            conversation=call.conversation,
            pinned_at=call.tool.pin.at,
            now=time.time(),
        )
        return find_grant([*self.conversation_grants, *await self._state.grants(decode_grant)], asked)

    async def _record(self, kind: _EventKind, call: HostCall, **about: Any) -> None:
        """Write an entry of the audit log; it is durable when this returns. Raises `StoreError`."""
        if self.audit is not None:
            event = AuditEvent(
                kind=kind,
                call=call.id,
                principal=call.principal,
                server=call.server.name,
                tool=call.tool.definition.name,
                **about,
            )
            await self.audit.append(event)


def encode_call_arguments(tool: CataloguedTool, arguments: Mapping[str, Any] | None) -> bytes:
    """Return arguments as JSON under the server's names. Raises `InvalidArguments`, and `ValueError` for values that
    JSON does not support.
    """
    return to_json(tool.arguments(msgspec.json.decode(to_json(dict(arguments or {})))))


def denied_result(error: Denied) -> ToolResult:
    """Return the tool error for a call that was not sent."""
    return ToolResult(content=[TextContent(text=str(error))], is_error=True)


def _proposed(call: HostCall) -> ProposedCall:
    trusted = call.server.configured.settings.trusted
    return ProposedCall(
        server=call.server.name,
        tool=call.tool.definition.name,
        arguments=call.arguments,
        principal=call.principal,
        annotations=call.tool.definition.annotations if trusted else None,
        folder=call.server.configured.folder,
    )


def _outcome(error: Exception) -> str:
    """Return how a call ended, for the audit log."""
    if isinstance(error, RequestTimeout):
        return "timeout"
    if isinstance(error, Denied | NotConnected):
        return "not sent"
    return "connection lost" if isinstance(error, ConnectionLost) else "error"


def _name(call: HostCall) -> str:
    return f"the tool {call.tool.shown.name!r}"


def _changed(call: HostCall) -> str:
    return f"{_name(call)} was not called: its definition or its server has changed, and has to be approved again"
