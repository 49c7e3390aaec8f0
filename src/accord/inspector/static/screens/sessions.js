// @ts-check
/** The screen Sessions: open, save, replay and compare session files. A file that is dropped on the page is opened. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { ask } from "./compare.js";
import { CommandError, download, upload } from "../connection.js";
import { currentRoute, navigate } from "../router.js";

/** @typedef {import("../main.js").Context} Context */

const LIVE = "live";

/** @type {{ sessions: any[], left: string, right: string, server: string, other: string, replay: any, isBusy: boolean,
 *   dropError: CommandError | null }} */
const state = { sessions: [], left: "", right: LIVE, server: "", other: "", replay: null, isBusy: false, dropError: null };

/** @type {Context | null} */
let current = null;

/** @type {import("../main.js").Screen} */
export const screen = {
  topics: ["session"],
  load: async (context) => {
    current = context;
    state.sessions = (await context.send("session/list")).sessions;
    const ids = state.sessions.map((each) => each.id);
    if (!ids.includes(state.left)) state.left = ids[ids.length - 1];
    if (!ids.includes(state.right)) state.right = LIVE;
    context.update();
  },
  view: (context) => {
    current = context;
    return html`${dropErrorView()} ${openForm(context)} ${state.sessions.map((each) => sessionView(each, context))}
      ${compareSessionsForm(context)} ${compareServersForm(context)}`;
  },
  actions: (context) => [
    { title: "Save this session", run: () => void context.attempt(() => download("session/save", { session: LIVE })) },
  ],
};

// --- open ------------------------------------------------------------------------------------------------------

/**
 * @param {File} file
 * @param {Context} context
 */
function open(file, context) {
  return context.attempt(async () => {
    const opened = await upload("session/open", file);
    context.announce(`the session is open: ${opened.rows} entries`);
    context.navigate("timeline", context.server?.name ?? "", opened.id);
  });
}

/**
 * Opens a file that was dropped on any screen; an error is shown on this one.
 *
 * @param {File} file
 */
export async function openDropped(file) {
  state.dropError = null;
  try {
    navigate("timeline", currentRoute().server, (await upload("session/open", file)).id);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    state.dropError = error;
    navigate("sessions", currentRoute().server);
    current?.update();
  }
}

function dropErrorView() {
  if (!state.dropError) return nothing;
  return html`<div class="error" role="alert"><strong>${state.dropError.error}</strong><p>${state.dropError.cure}</p></div>`;
}

/** @param {Context} context */
function openForm(context) {
  const onChange = (/** @type {Event} */ event) => {
    const input = /** @type {HTMLInputElement} */ (event.target);
    const file = input.files?.[0];
    if (file) void open(file, context).then(() => (input.value = ""));
  };
  return html`<section class="card" aria-labelledby="open-title">
    <h2 id="open-title">Open a session</h2>
    <label>
      <span>Session file or transcript; you can also drop it on the page</span>
      <input type="file" @change=${onChange}>
    </label>
    <p class="muted">Record one with <code>--record FILE</code> of any command, with <code>Client(record=...)</code>, or save one below.</p>
  </section>`;
}

/**
 * @param {any} session
 * @param {Context} context
 */
function sessionView(session, context) {
  const { id } = session;
  const facts = [
    ["Entries", session.rows.toLocaleString("en")], ["Seconds", session.seconds], ["Bytes", session.size.toLocaleString("en")],
    ["Began", session.began], ["Program", session.program], ["Target", session.target],
    ["Secrets", session.redacted ? "replaced" : "not replaced"],
  ];
  return html`<section class="card" aria-labelledby="session-${id}">
    <h2 id="session-${id}"><a href=${context.address("timeline", context.server?.name ?? "", id)}>${session.name}</a></h2>
    ${session.remark ? html`<p class="warning">${session.remark}</p>` : nothing}
    ${session.redacted ? nothing : html`<p class="error"><strong>This file has secrets in it.</strong> Look through it before you pass it on.</p>`}
    <dl class="facts">${facts.filter(([, value]) => value !== "").map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <p class="buttons">
      <button type="button" @click=${() => context.attempt(() => download("session/save", { session: id }))}>Save</button>
      <button type="button" class="quiet" @click=${() => context.attempt(() => download("session/save-tests", { session: id }))}>Save tests for pytest</button>
      <button type="button" class="quiet" @click=${() => replayServer(id, context)}>Replay as a server</button>
      ${context.servers.length ? replayClientForm(id, context) : nothing}
      ${id === LIVE ? nothing : html`<button type="button" class="quiet" @click=${() => close(id, context)}>Close</button>`}
    </p>
    ${replayView(id)}
  </section>`;
}

