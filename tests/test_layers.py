"""The imports of src/accord run one way: the line below, read with `ast`, and what follows from it.

- A folder uses what stands to its left; equals (`|`) do not import each other; `client` never uses `server`.
- Imports inside functions stand at a few seams only (`SEAMS`); under `TYPE_CHECKING` they count like others.
- The sans-I/O folders know no loop, thread, clock or socket; revisions are compared in one place.
- `import accord` is quick and loads nothing heavy.

Every rule is a function of a source text, and is itself tested with a source that breaks it.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "src" / "accord"

LINE = """
lazy_names lazy_patterns locked_cache errors file_replacement limits visible_text → redaction → messages → types
→ schema | session | wire | store
→ transport → auth → telemetry → server → client → http middleware openapi stores → sync → host → gateway → check → dev
→ testing → inspector → install | compat → migrate → cli
"""

NEVER = {("client", "server"): "the client reaches an in-memory Server through a Protocol"}

SANS_IO = ("messages", "session", "wire")
IO = ("asyncio", "socket", "threading", "time", "subprocess")

OPTIONAL = (
    "aiohttp",
    "attr",
    "attrs",
    "cryptography",
    "joserfc",
    "keyring",
    "opentelemetry",
    "pydantic",
    "redis",
    "ruamel",
)
OPTIONAL += ("platformdirs", "rich", "starlette", "textual", "tomlkit", "uvloop", "watchfiles", "yaml", "yarl")
HEAVY = ("asyncio", "difflib", "inspect", "jsonschema_rs", "urllib", "webbrowser")
"""Imported when first needed: a program with one tool starts in 60 ms over a bare interpreter."""

REVISION_FILES = ("messages/revision.py", "messages/base.py", "messages/views.py")

LOADS_LATER = ("asyncio", "typing", "uvloop", "aiohttp", "rich", "pydantic", "jsonschema_rs")


@dataclass(frozen=True)
class Seam:
    """A place where an import may stand inside a function."""

    reason: str
    files: str = ".*"
    functions: str = ".*"
    modules: str = ".*"

    def holds(self, file: str, found: Import) -> bool:
        return (
            re.fullmatch(self.files, file) is not None
            and re.fullmatch(self.functions, found.function or "") is not None
            and re.fullmatch(self.modules, found.module.partition(".")[0]) is not None
        )


SEAMS = (
    Seam(
        "lazy names (PEP 562): a name is loaded when it is first asked for",
        r"(.*/)?__init__\.py",
        "__getattr__",
    ),
    Seam(
        "run(), serve() and app: only a server that runs pays for what runs it",
        r"server/.*",
        "run|run_async|serve|app|asgi",
    ),
    Seam(
        "what few servers declare: schemas by hand bring JSON Schema, templates their grammar",
        r"server/(server|declare/declaration|core/completion)\.py",
        "add_tool|_declare_template|_expanding|add_module|add_object|add_directory|(add|from)_(openapi|fastapi)",
    ),
    Seam(
        "what few servers are made of: what lasts as long as they run, other servers, providers, dependencies",
        r"server/(server|compose/composition_mixin|core/(resolver|registration))\.py",
        "lifetimes|mount|change_tool|providers|dependencies_in",
    ),
    Seam(
        "imports and files: loaded by the server that has them",
        r"server/(declare|compose)/\w+\.py",
        r"(add|from|search)_\w+",
    ),
    Seam(
        "input: loaded by the first handler that asks for it",
        r"server/(server|core/registration)\.py",
        "round_trips|input_parameters_in|_keyring",
    ),
    Seam("tasks: loaded by the first tool that may become one", r"server/server\.py", "serve_tasks"),
    Seam("completion: loaded by the first request for it", r"server/core/dispatch\.py", "_complete"),
    Seam("logging: loaded by the first handler that logs", r"server/core/peer\.py", "logs|new_logs"),
    Seam(
        "tokens: loaded by the server that verifies them",
        r"server/(server|http/app|declare/declaration)\.py|compat/auth\.py",
        "_alternatives|_protected_resource|_scopes|_jwt|_program_tokens",
    ),
    Seam("logins: loaded by the entry of a configuration that has one", r"client/target\.py", "_configured_login"),
    Seam("pages: loaded by the server that declares one", r"server/declare/declaration\.py", "declare_tool"),
    Seam("pages: loaded by the client that shows one", r"messages/tools\.py|client/request_methods\.py", "ui|read_ui"),
    Seam("skills: loaded by the client that loads one", r"client/request_methods\.py", "load_skill|read_skill_file"),
    Seam("recordings: loaded by the client that writes one", r"client/connect\.py", "session_recorder"),
    Seam(
        "telemetry: loaded by who wants one",
        r"(server/server|client/client|telemetry/otel)\.py",
        "_instrumentation|_instrument|_recorders",
    ),
    Seam("a plugin of pytest: a run that uses none of it pays nothing", r"testing/plugin\.py"),
    Seam(
        "the checker: an inspector that checks nothing starts without it",
        r"inspector/check_runs\.py",
        "_check|_check_steps|write_report",
    ),
    Seam("commands: `accord version` does not load what `accord run` needs", r"cli/.*"),
    Seam(
        "generated cases: values by chance need hypothesis, an extra", r"check/fuzz/trial_plan\.py", "_random_arguments"
    ),
    Seam("duplicate members: named in refusals only", "messages/duplicate_members.py", "find_duplicate", "json"),
    Seam("JSON in a text: read where it may have a secret", "redaction/json_splice.py", "_json|_encode", "json"),
    Seam("forms of Unicode: for texts beyond ASCII", "messages/bounds.py", "normalize", "unicodedata"),
    Seam("optional dependencies: absent until somebody installs the extra", modules="|".join(OPTIONAL)),
    Seam("heavy modules: loaded by those who come to need them", modules="|".join(HEAVY)),
)


@dataclass(frozen=True)
class Import:
    """One imported module, absolute, with where it stands."""

    module: str
    line: int
    function: str | None = None


@cache
def imports(source: str, file: str) -> tuple[Import, ...]:
    """Every import: `from accord.x import y` counts for `accord.x`, `from accord import y` for `accord.y`."""
    package = ["accord", *Path(file).parent.parts]
    found: list[Import] = []

    def visit(node: ast.AST, function: str | None) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.append(Import(alias.name, node.lineno, function))
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"accord.{alias.name}" for alias in node.names] if base == "accord" else [base]
            for name in names:
                found.append(Import(name, node.lineno, function))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):
                visit(child, function)

    visit(parsed(source), None)
    return tuple(found)


parsed = cache(ast.parse)
"""The tree of a source: several rules look at the same."""


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """Drop the trees at the end: each later search for garbage would go through them, for up to a second."""
    yield
    parsed.cache_clear()


def order(line: str) -> dict[str, int]:
    """The rank of each folder: equals share one. What stands side by side without `|` follows in order."""
    ranks: dict[str, int] = {}
    for step in line.split("→"):
        equals = step.split("|")
        groups = [equals] if len(equals) > 1 else [[name] for name in step.split()]
        for group in groups:
            ranks.update(dict.fromkeys((name.strip() for name in group), len(ranks)))
    return ranks


RANKS = order(LINE)
LAST = max(RANKS, key=RANKS.__getitem__)


def layer_of(file: str) -> str:
    """`wire/lines.py` stands in `wire`, `errors.py` in `errors`; a front (`__init__`, `__main__`) in none."""
    return file.partition("/")[0].removesuffix(".py")


def layers(source: str, file: str) -> Iterator[str]:
    """Imports that run against the line."""
    mine = layer_of(file)
    if mine.startswith("__"):
        return
    if mine not in RANKS:
        yield f"{file}: {mine!r} has no place in the line"
        return
    for found in imports(source, file):
        parts = found.module.split(".")
        if parts[0] != "accord":
            continue
        theirs = parts[1] if len(parts) > 1 else "the front of the package"
        place = f"{file}:{found.line}"
        if mine == LAST and theirs not in RANKS:
            continue  # the front leads to everything that stands left of the last folder
        if found.module == "accord.__version__":
            continue
        if theirs not in RANKS:
            yield f"{place}: inside the package, name the folder: {found.module} is not one of them"
        elif theirs != mine and RANKS[theirs] >= RANKS[mine]:
            yield f"{place}: {mine} may not import {theirs}, which does not stand to its left"
        elif (mine, theirs) in NEVER:
            yield f"{place}: {mine} may not import {theirs}: {NEVER[mine, theirs]}"


def seams(source: str, file: str) -> Iterator[str]:
    """Imports inside functions that no seam allows."""
    for found in imports(source, file):
        if found.function and not any(seam.holds(file, found) for seam in SEAMS):
            yield f"{file}:{found.line}: {found.function}() imports {found.module}, at none of the seams"


def sans_io(source: str, file: str) -> Iterator[str]:
    """Imports of I/O where there is none."""
    if layer_of(file) not in SANS_IO:
        return
    for found in imports(source, file):
        if found.module.partition(".")[0] in IO:
            yield f"{file}:{found.line}: {layer_of(file)} is sans-I/O, it may not import {found.module}"


def comparisons(source: str, file: str) -> Iterator[str]:
    """Revisions compared by order outside the files that may."""
    if file in REVISION_FILES:
        return
    for node in ast.walk(parsed(source)):
        if not isinstance(node, ast.Compare):
            continue
        ordered = any(isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for operator in node.ops)
        if ordered and any(is_revision(operand) for operand in (node.left, *node.comparators)):
            yield f"{file}:{node.lineno}: asks for the order of revisions; ask the rules for a named fact"


def is_revision(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) is not None
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return re.fullmatch(r"(\w+_)?(revision|protocol_version)|since|until", name, re.IGNORECASE) is not None
    return False


Rule = Callable[[str, str], Iterator[str]]
RULES: tuple[Rule, ...] = (layers, seams, sans_io, comparisons)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_sources_hold_the_rule(rule: Rule) -> None:
    files = sorted(SOURCES.rglob("*.py"))
    assert files
    broken = [
        sentence
        for path in files
        for sentence in rule(path.read_text(encoding="utf-8"), path.relative_to(SOURCES).as_posix())
    ]
    assert not broken, "\n" + "\n".join(broken)


def module_imports() -> dict[str, set[str]]:
    """What each module of the package imports of it: when it loads, and for types only."""
    names = {".".join(["accord", *path.relative_to(SOURCES).with_suffix("").parts]): path for path in modules()}
    graph = {}
    for name, path in names.items():
        found = set()
        for node in top_level(parsed(path.read_text(encoding="utf-8")).body):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)} & names.keys()
        graph[name] = found - {name}
    return graph


def modules() -> list[Path]:
    return [path for path in SOURCES.rglob("*.py") if not path.name.startswith("__")]


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that stand in no function, those under `TYPE_CHECKING` too."""
    for node in body:
        if isinstance(node, ast.If):
            yield from top_level([*node.body, *node.orelse])
        else:
            yield node


