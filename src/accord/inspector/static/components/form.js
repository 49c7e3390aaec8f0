// @ts-check
/** A form for a value of any JSON Schema, beside its JSON text: both edit one document (`FormModel`). */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { live } from "../vendor/lit-html/directives/live.js";
import { AS_JSON, FormModel, OMITTED } from "./form_model.js";
import { afterTyping, encodeString, formatJson } from "./json_text.js";

/** @typedef {import("./form_model.js").FormNode} FormNode */
/** @typedef {import("./form_model.js").Place} Place */
/** @typedef {import("./form_model.js").Choice} Choice */
/** @typedef {import("./json_text.js").JsonNode} JsonNode */

const MOST_ITEMS = 200;
const MOST_ERRORS = 50;
const MOST_CHARACTERS = 200_000;
const INPUT_MODES = /** @type {Record<string, string>} */ ({ email: "email", uri: "url", "uri-reference": "url" });

let forms = 0;

/** A form with its view. */
export class Form extends FormModel {
  /**
   * @param {string} schemaJson
   * @param {string} text
   * @param {{ send: (command: string, params: object) => Promise<any>, update: () => void, redraw: () => void }} page
   * @param {string} [title]
   */
  constructor(schemaJson, text, page, title = "Arguments") {
    super(schemaJson, text, page);
    this.title = title;
    this.id = `form-${++forms}`;
    this.mode = "form";
    /** @type {((name: string, value: string, others: Record<string, string>) => Promise<string[]>) | null}
     *  Returns texts that a server suggests for a member of the value. */
    this.completer = null;
    /** @type {Map<string, string[]>} */
    this.completions = new Map();
    /** @type {Map<string, string>} Names of members that are being typed, by key of the object. */
    this.names = new Map();
  }

  view() {
    return html`<section class="form" aria-labelledby="${this.id}-title">
      <h3 id="${this.id}-title">${this.title}</h3>
      ${this.root === null ? html`<p role="status">The form is loading.</p>` : this.modes()} ${this.problemView()}
      ${this.errorList()} ${this.mode === "text" || this.document.error ? this.textView() : this.formView()}
    </section>`;
  }

  modes() {
    const modes = /** @type {[string, string][]} */ ([["form", "Form"], ["text", "JSON text"]]);
    return html`<div class="buttons modes" role="group" aria-label="Edit as">
      ${modes.map(([mode, label]) => html`<button
        type="button" class="quiet" aria-pressed=${this.mode === mode ? "true" : "false"}
        @click=${() => {
          this.mode = mode;
          this.page.update();
        }}
      >${label}</button>`)}
    </div>`;
  }

  problemView() {
    if (this.problem !== null) {
      return html`<p class="note">The schema cannot be used to check values: ${this.problem}. Edit the value as JSON.</p>`;
    }
    return this.checkProblem === null ? nothing : html`<p class="note">The value was not checked: ${this.checkProblem}</p>`;
  }

  /** Errors, also of places that the form does not show. */
  errorList() {
    if (!this.wasSubmitted || this.errors.size === 0) return nothing;
    return html`<div class="error">
      <strong>The value does not match the schema.${this.obstacle ? "" : " It can be sent anyway."}</strong>
      <ul>
        ${[...this.errors].slice(0, MOST_ERRORS).map(([pointer, reasons]) => html`<li>
          <a href="#" @click=${(/** @type {Event} */ event) => this.focus(event, pointer)}><code>${pointer || "the value"}</code></a>:
          ${reasons.join("; ")}
        </li>`)}
      </ul>
    </div>`;
  }

  /**
   * @param {Event} event
   * @param {string} pointer
   */
  focus(event, pointer) {
    event.preventDefault();
    for (let at = pointer; ; at = at.slice(0, at.lastIndexOf("/"))) {
      const field = document.getElementById(this.fieldId(at)) ?? document.getElementById(`${this.fieldId(at)}-choice`);
      if (field) return field.focus();
      if (!at.includes("/")) return undefined;
    }
  }

