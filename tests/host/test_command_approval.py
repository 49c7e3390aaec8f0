"""What a person sees of a command before it starts, and what its approval is bound to."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from accord.client.target import Command, Remote, parse
from accord.host import command_approval
from accord.host.command_approval import describe_target

from tests.measure import costs_at_most


def lines(target: Command | Remote) -> str:
    return "\n".join(describe_target(target).lines())


@pytest.mark.parametrize(
    ("words", "source"),
    [
        ("npx -y some-server", "npm as some-server"),
        ("npx @scope/server", "npm as @scope/server"),
        ("uvx some-server --flag", "PyPI as some-server"),
        ("pipx run some-server", "PyPI as some-server"),
        ("npx -y some-server@latest", "npm as some-server@latest"),
        ("npx -y some-server@^1.2.3", "npm as some-server@^1.2.3"),
        ("npx -y some-server@1", "npm as some-server@1"),
        ("npx --registry http://1@2.3.4 some-server", "npm as some-server"),
        ("npx -p some-server start@1.2.3", "npm as some-server"),
        ("npx --package=some-server start@1.2.3", "npm as some-server"),
        ("npx --unknown 1@1.2.3 some-server", "npm as some-server"),
        ("npm exec some-server", "npm as some-server"),
        ("pnpm dlx some-server", "npm as some-server"),
        ("uv tool run some-server", "PyPI as some-server"),
        ("uvx --python 3.12 some-server", "PyPI as some-server"),
        ("uvx some-server@latest", "PyPI as some-server@latest"),
        ("uvx some-server>=1.2", "PyPI as some-server>=1.2"),
        ("uvx --from some-server start", "PyPI as some-server"),
        ("uvx --from git+https://x@1.example/a start", "PyPI as git+https://x@1.example/a"),
        ("uvx --with more some-server==1.2", "PyPI as more"),
        ("uvx --with=more==1 some-server", "PyPI as some-server"),
        ("npx -y some-server@1.2.3 --package other", None),
        ("npx -p some-server@1.2.3 start", None),
        ("uvx --from some-server==1.2 start", None),
        ("uvx some-server@1.2 other", None),
        ("npm run some-server", None),
        ("uv run server.py", None),
        ("npx -y @scope/server@1.2.3", None),
        ("uvx some-server==1.2.3", None),
        ("uvx some-server@1.2.3", None),
        ("python server.py", None),
    ],
)
def test_a_package_without_a_version_is_whatever_is_published_today(words: str, source: str | None) -> None:
    text = lines(Command(tuple(words.split())))
    if source is None:
        assert "published today" not in text
    else:
        assert f"whatever is published today on {source}" in text


def test_hidden_characters_are_shown_and_values_of_variables_are_not() -> None:
    text = lines(Command((sys.executable, "a\u202eb", "c d"), {"API_KEY": "s3cret"}))
    assert "a\\u202eb 'c d'" in text
    assert "API_KEY" in text
    assert "s3cret" not in text


def test_a_url_is_shown_in_full_with_the_names_of_its_headers() -> None:
    text = lines(Remote("https://example.com/mcp?x=1", {"X-Key": "s3cret"}))
    assert text == "connects to: https://example.com/mcp?x=1\nheaders: X-Key"


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://example.com@evil.test/mcp", "evil.test"), ("https://ex\u0430mple.com/mcp", "ex\\u0430mple.com")],
)
def test_a_url_that_shows_another_host_to_its_reader_has_a_note(url: str, host: str) -> None:
    assert f"\nnote: the host is {host}\n" in lines(Remote(url))


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_a_folder_is_shown_and_bound_as_the_one_where_a_link_leads(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("one")
    target = Command((sys.executable,), cwd=str(tmp_path / "link"))
    before = describe_target(target)
    assert f"folder: {(tmp_path / 'one').resolve()}" in before.lines()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("other")
    assert describe_target(target).digest != before.digest


@pytest.mark.parametrize(
    ("issuer", "note"),
    [
        ("https://example.com@evil.test", "\nnote: the host of issuer is evil.test"),
        ("https://ex\u0430mple.com", "\nnote: the host of issuer is ex\\u0430mple.com"),
        ("https://example.com", ""),
        ("https://[::1", ""),
    ],
)
def test_a_login_at_a_url_that_shows_another_host_has_a_note(issuer: str, note: str) -> None:
    entry = {"url": "https://a.test/mcp", "auth": {"type": "oauth", "issuer": issuer}}
    shown = "\n".join(describe_target(Remote("https://a.test/mcp"), entry).lines())
    assert shown.endswith(f"\nlogin: issuer {issuer}{note}")


def test_a_change_of_a_script_changes_the_digest(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text("one")
    target = Command((sys.executable, "server.py"), cwd=str(tmp_path))
    before = describe_target(target).digest
    assert describe_target(target).digest == before
    script.write_text("two")
    assert describe_target(target).digest != before


def test_a_program_that_is_not_there_is_described() -> None:
    assert "program: not found" in lines(Command(("no-such-program-anywhere",)))


def description(entry: dict[str, Any]) -> Any:
    target: Any = parse(entry)
    return describe_target(target, entry)


def script(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)
    return path


@pytest.mark.skipif(os.name != "posix", reason="a relative program starts in the folder of the child (POSIX)")
@pytest.mark.parametrize("entry", [{"command": "./run"}, {"command": "run", "env": {"PATH": "bin:."}}])
def test_a_relative_program_is_the_one_in_the_folder_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    script(tmp_path / "run", "#!/bin/sh\necho harmless\n")
    program = script(tmp_path / "sub" / "run", "#!/bin/sh\necho 1\n")
    entry = entry | {"cwd": str(tmp_path / "sub")}
    before = description(entry)
    assert before.program == os.path.realpath(program)
    script(program, "#!/bin/sh\necho 2\n")
    assert description(entry).digest != before.digest


@pytest.mark.parametrize("key", ["env", "headers"])
def test_a_changed_value_needs_a_new_approval_and_is_not_shown(key: str) -> None:
    base: dict[str, Any] = {"command": "python"} if key == "env" else {"url": "https://example.com/mcp"}
    one = description(base | {key: {"NODE_OPTIONS": "--require ./good.js"}})
    other = description(base | {key: {"NODE_OPTIONS": "--require ./evil.js"}})
    assert one.digest != other.digest
    assert "good.js" not in "\n".join(one.lines())


def test_the_value_of_a_referenced_variable_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"command": "python", "env": {"KEY": "${SHOP_KEY}"}}
    monkeypatch.setenv("SHOP_KEY", "one")
    before = description(entry)
    monkeypatch.setenv("SHOP_KEY", "two")
    assert description(entry).digest == before.digest


def test_a_file_named_in_an_option_is_covered(tmp_path: Path) -> None:
    file = script(tmp_path / "hook.js", "1")
    entry = {"command": "python", "args": [f"--require={file}"]}
    before = description(entry)
    script(file, "2")
    assert description(entry).digest != before.digest


def test_two_files_that_change_places_are_another_program(tmp_path: Path) -> None:
    entry = {"command": "python", "args": [str(tmp_path / "a.py"), str(tmp_path / "b.py")]}
    script(tmp_path / "a.py", "x")
    before = description(entry)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert description(entry).digest != before.digest


def test_a_variable_that_changes_what_runs_is_pointed_out() -> None:
    lines = description({"command": "python", "env": {"LD_PRELOAD": "x", "LANG": "C"}}).lines()
    (note,) = [line for line in lines if line.startswith("note:")]
    assert "LD_PRELOAD" in note
    assert "LANG" not in note


def test_settings_of_the_file_are_shown_and_covered() -> None:
    target, entry = Command((sys.executable,)), {"command": sys.executable}
    plain = describe_target(target, entry)
    assert describe_target(target, entry, {}) == plain
    policy = {"policy": [{"name": "all\u202e", "decision": "allow"}]}
    with_policy = describe_target(target, entry, policy)
    assert with_policy.digest != plain.digest
    assert with_policy.lines()[: len(plain.lines())] == plain.lines()
    assert '  |       "name": "all\\u202e"' in with_policy.lines()
    remote = describe_target(Remote("https://example.com/mcp"), {}, policy)
    assert '  |       "decision": "allow",' in remote.lines()


def test_variables_and_secrets_that_a_server_receives_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "s3cret")
    headers = {"Authorization": "Bearer keyring:shop/token", "X-Key": "${SHOP_TOKEN}", "X-Plain": "plain"}
    text = "\n".join(description({"url": "https://example.com/mcp", "headers": headers}).lines())
    assert "receives the values of: ${SHOP_TOKEN}, keyring:shop/token" in text
    assert "s3cret" not in text
    text = "\n".join(description({"command": "python", "args": ["${SHOP_TOKEN:-none}"]}).lines())
    assert "receives the values of: ${SHOP_TOKEN:-none}" in text
    assert "receives" not in "\n".join(description({"command": "python", "env": {"A": "b"}}).lines())


@pytest.mark.parametrize("kind", ["workload_identity", "client_credentials"])
def test_files_that_a_login_reads_are_named(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "id_ed25519"
    file.write_text("s3cret", encoding="utf-8")
    auth = {"type": kind, "client_id": "shop", "token_file": str(file), "key_file": str(file)}
    target = Remote("https://example.com/mcp")
    text = "\n".join(describe_target(target, {"url": target.url, "auth": auth}).lines())
    assert f"receives the values of: file {file}" in text


def test_servers_that_a_login_names_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret goes to the issuer, and a token is for the resource, whatever the URL of the entry is."""
    monkeypatch.setenv("PLACE", "https://evil.example")
    target = Remote("https://shop.example/mcp")
    robot = {"type": "client_credentials", "client_id": "a", "client_secret": "keyring:a/b", "issuer": "${PLACE}"}
    text = "\n".join(describe_target(target, {"url": target.url, "auth": robot}).lines())
    assert "\nlogin: issuer https://evil.example\nreceives the values of: ${PLACE}, keyring:a/b" in text
    user = {"authServerMetadataUrl": "https://evil.example/.well-known/x", "resource": "https://bank.example"}
    for key in ("auth", "oauth"):
        text = "\n".join(describe_target(target, {"url": target.url, key: user}).lines())
        found = "authServerMetadataUrl https://evil.example/.well-known/x, resource https://bank.example"
        assert f"\nlogin: {found}" in text
    provider = {"type": "enterprise_managed", "idp_token_endpoint": "https://evil.example/token\n"}
    text = "\n".join(describe_target(target, {"url": target.url, "auth": provider}).lines())
    assert text.endswith("\nlogin: idp_token_endpoint https://evil.example/token\\n")
    assert "login" not in "\n".join(describe_target(target, {"url": target.url, "auth": "oauth"}).lines())


