// @ts-check
/** The screen Resources: search resources and templates, fill in the variables of a template, read them. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { CallForm } from "../components/call_form.js";
import { CallPanel } from "../components/call_panel.js";
import { CatalogueList, itemFacts } from "../components/catalogue_list.js";
import { complete, schemaOf } from "../components/completion.js";
import { formatJson } from "../components/json_text.js";
import { perServer } from "../components/per_server.js";

/** @typedef {import("../main.js").Context} Context */

/** What the screen has of one server. */
class ResourcesOfServer {
  constructor() {
    this.list = new CatalogueList("resources/list", "Resources");
    this.templates = new CatalogueList("templates/list", "Templates");
    this.panel = new CallPanel("resource");
    /** @type {Map<string, CallForm>} */
    this.forms = new Map();
    this.uri = "";
  }

  /**
   * @param {any} template
   * @param {Context} context
   */
  formOf(template, context) {
    let form = this.forms.get(template.name);
    if (form === undefined) {
      form = new CallForm(context, schemaOf(template.arguments ?? []), "{}", { title: "Variables", action: "Read the resource", key: `template ${context.server.name} ${template.name}` });
      form.form.completer = (variable, value, others) => complete(context, { template: template.name }, variable, value, others);
      this.forms.set(template.name, form);
    }
    return form;
  }
}

const resourcesOf = perServer(() => new ResourcesOfServer());

/** @type {import("../main.js").Screen} */
export const screen = {
  perServer: true,
  isKnown: (context) => resourcesOf(context).list.items.length + resourcesOf(context).templates.items.length > 0,
  topics: ["calls"],
  load: async (context) => {
    const resources = resourcesOf(context);
    await Promise.all([resources.list.load(context), resources.templates.load(context), resources.panel.load(context)]);
    await resources.panel.loadSaved(context);
  },
  view: (context) => {
    const resources = resourcesOf(context);
    const { server } = context;
    const [selected = ""] = context.rest;
    const addressOf = (/** @type {string} */ name) => context.address("resources", server.name, name);
    const edit = (/** @type {any} */ call) => context.navigate("resources", server.name, call.request.name);
    return html`<div class="catalogue">
      <div>${resources.list.view(context, addressOf, selected)} ${resources.templates.view(context, addressOf, selected)} ${uriForm(resources, context)}</div>
      <div class="catalogue-item">
        ${selected ? itemView(selected, resources, context) : html`<p class="muted">Choose a resource or a template.</p>`}
        ${resources.panel.view(context, edit)} ${resources.panel.savedView(context, edit)}
      </div>
    </div>`;
  },
  actions: (context) =>
    context.server
      ? [...resourcesOf(context).list.items, ...resourcesOf(context).templates.items].map(({ name }) => ({
          title: `Resource ${name}`,
          run: () => context.navigate("resources", context.server.name, name),
        }))
      : [],
};

/**
 * @param {string} name
 * @param {ResourcesOfServer} resources
 * @param {Context} context
 */
function itemView(name, resources, context) {
  const template = resources.templates.find(name);
  const item = resources.list.find(name) ?? template ?? { name };
  return html`<section class="card" aria-labelledby="resource-title">
    <h2 id="resource-title"><bdi>${item.title || item.name}</bdi></h2>
    <p><code class="target">${item.name}</code> ${item.mimeType ? html`<span class="muted">${item.mimeType}</span>` : nothing}
      ${item.size === undefined || item.size === null ? nothing : html`<span class="muted">${item.size.toLocaleString("en")} bytes, as the server says</span>`}</p>
    ${itemFacts(item)} ${template ? templateView(template, resources, context) : readView(name, resources, context)}
    ${item.itemJson ? html`<details><summary>JSON of the entry</summary><pre tabindex="0">${formatJson(item.itemJson)}</pre></details>` : nothing}
  </section>`;
}

/**
 * @param {string} uri
 * @param {ResourcesOfServer} resources
 * @param {Context} context
 */
function readView(uri, resources, context) {
  return html`<p class="buttons">
    <button type="button" @click=${() => context.attempt(() => read(uri, resources, context))}>Read the resource</button>
  </p>`;
}

/**
 * @param {string} uri
 * @param {ResourcesOfServer} resources
 * @param {Context} context
 */
function read(uri, resources, context) {
  return resources.panel.start(context, { kind: "resource", name: uri, argumentsJson: "" });
}

/**
 * @param {any} template
 * @param {ResourcesOfServer} resources
 * @param {Context} context
 */
function templateView(template, resources, context) {
  const form = resources.formOf(template, context);
  return form.view(context, async () => {
    const { uri } = await context.send("templates/expand", { template: template.name, values: form.form.texts() });
    await read(uri, resources, context);
  });
}

/**
 * A resource that is in no list.
 *
 * @param {ResourcesOfServer} resources
 * @param {Context} context
 */
function uriForm(resources, context) {
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    context.navigate("resources", context.server.name, resources.uri);
  };
  return html`<form class="buttons" @submit=${submit}>
    <label for="resource-uri"><span>Another URI</span></label>
    <input id="resource-uri" type="text" required autocomplete="off" spellcheck="false" .value=${resources.uri}
      @input=${(/** @type {Event} */ event) => {
        resources.uri = /** @type {HTMLInputElement} */ (event.target).value;
      }}>
    <button type="submit" class="quiet">Open</button>
  </form>`;
}