  textView() {
    const { error } = this.document;
    const note = `${this.id}-text-error`;
    return html`<label for="${this.id}-text"><span>JSON text</span></label>
      <textarea
        id="${this.id}-text" rows="12" spellcheck="false" autocapitalize="off"
        aria-invalid=${error ? "true" : "false"} aria-describedby=${error ? note : nothing}
        .value=${live(this.text)} @input=${(/** @type {Event} */ event) => this.setText(afterTyping(this.text, inputOf(event).value))}
      ></textarea>
      ${error ? html`<p class="field-error" id=${note}>Line ${error.line}, column ${error.column}: ${error.message}</p>` : nothing}
      <p class="buttons"><button type="button" class="quiet" @click=${() => this.setText(formatJson(this.text))}>Format</button></p>`;
  }

  formView() {
    if (this.root === null) return nothing;
    const place = this.top();
    return html`<div class="form-root">${this.noteView(this.root)} ${this.errorView(this.root, place)} ${this.body(this.root, place, true)}</div>`;
  }

  // --- fields ----------------------------------------------------------------------------------------------------

  /** @param {string} pointer */
  fieldId(pointer) {
    return `${this.id}-field-${idPart(pointer)}`;
  }

  /**
   * A field: label, choice, editor, description, errors.
   *
   * @param {FormNode} unresolved
   * @param {Place} place
   * @param {unknown} label
   * @param {unknown} [actions]
   * @returns {unknown}
   */
  field(unresolved, place, label, actions = nothing) {
    const node = this.isClosed(unresolved, place) ? unresolved : this.resolved(unresolved);
    if (node === null) return html`<div class="field"><span class="field-label">${label}</span> <span role="status">loading</span></div>`;
    if (node.expand) return this.closedField(unresolved, place, label, actions);
    const id = this.fieldId(place.pointer);
    const isGroup = this.isGroup(node, place);
    const content = html`
      <div class="field-head">
        ${isGroup
          ? html`<span class="field-label">${label}</span>`
          : html`<label class="field-label" for=${this.hasEditor(node, place) ? id : `${id}-choice`}>${label}</label>`}
        ${marks(node, place)} ${this.choiceView(node, place, label)} ${actions}
      </div>
      ${this.noteView(node, id)} ${this.body(node, place, false)} ${this.errorView(node, place)}
    `;
    return isGroup
      ? html`<fieldset class="field group"><legend class="visually-hidden">${label}</legend>${content}</fieldset>`
      : html`<div class="field">${content}</div>`;
  }

  /** A place that is described on request: it is open once it has a value. */
  isClosed(/** @type {FormNode} */ node, /** @type {Place} */ place) {
    return Boolean(node.expand) && this.value(place) === null && !this.described.has(JSON.stringify(node.expand));
  }

  /**
   * @param {FormNode} node
   * @param {Place} place
   * @param {unknown} label
   * @param {unknown} actions
   */
  closedField(node, place, label, actions) {
    const open = () => {
      this.resolved(node);
      this.page.update();
    };
    return html`<div class="field"><div class="field-head">
      <span class="field-label">${label}</span> ${marks(node, place)}
      <button type="button" class="quiet" id=${this.fieldId(place.pointer)} @click=${open}>Show the fields of ${label}</button> ${actions}
    </div></div>`;
  }

  /**
   * @param {FormNode} node
   * @param {Place} place
   */
  isGroup(node, place) {
    const current = this.current(node, place);
    return ["object", "array"].includes(current) || current.startsWith("alternative ");
  }

  /**
   * Whether an input has the id of the field; otherwise the choice is its control.
   *
   * @param {FormNode} node
   * @param {Place} place
   */
  hasEditor(node, place) {
    const current = this.current(node, place);
    if (current === OMITTED) return textType(node) !== undefined;
    return ["string", "number", "integer", AS_JSON].includes(current);
  }

  /**
   * @param {FormNode} node
   * @param {Place} place
   * @param {unknown} label
   */
  choiceView(node, place, label) {
    const choices = this.choicesOf(node, place);
    const current = this.current(node, place);
    if (place.isInner && choices.length <= 2 && current !== AS_JSON) return nothing;
    const id = `${this.fieldId(place.pointer)}${place.isInner ? `-${idPart(place.key)}` : ""}-choice`;
    const choose = (/** @type {Event} */ event) => {
      const choice = choices.find((each) => each.id === inputOf(event).value);
      if (choice) this.choose(place, choice);
    };
    const shown = choices.some((each) => each.id === current) ? choices : [{ id: current, label: "choose", raw: null }, ...choices];
    return html`<select id=${id} aria-label="Value of ${label}" class="choice" aria-describedby=${this.describedBy(node, place)} @change=${choose} .value=${live(current)}>
      ${shown.map((each) => html`<option value=${each.id} ?selected=${each.id === current}>${shorten(each.label)}</option>`)}
    </select>`;
  }

