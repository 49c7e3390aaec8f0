// @ts-check
/** The screen Raw requests: any bytes, method and headers to a server, and the rows of the traffic that come back. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";

/** @typedef {import("../main.js").Context} Context */

const PING = '{"jsonrpc": "2.0", "id": "raw-1", "method": "ping"}';
const DISCOVER = `{
  "jsonrpc": "2.0", "id": "raw-1", "method": "server/discover",
  "params": {"_meta": {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}
  }}
}`.replaceAll(/\n\s*/g, " ");
const METHODS = ["POST", "GET", "PUT", "DELETE", "OPTIONS"];
const ROWS_SHOWN = 20;
const PAUSE_MILLISECONDS = 300;

/** @type {{ server: string, era: string, connections: any[], connection: number, text: string, isBase64: boolean, method: string,
 *   headers: string, revision: string, problems: string[] | null, sent: any, rows: any[], timer: number }} */
const state = {
  server: "", era: "", connections: [], connection: 0, text: "", isBase64: false, method: "POST", headers: "", revision: "",
  problems: null, sent: null, rows: [], timer: 0,
};

/** @type {import("../main.js").Screen} */
export const screen = {
  perServer: true,
  topics: ["traffic"],
  load,
  view: (context) => html`
    ${connectionsView(context)} ${messageView(context)} ${state.sent ? rowsView(context) : nothing}
  `,
  actions: (context) => [{ title: "Send the raw request", run: () => void send(context, false) }],
};

/** @param {Context} context */
async function load(context) {
  const { name: server, era } = context.server;
  if (server !== state.server || era !== state.era) {
    if (["", PING, DISCOVER].includes(state.text)) state.text = era === "handshake" ? PING : DISCOVER;
    Object.assign(state, { server, era, connection: 0, sent: null, rows: [], problems: null });
  }
  state.connections = (await context.send("raw/list", { server })).connections;
  if (state.connection && !state.connections.some(({ id }) => id === state.connection)) state.connection = 0;
  clearTimeout(state.timer);
  if (state.sent) state.timer = setTimeout(() => void context.attempt(() => loadRows(context), "load"), PAUSE_MILLISECONDS);
  context.update();
}

/** @param {Context} context */
async function loadRows(context) {
  const { connection, row } = state.sent;
  const filter = connection ? `connection:${connection} row>=${row}` : `row>=${row}`;
  const { rows } = await context.send("traffic/rows", { filter, count: ROWS_SHOWN, view: "raw" });
  const known = new Map(state.rows.map((each) => [each.row, each]));
  for (const each of rows) {
    each.raw = known.get(each.row)?.raw ?? (await context.send("traffic/entry", { row: each.row })).raw;
  }
  state.rows = rows;
  context.update();
}

/**
 * @param {Context} context
 * @param {boolean} anyway
 */
function send(context, anyway) {
  return context.attempt(async () => {
    const { server, connection, text, method } = state;
    state.problems = null;
    if (!anyway && !state.isBase64 && method === "POST") {
      const problems = await check(context);
      if (problems.length) {
        context.announce("the message is not valid, and was not sent");
        return;
      }
    }
    state.problems = null;
    const content = state.isBase64 ? { base64: text } : { text };
    const headers = Object.fromEntries(headerLines());
    state.sent = await context.send("raw/send", { server, connection, method, headers, ...content });
    state.rows = [];
    context.announce("sent");
    await load(context);
  });
}

/** @param {Context} context */
async function check(context) {
  const { problems } = await context.send("raw/check", { text: state.text, revision: checkedRevision(context) });
  state.problems = problems;
  context.update();
  return problems;
}

/** @param {Context} context */
function checkedRevision(context) {
  const own = state.connections.find(({ id }) => id === state.connection);
  return state.revision || own?.handshake || context.server.revision || context.revisions[0];
}

/** @returns {[string, string][]} */
function headerLines() {
  return state.headers
    .split("\n")
    .filter((line) => line.trim())
    .map((line) => [line.split(":", 1)[0].trim(), line.slice(line.indexOf(":") + 1 || line.length).trim()]);
}

// --- view ------------------------------------------------------------------------------------------------------

/** @param {Context} context */
function connectionsView(context) {
  const open = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const handshake = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("handshake") ?? "");
    void context.attempt(async () => {
      state.connection = (await context.send("raw/open", { server: context.server.name, handshake })).id;
      context.announce("the connection is open");
      await load(context);
    });
  };
  const choose = (/** @type {number} */ id) => {
    state.connection = id;
    context.update();
  };
  return html`<section class="card" aria-labelledby="raw-connections">
    <h2 id="raw-connections">Connection</h2>
    <fieldset>
      <legend>Send on</legend>
      <label class="check">
        <input type="radio" name="raw-connection" .checked=${state.connection === 0} @change=${() => choose(0)}>
        the open session of ${context.server.name}
      </label>
      ${state.connections.filter((each) => !each.isSession).map((each) => connectionView(context, each, choose))}
    </fieldset>
    <form class="buttons" @submit=${open}>
      <label><span>Handshake</span>
        <select name="handshake">
          <option value="">none</option>
          ${context.revisions.map((each) => html`<option value=${each}>${each}</option>`)}
        </select>
      </label>
      <button type="submit" class="quiet">Open a connection of its own</button>
    </form>
  </section>`;
}

