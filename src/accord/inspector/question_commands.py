"""Commands of the page about requests of servers: list, show, check, answer, ask a model; and roots."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Raw

from accord.client.model_selection import choose_model
from accord.errors import AccordError, LocalProtocolError, Mismatch
from accord.host.models.configured_model import model_from_settings
from accord.host.models.model import LanguageModel
from accord.inspector.commands import CommandParams, InspectorError, NoParams, PageCommand, ServerParams
from accord.inspector.questions import ClosedQuestion, Kind, Question, json_line
from accord.locked_cache import safe_convert
from accord.messages import codec
from accord.messages.elicitation import ElicitResult
from accord.messages.input_required import ListRootsResult
from accord.messages.sampling import CreateMessageParams, CreateMessageResult
from accord.messages.views import view
from accord.schema.forms import check

if TYPE_CHECKING:
    from accord.inspector.workspace import Workspace

_MESSAGE_CHARACTERS = 2_000
_PARAMS_CHARACTERS = 2 << 20
"""Characters of the params that a page receives."""
_MAX_MODELS = 50
_RESULTS: Mapping[Kind, Any] = {
    "form": ElicitResult,
    "url": ElicitResult,
    "sampling": CreateMessageResult,
    "roots": ListRootsResult,
}


class _Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class OpenQuestion(_Result, frozen=True):
    """An open question in a list."""

    id: int
    server: str
    kind: Kind
    method: str
    message: str
    calls: tuple[str, ...]
    remaining_seconds: float


class QuestionList(_Result, frozen=True):
    """The open questions, and the last closed ones, the latest first."""

    open: list[OpenQuestion]
    closed: list[ClosedQuestion]


class QuestionDetail(OpenQuestion, frozen=True):
    """An open question with its params. A member that is too long is cut, with its number of characters."""

    revision: str
    params_json: str
    params_length: int
    schema_json: str | None = None
    """The schema of a form."""
    url: str | None = None


class Problems(_Result, frozen=True):
    """The reasons why an answer does not fit its request; nothing was sent if there are any."""

    problems: list[str]


class ModelAnswer(_Result, frozen=True):
    """The answer of a model, which was not sent."""

    model: str
    result_json: str


class ModelList(_Result, frozen=True):
    """The names of the models."""

    models: list[str]


class ServerRoots(_Result, frozen=True):
    """The roots of a server, and whether the user is asked before they are sent."""

    roots: list[str]
    asks: bool


class ListQuestionsParams(CommandParams, frozen=True):
    """The name of a server; all servers without one."""

    server: str = ""


class QuestionParams(CommandParams, frozen=True):
    """The number of a question."""

    id: int


class AnswerParams(CommandParams, frozen=True):
    """An answer. `json` is the content of a form, or the whole result of another request; "accept" needs it, except for
    a URL. `unchecked`: send it although it does not fit.
    """

    id: int
    action: Literal["accept", "decline", "cancel"]
    json: str = ""
    unchecked: bool = False


class AskModelParams(CommandParams, frozen=True):
    """A sampling request, perhaps edited, and the name of a model; the best one for the request without a name."""

    id: int
    params_json: str
    model: str = ""


class AddModelParams(CommandParams, frozen=True):
    """A model as `accord.host.model_from_settings` takes it, as JSON."""

    settings_json: str


class SetRootsParams(ServerParams, frozen=True):
    """The roots of a server: paths or `file:` URIs."""

    roots: list[str]
    asks: bool = False


async def list_questions(workspace: Workspace, params: ListQuestionsParams) -> QuestionList:
    """Return the questions of one server or of all."""
    questions = workspace.questions
    return QuestionList(
        open=[OpenQuestion(**_summary(question)) for question in questions.open(params.server)],
        closed=[each for each in reversed(questions.closed) if params.server in ("", each.server)],
    )


async def get_question(workspace: Workspace, params: QuestionParams) -> QuestionDetail:
    """Return one open question."""
    question = workspace.questions.get(params.id)
    text = question.params.decode(errors="replace")
    members = _members(question.params)
    schema = members.get("requestedSchema")
    url = members.get("url")
    return QuestionDetail(
        **_summary(question),
        revision=question.revision,
        params_json=text[:_PARAMS_CHARACTERS],
        params_length=len(text),
        schema_json=bytes(schema).decode(errors="replace") if schema is not None else None,
        url=msgspec.json.decode(url) if url is not None and question.kind == "url" else None,
    )


async def answer_question(workspace: Workspace, params: AnswerParams) -> Problems:
    """Answer a question; with problems of the answer, and nothing sent, if it does not fit and is not `unchecked`."""
    question = workspace.questions.get(params.id)
    if params.action != "accept":
        workspace.questions.refuse(params.id, "declined" if params.action == "decline" else "cancelled")
        return Problems(problems=[])
    result = _result(question, params.json)
    problems = [] if params.unchecked else answer_problems(question, result)
    if not problems:
        workspace.questions.accept(params.id, Raw(result))
    return Problems(problems=problems)


def _result(question: Question, text: str) -> bytes:
    """Return the JSON of the result of an accepted question. Raises `InspectorError`."""
    if question.kind == "url":
        return b'{"action":"accept"}'
    line = json_line(text, "the answer")
    return b'{"action":"accept","content":%b}' % line if question.kind == "form" else line


def answer_problems(question: Question, result: bytes) -> list[str]:
    """Return why a result does not fit its request, or the exact types of its revision."""
    try:
        decoded = msgspec.json.decode(result)
        safe_convert(decoded, view(_RESULTS[question.kind], question.revision, strict=True))
        if question.kind == "form":
            schema = _members(question.params).get("requestedSchema")
            check(decoded.get("content") or {}, msgspec.json.decode(schema or b"{}"))
    except (msgspec.ValidationError, Mismatch, RecursionError) as exc:
        return [str(exc)]
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        return [f"accord cannot read it: {exc}"]
    return []


# --- models --------------------------------------------------------------------------------------------------------


async def ask_model(workspace: Workspace, params: AskModelParams) -> ModelAnswer:
    """Return the answer of a model to a sampling request; the user sends it, or another."""
    question = workspace.questions.get(params.id)
    if question.kind != "sampling":
        raise InspectorError("only a sampling request is for a model", "answer it yourself", status=400)
    request = _sampling_request(params.params_json)
    model = _model(workspace.questions.models, params.model, request)
    try:
        answer = await model.create_message(request)
    except AccordError as exc:
        raise InspectorError(f"{model.name} did not answer: {exc}", "answer by hand, or ask another model") from None
    narrowed = codec.narrow(answer.result, question.revision)
    return ModelAnswer(model=model.name, result_json=codec.encode(narrowed).decode())


def _sampling_request(text: str) -> CreateMessageParams:
    try:
        request: CreateMessageParams = codec.decoder(CreateMessageParams).decode(json_line(text, "the request"))
    except msgspec.ValidationError as exc:
        raise InspectorError(f"a model cannot read the request: {exc}", "correct it", status=400) from None
    return request


def _model(models: Sequence[LanguageModel], name: str, request: CreateMessageParams) -> LanguageModel:
    if not models:
        raise InspectorError("there is no model", "add one, or answer by hand")
    if not name:
        return choose_model(request.model_preferences, models)
    found = next((model for model in models if model.name == name), None)
    if found is None:
        raise InspectorError(f"there is no model {name!r:.200}", "choose one of the list", status=404)
    return found


async def list_models(workspace: Workspace, params: NoParams) -> ModelList:
    """Return the models that can answer sampling requests."""
    return ModelList(models=[model.name for model in workspace.questions.models])


async def add_model(workspace: Workspace, params: AddModelParams) -> ModelList:
    """Add a model, or replace the one with its name. Its API key is in the environment or in the keyring."""
    models = workspace.questions.models
    settings = msgspec.json.decode(json_line(params.settings_json, "the model"))
    if not isinstance(settings, dict):
        raise InspectorError("a model is a JSON object", 'write {"api": "anthropic", "name": "..."}', status=400)
    if not str(settings.get("apiKey") or "keyring:").startswith("keyring:"):
        raise InspectorError(
            "an API key must not be written in the page",
            'set the environment variable of the provider, or write "keyring:service/name"',
            status=400,
        )
    model = model_from_settings(settings)
    others = [each for each in models if each.name != model.name]
    models[:] = [*others[: _MAX_MODELS - 1], model]
    return await list_models(workspace, NoParams())


# --- roots ---------------------------------------------------------------------------------------------------------


async def get_roots(workspace: Workspace, params: ServerParams) -> ServerRoots:
    """Return the roots of a server."""
    offered = workspace.questions.roots(params.server)
    return ServerRoots(roots=[root.uri for root in offered.roots], asks=offered.asks)


async def set_roots(workspace: Workspace, params: SetRootsParams) -> ServerRoots:
    """Set the roots of a server, and notify it."""
    try:
        workspace.questions.set_roots(params.server, params.roots, asks=params.asks)
    except LocalProtocolError as exc:
        raise InspectorError(str(exc), "write a path, or a URI such as file:///home/me", status=400) from None
    server = workspace.server(params.server)
    if server.state == "connected":
        server.client.set_roots(workspace.questions.options(params.server)["roots"])
    return await get_roots(workspace, ServerParams(server=params.server))


def _summary(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "server": question.server,
        "kind": question.kind,
        "method": question.method,
        "message": question.message[:_MESSAGE_CHARACTERS],
        "calls": question.causes,
        "remaining_seconds": round(max(0.0, question.expires_at - time.monotonic()), 1),
    }


def _members(params: bytes) -> dict[str, Raw]:
    found: dict[str, Raw] = msgspec.json.decode(params, type=dict[str, Raw])
    return found


COMMANDS: Mapping[str, PageCommand] = {
    "questions/list": PageCommand(ListQuestionsParams, list_questions),
    "questions/get": PageCommand(QuestionParams, get_question),
    "questions/answer": PageCommand(AnswerParams, answer_question),
    "questions/ask-model": PageCommand(AskModelParams, ask_model),
    "models/list": PageCommand(NoParams, list_models),
    "models/add": PageCommand(AddModelParams, add_model),
    "roots/get": PageCommand(ServerParams, get_roots),
    "roots/set": PageCommand(SetRootsParams, set_roots),
}
