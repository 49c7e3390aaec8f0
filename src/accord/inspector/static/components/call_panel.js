// @ts-check
/** The calls of a server: their progress, log messages and results; repeat, edit, save and copy them. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { download } from "../connection.js";
import { Result } from "./result_view.js";

/** @typedef {import("../main.js").Context} Context */
/** @typedef {{ kind: string, name: string, argumentsJson: string, outputSchemaJson?: string, inputSchemaJson?: string }} CallOf */

const STATES = /** @type {Record<string, string>} */ ({
  running: "connecting",
  done: "connected",
  "tool error": "failed",
  failed: "failed",
  cancelled: "idle",
});
const SCREENS = /** @type {Record<string, string>} */ ({ tool: "tools", prompt: "prompts", resource: "resources" });
const MOST_LISTED = 20;

/** The calls of one kind on one server. */
export class CallPanel {
  /** @param {string} kind */
  constructor(kind) {
    this.kind = kind;
    /** @type {any[]} */
    this.calls = [];
    /** @type {string | null} */
    this.shown = null;
    /** The tool or prompt that is selected: only its calls are shown; empty for those of all. */
    this.name = "";
    this.loadedAt = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** The call that was last read: those of the list have no arguments and no log messages. @type {any} */
    this.whole = null;
    /** @type {Result | null} */
    this.result = null;
    this.resultOf = "";
    /** @type {any[]} */
    this.saved = [];
    this.savedName = "";
    /** @type {{ title: string, text: string } | null} */
    this.copied = null;
  }

  /**
   * @param {Context} context
   * @param {string} [name]
   */
  async load(context, name = "") {
    const server = context.server.name;
    const { calls } = await context.send("calls/list", { server });
    this.name = name;
    this.loadedAt = performance.now();
    this.calls = calls.filter((/** @type {any} */ call) => call.request.kind === this.kind).map((/** @type {any} */ call) => this.completed(call));
    await this.loadResult(context);
  }

  /** @param {Context} context */
  async loadSaved(context) {
    this.keepSaved(await context.send("calls/saved"));
  }

  /** @param {{ saved: any[] }} list */
  keepSaved({ saved }) {
    this.saved = saved.filter(({ request }) => request.kind === this.kind);
  }

  /** The call that the user chose, or the last one of what is selected. */
  get call() {
    const calls = this.name ? this.calls.filter(({ request }) => request.name === this.name) : this.calls;
    return calls.find((each) => each.id === this.shown) ?? (this.name ? calls[0] : null) ?? null;
  }

  /**
   * Returns a call of the list with what was read of it.
   *
   * @param {any} call
   */
  completed(call) {
    if (call.id !== this.whole?.id) return call;
    const { request, logs, logsDropped } = this.whole;
    return { ...call, request, logs, logsDropped };
  }

  /** @param {Context} context */
  async loadResult(context) {
    const id = this.call?.id;
    if (!id || this.resultOf === id) return;
    const { call, result } = await context.send("calls/read", { id });
    if (id !== this.call?.id || this.resultOf === id) return; // Meanwhile another one was shown, or this one is complete.
    this.whole = call;
    this.calls = this.calls.map((each) => (each.id === id ? call : each));
    if (call.state !== "running") {
      this.resultOf = id;
      this.result?.close();
      this.result = result ? new Result(result, context.update) : null;
      context.announce(`${call.request.name}: ${call.state}`);
    }
    context.update();
  }

  /**
   * @param {Context} context
   * @param {CallOf} call
   */
  async start(context, { kind, name, argumentsJson, outputSchemaJson = "" }) {
    const server = context.server.name;
    const call = await context.send("calls/start", { server, kind, name, argumentsJson, outputSchemaJson });
    this.whole = call;
    this.calls = [call, ...this.calls];
    this.loadedAt = performance.now();
    this.show(call.id);
    context.announce(`${name} is running`);
    context.update();
  }

