"""Values of headers, and arguments of tools that stand in them."""

from __future__ import annotations

import base64
import json
import string
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord.errors import HeaderMismatch
from accord.wire.headers import check_parameters, decode_value, encode_value, format_value, mirrored, parameter_headers

from tests.measure import costs_at_most

texts = st.text(st.characters(exclude_categories=["Cs"]))

# --- values ------------------------------------------------------------------------------------------------------

EXAMPLES = [  # of the specification: Value Encoding, Encoding examples
    ("us-west1", "us-west1"),
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ("", ""),
    ("us west 1", "us west 1"),
    ("\tindented", "=?base64?CWluZGVudGVk?="),
]


@pytest.mark.parametrize(("text", "value"), EXAMPLES)
def test_a_value_is_encoded_as_the_specification_shows(text: str, value: str) -> None:
    assert encode_value(text) == value
    assert decode_value(value.encode()) == text


@given(texts | st.text(string.printable) | st.builds("=?base64?{}?=".format, texts))
def test_any_text_comes_back_and_none_can_end_its_header(text: str) -> None:
    value = encode_value(text)
    assert value == value.strip()
    assert all(" " <= character <= "~" for character in value)
    assert decode_value(value.encode("ascii")) == text


@given(st.binary())
def test_any_bytes_are_a_text_or_a_value_error(raw: bytes) -> None:
    try:
        text = decode_value(raw)
    except ValueError:
        return
    assert decode_value(encode_value(text).encode()) == text


@pytest.mark.parametrize(
    "value", ["=?base64?SGVsbG8=", "SGVsbG8=?=", "=?BASE64?SGVsbG8=?=", "=?base64?=", "x=?base64??="]
)
def test_a_value_that_is_not_wrapped_in_full_is_literal(value: str) -> None:
    assert decode_value(value.encode()) == value


