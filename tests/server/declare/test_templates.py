from __future__ import annotations

import contextlib
import re
import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import Client, Server
from accord.errors import DeclarationError, ResourceNotFound
from accord.server.declare import template_syntax, templates as module
from accord.server.declare.templates import Template

from tests.measure import assert_linear

# RFC 6570, section 3.2: the variables and expansions of its examples.
VALUES: dict[str, Any] = {
    "count": ["one", "two", "three"],
    "dom": ["example", "com"],
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "keys": {"semi": ";", "dot": ".", "comma": ","},
    "v": "6",
    "x": 1024,
    "y": "768",
    "empty": "",
    "empty_keys": {},
    "undef": None,
}
EXPANSIONS = """
{count} one,two,three | {count*} one,two,three | {/count} /one,two,three | {/count*} /one/two/three
{;count} ;count=one,two,three | {;count*} ;count=one;count=two;count=three | {?count} ?count=one,two,three
{?count*} ?count=one&count=two&count=three | {&count*} &count=one&count=two&count=three
{var} value | {hello} Hello%20World%21 | {half} 50%25 | O{empty}X OX | O{undef}X OX | {x,y} 1024,768
{x,hello,y} 1024,Hello%20World%21,768 | ?{x,empty} ?1024, | ?{x,undef} ?1024 | ?{undef,y} ?768 | {var:3} val
{var:30} value | {list} red,green,blue | {list*} red,green,blue | {keys} semi,%3B,dot,.,comma,%2C
{keys*} semi=%3B,dot=.,comma=%2C | {+var} value | {+hello} Hello%20World! | {+half} 50%25
{base}index http%3A%2F%2Fexample.com%2Fhome%2Findex | {+base}index http://example.com/home/index
O{+empty}X OX | O{+undef}X OX | {+path}/here /foo/bar/here | here?ref={+path} here?ref=/foo/bar
up{+path}{var}/here up/foo/barvalue/here | {+x,hello,y} 1024,Hello%20World!,768
{+path,x}/here /foo/bar,1024/here | {+path:6}/here /foo/b/here | {+list} red,green,blue
{+list*} red,green,blue | {+keys} semi,;,dot,.,comma,, | {+keys*} semi=;,dot=.,comma=, | {#var} #value
{#hello} #Hello%20World! | {#half} #50%25 | foo{#empty} foo# | foo{#undef} foo
{#x,hello,y} #1024,Hello%20World!,768 | {#path,x}/here #/foo/bar,1024/here | {#path:6}/here #/foo/b/here
{#list} #red,green,blue | {#list*} #red,green,blue | {#keys} #semi,;,dot,.,comma,,
{#keys*} #semi=;,dot=.,comma=, | {.who} .fred | {.who,who} .fred.fred | {.half,who} .50%25.fred
www{.dom*} www.example.com | X{.var} X.value | X{.empty} X. | X{.undef} X | X{.var:3} X.val
X{.list} X.red,green,blue | X{.list*} X.red.green.blue | X{.keys} X.semi,%3B,dot,.,comma,%2C
X{.keys*} X.semi=%3B.dot=..comma=%2C | X{.empty_keys} X | X{.empty_keys*} X | {/who} /fred
{/who,who} /fred/fred | {/half,who} /50%25/fred | {/who,dub} /fred/me%2Ftoo | {/var} /value
{/var,empty} /value/ | {/var,undef} /value | {/var,x}/here /value/1024/here | {/var:1,var} /v/value
{/list} /red,green,blue | {/list*} /red/green/blue | {/list*,path:4} /red/green/blue/%2Ffoo
{/keys} /semi,%3B,dot,.,comma,%2C | {/keys*} /semi=%3B/dot=./comma=%2C | {;who} ;who=fred
{;half} ;half=50%25 | {;empty} ;empty | {;v,empty,who} ;v=6;empty;who=fred | {;v,bar,who} ;v=6;who=fred
{;x,y} ;x=1024;y=768 | {;x,y,empty} ;x=1024;y=768;empty | {;x,y,undef} ;x=1024;y=768 | {;hello:5} ;hello=Hello
{;list} ;list=red,green,blue | {;list*} ;list=red;list=green;list=blue
{;keys} ;keys=semi,%3B,dot,.,comma,%2C | {;keys*} ;semi=%3B;dot=.;comma=%2C | {?who} ?who=fred
{?half} ?half=50%25 | {?x,y} ?x=1024&y=768 | {?x,y,empty} ?x=1024&y=768&empty= | {?x,y,undef} ?x=1024&y=768
{?var:3} ?var=val | {?list} ?list=red,green,blue | {?list*} ?list=red&list=green&list=blue
{?keys} ?keys=semi,%3B,dot,.,comma,%2C | {?keys*} ?semi=%3B&dot=.&comma=%2C | {&who} &who=fred
{&half} &half=50%25 | ?fixed=yes{&x} ?fixed=yes&x=1024 | {&x,y,empty} &x=1024&y=768&empty=
{&x,y,undef} &x=1024&y=768 | {&var:3} &var=val | {&list} &list=red,green,blue
{&list*} &list=red&list=green&list=blue | {&keys} &keys=semi,%3B,dot,.,comma,%2C
{&keys*} &semi=%3B&dot=.&comma=%2C
"""


