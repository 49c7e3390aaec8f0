// @ts-check
/** The command palette: all actions, found by typing; Ctrl+K opens it. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";

/** @typedef {import("../main.js").Action} Action */

const SHOWN = 50;

/** @type {{ actions: Action[], text: string, selected: number, from: Element | null }} */
const palette = { actions: [], text: "", selected: 0, from: null };

/**
 * @param {Action[]} actions
 * @param {() => void} update
 */
export function openPalette(actions, update) {
  Object.assign(palette, { actions, text: "", selected: 0, from: document.activeElement });
  update();
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("palette"));
    if (dialog && !dialog.open) dialog.showModal();
  }));
}

/** @param {() => void} update */
function close(update) {
  /** @type {HTMLDialogElement | null} */ (document.getElementById("palette"))?.close();
  palette.actions = [];
  if (palette.from instanceof HTMLElement) palette.from.focus();
  update();
}

function matches() {
  const words = palette.text.toLowerCase().split(/\s+/);
  return palette.actions.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word))).slice(0, SHOWN);
}

/** @param {() => void} update */
export function paletteView(update) {
  if (!palette.actions.length) return nothing;
  const found = matches();
  const run = (/** @type {Action | undefined} */ action) => {
    if (action === undefined) return;
    close(update);
    action.run();
  };
  const onInput = (/** @type {InputEvent} */ event) => {
    palette.text = /** @type {HTMLInputElement} */ (event.target).value;
    palette.selected = 0;
    update();
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      palette.selected = Math.max(0, Math.min(found.length - 1, palette.selected + step));
      update();
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[palette.selected]);
    }
  };
  return html`<dialog id="palette" aria-label="Commands" @cancel=${() => close(update)}>
    <input
      type="text" role="combobox" aria-label="Command" aria-expanded="true" aria-controls="palette-list" autofocus
      aria-activedescendant=${found.length ? `palette-${palette.selected}` : nothing}
      .value=${palette.text} @input=${onInput} @keydown=${onKey}
    >
    <ul id="palette-list" role="listbox" aria-label="Commands">
      ${found.map(
        (action, index) => html`<li
          id="palette-${index}" role="option" aria-selected=${index === palette.selected ? "true" : "false"}
          @click=${() => run(action)}
        >${action.title}</li>`,
      )}
    </ul>
  </dialog>`;
}
