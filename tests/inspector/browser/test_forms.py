"""Forms and JSON text in the page: hundreds of generated cases for each call of `page.evaluate`."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from playwright.async_api import Page

from accord.inspector.forms.check import check_value
from accord.inspector.forms.describe import describe_form

CASES = 200


def generated(strategy: st.SearchStrategy[Any], count: int = CASES) -> list[Any]:
    """Return generated values; the same ones in each run."""
    found: list[Any] = []

    @settings(max_examples=count, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


NUMBERS = st.sampled_from(
    ["0", "-0", "1.0", "1e5", "9007199254740993", "-1.10E-3", "1e999", "123456789012345678901234567890"]
)
STRINGS = st.sampled_from(
    ['""', '"a"', '"\\u0041\\n"', '"é\\/"', '"\\ud800"', '"\U0001f600"', '"</script>"', '"__proto__"']
)
SPACES = st.sampled_from(["", " ", "\n", "\r\n\t", "  "])


def joined(parts: list[str], around: str) -> st.SearchStrategy[str]:
    count = 2 * len(parts) + 1
    spaces = st.lists(SPACES, min_size=count, max_size=count)
    return spaces.map(
        lambda found: (
            around[0]
            + ",".join(found[2 * at] + part + found[2 * at + 1] for at, part in enumerate(parts))
            + found[-1]
            + around[1]
        )
    )


def containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.lists(
        st.tuples(STRINGS, SPACES, inner).map(lambda found: f"{found[0]}{found[1]}:{found[2]}"), max_size=4
    )
    arrays = st.lists(inner, max_size=4).flatmap(lambda parts: joined(parts, "[]"))
    return arrays | members.flatmap(lambda parts: joined(parts, "{}"))


SCALARS = NUMBERS | STRINGS | st.sampled_from(["true", "false", "null"])
TEXTS = st.recursive(SCALARS, containers, max_leaves=12)


async def test_edits_change_one_place_and_keep_all_other_bytes(page: Page) -> None:
    texts = generated(TEXTS)
    failures = await page.evaluate(
        """async (texts) => {
          const { JsonDocument, parseJson } = await import("./components/json_text.js");
          const failures = [];
          const check = (condition, text, what) => { if (!condition) failures.push([text, what]); };
          const paths = (node, path, found) => {
            found.push(path);
            const inside = node.items ?? (node.members ?? []).map((each) => each.value);
            inside.forEach((each, at) => paths(each, [...path, at], found));
            return found;
          };
          for (const text of texts) {
            const { root, error } = parseJson(text);
            if (error) { failures.push([text, error.message]); continue; }
            for (const path of paths(root, [], [])) {
              const document = new JsonDocument(text);
              const node = document.at(path);
              const [before, after] = [text.slice(0, node.start), text.slice(node.end)];
              document.replace(path, "[1.0]");
              check(document.text === before + "[1.0]" + after, text, "replace");
              document.replace(path, text.slice(node.start, node.end));
              check(document.text === text, text, "replace back");
              if (node.members) {
                const index = document.insertMember(path, "new name", "7e0");
                check(!document.error, text, "insert");
                document.remove(path, index);
                const same = node.members.length > 0 ? text : before + "{}" + after;
                check(document.text === same, text, "insert and remove a member");
              }
              if (node.items) {
                document.appendItem(path, "7e0");
                check(!document.error, text, "append");
                document.remove(path, node.items.length);
                const same = node.items.length > 0 ? text : before + "[]" + after;
                check(document.text === same, text, "append and remove an item");
                for (let at = 0; at + 1 < node.items.length; at++) {
                  document.setText(text);
                  document.exchange(path, at);
                  check(!document.error, text, "exchange");
                  document.exchange(path, at);
                  check(document.text === text, text, "exchange back");
                }
              }
            }
          }
          return failures.slice(0, 5);
        }""",
        texts,
    )
    assert failures == []


async def test_typing_keeps_line_breaks_that_a_field_does_not_show(page: Page) -> None:
    texts = generated(st.tuples(*[st.lists(st.sampled_from(["\r\n", "\r", "\n", "a", "b"])).map("".join)] * 4))
    shown = [[part.replace("\r\n", "\n").replace("\r", "\n") for part in parts] for parts in texts]
    typed = await page.evaluate(
        """async (cases) => {
          const { afterTyping } = await import("./components/json_text.js");
          return cases.map(([text, value]) => afterTyping(text, value));
        }""",
        [["".join(parts[:3]), each[0] + "typed" + each[2]] for parts, each in zip(texts, shown, strict=True)],
    )
    for (before, _, after, _), found in zip(texts, typed, strict=True):
        lines = found.replace("\r\n", "\n").replace("\r", "\n")
        assert lines == (before + "typed" + after).replace("\r\n", "\n").replace("\r", "\n")
        if "\r" in before + after and not before.endswith("\r"):
            assert found.startswith(before)
            assert found.endswith(after)


async def test_the_parser_accepts_exactly_what_json_is(page: Page) -> None:
    texts = generated(
        st.tuples(
            TEXTS, st.integers(0, 60), st.sampled_from(["", ",", '"', "}", "]", "1", "\\", " ", "\n", "e", "-", "t"])
        )
    )
    broken = [text[:at] + insert + text[at + (not insert) :] for text, at, insert in texts]
    broken += [
        "",
        " ",
        "nul",
        "+1",
        "01",
        ".5",
        "1.",
        "1e",
        "0x1",
        "NaN",
        "'a'",
        "[1,]",
        "{,}",
        '{"a"}',
        '"\t"',
        "\ufeff1",
        "\u00a01",
    ]
    expected = []
    for text in broken:
        try:
            json.loads(text, parse_constant=pytest.fail)
            expected.append(True)
        except (ValueError, pytest.fail.Exception):
            expected.append(False)
    accepted = await page.evaluate(
        """async (texts) => {
          const { isJson } = await import("./components/json_text.js");
          return texts.map(isJson);
        }""",
        broken,
    )
    assert [text for text, one, other in zip(broken, expected, accepted, strict=True) if one != other] == []


async def test_long_and_deep_texts_are_read_or_refused_at_once(page: Page) -> None:
    found = await page.evaluate(
        """async () => {
          const { parseJson } = await import("./components/json_text.js");
          const strings = ['"' + "x".repeat(2e6), '"' + "\\\\n".repeat(5e5)];
          const texts = [...strings, "[".repeat(1e5), "1".repeat(1e6), "[" + "1,".repeat(2e5) + "1]"];
          return texts.map((text) => parseJson(text).error?.message ?? null);
        }"""
    )
    assert found == [
        "this string is not valid, or does not end",
        "this string is not valid, or does not end",
        "nested more than 1000 levels deep",
        None,
        None,
    ]


# --- forms ---------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c/d", "e~f", "", "__proto__"])


def schemas_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return schemas for which every value that a form makes must be valid: with types, not with patterns."""
    properties = st.dictionaries(NAMES, inner, max_size=4)
    objects = st.builds(
        lambda found, required, additional: {
            "type": "object",
            "properties": found,
            "required": [name for name in found if name in required],
            **({} if additional is None else {"additionalProperties": additional}),
        },
        properties,
        st.sets(NAMES, max_size=3),
        st.none() | st.just(False) | inner,
    )
    arrays = inner.map(lambda items: {"type": "array", "items": items})
    tuples = st.lists(inner, min_size=1, max_size=3).map(
        lambda found: {"type": "array", "prefixItems": found, "items": False}
    )
    kinds = st.lists(inner, min_size=2, max_size=3).map(
        lambda found: {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": f"k{at}"}, "value": each},
                    "required": ["kind"],
                    "additionalProperties": False,
                }
                for at, each in enumerate(found)
            ]
        }
    )
    nullable = inner.map(lambda each: {"anyOf": [each, {"type": "null"}]})
    both = properties.map(lambda found: {"allOf": [{"type": "object"}, {"properties": found}]})
    return objects | arrays | tuples | kinds | nullable | both


