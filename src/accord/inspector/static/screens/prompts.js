// @ts-check
/** The screen Prompts: search them, fill in their arguments with the completion of the server, get their messages. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { CallForm } from "../components/call_form.js";
import { CallPanel } from "../components/call_panel.js";
import { CatalogueList, itemFacts } from "../components/catalogue_list.js";
import { complete, schemaOf } from "../components/completion.js";
import { formatJson } from "../components/json_text.js";
import { perServer } from "../components/per_server.js";

/** @typedef {import("../main.js").Context} Context */
/** @typedef {{ list: CatalogueList, panel: CallPanel, forms: Map<string, CallForm> }} PromptsOfServer */

const promptsOf = perServer(
  /** @returns {PromptsOfServer} */
  () => ({ list: new CatalogueList("prompts/list", "Prompts"), panel: new CallPanel("prompt"), forms: new Map() }),
);

/** @type {import("../main.js").Screen} */
export const screen = {
  perServer: true,
  isKnown: (context) => promptsOf(context).list.items.length > 0,
  topics: ["calls"],
  load: async (context) => {
    const prompts = promptsOf(context);
    await Promise.all([prompts.list.load(context), prompts.panel.load(context, context.rest[0])]);
    await prompts.panel.loadSaved(context);
  },
  view: (context) => {
    const prompts = promptsOf(context);
    const [selected = ""] = context.rest;
    const prompt = prompts.list.find(selected);
    const edit = (/** @type {any} */ call) => {
      const other = prompts.list.find(call.request.name);
      if (other) formOf(other, prompts, context).form.setText(formatJson(call.request.argumentsJson || "{}"));
      context.navigate("prompts", context.server.name, call.request.name);
    };
    return html`<div class="catalogue">
      ${prompts.list.view(context, (name) => context.address("prompts", context.server.name, name), selected)}
      <div class="catalogue-item">
        ${prompt ? promptView(prompt, prompts, context) : html`<p class="muted">${selected ? "The server has no such prompt." : "Choose a prompt."}</p>`}
        ${prompt ? prompts.panel.view(context, edit, prompt.name) : nothing} ${prompts.panel.savedView(context, edit)}
      </div>
    </div>`;
  },
  actions: (context) =>
    context.server
      ? promptsOf(context).list.items.map(({ name }) => ({ title: `Prompt ${name}`, run: () => context.navigate("prompts", context.server.name, name) }))
      : [],
};

/**
 * @param {any} prompt
 * @param {PromptsOfServer} prompts
 * @param {Context} context
 */
function formOf(prompt, prompts, context) {
  let form = prompts.forms.get(prompt.itemJson);
  if (form === undefined) {
    form = new CallForm(context, schemaOf(prompt.arguments ?? []), "{}", { action: "Get the prompt", key: `prompt ${context.server.name} ${prompt.name}` });
    form.form.completer = (argument, value, others) => complete(context, { prompt: prompt.name }, argument, value, others);
    prompts.forms.set(prompt.itemJson, form);
  }
  return form;
}

/**
 * @param {any} prompt
 * @param {PromptsOfServer} prompts
 * @param {Context} context
 */
function promptView(prompt, prompts, context) {
  const form = formOf(prompt, prompts, context);
  const call = (/** @type {string} */ argumentsJson) => ({ kind: "prompt", name: prompt.name, argumentsJson });
  return html`<section class="card" aria-labelledby="prompt-title">
    <h2 id="prompt-title"><bdi>${prompt.name}</bdi></h2>
    ${prompt.title && prompt.title !== prompt.name ? html`<p><bdi>${prompt.title}</bdi></p>` : nothing} ${itemFacts(prompt)}
    ${form.view(context, (text) => prompts.panel.start(context, call(text)))}
    <details><summary>JSON of the prompt</summary><pre tabindex="0">${formatJson(prompt.itemJson ?? "")}</pre></details>
  </section>`;
}
