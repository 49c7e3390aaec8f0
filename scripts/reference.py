"""Write docs/reference/ from the signatures and docstrings of accord: every public name, on one page each.

    .venv-test/bin/python scripts/reference.py

tests/test_reference.py fails when the pages are stale. griffe reads the sources without importing them; the tables of
types and constraints are computed by accord itself.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import re
import sys
import uuid
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import griffe
import msgspec

import accord
from accord.server.declare.signature import signature

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
MODULES = """What most programs use is imported from `accord`; the rest from the module that its entry names:

| module | contents |
| --- | --- |
| `accord` | servers, clients, content types, the most frequent errors |
| `accord.types` | all types of the protocol |
| `accord.errors` | all errors |
| `accord.middleware` | middleware, and the stores that it uses |
| `accord.openapi` | servers from an OpenAPI document |
| `accord.http` | options and settings of HTTP, authentication |
| `accord.stores` | stores of events, for streams that are resumed |
| `accord.sync` | the client without asyncio |
| `accord.host` | hosts: many servers, consent, policy, audit, language models |
| `accord.testing`, `accord.check` | tests, and the conformance checker |
| `accord.inspector` | the inspector |

Each name of this reference can be imported from `accord` as well, except those of `accord.sync`, `accord.host`,
`accord.testing`, `accord.check` and `accord.inspector`."""
NOTE = "<!-- Written by scripts/reference.py from the docstrings; do not edit. -->"


@dataclasses.dataclass(frozen=True)
class Page:
    """One page: the public names whose modules begin with one of `modules`, and further names by their path."""

    file: str
    title: str
    about: str
    modules: tuple[str, ...]
    more: tuple[str, ...] = ()


PAGES = (
    Page(
        "server.md",
        "Server",
        "Declaring tools, resources and prompts, and running a server. Guides: [tutorial](../tutorial.md), "
        "[tool results](../results.md), [notifications, logging and completion](../notifications.md).",
        ("server.server", "server.core", "server.declare", "server.depends", "server.files",
         "server.skills", "server.apps", "server.tasks"),
        ("server.declare.declaration_mixin.ToolOptions", "server.declare.declaration_mixin.PromptOptions"),
    ),
    Page(
        "elicitation.md",
        "Elicitation, sampling and roots",
        "What a handler asks of the client. Guide: [elicitation, sampling and roots](../elicitation.md).",
        ("server.input", "schema.forms"),
    ),
    Page(
        "composition.md",
        "Composition and middleware",
        "Guides: [composition](../composing.md), [middleware](../middleware.md), [OpenAPI](../openapi.md).",
        ("server.compose", "server.middleware", "server.openapi"),
    ),
    Page(
        "http.md",
        "HTTP and stores",
        "Serving over HTTP, authentication, and what outlives a connection. Guides: [HTTP](../http.md), "
        "[deployment](../deploy.md).",
        ("server.auth", "server.http", "store"),
    ),
    Page(
        "client.md",
        "Client",
        "Guide: [client](../client.md). `accord.sync.Client` has the same options and methods, and blocks.",
        ("client", "auth", "transport"),
    ),
    Page(
        "host.md",
        "Host",
        "Hosts, their approvers, policies and language models. Guides: [host](../host.md), [models](../models.md).",
        (),
        ("host.host.Host", "host.hosted_server.HostedServerStatus", "host.approvers.PromptAnswer",
         "host.approvers.GrantRequest", "host.approvers.ApprovalQueue", "host.approvers.ClientApprover",
         "cli.approver.TerminalApprover", "host.approvers.Approver",
         "host.prompts.CallPrompt", "host.prompts.CommandPrompt", "host.prompts.DefinitionsPrompt",
         "host.prompts.SamplingPrompt", "host.questions.ElicitationContext", "host.conversation.RunLimits",
         "host.conversation.RunResult", "host.models.model.LanguageModel", "host.models.model.ModelResult",
         "host.models.anthropic.AnthropicModel", "host.models.chat_completions.ChatCompletionsModel",
         "host.models.responses.ResponsesModel", "host.models.provider.ModelSettings",
         "host.models.configured_model.model_from_settings", "host.models.limits.ModelLimits"),
    ),
    Page("errors.md", "Errors", "Every exception that accord raises.", ("errors",)),
    Page("limits.md", "Limits", "Every bound and its default.", ("limits",)),
    Page(
        "types.md",
        "Protocol types",
        "The messages of the Model Context Protocol. Fields are named as in the specification, in snake_case.",
        ("messages",),
    ),
    Page(
        "testing.md",
        "Testing, telemetry and inspector",
        "Guides: [testing](../testing.md), [telemetry](../telemetry.md), [inspecting](../inspecting.md).",
        ("telemetry",),
        ("testing.http.served_over_http", "testing.surfaces.surface", "testing.surfaces.assert_surface",
         "testing.replayer.replay", "testing.rules.check_rules", "testing.transports.check_transport",
         "testing.recording.Recording", "testing.recorded_server.RecordedServer",
         "testing.auth_server.server.AuthServer", "testing.scripted_model.ScriptedModel", "inspector.app.Inspector"),
    ),
)  # fmt: skip

ENVIRONMENT = {
    "ACCORD_BEARER": "Token that the command line sends to a URL, as `--bearer` does, out of sight of `ps`.",
    "ACCORD_TOKENS": "Tokens of two users for `accord check`, as `--token` twice, separated by a space.",
    "ACCORD_CLIENT_SECRET": "Secret of the client that `accord login --client-id` names.",
    "ACCORD_CREDENTIALS": "File of the logins, instead of `credentials.db` in the user's data folder.",
    "ACCORD_HOST_STATE": "File of what the user of a host approved, instead of `host.db` in the user's data folder.",
    "ACCORD_DEV_IMPORTS": "A file to which `accord dev` has a program append the files that it imports.",
    "ACCORD_KEYRING": "0 stores secrets of logins in that file, instead of in the keyring of the system.",
    "ACCORD_INSTALLS": "File of the records of `accord install`, instead of `installs.db` in the user's data folder.",
    "ACCORD_TRACEBACK": "Set to 1, the command line prints the traceback of what failed, as `--traceback` does.",
    "ACCORD_MODEL": "Model of `accord chat`, as `--model`.",
    "ANTHROPIC_API_KEY": "Key of `accord.host.AnthropicModel`, for Anthropic itself.",
    "COLUMNS": "Width of the tables of the command line, where its output is no terminal.",
    "FASTMCP_HOST": "The host that servers of `accord.compat.fastmcp` are reached at, unless they say so themselves.",
    "FASTMCP_PORT": "Their port.",
    "FASTMCP_STATELESS_HTTP": "Set to 1, they are served without sessions.",
    "FASTMCP_STREAMABLE_HTTP_PATH": "Their path.",
    "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY": "Proxy of clients, unless `HTTPSettings(proxy=...)` gives one.",
    "OPENAI_API_KEY": "Key of `ChatCompletionsModel` and `ResponsesModel` of `accord.host`, for OpenAI itself.",
    "PATH": "Where the program of a server is looked for, to describe its command before it is approved.",
    "NO_COLOR": "Set to anything, the command line prints no colors.",
}
"""The environment variables that accord reads; a test compares their names with the sources."""


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    package = griffe.load("accord", search_paths=[str(ROOT / "src")])
    homes = dict(accord._HOMES)
    texts = {}
    for page in PAGES:
        names = [name for name in homes if _is_on(homes[name].removeprefix("accord."), page)]
        objects = [package[f"{homes.pop(name).removeprefix('accord.')}.{name}"] for name in names]
        objects += [package[path] for path in page.more]
        texts[page.file] = _page(page, objects)
    if homes:
        raise SystemExit(f"no page of the reference has {', '.join(homes)}: add their module to PAGES")
    texts["parameters.md"] = _parameters()
    texts["environment.md"] = _environment()
    texts["index.md"] = _index(texts)
    return texts


def _is_on(module: str, page: Page) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in page.modules)


def _page(page: Page, objects: Iterable[Any]) -> str:
    parts = [NOTE, f"# {page.title}", page.about]
    for each in sorted(objects, key=lambda each: (_place(each, page), each.name.lower())):
        parts += list(_described(each))
    return "\n\n".join(part for part in parts if part) + "\n"


def _place(found: Any, page: Page) -> int:
    """Where the module of an object stands among those of its page."""
    path = found.path.removeprefix("accord.")
    return next((at for at, module in enumerate(page.modules) if path.startswith(f"{module}.")), len(page.modules))


def _described(found: Any) -> Iterator[str]:
    """The parts of the description of a class, a function or a value."""
    found = found.final_target if found.is_alias else found
    yield f"## {found.name}"
    if found.name in accord._HOMES:
        yield f"`from {_module(found.name)} import {found.name}`"
    if found.is_function:
        yield from _function(found)
    elif found.is_class:
        yield from _class(found)
    else:
        yield _code(f"{found.name} = {found.value}")
        yield _text(found)


def _module(name: str) -> str:
    """Return the module that lists a public name."""
    if name in accord.__all__:
        return "accord"
    modules = (
        import_module(f"accord.{each}") for each in ("errors", "http", "middleware", "openapi", "stores", "types")
    )
    return next(module.__name__ for module in modules if getattr(module, name, None) is getattr(accord, name))


def _class(found: Any) -> Iterator[str]:
    bases = ", ".join(str(base) for base in found.bases)
    members = {name: each.final_target if each.is_alias else each for name, each in found.all_members.items()}
    init = members.get("__init__")
    if init is not None and init.is_function and not _is_record(found):
        yield from _signatures(init, found.name)
    else:
        yield _code(f"class {found.name}({bases})" if bases else f"class {found.name}")
    yield _text(found)
    public = {name: each for name, each in members.items() if not name.startswith("_")}
    values = [each for each in public.values() if each.is_attribute and (each.has_docstring or _is_record(found))]
    yield _table(values, defaults=_is_record(found))
    for each in public.values():
        if each.is_function and each.has_docstring:
            yield f"### {found.name}.{each.name}"
            yield from _function(each)


def _is_record(found: Any) -> bool:
    """Whether its annotated attributes are its constructor's parameters."""
    bases = [str(base) for base in found.bases]
    return any(
        base.endswith(("Struct", "Model", "Result", "Params", "TypedDict", "Options")) for base in bases
    ) or bool(found.labels & {"dataclass"})


