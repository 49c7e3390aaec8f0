// @ts-check
/** The screen Comparison: of two messages, two sessions, two servers, or the revisions of a server. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";

/** @typedef {import("../main.js").Context} Context */

const SHOWN = 300;

/** @type {{ key: string, kind: string, parts: string[], result: any, onlyDifferent: boolean, shown: number,
 *   isBusy: boolean }} */
const state = { key: "", kind: "", parts: [], result: null, onlyDifferent: true, shown: SHOWN, isBusy: false };

/** Kinds that start servers: an address alone, which a link of another page may have, does not. */
const STARTS = ["servers", "revisions"];

/** What the user asked for, as the rest of the address. */
let asked = "";

/**
 * Lets the comparison at an address start its servers.
 *
 * @param {string[]} rest
 */
export function ask(rest) {
  asked = rest.join("/");
}

/** @type {import("../main.js").Screen} */
export const screen = {
  load: async (context) => {
    const [kind = "", ...parts] = context.rest;
    const key = context.rest.join("/");
    if (key === state.key && (state.result || state.isBusy)) return;
    const isAllowed = !STARTS.includes(kind) || key === asked;
    asked = "";
    Object.assign(state, { key, kind, parts, result: null, shown: SHOWN, isBusy: Boolean(kind) && isAllowed });
    context.update();
    if (!isAllowed) return;
    try {
      state.result = await compare(kind, parts, context);
      context.announce("the comparison is complete");
    } catch (error) {
      state.key = "";
      throw error;
    } finally {
      state.isBusy = false;
    }
  },
  view: (context) => {
    if (!state.kind) return html`<p>Pin two messages on the <a href=${context.address("timeline")}>timeline</a>, or choose two sessions or servers on the page <a href=${context.address("sessions")}>Sessions</a>.</p>`;
    if (!state.result) return state.isBusy ? html`<p role="status">Comparing…</p>` : startView(context);
    if (state.kind === "messages") return messagesView(context);
    if (state.kind === "sessions") return sessionsView(context);
    return state.result.comparisons.map(surfaceView);
  },
};

/** @param {Context} context */
function startView(context) {
  if (!STARTS.includes(state.kind)) return nothing;
  const start = () => {
    ask(context.rest);
    void context.attempt(() => Promise.resolve(screen.load?.(context)), "load");
  };
  return html`<p>This starts or contacts <bdi>${state.parts.filter(Boolean).join(" and ")}</bdi>, several times.</p>
    <p class="buttons"><button type="button" @click=${start}>Compare</button></p>`;
}

/**
 * @param {string} kind
 * @param {string[]} parts
 * @param {Context} context
 */
function compare(kind, parts, context) {
  const [one, other, third, fourth] = parts;
  switch (kind) {
    case "messages":
      return context.send("traffic/compare", { leftSession: one, left: Number(other), rightSession: third, right: Number(fourth) });
    case "sessions":
      return context.send("session/compare", { left: one, right: other });
    case "servers":
      return context.send("session/compare-servers", { server: one, other });
    case "revisions":
      return context.send("session/compare-servers", { server: one });
    default:
      return null;
  }
}

// --- messages --------------------------------------------------------------------------------------------------

/** @param {Context} context */
function messagesView(context) {
  const [leftSession, left, rightSession, right] = state.parts;
  const { equal, lines, shortened, changes } = state.result;
  const link = (/** @type {string} */ session, /** @type {string} */ row) =>
    html`<a href=${context.address("timeline", context.server?.name ?? "", session, row)}>entry ${row}</a>`;
  return html`
    <p><del>− ${link(leftSession, left)}</del> <ins>+ ${link(rightSession, right)}</ins></p>
    ${equal ? html`<p>The two messages are equal.</p>` : nothing} ${changesView(changes)}
    ${shortened ? html`<p class="warning">The difference is long; this is its beginning.</p>` : nothing}
    ${lines.length ? html`<pre class="difference" tabindex="0" aria-label="Difference">${lines.slice(0, state.shown).map(lineView)}</pre>` : nothing}
    ${moreButton(lines.length, context)}
  `;
}

