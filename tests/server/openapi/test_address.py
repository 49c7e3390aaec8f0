"""Whatever the document and the arguments say, a request stays under the base of its API."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given, strategies as st
from yarl import URL

from accord.errors import DeclarationError, InvalidArguments, SchemaError
from accord.server.openapi.address import BaseURL, PathTemplate, has_dot_segment
from accord.server.openapi.body import in_path, in_query
from accord.server.openapi.headers import sendable
from accord.server.openapi.operation import APIParameter

HOSTILE = ["..", ".", "../", "../admin", "..\\admin", "%2e%2e", "%2e%2e%2f", "%252e%252e", "//evil.example", "a/../b"]
HOSTILE += ["?x=1", "#top", "\\", "https://evil.example/", "@evil.example", ":80", "a\r\nHost: evil", "\0", "a\tb", ""]
HOSTILE += [
    "\u2025",
    "\uff0e\uff0e",
    "\uff0e\uff0e/x",
    "..;/x",
    "..;a=b",
    ".%2e",
    "%2E.",
    "a%2f..%2fb",
    "a%5c..",
    "\uff1b..",
    "\u3000..",
    "..\u3000",
]
HOSTILE += [
    ";..",
    ". .",
    "..%00",
    "%c0%ae%c0%ae",
    "\ud800",
    "\u2215",
    "a\u2215b",
    "ü/ß",
    "x y+z",
    "{id}",
    "%",
    "%zz",
    "~user",
]

segments = st.text(st.sampled_from("abz019-_.~!$&'()*+,;=:@ü "), min_size=1, max_size=6)
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=12), st.text(st.sampled_from("./\\%2efcEF;?#@:ü\0\r\n ")))
bases = st.sampled_from(
    ["https://api.example.com", "http://127.0.0.1:8000/", "https://api.example.com/v1", "http://[::1]:81/a%20b/c.d/"]
)


@st.composite
def paths(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A template, and its variables."""
    names: list[str] = []

    def segment() -> str:
        parts = draw(st.lists(st.one_of(segments, st.just("{}")), min_size=1, max_size=3))
        for at, part in enumerate(parts):
            if part == "{}":
                names.append(f"v{len(names)}")
                parts[at] = "{" + names[-1] + "}"
        return "".join(parts)

    return "/" + "/".join(segment() for _ in range(draw(st.integers(1, 4)))), names


@given(bases, paths(), st.data())
def test_a_url_that_is_built_stays_under_its_base(base: str, template: tuple[str, list[str]], data: Any) -> None:
    text, names = template
    values = {name: data.draw(texts, name) for name in names}
    try:
        path = PathTemplate(text)
        filled = path.fill(
            {name: in_path(APIParameter(name=name, place="path"), value) for name, value in values.items()}
        )
    except (SchemaError, InvalidArguments):
        return
    url = BaseURL(base).join(filled, "")
    check(url, base, text)
    for at, segment in enumerate(text[1:].split("/")):
        meant = segment
        for name, value in values.items():
            meant = meant.replace("{" + name + "}", value)
        built = urlsplit(url).path.split("/")[-len(text[1:].split("/")) :][at]
        if "%" not in segment:
            assert unquote(built) == meant


def check(url: str, base: str, template: str) -> None:
    """By two parsers, one of which normalises."""
    assert url.isascii()
    assert url.isprintable()
    at = urlsplit(base)
    wanted = (at.scheme, at.hostname, at.port)
    prefix, count = at.path.rstrip("/"), template.count("/")
    split = urlsplit(url)
    assert (split.scheme, split.hostname, split.port) == wanted
    assert not split.query
    assert not split.fragment
    for found in (split.path, URL(url, encoded=True).raw_path, URL(url).raw_path):
        assert found.startswith(prefix + "/")
        assert found.removeprefix(prefix).count("/") == count
    for parsed in (URL(url, encoded=True), URL(url)):
        assert (parsed.scheme, parsed.host, parsed.explicit_port) == wanted
        assert not parsed.raw_query_string
        assert not parsed.raw_fragment


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("template", ["/users/{id}", "/users/{id}/posts", "/a.{id}", "/{id}{id}"])
def test_what_is_hostile_stays_in_its_segment_or_is_refused(template: str, value: str) -> None:
    parameter = APIParameter(name="id", place="path")
    try:
        filled = PathTemplate(template).fill({"id": in_path(parameter, value)})
    except InvalidArguments:
        return
    check(BaseURL("https://api.example.com/v1").join(filled, ""), "https://api.example.com/v1", template)


@pytest.mark.parametrize("value", ["a" * 8_193, "\u0315\u0316" * 1_000_000], ids=["letters", "combining"])
def test_a_value_that_makes_a_path_too_long_is_refused(value: str) -> None:
    with pytest.raises(InvalidArguments, match="more than 8,192 characters"):
        PathTemplate("/users/{id}").fill({"id": in_path(APIParameter(name="id", place="path"), value)})


