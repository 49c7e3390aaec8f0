"""What README.md and docs/ show is run as shown.

- ```python blocks run in order in one namespace and one process per page, in a folder of their own.
- A block, in any language, below `<!-- file: weather.py -->` is also written to that name, for the others.
  It runs as an import does, so `if __name__ == "__main__"` stays quiet.
- ```console blocks run their `$ accord ...` and `$ python ...` lines. What follows is the output to expect:
  a line `...` stands for any lines, `...` inside a line for any text. Other `$` lines are only shown, but for
  `$ curl ...` where there is curl.
- A ```diff block below `<!-- edit: weather.py -->` changes that file, for the console blocks that follow.
- `<!-- serve: weather.py at 127.0.0.1:8000 -->` has `accord run weather.py` serve over HTTP while the page is run. It
  listens at a free port: the page is run with that in the place of the address. Options of the command come first.
- `<!-- login: at 127.0.0.1:9000 -->` likewise has an `AuthServer` running, before the servers. Commands have logins of
  their own, and a browser that follows redirects, where there is curl.
- On a page with `<!-- snippets: alone -->` each ```python block runs in a process of its own, as a reader pastes it.
- Only `<!-- no-run: reason -->` above a block opts out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from accord import HTTPOptions, Limits
from accord.host.host_files import read_host_file
from accord.host.known_hosts import KnownHost, known_host

ROOT = Path(__file__).parent.parent
PAGES = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path.exists()]

SECONDS = 100

FENCE = re.compile(
    r"""
    (?P<comments> (?:^[ ]*<!--[^\n]*-->[ ]*\n\s*)* )     # comments right above say how the block is treated
    ^(?P<indent>[ ]*)(?P<ticks>`{3,})[ ]*(?P<language>\w*)[^\n]*\n
    (?P<text> .*? )
    ^(?P=indent)(?P=ticks)[ ]*$
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
COMMENT = re.compile(r"<!-- *(?P<key>file|edit|no-run) *: *(?P<value>.*?) *-->")
ALONE = "<!-- snippets: alone -->"
LOGIN = re.compile(r"^<!-- *login: at +(?P<address>\S+) *-->", re.MULTILINE)
SERVE = re.compile(r"^<!-- *serve: *(?P<arguments>[^\n]+?) +at +(?P<address>\S+) *-->", re.MULTILINE)
ADDRESS = re.compile(r" (?:at|issuer) http://([^/,]+)[/,]")
COMMANDS = ("accord", "python", *(["curl"] if shutil.which("curl") else []))


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    line: int
    file: str | None = None
    edits: str | None = None


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page that are run."""
    for match in FENCE.finditer(page):
        notes = {note["key"]: note["value"] for note in COMMENT.finditer(match["comments"])}
        if "no-run" in notes:
            assert notes["no-run"], "no-run needs a reason"
            continue
        line = page.count("\n", 0, match.start("text")) + 1
        yield Block(match["language"], textwrap.dedent(match["text"]), line, notes.get("file"), notes.get("edit"))


@dataclass(frozen=True)
class Command:
    """One command of a console block, and the lines it should print."""

    arguments: list[str]
    expected: list[str]
    line: int


def commands(block: Block) -> Iterator[Command]:
    """What a console block runs. A backslash at the end of a line goes on with the next."""
    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        began, shown = at, lines[at]
        while shown.endswith("\\") and at + 1 < len(lines):
            at += 1
            shown = shown[:-1] + lines[at].removeprefix(">").lstrip()
        at += 1
        if not shown.startswith("$ "):
            continue
        end = next((n for n in range(at, len(lines)) if lines[n].startswith("$ ")), len(lines))
        arguments = shlex.split(shown[2:], comments=True)
        if arguments[:1] and arguments[0] in COMMANDS:
            yield Command(arguments, lines[at:end], block.line + began)


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether what was printed is what was shown; blank lines at the end do not matter."""
    pattern = ""
    for line in strip(expected):
        pattern += r"(?:.*\n)*?" if line.strip() == "..." else wild(line) + "\n"
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in strip(printed))) is not None


def wild(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split("..."))


def strip(lines: list[str]) -> list[str]:
    return "\n".join(lines).rstrip().splitlines()


def run_page(page: str, name: str, folder: Path) -> list[str]:
    """Run a whole page in `folder`; what went wrong, a sentence each."""
    write_files(page, folder)
    with ExitStack() as servers:
        for note in LOGIN.finditer(page):
            command = [sys.executable, "-m", "accord.testing.auth_server", "0"]
            page = page.replace(note["address"], servers.enter_context(serving(command, folder)))
        for note in SERVE.finditer(page):
            address = free_address() if names_itself(page, note["address"]) else "127.0.0.1:0"
            page = page.replace(note["address"], address) if address != "127.0.0.1:0" else page
            write_files(page, folder)
            command = ["accord", "run", "--http", address, *shlex.split(note["arguments"])]
            page = page.replace(note["address"], servers.enter_context(serving(command, folder)))
        write_files(page, folder)  # with the addresses that are known now
        return run_blocks(list(blocks(page)), name, folder, alone=ALONE in page)


def write_files(page: str, folder: Path) -> None:
    for block in blocks(page):
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")


def names_itself(page: str, address: str) -> bool:
    """Whether a file of the page has the address at which one is served: it must be known before."""
    return any(address in block.text for block in blocks(page) if block.file and block.language == "python")


def free_address() -> str:
    """An address of loopback that nothing else listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@contextmanager
def serving(command: list[str], folder: Path) -> Iterator[str]:
    """A server over HTTP, and the address that it has; it has to end well, too."""
    server = subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, encoding="utf-8")
    with server, server.stderr as told:
        try:
            said = told.readline()
            address = ADDRESS.search(said)
            assert address, f"$ {shlex.join(command)}\n{said}"
            yield address[1]
        finally:
            server.terminate()
    assert server.returncode == 0, f"$ {shlex.join(command)} ended with exit code {server.returncode}"


def run_blocks(every: list[Block], name: str, folder: Path, *, alone: bool) -> list[str]:
    """Run the blocks of a page, its Python first: in one process, or each `alone`."""
    python = [block for block in every if block.language == "python"]
    together = [[block] for block in python] if alone else [python]
    wrong = [each for some in together for each in run_python(some, name, folder)]
    for block in every:
        if block.language == "console":
            wrong += run_console(block, name, folder)
        elif block.edits:
            wrong += edit(folder / block.edits, block, name)
    return wrong


def edit(file: Path, block: Block, name: str) -> list[str]:
    """Change a file as a diff shows: its lines with ` ` and `-` stand there once, and become those with ` ` and `+`."""
    before, after = (
        "".join(f"{line[1:]}\n" for line in block.text.splitlines() if line[:1] in marks) for marks in (" -", " +")
    )
    text = file.read_text(encoding="utf-8")
    if text.count(before) != 1:
        return [f"{name}:{block.line}: what is to be changed stands {text.count(before)} times in {file.name}"]
    file.write_text(text.replace(before, after), encoding="utf-8")
    return []


def run_python(python: list[Block], name: str, folder: Path) -> list[str]:
    """All Python blocks of a page in one process, with the line numbers of the page in their tracebacks."""
    if not python:
        return []
    program = ["namespace = {'__name__': 'docs'}"]
    for block in python:
        source = "\n" * (block.line - 1) + block.text
        program.append(f"exec(compile({source!r}, {name!r}, 'exec'), namespace)")
    try:
        done = run([sys.executable, "-c", "\n".join(program)], folder)
    except subprocess.TimeoutExpired:
        return [f"{name}: its Python blocks did not end within {SECONDS} s"]
    return [] if done.returncode == 0 else [f"{name}: a Python block failed\n{done.stdout}{done.stderr}"]


def run_console(block: Block, name: str, folder: Path) -> list[str]:
    wrong = []
    for command in commands(block):
        place = f"{name}:{command.line}: $ {shlex.join(command.arguments)}"
        try:
            done = run(command.arguments, folder)
        except subprocess.TimeoutExpired:
            wrong.append(f"{place}\ndid not end within {SECONDS} s")
            continue
        printed = (done.stdout + done.stderr).splitlines()
        if not matches(command.expected, printed):
            shown, got = ("\n".join(f"  {line}" for line in lines) for lines in (command.expected, printed))
            wrong.append(f"{place}\nshown:\n{shown}\nprinted, with exit code {done.returncode}:\n{got}")
    return wrong


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as the reader would."""
    return subprocess.run(
        arguments,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


def environment() -> dict[str, str]:
    """`python` and `accord` are those of this environment, and a line has room for as much as in a pipe. Logins and
    records of installations are in the folder of the page.
    """
    path = sysconfig.get_path("scripts") + os.pathsep + os.environ.get("PATH", "")
    login = {
        "ACCORD_CREDENTIALS": "credentials.db",
        "ACCORD_INSTALLS": "installs.db",
        "ACCORD_HOST_STATE": "host.db",
        "BROWSER": "curl -sLo /dev/null %s &",
    }
    return {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100", **login}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
@pytest.mark.timeout(900)
def test_a_page_runs_as_shown(path: Path, tmp_path: Path) -> None:
    wrong = run_page(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix(), tmp_path)
    assert not wrong, "\n\n" + "\n\n".join(wrong)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_is_named_where_a_reader_sees_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        notes = {note["key"]: note["value"] for note in COMMENT.finditer(match["comments"])}
        if "file" in notes:
            above = re.sub(r"(?s)<!--.*?-->", "", text[: match.start()])[-500:]
            assert notes["file"] in above + match["text"].partition("\n")[0], f"{path.name} never names {notes['file']}"


LIMIT = re.compile(r"^\| (?P<fields>`[\w.]+`(?:, `[\w.]+`)*) \| (?P<defaults>[^|]+) \|", re.MULTILINE)
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "s": 1, "min": 60, "day": 86_400}


def test_the_limits_over_http_have_the_defaults_that_are_shown() -> None:
    _, _, section = (ROOT / "docs" / "http.md").read_text(encoding="utf-8").partition("\n## Limits\n")
    shown, defaults = {}, {}
    for row in LIMIT.finditer(section.partition("\n## ")[0]):
        fields = [name.rpartition(".")[2] for name in re.findall(r"[\w.]+", row["fields"])]
        limits = Limits() if row["fields"].startswith("`Limits.") else Limits().http
        shown |= dict(zip(fields, map(number, row["defaults"].split(", ")), strict=True))
        defaults |= {field: getattr(limits, field) for field in fields}
    assert len(shown) > 20
    assert shown == defaults


def test_the_page_of_the_design_names_modules_that_exist() -> None:
    sources = ROOT / "src" / "accord"
    folders = "|".join(sorted(path.name for path in sources.iterdir() if path.is_dir()))
    named = re.findall(rf"`((?:{folders})/[\w/]+)`", (ROOT / "docs" / "design.md").read_text(encoding="utf-8"))
    assert len(named) > 50
    modules = set(named) - {"server/discover"}  # a method of the protocol
    assert not [name for name in modules if not (sources / name).is_dir() and not (sources / f"{name}.py").is_file()]


def test_the_table_of_http_options_has_every_option() -> None:
    _, _, table = (ROOT / "docs" / "http.md").read_text(encoding="utf-8").partition("| `HTTPOptions` |")
    shown = re.findall(r"^\| `(\w+)` \|", table.partition("\n\n")[0], re.MULTILINE)
    assert sorted(shown) == sorted(HTTPOptions.__struct_fields__)


def number(text: str) -> float:
    """A default as a page writes it: 4 MiB, 1,000."""
    value, _, unit = text.partition(" ")
    return float(value.replace(",", "")) * UNITS[unit]


def page(*parts: str) -> str:
    return "\n\n".join(parts)


def python(code: str, above: str = "") -> str:
    return f"{above}\n```python\n{code}\n```"


def console(text: str) -> str:
    return f"```console\n{text}\n```"


FINE = [
    "# only words",
    page(python("x = 1"), "words", python("assert x == 1")),
    page(python("1 / 0", "<!-- no-run: shows an error -->"), python("x = 1")),
    page(python("x = 7", "<!-- file: kept.py -->"), python("import kept; assert kept.x == 7")),
    page(
        "<!-- serve: kept.py at 127.0.0.1:8000 -->",
        python("import accord; server = accord.Server('kept')", "<!-- file: kept.py -->"),
        python("import urllib.request as web; assert web.urlopen('http://127.0.0.1:8000/health').read() == b'ok\\n'"),
        console("$ accord list http://127.0.0.1:8000/mcp\nkept 0.0.0 · revision 2026-07-28\n..."),
    ),
    page(
        python("if __name__ == '__main__':\n    print('hi')", "<!-- file: kept.py -->"),
        console("$ python kept.py\nhi"),
    ),
    console("$ python -c 'print(1); print(2); print(3)'\n1\n...\n$ python -c 'print(45)'\n4...\n"),
    console("$ rm -rf / # shown only\n$ python -c \\\n> 'print(1)'\n1"),
    "- in a list\n\n  ```python\n  x = 1\n  ```\n",
    page(
        python("print(1)\nprint(2)", "<!-- file: kept.py -->"),
        "<!-- edit: kept.py -->\n```diff\n print(1)\n-print(2)\n+print(3)\n```",
        console("$ python kept.py\n1\n3"),
    ),
    "```text\n1 / 0\n```",
    page(ALONE, python("x = 1"), python("assert 'x' not in globals()")),
]

BROKEN = [
    page(ALONE, python("x = 1"), python("assert x == 1")),
    python("1 / 0"),
    page(python("x = 1"), python("assert x == 2")),
    python("import kept"),
    python("import sys; sys.exit(3)"),
    "- in a list\n\n  ```python\n  1 / 0\n  ```\n",
    console("$ python -c 'print(1)'\n2"),
    console("$ python -c 'print(1)'"),
    console("$ python -c 'print(1)'\n1\n2"),
    console("$ python -c 'print(1); print(2)'\n...\n1"),
    console("$ python -c 'print(14)'\n2...\n"),
    page(python("x = 1", "<!-- file: kept.py -->"), "<!-- edit: kept.py -->\n```diff\n-x = 2\n+x = 3\n```"),
]


@pytest.mark.parametrize("text", FINE)
def test_a_page_that_is_right_passes(text: str, tmp_path: Path) -> None:
    assert run_page(text, "page.md", tmp_path) == []


@pytest.mark.parametrize("text", BROKEN)
def test_a_page_that_is_wrong_is_found(text: str, tmp_path: Path) -> None:
    assert len(run_page(text, "page.md", tmp_path)) == 1


def test_a_failing_block_is_named_by_the_line_of_its_page(tmp_path: Path) -> None:
    (wrong,) = run_page("one\n\n```python\n\n1 / 0\n```", "page.md", tmp_path)
    assert 'File "page.md", line 5' in wrong


def test_opting_out_needs_a_reason() -> None:
    with pytest.raises(AssertionError, match="reason"):
        list(blocks(python("x", "<!-- no-run: -->")))


def test_a_server_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no such file"):
        run_page("<!-- serve: missing.py at 127.0.0.1:8000 -->", "page.md", tmp_path)


def test_a_block_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SECONDS", 1)
    (wrong,) = run_page(python("while True: pass"), "page.md", tmp_path)
    assert "did not end" in wrong


def test_the_index_has_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w/-]+\.md)\)", index))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages <= linked
    assert all((ROOT / "docs" / link).exists() for link in linked)


