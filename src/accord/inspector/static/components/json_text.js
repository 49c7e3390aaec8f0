// @ts-check
/**
 * JSON as text: a parser that keeps the place of each value, and edits that replace one place and nothing else.
 *
 * JavaScript loses 9007199254740993 and 1.0, and an object loses duplicate names. So a document is its text: numbers
 * are never converted, and whatever an edit does not touch stays as it was written, byte for byte.
 */

/**
 * A value in a text, from `start` to `end`.
 *
 * @typedef {object} JsonNode
 * @property {"object" | "array" | "string" | "number" | "boolean" | "null"} type
 * @property {number} start
 * @property {number} end
 * @property {JsonMember[]} [members] Of an object, in order, duplicates too.
 * @property {JsonNode[]} [items] Of an array.
 */

/**
 * @typedef {object} JsonMember
 * @property {string} name
 * @property {number} start The start of the name.
 * @property {number} nameEnd
 * @property {JsonNode} value
 */

/** @typedef {{ message: string, offset: number, line: number, column: number }} JsonTextError */

const MOST_DEPTH = 1000;
const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const STRING = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y;
const WORD = /true|false|null/y;

class Parser {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  /** @returns {JsonNode} */
  document() {
    this.space();
    const node = this.value(0);
    this.space();
    if (this.at < this.text.length) this.fail("text after the end of the value");
    return node;
  }

  space() {
    SPACE.lastIndex = this.at;
    SPACE.exec(this.text);
    this.at = SPACE.lastIndex;
  }

  /**
   * @param {number} depth
   * @returns {JsonNode}
   */
  value(depth) {
    if (depth > MOST_DEPTH) this.fail(`nested more than ${MOST_DEPTH} levels deep`);
    const first = this.text[this.at];
    if (first === "{") return this.object(depth);
    if (first === "[") return this.array(depth);
    const start = this.at;
    if (first === '"') return { type: "string", start, end: this.string() };
    if (this.skip(WORD)) return { type: first === "n" ? "null" : "boolean", start, end: this.at };
    if (this.skip(NUMBER)) return { type: "number", start, end: this.at };
    return this.fail(first === undefined ? "the text ends where a value is expected" : "a value is expected");
  }

  /** @param {RegExp} pattern */
  skip(pattern) {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.text)) return false;
    this.at = pattern.lastIndex;
    return true;
  }

  string() {
    if (!this.skip(STRING)) {
      this.fail(this.text[this.at] === '"' ? "this string is not valid, or does not end" : "a name in quotes is expected");
    }
    return this.at;
  }

  /**
   * @param {number} depth
   * @returns {JsonNode}
   */
  object(depth) {
    const start = this.at;
    /** @type {JsonMember[]} */
    const members = [];
    this.parts("}", () => {
      const from = this.at;
      const nameEnd = this.string();
      this.space();
      this.expect(":");
      this.space();
      members.push({ name: decodeString(this.text.slice(from, nameEnd)), start: from, nameEnd, value: this.value(depth + 1) });
    });
    return { type: "object", start, end: this.at, members };
  }

  /**
   * @param {number} depth
   * @returns {JsonNode}
   */
  array(depth) {
    const start = this.at;
    /** @type {JsonNode[]} */
    const items = [];
    this.parts("]", () => items.push(this.value(depth + 1)));
    return { type: "array", start, end: this.at, items };
  }

  /**
   * Reads the parts of an object or array, separated by commas, to its end.
   *
   * @param {string} close
   * @param {() => void} read
   */
  parts(close, read) {
    this.at += 1;
    this.space();
    if (this.text[this.at] === close) {
      this.at += 1;
      return;
    }
    for (;;) {
      read();
      this.space();
      if (this.text[this.at] === close) break;
      this.expect(",", close);
      this.space();
    }
    this.at += 1;
  }

  /**
   * @param {string} character
   * @param {string} [other]
   */
  expect(character, other) {
    if (this.text[this.at] !== character) this.fail(`${[character, other].filter(Boolean).join(" or ")} is expected`);
    this.at += 1;
  }

  /**
   * @param {string} message
   * @returns {never}
   */
  fail(message) {
    const before = this.text.slice(0, this.at).split("\n");
    const error = new SyntaxError(message);
    throw Object.assign(error, { offset: this.at, line: before.length, column: before[before.length - 1].length + 1 });
  }
}

/**
 * Parses a text.
 *
 * @param {string} text
 * @returns {{ root: JsonNode, error: null } | { root: null, error: JsonTextError }}
 */
export function parseJson(text) {
  try {
    return { root: new Parser(text).document(), error: null };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { message, offset, line, column } = /** @type {SyntaxError & JsonTextError} */ (error);
    return { root: null, error: { message, offset, line, column } };
  }
}

/** @param {string} text */
export function isJson(text) {
  return parseJson(text).error === null;
}

/** @param {string} text Whether it is one number, without white space. */
export function isNumber(text) {
  NUMBER.lastIndex = 0;
  return NUMBER.test(text) && NUMBER.lastIndex === text.length;
}

