"""The functions of a module and the methods of an object become tools."""

from __future__ import annotations

import functools
import importlib
import keyword
import logging
import math
import queue
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import Enum
from functools import cached_property, lru_cache, partialmethod, singledispatchmethod
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NewType, ParamSpec, TypeVar
from unittest.mock import Mock

import pydantic
import pytest
from hypothesis import given, strategies as st

from accord import Client, Context, DeclarationError, Depends, Server, ToolAnnotations

EXAMPLES = Path(__file__).parents[3] / "examples"

P = ParamSpec("P")
R = TypeVar("R")


def module(source: str, name: str = "made") -> ModuleType:
    """A module with this source, as an import would make it."""
    made = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), vars(made))
    return made


def loud(function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    return wrapper


class Color(Enum):
    RED = 1

    def upper(self) -> str:
        return self.name.upper()


class Model(pydantic.BaseModel):
    number: int = 1


class Base:
    """Something that counts."""

    def __init__(self, start: int = 0) -> None:
        self.count = start
        self.computed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")

    def add(self, by: int) -> int:
        """Count further.

        Args:
            by: How far.
        """
        self.count += by
        return self.count

    def reset(self) -> str:
        return "of the base"

    def _hidden(self) -> None: ...


class Counter(Base):
    step = 2
    Number = NewType("Number", int)

    class Inner: ...

    def reset(self) -> str:
        return "of the counter"

    async def where(self, ctx: Context) -> str:
        return f"{self.count} in {ctx.revision}"

    @property
    def total(self) -> int:
        self.computed.append("total")
        return self.count

    @cached_property
    def doubled(self) -> int:
        self.computed.append("doubled")
        return self.count * 2

    @loud
    def shout(self, word: str) -> str:
        """Say it louder."""
        return word.upper() * (self.count or 1)

    @lru_cache  # noqa: B019
    def square(self, number: int) -> int:
        return number**2

    @classmethod
    def kind(cls) -> str:
        return cls.__name__

    @staticmethod
    def half(number: float) -> float:
        return number / 2

    add_two = partialmethod(Base.add, 2)

    async def _later(self, by: int, word: str) -> str:
        return f"{word} {self.count + by}"

    later = partialmethod(_later, 1)

    @singledispatchmethod
    def show(self, value: Any) -> str:
        return str(value)

    def yields(self) -> Iterator[int]:
        yield 1

    def many(self, *numbers: int) -> int:
        return sum(numbers)

    def by_place(self, number: int, /) -> int:
        return number


TOOLS = ["add", "reset", "where", "shout", "square", "kind", "half", "add_two", "later"]


# Objects


def test_the_public_methods_of_an_object_are_offered_and_the_rest_is_reported() -> None:
    added = Server("test").add_object(Counter())
    assert added.tools == TOOLS
    assert set(added.left_out) == {"show", "yields", "many", "by_place"}
    assert "depends on the type of the argument" in added.left_out["show"]
    assert "so return a list" in added.left_out["yields"]
    assert "write numbers: list[...]" in added.left_out["many"]
    assert "positional-only" in added.left_out["by_place"]


def test_what_is_left_out_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    Server("test").add_object(Counter())
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("accord.server", logging.WARNING)
    assert record.getMessage().startswith("accord: class Counter: these are no tools: show (which function runs")


def test_looking_computes_no_property() -> None:
    counter = Counter()
    Server("test").add_object(counter)
    assert counter.computed == []


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("add", {"by": 3}, 13),
        ("reset", {}, "of the counter"),
        ("shout", {"word": "hi"}, "HI" * 10),
        ("square", {"number": 3}, 9),
        ("kind", {}, "Counter"),
        ("half", {"number": 3}, 1.5),
        ("add_two", {}, 12),
        ("later", {"word": "at"}, "at 11"),
    ],
)
async def test_a_method_is_called_on_its_object(tool: str, arguments: dict[str, Any], answer: Any) -> None:
    server = Server("test")
    server.add_object(Counter(10))
    async with Client(server, strict=True) as client:
        result = await client.call_tool(tool, arguments)
        assert (result.text if isinstance(answer, str) else result.data) == answer


