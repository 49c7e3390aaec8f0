"""Frames of apps: what they may connect to."""

from __future__ import annotations

import pytest

from accord import Server
from accord.inspector import app_commands
from accord.inspector.app_commands import AppCallParams, call_tool
from accord.inspector.app_frames import AppFrame, allowed_connections, content_policy
from accord.inspector.traffic.index import REQUEST
from accord.inspector.workspace import Workspace
from accord.types import ToolAnnotations


def test_an_app_connects_to_the_hosts_of_its_policy_only() -> None:
    declared = ["https://api.example", "wss://*.feed.example:*", "http://127.0.0.1:81", '"); *', "https://a.example/x"]
    policy, ignored = content_policy({"connectDomains": declared, "resourceDomains": ["https://api.example"]})
    assert ignored == ['"); *', "https://a.example/x"]
    assert allowed_connections(policy) == (
        '(response-origin "http://127.0.0.1:81/*" "https://127.0.0.1:81/*" "https://api.example/*"'
        ' "wss://*.feed.example:*/*")'
    )
    assert allowed_connections(content_policy({})[0]) == "(response-origin)"


def test_a_source_is_no_longer_than_a_name() -> None:
    """A header of megabytes was sent, five times the size of the resource."""
    longest = f"https://{'a' * 292}"
    policy, ignored = content_policy({"connectDomains": [longest, f"{longest}a"]})
    assert f"connect-src {longest}" in policy
    assert len(ignored) == 1


async def test_the_calls_of_an_app_do_not_list_the_tools_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    server, clock = Server("shop"), [1.0]

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def price() -> str:
        return "2.0"

    monkeypatch.setattr(app_commands, "monotonic", lambda: clock[0])
    workspace = Workspace()
    try:
        inspected = workspace.add("shop", server, "program")
        await inspected.connect()
        app = workspace.apps.add(AppFrame("shop", "ui://shop/app", b"", []))
        for _ in range(5):
            assert "2.0" in (await call_tool(workspace, AppCallParams(app=app, name="price"))).result_json
        await workspace.recording.written()
        assert listed(workspace) == 1
        clock[0] += 2
        await call_tool(workspace, AppCallParams(app=app, name="price"))
        await workspace.recording.written()
        assert listed(workspace) == 2
    finally:
        await workspace.close()


def listed(workspace: Workspace) -> int:
    """Return how often the tools were listed."""
    index = workspace.recording.index
    methods = [index.methods.text(row) for row in range(len(index)) if index.kinds[row] == REQUEST]
    return methods.count("tools/list")