  /** @param {string} id */
  show(id) {
    this.shown = id;
    this.resultOf = "";
    this.result?.close();
    this.result = null;
  }

  // --- views -----------------------------------------------------------------------------------------------------

  /**
   * @param {Context} context
   * @param {(call: any) => void} edit Fills the form with the arguments of a call.
   * @param {string} [name]
   */
  view(context, edit, name = "") {
    this.name = name;
    clearTimeout(this.timer);
    if (this.call?.state === "running") this.timer = setTimeout(context.update, 1000);
    const isRead = this.call !== null && this.call.id === this.whole?.id;
    return html`${isRead ? this.callView(this.call, context, edit) : nothing} ${this.listView(context)}`;
  }

  /**
   * @param {any} call
   * @param {Context} context
   * @param {(call: any) => void} edit
   */
  callView(call, context, edit) {
    const { request } = call;
    return html`<section class="card call" aria-labelledby="call-title">
      <h3 id="call-title">
        <bdi>${request.name}</bdi> <span class="state state-${STATES[call.state]}">${call.state}</span>
        <span class="muted">${seconds(this.secondsOf(call))}</span>
      </h3>
      ${call.state === "running" ? waitingView(context) : nothing}
      ${call.progress ? progressView(call.progress) : nothing} ${logsView(call)}
      ${call.error ? html`<p class="error"><strong>${call.error}</strong>${call.code === null ? nothing : ` (code ${call.code})`}</p>` : nothing}
      ${this.result && this.resultOf === call.id ? this.result.view(context) : nothing}
      <p class="buttons">
        ${call.state === "running"
          ? html`<button type="button" @click=${() => context.attempt(async () => void (await context.send("calls/cancel", { id: call.id })))}>Cancel</button>`
          : html`<button type="button" @click=${() => context.attempt(() => this.start(context, request))}>Repeat</button>`}
        <button type="button" class="quiet" @click=${() => edit(call)}>Edit</button>
        <a href=${context.address("timeline", context.server.name, "live", String(call.requestRow ?? call.firstRow))}>Its messages in the timeline</a>
        ${["tool error", "failed"].includes(call.state) && context.server.transport === "process"
          ? html`<a href=${context.address("servers", context.server.name)}>stderr of the server</a>`
          : nothing}
        ${call.size
          ? html`<button type="button" class="quiet" @click=${() => context.attempt(() => download("calls/download", { id: call.id }))}>Save the result</button>`
          : nothing}
      </p>
      ${this.copyView(context, { ...request, id: call.id })} ${this.saveView(context, request, "call")}
    </section>`;
  }

  /** @param {any} call */
  secondsOf({ state, seconds }) {
    return state === "running" ? seconds + (performance.now() - this.loadedAt) / 1000 : seconds;
  }

  /** @param {Context} context */
  listView(context) {
    if (!this.calls.length) return nothing;
    const open = (/** @type {any} */ { id, request }) => {
      this.show(id);
      if (this.name && this.name !== request.name) context.navigate(SCREENS[this.kind], context.server.name, request.name);
      void context.attempt(() => this.loadResult(context));
      context.update();
    };
    return html`<details class="card"><summary>Calls: ${this.calls.length}</summary>
      <ul class="plain">${this.calls.slice(0, MOST_LISTED).map((call) => html`<li>
        <button type="button" class="quiet" aria-current=${call === this.call ? "true" : nothing} @click=${() => open(call)}>
          <bdi>${call.request.name}</bdi>, ${call.state}, ${seconds(this.secondsOf(call))}
        </button>
      </li>`)}</ul>
    </details>`;
  }