/**
 * @param {Context} context
 * @param {any} each
 * @param {(id: number) => void} choose
 */
function connectionView(context, each, choose) {
  const close = () => context.attempt(async () => {
    await context.send("raw/close", { connection: each.id });
    await load(context);
  });
  const name = `connection ${each.number}${each.handshake ? `, ${each.handshake}` : ""}`;
  return html`<p class="buttons">
    <label class="check">
      <input
        type="radio" name="raw-connection" ?disabled=${!each.isOpen} .checked=${state.connection === each.id}
        @change=${() => choose(each.id)}
      >
      ${name}${each.isOpen ? "" : ` (closed: ${each.reason})`}
    </label>
    ${each.isOpen ? html`<button type="button" class="quiet" aria-label="Close ${name}" @click=${close}>Close</button>` : nothing}
  </p>`;
}

/** @param {Context} context */
function messageView(context) {
  const edit = (/** @type {"text" | "headers" | "method" | "revision"} */ name) => (/** @type {Event} */ event) => {
    state[name] = /** @type {HTMLInputElement} */ (event.target).value;
    state.problems = null;
    context.update();
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void send(context, false);
  };
  const toggle = (/** @type {Event} */ event) => {
    state.isBase64 = /** @type {HTMLInputElement} */ (event.target).checked;
    context.update();
  };
  return html`<form class="card" @keydown=${onKey} @submit=${(/** @type {Event} */ event) => {
    event.preventDefault();
    void send(context, false);
  }}>
    <h2>Message</h2>
    <label><span>${state.isBase64 ? "Bytes, as base64" : "Text, sent as it is"}</span>
      <textarea rows="8" spellcheck="false" .value=${state.text} @input=${edit("text")}></textarea>
    </label>
    <label class="check"><input type="checkbox" .checked=${state.isBase64} @change=${toggle}> bytes that are no text (base64)</label>
    ${context.server.transport === "HTTP" ? httpView(edit) : nothing}
    <p class="buttons">
      <button type="submit">Send</button>
      <button type="button" class="quiet" ?disabled=${state.isBase64} @click=${() => context.attempt(async () => void (await check(context)))}>Check</button>
      <label><span>Types of</span>
        <select @change=${edit("revision")}>
          <option value="">the connection</option>
          ${context.revisions.map((each) => html`<option value=${each} ?selected=${each === state.revision}>${each}</option>`)}
        </select>
      </label>
    </p>
    ${problemsView(context)}
  </form>`;
}

/** @param {(name: "headers" | "method") => (event: Event) => void} edit */
function httpView(edit) {
  return html`
    <label><span>HTTP method</span>
      <select @change=${edit("method")}>
        ${METHODS.map((each) => html`<option ?selected=${each === state.method}>${each}</option>`)}
      </select>
    </label>
    <label><span>Headers, one in a line; without a value, a header is removed</span>
      <textarea rows="3" spellcheck="false" .value=${state.headers} @input=${edit("headers")}></textarea>
    </label>`;
}

/** @param {Context} context */
function problemsView(context) {
  if (state.problems === null) return nothing;
  if (!state.problems.length) return html`<p role="status">It matches the exact types of ${checkedRevision(context)}.</p>`;
  return html`<div class="error" role="alert">
    <strong>It does not match ${checkedRevision(context)}.</strong>
    <ul>${state.problems.map((problem) => html`<li>${problem}</li>`)}</ul>
    <button type="button" class="quiet" @click=${() => send(context, true)}>Send anyway</button>
  </div>`;
}

/** @param {Context} context */
function rowsView(context) {
  return html`<section class="card" aria-labelledby="raw-rows">
    <h2 id="raw-rows">What was sent and received</h2>
    ${state.rows.length ? nothing : html`<p>Nothing yet.</p>`}
    <ol class="raw-rows">
      ${repeat(state.rows, (each) => each.row, (each) => html`<li>
        <a href=${context.address("timeline", context.server.name, "live", String(each.row))}>entry ${each.row}</a>
        ${each.direction} ${each.kind} <span class=${each.mismatch ? "removed" : ""}>${each.mismatch}</span>
        <pre tabindex="0">${each.raw}</pre>
      </li>`)}
    </ol>
  </section>`;
}
