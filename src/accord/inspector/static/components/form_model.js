// @ts-check
/**
 * The state of a form: its description from Python, and the document that it edits, which is JSON text.
 *
 * A member that is omitted, null, and an empty text or list are three different values, and each is chosen explicitly.
 * What a user types into a field is never rewritten: a text that is no number stays in the field as a draft, with its
 * error, and the document keeps its value.
 */

import { JsonDocument, canonical, decodeString, isJson, isNumber, parseJson, pointerStep } from "./json_text.js";

/**
 * @typedef {import("./json_text.js").JsonNode} JsonNode
 * @typedef {import("./json_text.js").JsonPath} JsonPath
 * @typedef {{ valueJson: string, title?: string, description?: string }} FormValue
 * @typedef {{ name: string, node: FormNode, required?: boolean }} FormProperty
 * @typedef {{ properties?: FormProperty[], patternProperties?: { pattern: string, node: FormNode }[],
 *   additional?: FormNode, isMap?: boolean }} ObjectForm
 * @typedef {{ prefix?: FormNode[], items?: FormNode }} ArrayForm
 */

/**
 * A node of the description: see `forms/description.py`.
 *
 * @typedef {object} FormNode
 * @property {boolean} [isAny]
 * @property {string[]} [types]
 * @property {string} [title]
 * @property {string} [description]
 * @property {string} [label]
 * @property {FormValue[]} [values]
 * @property {FormNode[]} [alternatives]
 * @property {ObjectForm} [object]
 * @property {ArrayForm} [array]
 * @property {string} [defaultJson]
 * @property {string[]} [examplesJson]
 * @property {string} [format]
 * @property {string[]} [constraints]
 * @property {string[]} [notes]
 * @property {boolean} [readOnly]
 * @property {boolean} [writeOnly]
 * @property {boolean} [deprecated]
 * @property {string[]} [expand]
 */

/**
 * Where a field is: the object around it and its name, or an item, or the root.
 *
 * @typedef {object} Place
 * @property {string} pointer A JSON Pointer.
 * @property {string} key The pointer, and the alternatives that were chosen on the way.
 * @property {JsonPath | null} path Null while it is omitted.
 * @property {JsonPath} parent
 * @property {string} [name] Of a member.
 * @property {string[]} [names] The order of the members around it.
 * @property {boolean} [required]
 * @property {boolean} [isInner] Whether it is the value of an alternative; a choice around it omits it.
 */

/**
 * One choice for a value: `raw` is what it sets, null for a choice that needs text first.
 *
 * @typedef {{ id: string, label: string, raw: string | null }} Choice
 */

export const OMITTED = "omitted";
export const AS_JSON = "json";
const TYPE_LABELS = /** @type {Record<string, string>} */ ({
  string: "text",
  number: "number",
  integer: "integer",
  array: "list",
  object: "object",
});
const TYPES = ["object", "array", "string", "number", "boolean", "null"];
const MOST_DEPTH = 3;

/** The state of one form. */
export class FormModel {
  /**
   * @param {string} schemaJson
   * @param {string} text
   * @param {{ send: (command: string, params: object) => Promise<any>, update: () => void, redraw: () => void }} page
   */
  constructor(schemaJson, text, page) {
    this.schemaJson = schemaJson;
    this.page = page;
    this.document = new JsonDocument(text);
    /** @type {FormNode | null} */
    this.root = null;
    /** @type {string | null} Why the schema cannot be used. */
    this.problem = null;
    /** @type {Map<string, string[]>} Errors of the check, by JSON Pointer. */
    this.errors = new Map();
    /** @type {string | null} Why the value could not be checked. */
    this.checkProblem = null;
    /** @type {Map<string, string>} Texts of fields that are not in the document, by JSON Pointer. */
    this.drafts = new Map();
    /** @type {Map<string, string>} Choices of the user, by key of the place. */
    this.choices = new Map();
    /** @type {Map<string, FormNode | "loading">} Nodes described on request. */
    this.described = new Map();
    /** Whether errors of omitted fields are shown: once the user tried to send. */
    this.wasSubmitted = false;
    this.checks = 0;
    /** @type {(() => void) | null} Called after each change of the document. */
    this.onChange = null;
  }

  /** Requests the description. */
  async load() {
    try {
      const { root, problem } = await this.page.send("forms/describe", { schemaJson: this.schemaJson });
      this.root = root;
      this.problem = problem ?? null;
    } catch (error) {
      this.root = { isAny: true };
      this.problem = messageOf(error);
    }
    this.page.update();
  }

