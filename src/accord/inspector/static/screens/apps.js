// @ts-check
/** The screen Apps: pages of a server in a sandboxed frame, what they ask, and what their policy blocked. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { keyed } from "../vendor/lit-html/directives/keyed.js";
import { ref } from "../vendor/lit-html/directives/ref.js";
import { AppBridge } from "../components/app_bridge.js";

/** @typedef {import("../main.js").Context} Context */

/**
 * @typedef {object} OpenApp
 * @property {string} server
 * @property {string} tool
 * @property {any} opened
 * @property {string} argumentsText
 * @property {AppBridge} bridge
 * @property {string[]} blocked
 * @property {boolean} isEnding Whether the app was asked to end.
 */

/** @type {{ key: string, list: any[], app: OpenApp | null }} */
const state = { key: "", list: [], app: null };

/** @type {import("../main.js").Screen} */
export const screen = {
  perServer: true,
  load: async (context) => {
    if (state.app && state.app.server !== context.server.name) close();
    state.list = (await context.send("apps/list", { server: context.server.name })).apps;
  },
  view: (context) => html`
    ${state.list.length ? listView(context) : html`<p>This server has no tool with an app (<code>_meta.ui.resourceUri</code>).</p>`}
    ${state.app ? appView(state.app, context) : nothing}
  `,
  actions: (context) => state.list.map(({ tool }) => ({ title: `Open app ${tool}`, run: () => void open(tool, "{}", context) })),
};

function close() {
  state.app?.bridge.close();
  state.app = null;
}

/**
 * Closes the app once it has answered that it ends; or at once, if the user does not wait for that.
 *
 * @param {OpenApp} app
 * @param {Context} context
 */
async function end(app, context) {
  const waits = !app.isEnding;
  app.isEnding = true;
  context.update();
  if (waits) await app.bridge.teardown();
  if (app === state.app) close();
  context.update();
}

/**
 * @param {string} tool
 * @param {string} argumentsText
 * @param {Context} context
 */
function open(tool, argumentsText, context) {
  return context.attempt(async () => {
    close();
    context.update();
    const server = context.server.name;
    const opened = await context.send("apps/open", { server, tool });
    const bridge = new AppBridge(opened, argumentsText, context, close);
    state.app = { server, tool, opened, argumentsText, bridge, blocked: [], isEnding: false };
    context.announce(`the app of ${tool} is open`);
  });
}

/** @param {Context} context */
function listView(context) {
  return html`<ul class="app-list">
    ${state.list.map((app) => {
      const id = `app-arguments-${app.tool}`;
      const start = (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
        void open(app.tool, String(data.get("arguments")), context);
      };
      return html`<li class="card">
        <h2>${app.title}</h2>
        <p class="muted"><code>${app.tool}</code> · <code>${app.uri}</code> · for ${app.visibility.join(" and ") || "nobody"}</p>
        <form @submit=${start}>
          <label for=${id}><span>Arguments of the call whose result it shows (JSON)</span></label>
          <textarea id=${id} name="arguments" rows="2" spellcheck="false">{}</textarea>
          <button type="submit">Call the tool and open its app</button>
        </form>
      </li>`;
    })}
  </ul>`;
}

/**
 * @param {OpenApp} app
 * @param {Context} context
 */
function appView(app, context) {
  const { opened, bridge } = app;
  const attach = ref((element) => element instanceof HTMLIFrameElement && bridge.attach(element));
  // Never the frame of another app, also where nothing was drawn in between: messages of that app would be those of this one.
  const frame = keyed(opened.id, html`<iframe
    class="app-frame" title="App of ${app.tool}, a page of the server" sandbox="allow-scripts" referrerpolicy="no-referrer"
    src=${`http://localhost:${location.port}${location.pathname}app/${opened.id}`} ${attach}
  ></iframe>`);
  const showBlocked = () =>
    context.attempt(async () => {
      app.blocked = (await context.send("apps/blocked", { app: opened.id })).blocked;
    });
  return html`<section class="card" aria-labelledby="app-title">
    <h2 id="app-title">App of ${app.tool} <button type="button" class="quiet" @click=${() => end(app, context)}>${app.isEnding ? "Close now" : "Close"}</button></h2>
    ${approvalView(bridge, context)}
    ${frame}
    <details open>
      <summary>Content security policy</summary>
      <ul>${opened.policy.map((/** @type {string} */ each) => html`<li><code>${each}</code></li>`)}</ul>
      ${opened.ignored.length ? html`<p class="error">Ignored, because they are not origins: ${opened.ignored.join(", ")}</p>` : nothing}
      <p><button type="button" class="quiet" @click=${showBlocked}>Show what it blocked</button></p>
      ${app.blocked.length ? html`<ul>${app.blocked.map((each) => html`<li><code>${each}</code></li>`)}</ul>` : nothing}
    </details>
    <details open>
      <summary>Messages of the app: ${bridge.messages.length}</summary>
      <ol aria-label="Messages of the app">${bridge.messages.map((each) => html`<li><code>${each.method}</code> ${each.text}</li>`)}</ol>
    </details>
  </section>`;
}

/**
 * @param {AppBridge} bridge
 * @param {Context} context
 */
function approvalView(bridge, context) {
  const { approval } = bridge;
  if (approval === null) return nothing;
  const answer = (/** @type {boolean} */ approved) => {
    approval.answer(approved);
    context.update();
  };
  return html`<div class="error" role="alertdialog" aria-labelledby="approval-title">
    <strong id="approval-title">${approval.question}</strong>
    <p>The server does not mark this tool as read-only, so it may change something. Arguments:</p>
    <pre tabindex="0">${approval.argumentsJson}</pre>
    <p class="buttons">
      <button type="button" class="quiet" @click=${() => answer(false)}>Decline</button>
      <button type="button" ?disabled=${!approval.isReady} @click=${() => answer(true)}>Approve this call</button>
    </p>
  </div>`;
}

