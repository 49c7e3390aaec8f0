"""The part of docs/authorization.md about oidc-provider: its files and commands, as the page shows them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.auth.peers.oidc import BROWSER, SECONDS
from tests.interop.peers import PEERS, oidc_provider
from tests.interop.serving import free_port, serving

PAGE = Path(__file__).parents[3] / "docs" / "authorization.md"


@pytest.fixture
def ports() -> dict[str, str]:
    """Free ports in place of those of the page."""
    return {"9000": str(free_port()), "8000": str(free_port())}


def on_ports(text: str, ports: dict[str, str]) -> str:
    return re.sub(r"\b[98]000\b", lambda found: ports[found[0]], text)


def block(language: str, beginning: str) -> str:
    """The block of the page that begins with a line."""
    found = re.search(rf"^```{language}\n({re.escape(beginning)}.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    assert found is not None, beginning
    return found[1]


def test_the_tutorial_logs_in_at_oidc_provider(tmp_path: Path, ports: dict[str, str]) -> None:
    node, _ = oidc_provider()
    (tmp_path / "node_modules").symlink_to(PEERS / "oidc" / "node_modules")
    for name, language, comment in (("login.mjs", "js", "//"), ("desk.py", "python", "#")):
        (tmp_path / name).write_text(on_ports(block(language, f"{comment} {name}\n"), ports))
    environment = {**os.environ, "BROWSER": BROWSER, "ACCORD_CREDENTIALS": str(tmp_path / "credentials.db")}
    accord = [sys.executable, "-m", "accord"]
    serve = [*accord, "run", str(tmp_path / "desk.py"), "--http"]
    printed = []
    with serving([node, str(tmp_path / "login.mjs")]), serving(serve, int(ports["8000"])) as server:
        for line in on_ports(block("console", "$ accord login http://127.0.0.1:8000/mcp\n$"), ports).splitlines():
            command = [*accord, *shlex.split(line)[2:]]
            done = subprocess.run(
                command, env=environment, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
            )
            assert done.returncode == 0, f"{line}\n{done.stderr}\n{server.said}"
            printed.append(done.stdout)
    assert printed[1] == f"http://127.0.0.1:{ports['9000']} alice\n"