@pytest.mark.parametrize(
    "value",
    [
        "",
        ".",
        "..",
        "../x",
        "a/../b",
        "..\\x",
        "%2e%2e",
        ".%2E",
        "%2e%2e%2fx",
        "..;/x",
        "\u2025",
        "\uff0e\uff0e",
        "a\nb",
        "\0",
    ],
)
def test_a_value_that_some_server_could_take_for_a_step_up_is_refused(value: str) -> None:
    with pytest.raises(InvalidArguments, match="'id'"):
        PathTemplate("/users/{id}").fill({"id": in_path(APIParameter(name="id", place="path"), value)})


@pytest.mark.parametrize(
    ("style", "value"), [("label", ""), ("label", "."), ("label", ["", ""]), ("matrix", ["..", "a"])]
)
def test_no_style_makes_a_step_up_of_harmless_parts(style: str, value: Any) -> None:
    parameter = APIParameter(name="id", place="path", style=style, explode=True)
    try:
        filled = PathTemplate("/users/{id}").fill({"id": in_path(parameter, value)})
    except InvalidArguments:
        return
    assert not any(map(has_dot_segment, filled.split("/")))


scalars = st.one_of(texts, st.integers(), st.floats(), st.booleans(), st.none())
values = st.one_of(scalars, st.lists(scalars, max_size=3), st.dictionaries(texts, scalars, max_size=3))
styles = st.sampled_from(["simple", "label", "matrix"])


@given(bases, styles, st.booleans(), st.sampled_from(["/a/{id}", "/{id}.x/b", "/a{id}{id}"]), values, values)
def test_no_style_of_any_value_leaves_the_base(
    base: str, style: str, explode: bool, template: str, value: Any, sought: Any
) -> None:
    in_the_path = APIParameter(name="id", place="path", style=style, explode=explode)
    in_the_query = APIParameter(name="q?#", place="query", style="form", explode=explode)
    try:
        path = PathTemplate(template).fill({"id": in_path(in_the_path, value)})
        query = "&".join(in_query(in_the_query, sought))
    except InvalidArguments:
        return
    check(BaseURL(base).join(path, ""), base, template)
    split = urlsplit(BaseURL(base).join(path, query))
    assert (split.query, split.fragment) == (query, "")
    assert split.path == urlsplit(BaseURL(base).join(path, "")).path


@given(st.text(max_size=20))
@example("a\r\nHost: evil")
def test_a_header_that_is_sent_is_one_line(text: str) -> None:
    try:
        (value,) = sendable({"X-A": text}).values()
    except InvalidArguments:
        return
    assert value == text
    assert len(value.encode(errors="replace").splitlines()) <= 1


ELSEWHERE = (
    "users //evil.example/x /a//b /../x /a/../b /%2e%2e/x /a/%2e%2e%2fb /a%2fb /a\\b /a?x=1 /a#b /{a /a} /./x /%"
)


@pytest.mark.parametrize(
    "path", [*ELSEWHERE.split(), "https://evil.example/x", "/a%00", "", "/a b\n", "/\uff0e\uff0e/x"]
)
def test_a_path_of_a_document_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(SchemaError, match="path"):
        PathTemplate(path)


NO_BASES = """api.example.com ftp://api.example.com https:// https://ann:pw@a.example https://a.example/?x=1
https://a.example/#x https://a.example/../x https://a.example//x https://a.example/%2e%2e https://a.example:x/
https://a.example\\x https://ü.example/"""


@pytest.mark.parametrize("url", [*NO_BASES.split(), "", "https://a b/"])
def test_what_no_api_can_be_under_is_no_base(url: str) -> None:
    with pytest.raises(DeclarationError, match=r"not a valid base_url|the path of"):
        BaseURL(url)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/v1/b", "https://api.example.com/v1/b"),
        ("b?x=1", "https://api.example.com/v1/b?x=1"),
        ("https://api.example.com/v1/a/", "https://api.example.com/v1/a/"),
        ("https://api.example.com:443/v1", "https://api.example.com:443/v1"),
        ("/v2/b", None),
        ("/v1x", None),
        ("../b", None),
        ("/v1/%2e%2e/b", None),
        ("/v1/..;/b", None),
        ("//evil.example/v1/b", None),
        ("https://evil.example/v1/b", None),
        ("http://api.example.com/v1/b", None),
        ("https://api.example.com:8443/v1/b", None),
        ("https://api.example.com@evil.example/v1/b", None),
        ("https://x@api.example.com/v1/b", None),
        ("\\\\evil.example\\v1", None),
        ("b?x=ü", None),
        ("b?x y", None),
        ("https://[", None),
    ],
)
def test_a_redirect_is_followed_under_the_base_only(location: str, target: str | None) -> None:
    assert BaseURL("https://api.example.com/v1").follow("https://api.example.com/v1/a", location) == target


@given(st.text(st.sampled_from("/.%2ef\\?#@:;ax"), max_size=20))
@example("//evil.example/v1/")
def test_wherever_a_redirect_leads_it_is_under_the_base(location: str) -> None:
    base = "https://api.example.com/v1"
    target = BaseURL(base).follow(f"{base}/a", location)
    if target is not None:
        for parsed in (urlsplit(target).path, URL(target).raw_path):
            assert parsed == "/v1" or parsed.startswith("/v1/")
        assert urlsplit(target).netloc == "api.example.com" == URL(target).host