def cycles(graph: dict[str, set[str]]) -> set[str]:
    """The modules that import themselves, by whatever way."""
    return {name for name in graph if name in reachable(graph, name)}


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """What is imported by `start`, by whatever way."""
    seen: set[str] = set()
    following = list(graph[start])
    while following:
        name = following.pop()
        if name not in seen:
            seen.add(name)
            following.extend(graph.get(name, ()))
    return seen


def test_no_module_imports_itself() -> None:
    """Not even through what it imports for types only."""
    assert not cycles(module_imports())


def test_imports_for_types_count_as_imports() -> None:
    source = "from a import A\nif TYPE_CHECKING:\n    from b import B\ndef f():\n    from c import C"
    found = [node.module for node in top_level(ast.parse(source).body) if isinstance(node, ast.ImportFrom)]
    assert found == ["a", "b"]


def test_a_cycle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}, "e": set()}
    assert cycles(graph) == {"b", "c"}


BROKEN = [
    (layers, "wire/lines.py", "from accord.session import events"),
    (layers, "wire/lines.py", "from ..session import events"),
    (layers, "wire/lines.py", "import accord.session.events"),
    (layers, "messages/tools.py", "from accord.server import Server"),
    (layers, "messages/tools.py", "from accord import server"),
    (layers, "messages/tools.py", "from accord import Server"),
    (layers, "messages/tools.py", "import accord"),
    (layers, "errors.py", "from accord.limits import Limits"),
    (layers, "check/server.py", "from accord.dev import relay"),
    (layers, "utils/text.py", ""),
    (layers, "client/client.py", "from accord.server.server import Server"),
    (layers, "client/client.py", "if TYPE_CHECKING:\n    from accord.server import Server"),
    (layers, "client/client.py", "def connect():\n    from accord.server import Server"),
    (seams, "session/session.py", "def step():\n    from accord.messages import codec"),
    (seams, "server/core/dispatch.py", "async def call():\n    import decimal"),
    (seams, "server/__init__.py", "def load():\n    import decimal"),
    (sans_io, "session/session.py", "import asyncio"),
    (sans_io, "wire/sse.py", "from time import monotonic"),
    (sans_io, "messages/codec.py", "def f():\n    import asyncio.subprocess"),
    (comparisons, "server/server.py", "new = revision >= '2025-06-18'"),
    (comparisons, "server/server.py", "new = '2025-06-18' <= x < y"),
    (comparisons, "session/session.py", "new = self.session.protocol_version > other"),
]