  /**
   * @param {FormNode} node
   * @param {Place} place
   */
  describedBy(node, place) {
    const id = this.fieldId(place.pointer);
    const ids = [hasNotes(node) ? `${id}-note` : "", this.errorsOf(place, node).length ? `${id}-error` : ""].filter(Boolean);
    return ids.length ? ids.join(" ") : nothing;
  }

  /**
   * @param {FormNode} node
   * @param {string} [id]
   */
  noteView(node, id) {
    if (!hasNotes(node)) return nothing;
    return html`<div class="field-note" id=${id === undefined ? nothing : `${id}-note`}>
      ${node.description ? html`<span class="description" dir="auto">${node.description}</span>` : nothing}
      ${node.format ? html`<span>format ${node.format}</span>` : nothing}
      ${(node.constraints ?? []).map((text) => html`<span dir="auto">${text}</span>`)}
      ${(node.notes ?? []).map((text) => html`<span class="warning">${text}</span>`)}
    </div>`;
  }

  /**
   * @param {FormNode} node
   * @param {Place} place
   */
  errorView(node, place) {
    const errors = this.errorsOf(place, node);
    return errors.length === 0 ? nothing : html`<p class="field-error" id="${this.fieldId(place.pointer)}-error">${errors.join("; ")}</p>`;
  }

  /**
   * Values that the schema suggests.
   *
   * @param {FormNode} node
   * @param {Place} place
   */
  suggestions(node, place) {
    const suggested = /** @type {[string, string][]} */ ([
      ...(node.defaultJson === undefined ? [] : [["default", node.defaultJson]]),
      ...(node.examplesJson ?? []).map((text) => ["example", text]),
    ]);
    if (!suggested.length) return nothing;
    return html`<div class="suggestions">
      ${suggested.map(([kind, text]) => html`<button
        type="button" class="quiet"
        @click=${() => {
          this.forget(place);
          this.set(place, text);
        }}
      >${kind} <code>${shorten(text)}</code></button>`)}
    </div>`;
  }

  // --- editors ---------------------------------------------------------------------------------------------------

  /**
   * The editor of a value.
   *
   * @param {FormNode} node
   * @param {Place} place
   * @param {boolean} isRoot
   * @returns {unknown}
   */
  body(node, place, isRoot) {
    const current = this.current(node, place);
    const choice = isRoot && (current !== "object" || this.choicesOf(node, place).length > 2) ? this.choiceView(node, place, this.title) : nothing;
    return html`${choice} ${this.editor(node, place, current)} ${this.suggestions(node, place)}`;
  }

  /**
   * @param {FormNode} node
   * @param {Place} place
   * @param {string} current
   * @returns {unknown}
   */
  editor(node, place, current) {
    if (current === "object") return this.objectView(node, place);
    if (current === "array") return this.arrayView(node, place);
    if (current.startsWith("alternative ")) return this.alternativeView(node, place, Number(current.slice(12)));
    if (current === AS_JSON) return this.rawView(node, place);
    const type = current === OMITTED ? textType(node) : current;
    if (type === "string") return this.stringView(node, place);
    if (type === "number" || type === "integer") return this.numberView(node, place);
    return nothing;
  }

  /**
   * @param {FormNode} node
   * @param {Place} place
   * @param {number} index
   */
  alternativeView(node, place, index) {
    const unresolved = /** @type {FormNode[]} */ (node.alternatives)[index];
    const inner = this.inside(place, index);
    const alternative = this.resolved(unresolved);
    if (alternative === null) return html`<p role="status">loading</p>`;
    const label = alternative.label ?? "the alternative";
    return html`<div class="alternative">
      ${this.choiceView(alternative, inner, label)} ${this.noteView(alternative)} ${this.body(alternative, inner, false)}
    </div>`;
  }

