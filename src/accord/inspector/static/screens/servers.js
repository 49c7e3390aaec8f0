// @ts-check
/** The screen Servers: state, revision, capabilities and stderr of each; connect, disconnect, add. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { diagnoseFailures, diagnosisButton, diagnosisView } from "../components/diagnosis_view.js";
import { foundServersView, loadFoundServers } from "../components/found_servers_view.js";

/** @typedef {import("../main.js").Context} Context */

/** @type {Map<string, string[]>} */
const stderr = new Map();

/** @type {import("../main.js").Screen} */
export const screen = {
  topics: ["servers"],
  load: async (context) => {
    diagnoseFailures(context);
    await loadFoundServers(context);
    for (const { name, transport } of context.servers) {
      if (transport !== "process") continue;
      stderr.set(name, (await context.send("servers/stderr", { server: name })).lines);
    }
  },
  view: (context) => html`
    ${context.servers.length ? nothing : html`<p>There is no server yet. Add one below, or name it: <code>accord inspect TARGET</code>.</p>`}
    ${context.servers.map((server) => serverView(server, context))} ${addForm(context)} ${foundServersView(context)}
  `,
  actions: (context) =>
    context.servers.map((server) => ({
      title: server.state === "connected" ? `Disconnect ${server.name}` : `Connect ${server.name}`,
      run: () => void change(server, context, server.state === "connected" ? "disconnect" : "connect"),
    })),
};

/**
 * @param {any} server
 * @param {Context} context
 * @param {string} command
 * @param {object} [params]
 */
function change(server, context, command, params = {}) {
  return context.attempt(async () => {
    await context.send(`servers/${command}`, { server: server.name, ...params });
    context.announce(`${server.name}: ${command} done`);
  });
}

/**
 * @param {any} server
 * @param {Context} context
 */
function serverView(server, context) {
  return html`<section class="card" aria-labelledby="server-${server.name}">
    <h2 id="server-${server.name}">
      <a href=${context.address("tools", server.name)}>${server.name}</a>
      <span class="state state-${server.state}">${server.state}</span>
    </h2>
    <p><code class="target">${server.target}</code></p>
    ${server.error ? html`<p class="error"><strong>${server.error}</strong> ${server.cure}</p>` : nothing}
    ${server.needsApproval && server.state !== "connected"
      ? html`<p>Its command is shown in the terminal, and starts once you approve it there.</p>`
      : nothing}
    ${factsView(server)} ${buttons(server, context)} ${diagnosisView(server)}
    ${server.instructions ? html`<details><summary>Instructions</summary><pre>${server.instructions}</pre></details>` : nothing}
    ${server.capabilitiesJson ? html`<details><summary>Capabilities</summary><pre>${server.capabilitiesJson}</pre></details>` : nothing}
    ${stderrView(server, context)}
  </section>`;
}

/** @param {any} server */
function factsView(server) {
  const facts = [
    ["Revision", server.revision],
    ["Era", server.era === "handshake" ? "handshake (initialize)" : server.era && "per request (_meta)"],
    ["Transport", server.transport],
    ["Name and version", [server.title, server.version].filter(Boolean).join(" ")],
    ["Named in", server.file || server.origin],
  ];
  return html`<dl class="facts">
    ${facts.filter(([, value]) => value).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/**
 * @param {any} server
 * @param {Context} context
 */
function buttons(server, context) {
  const isConnected = server.state === "connected";
  const choose = (/** @type {Event} */ event) =>
    change(server, context, "connect", { revision: /** @type {HTMLSelectElement} */ (event.target).value });
  return html`<p class="buttons">
    <button
      type="button"
      ?disabled=${server.state === "connecting"}
      @click=${() => change(server, context, isConnected ? "disconnect" : "connect", isConnected ? {} : { revision: server.onlyRevision })}
    >
      ${isConnected ? "Disconnect" : "Connect"}
    </button>
    <label>
      <span>Revision</span>
      <select @change=${choose}>
        <option value="" ?selected=${!server.onlyRevision}>newest that both support</option>
        ${context.revisions.map((each) => html`<option value=${each} ?selected=${each === server.onlyRevision}>${each}</option>`)}
      </select>
    </label>
    ${diagnosisButton(server, context)}
    <button type="button" class="quiet" @click=${() => change(server, context, "remove")}>Remove</button>
    ${server.transport === "HTTP" && server.state === "failed"
      ? html`<a href=${context.address("authorization", server.name)}>Log in step by step</a>`
      : nothing}
  </p>`;
}

/**
 * What it wrote to stderr; open if it failed, or if the user came to see it.
 *
 * @param {any} server
 * @param {Context} context
 */
function stderrView(server, context) {
  const lines = stderr.get(server.name) ?? [];
  if (!lines.length) return nothing;
  return html`<details ?open=${server.state === "failed" || server.state === "lost" || context.server === server}>
    <summary>stderr: ${lines.length} lines</summary>
    <pre tabindex="0">${lines.join("\n")}</pre>
  </details>`;
}

/** @param {Context} context */
function addForm(context) {
  const add = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const target = String(new FormData(form).get("target") ?? "");
    void context.attempt(async () => {
      const added = await context.send("servers/add", { target });
      form.reset();
      context.announce(`${added.name} was added`);
    });
  };
  return html`<form class="card" @submit=${add}>
    <h2>Add a server</h2>
    <label>
      <span>Command, URL or file</span>
      <input name="target" required autocomplete="off" spellcheck="false" aria-describedby="add-note">
    </label>
    <p id="add-note">A command starts only after you approve it in the terminal.</p>
    <button type="submit">Add</button>
  </form>`;
}