PLAIN = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"type": ["integer", "string", "null"]},
        {"enum": [1.0, "x", None, {"a": [1]}]},
        {"oneOf": [{"const": 1, "title": "one"}, {"const": "2", "title": "two"}]},
        {"const": 9007199254740993},
        {"$ref": "#/$defs/tree"},
        {},
        True,
    ]
)
TREE = {
    "type": "object",
    "properties": {"left": {"$ref": "#/$defs/tree"}, "n": {"type": "integer"}},
    "additionalProperties": False,
}
SCHEMAS = st.recursive(PLAIN, schemas_of, max_leaves=8).map(lambda schema: {"allOf": [schema], "$defs": {"tree": TREE}})

DRIVER = """async (cases) => {
  const found = [];
  for (const [schema, description, seed] of cases) found.push(await run(schema, description, seed));
  return found;
  async function run(schema, description, seed) {
  const { Form } = await import("./components/form.js");
  const { render } = await import("./vendor/lit-html/lit-html.js");
  const page = await import("./connection.js");
  const place = document.createElement("div");
  document.body.append(place);
  const send = async (command, params) => command === "forms/check" ? { errors: [] } : page.send(command, params);
  const form = new Form(schema, "null", { send, update: () => {}, redraw: () => {} });
  form.root = description;
  let state = seed;
  const random = (count) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * count);
  };
  const texts = ["", "x", "9007199254740993", "line\\nline", "\\u00e9\\"\\\\"];
  const numbers = { integer: ["0", "-7", "9007199254740993"], number: ["1.0", "1e5", "-0.5"] };
  const resolved = async (node) => {
    for (;;) {
      const found = form.resolved(node);
      if (found !== null) return found;
      await new Promise((go) => setTimeout(go, 0));
    }
  };
  const fill = async (unresolved, at, depth) => {
    const node = await resolved(unresolved);
    if (node.isAny) return form.set(at(), ["null", "1.0", '{"x": [1]}', '"t"'][random(4)]);
    const isWanted = ({ id }) => id !== "json" && !(id === "omitted" && at().required);
    const choices = form.choicesOf(node, at()).filter(isWanted);
    const shallow = choices.filter((each) => depth < 3 || !["object", "array"].includes(each.id));
    const choice = (shallow.length ? shallow : choices)[random((shallow.length ? shallow : choices).length)];
    form.choose(at(), choice);
    const alternative = Number(/^alternative (.*)$/.exec(choice.id)?.[1] ?? -1);
    if (alternative >= 0) return fill(node.alternatives[alternative], () => form.inside(at(), alternative), depth);
    if (choice.id in numbers) return form.type(at(), numbers[choice.id][random(3)], "number");
    if (choice.id === "string") return form.set(at(), JSON.stringify(texts[random(texts.length)]));
    if (choice.id === "object") await fillMembers(node.object?.properties ?? [], at, depth);
    if (choice.id === "array") await fillItems(node.array, at, depth);
  };
  const fillMembers = async (properties, at, depth) => {
    const names = properties.map((each) => each.name);
    for (const { name, node, required } of properties) {
      if (form.member(at(), name).path) continue;
      await fill(node, () => form.member(at(), name, { names, required }), depth + 1);
    }
  };
  const fillItems = async ({ prefix = [], items }, at, depth) => {
    for (let index = 0; index < 2 && (index < prefix.length || items); index++) {
      form.document.appendItem(at().path, "null");
      await fill(prefix[index] ?? items, () => form.item(at(), index), depth + 1);
    }
  };
  await fill(description, () => form.top(), 0);
  render(form.view(), place);
  const shown = place.querySelectorAll("textarea, input, select").length;
  place.remove();
  return [form.text, form.drafts.size, shown];
  }
}"""