  /**
   * @param {FormNode} node
   * @param {Place} place
   */
  stringView(node, place) {
    const value = this.value(place);
    const text = value?.type === "string" ? this.document.string(value) : "";
    const state = value === null ? "not sent" : text === "" ? "empty text" : "";
    if (this.completer && place.name !== undefined && place.parent.length === 0 && !text.includes("\n")) return this.completedView(node, place, text, state);
    return html`<textarea
      id=${this.fieldId(place.pointer)} rows="1" spellcheck="false" autocapitalize="off" dir="auto" placeholder=${state || nothing}
      inputmode=${INPUT_MODES[node.format ?? ""] ?? nothing} aria-describedby=${this.describedBy(node, place)}
      aria-invalid=${this.errorsOf(place, node).length ? "true" : "false"} aria-required=${place.required ? "true" : "false"}
      .value=${live(text)} @input=${(/** @type {Event} */ event) => this.set(place, encodeString(inputOf(event).value))}
    ></textarea>`;
  }

  /**
   * A text with suggestions of the server.
   *
   * @param {FormNode} node
   * @param {Place} place
   * @param {string} text
   * @param {string} state
   */
  completedView(node, place, text, state) {
    const id = this.fieldId(place.pointer);
    const name = /** @type {string} */ (place.name);
    const suggest = (/** @type {string} */ typed) => void this.complete(name, typed);
    const type = (/** @type {Event} */ event) => {
      this.set(place, encodeString(inputOf(event).value));
      suggest(inputOf(event).value);
    };
    return html`<input type="text" id=${id} list="${id}-list" autocomplete="off" spellcheck="false" placeholder=${state || nothing}
        aria-describedby=${this.describedBy(node, place)} aria-required=${place.required ? "true" : "false"}
        aria-invalid=${this.errorsOf(place, node).length ? "true" : "false"}
        .value=${live(text)} @focus=${() => suggest(text)} @input=${type}>
      <datalist id="${id}-list">${(this.completions.get(name) ?? []).map((each) => html`<option value=${each}></option>`)}</datalist>`;
  }

  /**
   * @param {string} name
   * @param {string} value
   */
  async complete(name, value) {
    const { [name]: _, ...others } = this.texts();
    const found = await this.completer?.(name, value, others);
    if (found === undefined || (this.texts()[name] ?? "") !== value) return;
    this.completions.set(name, found);
    this.page.update();
  }

  /** Returns the members that are texts. */
  texts() {
    const members = this.document.root?.members ?? [];
    const texts = members.filter(({ value }) => value.type === "string").map(({ name, value }) => [name, this.document.string(value)]);
    return /** @type {Record<string, string>} */ (Object.fromEntries(texts));
  }

  /**
   * @param {FormNode} node
   * @param {Place} place
   */
  numberView(node, place) {
    const value = this.value(place);
    const text = this.drafts.get(place.pointer) ?? (value?.type === "number" ? this.document.raw(value) : "");
    const isOmitted = value === null && !this.drafts.has(place.pointer);
    return html`<input
      type="text" inputmode="decimal" autocomplete="off" spellcheck="false"
      id=${this.fieldId(place.pointer)} placeholder=${isOmitted ? "not sent" : nothing}
      aria-describedby=${this.describedBy(node, place)} aria-required=${place.required ? "true" : "false"}
      aria-invalid=${this.errorsOf(place, node).length ? "true" : "false"}
      .value=${live(text)} @input=${(/** @type {Event} */ event) => this.type(place, inputOf(event).value, "number")}
    >`;
  }

  /**
   * @param {FormNode} node
   * @param {Place} place
   */
  rawView(node, place) {
    const value = this.value(place);
    const text = this.drafts.get(place.pointer) ?? (value === null ? "" : this.document.raw(value));
    if (text.length > MOST_CHARACTERS) return html`<p>${text.length.toLocaleString("en")} characters: edit them in the JSON text.</p>`;
    return html`<textarea
      id=${this.fieldId(place.pointer)} class="raw" rows=${Math.min(12, text.split("\n").length)} spellcheck="false" autocapitalize="off"
      placeholder="JSON" aria-label=${place.name === undefined ? "JSON text" : nothing}
      aria-describedby=${this.describedBy(node, place)} aria-invalid=${this.errorsOf(place, node).length ? "true" : "false"}
      .value=${live(text)} @input=${(/** @type {Event} */ event) => this.type(place, afterTyping(text, inputOf(event).value), "json")}
    ></textarea>`;
  }