  get text() {
    return this.document.text;
  }

  /** @param {string} text */
  setText(text) {
    this.document.setText(text);
    this.drafts.clear();
    this.choices.clear();
    this.changed();
  }

  changed() {
    this.onChange?.();
    this.page.redraw(); // Fields know their place in the document of what is drawn.
    void this.check();
  }

  /** Checks the document in Python. Returns whether it may be sent without a warning. */
  async check() {
    const number = ++this.checks;
    if (this.document.error) return false;
    const { errors, problem } = await this.requestCheck();
    if (number !== this.checks) return false;
    this.errors = new Map();
    for (const { pointer, reason } of errors) this.errors.set(pointer, [...(this.errors.get(pointer) ?? []), reason]);
    this.checkProblem = problem ?? null;
    this.page.update();
    return this.errors.size === 0;
  }

  /** @returns {Promise<{ errors: { pointer: string, reason: string }[], problem?: string | null }>} */
  async requestCheck() {
    try {
      return await this.page.send("forms/check", { schemaJson: this.schemaJson, valueJson: this.text });
    } catch (error) {
      return { errors: [], problem: messageOf(error) };
    }
  }

  /** Checks the document before it is sent, and shows all errors. */
  async submit() {
    this.wasSubmitted = true;
    const isValid = await this.check();
    this.page.update();
    return isValid && this.drafts.size === 0;
  }

  /** Returns what prevents sending: text that is no JSON, or is in no field of the document. */
  get obstacle() {
    if (this.document.error) return "the text is not valid JSON";
    if (this.drafts.size) return "a field has a text that is not valid: correct it, or write any value under JSON text";
    return "";
  }

  // --- nodes -----------------------------------------------------------------------------------------------------

  /**
   * Returns a node as described so far; null while it is loading.
   *
   * @param {FormNode} node
   * @returns {FormNode | null}
   */
  resolved(node) {
    if (!node.expand) return node;
    const key = JSON.stringify(node.expand);
    const found = this.described.get(key);
    if (found === undefined) {
      this.described.set(key, "loading");
      void this.describe(key, node.expand);
    }
    return found === undefined || found === "loading" ? null : { ...found, label: node.label ?? found.label };
  }

  /**
   * @param {string} key
   * @param {string[]} references
   */
  async describe(key, references) {
    try {
      const { root, problem } = await this.page.send("forms/describe", { schemaJson: this.schemaJson, references });
      this.described.set(key, problem ? { isAny: true, notes: [problem] } : root);
    } catch {
      this.described.set(key, { isAny: true, notes: ["the schema of this place could not be loaded"] });
    }
    this.page.update();
  }

  /**
   * @param {Place} place
   * @returns {JsonNode | null}
   */
  value(place) {
    return place.path === null ? null : this.document.at(place.path);
  }

  // --- places ----------------------------------------------------------------------------------------------------

  /** @returns {Place} */
  top() {
    return { pointer: "", key: "", path: [], parent: [] };
  }

  /**
   * @param {Place} place An object that is in the document.
   * @param {string} name
   * @param {Partial<Place>} [more]
   * @returns {Place}
   */
  member(place, name, more = {}) {
    const parent = /** @type {JsonPath} */ (place.path);
    const index = this.document.indexOf(parent, name);
    const pointer = place.pointer + pointerStep(name);
    return { pointer, key: place.key + pointerStep(name), path: index < 0 ? null : [...parent, index], parent, name, ...more };
  }

  /**
   * @param {Place} place An array that is in the document.
   * @param {number} index
   * @returns {Place}
   */
  item(place, index) {
    const parent = /** @type {JsonPath} */ (place.path);
    return { pointer: `${place.pointer}/${index}`, key: `${place.key}/${index}`, path: [...parent, index], parent };
  }

  /**
   * @param {Place} place
   * @param {number} index
   * @returns {Place} The same place, inside an alternative.
   */
  inside(place, index) {
    return { ...place, key: `${place.key}|${index}`, isInner: true };
  }

  // --- choices ---------------------------------------------------------------------------------------------------