@pytest.mark.parametrize("example", re.split(r" \| |\n", EXPANSIONS.strip()))
def test_the_examples_of_the_rfc_expand(example: str) -> None:
    template, expected = example.split(" ")
    assert Template(template).expand(VALUES) == expected


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        ("é/{a}", {"a": "é"}, "%C3%A9/%C3%A9"),
        ("a%2fb{+x}", {"x": "%2f%"}, "a%2fb%2f%25"),
        ("{a}{b}{c}", {"a": True, "b": False, "c": 1.5}, "truefalse1.5"),
        ("{?a*}", {"a": {"k": None, "l": ""}}, "?l="),
        ("{a*}", {"a": []}, ""),
        ("{a}", {"a": [None, 1]}, "1"),
        ("{a.b}", {"a.b": 1}, "1"),
    ],
)
def test_further_expansions(template: str, values: dict[str, Any], expected: str) -> None:
    assert Template(template).expand(values) == expected


@pytest.mark.parametrize(("template", "value"), [("{a:3}", ["x"]), ("{a}", [["x"]]), ("{a}", {"k": {}})])
def test_composite_values_out_of_place_are_reported(template: str, value: Any) -> None:
    with pytest.raises(TypeError, match=r"a:3|nested"):
        Template(template).expand({"a": value})


@pytest.mark.parametrize(
    ("template", "where", "what"),
    [
        ("a{b", 2, "not closed"),
        ("ab}", 3, "closes nothing"),
        ("{a{b}}", 1, "not closed"),
        ("x{}", 3, "name is missing"),
        ("{a,}", 4, "name is missing"),
        ("{?}", 3, "name is missing"),
        ("{=a}", 2, "no operator"),
        ("{a b}", 2, "letters"),
        ("{+a..b}", 3, "letters"),
        ("{a:0}", 2, "1 to 9999"),
        ("{a:10000}", 2, "1 to 9999"),
        ("{a:3*}", 2, "1 to 9999"),
        ("{a**}", 2, "letters"),
        ("{é}", 2, "letters"),
        ("a b", 2, "write %20"),
        ("a\ud800", 2, "half a character"),
        ("a%zz", 2, "write %25"),
        ("{a}%ff", 4, "UTF-8"),
    ],
)
def test_a_bad_template_is_an_error_with_its_place_and_reason(template: str, where: int, what: str) -> None:
    with pytest.raises(DeclarationError, match=f"character {where}: .*{what}"):
        Template(template)