def test_files_in_arguments_are_read_once_and_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a stranger's project named one large file thousands of times."""
    monkeypatch.setattr(command_approval, "_MAX_HASHED", 1_000)
    read: list[str] = []
    digest = command_approval._digest_of
    monkeypatch.setattr(command_approval, "_digest_of", lambda file, size: (read.append(file), digest(file, size))[1])
    for name, size in {"run": 100, "large": 600, "script": 300}.items():
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / "run").chmod(0o700)
    words = ["large", "script", *(f"{'./' * count}large" for count in range(20))]

    def contents() -> str:
        return describe_target(Command((str(tmp_path / "run"), *words), cwd=str(tmp_path))).contents

    before = contents()
    assert [Path(each).name for each in read] == ["run", "script", "large"]
    (tmp_path / "script").write_bytes(b"y" * 300)
    assert contents() != before


def test_a_file_that_the_limit_leaves_out_may_not_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's project could fill the limit with other files, and replace its script by one of the same size."""
    monkeypatch.setattr(command_approval, "_MAX_HASHED", os.path.getsize(sys.executable) + 1_000)
    (tmp_path / "filler").write_bytes(b"x" * 299)
    script = tmp_path / "script"
    script.write_bytes(b"x" * 300)
    command = Command((sys.executable, "script", *(f"{'./' * count}filler" for count in range(4))), cwd=str(tmp_path))
    before = describe_target(command).digest
    assert describe_target(command).digest == before
    script.write_bytes(b"y" * 300)
    os.utime(script, ns=(0, script.stat().st_mtime_ns + 1_000_000_000))
    assert describe_target(command).digest != before


@pytest.mark.skipif(not os.path.exists("/proc/self/pagemap"), reason="needs Linux")
def test_a_file_without_an_end_is_not_read() -> None:
    """It has hundreds of gigabytes, and says that it has none."""
    with costs_at_most(50):
        describe_target(Command((sys.executable, "/proc/self/pagemap")))


def test_a_command_with_a_path_that_is_not_utf_8_has_a_digest() -> None:
    assert describe_target(Command(("true", "caf\udce9"))).digest
    assert describe_target(Command(("true", "caf\udce9"))).digest != describe_target(Command(("true", "cafe"))).digest