async def test_methods_have_the_schemas_and_texts_that_functions_have() -> None:
    server = Server("test")
    server.add_object(Counter())
    async with Client(server, strict=True) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools["add"].description == "Count further."
        assert tools["add"].input_schema["properties"] == {"by": {"type": "integer", "description": "How far."}}
        assert tools["shout"].description == "Say it louder."
        assert list(tools["shout"].input_schema["properties"]) == ["word"]
        assert tools["where"].input_schema["properties"] == tools["add_two"].input_schema["properties"] == {}
        assert (await client.call_tool("where")).text == f"0 in {client.revision}"


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name

    async def count(self, item: str, stock: Annotated[dict[str, int], Depends(lambda: {"book": 3})]) -> str:
        return f"{stock[item]} in {self.name}"


async def test_dependencies_of_a_method_are_filled() -> None:
    server = Server("test")
    server.add_object(Shop("Oslo"), prefix="oslo")
    server.add_object(Shop("Lisbon"), prefix="lisbon")
    async with Client(server, strict=True) as client:
        assert list((await client.list_tools())[0].input_schema["properties"]) == ["item"]
        assert (await client.call_tool("oslo_count", {"item": "book"})).text == "3 in Oslo"
        assert (await client.call_tool("lisbon_count", {"item": "book"})).text == "3 in Lisbon"


def test_a_method_that_the_object_replaced_is_the_one_that_it_has() -> None:
    counter, server = Counter(), Server("test")
    vars(counter)["add"] = lru_cache(lambda number: number)
    assert "add" in server.add_object(counter, include=["add"]).tools
    assert server.registry.tools["add"].function is vars(counter)["add"]


def test_a_method_that_a_subclass_takes_away_is_gone() -> None:
    class Fewer(Counter):
        add = None  # type: ignore[assignment]

    assert "add" not in Server("test").add_object(Fewer()).tools


def test_a_class_has_static_and_class_methods() -> None:
    added = Server("test").add_object(Counter)
    assert added.tools == ["kind", "half"]
    assert "give add_object an instance" in added.left_out["add"]


# Modules

TEXTS = """
from functools import lru_cache, partial
from json import dumps
from pathlib import Path

WIDTH = 80

class Word: ...

@lru_cache
def slug(title: str) -> str:
    "A title as it stands in a URL."
    return title.lower().replace(" ", "-")

async def times(text: str, count: int = 2) -> str:
    return text * count

thrice = partial(times, count=3)
short = lambda text: text[:WIDTH]

def _hidden() -> None: ...
"""


async def test_the_functions_that_a_module_defines_are_offered() -> None:
    server = Server("test")
    added = server.add_module(module(TEXTS))
    assert (added.tools, added.left_out) == (["slug", "times", "thrice", "short"], {})
    async with Client(server, strict=True) as client:
        assert (await client.list_tools())[0].description == "A title as it stands in a URL."
        assert (await client.call_tool("slug", {"title": "A Day"})).text == "a-day"
        assert (await client.call_tool("thrice", {"text": "a"})).text == "aaa"


async def test_a_cached_function_has_the_name_the_hints_and_the_text_of_what_it_caches() -> None:
    server = Server("test")
    server.tool(vars(module("from __future__ import annotations\n" + TEXTS))["slug"])
    async with Client(server) as client:
        (tool,) = await client.list_tools()
        assert (tool.name, tool.description) == ("slug", "A title as it stands in a URL.")
        assert tool.input_schema["properties"] == {"title": {"type": "string"}}


def test_all_says_what_a_module_offers() -> None:
    texts = module(TEXTS + "__all__ = ['WIDTH', 'Word', 'dumps', 'lazy', 'slug', '_hidden']")
    assert Server("test").add_module(texts, exclude=["dumps"]).tools == ["slug"]


def test_a_name_that_a_module_loads_lazily_is_not_loaded() -> None:
    lazy = module(
        "__all__ = ['first', 'later']\ndef first() -> str: ...\ndef __getattr__(name): raise SystemExit(name)"
    )
    added = Server("test").add_module(lazy)
    assert added.tools == ["first"]
    assert added.left_out == {"later": "there is no such name in it; what it loads when asked, ask for first"}


def test_include_names_exactly_what_is_offered_imported_or_not() -> None:
    server = Server("test")
    assert server.add_module(module(TEXTS), include=["slug", "lru_cache"]).tools == ["slug", "lru_cache"]


def test_functions_of_c_become_tools_where_they_can_be_read(caplog: pytest.LogCaptureFixture) -> None:
    added = Server("test").add_module(math)
    assert added.tools == ["isclose"]
    assert {"isclose", *added.left_out} == {
        name for name, held in vars(math).items() if callable(held) and name[0] != "_"
    }
    assert added.left_out["sqrt"].startswith("'x' is positional-only")
    assert added.left_out["hypot"].startswith("its signature cannot be read")
    assert len(caplog.records) == 1