  // --- objects and arrays ----------------------------------------------------------------------------------------

  /**
   * @param {FormNode} node
   * @param {Place} place
   */
  objectView(node, place) {
    const object = node.object ?? { additional: { isAny: true } };
    const properties = object.properties ?? [];
    const names = properties.map((each) => each.name);
    const known = new Set(names);
    const members = this.value(place)?.members ?? [];
    const last = new Map(members.map((member, index) => [member.name, index]));
    return html`<div class="members">
      ${properties.map((each) => {
        const inner = this.member(place, each.name, { names, required: each.required ?? false });
        return this.field(each.node, inner, labelOf(each));
      })}
      ${members.map((member, index) => {
        if (last.get(member.name) !== index) return this.duplicate(place, index, member);
        return known.has(member.name) ? nothing : this.namedMember(object, place, index, member.name);
      })}
      ${this.addMember(object, place)}
    </div>`;
  }

  /**
   * @param {Place} place
   * @param {number} index
   * @param {import("./json_text.js").JsonMember} member
   */
  duplicate(place, index, member) {
    return html`<div class="field"><div class="field-head">
      <span class="field-label"><bdi>${member.name}</bdi></span>
      <span class="warning">appears twice; servers read the last one</span> <code>${shorten(this.document.raw(member.value))}</code>
      ${this.removeButton(place, index, member.name)}
    </div></div>`;
  }

  /**
   * A member without a field of its own.
   *
   * @param {import("./form_model.js").ObjectForm} object
   * @param {Place} place
   * @param {number} index
   * @param {string} name
   */
  namedMember(object, place, index, name) {
    const inner = this.member(place, name);
    const patterns = object.patternProperties ?? [];
    const value = /** @type {JsonNode} */ (this.value(inner));
    const nodes = [...patterns.map((each) => each.node), ...(object.additional ? [object.additional] : [])];
    const node = nodes.find((each) => this.score(each, value, 0) >= 0) ?? nodes[0] ?? { isAny: true, notes: ["the schema allows no such member"] };
    return this.field(node, inner, html`<bdi>${name}</bdi>`, this.removeButton(place, index, name));
  }

  /**
   * @param {Place} place
   * @param {number} index
   * @param {string} name
   */
  removeButton(place, index, name) {
    const remove = () => {
      this.forget(place);
      this.document.remove(/** @type {number[]} */ (place.path), index);
      this.changed();
    };
    return html`<button type="button" class="quiet" aria-label="Remove ${name}" @click=${remove}>Remove</button>`;
  }

  /**
   * @param {import("./form_model.js").ObjectForm} object
   * @param {Place} place
   */
  addMember(object, place) {
    if (!object.additional && !object.patternProperties) return nothing;
    const name = this.names.get(place.key) ?? "";
    const members = this.value(place)?.members ?? [];
    const isTaken = members.some((member) => member.name === name) || (object.properties ?? []).some((each) => each.name === name);
    const id = `${this.fieldId(place.pointer)}-${idPart(place.key)}-name`;
    const type = (/** @type {Event} */ event) => {
      this.names.set(place.key, inputOf(event).value);
      this.page.update();
    };
    const add = () => {
      if (isTaken) return;
      this.names.delete(place.key);
      const node = object.patternProperties?.[0]?.node ?? object.additional ?? { isAny: true };
      this.document.insertMember(/** @type {number[]} */ (place.path), name, this.initial(this.resolved(node) ?? node) ?? "null");
      this.changed();
    };
    return html`<details class="add-member" ?open=${Boolean(object.isMap)}>
      <summary>Add a member${patternsText(object)}</summary>
      <div class="buttons">
        <label for=${id}><span>Name</span></label>
        <input id=${id} type="text" autocomplete="off" spellcheck="false" .value=${live(name)} @input=${type}
          @keydown=${(/** @type {KeyboardEvent} */ event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            add();
          }}>
        <button type="button" class="quiet" ?disabled=${isTaken} @click=${add}>Add ${name === "" ? "a member with an empty name" : name}</button>
        ${isTaken ? html`<span class="field-error">there is a member with this name</span>` : nothing}
      </div>
    </details>`;
  }