async def test_whatever_a_form_makes_is_valid(page: Page) -> None:
    schemas = [json.dumps(schema) for schema in generated(SCHEMAS)]
    cases = [[schema, msgspec.to_builtins(describe_form(schema).root), at] for at, schema in enumerate(schemas)]
    made = await page.evaluate(DRIVER, cases)
    wrong = []
    for schema, (text, drafts, shown) in zip(schemas, made, strict=True):
        found = check_value(schema, text)
        if found.errors or found.problem or drafts or not shown:
            wrong.append((schema, text, drafts, shown, found))
    assert wrong[:2] == []


async def test_valid_json_goes_in_and_comes_out_the_same(page: Page) -> None:
    """Whatever the form shows of a text, and whatever is folded out, the text stays as it is."""
    texts = generated(TEXTS, 150)
    schemas = [json.dumps(schema) for schema in generated(SCHEMAS, 150)]
    cases = [
        [schema, msgspec.to_builtins(describe_form(schema).root), text]
        for schema, text in zip(schemas, texts, strict=False)
    ]
    changed = await page.evaluate(
        """async (cases) => {
          const { Form } = await import("./components/form.js");
          const { render } = await import("./vendor/lit-html/lit-html.js");
          const page = await import("./connection.js");
          const place = document.createElement("div");
          document.body.append(place);
          const changed = [];
          for (const [schema, description, text] of cases) {
            const send = async (command, params) =>
              command === "forms/check" ? { errors: [] } : page.send(command, params);
            const form = new Form(schema, text, { send, update: () => {}, redraw: () => {} });
            form.root = description;
            for (const mode of ["form", "text", "form"]) {
              form.mode = mode;
              render(form.view(), place);
            }
            if (form.text !== text || form.document.error) changed.push([schema, text, form.text]);
            for (const field of place.querySelectorAll("textarea.raw")) {
              field.dispatchEvent(new Event("input"));
            }
            if (form.text !== text) changed.push([schema, text, form.text, "typed"]);
          }
          place.remove();
          return changed.slice(0, 3);
        }""",
        cases,
    )
    assert changed == []


async def test_omitted_null_and_empty_are_three_values(page: Page) -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    made = await page.evaluate(
        """async ([schema, description]) => {
          const { Form } = await import("./components/form.js");
          const page = { send: async () => ({ errors: [] }), update: () => {}, redraw: () => {} };
          const form = new Form(schema, "{}", page);
          form.root = description;
          const { node } = description.object.properties[0];
          const at = () => form.member(form.top(), "a");
          const texts = [];
          for (const id of ["string", "null", "omitted"]) {
            form.choose(at(), form.choicesOf(node, at()).find((each) => each.id === id));
            texts.push([form.text, form.current(node, at())]);
          }
          return texts;
        }""",
        [json.dumps(schema), msgspec.to_builtins(describe_form(json.dumps(schema)).root)],
    )
    assert made == [['{\n  "a": ""\n}', "string"], ['{\n  "a": null\n}', "null"], ["{}", "omitted"]]
