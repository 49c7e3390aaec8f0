// @ts-check
/** What answers requests of servers: the roots of a server, and the models of the host. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";

/** @typedef {import("../main.js").Context} Context */

const EXAMPLE = '{"api": "chat-completions", "name": "qwen3", "baseUrl": "http://127.0.0.1:11434/v1"}';

/** @type {{ server: string, roots: string[], asks: boolean, models: string[] }} */
const settings = { server: "", roots: [], asks: false, models: [] };

/**
 * Requests the settings, and returns the names of the models.
 *
 * @param {Context} context
 */
export async function loadSettings(context) {
  settings.models = (await context.send("models/list")).models;
  if (context.server) {
    const server = context.server.name;
    Object.assign(settings, { server, ...(await context.send("roots/get", { server })) });
  }
  return settings.models;
}

/** @param {Context} context */
export function rootsView(context) {
  if (settings.server !== context.server.name) return nothing; // What the user types is not replaced by what comes later.
  const save = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const roots = String(data.get("roots") ?? "").split("\n").map((line) => line.trim()).filter(Boolean);
    void context.attempt(async () => {
      const params = { server: context.server.name, roots, asks: data.get("asks") === "on" };
      Object.assign(settings, await context.send("roots/set", params));
      context.announce("the roots are set");
    });
  };
  return html`<form class="card" @submit=${save}>
    <h2>Roots of ${context.server.name}</h2>
    <label><span>Folders, one in a line: paths or file: URIs</span>
      <textarea name="roots" rows="3" spellcheck="false" .value=${settings.roots.join("\n")}></textarea>
    </label>
    <p class="buttons">
      <label class="check"><input type="checkbox" name="asks" .checked=${settings.asks}> show each request for roots here</label>
      <button type="submit">Set the roots</button>
    </p>
  </form>`;
}

/** @param {Context} context */
export function modelsView(context) {
  const add = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const settingsJson = String(new FormData(form).get("settings") ?? "");
    void context.attempt(async () => {
      settings.models = (await context.send("models/add", { settingsJson })).models;
      context.announce("the model was added");
    });
  };
  return html`<details>
    <summary>Models that answer sampling: ${settings.models.length ? settings.models.join(", ") : "none"}</summary>
    <form class="card" @submit=${add}>
      <label><span>A model, as JSON</span>
        <textarea name="settings" rows="3" spellcheck="false" aria-describedby="model-note" .value=${EXAMPLE}></textarea>
      </label>
      <p id="model-note">Its API key is taken from the environment, or from the keyring ("apiKey": "keyring:service/name").</p>
      <button type="submit">Add the model</button>
    </form>
  </details>`;
}