/** @param {string} text A string of JSON, with its quotes. */
export function decodeString(text) {
  return /** @type {string} */ (JSON.parse(text));
}

/** @param {string} value */
export function encodeString(value) {
  return JSON.stringify(value);
}

/** @param {string} value One step of a JSON Pointer. */
export function pointerStep(value) {
  return `/${value.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/**
 * Returns a text after a user changed it in a field, which shows each line break as one character: all that the user
 * did not touch stays as it was.
 *
 * @param {string} text
 * @param {string} value The value of the field.
 */
export function afterTyping(text, value) {
  if (!text.includes("\r")) return value;
  const places = [...text.matchAll(/\r\n|[^]/g)].map((match) => match.index);
  const shown = text.replace(/\r\n?/g, "\n");
  const least = Math.min(shown.length, value.length);
  let start = 0;
  while (start < least && shown[start] === value[start]) start += 1;
  let end = 0;
  while (end < least - start && shown[shown.length - 1 - end] === value[value.length - 1 - end]) end += 1;
  const at = (/** @type {number} */ index) => places[index] ?? text.length;
  return text.slice(0, at(start)) + value.slice(start, value.length - end) + text.slice(at(shown.length - end));
}

// --- equality and format -----------------------------------------------------------------------------------------

/**
 * Returns a text that is the same for equal values: 1.0 and 1, or objects whose members have another order.
 *
 * @param {string} text
 * @param {JsonNode} node
 * @returns {string}
 */
export function canonical(text, node) {
  if (node.type === "number") return canonicalNumber(text.slice(node.start, node.end));
  if (node.type === "string") return encodeString(decodeString(text.slice(node.start, node.end)));
  if (node.items) return `[${node.items.map((item) => canonical(text, item)).join()}]`;
  if (!node.members) return text.slice(node.start, node.end);
  const last = new Map(node.members.map(({ name, value }) => [name, value]));
  const names = [...last.keys()].sort();
  return `{${names.map((name) => `${encodeString(name)}:${canonical(text, /** @type {JsonNode} */ (last.get(name)))}`).join()}}`;
}

/** @param {string} text */
function canonicalNumber(text) {
  const [, sign, whole, fraction = "", exponent = "0"] = /** @type {RegExpExecArray} */ (
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text)
  );
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (!significant) return "0";
  const shift = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - significant.length);
  return `${sign}${significant}e${shift}`;
}

/**
 * Returns a text with one member or item per line; all values stay as they are written.
 *
 * @param {string} text
 */
export function formatJson(text) {
  const { root } = parseJson(text);
  if (root === null) return text;
  /** @type {string[]} */
  const parts = [];
  writeIndented(text, root, "\n", parts);
  return parts.join("");
}

/**
 * @param {string} text
 * @param {JsonNode} node
 * @param {string} line A line break and the indentation of the node.
 * @param {string[]} parts
 */
function writeIndented(text, node, line, parts) {
  const inside = node.members ?? node.items;
  if (!inside?.length) {
    parts.push(inside ? (node.members ? "{}" : "[]") : text.slice(node.start, node.end));
    return;
  }
  parts.push(node.members ? "{" : "[");
  inside.forEach((part, index) => {
    parts.push(index ? "," : "", `${line}  `);
    if ("value" in part) parts.push(text.slice(part.start, part.nameEnd), ": ");
    writeIndented(text, "value" in part ? part.value : part, `${line}  `, parts);
  });
  parts.push(line, node.members ? "}" : "]");
}

// --- edits -------------------------------------------------------------------------------------------------------

/**
 * @param {string} text
 * @param {number} start
 * @param {number} end
 * @param {string} replacement
 */
function splice(text, start, end, replacement) {
  return text.slice(0, start) + replacement + text.slice(end);
}

/** @param {JsonNode} node @returns {{ start: number, end: number }[]} */
function spans(node) {
  if (node.items) return node.items;
  return (node.members ?? []).map((member) => ({ start: member.start, end: member.value.end }));
}

/** @param {string} text @param {number} at */
function indentation(text, at) {
  const line = text.slice(text.lastIndexOf("\n", at - 1) + 1, at);
  return /^[ \t]*/.exec(line)?.[0] ?? "";
}

/**
 * Inserts a part at an index of an object or array, with the white space of the parts beside it.
 *
 * @param {string} text
 * @param {JsonNode} node
 * @param {number} index
 * @param {string} part
 */
function insertPart(text, node, index, part) {
  const parts = spans(node);
  if (!parts.length) {
    const isOnOneLine = node.start > 0 && !text.includes("\n");
    if (isOnOneLine) return splice(text, node.start + 1, node.end - 1, part);
    const line = `\n${indentation(text, node.start)}`;
    return splice(text, node.start + 1, node.end - 1, `${line}  ${part}${line}`);
  }
  const before = text.slice(node.start + 1, parts[0].start);
  const between = parts.length > 1 ? (/[ \t\n\r]*$/.exec(text.slice(parts[0].end, parts[1].start))?.[0] ?? "") : before || " ";
  if (index < parts.length) return splice(text, parts[index].start, parts[index].start, `${part},${between}`);
  const { end } = parts[parts.length - 1];
  return splice(text, end, end, `,${between}${part}`);
}

/**
 * @param {string} text
 * @param {JsonNode} node
 * @param {number} index
 */
function removePart(text, node, index) {
  const parts = spans(node);
  if (parts.length === 1) return splice(text, node.start + 1, node.end - 1, "");
  if (index === 0) return splice(text, parts[0].start, parts[1].start, "");
  return splice(text, parts[index - 1].end, parts[index].end, "");
}

/**
 * The place of a value in a document: indexes of members and items, from the root.
 *
 * @typedef {number[]} JsonPath
 */

/** A document that is edited: as a text, or by its values. `root` is null while the text is not valid JSON. */
export class JsonDocument {
  /** @param {string} text */
  constructor(text) {
    /** @type {JsonNode | null} */
    this.root = null;
    /** @type {JsonTextError | null} */
    this.error = null;
    this.text = "";
    this.setText(text);
  }

  /** @param {string} text */
  setText(text) {
    this.text = text;
    ({ root: this.root, error: this.error } = parseJson(text));
  }

  /**
   * Returns the value at a place, or null.
   *
   * @param {JsonPath} path
   * @returns {JsonNode | null}
   */
  at(path) {
    /** @type {JsonNode | null | undefined} */
    let node = this.root;
    for (const index of path) node = node?.items?.[index] ?? node?.members?.[index]?.value;
    return node ?? null;
  }

  /** @param {JsonNode} node */
  raw(node) {
    return this.text.slice(node.start, node.end);
  }

  /** @param {JsonNode} node A string. */
  string(node) {
    return decodeString(this.raw(node));
  }

  /**
   * Returns the index of a member, of the last one for duplicates; -1 if there is none.
   *
   * @param {JsonPath} path
   * @param {string} name
   */
  indexOf(path, name) {
    return this.at(path)?.members?.findLastIndex((member) => member.name === name) ?? -1;
  }

  /**
   * Replaces the value at a place.
   *
   * @param {JsonPath} path
   * @param {string} raw
   */
  replace(path, raw) {
    const node = this.required(path);
    this.setText(splice(this.text, node.start, node.end, raw));
  }

  /**
   * Adds a member to the object at a place, after those before it in the order of `names`.
   *
   * @param {JsonPath} path
   * @param {string} name
   * @param {string} raw
   * @param {string[]} [names]
   */
  insertMember(path, name, raw, names = []) {
    const node = this.required(path);
    const before = new Set(names.slice(0, Math.max(0, names.indexOf(name))));
    const last = node.members?.findLastIndex((member) => before.has(member.name)) ?? -1;
    const index = names.includes(name) ? last + 1 : (node.members?.length ?? 0);
    this.setText(insertPart(this.text, node, index, `${encodeString(name)}: ${raw}`));
    return index;
  }

  /**
   * @param {JsonPath} path
   * @param {number} index
   * @param {string} name
   */
  renameMember(path, index, name) {
    const member = this.required(path).members?.[index];
    if (member) this.setText(splice(this.text, member.start, member.nameEnd, encodeString(name)));
  }

  /**
   * @param {JsonPath} path
   * @param {string} raw
   */
  appendItem(path, raw) {
    const node = this.required(path);
    this.setText(insertPart(this.text, node, node.items?.length ?? 0, raw));
  }

  /**
   * Removes a member or an item.
   *
   * @param {JsonPath} path
   * @param {number} index
   */
  remove(path, index) {
    this.setText(removePart(this.text, this.required(path), index));
  }

  /**
   * Exchanges two neighbours of an array.
   *
   * @param {JsonPath} path
   * @param {number} index
   */
  exchange(path, index) {
    const [first, second] = /** @type {JsonNode[]} */ (this.required(path).items).slice(index, index + 2);
    const between = this.text.slice(first.end, second.start);
    this.setText(splice(this.text, first.start, second.end, this.raw(second) + between + this.raw(first)));
  }

  /** @param {JsonPath} path */
  required(path) {
    const node = this.at(path);
    if (node === null) throw new RangeError(`the document has no value at ${path.join("/") || "its root"}`);
    return node;
  }

  /**
   * Returns the place of a JSON Pointer, as far as the document has it, and the pointers of what is missing.
   *
   * @param {string} pointer
   * @returns {JsonPath | null}
   */
  resolve(pointer) {
    /** @type {JsonPath} */
    const path = [];
    for (const step of pointer.split("/").slice(1)) {
      const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
      const index = this.at(path)?.items ? Number(name) : this.indexOf(path, name);
      if (index < 0 || this.at([...path, index]) === null) return null;
      path.push(index);
    }
    return path;
  }
}
