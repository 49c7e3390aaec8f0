// @ts-check
/** The screen Notifications: log messages by level, subscriptions, changed lists, and counts by method. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";

/** @typedef {import("../main.js").Context} Context */

const PAUSE_MILLISECONDS = 500;
const LISTS = ["tools", "prompts", "resources"];

/** @type {{ server: string, report: any, least: string, loadedAt: number, timer: number }} */
const state = { server: "", report: null, least: "debug", loadedAt: 0, timer: 0 };

/** @type {import("../main.js").Screen} */
export const screen = {
  perServer: true,
  topics: ["notifications"],
  load,
  view: (context) => {
    const { report } = state;
    if (!report || state.server !== context.server.name) return html`<p>The notifications are requested.</p>`;
    return html`
      ${subscriptionsView(context, report)} ${logsView(context, report)} ${differencesView(report)} ${recentView(report)}
    `;
  },
};

/**
 * Requests the notifications, at most once in a while: a server may send thousands in a second.
 *
 * @param {Context} context
 */
async function load(context) {
  clearTimeout(state.timer);
  const wait = state.loadedAt + PAUSE_MILLISECONDS - performance.now();
  if (wait > 0 && state.server === context.server.name) {
    state.timer = setTimeout(() => void context.attempt(() => load(context), "load"), wait);
    return;
  }
  state.loadedAt = performance.now();
  const server = context.server.name;
  const report = await context.send("notifications/list", { server });
  Object.assign(state, { server, report });
  context.update();
}

/**
 * @param {Context} context
 * @param {string} command
 * @param {object} params
 * @param {string} done
 */
function change(context, command, params, done) {
  return context.attempt(async () => {
    await context.send(command, { server: context.server.name, ...params });
    context.announce(done);
  });
}

// --- subscriptions ---------------------------------------------------------------------------------------------

/**
 * @param {Context} context
 * @param {any} report
 */
function subscriptionsView(context, report) {
  const open = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const uris = String(data.get("uris") ?? "").split(/\s+/).filter(Boolean);
    const lists = LISTS.filter((each) => data.get(each) === "on");
    void change(context, "subscriptions/open", { uris, lists }, "subscribed");
  };
  return html`<section class="card" aria-labelledby="subscriptions">
    <h2 id="subscriptions">Subscriptions</h2>
    <form @submit=${open}>
      <label><span>URIs of resources</span><input name="uris" autocomplete="off" spellcheck="false"></label>
      <fieldset>
        <legend>Changes of lists</legend>
        ${LISTS.map((each) => html`<label class="check"><input type="checkbox" name=${each}> ${each}</label> `)}
      </fieldset>
      <p class="buttons"><button type="submit">Subscribe</button></p>
    </form>
    ${report.subscriptions.length ? html`<ul>${report.subscriptions.map((/** @type {any} */ each) => subscriptionView(context, each))}</ul>` : nothing}
  </section>`;
}

/**
 * @param {Context} context
 * @param {any} each
 */
function subscriptionView(context, each) {
  const name = each.requested.join(", ");
  const close = () => change(context, "subscriptions/close", { id: each.id }, `the subscription to ${name} is closed`);
  return html`<li>
    <strong class="target">${name}</strong>
    ${each.isOpen ? html`<button type="button" class="quiet" aria-label="Close the subscription to ${name}" @click=${close}>Close</button>` : html`<span class="muted">ended: ${each.reason}</span>`}
    <p>${each.events} events${each.granted.length === each.requested.length ? "" : `; granted: ${each.granted.join(", ")}`}</p>
    ${each.recent.length ? html`<details><summary>The last events</summary><pre tabindex="0">${each.recent.join("\n")}</pre></details>` : nothing}
  </li>`;
}

// --- log messages ----------------------------------------------------------------------------------------------

/**
 * @param {Context} context
 * @param {any} report
 */