def test_blanks_around_a_value_are_not_part_of_it() -> None:
    assert decode_value(b" \tus west \t") == "us west"
    assert decode_value(b" =?base64?SGVsbG8=?= ") == "Hello"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"=?base64?SGVsbG8?=", "Incorrect padding"),
        (b"=?base64?SGVs!!!bG8=?=", "Only base64 data is allowed"),
        (b"=?base64?SGVsbG8==?=", "Excess data|padding"),
        (b"=?base64?SGVs bG8=?=", "Only base64 data is allowed"),
        (b"=?base64?SGVsbG9=?=", "its last bits must be 0"),
        (b"=?base64?/w==?=", "does not encode UTF-8"),
        (b"a\nb", "characters that are not allowed in a header"),
        (b"a\x00b", "characters that are not allowed in a header"),
        ("ü".encode(), "characters that are not allowed in a header"),
    ],
)
def test_an_invalid_value_is_an_error_with_the_reason(value: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode_value(value)


def test_arguments_as_text() -> None:
    values = ["as it is", True, False, 42, -7, 42.0, -0.0, 2**53 - 1]
    assert [format_value(value) for value in values] == [
        *("as it is", "true", "false", "42", "-7", "42", "0", "9007199254740991")
    ]


@pytest.mark.parametrize("number", [2**53, -(2**53), 10**400, float("inf"), float("nan")])
def test_a_number_that_not_everybody_can_hold_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not within"):
        format_value(number)


# --- schemas -----------------------------------------------------------------------------------------------------


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def a(type_: Any, header: Any) -> dict[str, Any]:
    return {"type": type_, "x-mcp-header": header}


NESTED = schema(region=a("string", "Region"), at=schema(port=a("integer", "Port")), other={"type": "array"})


def test_what_is_mirrored_is_found_along_properties() -> None:
    assert mirrored(NESTED) == {"Region": ("region",), "Port": ("at", "port")}
    assert mirrored({"type": "object"}) == {}
    assert list(mirrored(schema(b=a("boolean", "B"), a=a("string", "A")))) == ["B", "A"]


def test_what_only_looks_like_a_declaration_is_none() -> None:
    example = {"default": {"x-mcp-header": "A"}, "enum": [{"x-mcp-header": "A"}], "examples": [{"x-mcp-header": ""}]}
    assert mirrored(schema(**{"x-mcp-header": {"type": "string"}, "default": example})) == {}


WRONG = [
    (a("string", ""), "the x-mcp-header of 'p' is ''"),
    (a("string", "My Region"), "only letters, digits"),
    (a("string", "Region:Primary"), "only letters, digits"),
    (a("string", "Région"), "only letters, digits"),
    (a("string", "Region\t1"), "only letters, digits"),
    (a("string", "Region\r\nX: y"), "only letters, digits"),
    (a("string", "Region\n"), "only letters, digits"),
    (a("string", 5), "the x-mcp-header of 'p' is no text"),
    (a("string", None), "the x-mcp-header of 'p' is no text"),
    *(
        (a(type_, "P"), "'p' has an x-mcp-header: then its type is string, integer or boolean alone")
        for type_ in ("object", "array", "null", "number")
    ),
    (a(["string", "null"], "P"), "'p' has an x-mcp-header: then its type is string, integer or boolean alone"),
    ({"x-mcp-header": "P"}, "'p' has an x-mcp-header: then its type is string, integer or boolean alone"),
    *(({keyword: [a("string", "P")]}, "reached by `properties` alone") for keyword in ("allOf", "anyOf", "oneOf")),
    *(
        ({keyword: a("string", "P")}, "reached by `properties` alone")
        for keyword in ("items", "not", "if", "then", "else", "additionalProperties", "contains")
    ),
    ({"prefixItems": [{}, a("string", "P")]}, "reached by `properties` alone"),
    ({"patternProperties": {"^x": a("string", "P")}}, "reached by `properties` alone"),
    ({"items": schema(inner=a("string", "P"))}, "reached by `properties` alone"),
    ({"$ref": "#/$defs/P", "$defs": {"P": schema(inner=a("string", "P"))}}, "reached by `properties` alone"),
]


@pytest.mark.parametrize(("wrong", "why"), WRONG)
def test_a_wrong_declaration_is_an_error_with_the_reason(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        mirrored(schema(p=wrong, fine=a("string", "Fine")))


@pytest.mark.parametrize("other", ["Region", "rEGION"])
def test_two_arguments_cannot_have_the_same_header(other: str) -> None:
    with pytest.raises(ValueError, match="'q' and 'p' have the same x-mcp-header"):
        mirrored(schema(p=a("string", "Region"), q=a("string", other)))


def test_the_root_is_no_argument() -> None:
    with pytest.raises(ValueError, match="reached by `properties` alone"):
        mirrored({"type": "object", "x-mcp-header": "All"})


def test_a_schema_may_be_deeper_than_python_can_recurse() -> None:
    deep: dict[str, Any] = a("string", "Deep")
    for _ in range(2_000):
        deep = schema(p=deep)
    assert len(mirrored(deep)["Deep"]) == 2_000


def test_properties_of_a_deep_schema_take_no_more_memory_than_others() -> None:
    def peak(depth: int) -> int:
        wide = {"properties": {f"p{number}": {} for number in range(5_000)}}
        for _ in range(depth):
            wide = {"properties": {"a": wide}}
        tracemalloc.start()
        try:
            assert mirrored(wide) == {}
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(500) < 2 * peak(1)


def test_the_names_in_all_paths_of_a_tool_are_bounded() -> None:
    wide: dict[str, Any] = schema(**{f"p{number}": a("string", f"Header{number}") for number in range(200)})
    assert len(mirrored(wide)) == 200
    for _ in range(50):
        wide = schema(p=wide)
    with pytest.raises(ValueError, match="more than 10,000 names together"):
        mirrored(wide)


def test_a_long_name_in_many_paths_is_not_copied_for_each() -> None:
    """A list of tools of 32 MB took 100 s."""
    names = {f"p{number}": a("string", f"Header{number}") for number in range(4_000)}
    with costs_at_most(30):
        assert len(mirrored(schema(**{"a" * (8 << 20): schema(**names)}))) == 4_000


json_values = st.recursive(
    st.none() | st.booleans() | st.sampled_from(["string", "object", "Region", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "x-mcp-header", "items", "$defs", "a"]), inner, max_size=4
        )
    ),
)


@given(json_values)
def test_any_schema_is_read_or_refused(value: Any) -> None:
    try:
        found = mirrored(value)
    except ValueError:
        return
    for path in found.values():
        at = value
        for key in path:
            at = at["properties"][key]
        assert at["type"] == "string"


# --- arguments ---------------------------------------------------------------------------------------------------

FOUND = {"Region": ("region",), "Port": ("at", "port"), "Loud": ("loud",)}


def test_arguments_become_headers() -> None:
    given = {"region": "us-west1", "at": {"port": 80, "x": 1}, "loud": False, "query": "SELECT 1"}
    headers = {"Mcp-Param-Region": "us-west1", "Mcp-Param-Port": "80", "Mcp-Param-Loud": "false"}
    assert parameter_headers(FOUND, given) == parameter_headers(FOUND, json.dumps(given).encode()) == headers


@pytest.mark.parametrize("given", [{}, {"region": None, "at": None}, {"region": ["x"], "at": {"port": {}}}, {"at": []}])
def test_what_is_absent_null_or_not_simple_has_no_header(given: dict[str, Any]) -> None:
    assert parameter_headers(FOUND, given) == {}
    check_parameters(FOUND, {}, given)


