"""A Python function becomes a tool: its schema, its arguments, its result."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import functools
import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import example, given, strategies as st

from accord import Client, Server
from accord.errors import DeclarationError, InvalidArguments, InvalidParams, ToolError
from accord.server.declare.signature import signature

from tests.measure import processor_seconds

if TYPE_CHECKING:
    from nowhere import Elsewhere, Hidden


class Context:
    pass


class Content(msgspec.Struct):
    text: str


@dataclasses.dataclass
class Day:
    date: datetime.date
    high: float = 0.0


@dataclasses.dataclass
class Later:
    day: Day


CONTEXT = Context()


def bind(function: Any, arguments: Any, **options: Any) -> Any:
    raw = arguments if isinstance(arguments, bytes) else msgspec.json.encode(arguments)
    args, kwargs = signature(function, context=Context, **options).bind(raw, CONTEXT)
    return function(*args, **kwargs)


def refused(function: Any, arguments: Any, **options: Any) -> list[str]:
    with pytest.raises(InvalidArguments) as caught:
        bind(function, arguments, **options)
    return caught.value.message.splitlines()


def forecast(city: str, days: int = 3, units: Literal["C", "F"] = "C", tags: list[str] | None = None) -> Any:
    return city, days, units, tags


# The schema


def test_the_schema_has_the_parameters_and_refuses_others() -> None:
    def search(text: str, limit: int = 10, exact: bool | None = None) -> str:
        return text

    assert signature(search).input_schema == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "exact": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


def test_a_function_without_parameters_has_an_empty_object() -> None:
    def now() -> str:
        return ""

    assert signature(now).input_schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_unannotated_parameters_accept_everything() -> None:
    def echo(value, other=3):  # type: ignore[no-untyped-def]
        return value

    assert signature(echo).input_schema["properties"] == {"value": {}, "other": {"default": 3}}
    assert bind(echo, {"value": [1]}) == [1]


@pytest.mark.parametrize("style", ["google", "numpy", "sphinx"])
def test_descriptions_come_from_the_docstring(style: str) -> None:
    def search(text: str, limit: int = 10, *, exact: bool = False) -> str:
        return text

    search.__doc__ = {
        "google": """Looks for text.

        Everywhere: in titles too.

        Args:
            text: what to look for,
                in any case
            limit (int, optional): how many: at most
            exact: Whether it must be
                the same.

        Returns:
            What was found.
        """,
        "numpy": """Looks for text.

        Everywhere: in titles too.

        Parameters
        ----------
        text : str
            what to look for,
            in any case
        limit : int, optional
            how many: at most
        exact
            Whether it must be
            the same.

        Returns
        -------
        str
            What was found.
        """,
        "sphinx": """Looks for text.

        Everywhere: in titles too.

        :param text: what to look for,
            in any case
        :param int limit: how many: at most
        :type limit: int
        :param exact: Whether it must be
            the same.
        :returns: What was found.
        """,
    }[style]
    found = signature(search)
    assert found.description == "Looks for text.\n\nEverywhere: in titles too."
    assert {name: schema["description"] for name, schema in found.input_schema["properties"].items()} == {
        "text": "what to look for, in any case",
        "limit": "how many: at most",
        "exact": "Whether it must be the same.",
    }


def test_a_description_at_the_annotation_wins() -> None:
    def search(text: Annotated[str, "the text"]) -> str:
        """Args:
        text: something else
        """
        return text

    assert signature(search).input_schema["properties"]["text"]["description"] == "the text"


@given(st.text())
@example("Args:\n  x")
@example("Args:\n  x:\n:param\nParameters\n---")
def test_any_docstring_can_be_read(text: str) -> None:
    def tool() -> None: ...

    tool.__doc__ = text
    assert isinstance(signature(tool).description, str)


def test_keywords_make_the_object_open() -> None:
    def call(name: str, **options: int) -> Any:
        return name, options

    assert signature(call).input_schema["additionalProperties"] == {"type": "integer"}
    assert bind(call, {"name": "a", "x": 1, "y": 2.0}) == ("a", {"x": 1, "y": 2})
    assert refused(call, {"name": "a", "x": "b"}) == ['argument "x": expected integer, got string "b"']


# Declarations


@pytest.mark.parametrize("hint", [int, "int"])
def test_none_as_a_default_is_among_the_values_of_the_type(hint: Any) -> None:
    def tool(x=None):  # type: ignore[no-untyped-def]
        return x

    tool.__annotations__["x"] = hint
    read = signature(tool)
    assert read.input_schema["properties"] == {"x": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}}
    assert [read.bind(sent)[0] for sent in (b"{}", b'{"x":null}', b'{"x":3}')] == [(None,), (None,), (3,)]
    assert refused(tool, {"x": "many"}) == ['argument "x": expected integer or null, got string "many"']


def test_none_as_a_default_keeps_the_description_and_the_bounds() -> None:
    def tool(x=None):  # type: ignore[no-untyped-def]
        return x

    tool.__annotations__["x"] = Annotated[int, msgspec.Meta(ge=1, description="how many")]
    written = signature(tool).input_schema["properties"]["x"]
    assert written["description"] == "how many"
    assert {"type": "integer", "minimum": 1} in written["anyOf"]
    assert (bind(tool, {}), bind(tool, {"x": 1})) == (None, 1)
    assert refused(tool, {"x": 0})


@pytest.mark.parametrize("hint", [Any, object, "int | None", Literal["a", None], Annotated[int | None, "d"]])
def test_none_as_a_default_is_fine_where_null_is(hint: Any) -> None:
    def tool(x=None):  # type: ignore[no-untyped-def]
        return x

    tool.__annotations__["x"] = hint
    assert bind(tool, {}) is None


def _positional(x: int, /) -> None: ...
def _starred(*names: str) -> None: ...
def _generator() -> Iterator[int]:
    yield 1


async def _async_generator() -> AsyncIterator[int]:
    yield 1


def _unspeakable(ok: int, wave: complex) -> None: ...
def _nested(wave: list[dict[str, complex]]) -> None: ...
def _result() -> complex:
    return 1j


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (_positional, "'x' is positional-only, .* leave out the `/`"),
        (functools.partial(_positional), "leave out the `/`"),
        (_starred, r"\*names has no names for its arguments: write names: list\[...\]"),
        (functools.partial(_starred), r"\*names"),
        (_generator, "it is a generator"),
        (_async_generator, "it is a generator"),
        (_unspeakable, "'wave': complex cannot be a JSON value"),
        (_nested, "'wave': complex cannot be a JSON value"),
        (_result, "the result: complex cannot be a JSON value"),
        (Context.__init__, "."),
    ],
)
def test_what_cannot_work_is_refused_when_declared(function: Any, says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        signature(function)


def test_a_method_of_no_object_is_refused() -> None:
    class Thing:
        def tool(self, x: int) -> int:
            return x

    with pytest.raises(DeclarationError, match="register the bound method"):
        signature(Thing.tool)
    assert bind(Thing().tool, {"x": 1}) == 1


def test_hints_of_local_classes_are_found() -> None:
    @dataclasses.dataclass
    class Local:
        inner: list[Inner]

    @dataclasses.dataclass
    class Inner:
        value: int

    def tool(x: Local, y: dict[str, Inner] | None = None) -> Any:
        return x

    assert bind(tool, {"x": {"inner": [{"value": 1}]}}) == Local([Inner(1)])


def test_a_name_may_be_defined_after_the_declaration() -> None:
    def tool(x: AfterAll) -> Any:  # noqa: F821
        return x

    found = signature(tool)
    globals()["AfterAll"] = int
    try:
        assert found.input_schema["properties"] == {"x": {"type": "integer"}}
    finally:
        del globals()["AfterAll"]


def test_a_name_that_never_appears_is_named() -> None:
    def tool(x: Elsewhere) -> None: ...

    found = signature(tool)
    with pytest.raises(DeclarationError, match="Elsewhere"):
        _ = found.input_schema


# Binding


def test_arguments_reach_their_parameters() -> None:
    assert bind(forecast, {"city": "Oslo"}) == ("Oslo", 3, "C", None)
    assert bind(forecast, {"units": "F", "city": "Oslo", "days": 1, "tags": ["a"]}) == ("Oslo", 1, "F", ["a"])


@pytest.mark.parametrize("nothing", [None, b"{}", b"null", msgspec.Raw(b"{}")])
def test_missing_arguments_are_an_empty_object(nothing: Any) -> None:
    def tool(x: int = 1) -> int:
        return x

    assert signature(tool).bind(nothing) == ((1,), {})


def test_keyword_only_and_context_and_classes() -> None:
    def tool(a: int, ctx: Context, b: str = "b", *, day: Day | None = None, c: int) -> Any:
        return a, ctx, b, day, c

    day = {"date": "2020-01-01"}
    assert bind(tool, {"a": 1, "c": 2, "day": day}) == (1, CONTEXT, "b", Day(datetime.date(2020, 1, 1)), 2)


@pytest.mark.parametrize("hint", [Context, "Context", Context | None, "Context | None", Annotated[Context, "x"]])
def test_the_context_is_found_by_its_annotation(hint: Any) -> None:
    def tool(a, ctx, b=1):  # type: ignore[no-untyped-def]
        return a, ctx, b

    tool.__annotations__["ctx"] = hint
    found = signature(tool, context=Context)
    assert found.context == "ctx"
    assert list(found.input_schema["properties"]) == ["a", "b"]
    assert bind(tool, {"a": 0}) == (0, CONTEXT, 1)


def test_a_context_imported_for_type_checkers_only_is_found_by_its_name() -> None:
    def tool(ctx: Hidden, x: int) -> Any:
        return ctx, x

    def quoted(ctx: "Hidden | None", x: "int") -> Any:  # noqa: UP037  as from before the import of annotations
        return ctx, x

    for each in (tool, quoted):
        found = signature(each, context=type("Hidden", (), {}))
        assert found.context == "ctx"
        assert found.bind(b'{"x":1}', "it") == (("it", 1), {})


def test_annotations_may_have_quotes_of_their_own() -> None:
    def tool(ctx: "Context", x: "int") -> "str | None":  # noqa: UP037  as from before the import of annotations
        return f"{ctx} {x}"

    found = signature(tool, context=Context)
    assert found.context == "ctx"
    assert found.input_schema["properties"] == {"x": {"type": "integer"}}
    assert found.bind(b'{"x":1}', "it") == (("it", 1), {})


def test_the_context_cannot_be_given_as_an_argument() -> None:
    def tool(ctx: Context, x: int) -> Any: ...

    assert refused(tool, {"x": 1, "ctx": {}}) == ['unknown argument "ctx", known are: "x"']


def test_an_argument_for_a_tool_without_any_is_refused_with_that() -> None:
    def tool() -> Any: ...

    assert refused(tool, {"x": 1}) == ['unknown argument "x", it takes none']


def test_injected_parameters_are_left_to_the_server() -> None:
    def tool(x: int, ok: Annotated[bool, "ask"], ctx: Context) -> Any:
        return x, ok, ctx

    found = signature(tool, context=Context, injected=lambda hint, default: "ask" in getattr(hint, "__metadata__", ()))
    assert [parameter.name for parameter in found.injected] == ["ok"]
    assert list(found.input_schema["properties"]) == ["x"]
    args, kwargs = found.bind(b'{"x":1}', CONTEXT)
    assert tool(*args, **kwargs, ok=True) == (1, True, CONTEXT)


def test_pydantic_field_as_a_default() -> None:
    def tool(
        city: str = pydantic.Field(description="where", min_length=2),
        days: int = pydantic.Field(default=3, ge=1, alias="numDays"),
        tags: list[str] = pydantic.Field(default_factory=list),  # noqa: B008
    ) -> Any:
        return city, days, tags

    assert signature(tool).input_schema["properties"] == {
        "city": {"type": "string", "minLength": 2, "description": "where"},
        "numDays": {"type": "integer", "minimum": 1, "default": 3},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    assert bind(tool, {"city": "Oslo"}) == ("Oslo", 3, [])
    assert bind(tool, {"city": "Oslo", "numDays": 4.0}) == ("Oslo", 4, [])
    assert refused(tool, {"city": "O", "numDays": 0}) == [
        'argument "city": expected string of length >= 2, got string "O"',
        'argument "numDays": expected integer >= 1, got integer 0',
    ]


def test_a_strict_field_takes_nothing_that_is_only_read_as_its_type() -> None:
    def tool(
        days: Annotated[int, pydantic.Field(strict=True, ge=1)],
        hot: Annotated[bool, pydantic.Field(strict=True)] = False,
    ) -> Any:
        return days, hot

    assert signature(tool).input_schema["properties"]["days"] == {"type": "integer", "minimum": 1}
    assert bind(tool, {"days": 3, "hot": True}) == (3, True)
    assert [len(refused(tool, {"days": "3"})), len(refused(tool, {"days": 3, "hot": "true"}))] == [1, 1]


def test_mutable_defaults_are_what_python_has() -> None:
    default = [1]

    def tool(x: list[int] = default) -> Any:
        return x

    assert bind(tool, {}) is default


@pytest.mark.parametrize(
    "make",
    [
        lambda function: functools.partial(function, days=5),
        lambda function: functools.wraps(function)(lambda *args, **kwargs: function(*args, **kwargs)),  # noqa: PLW0108
    ],
)
def test_anything_callable_can_be_a_tool(make: Any) -> None:
    assert bind(make(forecast), {"city": "Oslo", "days": 4})[:2] == ("Oslo", 4)


def test_a_callable_object_with_a_method() -> None:
    class Tool:
        """Doubles."""

        async def __call__(self, x: Day) -> int:
            return 2

    found = signature(Tool())
    assert found.is_async
    assert found.name in ("Tool", "__call__")
    assert found.bind(b'{"x":{"date":"2020-01-01"}}') == ((Day(datetime.date(2020, 1, 1)),), {})


def test_async_functions_are_known() -> None:
    async def tool() -> None: ...

    assert signature(tool).is_async
    assert signature(functools.partial(tool)).is_async
    assert not signature(forecast).is_async
    asyncio.run(tool())


# Arguments that do not fit


def test_every_failure_is_reported() -> None:
    assert refused(forecast, {"cty": "Oslo", "days": "three", "units": "K", "tags": ["a", 1]}) == [
        'missing argument "city"',
        'argument "days": expected integer, got string "three"',
        'argument "units": expected one of "C", "F", got string "K"',
        'argument "tags[1]": expected string, got integer 1',
        'unknown argument "cty", did you mean "city"?',
    ]


def test_nested_failures_have_their_path() -> None:
    def tool(later: list[Later]) -> None: ...

    assert refused(tool, {"later": [{"day": {"date": "2020-01-01", "high": "x"}}]}) == [
        'argument "later[0].day.high": expected number, got string "x"'
    ]
    assert refused(tool, {"later": [{}]}) == ['argument "later[0]": missing "day"']


class Leg(msgspec.Struct, forbid_unknown_fields=True):
    origin: str
    seats: int
    days: list[Day] = []


class Trip(msgspec.Struct):
    legs: list[Leg]
    prices: dict[str, float]
    first: Leg | None = None
    either: int | Leg | list[int] = 0


def test_all_failures_of_a_nested_value_are_reported_at_once() -> None:
    def tool(trip: Trip) -> None: ...

    leg = {"origin": 5, "seats": "two", "smoking": True, "days": [{"date": 1, "high": "x"}, {}]}
    trip = {"legs": [leg, {"origin": "Oslo"}], "prices": {"a": 1, "b": "dear"}, "either": {"origin": "x", "seats": 1.5}}
    assert refused(tool, {"trip": trip}) == [
        'argument "trip.legs[0].origin": expected string, got integer 5',
        'argument "trip.legs[0].seats": expected integer, got string "two"',
        'argument "trip.legs[0].days[0].date": expected date string, got integer 1',
        'argument "trip.legs[0].days[0].high": expected number, got string "x"',
        'argument "trip.legs[0].days[1]": missing "date"',
        'argument "trip.legs[0]": unknown "smoking"',
        'argument "trip.legs[1]": missing "seats"',
        'argument "trip.prices.b": expected number, got string "dear"',
        'argument "trip.either.seats": expected integer, got number 1.5',
    ]
    assert len(refused(tool, {"trip": {**trip, "prices": {f"k{n}": "x" for n in range(50)}}})) == 10


def test_a_large_nested_value_is_searched_for_its_first_failure_only() -> None:
    def tool(trip: Trip) -> None: ...

    legs = [{"origin": 5, "seats": "x"}] * 10_000
    assert refused(tool, {"trip": {"legs": legs, "prices": {}}}) == [
        'argument "trip.legs[0].origin": expected string, got integer 5'
    ]


def test_integral_floats_and_json_in_strings_are_understood() -> None:
    def tool(a: int, b: list[int], c: Day, d: bool = False, e: str = "") -> Any:
        return a, b, c.high, d, e

    sent = {"a": "3", "b": "[1, 2.0]", "c": '{"date": "2020-01-01", "high": 1}', "d": "true", "e": "[1]"}
    assert bind(tool, sent) == (3, [1, 2], 1.0, True, "[1]")
    assert bind(tool, {**sent, "a": 3.0}) == (3, [1, 2], 1.0, True, "[1]")
    assert len(refused(tool, sent, strict=True)) == 4


@pytest.mark.parametrize(
    ("hint", "sent", "got"),
    [
        (int, 3.0, 3),
        (dict[str, list[int]], {"a": [3.0]}, {"a": [3]}),
        (list[int], "[1, 2]", [1, 2]),
        (list[int], "[1.0]", [1]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (int, "3", 3),
        (bool, "true", True),
        (float, "0.5", 0.5),
    ],
)
def test_what_the_tutorial_lists_is_converted_and_strict_refuses_it(hint: Any, sent: Any, got: Any) -> None:
    def tool(x: Any) -> Any:
        return x

    tool.__annotations__["x"] = hint
    assert (bind(tool, {"x": sent}), type(bind(tool, {"x": sent}))) == (got, type(got))
    assert len(refused(tool, {"x": sent}, strict=True)) == 1


@pytest.mark.parametrize(
    ("hint", "sent"),
    [
        (int, 3.5),
        (int, True),
        (int, "three"),
        (int, '"3"'),
        (int, ["3"]),
        (list[int], ["3"]),
        (list[int], "3"),
        (list[int], ["[1]"]),
        (dict[str, int], {"a": "1"}),
        (int | None, "null"),
        (bool, 1),
        (bool, "yes"),
        (str, 3),
        (list[int], "[" + "1," * (128 << 10) + "1]"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_nothing_else_is_converted(hint: Any, sent: Any) -> None:
    def tool(x: Any) -> Any:
        return x

    tool.__annotations__["x"] = hint
    assert len(refused(tool, {"x": sent})) == 1


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b'{"x":', "not valid JSON"),
        (b'{"x":"\xff"}', "not valid JSON"),
        (b'{"\xff":1}', "not valid JSON"),
        (b'{"x":"\\ud800"}', "not valid JSON"),
        (b'{"x":NaN}', "not valid JSON"),
        (b'{"x":1e999}', "not valid JSON"),
        (b'{"x":' + b"1" * 5000 + b"}", "not valid JSON"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"x":"' + b"[" * 100_000 + b'"}', "nested too deeply|expected integer"),
        (b'{"x":' + b"1" * 30 + b".5}", "expected integer"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_hostile_json_is_an_argument_error(raw: bytes, says: str) -> None:
    def tool(x: int) -> None: ...

    with pytest.raises(InvalidArguments, match=says):
        signature(tool).bind(msgspec.Raw(raw))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"[1]", r"must be an object, got array \[1\]"),
        (b'"x"', "must be an object, got string"),
        (b"5", "must be an object, got integer 5"),
        (b'{"x":1,"x":2}', "arguments have the member 'x' twice"),
        (b'{"x":1,"more":[{"a":1,"b":2,"a":3}]}', "arguments have the member 'a' twice"),
        (rb'{"x":1,"\u0078":2}', "arguments have the member 'x' twice"),
        (b'{"x":"wrong","x":2}', "arguments have the member 'x' twice"),
    ],
)
def test_arguments_that_no_model_can_mend_are_invalid_params(raw: bytes, says: str) -> None:
    def tool(x: int, more: list[dict[str, int]] | None = None) -> None: ...

    def open_tool(**rest: Any) -> None: ...

    for function in (tool, open_tool):
        with pytest.raises(InvalidParams, match=says) as raised:
            signature(function).bind(msgspec.Raw(raw))
        assert type(raised.value) is InvalidParams


def test_messages_stay_short() -> None:
    assert len(refused(forecast, {"city": ["x" * 100_000], "y" * 100_000: 1})[0]) < 150
    assert max(map(len, refused(forecast, {"city": "x", "tags": [{"x" * 100_000: 1}], "z" * 100_000: 1}))) < 150


def test_of_many_failures_the_first_ten_are_reported_and_the_rest_is_counted() -> None:
    lines = refused(forecast, {f"unknown{n}": n for n in range(50_000)})
    assert len(lines) == 11
    assert lines[0] == 'missing argument "city"'
    assert lines[-1] == "and 49,991 more"

    def open_tool(**rest: int) -> None: ...

    assert len(refused(open_tool, {f"k{n}": "x" for n in range(1_000)})) == 10

    def wide_tool(x: list[int]) -> None: ...

    assert len(refused(wide_tool, {"x": ["a"] * 1_000})) == 10


def test_unknown_arguments_are_compared_with_known_ones_ten_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def get_close_matches(word: str, *_: Any, **__: Any) -> list[str]:
        compared.append(word)
        return []

    monkeypatch.setattr("difflib.get_close_matches", get_close_matches)
    refused(forecast, {"city": "Oslo", "k" * 1_000_000: 1, **{f"k{n}": n for n in range(50_000)}})
    assert len(compared) == 9
    assert max(map(len, compared)) < 100


def test_a_tool_with_many_parameters_names_the_first_twenty() -> None:
    names = [f"p{n}" for n in range(300)]
    scope: dict[str, Any] = {}
    exec(f"def many({', '.join(f'{name}: int = 0' for name in names)}): ...", scope)
    (line,) = refused(scope["many"], {"zzz": 1})
    assert line.endswith('"p19" and 280 more')


@given(st.binary() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(msgspec.json.encode))
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    with suppress(InvalidParams):
        signature(forecast).bind(raw)


# Results


class Movie(TypedDict):
    title: str


class Model(pydantic.BaseModel):
    name: str
    when: datetime.date | None = None


def returning(hint: Any) -> Any:
    def tool() -> Any: ...

    tool.__annotations__["return"] = hint
    return signature(tool, unstructured={Content})


@pytest.mark.parametrize("hint", [str, None, Any, object, "str", Content, list[Content], list[str | Content]])
def test_text_and_content_have_no_output_schema(hint: Any) -> None:
    found = returning(hint)
    assert found.output_schema is None
    assert found.result_schema is None
    assert not found.wraps


@pytest.mark.parametrize("hint", [Day, Movie, Model, dict[str, int], dict, "Day"])
def test_objects_are_their_own_output_schema(hint: Any) -> None:
    found = returning(hint)
    assert found.output_schema == found.result_schema
    assert found.output_schema["type"] == "object"
    assert not found.wraps


@pytest.mark.parametrize("hint", [int, bool, list[int], int | None, Day | None, tuple[Day, Day], list[Model]])
def test_other_results_are_wrapped(hint: Any) -> None:
    found = returning(hint)
    assert found.wraps
    assert found.output_schema["type"] == "object"
    assert found.output_schema["required"] == ["result"]
    assert "$defs" not in found.output_schema["properties"]["result"]
    assert found.output_schema.get("$defs") == found.result_schema.get("$defs")


@pytest.mark.parametrize(
    ("hint", "value", "packed"),
    [
        (int, 3, b"3"),
        (int, 3.0, b"3.0"),
        (list[Day], [Day(datetime.date(2020, 1, 1))], b'[{"date":"2020-01-01","high":0.0}]'),
        (Model, Model(name="a"), b'{"name":"a","when":null}'),
        (list[Model], [Model(name="a")], b'[{"name":"a","when":null}]'),
        (Model, {"name": "a"}, b'{"name":"a"}'),
        (Movie, {"title": "x"}, b'{"title":"x"}'),
        (Any, {"a": None}, b'{"a":null}'),
    ],
)
def test_results_are_packed_as_json(hint: Any, value: Any, packed: bytes) -> None:
    assert bytes(returning(hint).encode(value)) == packed


def test_wrapping_is_apart_from_packing() -> None:
    found = returning(list[int])
    assert bytes(found.wrap(found.encode([1]))) == b'{"result":[1]}'
    found = returning(dict[str, int])
    assert bytes(found.wrap(found.encode({"a": 1}))) == b'{"a":1}'


def _loop() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("hint", "value", "says"),
    [
        (int, "x", 'does not allow: expected integer, got string "x"'),
        (list[Day], [{"date": "2020-01-01", "high": "x"}], r"at \[0\].high: expected number"),
        (list[Day], [Day("2020-01-01", "x")], r"at \[0\].high: expected number"),  # type: ignore[arg-type]
        (Movie, {}, 'missing "title"'),
        (float, float("nan"), "nan is not a JSON number"),
        (Any, {"a": [float("inf")]}, "inf is not a JSON number"),
        (
            Any,
            object(),
            "result cannot be encoded: object cannot be turned into JSON: use a built-in type, a dataclass",
        ),
        (Any, "\ud800", "result cannot be encoded"),
        (Any, _loop(), "nested too deeply"),
        (Model, {"when": "x"}, "name: Field required"),
    ],
)
def test_a_result_that_does_not_fit_is_a_tool_error(hint: Any, value: Any, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        returning(hint).encode(value)


# Speed: the true numbers are in bench/


def test_a_declaration_builds_nothing_and_a_bind_is_quick() -> None:
    def many(ctx: Context, a: str, b: int = 1, c: float = 1.0, d: bool = True, e: list[str] | None = None) -> Any: ...

    found = [signature(many, context=Context) for _ in range(200)]
    assert not any({"input_schema", "_decode", "_types"} & vars(each).keys() for each in found)
    ours = min(processor_seconds(lambda: [signature(many, context=Context) for _ in range(200)]) for _ in range(5))
    floor = min(processor_seconds(lambda: [inspect.signature(many) for _ in range(200)]) for _ in range(5))
    assert ours < 20 * floor


@dataclasses.dataclass
class Cup:
    size: str
    count: int = 1


def test_the_defaults_of_a_dataclass_come_back_when_it_is_returned() -> None:
    def echo(cup: Cup, cups: list[Cup]) -> list[Cup]:
        return [cup, *cups]

    read = signature(echo)
    args, _ = read.bind(b'{"cup": {"size": "L"}, "cups": [{"size": "S"}]}')
    assert bytes(read.encode(echo(*args))) == b'[{"size":"L","count":1},{"size":"S","count":1}]'


def test_a_server_may_be_strict_for_all_its_tools_and_a_tool_for_itself() -> None:
    server = Server("strict", strict_arguments=True)
    server.tool(name="strict")(forecast)
    server.tool(name="lenient", strict=False)(forecast)
    arguments = msgspec.json.encode({"city": "Oslo", "days": "3"})
    with pytest.raises(InvalidArguments, match="expected integer"):
        server.registry.tools["strict"].bind(arguments, None)
    assert server.registry.tools["lenient"].bind(arguments, None)[0][:2] == ("Oslo", 3)
    plain = Server("plain")
    plain.tool(forecast)
    assert plain.registry.tools["forecast"].bind(arguments, None)[0][:2] == ("Oslo", 3)


@pytest.mark.parametrize("returns", [str, "str", "'str'"])
async def test_a_tool_with_text_as_its_result_that_returns_nothing_has_failed(returns: Any) -> None:
    server = Server("test")

    def forgets(order: int):  # type: ignore[no-untyped-def]
        return None

    forgets.__annotations__["return"] = returns
    server.tool(forgets)
    server.tool(name="open")(lambda: None)
    async with Client(server) as client:
        failed = await client.call_tool("forgets", {"order": 1})
        assert failed.is_error
        assert "forgets returned what its annotation does not allow: expected string" in failed.text
        assert (await client.call_tool("open")).content == []


class Link(str):
    def __str__(self) -> str:
        return "not the text"


class Mean(float):
    pass


class Count(int):
    pass


async def test_texts_and_numbers_of_subclasses_are_results_like_plain_ones() -> None:
    """Libraries return them where a program says `str` or `float`: BeautifulSoup, markupsafe, numpy."""
    server = Server("test")

    @server.tool
    def title() -> str:
        return Link("Oslo")

    @server.tool
    def mean() -> float:
        return Mean(1.5)

    @server.tool
    def counts() -> dict[str, int]:
        return {Link("a"): Count(2)}

    @server.tool
    def endless() -> float:
        return Mean("inf")

    server.resource("notes://title")(title)
    server.prompt(title)
    async with Client(server) as client:
        texts = {name: (await client.call_tool(name)).text for name in ("title", "mean", "counts")}
        assert texts == {"title": "Oslo", "mean": "1.5", "counts": '{"a":2}'}
        assert "not a JSON number" in (await client.call_tool("endless")).text
        assert getattr((await client.read_resource("notes://title")).contents[0], "text", None) == "Oslo"
        assert getattr((await client.get_prompt("title")).messages[0].content, "text", None) == "Oslo"
