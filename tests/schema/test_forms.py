"""A form offers what the revision has, an answer that fits it becomes the type, and any other is a Mismatch."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import typing
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import attrs
import jsonschema_rs
import msgspec
import pydantic
import pytest
from hypothesis import given, settings, strategies as st

from accord.errors import DeclarationError, Mismatch, NotSupported, SchemaError
from accord.messages.elicitation import ElicitParams
from accord.messages.revision import RULES
from accord.messages.views import view
from accord.schema.form_schemas import count_expanded
from accord.schema.forms import Email, FormField, FormType, Uri, check, defaults, fields, form, parse

FORMS = ("2025-06-18", "2025-11-25", "2026-07-28")
SEVERAL = FORMS[1:]
"""Revisions that can ask for several choices at once."""
NEWEST = RULES[FORMS[-1]]


class Color(enum.Enum):
    RED = "#f00"
    DEEP_BLUE = "#00f"


class Priority(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Size(enum.Enum):
    SMALL = "Small (10 inch)"
    LARGE = "Large (16 inch)"


@dataclasses.dataclass
class Order:
    name: Annotated[str, msgspec.Meta(title="Your name", description="As on the card", min_length=2, max_length=9)]
    color: Color
    email: Email
    tags: list[Literal["a", "b"]]
    count: Annotated[int, msgspec.Meta(gt=0, le=10)] = 1
    note: str | None = None
    gift: bool = False


ANSWER = {"name": "Ann", "color": "#00f", "email": "ann@example.com", "tags": ["a"]}


def offered(hint: Any, revision: str = FORMS[-1]) -> dict[str, Any]:
    """The form on the wire, once the strict view of its revision has seen it."""
    schema = form(hint).schema(RULES[revision])
    params = {"message": "Well?", "requestedSchema": schema}
    msgspec.convert(params, view(ElicitParams, revision, strict=True))
    return schema


def offered_value(hint: Any, revision: str = FORMS[-1]) -> Any:
    assert form(hint).wraps
    return offered(hint, revision)["properties"]["value"]


# A kind of field: its hint, JSON values it accepts, and what they become.
KINDS: list[tuple[Any, st.SearchStrategy[Any], Any]] = [
    (str, st.text(st.characters(exclude_categories=["Cs"])), str),
    (Annotated[str, msgspec.Meta(min_length=1, max_length=3)], st.text("abc", min_size=1, max_size=3), str),
    (int, st.integers(), int),
    (Annotated[int, msgspec.Meta(gt=0, lt=9)], st.integers(1, 8), int),
    (float, st.floats(allow_nan=False, allow_infinity=False), float),
    (Annotated[float, msgspec.Meta(ge=-1.5, le=2)], st.floats(-1.5, 2), float),
    (bool, st.booleans(), bool),
    (datetime.date, st.dates().map(str), datetime.date.fromisoformat),
    (
        datetime.datetime,
        st.datetimes(timezones=st.just(datetime.UTC)).map(datetime.datetime.isoformat),
        datetime.datetime.fromisoformat,
    ),
    (Email, st.sampled_from(["a@b.example", "x+y@localhost"]), str),
    (Uri, st.sampled_from(["https://example.com/?q#f", "urn:isbn:1"]), str),
    (Literal["a", "b"], st.sampled_from("ab"), str),
    (Literal[1, 2.5, "x"], st.sampled_from(["1", "2.5", "x"]), {"1": 1, "2.5": 2.5, "x": "x"}.get),
    (Color, st.sampled_from(["#f00", "#00f"]), Color),
    (Priority, st.sampled_from("12"), lambda text: Priority(int(text))),
    (list[Color], st.lists(st.sampled_from(["#f00", "#00f"])), lambda texts: [Color(text) for text in texts]),
    (set[Literal["a", "b"]], st.lists(st.sampled_from("ab")), set),
]  # fmt: skip
PLURAL = (list[Color], set[Literal["a", "b"]])


@st.composite
def forms(draw: st.DrawFn, kinds: Any = KINDS) -> tuple[Any, dict[str, tuple[bool, Any, Any]]]:
    """A record, and for each field: whether it is required, its JSON values, what they become."""
    chosen = draw(st.lists(st.tuples(st.sampled_from(kinds), st.sampled_from(["required", "none", "either"]))))
    hints: list[Any] = []
    about = {}
    for index, ((hint, values, meaning), presence) in enumerate(chosen):
        name = f"f{index}"
        if presence == "none":
            hints.append((name, typing.Optional[hint], None))  # noqa: UP045 -- the hint is only known now
        else:
            hints.append((name, hint if presence == "required" else typing.Optional[hint]))  # noqa: UP045
        about[name] = presence == "required", values, meaning
    made = draw(st.sampled_from([_struct, _dataclass, _pydantic]))
    return made(hints), about


def _struct(hints: list[Any]) -> Any:
    return msgspec.defstruct("Asked", hints, kw_only=True)


def _dataclass(hints: list[Any]) -> Any:
    return dataclasses.make_dataclass("Asked", hints, kw_only=True)


def _pydantic(hints: list[Any]) -> Any:
    # pydantic does not know the bounds of msgspec
    known = {hint[0]: (_for_pydantic(hint[1]), *(hint[2:] or (...,))) for hint in hints}
    return pydantic.create_model("Asked", **known)


def _for_pydantic(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


@settings(max_examples=150, deadline=None)
@given(forms(), st.data())
def test_what_is_offered_can_be_answered_and_is_read_as_the_type(pair: Any, data: st.DataObject) -> None:
    record, about = pair
    asked = form(record)
    answer, meant = {}, {}
    for name, (required, values, meaning) in about.items():
        if required or data.draw(st.booleans()):
            answer[name] = data.draw(values)
            meant[name] = meaning(answer[name])
    for revision in SEVERAL:
        check(answer, offered(record, revision))
    got = asked.read(answer)
    assert isinstance(got, record)
    assert {name: getattr(got, name) for name in about} == {name: meant.get(name) for name in about}


@settings(max_examples=100, deadline=None)
@given(forms([kind for kind in KINDS if kind[0] not in PLURAL]))
def test_the_first_revision_has_every_form_without_several_choices(pair: Any) -> None:
    offered(pair[0], FORMS[0])


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["a", "1", "#f00", "2020-01-01", "2020-01-01T00:00:00Z", "a@b", "x:y", 3.0, 2.5, 1, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(forms(), st.data())
def test_any_other_answer_is_a_mismatch_and_nothing_but_a_mismatch(pair: Any, data: st.DataObject) -> None:
    record, about = pair
    names = st.sampled_from([*about, "more"])
    answer = data.draw(st.dictionaries(names, _JSON) | _JSON)
    for hold in (form(record).read, lambda content: check(content, offered(record))):
        with suppress(Mismatch):
            hold(answer)


@settings(max_examples=200, deadline=None)
@given(forms([kind for kind in KINDS if kind[0] not in (Email, Uri)]), st.data())
def test_the_check_agrees_with_json_schema(pair: Any, data: st.DataObject) -> None:
    record, about = pair
    sound = _JSON.filter(_is_json)
    values = {name: sound | values for name, (_, values, _) in about.items()}
    answer = data.draw(st.fixed_dictionaries({}, optional=values))
    schema = offered(record) | {"additionalProperties": False}
    assert _fits(answer, schema) == jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(answer)


def _is_json(value: Any) -> bool:
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(value)) == value)
    except ValueError:
        return False


def _fits(answer: Any, schema: Mapping[str, Any]) -> bool:
    try:
        check(answer, schema)
    except Mismatch:
        return False
    return True


_WORDS = st.sampled_from([
    "string", "number", "integer", "boolean", "array", "null", "object", "email", "date-time", "#/$defs/a", "a",
])  # fmt: skip
_KEYWORDS = st.sampled_from([
    "type", "format", "enum", "enumNames", "const", "oneOf", "anyOf", "items", "default", "minimum", "maximum",
    "exclusiveMinimum", "minLength", "minItems", "maxItems", "title", "$ref", "required", "properties", "$defs",
])  # fmt: skip
_ANY_SCHEMA = st.recursive(
    _WORDS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYWORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=250, deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), _ANY_SCHEMA), _ANY_SCHEMA, st.lists(st.text(max_size=9)), _JSON)
def test_a_client_reads_whatever_a_server_sends(properties: Any, rest: Any, typed: list[str], answer: Any) -> None:
    schema = {"type": "object", "properties": properties, "required": rest, "$defs": {"a": rest}}
    read = fields(schema)
    assert [field.name for field in read] == list(properties)
    for name, value in defaults(schema).items():
        check({name: value}, {**schema, "required": []})
    for field in read:
        for text in typed:
            with suppress(Mismatch):
                assert _fits({field.name: parse(field, text)}, {**schema, "required": []})
    _fits(answer, schema)


@settings(max_examples=100, deadline=None)
@given(forms())
def test_a_client_reads_the_form_that_a_server_wrote(pair: Any) -> None:
    asked = form(pair[0])
    spelled = [
        msgspec.structs.replace(field, choices=tuple((str(value), title) for value, title in field.choices))
        for field in asked.fields
    ]
    assert fields(asked.schema(NEWEST)) == spelled


def test_a_class_is_written_field_by_field() -> None:
    assert offered(Order) == {
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "title": "Your name",
                "description": "As on the card",
                "minLength": 2,
                "maxLength": 9,
            },
            "color": {
                "type": "string",
                "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#00f", "title": "Deep blue"}],
            },
            "email": {"type": "string", "format": "email"},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "count": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
            "note": {"type": "string"},
            "gift": {"type": "boolean", "default": False},
        },
        "required": ["name", "color", "email", "tags"],
    }


def test_the_first_revision_has_names_beside_the_choices_and_defaults_for_yes_or_no_only() -> None:
    @dataclasses.dataclass
    class Small:
        color: Color = Color.RED
        count: int = 1
        gift: bool = True

    assert offered(Small, "2025-06-18")["properties"] == {
        "color": {"type": "string", "enum": ["#f00", "#00f"], "enumNames": ["Red", "Deep blue"]},
        "count": {"type": "integer"},
        "gift": {"type": "boolean", "default": True},
    }
    assert offered(Small, "2025-11-25")["properties"]["color"]["default"] == "#f00"


def test_the_first_revision_refuses_several_choices_by_name() -> None:
    with pytest.raises(NotSupported, match=r'revision 2025-06-18 cannot ask for several .* "tags"'):
        offered(Order, "2025-06-18")


def test_the_schema_of_a_revision_is_made_once() -> None:
    assert form(Order) is form(Order)
    assert form(Order).schema(NEWEST) is form(Order).schema(NEWEST)


def test_an_answer_is_read_as_the_class() -> None:
    assert form(Order).read(ANSWER | {"count": 3.0}) == Order("Ann", Color.DEEP_BLUE, "ann@example.com", ["a"], 3)


def test_what_was_left_out_or_null_takes_its_default_and_more_is_ignored() -> None:
    @dataclasses.dataclass
    class Sparse:
        must: int | None
        may: int | None = 5

    assert form(Sparse).read({"must": None, "may": None, "more": 1}) == Sparse(None, 5)
    assert form(Sparse).read(None) == Sparse(None, 5)
    assert "required" not in offered(Sparse)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": 3}, "$.name: expected string, got integer 3"),
        ({"name": "A"}, '$.name: expected string of length >= 2, got string "A"'),
        ({"name": None}, '$: missing "name"'),
        ({"color": "#fff"}, '$.color: expected one of "#f00", "#00f", got string "#fff"'),
        ({"email": "ann"}, '$.email: expected an email address, got string "ann"'),
        ({"tags": ["a", "c"]}, '$.tags[1]: expected one of "a", "b", got string "c"'),
        ({"tags": "a"}, '$.tags: expected array, got string "a"'),
        ({"count": 0}, "$.count: expected integer >= 1, got integer 0"),
        ({"gift": {}}, "$.gift: expected string, number, boolean or array of strings, got object {}"),
    ],
)
def test_an_answer_that_does_not_fit_is_an_error_with_its_path(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(Mismatch) as caught:
        form(Order).read(ANSWER | wrong)
    assert str(caught.value) == said


def test_an_answer_that_is_no_object_is_a_mismatch() -> None:
    answer: Any = ["Ann"]
    for hold in (form(Order).read, lambda content: check(content, offered(Order))):
        with pytest.raises(Mismatch, match="expected object, got array"):
            hold(answer)


def test_a_single_value_is_wrapped_and_unwrapped() -> None:
    assert offered(bool) == {"type": "object", "properties": {"value": {"type": "boolean"}}, "required": ["value"]}
    assert form(bool).read({"value": True}) is True
    with pytest.raises(Mismatch, match=r'^\$.value: expected boolean, got string "yes"$'):
        form(bool).read({"value": "yes"})
    with pytest.raises(Mismatch, match='missing "value"'):
        form(bool).read(None)
    assert form(int | None).read({}) is None
    assert form(Literal["a", None]).read({}) is None


def test_an_empty_question_is_a_form_without_fields() -> None:
    assert offered(None, "2025-06-18") == {"type": "object", "properties": {}}
    assert form(None).read(None) is None
    assert form(None).read({"more": 1}) is None


def test_a_list_is_a_choice_and_a_dict_gives_the_titles() -> None:
    assert offered_value(["S", "M"]) == {"type": "string", "enum": ["S", "M"]}
    assert offered_value({"S": "Small", "M": "Medium"}) == {
        "type": "string",
        "oneOf": [{"const": "S", "title": "Small"}, {"const": "M", "title": "Medium"}],
    }
    assert offered_value({"S": "Small"}, "2025-06-18") == {"type": "string", "enum": ["S"], "enumNames": ["Small"]}
    assert form(["S", "M"]).read({"value": "M"}) == "M"
    with pytest.raises(Mismatch):
        form(["S", "M"]).read({"value": "L"})


@pytest.mark.parametrize("values", [[], {}, [1], {"a": 1}, [None]])
def test_a_choice_is_of_strings(values: Any) -> None:
    with pytest.raises(DeclarationError, match="choices must be a list of strings"):
        form(values)


def test_the_order_of_choices_stays_where_two_literals_are_equal() -> None:
    one: Any = Literal["a", "b"]
    other: Any = Literal["b", "a"]
    assert one == other
    assert [offered_value(hint)["enum"] for hint in (one, other)] == [["a", "b"], ["b", "a"]]


def test_an_enum_is_shown_by_name_unless_its_values_are_words() -> None:
    assert [title for _, title in form(Color).fields[0].choices] == ["Red", "Deep blue"]
    assert offered_value(Size) == {"type": "string", "enum": ["Small (10 inch)", "Large (16 inch)"]}


def test_choices_that_are_numbers_travel_as_text() -> None:
    assert [option["const"] for option in offered_value(Priority)["oneOf"]] == ["1", "2"]
    assert form(Priority).read({"value": "2"}) is Priority.HIGH
    assert form(Priority).read({"value": 2}) is Priority.HIGH
    assert form(list[Priority]).read({"value": ["2", "1"]}) == [Priority.HIGH, Priority.LOW]


def test_choices_that_look_alike_are_refused() -> None:
    with pytest.raises(DeclarationError, match="are not unique"):
        form(Literal[1, "1"])


def test_titles_of_a_literal_may_stand_in_its_schema() -> None:
    titled = [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]
    hint = Annotated[Literal["a", "b"], msgspec.Meta(extra_json_schema={"oneOf": titled})]
    assert offered_value(hint) == {"type": "string", "oneOf": titled}


def test_a_pattern_is_not_sent_and_is_held_all_the_same() -> None:
    hint = Annotated[str, msgspec.Meta(pattern="^[a-z]+$")]
    assert offered_value(hint) == {"type": "string"}
    with pytest.raises(Mismatch, match=r"\$.value: .*regex"):
        form(hint).read({"value": "A"})


def test_a_bound_that_excludes_itself_is_held_all_the_same() -> None:
    hint = Annotated[float, msgspec.Meta(gt=0)]
    assert offered_value(hint) == {"type": "number", "minimum": 0}
    with pytest.raises(Mismatch, match=r"\$.value"):
        form(hint).read({"value": 0})


def test_a_default_that_does_not_fit_is_not_sent() -> None:
    @dataclasses.dataclass
    class Blank:
        name: Annotated[str, msgspec.Meta(min_length=1)] = ""

    assert offered(Blank)["properties"] == {"name": {"type": "string", "minLength": 1}}
    assert form(Blank).read({}) == Blank("")


def test_a_decimal_is_a_number() -> None:
    assert offered_value(decimal.Decimal) == {"type": "number"}
    assert form(decimal.Decimal).read({"value": 0.1}) == decimal.Decimal("0.1")


class Typed(TypedDict):
    name: str
    color: typing.NotRequired[Color]


class Struct(msgspec.Struct, rename="camel", tag="struct", forbid_unknown_fields=True):
    first_name: str
    color: Color = Color.RED


@attrs.define
class Attrs:
    name: str
    _secret: int = 1


class Model(pydantic.BaseModel):
    """Its own validator is held, though no form can tell it."""

    model_config = pydantic.ConfigDict(extra="forbid")

    name: str = pydantic.Field(alias="fullName", max_length=9)
    color: Color | None
    link: pydantic.AnyUrl | None = None

    @pydantic.field_validator("name")
    @classmethod
    def _not_bob(cls, name: str) -> str:
        if name == "Bob":
            raise ValueError("not you, Bob")
        return name


@pytest.mark.parametrize(
    ("record", "answer", "meant"),
    [
        (Typed, {"name": "Ann"}, {"name": "Ann"}),
        (Typed, {"name": "Ann", "color": "#f00"}, {"name": "Ann", "color": Color.RED}),
        (Struct, {"firstName": "Ann", "more": 1}, Struct("Ann")),
        (Attrs, {"name": "Ann", "_secret": 2}, Attrs("Ann", 2)),
        (Model, {"fullName": "Ann", "more": 1}, Model(fullName="Ann", color=None)),
        (Annotated[Struct, "a person"], {"firstName": "Ann"}, Struct("Ann")),
    ],
)
def test_a_class_may_be_of_any_make(record: Any, answer: Any, meant: Any) -> None:
    check({name: value for name, value in answer.items() if name != "more"}, offered(record))
    assert form(record).read(answer) == meant


def test_the_tag_of_a_struct_is_no_field_of_the_form() -> None:
    assert list(offered(Struct)["properties"]) == ["firstName", "color"]


def test_what_a_validator_says_is_a_mismatch() -> None:
    with pytest.raises(Mismatch, match="not you, Bob"):
        form(Model).read({"fullName": "Bob"})


class Pair(NamedTuple):
    left: int


@dataclasses.dataclass
class Inner:
    x: int


@dataclasses.dataclass
class Outer:
    inner: Inner


@dataclasses.dataclass
class Endless:
    again: Endless | None


@dataclasses.dataclass
class Words:
    words: list[str]


@dataclasses.dataclass
class Either:
    value: int | str


@pytest.mark.parametrize(
    ("hint", "named"),
    [
        (Outer, r"Outer\.inner"),
        (Endless, r"Endless\.again"),
        (Words, r"Words\.words"),
        (Either, r"Either\.value"),
        (Pair, "Pair"),
        (dict[str, int], r"dict\[str, int\]"),
        (Order | None, "Order"),
        (Any, "Any"),
        (bytes, "bytes"),
        (list[bool], r"list\[bool\]"),
        (Literal[True, "auto"], "Literal"),
    ],
)
def test_what_is_not_flat_is_refused_with_its_name_and_what_to_write(hint: Any, named: str) -> None:
    with pytest.raises(DeclarationError, match=rf"{named}.* cannot be asked in a form, which is flat: make it a str"):
        form(hint)


def test_metadata_without_a_hash_is_no_hindrance() -> None:
    assert offered_value(Annotated[int, ["no hash"]]) == {"type": "integer"}


def test_a_name_that_does_not_exist_is_refused() -> None:
    @dataclasses.dataclass
    class Lost:
        name: Nowhere  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(DeclarationError, match="Nowhere"):
        form(Lost)


def test_a_form_is_made_of_a_node_that_was_read_already() -> None:
    from accord.schema.hints import HintReader

    assert FormType(HintReader(globals(), {}).read("Order")).fields == form(Order).fields


# The client's side.


def read(schema: Any, **more: Any) -> FormField:
    (field,) = fields({"type": "object", "properties": {"it": schema}, **more})
    return field


CHOICE = (("a", "A"), ("b", "B"))


@pytest.mark.parametrize(
    ("schema", "kind", "choices"),
    [
        ({"type": "string"}, "text", ()),
        ({"type": "string", "format": "date-time"}, "date-time", ()),
        ({"type": "string", "format": "hostname"}, "text", ()),
        ({"type": "string", "enum": ["a", "b"]}, "choice", (("a", "a"), ("b", "b"))),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}, "choice", CHOICE),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["A"]}, "choice", (("a", "a"), ("b", "b"))),
        ({"type": "integer", "enum": [1, 2]}, "choice", ((1, "1"), (2, "2"))),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}, "choice", CHOICE),
        ({"oneOf": [{"const": "a", "title": "A"}]}, "choice", (("a", "A"),)),
        ({"const": "a"}, "choice", (("a", "a"),)),
        ({"type": "array", "items": {"type": "string", "enum": ["a"]}}, "choices", (("a", "a"),)),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}, "choices", (("a", "A"),)),
        ({"type": "array", "items": {"$ref": "#/$defs/c"}}, "choices", (("a", "a"),)),
        ({"$ref": "#/$defs/c"}, "choice", (("a", "a"),)),
        ({"$ref": "#/$defs/around"}, "other", ()),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text", ()),
        ({"anyOf": [{"$ref": "#/$defs/c"}, {"type": "null"}]}, "choice", (("a", "a"),)),
        ({"type": ["integer", "null"]}, "integer", ()),
        ({"type": ["integer", "string"]}, "other", ()),
        ({"type": "object"}, "other", ()),
        ({"type": "array", "items": {"type": "string"}}, "other", ()),
        ({"enum": []}, "other", ()),
        ({}, "other", ()),
        (True, "other", ()),
    ],
)
def test_forms_of_every_revision_and_of_libraries_are_read(schema: Any, kind: str, choices: Any) -> None:
    defs = {"c": {"enum": ["a"]}, "around": {"$ref": "#/$defs/around"}}
    field = read(schema, **{"$defs": defs})
    assert (field.kind, field.choices) == (kind, choices)


def test_bounds_and_words_of_a_field_are_read() -> None:
    about = {"title": "T", "description": "D", "minLength": 1, "maxLength": 5.0, "default": "x"}
    assert read({"type": "string", **about}, required=["it"]) == FormField(
        name="it", kind="text", title="T", description="D", required=True, default="x", min_length=1, max_length=5
    )
    whole = read({"type": "integer", "minimum": 1, "exclusiveMinimum": 1, "exclusiveMaximum": 9.5})
    assert (whole.minimum, whole.maximum) == (2, 9)
    odd = read({"type": "string", "minLength": -1, "maxLength": "5", "title": 3, "default": 4}, required="it")
    assert odd == FormField(name="it", kind="text")


def test_a_form_without_properties_has_no_fields() -> None:
    assert fields({}) == []
    assert fields({"properties": []}) == []


ROUND = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Deep blue"}]}
SEVERAL_ROUND = {"type": "array", "items": {"anyOf": ROUND["oneOf"]}, "maxItems": 2}


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ({"type": "string"}, " as typed ", " as typed "),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, " n ", False),
        ({"type": "integer"}, " 42 ", 42),
        ({"type": "number"}, "4", 4),
        ({"type": "number"}, "4.5", 4.5),
        ({"type": "string", "format": "email"}, " a@b.example ", "a@b.example"),
        ({"type": "string", "format": "uri"}, "https://example.com", "https://example.com"),
        ({"type": "string", "format": "date"}, "20261121", "2026-11-21"),
        ({"type": "string", "format": "date-time"}, "2026-11-21 14:00Z", "2026-11-21T14:00:00+00:00"),
        (ROUND, "r", "r"),
        (ROUND, "Red", "r"),
        (ROUND, "deep BLUE", "b"),
        (ROUND, "2", "b"),
        ({"enum": ["2", "3"]}, "2", "2"),
        ({"enum": [2, 3]}, "3", 3),
        (SEVERAL_ROUND, "red, b", ["r", "b"]),
        (SEVERAL_ROUND, "", []),
        ({"type": "array"}, '["x"]', ["x"]),
        ({}, "x", "x"),
    ],
)
def test_what_is_typed_becomes_the_value(schema: Any, typed: str, value: Any) -> None:
    got = parse(read(schema), typed)
    assert got == value
    assert type(got) is type(value)


def test_a_time_without_a_zone_is_local() -> None:
    got = parse(read({"type": "string", "format": "date-time"}), "2026-11-21 14:00")
    assert datetime.datetime.fromisoformat(got) == datetime.datetime(2026, 11, 21, 14).astimezone()


@pytest.mark.parametrize(
    ("schema", "typed", "reason"),
    [
        ({"type": "boolean"}, "maybe", 'expected yes or no, got "maybe"'),
        ({"type": "integer"}, "4.5", 'expected integer, got "4.5"'),
        ({"type": "integer"}, "four", 'expected integer, got "four"'),
        ({"type": "integer", "minimum": 5}, "4", 'expected at least 5, got "4"'),
        ({"type": "number", "maximum": 3}, "4", 'expected at most 3, got "4"'),
        ({"type": "number"}, "inf", 'expected number, got "inf"'),
        ({"type": "string", "minLength": 3}, "ab", 'expected at least 3 characters, got "ab"'),
        ({"type": "string", "maxLength": 1}, "ab", 'expected at most 1 characters, got "ab"'),
        ({"type": "string", "format": "uri"}, "here", 'expected a URI such as https://example.com/, got "here"'),
        ({"type": "string", "format": "date"}, "soon", 'expected a date such as 2026-11-21, got "soon"'),
        (ROUND, "green", 'expected one of r, b, got "green"'),
        ({"enum": [2, 3]}, "1", 'expected one of 2, 3, got "1"'),
        ({"enum": [*"abcdefghijklm"]}, "z", 'expected one of a, b, c, d, e, f, g, h, i, j and 3 more, got "z"'),
        (SEVERAL_ROUND, "r, x", 'expected only r, b, got "r, x"'),
        (SEVERAL_ROUND, "r, b, r", 'expected at most 2 items, got "r, b, r"'),
        ({"type": "array"}, "{}", 'expected string, number, boolean or array of strings, got "{}"'),
    ],
)
def test_an_input_that_no_field_accepts_is_reported_to_the_user(schema: Any, typed: str, reason: str) -> None:
    with pytest.raises(Mismatch) as caught:
        parse(read(schema), typed)
    assert caught.value.reason == reason


@pytest.mark.parametrize("typed", ["soon", "2026-13-01", "0001-01-01", "9999-12-31 23:59"])
def test_a_time_that_is_none_or_has_no_local_zone_is_refused_or_read(typed: str) -> None:
    with suppress(Mismatch):
        assert parse(read({"type": "string", "format": "date-time"}), typed)[:10] in ("0001-01-01", "9999-12-31")


def test_two_choices_that_differ_in_case_only_are_not_guessed() -> None:
    schema = {"oneOf": [{"const": "a", "title": "Red"}, {"const": "b", "title": "RED"}]}
    assert parse(read(schema), "RED") == "b"
    with pytest.raises(Mismatch):
        parse(read(schema), "red")


def test_an_answer_has_the_requested_fields_and_nothing_else() -> None:
    schema = offered(Order)
    check(ANSWER, schema)
    with pytest.raises(Mismatch, match=r"^\$\.more: the form has no such field$"):
        check(ANSWER | {"more": 1}, schema)
    with pytest.raises(Mismatch, match=r'^\$: missing "name"$'):
        check(None, schema)
    with pytest.raises(Mismatch, match=r"^\$\.note: expected string, got null$"):
        check(ANSWER | {"note": None}, schema)


@pytest.mark.parametrize("value", ["2026-11-21", "2026-11-21T14:00:00", "2026-11-21T25:00:00Z", "soon", 3])
def test_a_time_on_the_wire_has_a_zone(value: Any) -> None:
    schema = {"properties": {"it": {"type": "string", "format": "date-time"}}}
    check({"it": "2026-11-21T14:00:00+01:00"}, schema)
    with pytest.raises(Mismatch, match="expected a date and time with a zone"):
        check({"it": value}, schema)


@pytest.mark.parametrize("schema", [{"type": "string"}, {}, {"type": "string", "format": "email"}])
def test_half_a_surrogate_pair_is_no_answer(schema: Any) -> None:
    with pytest.raises(Mismatch, match="expected"):
        check({"it": "a@\ud800"}, {"properties": {"it": schema}})
    with pytest.raises(Mismatch, match=r"\$.value"):
        form(str).read({"value": "\ud800"})


@pytest.mark.parametrize("value", ["", "a", "@b", "a@", "a b@c", "a@b..c", "a@b@c", "a@b\n"])
def test_an_email_address_has_two_parts(value: str) -> None:
    with pytest.raises(Mismatch):
        check({"it": value}, {"properties": {"it": {"type": "string", "format": "email"}}})


@pytest.mark.parametrize("value", ["", "a", "/path", "http://a b", "http://bücher.example", "1x:y", "x:<y>"])
def test_a_uri_is_absolute_and_ascii(value: str) -> None:
    with pytest.raises(Mismatch):
        check({"it": value}, {"properties": {"it": {"type": "string", "format": "uri"}}})


def test_a_form_starts_from_the_defaults_that_fit() -> None:
    schema = {
        "properties": {
            "a": {"type": "integer", "default": 3},
            "b": {"type": "integer", "default": "three"},
            "c": {"type": "string"},
            "d": {"type": "array", "items": {"enum": ["x"]}, "default": ["x"]},
        }
    }
    assert defaults(schema) == {"a": 3, "d": ["x"]}


def test_a_large_form_is_read_and_checked_in_linear_time() -> None:
    values = [f"v{index}" for index in range(20_000)]
    several = {"type": "array", "items": {"enum": values}, "default": values}
    schema = {"properties": {"it": several}, "required": values}
    assert defaults(schema) == {"it": values}


def test_a_long_reference_that_others_lead_to_is_not_looked_up() -> None:
    target = {"$ref": "#/$defs/" + "a" * 10_000}
    schema = {"properties": {"it": {"$ref": "#/$defs/x"}}, "$defs": {"x": target, "a" * 10_000: {"type": "integer"}}}
    assert [field.kind for field in fields(schema)] == ["other"]


def test_the_text_of_what_references_lead_to_counts_as_often_as_it_expands() -> None:
    def count(references: int) -> int:
        schema = {"properties": {f"f{n}": {"$ref": "#/$defs/x"} for n in range(references)}}
        return count_expanded({**schema, "$defs": {"x": {"description": "x" * 100_000}}}, 128, 20_000)

    assert count(10) < 2_000
    with pytest.raises(SchemaError, match="more than 20,000 values"):
        count(250)
