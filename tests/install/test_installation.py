"""Installing and undoing: every byte is restored, and what others wrote stays."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from ruamel.yaml import YAML
from tomlkit import dumps

from accord.errors import TargetError
from accord.host.host_files import read_host_file
from accord.host.known_hosts import KNOWN_HOSTS, Folders, OperatingSystem, known_host
from accord.install.installation import execute, install_paths, plan_install, plan_undo
from accord.install.records import InstallRecords

from tests.host.test_host_files import DATA, FILES
from tests.host.test_jsonc import VALUES, documents

PROGRAM = {"command": "/usr/bin/npx", "args": ["-y", "some-server"], "env": {"SOME_KEY": "${SOME_KEY}"}}
PLAIN = {"command": "/usr/bin/npx", "args": ["-y", "some-server"]}
URL = {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}


class Place:
    """A file of a host, and the records."""

    def __init__(self, folder: Path, host: str, content: bytes | None) -> None:
        self.host = known_host(host)
        self.path = folder / "file"
        self.records = InstallRecords(folder / "installs.db")
        if content is not None:
            self.path.write_bytes(content)

    def install(self, entry: dict[str, Any], name: str = "new") -> None:
        execute(plan_install(self.path, self.host, name, entry), self.records)

    def undo(self) -> None:
        (record,) = self.records.all()
        execute(plan_undo(record), self.records)
        assert self.records.all() == []

    @property
    def content(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None

    def entry(self, name: str = "new") -> Any:
        found = read_host_file(self.path, self.host.format).entries[name]
        return found.entry if found.entry is not None else found.error


@contextmanager
def temporary_place(host: str, content: bytes | None) -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp())
    try:
        yield Place(folder, host, content)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_each_host_gets_an_entry_that_reads_back_and_undo_restores_every_byte(
    tmp_path: Path, name: str, ends: bytes, mark: bytes
) -> None:
    before = mark + (DATA / FILES[name]).read_bytes().replace(b"\n", ends)
    place = Place(tmp_path, name, before)
    entry = PLAIN if place.host.format.reference is None and place.host.format.env_names is None else PROGRAM
    place.install(entry)
    after = place.content
    assert after is not None
    assert after.startswith(mark)
    assert b"\n" not in after.replace(ends, b"")
    if name == "vscode":
        assert place.entry() == "\"env.SOME_KEY\" needs the input 'new-some-key', for which only the host asks its user"
    else:
        assert place.entry() == entry
    lines = iter(after.split(ends))
    assert all(any(line.rstrip(b",") == each.rstrip(b",") for each in lines) for line in before.split(ends))
    place.undo()
    assert place.content == before


def own_files(name: str, system: OperatingSystem, home: Path) -> list[Path]:
    """The files of the user on an operating system, below a folder of this one."""
    files = known_host(name).user_files(Folders(system, home.as_posix()))
    return [Path(file.as_posix()) for file in files]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("system", ["linux", "macos", "windows"])
@pytest.mark.parametrize("is_project", [False, True], ids=["user", "project"])
def test_each_host_on_each_operating_system(
    tmp_path: Path, name: str, system: OperatingSystem, is_project: bool
) -> None:
    """Order, comments and line ends stay. Claude Desktop has two files on Windows."""
    host, project = known_host(name), tmp_path / "project"
    users = own_files(name, system, tmp_path / "home")
    if is_project and host.project_file is None:
        with pytest.raises(TargetError, match="has no file in a project"):
            install_paths(host, project, users)
        return
    ends = b"\r\n" if system == "windows" else b"\n"
    before = (DATA / FILES[name]).read_bytes().replace(b"\n", ends)
    for file in [project / str(host.project_file)] if is_project else users:
        file.parent.mkdir(parents=True)
        file.write_bytes(before)
    paths = install_paths(host, project if is_project else None, users)
    assert paths == ([project / str(host.project_file)] if is_project else users)
    assert len(paths) == (2 if (name, system, is_project) == ("claude-desktop", "windows", False) else 1)
    records = InstallRecords(tmp_path / "installs.db")
    for path in paths:
        execute(plan_install(path, host, "new", PLAIN), records)
        after = path.read_bytes()
        lines = iter(after.split(ends))
        assert all(any(line.rstrip(b",") == each.rstrip(b",") for each in lines) for line in before.split(ends))
        entries = read_host_file(path, host.format).entries
        assert list(entries)[-1] == "new"
        assert entries["new"].entry == PLAIN
    for record in records.all():
        execute(plan_undo(record), records)
    assert [path.read_bytes() for path in paths] == [before] * len(paths)


@pytest.mark.parametrize("name", [name for name, host in KNOWN_HOSTS.items() if "http" in host.format.transports])
def test_each_host_with_urls_gets_one_that_reads_back(tmp_path: Path, name: str) -> None:
    place = Place(tmp_path, name, (DATA / FILES[name]).read_bytes())
    entry = {"url": URL["url"]} if name == "zed" else URL
    place.install(entry)
    if name != "vscode":
        assert place.entry() == entry
    place.undo()
    assert place.content == (DATA / FILES[name]).read_bytes()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("before", [None, b"", b"\n", b"\xef\xbb\xbf"])
def test_a_missing_or_empty_file_is_as_before_after_undo(tmp_path: Path, name: str, before: bytes | None) -> None:
    place = Place(tmp_path, name, before)
    place.install(PLAIN)
    assert place.entry() == PLAIN
    place.undo()
    assert place.content == before


@settings(max_examples=100)
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.sampled_from(["cursor", "vscode"]), st.data())
def test_undo_restores_every_byte_of_any_json_with_comments(
    value: dict[str, Any], host: str, data: st.DataObject
) -> None:
    form = known_host(host).format
    servers = st.dictionaries(st.text(max_size=4) | st.just("new"), VALUES | st.just({"": [True]}), max_size=3)
    value |= data.draw(st.just({}) | st.fixed_dictionaries({form.servers: servers}))
    if form.inputs is not None:
        value |= data.draw(st.just({}) | st.fixed_dictionaries({form.inputs: st.lists(VALUES, max_size=3)}))
    before = data.draw(documents(value)).encode()
    with temporary_place(host, before) as place:
        place.install(PROGRAM)
        assert host == "vscode" or place.entry() == PROGRAM
        place.undo()
        assert place.content == before


@pytest.mark.parametrize("name", ["vscode", "claude-code", "codex", "goose"])
def test_undo_leaves_what_others_wrote_in_between(tmp_path: Path, name: str) -> None:
    place = Place(tmp_path, name, (DATA / FILES[name]).read_bytes())
    place.install(PROGRAM)
    other = Place(tmp_path, name, None)
    other.records = InstallRecords(tmp_path / "other.db")
    other.install(PLAIN, "between")
    place.undo()
    assert other.entry("between") == PLAIN
    assert b"new-some-key" not in (place.content or b"")
    other.undo()
    assert place.content == (DATA / FILES[name]).read_bytes()


def test_undo_of_a_file_that_its_host_has_reformatted_removes_the_entry_only(tmp_path: Path) -> None:
    place = Place(tmp_path, "claude-code", (DATA / FILES["claude-code"]).read_bytes())
    place.install(PROGRAM)
    document = json.loads(place.path.read_text())
    document["numStartups"] = 42
    place.path.write_text(json.dumps(document, indent=4, sort_keys=True))
    place.undo()
    del document["mcpServers"]["new"]
    assert json.loads(place.path.read_text()) == document
    assert '    "numStartups": 42' in place.path.read_text()


def test_undo_refuses_an_entry_that_was_changed_since(tmp_path: Path) -> None:
    place = Place(tmp_path, "cursor", b"{}")
    place.install(PROGRAM)
    changed = place.path.read_text().replace("some-server", "other-server")
    place.path.write_text(changed)
    with pytest.raises(TargetError, match="was changed since accord installed it, and is left as it is"):
        place.undo()
    assert place.path.read_text() == changed


def test_undo_of_an_entry_that_is_gone_deletes_only_the_record(tmp_path: Path) -> None:
    place = Place(tmp_path, "cursor", b"{}")
    place.install(PROGRAM)
    place.path.write_text('{"mcpServers": {}}')
    place.undo()
    assert place.content == b'{"mcpServers": {}}'


def test_a_server_that_exists_is_a_change_and_undo_restores_it(tmp_path: Path) -> None:
    before = (DATA / FILES["gemini"]).read_bytes()
    place = Place(tmp_path, "gemini", before)
    plan = plan_install(place.path, place.host, "program", PLAIN)
    assert plan.note == "the file has a server 'program' already; this changes it"
    execute(plan, place.records)
    entry = json.loads(place.path.read_text())["mcpServers"]["program"]
    assert entry == {**PLAIN, "timeout": 30000, "trust": False}  # the user's own settings stay
    place.undo()
    assert place.content == before


def test_an_entry_that_is_installed_already_changes_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path, "cursor", b"{}")
    place.install(PROGRAM)
    plan = plan_install(place.path, place.host, "new", PROGRAM)
    assert not plan.is_change
    assert plan.note == "it is installed already"


def test_undo_after_two_installs_restores_what_was_before_the_first(tmp_path: Path) -> None:
    place = Place(tmp_path, "zed", (DATA / FILES["zed"]).read_bytes())
    place.install(PLAIN)
    place.install({**PLAIN, "args": ["other"]})
    place.install({"url": "https://example.com/mcp"})
    place.undo()
    assert place.content == (DATA / FILES["zed"]).read_bytes()


def test_a_question_that_another_server_uses_stays(tmp_path: Path) -> None:
    place = Place(tmp_path, "vscode", b"{}")
    place.install(PROGRAM)
    document = json.loads(place.path.read_text())
    document["servers"]["other"] = {"command": "x", "env": {"K": "${input:new-some-key}"}}
    place.path.write_text(json.dumps(document))
    place.undo()
    document["servers"].pop("new")
    assert json.loads(place.path.read_text()) == document


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("cursor", b'{\n  "a" 1}', "2:7: expected ':'"),
        (
            "cursor",
            b'{"mcpServers": {"new": 1, "new": 2}}',
            "1:27: the name 'new' is there twice; edit the file by hand",
        ),
        ("cursor", b'{"mcpServers": []}', '"mcpServers" must be an object'),
        ("cursor", b"[]", "expected an object"),
        ("vscode", b'{"inputs": 1}', '"inputs" must be a list'),
        ("codex", b"[mcp_servers\n", "1:13: invalid TOML"),
        ("codex", b"mcp_servers = 1\n", '"mcp_servers" must be an object'),
        ("goose", b"a: [", "invalid YAML"),
        ("goose", b"a: 1\n---\nb: 1\n", "invalid YAML"),
        ("goose", b"extensions: [1]\n", '"extensions" must be an object'),
    ],
)
def test_a_file_that_cannot_be_edited_is_left_unchanged(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    place = Place(tmp_path, name, content)
    with pytest.raises(TargetError) as caught:
        place.install(PLAIN)
    assert reason in str(caught.value)
    assert str(caught.value).startswith(str(place.path))
    assert place.content == content
    assert place.records.all() == []


TOML_TEXTS = [
    "", "model = 'x'", "[mcp_servers]\n", "[mcp_servers]\na = {command='x'}\n[tui]\nx=1\n",
    "mcp_servers = {a = {command='x'}}\n", "mcp_servers.a.command = 'x'\n[tui]\nx=1\n",
    "[mcp_servers.a]\ncommand='x'\n\n[tui]\nx=1 # c\n\n[mcp_servers.b]\ncommand='y'\n", "# only this",
    "d = 1979-05-27T07:32:00Z\n[[products]]\nname = 1\n\n[[products]]\nname = 2", "mcp_servers = {}\n",
]  # fmt: skip
YAML_TEXTS = [
    "", "# c\n", "a: 1", "extensions:\n", "extensions: {}  # c\nb: 2\n", "extensions: {}", "extensions: null\n",
    "extensions: {a: {x: 1}}\n", "extensions:\n    a:\n        x: 1\n\n# b is next\nb: 2\n",
    "extensions: # c\n\nb: 1\n",
    "extensions:\n  b: |\n    # text\n\nc: 1\n", "extensions:\n  b: {x: 1} # c\n  # end\n", "a: &x [1]\nb: *x\n",
    "extensions:\n  b:\n    x: 'yes'\n    y: >\n      folded\n\n\n", "d: 2001-12-14\n", "---\na: 1\n",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"), [*(("codex", each) for each in TOML_TEXTS), *(("goose", each) for each in YAML_TEXTS)]
)
def test_undo_restores_every_byte_of_other_syntaxes(tmp_path: Path, name: str, text: str) -> None:
    place = Place(tmp_path, name, text.encode())
    place.install(PLAIN)
    assert place.entry() == PLAIN
    place.install(PROGRAM)
    assert place.entry() == PROGRAM
    place.undo()
    assert place.content == text.encode()


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=6)
SCALARS = st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)
TABLES = st.dictionaries(TEXTS, NESTED, max_size=3)
AROUND = st.sampled_from(["", "\n", "# c\n", "\n\n# x = 1\n"])


@settings(max_examples=40)
@given(TABLES, st.none() | st.dictionaries(TEXTS, TABLES, max_size=3), AROUND, AROUND, st.sampled_from([None, False]))
@pytest.mark.parametrize("name", ["codex", "goose"])
def test_undo_restores_every_byte_of_any_toml_or_yaml_that_is_not_refused(
    name: str, value: dict[str, Any], servers: Any, begin: str, end: str, flow: bool | None
) -> None:
    value |= {} if servers is None else {known_host(name).format.servers: servers}
    before = f"{begin}{dumps(value) if name == 'codex' else yaml_text(value, flow)}{end}".encode()
    with temporary_place(name, before) as place:
        try:
            place.install(PLAIN)
        except TargetError:
            assert place.content == before
            return
        assert place.entry() == PLAIN
        place.install(PROGRAM)
        place.undo()
        assert place.content == before


def yaml_text(value: dict[str, Any], flow: bool | None) -> str:
    yaml, out = YAML(typ="safe", pure=True), io.StringIO()
    yaml.default_flow_style, yaml.allow_unicode = flow, True
    yaml.dump(value, out)
    return out.getvalue()


def test_files_of_a_project_and_of_the_user(tmp_path: Path) -> None:
    one, other = tmp_path / "one" / "f", tmp_path / "other" / "f"
    cursor = known_host("cursor")
    assert install_paths(cursor, None, [one, other]) == [one]
    other.parent.mkdir()
    assert install_paths(cursor, None, [one, other]) == [other]
    one.parent.mkdir()
    assert install_paths(cursor, None, [one, other]) == [one, other]
    assert install_paths(cursor, tmp_path, [one]) == [tmp_path / ".cursor" / "mcp.json"]
    with pytest.raises(TargetError, match="goose has no file in a project; these hosts have one: claude-code, cursor"):
        install_paths(known_host("goose"), tmp_path, [one])


def test_no_repr_contains_values(tmp_path: Path) -> None:
    place = Place(tmp_path, "cursor", b"{}")
    plan = plan_install(place.path, place.host, "new", {"command": "x", "args": [], "env": {"KEY": "hunter2"}})
    assert "hunter2" not in f"{plan!r} {plan.record!r} {plan.file!r} {plan.record and plan.record.splices!r}"


def test_the_file_of_a_project_must_not_be_a_link_out_of_it(tmp_path: Path) -> None:
    project, cursor = tmp_path / "project", known_host("cursor")
    (project / "inside").mkdir(parents=True)
    (project / ".cursor").symlink_to(project / "inside")
    assert install_paths(cursor, project, []) == [project / ".cursor" / "mcp.json"]
    (project / "inside" / "mcp.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(TargetError, match=r"is a link to .*elsewhere\.json, which is not in the project"):
        install_paths(cursor, project, [])


def test_undo_follows_no_link_out_of_the_project(tmp_path: Path) -> None:
    project, cursor = tmp_path / "project", known_host("cursor")
    (project / ".cursor").mkdir(parents=True)
    (path,) = install_paths(cursor, project, [])
    plan = plan_install(path, cursor, "new", {"command": "x", "args": []}, project=project)
    records = InstallRecords(tmp_path / "records.db")
    execute(plan, records)
    elsewhere = tmp_path / "elsewhere.json"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(TargetError, match=r"is a link to .*elsewhere\.json, which is not in the project"):
        plan_undo(records.all()[0])
    path.unlink()
    elsewhere.rename(path)
    execute(plan_undo(records.all()[0]), records)
    assert not path.exists()


KEPT = {
    "flow": ("goose", "extensions: { # 1\n  a: {x: 1}, # 2\n  # 3\n  } # 4\n# 5\n"),
    "all in flow": ("goose", "# 1\n{ extensions: {a: {x: [1, # 2\n 2]}}, # 3\n b: 1 } # 4\n"),
    "entry in flow": ("goose", "extensions: { # 1\n  new: {x: 1}, # 2\n  a: {x: 1} # 3\n  }\n"),
    "table": ("codex", "[mcp_servers.new] # 1\ncommand = 'y' # 2\nx = 1\n# 3\n\n# 4\n[other] # 5\n"),
    "inline table": ("codex", "[mcp_servers] # 1\nnew = {x = 1} # 2\n# 3\na = {x = 1} # 4\n"),
}


@pytest.mark.parametrize(("host", "before"), KEPT.values(), ids=KEPT)
def test_comments_around_an_entry_stay(tmp_path: Path, host: str, before: str) -> None:
    place = Place(tmp_path, host, before.encode())
    place.install(PLAIN)
    after = (place.content or b"").decode()
    assert [each for each in "12345" if f"# {each}" in after] == [each for each in "12345" if f"# {each}" in before]
    place.undo()
    assert place.content == before.encode()


def test_undo_keeps_the_comments_of_a_file_that_was_edited_since(tmp_path: Path) -> None:
    place = Place(tmp_path, "goose", b"extensions:\n  a:\n    x: 1\n")
    place.install(PLAIN)
    edited = (place.content or b"") + b"  # of b\n  b:\n    x: 2 # two\n"
    place.path.write_bytes(edited.replace(b'"some-server"]', b'"some-server"] # mine'))
    place.undo()
    assert place.content == b"extensions:\n  a:\n    x: 1\n  # of b\n  b:\n    x: 2 # two\n"
