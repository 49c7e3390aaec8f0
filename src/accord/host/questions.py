"""Requests of servers to the host: sampling, elicitation and roots (client features).

A sampling request goes to one of the host's models, after the user has read and perhaps edited it, and so does the
answer on its way back. An elicitation goes only to the person whose call caused it. Roots are configured.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from accord.client.model_selection import choose_model
from accord.errors import (
    DeclarationError,
    InternalError,
    InvalidParams,
    ModelError,
    RateLimited,
    SamplingDeclined,
    log_line,
)
from accord.host.approvers import Approver, PromptAnswer
from accord.host.configuration import ConfiguredServer
from accord.host.hosted_server import HostedServer, SampledTokens
from accord.host.models.model import LanguageModel
from accord.host.prompts import SamplingPrompt
from accord.messages.elicitation import ElicitParams
from accord.messages.sampling import CreateMessageParams, CreateMessageResult
from accord.redaction import names_secret

log: logging.Logger = logging.getLogger("accord.host")


class ElicitationContext(msgspec.Struct, frozen=True):
    """The origin of an elicitation."""

    server: str
    """The server under its name in the configuration, which the server cannot choose."""
    principal: str
    """The person whose call caused the question; empty for the owner of the host."""


ElicitationHandler = Callable[[Any, ElicitationContext], Any]
"""Returns the content of the form, or None to decline; for a URL, whether the user agrees to visit it. May be async."""


_MAX_QUESTIONS = 20
"""Elicitations that a server may send before the next request to it."""
_MAX_OPEN_BYTES = 32 << 20
"""Bytes of the requests of one server that wait for a person or a model: each may be as long as a message."""


current_run: ContextVar[SampledTokens | None] = ContextVar("accord_host_run", default=None)
"""The run that makes the calls of this context."""


class SamplingLimits:
    """The sampling requests that the servers of one host may send, each and in total, and who pays for them."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._used: dict[str, int] = {}
        self.tokens: int = 0
        """Tokens of all requests so far, and of their answers."""
        self._runs: set[SampledTokens] = set()

    @contextmanager
    def count(self) -> Iterator[SampledTokens]:
        """Count the tokens for the calls that this context makes, as one run."""
        run = SampledTokens()
        self._runs.add(run)
        token = current_run.set(run)
        try:
            yield run
        finally:
            current_run.reset(token)
            self._runs.discard(run)

    def charge(self, server: ConfiguredServer) -> None:
        """Count a request. Raises `RateLimited` beyond the limits."""
        used = self._used.get(server.name, 0)
        if used >= server.settings.max_sampling or sum(self._used.values()) >= self._total:
            raise RateLimited(f"the host sends no more sampling requests of {server.name!r} to its models")
        self._used[server.name] = used + 1

    def payers(self, server: HostedServer) -> Collection[SampledTokens | None]:
        """Return the runs with calls in flight at the server; all runs if it has no calls, so that none goes unpaid."""
        return list(server.active_runs) or list(self._runs)

    def pay(self, tokens: int, payers: Collection[SampledTokens | None]) -> None:
        """Charge the tokens of one request. It is not known which of several calls caused it: each run pays."""
        self.tokens += tokens
        for run in payers:
            if run is not None:
                run.tokens += tokens


def real_folders(roots: Any) -> list[str]:
    """Return the paths of folders, absolute and without links.

    Raises `DeclarationError` for one path: a text would be as many folders as it has characters, `/` among them.
    """
    if isinstance(roots, str | bytes | os.PathLike):
        raise DeclarationError(f"roots={roots!r:.200} is one folder; give a list of folders: roots=[{roots!r:.200}]")
    return [os.path.realpath(os.path.expanduser(each)) for each in roots]