  /**
   * Returns what a user can choose for a place. The last choice is JSON text, which fits any value.
   *
   * @param {FormNode} node
   * @param {Place} place
   * @returns {Choice[]}
   */
  choicesOf(node, place) {
    /** @type {Choice[]} */
    const choices = place.name === undefined || place.isInner ? [] : [{ id: OMITTED, label: "not sent", raw: null }];
    if (node.values) {
      node.values.forEach((value, index) => {
        choices.push({ id: `value ${index}`, label: value.title ?? value.valueJson, raw: value.valueJson });
      });
    } else if (node.alternatives) {
      node.alternatives.forEach((alternative, index) => {
        const { label } = alternative;
        choices.push({ id: `alternative ${index}`, label: label ?? `alternative ${index + 1}`, raw: this.initial(alternative) });
      });
    } else {
      for (const type of node.isAny ? [] : (node.types ?? [])) choices.push(...this.typeChoices(type, node));
    }
    return [...choices, { id: AS_JSON, label: "JSON text", raw: null }];
  }

  /**
   * @param {string} type
   * @param {FormNode} node
   * @returns {Choice[]}
   */
  typeChoices(type, node) {
    if (type === "null") return [{ id: "null", label: "null", raw: "null" }];
    if (type === "boolean") return ["true", "false"].map((raw) => ({ id: raw, label: raw, raw }));
    const raw = { string: '""', array: "[]", object: type === "object" ? this.initialObject(node) : "" }[type] ?? null;
    return [{ id: type, label: TYPE_LABELS[type] ?? type, raw }];
  }

  /**
   * Returns the value that a node begins with, or null if it needs text first.
   *
   * @param {FormNode} node
   * @returns {string | null}
   */
  initial(node) {
    if (node.values) return node.values.length === 1 ? node.values[0].valueJson : null;
    if (node.alternatives || node.isAny || node.expand) return null;
    const first = node.types?.[0];
    if (first === undefined) return null;
    return first === "boolean" ? null : (this.typeChoices(first, node)[0].raw ?? null);
  }

  /**
   * Returns an object with the required members that have only one possible value, such as the name of its kind.
   *
   * @param {FormNode} node
   */
  initialObject(node) {
    const fixed = (node.object?.properties ?? []).filter((each) => each.required && each.node.values?.length === 1);
    const document = new JsonDocument("{}");
    for (const each of fixed) document.insertMember([], each.name, /** @type {FormValue[]} */ (each.node.values)[0].valueJson);
    return document.text.replace(/\n\s*/g, "");
  }

  /**
   * Returns the choice that the value at a place is.
   *
   * @param {FormNode} node
   * @param {Place} place
   * @returns {string}
   */
  current(node, place) {
    const value = this.value(place);
    const chosen = this.choices.get(place.key);
    if (value === null) return chosen ?? OMITTED;
    if (chosen === AS_JSON || node.isAny) return AS_JSON;
    if (node.values) return this.currentValue(node.values, value);
    if (node.alternatives) return this.currentAlternative(node, value, chosen);
    return currentType(node.types ?? [], value, this.document.raw(value), chosen);
  }

  /**
   * @param {FormValue[]} values
   * @param {JsonNode} value
   */
  currentValue(values, value) {
    const own = canonical(this.text, value);
    const index = values.findIndex(({ valueJson }) => canonicalText(valueJson) === own);
    return index < 0 ? AS_JSON : `value ${index}`;
  }

  /**
   * @param {FormNode} node
   * @param {JsonNode} value
   * @param {string | undefined} chosen
   */
  currentAlternative(node, value, chosen) {
    const alternatives = /** @type {FormNode[]} */ (node.alternatives);
    const at = Number(/^alternative (\d+)$/.exec(chosen ?? "")?.[1] ?? -1);
    if (alternatives[at] && hasType(alternatives[at], value)) return /** @type {string} */ (chosen);
    const scores = alternatives.map((each) => this.score(each, value, 0));
    const best = scores.indexOf(Math.max(...scores));
    if (scores[best] >= 0) return `alternative ${best}`;
    const typed = alternatives.findIndex((each) => hasType(each, value));
    return typed < 0 ? AS_JSON : `alternative ${typed}`;
  }

  /**
   * Returns how well a value fits a node; less than 0 if it does not.
   *
   * @param {FormNode} node
   * @param {JsonNode} value
   * @param {number} depth
   * @returns {number}
   */
  score(node, value, depth) {
    if (node.isAny || node.expand || depth > MOST_DEPTH) return 0;
    if (node.values) return this.currentValue(node.values, value) === AS_JSON ? -1 : 5;
    if (node.alternatives) return Math.max(...node.alternatives.map((each) => this.score(each, value, depth + 1)));
    if (!hasType(node, value)) return -1;
    if (value.items) return 1;
    if (!value.members || !node.object) return 1;
    return this.scoreMembers(node.object, value, depth);
  }