LIBRARY = "ast base64 calendar colorsys difflib shlex glob html inspect json locale operator os platform random time"


@pytest.mark.parametrize("name", LIBRARY.split())
async def test_whatever_a_module_holds_is_a_tool_or_reported(name: str) -> None:
    server, library = Server("test"), importlib.import_module(name)
    added = server.add_module(library)
    assert {*added.tools, *added.left_out} <= {*getattr(library, "__all__", vars(library))}
    await listed(server, added.tools)


THINGS = [Path(), Decimal(1), Color.RED, Model(), logging.getLogger(), random.Random(), queue.Queue(), 3, "text", [1]]


@pytest.mark.parametrize("thing", [*THINGS, Mock()], ids=lambda thing: type(thing).__name__)
async def test_whatever_an_object_can_do_is_a_tool_or_reported(thing: object) -> None:
    server = Server("test")
    added = server.add_object(thing)
    assert added.tools or added.left_out
    await listed(server, added.tools)


async def listed(server: Server, tools: list[str]) -> None:
    """That these are the tools of a server, each with a schema that can be sent."""

    @server.tool
    def one_more() -> None: ...

    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == [*tools, "one_more"]


async def test_a_module_of_the_standard_library_works() -> None:
    server = Server("test")
    assert server.add_module(importlib.import_module("textwrap"), include=["dedent"]).tools == ["dedent"]
    async with Client(server) as client:
        assert (await client.call_tool("dedent", {"text": "  a"})).text == "a"


async def test_the_example_offers_a_module_and_an_object() -> None:
    async with Client(str(EXAMPLES / "modules.py"), strict=True) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert list(tools) == ["to_miles", "to_kilometres", "pace", "runs_add", "runs_latest"]
        assert (await client.call_tool("pace", {"kilometres": 10, "minutes": 52})).text == "5:12 min/km"
        assert (await client.call_tool("runs_add", {"kilometres": 10, "minutes": 52})).text == "1 runs, 10 km"
        assert (await client.call_tool("runs_latest")).data == [{"kilometres": 10, "minutes": 52}]


UNREADABLE = {
    "from __future__ import annotations\nif False:\n    from nowhere import X\n"
    "def f(x: X) -> int: ...": "refers to a name that does not exist: name 'X'",
    "def f(x: 'list[X]' = ()) -> int: ...": "refers to a name that does not exist: name 'X'",
    "def f(x: int) -> 'X': ...": "refers to a name that does not exist: name 'X'",
    "import json\ndef f(x: 'json.nope') -> int: ...": "module 'json' has no attribute 'nope'",
    "def f(x: 'int | 3') -> int: ...": "unsupported operand",
    "def f(x: 'some text') -> int: ...": "is not a type",
    "def f(x: 'list[') -> int: ...": "is not a type",
    "import io\ndef f(x: io.StringIO) -> int: ...": "StringIO cannot be a JSON value",
    "def f(x) -> (int, str): ...": "cannot be a JSON value",
    "Tree = list['Tree']\ndef f(x: Tree) -> int: ...": "'x': a recursive type needs a name",
}


@pytest.mark.parametrize(("source", "why"), UNREADABLE.items())
async def test_hints_that_cannot_be_read_cost_their_own_function_and_no_other(source: str, why: str) -> None:
    server = Server("test")
    added = server.add_module(module(source + "\ndef good() -> str: ..."))
    assert added.tools == ["good"]
    assert why in added.left_out["f"]
    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == ["good"]


# What is said of all of them


async def test_a_prefix_tags_and_hints_are_given_to_all() -> None:
    server = Server("test")
    hints = ToolAnnotations(read_only_hint=True)
    added = server.add_object(Counter(), prefix="counter", include=["kind", "half"], tags={"a"}, annotations=hints)
    assert added.tools == ["counter_kind", "counter_half"]
    assert all(offer.metadata.tags == {"a"} for offer in server.registry.tools.values())
    async with Client(server) as client:
        assert [tool.annotations for tool in await client.list_tools()] == [hints, hints]


def test_what_is_excluded_is_neither_offered_nor_reported() -> None:
    added = Server("test").add_object(Counter(), exclude=["add", "many"])
    assert "add" not in added.tools
    assert "many" not in added.left_out
    assert "yields" in added.left_out


# What cannot work