  /**
   * @param {FormNode} node
   * @param {Place} place
   */
  arrayView(node, place) {
    const array = node.array ?? { items: { isAny: true } };
    const items = this.value(place)?.items ?? [];
    const prefix = array.prefix ?? [];
    const nodeAt = (/** @type {number} */ index) => prefix[index] ?? array.items ?? { isAny: true, notes: ["the schema allows no further item"] };
    const path = /** @type {number[]} */ (place.path);
    const append = () => {
      const next = nodeAt(items.length);
      this.document.appendItem(path, this.initial(this.resolved(next) ?? next) ?? "null");
      this.changed();
    };
    return html`<ol class="items" start="0">
        ${items.slice(0, MOST_ITEMS).map((_, index) => {
          const inner = this.item(place, index);
          return html`<li>${this.field(nodeAt(index), inner, html`item ${index}`, this.itemActions(place, index, items.length))}</li>`;
        })}
      </ol>
      ${items.length === 0 ? html`<p class="muted">an empty list is sent</p>` : nothing}
      ${items.length > MOST_ITEMS ? html`<p>${items.length - MOST_ITEMS} more items: edit them in the JSON text.</p>` : nothing}
      ${array.items || items.length < prefix.length ? html`<button type="button" class="quiet" @click=${append}>Add item ${items.length}</button>` : nothing}`;
  }

  /**
   * @param {Place} place
   * @param {number} index
   * @param {number} count
   */
  itemActions(place, index, count) {
    const path = /** @type {number[]} */ (place.path);
    const change = (/** @type {() => void} */ edit) => {
      this.forget(place);
      edit();
      this.changed();
    };
    return html`
      <button type="button" class="quiet" aria-label="Move item ${index} up" ?disabled=${index === 0}
        @click=${() => change(() => this.document.exchange(path, index - 1))}>↑</button>
      <button type="button" class="quiet" aria-label="Move item ${index} down" ?disabled=${index === count - 1}
        @click=${() => change(() => this.document.exchange(path, index))}>↓</button>
      ${this.removeButton(place, index, `item ${index}`)}
    `;
  }
}

/**
 * @param {Event} event
 * @returns {HTMLInputElement}
 */
function inputOf(event) {
  return /** @type {HTMLInputElement} */ (event.target);
}

/** @param {string} text Any text, also one with half a surrogate pair, as a part of an id. */
function idPart(text) {
  return text.replace(/[^\w-]/g, (character) => `.${character.charCodeAt(0).toString(16)}`);
}

/** @param {string} text */
function shorten(text) {
  return text.length <= 100 ? text : `${text.slice(0, 100)}…`;
}

/**
 * The type of a node whose values are one kind of typed text: its field is there before it has a value.
 *
 * @param {FormNode} node
 */
function textType(node) {
  if (node.isAny || node.values || node.alternatives) return undefined;
  const types = (node.types ?? []).filter((type) => type !== "null");
  return types.length === 1 && ["string", "number", "integer"].includes(types[0]) ? types[0] : undefined;
}

/** @param {FormNode} node */
function hasNotes(node) {
  return Boolean(node.description || node.format || node.constraints?.length || node.notes?.length);
}

/** @param {import("./form_model.js").FormProperty} property */
function labelOf({ name, node }) {
  if (!node.title || node.title === name) return html`<bdi>${name}</bdi>`;
  return html`<bdi>${node.title}</bdi> <code><bdi>${name}</bdi></code>`;
}

/**
 * @param {FormNode} node
 * @param {Place} place
 */
function marks(node, place) {
  const words = [place.required ? "required" : "", node.readOnly ? "read-only" : "", node.writeOnly ? "write-only" : "", node.deprecated ? "deprecated" : ""];
  return words.filter(Boolean).map((word) => html`<span class="mark">${word}</span> `);
}

/** @param {import("./form_model.js").ObjectForm} object */
function patternsText(object) {
  const patterns = (object.patternProperties ?? []).map((each) => each.pattern);
  return patterns.length ? html`, its name matching ${patterns.map((each) => html`<code>${shorten(each)}</code> `)}` : nothing;
}

