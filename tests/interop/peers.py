"""What accord is tested against: other people's SDKs, servers and conformance suite, each in a place of its own.

`scripts/peers` runs this file and installs them under .cache/peers/; the tests ask it for commands:

    peer_server("mcp2")                  the peer program tests/interop/servers/mcp2_server.py, on mcp 2.x
    peer_client("mcp1")                  the peer program that opens a server and prints what it saw
    python_server("mcp-server-time")     a published server from PyPI
    npm_server("everything")             a published server from npm
    oidc_provider()                      an authorization server, certified for OpenID Connect
    django_provider()                    django-oauth-toolkit: a provider that registers no clients
    conformance_suite()                  the official conformance suite
    browser_bundle("host.mjs")           a script on the official SDK of MCP Apps, for browsers
    task_peer("mcp1", "server")          a peer program with tasks
    npm_package("axe-core")              the folder of a package for the tests of the inspector's page
    old_python("mcp==1.9.3", PROGRAM)    a program on a release that is known to be faulty
    old_node("sdk.mjs")                  a program beside such releases from npm

A peer that is not installed raises `PeerMissing`: an interop test fails then, it never skips.
Only the standard library is used, since this also runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, get_args

ROOT = Path(__file__).resolve().parent.parent.parent
PEERS = ROOT / ".cache" / "peers"
PROGRAMS = Path(__file__).resolve().parent / "servers"
AUTH = ROOT / "tests" / "auth" / "peers"
APPS = ROOT / "tests" / "interop" / "apps"
TASKS = ROOT / "tests" / "interop" / "tasks"
KNOWN_BAD = ROOT / "tests" / "check" / "known_bad"

Sdk = Literal["mcp2", "mcp1", "fastmcp"]
"""A Python SDK with a peer client and a peer server."""

TypeScript = Literal["ts1", "ts2"]
"""A TypeScript SDK with a peer client and a peer server, over HTTP."""

NpmServer = Literal["everything", "filesystem", "memory"]

ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "fastmcp": ("fastmcp==4.1.2",),
    "fastmcp_tasks": ("fastmcp==4.1.2", "fastmcp-tasks==4.1.2"),
    "mcp2": ("mcp==2.3.0",),
    "mcp1": ("mcp==1.30.0",),
    "servers": (
        "mcp-server-time==2026.10.19",
        "mcp-server-git==2026.10.19",
        "mcp-server-fetch==2026.10.24",
    ),
    "asgi": (
        "starlette==1.10.0",
        "fastapi==0.165.0",
        "django==5.2.19",
        "uvicorn==0.54.0",
        "httptools==0.9.0",
        "granian==2.8.7",
        "hypercorn==0.18.0",
        "litestar==2.25.0",
        "gunicorn==27.0.1",
        "uvicorn-worker==0.4.0",
    ),
    "django_oauth": ("django==5.2.19", "django-oauth-toolkit==3.4.1"),
    "agents": ("pydantic-ai-slim[mcp]==2.66.0",),
}
"""Virtual environments and what is pinned in them, the slowest first."""

HOSTS = ("asgi", "servers")
"""Those in which accord is installed as well, since they run it."""

OLD = ("mcp==1.9.3", "mcp==1.9.4", "mcp==1.22.0", "mcp==1.27.1")
"""Releases with known faults, which the checker must find: each in a folder of its own, over what `mcp1` has."""

OLDER = ("pydantic==2.11.10", "pydantic_core==2.33.2")
"""What they need in an older release than `mcp1` has."""

OLD_CLIENTS = ("mcp==2.1.1", "mcp-types==2.1.1")
"""A release whose client has known faults, which the checker must find: one folder, over what `mcp2` has."""

NPM: dict[str, Path] = {
    "npm": PROGRAMS / "package.json",
    "apps": APPS / "package.json",
    "conformance": ROOT / "tests" / "conformance" / "package.json",
    "inspector": ROOT / "tests" / "inspector" / "package.json",
    "known_bad": KNOWN_BAD / "package.json",
    "oidc": AUTH / "package.json",
    "tasks": TASKS / "package.json",
}
"""Folders of what comes from npm, and what is pinned in them."""

NPM_BEFORE = "2026-11-20"
"""npm takes nothing published later, also where a server needs it: one tree for each folder, without a lock file."""


class PeerMissing(Exception):
    """A peer is not installed."""

    def __init__(self, what: str, path: Path) -> None:
        super().__init__(f"the interop peer {what} is not installed ({path} is missing): run scripts/peers")


def peer_python(environment: str) -> Path:
    """The interpreter of one of `ENVIRONMENTS`."""
    return _present(environment, _scripts(environment) / "python")


def peer_server(
    sdk: Sdk | TypeScript, program: Literal["server", "input", "notifications", "slow", "skills"] = "server"
) -> list[str]:
    """The command of a peer server written with that SDK: the story's, one that asks its client, one that
    notifies it of changes, or one whose calls last. Over HTTP it takes the kind of transport and an address as well
    (see servers/http_arguments.py).
    """
    if sdk in get_args(TypeScript):
        return node_program(f"{sdk}_{program}.mjs")
    return [str(peer_python(sdk)), str(PROGRAMS / f"{sdk}_{program}.py")]


def peer_client(
    sdk: Sdk | TypeScript, program: Literal["client", "input_client", "sessions_client"] = "client"
) -> list[str]:
    """The command of the peer client written with that SDK: the story's, one with callbacks for what it is asked, or
    one whose calls last; the command or the URL of a server follows it.
    """
    if sdk in get_args(TypeScript):
        return [*node_program(f"ts_{program}.mjs"), sdk]
    return [str(peer_python(sdk)), str(PROGRAMS / f"{sdk}_{program}.py")]


def task_peer(peer: Literal["mcp1", "fastmcp", "ts"], role: Literal["client", "server"]) -> list[str]:
    """The command of a peer program with tasks: on the official SDK 1.x, on fastmcp-tasks, or on the official client
    for TypeScript. The command of a server follows that of a client.
    """
    if peer == "ts":
        return _from_copy("client.mjs", TASKS, _present("the client for tasks", PEERS / "tasks" / "node_modules"))
    environment = "fastmcp_tasks" if peer == "fastmcp" else peer
    return [str(peer_python(environment)), str(PROGRAMS / f"{peer}_tasks_{role}.py")]


def old_python(requirement: str, program: Path) -> list[str]:
    """The command of a program on one of `OLD`."""
    folder = _present(requirement, PEERS / "old" / requirement)
    return [str(peer_python("mcp1")), str(KNOWN_BAD / "on_release.py"), str(folder), str(program)]


def old_client(program: Path) -> list[str]:
    """The command of a client program on `OLD_CLIENTS`."""
    folder = _present(OLD_CLIENTS[0], PEERS / "old_clients" / OLD_CLIENTS[0])
    return [str(peer_python("mcp2")), str(KNOWN_BAD / "on_release.py"), str(folder), str(program)]


def old_node(name: str) -> list[str]:
    """The command of a program beside tests/check/known_bad/package.json."""
    return _from_copy(name, KNOWN_BAD, _present("releases from npm", PEERS / "known_bad" / "node_modules"))


def node_program(name: str, folder: Path = PROGRAMS) -> list[str]:
    """The command of a program of ours on a TypeScript SDK."""
    return _from_copy(name, folder, _present("the TypeScript SDKs", PEERS / "npm" / "node_modules"))


def _from_copy(name: str, programs: Path, modules: Path) -> list[str]:
    """Node looks for packages beside a program: it runs from a copy there."""
    folder = modules.parent / "programs"
    folder.mkdir(exist_ok=True)
    for program in programs.glob("*.mjs"):
        copy = folder / program.name
        if not copy.exists() or copy.read_bytes() != program.read_bytes():
            fresh = copy.with_suffix(f".{os.getpid()}")
            shutil.copyfile(program, fresh)
            fresh.replace(copy)  # whole for whoever starts it at the same time
    return ["node", str(folder / name)]


def python_server(name: str) -> list[str]:
    """The command of a server published on PyPI: `mcp-server-time`, `mcp-server-git`."""
    return [str(_present(name, _scripts("servers") / name))]


def npm_server(name: NpmServer) -> list[str]:
    """The command of a server published on npm as `@modelcontextprotocol/server-NAME`."""
    return [str(_present(name, PEERS / "npm" / "node_modules" / ".bin" / f"mcp-server-{name}"))]


def npm_program(name: Literal["mcp-remote", "supergateway"]) -> list[str]:
    """The command of a bridge between stdio and HTTP."""
    return ["node", str(_present(name, PEERS / "npm" / "node_modules" / ".bin" / name))]


def npm_package(name: Literal["axe-core", "lit-html", "typescript"]) -> Path:
    """The folder of a package that the tests of the inspector's page use."""
    return _present(name, PEERS / "inspector" / "node_modules" / name)