/**
 * @param {string} id
 * @param {Context} context
 */
function close(id, context) {
  return context.attempt(async () => {
    state.sessions = (await context.send("session/close", { session: id })).sessions;
    if (state.left === id) state.left = LIVE;
    if (state.right === id) state.right = LIVE;
    context.announce("the session is closed");
  });
}

// --- replay ----------------------------------------------------------------------------------------------------

/**
 * @param {string} id
 * @param {Context} context
 */
function replayServer(id, context) {
  return context.attempt(async () => {
    const { session: server } = await context.send("session/replay-server", { session: id });
    await context.send("servers/connect", { server });
    context.navigate("servers", server);
    context.announce(`${server} answers as the recorded server did`);
  });
}

/**
 * @param {string} id
 * @param {Context} context
 */
function replayClientForm(id, context) {
  const replay = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const server = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("server"));
    void busy(context, async () => {
      state.replay = { id, server, ...(await context.send("session/replay-client", { session: id, server })) };
      context.announce(`${state.replay.differences.length} differences`);
    });
  };
  return html`<form class="inline" @submit=${replay}>
    <label>
      <span>Send its requests to</span>
      <select name="server">${context.servers.map((each) => html`<option value=${each.name}>${each.name}</option>`)}</select>
    </label>
    <button type="submit" class="quiet" ?disabled=${state.isBusy}>Replay and compare</button>
  </form>`;
}

/** @param {string} id */
function replayView(id) {
  if (state.replay?.id !== id) return nothing;
  const { server, messages, differences } = state.replay;
  return html`<div role="region" aria-label="Differences of the replay">
    <p>${messages} messages were replayed with ${server}: ${differences.length || "no"} differences.</p>
    ${differences.map((/** @type {string} */ each) => html`<pre tabindex="0">${each}</pre>`)}
  </div>`;
}

/**
 * @param {Context} context
 * @param {() => Promise<void>} work
 */
async function busy(context, work) {
  state.isBusy = true;
  context.update();
  await context.attempt(work);
  state.isBusy = false;
  context.update();
}

// --- compare ---------------------------------------------------------------------------------------------------

/** @param {Context} context */
function compareSessionsForm(context) {
  if (state.sessions.length < 2) return nothing;
  const choice = (/** @type {"left" | "right"} */ side, /** @type {string} */ title) => html`<label>
    <span>${title}</span>
    <select @change=${(/** @type {Event} */ event) => choose(side, event, context)}>
      ${state.sessions.map((each) => html`<option value=${each.id} ?selected=${each.id === state[side]}>${each.name}</option>`)}
    </select>
  </label>`;
  return html`<section class="card" aria-labelledby="compare-sessions-title">
    <h2 id="compare-sessions-title">Compare two sessions</h2>
    <p class="buttons">
      ${choice("left", "Before")} ${choice("right", "After")}
      <a class="button" href=${context.address("compare", context.server?.name ?? "", "sessions", state.left, state.right)}>Compare</a>
    </p>
  </section>`;
}

/**
 * @param {"left" | "right" | "server" | "other"} field
 * @param {Event} event
 * @param {Context} context
 */
function choose(field, event, context) {
  state[field] = /** @type {HTMLSelectElement} */ (event.target).value;
  context.update();
}

/** @param {Context} context */
function compareServersForm(context) {
  if (!context.servers.length) return nothing;
  const server = state.server || context.server?.name || context.servers[0].name;
  const options = (/** @type {string} */ selected) =>
    context.servers.map((each) => html`<option value=${each.name} ?selected=${each.name === selected}>${each.name}</option>`);
  const parts = state.other ? ["servers", server, state.other] : ["revisions", server];
  return html`<section class="card" aria-labelledby="compare-servers-title">
    <h2 id="compare-servers-title">Compare the revisions of a server, or two versions of it</h2>
    <p class="buttons">
      <label><span>Server</span><select @change=${(/** @type {Event} */ event) => choose("server", event, context)}>${options(server)}</select></label>
      <label><span>With</span><select @change=${(/** @type {Event} */ event) => choose("other", event, context)}>
        <option value="">its own older revisions</option>${options(state.other)}
      </select></label>
      <a class="button" href=${context.address("compare", context.server?.name ?? "", ...parts)} @click=${() => ask(parts)}>Compare</a>
    </p>
    <p class="muted">The comparison opens its own connections, lists what each server offers, and calls no tool.</p>
  </section>`;
}