def test_variables_are_in_order_and_unique() -> None:
    template = Template("/{b:1}/{b}{/a*}{?c,b}")
    assert template.variables == ("b", "a", "c")
    assert template.text == "/{b:1}/{b}{/a*}{?c,b}"
    assert repr(template) == "Template('/{b:1}/{b}{/a*}{?c,b}')"


@pytest.mark.parametrize(
    ("template", "uri", "expected"),
    [
        ("a://b", "a://b", {}),
        ("a://b", "a://bc", None),
        ("a://B", "a://b", None),
        ("a://{x}", "a://", {"x": ""}),
        ("a://{x}", "a://b", {"x": "b"}),
        ("a://{x}", "a://b/c", None),
        ("a://{x}", "a://b?c", None),
        ("a://{x}", "a://b#c", None),
        ("a://{x}", "a://b%2Fc", {"x": "b/c"}),
        ("a://{x}", "a://b%2fc", {"x": "b/c"}),
        ("a://{x}", "a://%252F", {"x": "%2F"}),
        ("a://{x}", "a://%00..", {"x": "\0.."}),
        ("a://{x}", "a://%C3%A9", {"x": "é"}),
        ("a://{x}", "a://é é", {"x": "é é"}),
        ("a://{x}", "a://%ff", None),
        ("a://{x}", "a://%C3", None),
        ("a://{x}", "a://%", None),
        ("a://{x}", "a://%4", None),
        ("a://{x}", "a://\ud800", None),
        ("a://{x}2F", "a://%2F", None),
        ("é%2f/{x}", "%c3%A9%2F/y", {"x": "y"}),
        ("{x}-{y}", "a-b-c", {"x": "a", "y": "b-c"}),
        ("{x}{y}", "ab", {"x": "", "y": "ab"}),
        ("{x:2}-{y}", "abc-d", None),
        ("{w}-{x:2}-{y}", "a-bcd-ef-g", {"w": "a-bcd", "x": "ef", "y": "g"}),
        ("{x,y}/{z}", "a,b,c/d", {"x": "a", "y": "b,c", "z": "d"}),
        ("{x,y}", "a", {"x": "a"}),
        ("{x*,y}", "a,b,c", {"x": ["a", "b"], "y": "c"}),
        ("{x*}", "", {"x": []}),
        ("{x*}", "a,b%2Cc", {"x": ["a", "b,c"]}),
        ("file:///{+path}", "file:///a/b%20c", {"path": "a/b c"}),
        ("{+path}/{name}", "a/b/c", {"path": "a/b", "name": "c"}),
        ("{+path}/edit", "a/edit/edit", {"path": "a/edit"}),
        ("{+path}/edit", "a/edit/edits", None),
        ("{+path}{?q}", "a/b?q=1", {"path": "a/b", "q": "1"}),
        ("{+path}{#f}", "a?b#c", {"path": "a?b", "f": "c"}),
        ("{+path}", "a?b#c", {"path": "a?b#c"}),
        ("{+path:3}{rest}", "abcde", {"path": "abc", "rest": "de"}),
        ("{+x,y}", "1024,768", {"x": "1024", "y": "768"}),
        ("x{#f}", "x", {}),
        ("x{#f,g}", "x#a,b", {"f": "a", "g": "b"}),
        ("{x}{.ext}", "a.tar.gz", {"x": "a", "ext": "tar.gz"}),
        ("{x}{.ext*}", "a.tar.gz", {"x": "a", "ext": ["tar", "gz"]}),
        ("x{/a,b}", "x", {}),
        ("x{/a,b}", "x/1", {"a": "1"}),
        ("x{/a,b}", "x/1/2", {"a": "1", "b": "2"}),
        ("x{/a,b}", "x/1/2/3", None),
        ("x{/a*}/end", "x/1/2/end", {"a": ["1", "2"]}),
        ("x{/a*}", "x/", {"a": [""]}),
        ("x{;a,b}", "x;b=1;a", {"a": "", "b": "1"}),
        ("x{?a,b}", "x", {}),
        ("x{?a,b}", "x?", {}),
        ("x{?a,b}", "x?b=2&zzz=3&a=1%26", {"a": "1&", "b": "2"}),
        ("x{?a}", "x?a=1&a=2", {"a": "1"}),
        ("x{?a*}", "x?a=1&a=2&b=3", {"a": ["1", "2"]}),
        ("x{?a,f*,g*}", "x?b=1&a=2&c=3", {"a": "2", "f": {"b": "1", "c": "3"}}),
        ("x{?a}", "x?A=1", {}),
        ("x{?a}", "x?%61=1", {"a": "1"}),
        ("x{?a:2}", "x?a=123", None),
        ("x{?a}{&b}", "x?b=2&a=1", {"a": "1", "b": "2"}),
        ("x?fixed=1{&b}", "x?fixed=1&c=3&b=2", {"b": "2"}),
        ("x{?a}{#f}", "x?a=1#b", {"a": "1", "f": "b"}),
        ("x{?a}", "x?a=1#b", None),
        ("{/u:1,u}", "/f/fred", {"u": "fred"}),
        ("{/u:1,u}", "/g/fred", None),
        ("{u}/{u}", "a/b", None),
        ("{u}{?u*}", "a?x=1", None),
    ],
)
def test_matches(template: str, uri: str, expected: dict[str, Any] | None) -> None:
    assert Template(template).match(uri) == expected


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
raw_words = words.filter(lambda text: not re.search(r"[?#]|%[0-9A-Fa-f]{2}", text))
lists = st.lists(words, min_size=1, max_size=3)


