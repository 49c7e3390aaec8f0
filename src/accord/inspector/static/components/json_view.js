// @ts-check
/** JSON to read: indented and folded, every value as it was written. Only the lines in sight are in the page. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { ref } from "../vendor/lit-html/directives/ref.js";
import { parseJson } from "./json_text.js";

/** @typedef {import("./json_text.js").JsonNode} JsonNode */

/**
 * One line: a value, or the begin or end of an object or array.
 *
 * @typedef {object} Line
 * @property {number} depth
 * @property {string} name The name before the value, as JSON, or "".
 * @property {string} text
 * @property {string} kind
 * @property {JsonNode | null} folds What the line begins, if it can be folded.
 */

const LINE_PIXELS = 20;
const MARGIN = 20;
const MOST_TEXT = 500;
const FEW = 100;

/** A view of one text. */
export class JsonView {
  /**
   * @param {string} text
   * @param {() => void} update
   * @param {string} label
   */
  constructor(text, update, label) {
    this.text = text;
    this.update = update;
    this.label = label;
    this.root = parseJson(text).root;
    /** @type {Set<JsonNode>} */
    this.folded = new Set();
    this.from = 0;
    this.height = 480;
    /** @type {Line[] | null} */
    this.lines = null;
  }

  view() {
    if (this.root === null) return html`<pre tabindex="0" aria-label=${this.label}>${this.text}</pre>`;
    this.lines ??= this.allLines();
    const isLong = this.lines.length > FEW;
    const from = isLong ? Math.max(0, this.from - MARGIN) : 0;
    const to = isLong ? this.from + Math.ceil(this.height / LINE_PIXELS) + MARGIN : this.lines.length;
    const total = this.lines.length;
    return html`<div class="json-view ${isLong ? "long" : ""}" tabindex="0" role="region" aria-label=${this.label} @scroll=${(/** @type {Event} */ event) => this.onScroll(event)}>
      <div class="json-space" ${ref((/** @type {Element | undefined} */ element) => isLong && setHeight(element, total * LINE_PIXELS))}>
        <div class="json-lines" ${ref((/** @type {Element | undefined} */ element) => setOffset(element, from * LINE_PIXELS))}>
          ${this.lines.slice(from, to).map((line) => this.lineView(line))}
        </div>
      </div>
    </div>`;
  }

  /** @param {Event} event */
  onScroll(event) {
    const element = /** @type {HTMLElement} */ (event.currentTarget);
    this.height = element.clientHeight;
    const from = Math.floor(element.scrollTop / LINE_PIXELS);
    if (Math.abs(from - this.from) < MARGIN / 2) return;
    this.from = from;
    this.update();
  }

  /** @param {Line} line */
  lineView(line) {
    const { folds } = line;
    const fold = folds === null ? nothing : html`<button
      type="button" class="fold" aria-expanded=${this.folded.has(folds) ? "false" : "true"} aria-label="Fold ${line.name || "the value"}"
      @click=${() => this.fold(folds)}
    >${this.folded.has(folds) ? "▸" : "▾"}</button>`;
    return html`<div class="json-line"><span class="json-indent">${"  ".repeat(Math.min(line.depth, 100))}</span>${fold}${
      line.name ? html`<span class="json-name">${line.name}</span>: ` : nothing
    }<span class="json-${line.kind}">${line.text}</span></div>`;
  }

  /** @param {JsonNode} node */
  fold(node) {
    if (!this.folded.delete(node)) this.folded.add(node);
    this.lines = null;
    this.update();
  }

  allLines() {
    /** @type {Line[]} */
    const lines = [];
    this.addLines(/** @type {JsonNode} */ (this.root), 0, "", "", lines);
    return lines;
  }

  /**
   * @param {JsonNode} node
   * @param {number} depth
   * @param {string} name
   * @param {string} comma
   * @param {Line[]} lines
   */
  addLines(node, depth, name, comma, lines) {
    const parts = node.members ?? node.items;
    if (!parts?.length) {
      const raw = parts ? (node.members ? "{}" : "[]") : this.text.slice(node.start, node.end);
      lines.push({ depth, name, text: shorten(raw) + comma, kind: node.type, folds: null });
      return;
    }
    const [open, close] = node.members ? ["{", "}"] : ["[", "]"];
    const isFolded = this.folded.has(node);
    const count = `${parts.length} ${node.members ? "members" : "items"}`;
    lines.push({ depth, name, text: isFolded ? `${open} ${count} ${close}${comma}` : open, kind: "object", folds: node });
    if (isFolded) return;
    parts.forEach((part, index) => {
      const separator = index + 1 < parts.length ? "," : "";
      if ("value" in part) this.addLines(part.value, depth + 1, shorten(this.text.slice(part.start, part.nameEnd)), separator, lines);
      else this.addLines(part, depth + 1, "", separator, lines);
    });
    lines.push({ depth, name: "", text: close + comma, kind: "object", folds: null });
  }
}

/** @param {string} text */
function shorten(text) {
  return text.length <= MOST_TEXT ? text : `${text.slice(0, MOST_TEXT)}… (${text.length.toLocaleString("en")} characters)`;
}

/**
 * @param {Element | undefined} element
 * @param {number} pixels
 */
function setHeight(element, pixels) {
  if (element instanceof HTMLElement) element.style.height = `${pixels}px`;
}

/**
 * @param {Element | undefined} element
 * @param {number} pixels
 */
function setOffset(element, pixels) {
  if (element instanceof HTMLElement) element.style.transform = pixels ? `translateY(${pixels}px)` : "";
}