class ServerQuestions:
    """The handlers for one server."""

    def __init__(
        self,
        server: HostedServer,
        models: Sequence[LanguageModel],
        limits: SamplingLimits,
        approver: Approver,
        elicitation: ElicitationHandler | None,
        roots: Sequence[str],
        *,
        approval_seconds: float,
    ) -> None:
        self._server = server
        self._models = models
        self._limits = limits
        self._approver = approver
        self._elicitation = elicitation
        folder = os.path.dirname(server.configured.file)  # what is relative in a file is relative to its folder
        own = [os.path.join(folder, os.path.expanduser(each)) for each in server.configured.settings.roots]
        self._roots = [*roots, *real_folders(own)]
        self._asked_in = 0
        """The number of the last request of the host, and how many questions the server has asked since."""
        self._asked = 0
        self._approval_seconds = approval_seconds
        self._open_bytes = 0

    def options(self) -> dict[str, Any]:
        """Return the options of the `Client`: a handler declares its capability."""
        options: dict[str, Any] = {}
        if self._models:
            options |= {"sampling": self.sample, "sampling_tools": True}
        if self._elicitation is not None:
            options |= {"elicitation": self.elicit, "elicitation_modes": ("form", "url")}
        if self._roots:
            options["roots"] = self._roots
        return options

    @contextmanager
    def _held(self, params: CreateMessageParams | ElicitParams) -> Iterator[None]:
        """Count the size of a request while it is open. Raises `RateLimited` beyond the limit."""
        size = len(msgspec.json.encode(params))
        if self._open_bytes + size > _MAX_OPEN_BYTES:
            raise RateLimited(f"the open requests of {self._server.name!r} are too large together")
        self._open_bytes += size
        try:
            yield
        finally:
            self._open_bytes -= size

    # --- sampling ----------------------------------------------------------------------------------------------

    async def sample(self, params: CreateMessageParams) -> CreateMessageResult:
        """Answer a sampling request. Raises `SamplingDeclined`, `RateLimited`, `InternalError` if the model fails."""
        self._limits.charge(self._server.configured)
        with self._held(params):
            return await self._sampled(params)

    async def _sampled(self, params: CreateMessageParams) -> CreateMessageResult:
        payers = self._limits.payers(self._server)
        model = choose_model(params.model_preferences, list(self._models))
        asked = await self._approved(SamplingPrompt(self._server.name, model.name, params))
        request = asked.request or params
        answer = await self._ask_model(model, request, payers)
        released = await self._approved(SamplingPrompt(self._server.name, model.name, request, answer))
        return released.result or answer

    async def _ask_model(
        self, model: LanguageModel, request: CreateMessageParams, payers: Collection[SampledTokens | None]
    ) -> CreateMessageResult:
        try:
            answer = await model.create_message(request)
        except ModelError as exc:  # its text is for the owner of the host: the server learns nothing of the provider
            log.warning("accord: %s answered no request of %s: %s", model.name, self._server.name, log_line(exc))
            raise InternalError("the model of the host did not answer") from None
        self._limits.pay(answer.input_tokens + answer.output_tokens, payers)
        return answer.result

    async def _approved(self, prompt: SamplingPrompt) -> PromptAnswer:
        answer = await self._approver.ask(prompt, self._approval_seconds)
        if not answer.approved:
            raise SamplingDeclined
        return answer

    # --- elicitation -------------------------------------------------------------------------------------------

    async def elicit(self, params: ElicitParams) -> Any:
        """Pass a question on to the person whose call caused it. Declines a form that asks for a secret.

        "Servers MUST NOT use form mode elicitation to request sensitive information" (Elicitation). Raises
        `InvalidParams` if it cannot be known whose call caused the question, and `RateLimited` for too many.
        """
        assert self._elicitation is not None, "without it the capability is not declared"
        self._charge_question()
        if secret := _secret_field(params):
            raise InvalidParams(f"the form asks for {secret!r}: this host asks nobody for a secret in a form")
        principals = list(self._server.active_principals)
        if len(principals) > 1:
            raise InvalidParams("several principals have calls at this server; it is not known whom this is for")
        context = ElicitationContext(self._server.name, principals[0] if principals else "")
        with self._held(params):
            answer = self._elicitation(params, context)
            return await answer if inspect.isawaitable(answer) else answer

    def _charge_question(self) -> None:
        """Count a question. Raises `RateLimited` beyond those that one request may cause."""
        if self._asked_in != self._server.requests:
            self._asked_in, self._asked = self._server.requests, 0
        self._asked += 1
        if self._asked > _MAX_QUESTIONS:
            raise RateLimited(f"the host passes on at most {_MAX_QUESTIONS} questions of {self._server.name!r} at once")


def _secret_field(params: ElicitParams) -> str:
    """Return the name of a field that is for a secret; empty if there is none."""
    properties = (params.requested_schema or {}).get("properties")
    for name, field in (properties if isinstance(properties, dict) else {}).items():
        about = field if isinstance(field, dict) else {}
        if about.get("format") == "password" or names_secret(name) or names_secret(str(about.get("title", ""))):
            return str(name)
    return ""