def _function(found: Any) -> Iterator[str]:
    yield from _signatures(found, found.name)
    yield _text(found)


def _signatures(found: Any, name: str) -> Iterator[str]:
    variants = found.overloads if getattr(found, "overloads", None) else [found]
    prefix = "async " if "async" in found.labels else ""
    yield _code("\n".join(prefix + _signature(each, name) for each in variants))


def _signature(function: Any, name: str) -> str:
    words, star = [], False
    for parameter in function.parameters:
        if parameter.name in ("self", "cls"):
            continue
        kind = parameter.kind.value
        if kind == "keyword-only" and not star:
            words.append("*")
        star = star or kind in ("keyword-only", "variadic positional")
        mark = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        hint = f": {parameter.annotation}" if parameter.annotation is not None else ""
        default = "" if mark or parameter.default is None else f" = {parameter.default}"
        words.append(f"{mark}{parameter.name}{hint}{default}")
        if kind == "positional-only" and parameter is _last_positional(function):
            words.append("/")
    result = "" if function.returns is None or name[:1].isupper() else f" -> {function.returns}"
    line = f"{name}({', '.join(words)}){result}"
    return line if len(line) <= 100 else f"{name}(\n    " + ",\n    ".join(words) + f",\n){result}"


def _last_positional(function: Any) -> Any:
    return [each for each in function.parameters if each.kind.value == "positional-only"][-1]


