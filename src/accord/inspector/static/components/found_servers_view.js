// @ts-check
/** The servers in the configuration files of installed hosts. Adding one starts nothing. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";

/** @typedef {import("../main.js").Context} Context */

/** @type {{ found: any, isOpen: boolean }} */
const state = { found: null, isOpen: false };

/** Loads the list, where no other server is shown. @param {Context} context */
export async function loadFoundServers(context) {
  if (state.found === null && (state.isOpen || !context.servers.length)) state.found = await context.send("servers/found");
}

/** @param {Context} context */
export function foundServersView(context) {
  const toggle = (/** @type {Event} */ event) => {
    if (!context.servers.length) return; // then it is open by itself
    state.isOpen = /** @type {HTMLDetailsElement} */ (event.target).open;
    if (state.isOpen) void context.attempt(() => loadFoundServers(context));
  };
  return html`<details class="card found-servers" ?open=${state.isOpen || !context.servers.length} @toggle=${toggle}>
    <summary>Servers of installed hosts</summary>
    ${state.found ? listView(context) : nothing}
  </details>`;
}

/** @param {Context} context */
function listView(context) {
  const { servers, leftOut } = state.found;
  if (!servers.length) return html`<p>No host on this machine, and no file in this folder, has a server.</p>`;
  const again = () =>
    context.attempt(async () => {
      state.found = await context.send("servers/found");
    });
  return html`<p>None of them was started. Add one to inspect it; its command starts only after you approve it in the terminal.</p>
    <ul>${servers.map((/** @type {any} */ each) => serverView(each, context))}</ul>
    ${leftOut ? html`<p>${leftOut} more are left out.</p>` : nothing}
    <p class="buttons"><button type="button" class="quiet" @click=${again}>Read the files again</button></p>`;
}

/**
 * @param {any} found
 * @param {Context} context
 */
function serverView(found, context) {
  const { host, file, name } = found;
  const add = () =>
    context.attempt(async () => {
      const added = await context.send("servers/add-found", { host, file, name });
      context.announce(`${added.name} was added; connect it to start it`);
    });
  const place = found.line ? `${file}:${found.line}` : file;
  return html`<li>
    <strong>${name || "This file cannot be read"}</strong> <span class="muted">${found.title}, ${place}${found.enabled ? "" : ", disabled there"}</span>
    ${found.target ? html`<br><code class="target">${found.target}</code>` : nothing}
    ${found.variables.length ? html`<br><span class="muted">sets ${found.variables.join(", ")}</span>` : nothing}
    ${found.error ? html`<br><span class="error-text">${found.error}</span>` : nothing}
    ${name && !found.error ? html`<br><button type="button" class="quiet" aria-label="Add ${name} of ${found.title}" @click=${add}>Add</button>` : nothing}
  </li>`;
}
