// @ts-check
/** The screen Tools: search them, fill in their arguments, call them. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { CallForm } from "../components/call_form.js";
import { CallPanel } from "../components/call_panel.js";
import { CatalogueList, itemFacts } from "../components/catalogue_list.js";
import { formatJson } from "../components/json_text.js";
import { perServer } from "../components/per_server.js";

/** @typedef {import("../main.js").Context} Context */

/** What the screen has of one server. */
class ToolsOfServer {
  constructor() {
    this.list = new CatalogueList("tools/list", "Tools");
    this.panel = new CallPanel("tool");
    /** @type {Map<string, { schema: string, form: CallForm }>} */
    this.forms = new Map();
  }

  /**
   * @param {any} tool
   * @param {Context} context
   */
  formOf(tool, context) {
    const schema = tool.inputSchemaJson || "{}";
    const found = this.forms.get(tool.name);
    if (found && found.schema === schema) return found.form;
    const form = new CallForm(context, schema, found ? found.form.form.text : "{}", { key: `tool ${context.server.name} ${tool.name}` });
    this.forms.set(tool.name, { schema, form });
    return form;
  }
}

const toolsOf = perServer(() => new ToolsOfServer());

/** @type {import("../main.js").Screen} */
export const screen = {
  perServer: true,
  isKnown: (context) => toolsOf(context).list.items.length > 0,
  topics: ["calls"],
  load: async (context) => {
    const tools = toolsOf(context);
    await Promise.all([tools.list.load(context), tools.panel.load(context, context.rest[0])]);
    await tools.panel.loadSaved(context);
  },
  view: (context) => {
    const tools = toolsOf(context);
    const [selected = ""] = context.rest;
    const tool = tools.list.find(selected);
    return html`<div class="catalogue">
      ${tools.list.view(context, (name) => context.address("tools", context.server.name, name), selected)}
      <div class="catalogue-item">
        ${tool ? toolView(tool, tools, context) : html`<p class="muted">${selected ? "The server has no such tool." : "Choose a tool."}</p>`}
        ${tools.panel.savedView(context, (call) => edit(call, tools, context))}
      </div>
    </div>`;
  },
  actions: (context) =>
    context.server
      ? toolsOf(context).list.items.map(({ name }) => ({ title: `Tool ${name}`, run: () => context.navigate("tools", context.server.name, name) }))
      : [],
};

/**
 * @param {any} tool
 * @param {ToolsOfServer} tools
 * @param {Context} context
 */
function toolView(tool, tools, context) {
  const form = tools.formOf(tool, context);
  const { name, inputSchemaJson = "", outputSchemaJson = "" } = tool;
  const call = (/** @type {string} */ argumentsJson) => ({ kind: "tool", name, argumentsJson, outputSchemaJson, inputSchemaJson });
  return html`<section class="card" aria-labelledby="tool-title">
      <h2 id="tool-title"><bdi>${name}</bdi></h2>
      ${tool.title && tool.title !== name ? html`<p><bdi>${tool.title}</bdi></p>` : nothing} ${itemFacts(tool)}
      ${form.view(context, (text) => tools.panel.start(context, call(text)))}
      ${form.form.obstacle ? nothing : html`<details><summary>Copy or save without calling</summary>
        ${tools.panel.copyView(context, call(form.form.text))} ${tools.panel.saveView(context, call(form.form.text), "form")}</details>`}
      <details><summary>JSON of the tool</summary><pre tabindex="0">${formatJson(tool.itemJson ?? "")}</pre></details>
      ${tool.icons?.length ? html`<p class="muted">Icons, not loaded: ${tool.icons.map((/** @type {string} */ each) => html`<code>${each}</code> `)}</p>` : nothing}
    </section>
    ${tools.panel.view(context, (each) => edit(each, tools, context), name)}`;
}

/**
 * Fills the form with the arguments of a call.
 *
 * @param {any} call
 * @param {ToolsOfServer} tools
 * @param {Context} context
 */
function edit({ request }, tools, context) {
  const tool = tools.list.find(request.name);
  if (tool) tools.formOf(tool, context).form.setText(formatJson(request.argumentsJson || "{}"));
  context.navigate("tools", context.server.name, request.name);
  document.getElementById("main")?.focus();
}
