"""What the handlers of the story see: what is alike in all revisions, and the differences that the revisions force.

A step that begins with "server" was seen by the server's handlers, any other by the client's.
"""

from __future__ import annotations

from typing import Any

from accord.messages.revision import REVISIONS

from tests.everything.story import TRACE

S24, S25A, S25B, S25C, S26 = REVISIONS

ORDER = {"action": "accept", "data": {"size": "large", "count": 3, "gift": False}}
PLACES = [{"uri": "file:///srv/a"}, {"uri": "file:///srv/b"}]
MEASURED = {"city": "Oslo", "celsius": 21.5}
LOGGED = ["warning", "disk", {"password": "[redacted]", "disk": 91}]
CHANGED = [f"ListChanged(kind='{kind}')" for kind in ("prompts", "resources", "tools")]


def said(text: str) -> dict[str, Any]:
    """What the model said, as the server's handler got it."""
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "m-1", "stopReason": "endTurn"}


ALIKE: dict[str, list[Any]] = {
    "opened": [["everything", "Use it all."]],
    "offered": [
        {
            "logging": {},
            "completions": {},
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "tools": {"listChanged": True},
        }
    ],
    "tools": [20],
    "measured": [MEASURED],
    "data": [[MEASURED, ["day 0", "day 1"]]],
    "failed": ["no such city", [-32602, {"day": 8}], "ValueError: it went wrong"],
    "misfit": [True],
    "unknown": [[-32602, None]],
    "progress": [[1, 2, "step 1"], [2, 2, "step 2"]],
    "log": [LOGGED, LOGGED],
    "person": [
        ["What will it be?", ["count", "gift", "size"]],
        ["Anything else?", ["value"]],
        ["Sure?", ["value"]],
        ["Which days?", ["value"]],
        ["Sign in", "https://example.com/in"],
        ["What will it be?", ["count", "gift", "size"]],
        ["Delete a.txt?", ["value"]],
        ["Sign as Åse?", ["value"]],
        ["Open the vault?", ["value"]],
    ],
    "order": [False],
    "visited": [{"elicitationId": "in-1"}],
    "signed_in": [False],
    "model": [["Be brief.", 50, 1, 0], [None, 1024, 1, 1], [None, 1024, 3, 1], *[[None, 1024, 1, 0]] * 5],
    "think": [False],
    "folders": [False, False],
    "together": [False],
    "number": [False],
    "greet": [False],
    "delete": [[False, "deleted"]],
    "sign": [[False, "signed"]],
    "resources": [["notes://today", "vault://key"]],
    "templates": [["notes://{day}"]],
    "read": ["buy milk", "buy milk", "notes of monday", "opened", [-32002, {"uri": "nothing://here"}], "buy milk"],
    "prompts": [["plan", "letter"]],
    "prompt": ["Plan a day in Oslo.", "Write to Åse.", [-32602, None]],
    "completed": [["molo"], ["monday"]],
    "touch": [["ResourceUpdated(uri='notes://today')"]],
    "grow": [CHANGED],
    "shrink": [CHANGED],
    "server measure": [["Oslo", 3]],
    "server days": [2],
    "server raw": [{"x": [1, None]}],
    "server fail": ["tool", "protocol", "crash"],
    "server who": [["accord", {"traceparent": TRACE}, {"y": 1}]],
    "server capabilities": [
        {"roots": {"listChanged": True}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}}
    ],
    "server tell": [True, False],
    "server order": [ORDER],
    "server declined": [{"action": "decline", "data": None}],
    "server closed": [{"action": "cancel", "data": None}],
    "server several": [{"action": "accept", "data": ["mon", "wed"]}],
    "server visited": [{"action": "accept", "data": None}],
    "server complete": [True],
    "server thought": [said("on What is 6 times 7?")],
    "server wished": [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "use-1", "name": "add", "input": {"a": 1, "b": 2}}],
            "model": "m-1",
            "stopReason": "toolUse",
        }
    ],
    "server added": [said("added")],
    "server roots": [PLACES, PLACES[:1]],
    "server contains": [[True, False, True], [True, False, False]],
    "server together": [[ORDER, said("on Greet."), PLACES]],
    "server run": [None],
    "server made": [7],
    "server first": [said("on First?")],
    "server second": [said("on Second?")],
    "server greet": [["on Greet.", ["file:///srv/a", "file:///srv/b"]]],
    "server delete": [["a.txt", True]],
    "server sign": [["Åse", True]],
    "server today": [None, None, None],
    "server of day": ["monday"],
    "server key": [{"action": "accept", "data": True}],
    "server plan": [["Oslo", ""]],
    "server letter": [said("on A greeting?")],
    "server complete city": [["mo", "Norway"]],
    "server complete day": ["mo"],
    "server wait": ["cancelled"],
}

