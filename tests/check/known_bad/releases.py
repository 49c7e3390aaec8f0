"""Published releases with known faults, and the rule by which the checker must find each.

The faults were chosen, and seen by hand in raw bytes, before the checker was run on them. The rules were not all there
then: `http/session-ends-alone`, `resources/hostile-uri`, the calls of `http/sessions-apart`, and that status 500 is the
end of a server, were added because these releases had not been caught.

The last five, `EXPECTED`, came later, the other way round: chosen from reports, and written down here, with the rule,
before the checker was run on any of them. Three were found at once. That of server-filesystem was not, since its SDK
keeps the wrong output back: a case of `tools/structured` was added. And `http/session-unknown` took any refusal.

The sources name where a fault was reported. Where there is a program without it, `mended`, the same rule finds nothing
there: the same on a later release, or, where that has the fault still, another server.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.interop.peers import PEERS, PROGRAMS, npm_server, old_node, old_python, peer_python

HERE = Path(__file__).resolve().parent
STORY = PROGRAMS / "mcp1_server.py"
RESTING = HERE / "resting.py"
OWNED = HERE / "owned.py"
OWNERS = ("key-of-ann-0123456789", "key-of-ben-0123456789")
"""The tokens of its users."""

Command = Callable[[], list[str]]


class Faulty(NamedTuple):
    """One release, and one fault of it. `path` is where it serves over HTTP; without one it is asked over stdio."""

    name: str
    fault: str
    source: str
    rule: str
    """What must be found."""
    revision: str
    command: Command
    mended: Command | None = None
    path: str = ""
    tokens: tuple[str, ...] = ()
    """Those of two principals."""


def _on(release: str, program: Path, *arguments: str) -> Command:
    """A program on an old release of the Python SDK."""
    return lambda: [*old_python(f"mcp=={release}", program), *arguments]


def _now(program: Path, *arguments: str) -> Command:
    """The same on the one that other tests have."""
    nothing = str(PEERS / "old" / "nothing")
    return lambda: [str(peer_python("mcp1")), str(HERE / "on_release.py"), nothing, str(program), *arguments]


def _node(*arguments: str) -> Command:
    return lambda: [*old_node("sdk.mjs"), *arguments]


def _everything() -> list[str]:
    return ["node", _npm("everything-0.6.2")]


def _npm(release: str) -> str:
    return str(PEERS / "known_bad" / "node_modules" / release / "dist" / "index.js")


def _in_new_folder(server: Callable[[], str]) -> Command:
    """A server in a folder of its own, which it is given as its argument."""
    return lambda: ["node", str(HERE / "in_new_folder.mjs"), server()]


KNOWN: tuple[Faulty, ...] = (
    Faulty(
        "mcp 1.9.3",
        "A request whose params are wrong ends the loop that reads: nothing is answered after it.",
        "GHSA-3qhf-m339-9g5v",
        "faults/wrong-params",
        "2025-03-26",
        _on("1.9.3", STORY),
        _now(STORY),
    ),
    Faulty(
        "mcp 1.9.3 over HTTP",
        "The same ends the whole server: every later request of anybody gets status 500.",
        "GHSA-3qhf-m339-9g5v",
        "faults/wrong-params",
        "2025-03-26",
        _on("1.9.3", STORY, "mcp"),
        _now(STORY, "mcp"),
        "/mcp/",
    ),
    Faulty(
        "mcp 1.9.4 over HTTP",
        "A call that is under way when its session ends takes the whole server with it (in 1.10.0, too).",
        "GHSA-j975-95f5-7wqh",
        "http/session-ends-alone",
        "2025-03-26",
        _on("1.9.4", RESTING, "mcp"),
        _now(RESTING, "mcp"),
        "/mcp/",
    ),
    Faulty(
        "mcp 1.9.4",
        'A request with the id "7" is answered with the id 7.',
        "seen by trying; 1.22.0 keeps the type",
        "ids/same",
        "2025-03-26",
        _on("1.9.4", STORY),
        _now(STORY),
    ),
    Faulty(
        "mcp 1.22.0 over HTTP",
        "No protection against DNS rebinding: requests from any page are served.",
        "CVE-2025-66416",
        "http/origin",
        "2025-06-18",
        _on("1.22.0", STORY, "mcp"),
        _now(STORY, "mcp"),
        "/mcp",
    ),
    Faulty(
        "TypeScript SDK 1.23.0 over HTTP",
        "No protection against DNS rebinding: requests from any page are served.",
        "CVE-2025-66414",
        "http/origin",
        "2025-06-18",
        _node("sdk-1.23.0", "sessions"),
        path="/mcp",
    ),
    Faulty(
        "TypeScript SDK 1.23.0 with one transport for all",
        "Two clients that use the same ids get each other's answers.",
        "GHSA-345p-7cg4-v4c7 (CVE-2026-25536)",
        "http/sessions-apart",
        "2025-06-18",
        _node("sdk-1.23.0", "shared"),
        _node("sdk-1.32.2", "sessions"),
        "/mcp",
    ),
    Faulty(
        "TypeScript SDK 1.23.0",
        "A URI with 60 commas keeps the template {/id*} busy for ever.",
        "GHSA-8r9q-7v3j-jr4g (CVE-2026-0621)",
        "resources/hostile-uri",
        "2025-06-18",
        _node("sdk-1.23.0"),
        _node("sdk-1.32.2"),
    ),
    Faulty(
        "server-everything 0.6.2",
        "It stays when its input has ended: a client that is killed leaves it behind.",
        "seen by trying; of the kind of typescript-sdk#2002",
        "stdio/exits",
        "2024-11-05",
        _everything,
        lambda: npm_server("memory"),
    ),
)

EXPECTED: tuple[Faulty, ...] = (
    Faulty(
        "mcp 1.27.1 over HTTP",
        "Whoever has the id of a session uses it with a token of his own.",
        "CVE-2026-52869",
        "principals/session",
        "2025-11-25",
        _on("1.27.1", OWNED, "mcp"),
        _now(OWNED, "mcp"),
        "/mcp",
        OWNERS,
    ),
    Faulty(
        "mcp 1.27.1 over HTTP",
        "A task is everybody's: who has its id, or lists all, reads and ends it.",
        "CVE-2026-52870",
        "principals/tasks",
        "2025-11-25",
        _on("1.27.1", OWNED, "mcp"),
        _now(OWNED, "mcp"),
        "/mcp",
        OWNERS,
    ),
    Faulty(
        "mcp 1.9.4",
        "A ping before the client has said that it is ready is refused.",
        "python-sdk#1311",
        "ping/before-initialized",
        "2025-03-26",
        _on("1.9.4", STORY),
        _now(STORY),
    ),
    Faulty(
        "mcp 1.22.0",
        "A byte that is no UTF-8 ends the server.",
        "python-sdk#2302",
        "faults/survives",
        "2025-06-18",
        _on("1.22.0", STORY),
        _now(STORY),
    ),
    Faulty(
        "mcp 1.22.0 over HTTP",
        "A session that it does not know gets status 400, not 404.",
        "python-sdk#1727",
        "http/session-unknown",
        "2025-06-18",
        _on("1.22.0", STORY, "mcp"),
        _now(STORY, "mcp"),
        "/mcp",
    ),
    Faulty(
        "server-filesystem 2025.11.25",
        "The structured content of directory_tree is no string, as its schema says.",
        "servers#3110",
        "tools/structured",
        "2025-11-25",
        _in_new_folder(lambda: _npm("filesystem-2025.11.25")),
        _in_new_folder(lambda: str(Path(npm_server("filesystem")[0]).resolve())),
    ),
    Faulty(
        "server-memory 2025.11.25",
        "What stands in its file, and not in its schema, is given out by read_graph.",
        "servers#3144",
        "tools/structured",
        "2025-11-25",
        _in_new_folder(lambda: _npm("memory-2025.11.25")),
    ),
)

FAULTY = (*KNOWN, *EXPECTED)