function logsView(context, report) {
  const { levels } = report;
  const set = (/** @type {Event} */ event) => {
    const level = /** @type {HTMLSelectElement} */ (event.target).value;
    if (level) void change(context, "notifications/set-level", { level }, `the server sends log messages from ${level} on`);
  };
  const filter = (/** @type {Event} */ event) => {
    state.least = /** @type {HTMLSelectElement} */ (event.target).value;
    context.update();
  };
  const shown = report.logs.filter((/** @type {any} */ each) => levels.indexOf(each.level) >= levels.indexOf(state.least));
  const entries = shown.flatMap((/** @type {any} */ each) => each.entries);
  entries.sort((/** @type {any} */ a, /** @type {any} */ b) => b.number - a.number);
  return html`<section class="card" aria-labelledby="logs">
    <h2 id="logs">Log messages</h2>
    <p class="buttons">
      <label><span>The server sends</span>
        <select @change=${set}>
          ${report.level ? nothing : html`<option value="">what it likes</option>`}
          ${levels.map((/** @type {string} */ each) => html`<option value=${each} ?selected=${each === report.level}>${each} and above</option>`)}
        </select>
      </label>
      <label><span>Show</span>
        <select @change=${filter}>
          ${levels.map((/** @type {string} */ each) => html`<option value=${each} ?selected=${each === state.least}>${each} and above</option>`)}
        </select>
      </label>
    </p>
    <p>${report.logs.length ? report.logs.map((/** @type {any} */ each) => `${each.level}: ${each.count}`).join(", ") : "No log message yet."}</p>
    ${entries.length ? logTable(entries) : nothing}
  </section>`;
}

/** @param {any[]} entries */
function logTable(entries) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Log messages, the latest first">
    <table>
      <thead><tr><th scope="col">Time</th><th scope="col">Level</th><th scope="col">Logger</th><th scope="col">Data</th></tr></thead>
      <tbody>
        ${entries.map((each) => html`<tr>
          <td>${clock(each.at)}</td><td class="level-${each.level}">${each.level}</td><td>${each.logger}</td>
          <td><code>${each.dataJson}${cut(each.dataJson, each.length)}</code></td>
        </tr>`)}
      </tbody>
    </table>
  </div>`;
}

/** @param {number} at */
function clock(at) {
  return new Date(at * 1000).toLocaleTimeString();
}

/**
 * @param {string} text
 * @param {number} length
 */
function cut(text, length) {
  return length > text.length ? ` … ${length} characters in all` : "";
}

// --- changed lists and other notifications ---------------------------------------------------------------------

/** @param {any} report */
function differencesView(report) {
  if (!report.differences.length) return nothing;
  return html`<section class="card" aria-labelledby="differences">
    <h2 id="differences">Changed lists</h2>
    <ul>
      ${report.differences.map((/** @type {any} */ each) => html`<li>
        <strong>${each.kind}</strong> <span class="muted">${clock(each.at)}</span>
        ${each.added.length ? html`<p class="added">added: ${each.added.join(", ")}</p>` : nothing}
        ${each.removed.length ? html`<p class="removed">removed: ${each.removed.join(", ")}</p>` : nothing}
        ${each.note ? html`<p class="muted">${each.note}</p>` : nothing}
        ${each.changed.map((/** @type {any} */ item) => html`<details>
          <summary>changed: ${item.name}</summary>
          <pre class="difference" tabindex="0">${item.lines.map((/** @type {string} */ line) => lineView(line))}</pre>
        </details>`)}
      </li>`)}
    </ul>
  </section>`;
}

/** @param {string} line */
function lineView(line) {
  if (line.startsWith("+")) return html`<ins>${line}\n</ins>`;
  return line.startsWith("-") ? html`<del>${line}\n</del>` : `${line}\n`;
}

/** @param {any} report */
function recentView(report) {
  const counts = Object.entries(report.counts);
  return html`<section class="card" aria-labelledby="counts">
    <h2 id="counts">All notifications: ${report.total}</h2>
    ${counts.length ? html`<ul>${counts.map(([method, count]) => html`<li><code>${method}</code>: ${count}</li>`)}</ul>` : html`<p>No notification yet.</p>`}
    ${report.recent.length ? html`<details>
      <summary>The last ones</summary>
      <table>
        <thead><tr><th scope="col">Time</th><th scope="col">Method</th><th scope="col">Params</th></tr></thead>
        <tbody>
          ${report.recent.map((/** @type {any} */ each) => html`<tr>
            <td>${clock(each.at)}</td><td><code>${each.method}</code></td>
            <td><code>${each.paramsJson}${cut(each.paramsJson, each.length)}</code></td>
          </tr>`)}
        </tbody>
      </table>
    </details>` : nothing}
  </section>`;
}
