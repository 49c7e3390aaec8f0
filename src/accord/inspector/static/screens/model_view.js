// @ts-check
/** The screen Model view: the catalogue of tools as a model reads it: tokens, names that look alike, hidden characters. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { perServer } from "../components/per_server.js";

/** @typedef {import("../main.js").Context} Context */

/**
 * What the screen shows of one server.
 *
 * @typedef {object} ModelScreen
 * @property {number} connection The connection that it is of.
 * @property {any} catalogue The answer of `model/catalogue`, or null.
 * @property {string} sort
 * @property {number} count How many tools are shown.
 * @property {Map<number, any>} details The answers of `model/tool`, by the number of the tool.
 * @property {Set<number>} open
 */

const ROWS = 100;
const SORTS = [
  ["tokens", "tokens"],
  ["name", "name"],
  ["hidden", "hidden characters"],
  ["order", "order of the server"],
];

const screenOf = perServer(
  /** @returns {ModelScreen} */
  ({ server }) => ({ connection: server.connections, catalogue: null, sort: "tokens", count: ROWS, details: new Map(), open: new Set() }),
);

/** @type {import("../main.js").Screen} */
export const screen = {
  perServer: true,
  load: (context) => load(context, false),
  view: (context) => {
    const shown = screenOf(context);
    if (!shown.catalogue) return html`<p>The tools are requested.</p>`;
    return html`${totalsView(shown.catalogue)} ${alikeView(shown.catalogue)} ${toolsView(context, shown)}`;
  },
  actions: (context) =>
    context.server ? [{ title: "Request the tools again", run: () => void context.attempt(() => load(context, true)) }] : [],
};

/**
 * @param {Context} context
 * @param {boolean} fresh
 */
async function load(context, fresh) {
  const shown = screenOf(context);
  const { server, send } = context;
  if (fresh || shown.connection !== server.connections) {
    shown.connection = server.connections;
    shown.details.clear();
    shown.open.clear();
  }
  shown.catalogue = await send("model/catalogue", { server: server.name, sort: shown.sort, count: shown.count, fresh });
  context.update();
}

/** @param {number} number */
function digits(number) {
  return number.toLocaleString("en");
}

/** @param {any} catalogue */
function totalsView(catalogue) {
  const facts = [
    ["Tools", digits(catalogue.total)],
    ["Tokens of their definitions", digits(catalogue.tokens)],
    ["Tokens that hosts send", digits(catalogue.sentTokens)],
    ["Hidden characters", digits(catalogue.hidden)],
  ];
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <p class="muted">Tokens are estimated as <code>search_tools</code> does: a token for every 4 bytes of JSON. Hosts send
      the name, the description and the input schema.</p>
    ${catalogue.analyzed < catalogue.total ? html`<p>Only the first ${digits(catalogue.analyzed)} tools are counted.</p>` : nothing}
    ${catalogue.fields.length
      ? html`<table class="model-fields">
          <caption>Tokens by field, of all tools</caption>
          <thead><tr><th scope="col">Field</th><th scope="col">Tokens</th><th scope="col">Sent to a model</th></tr></thead>
          <tbody>${catalogue.fields.map(fieldRow)}</tbody>
        </table>`
      : nothing}`;
}

/** @param {any} field */
function fieldRow(field) {
  return html`<tr><th scope="row"><code>${field.name}</code></th><td>${digits(field.tokens)}</td><td>${field.isSent ? "yes" : "no"}</td></tr>`;
}

/** @param {any} catalogue */
function alikeView(catalogue) {
  if (!catalogue.alike.length) return nothing;
  return html`<section class="card" aria-labelledby="alike">
    <h2 id="alike">Names that look alike</h2>
    <ul>${catalogue.alike.map(
      (/** @type {any} */ group) => html`<li>${group.names.map((/** @type {string} */ name) => html`<code>${name}</code> `)}: ${group.reason}</li>`,
    )}</ul>
  </section>`;
}

/**
 * @param {Context} context
 * @param {ModelScreen} shown
 */
function toolsView(context, shown) {
  const { catalogue } = shown;
  const sort = (/** @type {Event} */ event) => {
    shown.sort = /** @type {HTMLSelectElement} */ (event.target).value;
    void context.attempt(() => load(context, false));
  };
  const more = () => {
    shown.count += ROWS;
    void context.attempt(() => load(context, false));
  };
  return html`<p class="buttons">
      <label><span>Sort by</span><select @change=${sort}>
        ${SORTS.map(([value, label]) => html`<option value=${value} ?selected=${value === shown.sort}>${label}</option>`)}
      </select></label>
      <button type="button" class="quiet" @click=${() => context.attempt(() => load(context, true))}>Request the tools again</button>
    </p>
    <ul class="model-tools" aria-label="Tools">
      ${repeat(catalogue.rows, (row) => row.number, (row) => toolView(row, context, shown))}
    </ul>
    ${catalogue.rows.length < catalogue.analyzed
      ? html`<p class="buttons"><button type="button" class="quiet" @click=${more}>Show more of ${digits(catalogue.analyzed)} tools</button></p>`
      : nothing}`;
}

/**
 * @param {any} row
 * @param {Context} context
 * @param {ModelScreen} shown
 */
function toolView(row, context, shown) {
  const isOpen = shown.open.has(row.number);
  const detail = shown.details.get(row.number);
  const toggle = () => {
    if (shown.open.delete(row.number)) return context.update();
    shown.open.add(row.number);
    void context.attempt(async () => {
      shown.details.set(row.number, await context.send("model/tool", { server: context.server.name, number: row.number }));
    });
  };
  return html`<li>
    <button type="button" class="quiet" aria-expanded=${isOpen} aria-controls="model-${row.number}" @click=${toggle}>
      <code>${row.name}</code> ${digits(row.tokens)} tokens
    </button>
    <span class="muted">${digits(row.sentTokens)} sent; ${row.fields
      .map((/** @type {any} */ each) => `${each.name} ${digits(each.tokens)}`)
      .join(", ")}</span>
    ${row.hidden ? html`<strong class="hidden-count">${digits(row.hidden)} hidden characters</strong>` : nothing}
    <div id="model-${row.number}" ?hidden=${!isOpen}>${isOpen && detail ? detailView(detail) : nothing}</div>
  </li>`;
}

/** @param {any} detail */
function detailView(detail) {
  return html`
    ${detail.hidden.length
      ? html`<h3>Hidden characters</h3>
          <ul>${detail.hidden.map(
            (/** @type {any} */ each) => html`<li><code>${each.path}</code>: ${digits(each.count)} in <q>${each.text}</q>
              ${each.message ? html`<br><strong>They say: ${each.message}</strong>` : nothing}</li>`,
          )}</ul>`
      : nothing}
    <h3>As a model reads it</h3>
    <pre tabindex="0">${detail.definition.map((/** @type {any} */ run) =>
      run.isHidden ? html`<mark class="hidden-characters">${run.text}</mark>` : run.text,
    )}</pre>
    ${detail.isShortened ? html`<p class="muted">The definition is longer, and shortened here.</p>` : nothing}
    ${detail.arguments.length
      ? html`<table class="model-fields">
          <caption>Tokens by argument</caption>
          <thead><tr><th scope="col">Argument</th><th scope="col">Tokens</th></tr></thead>
          <tbody>${detail.arguments.map(
            (/** @type {any} */ each) => html`<tr><th scope="row"><code>${each.name}</code></th><td>${digits(each.tokens)}</td></tr>`,
          )}</tbody>
        </table>`
      : nothing}
  `;
}