def _table(values: list[Any], *, defaults: bool) -> str:
    if not values:
        return ""
    rows = (
        ["| name | type | default | |", "| --- | --- | --- | --- |"]
        if defaults
        else ["| name | type | |", "| --- | --- | --- |"]
    )
    for each in values:
        cells = [f"`{each.name}`", _cell(f"`{each.annotation}`") if each.annotation is not None else ""]
        if defaults:
            cells.append(_cell(f"`{each.value}`") if each.value is not None else "")
        rows.append(f"| {' | '.join([*cells, _cell(_text(each))])} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def _text(found: Any) -> str:
    """The docstring; examples in it, which are indented, as blocks of code."""
    text = found.docstring.value if found.has_docstring else ""
    return re.sub(r"(?m)^ {4}(?=\S|\s+\S).*(\n( {4}.*|\s*$))*", _example, text).strip()


def _example(match: re.Match[str]) -> str:
    lines = [line[4:] for line in match[0].rstrip().splitlines()]
    return _code("\n".join(lines)) + "\n"


def _code(text: str) -> str:
    return f"```py\n{text}\n```"


# --- what parameters may be ----------------------------------------------------------------------------------------


class Size(enum.Enum):
    """An example."""

    SMALL = "small"
    LARGE = "large"


@dataclasses.dataclass
class Item:
    """An example."""

    name: str
    price: float = 0.0


_TYPES: tuple[tuple[str, Any], ...] = (
    ("str", str), ("int", int), ("float", float), ("bool", bool), ("bytes", bytes), ("None", type(None)),
    ("datetime.datetime", datetime.datetime), ("datetime.date", datetime.date), ("datetime.time", datetime.time),
    ("datetime.timedelta", datetime.timedelta), ("decimal.Decimal", decimal.Decimal), ("uuid.UUID", uuid.UUID),
    ("pathlib.Path", pathlib.Path), ("list[int]", list[int]), ("set[str]", set[str]),
    ("tuple[int, ...]", tuple[int, ...]),
    ("tuple[int, str]", tuple[int, str]), ("dict[str, int]", dict[str, int]), ("int | None", int | None),
    ("int | str", int | str), ('Literal["a", "b"]', Literal["a", "b"]), ("an Enum", Size),
    ("a dataclass; TypedDict, NamedTuple, msgspec, attrs and pydantic classes alike", Item), ("Any", Any),
    ("accord.Email", accord.Email), ("accord.Uri", accord.Uri),
)  # fmt: skip

_CONSTRAINTS: tuple[tuple[str, Any], ...] = (
    ("Annotated[int, Meta(ge=1, le=10)]", Annotated[int, msgspec.Meta(ge=1, le=10)]),
    ("Annotated[float, Meta(gt=0, lt=1)]", Annotated[float, msgspec.Meta(gt=0, lt=1)]),
    ("Annotated[int, Meta(multiple_of=5)]", Annotated[int, msgspec.Meta(multiple_of=5)]),
    ("Annotated[str, Meta(min_length=1, max_length=20)]", Annotated[str, msgspec.Meta(min_length=1, max_length=20)]),
    ('Annotated[str, Meta(pattern="^[a-z]+$")]', Annotated[str, msgspec.Meta(pattern="^[a-z]+$")]),
    ("Annotated[list[int], Meta(max_length=3)]", Annotated[list[int], msgspec.Meta(max_length=3)]),
    (
        'Annotated[str, Meta(title="City", description="Where", examples=["Oslo"])]',
        Annotated[str, msgspec.Meta(title="City", description="Where", examples=["Oslo"])],
    ),
)


_PARAMETERS = """\
The type hint of a parameter gives its JSON Schema, and arguments are checked against it before the function is called.
`Meta` is `msgspec.Meta`; `annotated_types` and `pydantic.Field(ge=1, ...)` mean the same. A parameter with a default
may be left out. The section `Args:` of the docstring (or that of NumPy or Sphinx) gives the descriptions."""


def _parameters() -> str:
    parts = [
        NOTE,
        "# Types and constraints of parameters",
        _PARAMETERS,
        "## Types",
        _schemas("type hint", _TYPES),
        "## Constraints",
        _schemas("type hint", _CONSTRAINTS),
    ]
    return "\n\n".join(parts) + "\n"


def _schemas(heading: str, rows: Iterable[tuple[str, Any]]) -> str:
    lines = [f"| {heading} | JSON Schema |", "| --- | --- |"]
    for name, hint in rows:
        shown = name if name.startswith(("a ", "an ")) else f"`{name}`"
        lines.append(f"| {_cell(shown)} | `{_schema(hint)}` |")
    return "\n".join(lines)


def _schema(hint: Any) -> str:
    def function(value: Any) -> None: ...

    function.__annotations__ = {"value": hint, "return": None}
    schema = signature(function).input_schema
    written = {**schema["properties"]["value"], **({"$defs": schema["$defs"]} if "$defs" in schema else {})}
    return _cell(json.dumps(written))


def _environment() -> str:
    rows = [f"| `{name}` | {text} |" for name, text in ENVIRONMENT.items()]
    parts = [
        NOTE,
        "# Environment variables",
        "\n".join(["| variable | |", "| --- | --- |", *rows]),
        "A child process gets a safe subset of the environment and what `env` gives ([client](../client.md#targets)).",
    ]
    return "\n\n".join(parts) + "\n"


def _index(texts: dict[str, str]) -> str:
    parts = [NOTE, "# Reference", "Every public name of `accord`, from its signature and docstring.", MODULES]
    rows = ["| page | names |", "| --- | --- |"]
    for file, text in texts.items():
        title = re.search(r"^# (.+)$", text, re.MULTILINE)
        names = re.findall(r"^## (\w+)$", text, re.MULTILINE)
        links = ", ".join(f"[`{name}`]({file}#{name.lower()})" for name in names)
        rows.append(f"| [{title[1] if title else file}]({file}) | {links} |")
    return "\n\n".join([*parts, "\n".join(rows)]) + "\n"


def main() -> int:
    """Write the pages; remove those that are no longer there."""
    FOLDER.mkdir(exist_ok=True)
    texts = pages()
    for file in FOLDER.glob("*.md"):
        if file.name not in texts:
            file.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"docs/reference: {len(texts)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