  /**
   * @param {ObjectForm} object
   * @param {JsonNode} value
   * @param {number} depth
   */
  scoreMembers(object, value, depth) {
    let score = 1;
    const properties = new Map((object.properties ?? []).map((each) => [each.name, each]));
    const present = new Set();
    for (const member of value.members ?? []) {
      present.add(member.name);
      const property = properties.get(member.name);
      if (!property) {
        if (!object.additional && !object.patternProperties) return -1;
        continue;
      }
      const own = this.score(property.node, member.value, depth + 1);
      if (own < 0) return -1;
      score += own;
    }
    for (const each of properties.values()) if (each.required && !present.has(each.name)) score -= 1;
    return Math.max(0, score);
  }

  // --- edits -----------------------------------------------------------------------------------------------------

  /**
   * Makes a choice of `choicesOf`.
   *
   * @param {Place} place
   * @param {Choice} choice
   */
  choose(place, choice) {
    this.forget(place);
    if (choice.id === OMITTED) return this.omit(place);
    this.choices.set(place.key, choice.id);
    if (choice.raw !== null) return this.set(place, choice.raw);
    if (choice.id === "number" || choice.id === "integer") this.drafts.set(place.pointer, "");
    return this.page.update();
  }

  /** Forgets drafts and choices of a place and of what is inside it. */
  forget(/** @type {Place} */ place) {
    for (const map of [this.drafts, this.choices]) {
      const own = map === this.drafts ? place.pointer : place.key;
      for (const key of map.keys()) if (key === own || key.startsWith(`${own}/`) || key.startsWith(`${own}|`)) map.delete(key);
    }
  }

  /**
   * Sets the value at a place.
   *
   * @param {Place} place
   * @param {string} raw JSON text.
   */
  set(place, raw) {
    this.drafts.delete(place.pointer);
    if (place.path !== null) this.document.replace(place.path, raw);
    else this.document.insertMember(place.parent, /** @type {string} */ (place.name), raw, place.names);
    this.changed();
  }

  /** @param {Place} place */
  omit(place) {
    this.drafts.delete(place.pointer);
    if (place.path !== null && place.path.length) this.document.remove(place.parent, place.path[place.path.length - 1]);
    this.changed();
  }

  /**
   * Takes what was typed into a field for a number, or for JSON text.
   *
   * @param {Place} place
   * @param {string} text
   * @param {"number" | "json"} kind
   */
  type(place, text, kind) {
    if (kind === "number" ? isNumber(text) : isJson(text)) return this.set(place, text);
    this.drafts.set(place.pointer, text);
    if (kind === "json") this.choices.set(place.key, AS_JSON);
    return this.page.update();
  }

  /**
   * Returns the errors of a place: of the text in its field, and of the check.
   *
   * @param {Place} place
   * @param {FormNode} node
   */
  errorsOf(place, node) {
    if (this.drafts.has(place.pointer)) return [draftError(node, this.choices.get(place.key) === AS_JSON)];
    if (this.value(place) === null && !this.wasSubmitted) return [];
    return this.errors.get(place.pointer) ?? [];
  }
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/**
 * @param {FormNode} node
 * @param {boolean} isText
 */
function draftError(node, isText) {
  if (isText || node.isAny) return "this is not valid JSON, and is not sent";
  return `this is not ${node.types?.includes("number") ? "a number" : "an integer"}, and is not sent`;
}

/** @param {string} text */
function canonicalText(text) {
  const { root } = parseJson(text);
  return root === null ? text : canonical(text, root);
}

/**
 * @param {FormNode} node
 * @param {JsonNode} value
 */
function hasType(node, value) {
  if (node.isAny || node.expand) return true;
  const types = node.types ?? [];
  return types.includes(value.type) || (value.type === "number" && types.includes("integer"));
}

/**
 * @param {string[]} types
 * @param {JsonNode} value
 * @param {string} raw
 * @param {string | undefined} chosen
 */
function currentType(types, value, raw, chosen) {
  if (value.type === "number") {
    if (chosen && ["number", "integer"].includes(chosen) && types.includes(chosen)) return chosen;
    return types.find((type) => type === "number" || type === "integer") ?? AS_JSON;
  }
  if (!TYPES.includes(value.type) || !types.includes(value.type)) return AS_JSON;
  if (value.type === "string" && !isPlain(raw)) return AS_JSON;
  return value.type === "boolean" ? raw : value.type;
}

/** @param {string} raw Whether a text field shows a string as it is: it would change some control characters. */
function isPlain(raw) {
  const value = decodeString(raw);
  return !/[\u0000-\u0008\u000b-\u001f]/.test(value) && !/\p{Surrogate}/u.test(value);
}
