// @ts-check
/** A list of a server with a search: tools, resources, templates or prompts. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";

/** @typedef {import("../main.js").Context} Context */

const MOST_SHOWN = 300;

/** One list. It is requested once for each connection. */
export class CatalogueList {
  /**
   * @param {string} command
   * @param {string} title
   */
  constructor(command, title) {
    this.command = command;
    this.title = title;
    /** @type {any[]} */
    this.items = [];
    this.note = "";
    this.search = "";
    this.loadedFor = "";
  }

  /**
   * @param {Context} context
   * @param {boolean} [always]
   */
  async load(context, always = false) {
    const { name, connections, state } = context.server;
    if (state !== "connected") return;
    const key = `${name} ${connections}`;
    if (!always && this.loadedFor === key) return;
    this.loadedFor = key;
    try {
      const { items, note } = await context.send(this.command, { server: name });
      this.items = items;
      this.note = note;
    } catch (error) {
      this.loadedFor = "";
      throw error;
    }
    context.update();
  }

  /** @param {string} name */
  find(name) {
    return this.items.find((each) => each.name === name) ?? null;
  }

  matches() {
    const words = this.search.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return this.items;
    return this.items.filter((item) => {
      const text = `${item.name} ${item.title ?? ""} ${item.description ?? ""}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }

  /**
   * @param {Context} context
   * @param {(name: string) => string} addressOf
   * @param {string} selected
   */
  view(context, addressOf, selected) {
    const found = this.matches();
    const id = `search-${this.command.replace("/", "-")}`;
    const type = (/** @type {Event} */ event) => {
      this.search = /** @type {HTMLInputElement} */ (event.target).value;
      context.update();
    };
    return html`<section class="catalogue-list" aria-label=${this.title}>
      <div class="buttons">
        <label for=${id}><span>Search ${this.title.toLowerCase()}</span></label>
        <input id=${id} type="search" autocomplete="off" spellcheck="false" .value=${this.search} @input=${type}>
        <button type="button" class="quiet" @click=${() => context.attempt(() => this.load(context, true))}>Reload</button>
      </div>
      <p class="muted">${this.title}: ${found.length === this.items.length ? this.items.length : `${found.length} of ${this.items.length}`}</p>
      ${this.note ? html`<p class="note">${this.note}</p>` : nothing}
      <ul class="plain">
        ${found.slice(0, MOST_SHOWN).map((item) => html`<li>
          <a href=${addressOf(item.name)} aria-current=${item.name === selected ? "true" : nothing}>
            <bdi class="item-name">${item.name || "(no name)"}</bdi>
            ${item.title && item.title !== item.name ? html`<bdi class="item-title">${item.title}</bdi>` : nothing}
            ${item.problem ? html`<span class="warning">invalid</span>` : nothing}
          </a>
        </li>`)}
      </ul>
      ${found.length > MOST_SHOWN ? html`<p class="muted">${found.length - MOST_SHOWN} more: search to find them.</p>` : nothing}
    </section>`;
  }
}

/**
 * What the list says about an item, as text.
 *
 * @param {any} item
 */
export function itemFacts(item) {
  return html`
    ${item.problem ? html`<p class="error"><strong>${item.problem}</strong></p>` : nothing}
    ${item.description ? html`<p class="description" dir="auto">${item.description}</p>` : nothing}
    ${item.claims?.length ? html`<p class="claims">The server says: ${item.claims.join(", ")}. <span class="muted">Nobody has checked this.</span></p>` : nothing}
  `;
}