  /**
   * @param {Context} context
   * @param {any} call
   */
  copyView(context, call) {
    const forms = /** @type {[string, string][]} */ ([["accord", "accord call"], ["curl", "curl"], ...(this.kind === "tool" ? [["pytest", "pytest"]] : [])]);
    const copy = (/** @type {string} */ form, /** @type {string} */ title) =>
      context.attempt(async () => {
        const { server = context.server.name, kind, name, argumentsJson, inputSchemaJson = "", id = "" } = call;
        const { text } = await context.send("calls/copy", { server, kind, name, argumentsJson, inputSchemaJson, id, form });
        this.copied = { title, text };
        await navigator.clipboard?.writeText(text).then(() => context.announce(`${title} was copied`), () => undefined);
        context.update();
      });
    return html`<p class="buttons">Copy as ${forms.map(([form, title]) => html`<button type="button" class="quiet" @click=${() => copy(form, title)}>${title}</button>`)}</p>
      ${this.copied ? html`<pre tabindex="0" aria-label=${this.copied.title}>${this.copied.text}</pre>` : nothing}`;
  }

  /**
   * @param {Context} context
   * @param {any} request
   * @param {string} id
   */
  saveView(context, request, id) {
    const save = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      const form = /** @type {HTMLFormElement} */ (event.currentTarget);
      const { kind, name, argumentsJson, outputSchemaJson = "" } = request;
      void context.attempt(async () => {
        this.keepSaved(await context.send("calls/save", { server: context.server.name, kind, name, argumentsJson, outputSchemaJson, savedName: this.savedName }));
        context.announce(`${this.savedName} was saved`);
        this.savedName = "";
        form.reset(); // Where nothing was drawn since the user typed, the view does not know of the text in the field.
      });
    };
    return html`<form class="buttons" @submit=${save}>
      <label for="${id}-saved-name"><span>Save this call as</span></label>
      <input id="${id}-saved-name" type="text" required maxlength="200" autocomplete="off" .value=${this.savedName}
        @input=${(/** @type {Event} */ event) => {
          this.savedName = /** @type {HTMLInputElement} */ (event.target).value;
        }}>
      <button type="submit" class="quiet">Save</button>
    </form>`;
  }

  /**
   * @param {Context} context
   * @param {(call: any) => void} edit
   */
  savedView(context, edit) {
    if (!this.saved.length) return nothing;
    const remove = (/** @type {string} */ savedName) =>
      context.attempt(async () => this.keepSaved(await context.send("calls/remove-saved", { savedName })));
    return html`<details class="card"><summary>Saved calls: ${this.saved.length}</summary>
      <ul class="plain">${this.saved.map(({ name, request }) => html`<li class="buttons">
        <button type="button" class="quiet" @click=${() => edit({ request })}><bdi>${name}</bdi> (<bdi>${request.name}</bdi>)</button>
        <button type="button" class="quiet" aria-label="Remove the saved call ${name}" @click=${() => remove(name)}>Remove</button>
      </li>`)}</ul>
    </details>`;
  }
}

/**
 * Says that the server asks the user for something: until that is answered, the call goes on.
 *
 * @param {Context} context
 */
function waitingView({ topics, server, address }) {
  if (!topics.questions?.servers?.includes(server.name)) return nothing;
  return html`<p class="warning" role="status">The server waits for your answer:
    <a href=${address("questions", server.name)}>answer its request</a></p>`;
}

/** @param {number} value */
function seconds(value) {
  return value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`;
}

/** @param {any} progress */
function progressView({ progress, total, message }) {
  const isBounded = total !== null && total > 0;
  return html`<p>
    <progress aria-label="Progress" max=${isBounded ? total : nothing} value=${isBounded ? progress : nothing}></progress>
    ${progress}${total === null ? nothing : ` of ${total}`} <bdi>${message}</bdi>
  </p>`;
}

/** @param {any} call */
function logsView({ logs, logsDropped }) {
  if (!logs.length) return nothing;
  return html`<details open><summary>Log messages: ${logs.length + logsDropped}</summary>
    <ol class="plain logs" tabindex="0" aria-label="Log messages">
      ${logs.map((/** @type {any} */ log) => html`<li><span class="mark">${log.level}</span> <span class="muted">${seconds(log.seconds)} ${log.logger}</span> <code>${log.dataJson}</code></li>`)}
    </ol></details>`;
}