@st.composite
def clear_cases(draw: st.DrawFn) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A template that leaves nothing to the rules of choice, the values to put in and those to come back."""
    text, values, expected = draw(st.sampled_from(["x:/", "né://h", "%2F"])), {}, {}
    kinds = draw(st.lists(st.sampled_from(["v", "v:3", "p,q", ".e", ";s,t", "one"]), max_size=4))
    if "one" in kinds:
        kinds = [kind for kind in kinds if kind != "one"]
        kinds.insert(draw(st.integers(0, len(kinds))), draw(st.sampled_from(["+w", "/w*"])))
    kinds += draw(st.lists(st.sampled_from(["?a,b*", "#f"]), max_size=2, unique=True).map(sorted))[::-1]
    for at, kind in enumerate(kinds):
        names = re.sub(r"([a-z])", rf"\g<1>{at}", kind)
        text += f"{{{names}}}" if kind[0] in "?#/" else f"/l{{{names}}}"
        for name in re.findall(r"[a-z]\d", names):
            given_ = draw(lists if "*" in kind and name[0] in "wb" else raw_words if kind[0] in "+#" else words)
            values[name] = given_
            expected[name] = given_[:3] if ":" in kind else given_
    return text, values, expected


@given(clear_cases())
def test_matching_an_expansion_gives_the_values_back(
    case: tuple[str, dict[str, Any], dict[str, Any]],
) -> None:
    text, values, expected = case
    template = Template(text)
    assert template.match(template.expand(values)) == expected


@given(st.dictionaries(words.filter(bool).map("k".__add__), words, min_size=1), st.sampled_from("?;&"))
def test_a_dict_comes_back_from_exploded_parameters(values: dict[str, str], operator: str) -> None:
    template = Template(f"x{{{operator}d*}}")
    assert template.match(template.expand({"d": values})) == {"d": values}


pieces = st.sampled_from(
    [
        "a",
        "/",
        "-",
        "?a=",
        "%2F",
        "é",
        "{A}",
        "{A:2}",
        "{A*}",
        "{A,B*,C}",
        "{+A}",
        "{+A:3}",
        "{+A*,B}",
        "{.A}",
        "{.A*}",
        "{/A}",
        "{/A,B:1}",
        "{/A*}",
        "{;A,B}",
        "{;A*}",
        "{?A,B}",
        "{?A*}",
        "{&A}",
        "{#A,B}",
    ]
)


def _distinct(part: str, at: int) -> str:
    return re.sub(r"[ABC]", lambda name: f"{name[0]}{at}", part)


templates = st.lists(pieces, max_size=5).map(
    lambda parts: "".join(_distinct(part, at) for at, part in enumerate(parts))
)
plain = st.text(st.sampled_from("a-./;&é %=ab"), max_size=5).filter(lambda text: "%" not in text)


@given(templates, st.data())
def test_every_expansion_matches_something(text: str, data: st.DataObject) -> None:
    """Whatever the template, also where the rules of choice give other values back than those put in."""
    template = Template(text)
    listed = {name: f"{name}*" in text for name in template.variables}
    values = {
        name: data.draw(st.lists(plain, min_size=1, max_size=3) if is_list else plain)
        for name, is_list in listed.items()
    }
    assert template.match(template.expand(values)) is not None


@given(templates, st.text() | st.text(st.sampled_from("a/-?&#;.,=%2Fé \ud800")))
def test_any_text_is_matched_or_not_and_never_an_error(text: str, uri: str) -> None:
    found = Template(text).match(uri)
    assert found is None or set(found) <= set(Template(text).variables)


@given(st.text() | st.text(st.sampled_from("{}ab,*:3+?%2F")))
def test_any_text_is_a_template_or_a_declaration_error(text: str) -> None:
    with contextlib.suppress(DeclarationError):
        assert Template(text).text == text


@pytest.mark.parametrize(
    ("text", "filler"),
    [
        ("{a}{b}{c}{d}-x", "a"),
        ("{a}-{b}-{c}-{d}/", "a-"),
        ("{+a}-{+b}-{+c}x", "-a"),
        ("aab{+a}aab", "a"),
        ("{/a*}{/b*}{/c*}/x", "/a"),
        ("{.a,b,c}x", "."),
        ("{a:50}{b:50}{+c:9999}{+d}x", "a"),
        ("{a*,b}", "a,"),
        ("{?a*,b*}", "?a=1&"),
        ("{a}{b}", "%C3%a9%2F"),
    ],
)
def test_time_is_linear_in_the_uri(text: str, filler: str) -> None:
    template = Template(text)
    assert_linear(lambda characters: template.match(filler * (characters // len(filler))), 20_000)


@pytest.mark.parametrize("expression", ["{+a}", "{#a}", "{?a}", "{a}"])
def test_time_is_linear_in_the_template(expression: str) -> None:
    assert_linear(lambda count: Template(expression * count), 500)


# --- what must not become a file path ------------------------------------------------------------------------------

UNSAFE = [
    ("notes://{name}", "notes://..", "has a segment '..'"),
    ("notes://{name}", "notes://%2e%2E", "has a segment '..'"),
    ("notes://{name}", "notes://%2Fetc%2Fpasswd", "is an absolute path"),
    ("notes://{name}", "notes://a%2F..%2Fb", "has a segment '..'"),
    ("notes://{name}", "notes://a%5C..%5Cb", "has a segment '..'"),
    ("notes://{name}", "notes://%5C%5Chost%5Cshare", "is an absolute path"),
    ("notes://{name}", "notes://c%3A%5Cx", "begins with the letter of a drive"),
    ("notes://{name}", "notes://C:x", "begins with the letter of a drive"),
    ("notes://{name}", "notes://a%00.txt", "has a NUL"),
    ("notes://{name}", "notes://%252e%252e%252fx", "has a segment '..'"),
    ("notes://{name}", "notes://%25252e%25252e", "has a segment '..'"),
    ("notes://{name}", "notes://%252Fetc", "is an absolute path"),
    ("notes://{name}", "notes://a%2500", "has a NUL"),
    ("notes://{name}", "notes://..%20", "has a segment '..'"),
    ("file:///{+path}", "file:///a/../b", "has a segment '..'"),
    ("file:///{+path}", "file:////etc/passwd", "is an absolute path"),
    ("file://{+path}", "file:///etc/passwd", "is an absolute path"),
    ("x:{/path*}", "x:/a/../b", "has a segment '..'"),
    ("x:{/path*}", "x://etc/passwd", "is an absolute path"),
    ("x:{/path*}", "x:/a/%2Fetc", "is an absolute path"),
    ("x:y{?page}", "x:y?page=..", "has a segment '..'"),
    ("x:y{?page*}", "x:y?..%2F=1", "has a segment '..'"),
    ("x:{a,b}", "x:fine,..", "has a segment '..'"),
    ("notes://{+path}", "notes://\uff0e\uff0e/x", "has a segment '..'"),
    ("notes://{+path}", "notes://x/\u2025", "has a segment '..'"),
    ("notes://{+path}", "notes://\uff0e\uff0e\uff0fx", "has a segment '..'"),
    ("notes://{name}.{ext}", "notes://..%2Fsecret.txt", "have a segment '..'"),
    ("notes://{name}.{ext}", "notes://..%5Csecret.txt", "have a segment '..'"),
    ("notes://{name}.{ext}", "notes://..%252Fsecret.txt", "have a segment '..'"),
    ("notes://{name}{.ext}", "notes://..%2Fsecret", "have a segment '..'"),
    ("notes://{a:1}.{b}{c}", "notes://..%2Fsecret", "have a segment '..'"),
    ("notes://.{+path}", "notes://../secret", "have a segment '..'"),
    ("notes://{folder}/{name}", "notes:///secret", "are an absolute path"),
    ("notes:{folder}/{name}", "notes:/secret", "are an absolute path"),
    ("notes://{a}{b}/{name}", "notes:///secret", "are an absolute path"),
    ("notes://{.kind}/{name}", "notes:///secret", "are an absolute path"),
    ("notes://{a:3}{b}/{+name}", "notes:///secret/of", "are an absolute path"),
    ("notes://of/{+folder}/{name}", "notes://of//secret", "are an absolute path"),
    ("notes://{folder}{/name}", "notes:///secret", "are an absolute path"),
    ("notes://of{/folder,name}", "notes://of//secret", "are an absolute path"),
    ("notes://of{/folder}/{name}", "notes://of//secret", "are an absolute path"),
]


@pytest.mark.parametrize(("template", "uri", "why"), UNSAFE, ids=lambda value: value)
def test_values_that_lead_out_of_a_folder_are_reported(template: str, uri: str, why: str) -> None:
    made = Template(template)
    values = made.match(uri)
    assert values is not None
    assert str(made.unsafe_in(values)).endswith(why)
    assert Template(template, unsafe_variables=True).unsafe_in(values) is None


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("notes://{name}", "notes://a.b..c"),
        ("notes://{name}", "notes://...x"),
        ("notes://{name}", "notes://50%25"),
        ("notes://{name}", "notes://a%2Fb"),
        ("notes://{name}", "notes://"),
        ("notes://{name}", "notes://abc:def"),
        ("file:///{+path}", "file:///a/b/c.txt"),
        ("file://{host}/{+path}", "file:///a/b/c.txt"),
        ("notes://v{version}/{name}", "notes://v/a"),
        ("notes://{name}{/part}", "notes://"),
        ("notes://of{/folder,name}", "notes://of/a"),
        ("x:{/path*}", "x:/a/b"),
        ("x:{/path*}", "x:/"),
        ("x:y{?page,more*}", "x:y?page=1&a=b/c"),
        ("notes://{name}.{ext}", "notes://a.txt"),
        ("notes://{name}.{ext}", "notes://a..txt"),
        ("notes://../{name}.{ext}", "notes://../a.txt"),
        ("notes://{start}..{end}", "notes://1..2"),
        ("notes://{name}.txt{?from,until}", "notes://a.txt?from=.&until=."),
    ],
)
def test_other_values_are_safe(template: str, uri: str) -> None:
    made = Template(template)
    values = made.match(uri)
    assert values is not None
    assert made.unsafe_in(values) is None


async def test_a_resource_is_not_found_under_an_unsafe_name_unless_its_function_allows_it() -> None:
    server = Server("notes")
    seen: list[str] = []

    @server.resource("notes://{name}")
    def note(name: str) -> str:
        seen.append(name)
        return name

    @server.resource("raw://{+path}", unsafe_variables=True)
    def raw(path: str) -> str:
        return path

    outer = Server("outer")
    outer.mount(server, prefix="in")
    async with Client(server) as client, Client(outer) as mounted:
        for uri in ("notes://%2Fetc%2Fpasswd", "notes://..", "notes://%252e%252e"):
            with pytest.raises(ResourceNotFound, match=r"'name' (has a segment|is an absolute path)"):
                await client.read_resource(uri)
        assert not seen
        await client.read_resource("notes://fine")
        assert seen == ["fine"]
        assert (await client.read_resource("raw:///etc/../x")).contents[0].text == "/etc/../x"
        (*_, through) = [each.uri_template for each in await mounted.list_resource_templates()]
        await mounted.read_resource(through.replace("{+path}", "/a/../b"))
        with pytest.raises(ResourceNotFound):
            await mounted.read_resource(through.replace("raw:", "notes:").replace("{+path}", ".."))


# --- cost ----------------------------------------------------------------------------------------------------------


async def test_a_uri_is_compared_only_with_templates_that_begin_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("many")
    for number in range(500):
        server.resource(f"t{number}://{{a}}/{{b}}", name=f"t{number}")(lambda a, b: a + b)
    server.resource("{scheme}://one", name="any")(lambda scheme: scheme)
    compared: list[str] = []
    located = module.locate

    def locate(track: Any, units: str) -> Any:
        compared.append(units)
        return located(track, units)

    monkeypatch.setattr(module, "locate", locate)
    _, values = server.registry.resource("t77://x/y")
    assert values == {"a": "x", "b": "y"}
    assert len(compared) == 1
    with pytest.raises(ResourceNotFound):
        server.registry.resource("t77://" + "a/" * 4_000)
    assert len(compared) == 1, "a template without room for so many slashes was compared"
    assert server.registry.resource("abc://one")[1] == {"scheme": "abc"}


def test_a_uri_is_decoded_once_for_all_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that are templates are each compared with it."""
    decoded, unescape = [], template_syntax._unescape

    def counting(run: re.Match[str]) -> str:
        decoded.append(run[0])
        return unescape(run)

    monkeypatch.setattr(template_syntax, "_unescape", counting)
    for number in range(100):
        Template(f"t{number}://{{+a}}").match("decoded://o%6Ece")
    assert decoded == ["%6E"]


async def test_of_templates_that_match_the_first_declared_counts() -> None:
    server = Server("order")
    server.resource("x://{+a}", name="first")(lambda a: "first")
    server.resource("x://a/{b}", name="second")(lambda b: "second")
    assert server.registry.resource("x://a/b")[1] == {"a": "a/b"}


@pytest.mark.parametrize("segment", ["a/", "a?", "#", "?", "N#", "#;?", "/a.", "é#", "%2F&"])
@pytest.mark.parametrize("template", ["{+path}/{group}/{name}/end{?q,w}", "{a}{b:3}{c}{?x}{#y}", "{+a}N{;k,l}{&z}{#f}"])
def test_a_uri_with_thousands_of_segments_takes_no_step_for_each_of_them(template: str, segment: str) -> None:
    """With a hundred rules that are templates, a URI of 8 KiB took seconds."""
    matched = Template("docs://" + template)
    units = matched.units("docs://" + segment * 2000 + "end") or ""
    matched.match_units(units)  # what is computed once is cached
    calls = 0

    def count_calls(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        matched.match_units(units)
    finally:
        sys.setprofile(before)
    assert calls < 300
