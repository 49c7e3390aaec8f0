"""Servers that are put together at random, beside a model of what they should show."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from accord import ArgumentChange, Client, DeclarationError, InvalidParams, Server, ToolChange

NAMES = ("one", "two", "three", "b_two")
TAGS = ("red", "blue")
REVISIONS = ("2025-11-25", "2026-07-28")
PREFIXES = ("", "a", "b")
SERVERS = range(3)

Tools = dict[str, tuple[str, frozenset[str], str]]
"""By name: which server and function answers, its tags, and what its argument is called."""


class Model:
    """What one server has, and how that is shown."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.own: Tools = {}
        self.mounts: list[tuple[Model, str]] = []
        self.changes: dict[str, tuple[str | None, bool]] = {}
        """By name: the new one, and whether the argument `value` is called `text`."""
        self.rules: list[tuple[bool, frozenset[str], frozenset[str]]] = []

    def unchanged(self) -> Tools:
        found = dict(self.own)
        for model, prefix in self.mounts:
            for name, tool in model.tools().items():
                found.setdefault(f"{prefix}_{name}" if prefix else name, tool)
        return found

    def tools(self) -> Tools:
        changed: Tools = {}
        for name, (answer, tags, argument) in self.unchanged().items():
            new, renames = self.changes.get(name, (None, False))
            changed.setdefault(new or name, (answer, tags, "text" if renames else argument))
        return {name: tool for name, tool in changed.items() if self.shows(name, tool[1])}

    def shows(self, name: str, tags: frozenset[str]) -> bool:
        for shown, names, marks in reversed(self.rules):
            if name in names or marks & tags:
                return shown
        return True

    def contains(self, other: Model) -> bool:
        return other is self or any(model.contains(other) for model, _ in self.mounts)


class Composing(RuleBasedStateMachine):
    """Three servers; the first has clients, one in each of two revisions."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.servers = [Server(f"server {number}") for number in SERVERS]
        self.models = [Model(number) for number in SERVERS]
        self.servers[0].tool("first")(lambda value="": f"0 first {value}")
        self.models[0].own["first"] = ("0 first", frozenset(), "value")
        self.clients = [Client(self.servers[0], revisions=[revision]) for revision in REVISIONS]
        for client in self.clients:
            self.runner.run(client.connect())

    def teardown(self) -> None:
        for client in self.clients:
            self.runner.run(client.close())
        self.runner.close()

    @rule(at=st.sampled_from(SERVERS), name=st.sampled_from(NAMES), tags=st.frozensets(st.sampled_from(TAGS)))
    def add(self, at: int, name: str, tags: frozenset[str]) -> None:
        own = self.models[at].own
        if name not in own:
            answer = f"{at} {name}"
            self.servers[at].tool(name, tags=tags)(lambda value="": f"{answer} {value}")
            own[name] = (answer, tags, "value")

    @precondition(lambda self: any(model.own for model in self.models))
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        at, name = data.draw(st.sampled_from([(model.number, name) for model in self.models for name in model.own]))
        self.servers[at].remove_tool(name)
        del self.models[at].own[name]

    @rule(outer=st.sampled_from(SERVERS), inner=st.sampled_from(SERVERS), prefix=st.sampled_from(PREFIXES))
    def mount(self, outer: int, inner: int, prefix: str) -> None:
        if not self.models[inner].contains(self.models[outer]):
            self.servers[outer].mount(self.servers[inner], prefix)
            self.models[outer].mounts.append((self.models[inner], prefix))

    @precondition(lambda self: any(model.mounts for model in self.models))
    @rule(data=st.data())
    def unmount(self, data: st.DataObject) -> None:
        mounted = [(model, inner) for model in self.models for inner, _ in model.mounts]
        outer, inner = data.draw(st.sampled_from(mounted))
        self.servers[outer.number].unmount(self.servers[inner.number])
        outer.mounts = [each for each in outer.mounts if each[0] is not inner]

    @rule(
        at=st.sampled_from(SERVERS),
        shown=st.booleans(),
        names=st.frozensets(st.sampled_from([*NAMES, "a_one", "b_a_one"])),
        tags=st.frozensets(st.sampled_from(TAGS)),
    )
    def show(self, at: int, shown: bool, names: frozenset[str], tags: frozenset[str]) -> None:
        if names or tags:
            server = self.servers[at]
            (server.enable if shown else server.disable)(*names, tags=tags)
            self.models[at].rules.append((shown, names, tags))

    @rule(
        at=st.sampled_from(SERVERS),
        name=st.sampled_from([*NAMES, "a_one", "b_a_one"]),
        new=st.sampled_from([None, "new", "one"]),
        renames=st.booleans(),
    )
    def change(self, at: int, name: str, new: str | None, renames: bool) -> None:
        change = ToolChange(name=new, arguments={"value": ArgumentChange(name="text")} if renames else {})
        before = self.models[at].unchanged().get(name)
        if renames and before is not None and before[2] != "value":
            with pytest.raises(DeclarationError, match="no argument 'value'"):
                self.servers[at].change_tool(name, change)
            return
        self.servers[at].change_tool(name, change)
        self.models[at].changes[name] = (new, renames)

    @invariant()
    def each_client_is_shown_what_the_model_has_and_gets_its_answers(self) -> None:
        for client in self.clients:
            self.runner.run(self._compare(client))

    async def _compare(self, client: Client) -> None:
        wanted = self.models[0].tools()
        listed = {tool.name: tool for tool in await client.list_tools(fresh=True)}
        assert list(listed) == list(wanted)
        for name, (answer, _, argument) in wanted.items():
            assert list(listed[name].input_schema["properties"]) == [argument]
            assert (await client.call_tool(name, {argument: "x"})).text == f"{answer} x"
        for name in (*NAMES, "a_one", "b_a_one", "new"):
            if name not in wanted:
                with pytest.raises(InvalidParams, match=f"no tool '{name}'"):
                    await client.call_tool(name)


Composing.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestComposing = Composing.TestCase