@pytest.mark.parametrize("given", [b"", b"null", b"[1]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object_has_no_values(given: bytes) -> None:
    assert parameter_headers(FOUND, given) == {}
    with pytest.raises(HeaderMismatch, match="Mcp-Param-Region was sent, but the body has no such value for 'region'"):
        check_parameters(FOUND, {b"mcp-param-region": b"x"}, given)


def test_a_number_that_no_header_can_have_names_its_argument() -> None:
    with pytest.raises(ValueError, match=r"'at\.port' cannot stand in a header"):
        parameter_headers(FOUND, {"at": {"port": 2**60}})
    with pytest.raises(HeaderMismatch, match=r"'at\.port' cannot stand in a header"):
        check_parameters(FOUND, {b"mcp-param-port": str(2**60).encode()}, {"at": {"port": 2**60}})


simple = texts | st.booleans() | st.integers(1 - 2**53, 2**53 - 1) | st.none()


@given(simple, simple, simple)
def test_what_a_client_sends_a_server_takes(region: Any, port: Any, loud: Any) -> None:
    given = {"region": region, "at": {"port": port}, "loud": loud}
    sent = {name.lower().encode(): value.encode() for name, value in parameter_headers(FOUND, given).items()}
    check_parameters(FOUND, sent, json.dumps(given).encode())
    assert len(sent) == sum(value is not None for value in (region, port, loud))


@given(simple, simple)
def test_a_header_matches_only_the_value_that_it_encodes(region: Any, other: Any) -> None:
    found = {"Region": ("region",)}
    sent = {
        name.lower().encode(): value.encode() for name, value in parameter_headers(found, {"region": other}).items()
    }
    try:
        check_parameters(found, sent, {"region": region})
    except HeaderMismatch:
        assert region is not other or region != other
    else:
        assert parameter_headers(found, {"region": region}) == parameter_headers(found, {"region": other})


REFUSED = [
    ({}, {"region": "a"}, "Mcp-Param-Region is missing, but the body has a value for 'region'"),
    ({b"mcp-param-region": b"b"}, {"region": "a"}, "Mcp-Param-Region is not what the body has for 'region'"),
    ({b"mcp-param-region": b"A"}, {"region": "a"}, "Mcp-Param-Region is not what"),
    ({b"mcp-param-region": b"a"}, {"region": None}, "was sent, but the body has no such value"),
    ({b"mcp-param-region": b"a"}, {}, "was sent, but the body has no such value"),
    ({b"mcp-param-region": b"=?base64?SGVsbG8?="}, {"region": "Hello"}, "cannot be read .*Incorrect padding"),
    ({b"mcp-param-region": b"=?base64?SGVs!!!bG8=?="}, {"region": "Hello"}, "cannot be read"),
    ({b"mcp-param-region": b"SGVsbG8="}, {"region": "Hello"}, "is not what the body has"),
    ({b"mcp-param-region": b"1.0"}, {"region": "1"}, "is not what the body has"),
    ({b"mcp-param-loud": b"True"}, {"loud": True}, "is not what the body has"),
    ({b"mcp-param-loud": b"1"}, {"loud": True}, "is not what the body has"),
    ({b"mcp-param-port": b"42.5"}, {"at": {"port": 42}}, "is not what the body has"),
    ({b"mcp-param-port": b"42.00000000000000000001"}, {"at": {"port": 42}}, "is not what the body has"),
    ({b"mcp-param-port": b"4_2"}, {"at": {"port": 42}}, "is not what the body has"),
    ({b"mcp-param-port": b"Infinity"}, {"at": {"port": 42}}, "is not what the body has"),
    ({b"mcp-param-port": b"9" * 100_000}, {"at": {"port": 42}}, "is not what the body has"),
]


@pytest.mark.parametrize(("headers", "given", "why"), REFUSED)
def test_headers_that_differ_from_the_body_are_refused(headers: dict[bytes, bytes], given: Any, why: str) -> None:
    with pytest.raises(HeaderMismatch, match=why):
        check_parameters(FOUND, headers, given)


@pytest.mark.parametrize("sent", [b"42", b"42.0", b" 42 ", b"=?base64?NDI=?="])
def test_numbers_are_compared_as_numbers(sent: bytes) -> None:
    check_parameters(FOUND, {b"mcp-param-port": sent}, b'{"at": {"port": 42}}')
    check_parameters(FOUND, {b"mcp-param-port": sent}, b'{"at": {"port": 42.0}}')


def test_a_header_that_nobody_declared_means_nothing() -> None:
    check_parameters(FOUND, {b"mcp-param-other": b"\xff\x00", b"mcp-param-region": b"a"}, {"region": "a"})


def test_a_decoded_value_is_compared_with_the_argument() -> None:
    wrapped = b"=?base64?" + base64.b64encode("Zürich".encode()) + b"?="
    check_parameters(FOUND, {b"mcp-param-region": wrapped}, {"region": "Zürich"})