FINE = [
    (layers, "session/session.py", "from accord.messages import codec\nfrom . import events\nimport asyncio"),
    (layers, "limits.py", "from accord.errors import AccordError"),
    (layers, "client/client.py", "from accord.transport.base import Transport"),
    (layers, "__init__.py", "from accord.server import Server"),
    (layers, "cli/run.py", "from accord import Client"),
    (layers, "client/client.py", "from accord import __version__"),
    (seams, "cli/run.py", "def run():\n    from accord.server import Server"),
    (seams, "__init__.py", "def __getattr__(name):\n    import importlib"),
    (seams, "schema/hints.py", "def model():\n    import pydantic"),
    (seams, "schema/validate.py", "def validator():\n    import jsonschema_rs"),
    (seams, "server/server.py", "def run():\n    from accord.transport import stdio"),
    (sans_io, "transport/stdio.py", "import asyncio"),
    (comparisons, "messages/revision.py", "new = revision >= '2025-06-18'"),
    (
        comparisons,
        "server/server.py",
        "new = sys.version_info >= (3, 12) and count > 3 and revision == '2025-06-18'",
    ),
]


@pytest.mark.parametrize(("rule", "file", "source"), BROKEN)
def test_the_rule_finds_what_breaks_it(rule: Rule, file: str, source: str) -> None:
    assert len(list(rule(source, file))) == 1