UNSTRUCTURED: dict[str, Any] = {"measured": [None], "data": [['{"city":"Oslo","celsius":21.5}', '["day 0","day 1"]']]}
"""Structured output came with 2025-06-18: before that a client reads the text."""

NO_FORMS: dict[str, Any] = {
    "person": None,
    **{f"server {step}": ["NotSupported"] for step in ("order", "declined", "closed", "together", "key")},
    "delete": [[False, "kept"]],
    "server delete": [["a.txt", False]],
    "server sign": None,
}
"""Elicitation came with 2025-06-18: before that a handler gets an error that names the revision, a declared parameter
its default, and a call that has none is refused."""

NO_PAGES: dict[str, Any] = {
    "server several": ["NotSupported"],
    "server visited": ["NotSupported"],
    "visited": None,
    "server complete": [False],
}
"""Several choices in a form, and pages to visit, came with 2025-11-25."""

NO_TOOLS_IN_SAMPLING: dict[str, Any] = {"server wished": ["NotSupported"], "server added": None}
"""Tools for a model came with 2025-11-25."""

DIFFERENCES: dict[str, dict[str, Any]] = {
    S24: {
        **UNSTRUCTURED,
        **NO_FORMS,
        **NO_PAGES,
        **NO_TOOLS_IN_SAMPLING,
        "offered": [{name: what for name, what in ALIKE["offered"][0].items() if name != "completions"}],
        "progress": [[1, 2, None], [2, 2, None]],  # no message yet
        "model": [["Be brief.", 50, 1, 0], *[[None, 1024, 1, 0]] * 4],
        "sign": [[True, f"{S24} has no elicitation/create"]],
        "server capabilities": [{"roots": {"listChanged": True}, "sampling": {}}],
        "server complete city": [["mo", ""]],  # the context of a completion came with 2025-06-18
    },
    S25A: {
        **UNSTRUCTURED,
        **NO_FORMS,
        **NO_PAGES,
        **NO_TOOLS_IN_SAMPLING,
        "model": [["Be brief.", 50, 1, 0], *[[None, 1024, 1, 0]] * 4],
        "sign": [[True, f"{S25A} has no elicitation/create"]],
        "server capabilities": [{"roots": {"listChanged": True}, "sampling": {}}],
        "server complete city": [["mo", ""]],
    },
    S25B: {
        **NO_PAGES,
        **NO_TOOLS_IN_SAMPLING,
        "person": [asked for asked in ALIKE["person"] if asked[0] not in ("Which days?", "Sign in")],
        "model": [["Be brief.", 50, 1, 0], *[[None, 1024, 1, 0]] * 5],
        "server capabilities": [{"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}],
    },
    S25C: {
        "server capabilities": [
            {
                **ALIKE["server capabilities"][0],
                "tasks": {
                    "list": {},
                    "cancel": {},
                    "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
                },
            }
        ]
    },
    S26: {
        "read": [each if each != [-32002, {"uri": "nothing://here"}] else [-32602, each[1]] for each in ALIKE["read"]],
        "visited": None,  # the notification that the person is done is gone again
        "server complete": [False],
        "server capabilities": [
            {
                "roots": {},
                "sampling": {"tools": {}},
                "elicitation": {"form": {}, "url": {}},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            }
        ],
        "server run": [None, None, None],  # once more for each answer, as it is marked idempotent
        "server first": [said("on First?")] * 2,
        "server today": [None, None],  # the client keeps what it read, until it is told of the change
    },
}
"""By revision and step; None: the step is not seen at all."""


def expected(revision: str) -> dict[str, list[Any]]:
    """What is seen in a revision."""
    seen = {**ALIKE, **DIFFERENCES[revision]}
    return {step: values for step, values in seen.items() if values is not None}