def test_the_tutorial_is_pasted_block_by_block_and_leads_to_the_page_about_tests() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert ALONE in page
    assert "](testing.md)" in page


IN_A_FILE = ["claude-desktop", "cursor", "vscode", "codex", "gemini", "windsurf", "zed"]


@pytest.mark.parametrize("host", [known_host(name) for name in IN_A_FILE], ids=IN_A_FILE)
def test_the_entry_that_is_shown_for_a_host_is_one_that_it_reads(host: KnownHost, tmp_path: Path) -> None:
    (entry, *_) = blocks(section_of("hosts.md", host.title))
    file = tmp_path / "configuration"
    file.write_text(entry.text, encoding="utf-8")
    project = tmp_path if host.format.editor_variables else None
    entries = read_host_file(file, host.format, project=project).entries
    assert [each.error for each in entries.values() if each.error] == []
    assert "weather.py" in str(entries["weather"].entry)


def test_the_command_for_claude_code_has_a_program_and_a_url() -> None:
    (command, *_) = blocks(section_of("hosts.md", "Claude Code"))
    assert re.search(r"(?m)^claude mcp add weather -- \S+/python \S+/weather\.py$", command.text)
    assert re.search(r"(?m)^claude mcp add --transport http weather https://", command.text)


def section_of(page: str, heading: str) -> str:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## {heading}\n")
    assert found, f"docs/{page} has no section {heading}"
    return rest.partition("\n## ")[0]