@pytest.mark.parametrize(("rule", "file", "source"), FINE)
def test_the_rule_lets_pass_what_is_fine(rule: Rule, file: str, source: str) -> None:
    assert not list(rule(source, file))


def test_the_line_is_read_from_left_to_right() -> None:
    assert order("a b → c | d → e") == {"a": 0, "b": 1, "c": 2, "d": 2, "e": 4}


UNDECLARED = {
    "pytest": "it loads the plugin",
    "starlette": "only for programs that use it already",
    "yarl": "the type of URLs in the API of aiohttp, which depends on it",
}
"""Modules that the sources import and no requirement of the package names, with the reason."""


def test_the_package_requires_what_its_sources_import_and_nothing_else() -> None:
    project = tomllib.loads((SOURCES.parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    required = {re.split(r"[^\w-]", requirement)[0].replace("-", "_") for requirement in requirements}
    required = {name.removesuffix("_api") for name in required}  # opentelemetry-api is opentelemetry
    required = {"yaml" if name == "pyyaml" else name for name in required}
    required.remove("pydantic")  # which is found in sys.modules
    imported = {
        found.module.partition(".")[0]
        for path in SOURCES.rglob("*.py")
        for found in imports(path.read_text(encoding="utf-8"), path.relative_to(SOURCES).as_posix())
    }
    assert imported - sys.stdlib_module_names - {"accord"} - UNDECLARED.keys() == required


EXECUTED = """
import sys
lines = 0
def count(frame, event, argument):
    global lines
    lines += event == "line"
    return count
sys.settrace(count)
{code}
sys.settrace(None)
print(lines)
"""


def executed(code: str) -> int:
    """Lines of Python that a fresh interpreter executes for `code`: as many on every machine, however busy."""
    script = EXECUTED.format(code=code)
    command = [sys.executable, "-c", script]
    return int(subprocess.run(command, check=True, env=quiet(), capture_output=True, text=True).stdout)


def loaded(code: str) -> set[str]:
    """Modules that are there after `code` and not in a bare interpreter."""
    script = f"import sys; before = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script], check=True, env=quiet(), capture_output=True, text=True)
    return set(done.stdout.split())


def quiet() -> dict[str, str]:
    """The environment without what would measure the child, such as coverage."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}


def test_importing_accord_takes_less_than_importing_asyncio() -> None:
    assert executed("import accord") < executed("import asyncio")
    assert len(loaded("import accord")) < len(loaded("import asyncio"))


def test_importing_something_heavy_would_be_noticed() -> None:
    assert executed("import accord, asyncio") > executed("import asyncio")
    assert executed("import aiohttp") > 2 * executed("import asyncio")
    assert "asyncio" in loaded("import asyncio")


DECLARATION = """
from accord import Server

server = Server("one")

@server.tool
async def echo(text: str) -> str:
    return text
"""


def test_declaring_a_server_does_not_load_what_runs_it() -> None:
    heavy = {"asyncio", "ssl", "subprocess", "jsonschema_rs", "accord.server.run"}
    assert "accord.server.core.registry" in loaded(DECLARATION)
    assert not loaded(DECLARATION) & heavy


def test_importing_accord_loads_nothing_heavy() -> None:
    assert "accord" in loaded("import accord")
    assert not loaded("import accord") & set(LOADS_LATER)
