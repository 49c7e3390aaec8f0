// @ts-check
/** A form and the button that sends it: errors are shown first, and the user may send the value anyway. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { Form } from "./form.js";

/** @typedef {import("../main.js").Context} Context */

const MOST_STORED = 1_000_000;

/**
 * Stores what the user typed until this tab is closed, so that it survives a reload; an empty text removes it.
 *
 * @param {string} key
 * @param {string} text
 */
export function storeDraft(key, text) {
  try {
    if (text && text.length <= MOST_STORED) sessionStorage.setItem(`draft ${key}`, text);
    else sessionStorage.removeItem(`draft ${key}`);
  } catch {
    // The storage is full: a reload loses the text.
  }
}

/** @param {string} key */
export function storedDraft(key) {
  return sessionStorage.getItem(`draft ${key}`) ?? "";
}

/** A form for the arguments of one tool, prompt or template. Its text is stored under `key`. */
export class CallForm {
  /**
   * @param {Context} context
   * @param {string} schemaJson
   * @param {string} text
   * @param {{ title?: string, action?: string, key?: string }} [words]
   */
  constructor(context, schemaJson, text, { title = "Arguments", action = "Call", key = "" } = {}) {
    this.form = new Form(schemaJson, (key && storedDraft(key)) || text, context, title);
    this.action = action;
    this.hasErrors = false;
    this.form.onChange = () => {
      this.hasErrors = false;
      if (key) storeDraft(key, this.form.text);
    };
    void this.form.load();
  }

  /**
   * @param {Context} context
   * @param {(text: string) => Promise<void>} run
   * @param {unknown} [others] Further buttons.
   */
  view(context, run, others = nothing) {
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
        ${others} ${form.wasSubmitted && form.obstacle ? html`<span class="field-error">not sent: ${form.obstacle}</span>` : nothing}
      </p>
    </form>`;
  }
}