def test_a_taken_name_is_an_error_with_both_functions_and_nothing_is_added() -> None:
    server = Server("test")

    @server.tool
    def reset() -> str:
        return "mine"

    with pytest.raises(DeclarationError, match=r"Counter\.reset cannot be tool 'reset', which is .*\.reset already"):
        server.add_object(Counter())
    assert list(server.registry.tools) == ["reset"]
    assert "counter_reset" in server.add_object(Counter(), prefix="counter").tools


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("many", "write numbers: list"),
        ("show", "depends on the type"),
        ("total", "no public function of that name"),
        ("_hidden", "no public function of that name"),
        ("Inner", "no public function of that name"),
        ("nothing", "no public function of that name"),
    ],
)
def test_naming_what_cannot_be_a_tool_is_refused_and_nothing_is_added(name: str, why: str) -> None:
    server = Server("test")
    with pytest.raises(DeclarationError, match=f"class Counter: {name!r} cannot be a tool: .*{why}"):
        server.add_object(Counter(), include=["add", name])
    assert server.registry.tools == {}


def test_excluding_what_does_not_exist_is_refused() -> None:
    with pytest.raises(DeclarationError, match="no public function 'delete_al' to exclude"):
        Server("test").add_object(Counter(), exclude=["delete_al"])


@pytest.mark.parametrize("thing", ["made", Counter, Counter()], ids=["text", "class", "object"])
def test_what_is_no_module_is_refused(thing: Any) -> None:
    with pytest.raises(DeclarationError, match="is not a module: import it"):
        Server("test").add_module(thing)


def test_a_module_is_no_object() -> None:
    with pytest.raises(DeclarationError, match="'math' is a module: use add_module"):
        Server("test").add_object(math)


@pytest.mark.parametrize("source", ["", "from math import sqrt", "class Only: ...", "__all__ = []"])
def test_a_module_without_functions_is_refused(source: str) -> None:
    with pytest.raises(DeclarationError, match="module 'made' has no public functions"):
        Server("test").add_module(module(source))


class Lazy:
    """Loads what it stands for, as soon as somebody asks what it is."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("loaded")

    def __call__(self) -> None: ...


def test_a_lazy_attribute_is_not_loaded() -> None:
    made = module("def tell() -> str: ...")
    made.lazy = Lazy()  # type: ignore[attr-defined]
    assert Server("test").add_module(made).tools == ["tell"]

    class Holder:
        lazy = Lazy()

        def tell(self) -> str: ...  # type: ignore[empty-body]

    assert Server("test").add_object(Holder()).tools == ["tell"]


@pytest.mark.parametrize("named", ["'tell'", "5", "[[], 'tell']", "['tell', 1]"])
def test_an_all_that_is_no_list_of_names_is_refused(named: str) -> None:
    with pytest.raises(DeclarationError, match=r"module 'made': its `__all__` is not a list of names"):
        Server("test").add_module(module(f"__all__ = {named}\ndef tell(): ..."))


NAMES = st.from_regex(r"[a-z_]{1,4}", fullmatch=True).filter(lambda name: not keyword.iskeyword(name))


@given(st.dictionaries(NAMES, st.sampled_from(["def {}(): ...", "async def {}(): ...", "class {}: ...", "{} = 1"])))
def test_whatever_a_module_holds_its_public_functions_are_the_tools(held: dict[str, str]) -> None:
    made = module("\n".join(line.format(name) for name, line in held.items()))
    public = [name for name, line in held.items() if "def" in line and not name.startswith("_")]
    server = Server("test")
    if public:
        assert server.add_module(made).tools == public
    else:
        with pytest.raises(DeclarationError):
            server.add_module(made)


def test_a_method_in_a_class_body_is_refused_with_the_way_out() -> None:
    server = Server("test")
    with pytest.raises(DeclarationError, match=r"register the bound method, .*server\.add_object\(thing\)"):

        class Bound:
            @server.tool
            def method(self) -> None: ...

    with pytest.raises(DeclarationError, match=r"register the method after the class, server\.tool\(Thing\.method\)"):

        class OfTheClass:
            @server.tool
            @classmethod
            def method(cls) -> None: ...


@pytest.mark.parametrize("decorate", [Server("test").tool, Server("test").prompt], ids=["tool", "prompt"])
def test_what_is_neither_a_name_nor_a_function_is_refused(decorate: Any) -> None:
    with pytest.raises(DeclarationError, match="3 is not a callable object"):
        decorate(3)