/** @param {string} line */
function lineView(line) {
  const text = `${line}\n`;
  if (line.startsWith("+")) return html`<ins>${text}</ins>`;
  return line.startsWith("-") ? html`<del>${text}</del>` : text;
}

/**
 * @param {number} count
 * @param {Context} context
 */
function moreButton(count, context) {
  if (count <= state.shown) return nothing;
  const more = () => {
    state.shown *= 4;
    context.update();
  };
  return html`<button type="button" class="quiet" @click=${more}>Show more: ${(count - state.shown).toLocaleString("en")} are left</button>`;
}

// --- surfaces --------------------------------------------------------------------------------------------------

/** @param {any} comparison */
function surfaceView({ old, new: newer, changes }) {
  return html`<section class="card" aria-label="${old} and ${newer}">
    <h2>${old} → ${newer}</h2>
    ${changes.length ? changesView(changes) : html`<p>No differences.</p>`}
  </section>`;
}

/** @param {any[]} changes */
function changesView(changes) {
  if (!changes.length) return nothing;
  const counts = ["breaking", "risky", "safe"].map((kind) => `${changes.filter((each) => each.kind === kind).length} ${kind}`);
  return html`<p>${counts.join(", ")}</p>
    <table>
      <thead><tr><th>Effect</th><th>Place</th><th>Change</th><th>Why</th></tr></thead>
      <tbody>${changes.slice(0, state.shown).map((each) => html`<tr>
        <td><strong class="effect effect-${each.kind}">${each.kind}</strong></td>
        <td><code>${each.place}</code></td><td>${each.what}</td><td>${each.why}</td>
      </tr>`)}</tbody>
    </table>`;
}

// --- sessions --------------------------------------------------------------------------------------------------

/** @param {Context} context */
function sessionsView(context) {
  const { revisions, changes, calls, shortened } = state.result;
  const shown = calls.filter((/** @type {any} */ each) => !state.onlyDifferent || each.outcome !== "equal");
  const toggle = (/** @type {Event} */ event) => {
    state.onlyDifferent = /** @type {HTMLInputElement} */ (event.target).checked;
    context.update();
  };
  return html`
    <section class="card" aria-labelledby="offers-title">
      <h2 id="offers-title">What the servers offer ${revisions.length ? html`<small>${revisions.join(", ")}</small>` : nothing}</h2>
      ${changes.length ? changesView(changes) : html`<p>No differences in the lists that both sessions have.</p>`}
    </section>
    <section class="card" aria-labelledby="responses-title">
      <h2 id="responses-title">Responses to the same requests</h2>
      ${shortened ? html`<p class="warning">There are more than can be compared; these are the first.</p>` : nothing}
      <label class="check"><input type="checkbox" .checked=${state.onlyDifferent} @change=${toggle}> Only differences (${calls.length} requests were compared)</label>
      <table>
        <thead><tr><th>Request</th><th>Responses</th><th></th></tr></thead>
        <tbody>${shown.slice(0, state.shown).map((/** @type {any} */ call) => callView(call, context))}</tbody>
      </table>
      ${moreButton(shown.length, context)}
    </section>
  `;
}

/**
 * @param {any} call
 * @param {Context} context
 */
function callView({ request, outcome, leftRow, rightRow }, context) {
  const [left, right] = state.parts;
  const server = context.server?.name ?? "";
  const link = (/** @type {string} */ session, /** @type {number} */ row) => html`<a href=${context.address("timeline", server, session, String(row))}>entry ${row}</a> `;
  const both = leftRow !== null && rightRow !== null;
  return html`<tr>
    <td>${request}</td>
    <td>${outcome}</td>
    <td>
      ${leftRow === null ? nothing : link(left, leftRow)} ${rightRow === null ? nothing : link(right, rightRow)}
      ${both ? html`<a href=${context.address("compare", server, "messages", left, String(leftRow), right, String(rightRow))}>difference</a>` : nothing}
    </td>
  </tr>`;
}