def browser_bundle(name: str) -> str:
    """A script of tests/interop/apps for browsers, in one with what it imports from npm."""
    modules = _present("the SDK of MCP Apps", PEERS / "apps" / "node_modules")
    _, program = _from_copy(name, APPS, modules)
    command = [str(_present("esbuild", modules / ".bin" / "esbuild")), program, "--bundle", "--format=esm", "--minify"]
    return subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8", timeout=100).stdout


def vanilla_app_server() -> list[str]:
    """The command of the server with an app from npm, over stdio."""
    package = PEERS / "apps" / "node_modules" / "@modelcontextprotocol" / "server-basic-vanillajs"
    return ["node", str(_present("server-basic-vanillajs", package) / "dist" / "index.js"), "--stdio"]


def conformance_suite() -> list[str]:
    """The command of the official conformance suite. It needs Node 22, which comes with it on Linux."""
    modules = PEERS / "conformance" / "node_modules"
    program = _present("conformance", modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")
    return [_node(modules), str(program)]


def oidc_provider() -> list[str]:
    """The command of the authorization server oidc-provider (see tests/auth/peers/provider.mjs); its options follow."""
    modules = PEERS / "oidc" / "node_modules"
    _present("oidc-provider", modules / "oidc-provider")
    return [_node(modules), *_from_copy("provider.mjs", AUTH, modules)[1:]]


def django_provider() -> list[str]:
    """The command of a provider that registers no clients (see tests/auth/peers/django_provider.py)."""
    return [str(peer_python("django_oauth")), str(AUTH / "django_provider.py")]


def _node(modules: Path) -> str:
    """Node 22 from npm, if it is there: elsewhere than on Linux the system has it."""
    return next((str(node) for node in modules.glob("node-*/bin/node")), "node")


def _present(what: str, path: Path) -> Path:
    if not path.exists():
        raise PeerMissing(what, path)
    return path


def _scripts(environment: str) -> Path:
    return PEERS / environment / ("Scripts" if os.name == "nt" else "bin")


def install() -> int:
    """Install every peer that is not there yet, four at a time: most of it waits. Returns an exit code."""
    begun = time.monotonic()
    jobs: list[tuple[str, Callable[[], None]]] = [(name, lambda name=name: _install_npm(name)) for name in NPM]
    jobs += [(name, lambda name=name: _install_python(name)) for name in ENVIRONMENTS]
    with ThreadPoolExecutor(4) as pool:
        running = [(name, pool.submit(job)) for name, job in jobs]
    failed = [(name, error) for name, future in running if (error := future.exception())]
    for name, error in failed:
        _say(f"{name}: {error}")
    if not failed:
        taken = time.monotonic() - begun
        _say(f"{PEERS.relative_to(ROOT)}: {len(jobs)} interop peers ready after {taken:.0f} s")
    return 1 if failed else 0


def _install_python(name: str) -> None:
    require = [part for requirement in ENVIRONMENTS[name] for part in ("--require", requirement)]
    project = ["--project"] if name in HOSTS else []
    _run([sys.executable, str(ROOT / "scripts" / "env.py"), str(PEERS / name), *project, *require])
    if name == "mcp1":
        _install_releases(PEERS / "old", {"older": OLDER, **{release: (release,) for release in OLD}})
    if name == "mcp2":
        _install_releases(PEERS / "old_clients", {OLD_CLIENTS[0]: OLD_CLIENTS})


def _install_releases(folder: Path, releases: dict[str, tuple[str, ...]]) -> None:
    """Install releases without what they need, each in a folder of its own."""
    wanted = hashlib.sha256(repr(sorted(releases.items())).encode()).hexdigest()
    stamp = folder / "accord-stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    for place, requirements in releases.items():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        _run([*pip, "-qq", "--no-deps", "--target", str(folder / place), *requirements])
    stamp.write_text(wanted)


def _install_npm(name: str) -> None:
    folder, manifest = PEERS / name, NPM[name].read_bytes()
    stamp, wanted = folder / "accord-stamp", hashlib.sha256(manifest + NPM_BEFORE.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("npm is not on the PATH: the interop tests need Node 20 or later")
    begun = time.monotonic()
    _say(f"{folder.relative_to(ROOT)}: installing with npm")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_bytes(manifest)
    quiet = ["--no-audit", "--no-fund", "--no-progress", "--no-update-notifier", "--loglevel=error"]
    _run([npm, "install", "--no-package-lock", "--ignore-scripts", f"--before={NPM_BEFORE}", *quiet], folder)
    stamp.write_text(wanted)
    _say(f"{folder.relative_to(ROOT)}: ready after {time.monotonic() - begun:.0f} s")


def _run(command: list[str], folder: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode} of {' '.join(command[:3])} ...; its words are above")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


SDKS: tuple[Sdk, ...] = get_args(Sdk)

if __name__ == "__main__":
    sys.exit(install())
