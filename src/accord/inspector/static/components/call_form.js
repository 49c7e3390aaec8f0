// @ts-check
/** A form and the button that sends it: errors are shown first, and the user may send the value anyway. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { Form } from "./form.js";

/** @typedef {import("../main.js").Context} Context */

/** A form for the arguments of one tool, prompt or template. */
export class CallForm {
  /**
   * @param {Context} context
   * @param {string} schemaJson
   * @param {string} text
   * @param {{ title?: string, action?: string }} [words]
   */
  constructor(context, schemaJson, text, { title = "Arguments", action = "Call" } = {}) {
    this.form = new Form(schemaJson, text, context, title);
    this.action = action;
    this.hasErrors = false;
    this.form.onChange = () => {
      this.hasErrors = false;
    };
    void this.form.load();
  }

  /**
   * @param {Context} context
   * @param {(text: string) => Promise<void>} run
   */
  view(context, run) {
    const { form } = this;
    const submit = async (/** @type {boolean} */ anyway) => {
      const isValid = await form.submit();
      if (form.obstacle) return context.announce(form.obstacle);
      this.hasErrors = !isValid;
      if (!isValid && !anyway) return context.announce("the value does not match the schema");
      return context.attempt(() => run(form.text));
    };
    return html`<form class="call-form" novalidate @submit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      void submit(false);
    }} @keydown=${(/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      void submit(false);
    }}>
      ${form.view()}
      <p class="buttons">
        <button type="submit">${this.action}</button>
        ${this.hasErrors ? html`<button type="button" class="quiet" @click=${() => submit(true)}>Send anyway</button>` : nothing}
        ${form.wasSubmitted && form.obstacle ? html`<span class="field-error">not sent: ${form.obstacle}</span>` : nothing}
      </p>
    </form>`;
  }
}
