// @ts-check
/** The command palette: all actions, found by typing; Ctrl+K opens it. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";

/** @typedef {import("../main.js").Action} Action */

const SHOWN = 50;

/** @type {{ isOpen: boolean, text: string, selected: number, from: Element | null }} */
const palette = { isOpen: false, text: "", selected: 0, from: null };

/**
 * Opens the palette at once: the next key that the user presses is for it.
 *
 * @param {() => void} redraw
 */
export function openPalette(redraw) {
  if (palette.isOpen) return;
  Object.assign(palette, { isOpen: true, text: "", selected: 0, from: document.activeElement });
  redraw();
  const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("palette"));
  if (dialog && !dialog.open) dialog.showModal();
}

/** @param {() => void} update */
function close(update) {
  /** @type {HTMLDialogElement | null} */ (document.getElementById("palette"))?.close();
  palette.isOpen = false;
  if (palette.from instanceof HTMLElement) palette.from.focus();
  update();
}

/** @param {Action[]} actions */
function matches(actions) {
  const words = palette.text.toLowerCase().split(/\s+/);
  return actions.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word))).slice(0, SHOWN);
}

/**
 * @param {() => Action[]} actions What can be done now: a list that arrives while the palette is open is in it.
 * @param {() => void} update
 */
export function paletteView(actions, update) {
  if (!palette.isOpen) return nothing;
  const found = matches(actions());
  palette.selected = Math.max(0, Math.min(found.length - 1, palette.selected));
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
      document.getElementById(`palette-${palette.selected}`)?.scrollIntoView({ block: "nearest" });
      update();
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(matches(actions())[palette.selected]); // what was just typed may not be drawn yet
    }
  };
  return html`<dialog id="palette" aria-label="Commands" @cancel=${() => close(update)}>
    <input
      type="text" role="combobox" aria-label="Command" aria-expanded="true" aria-controls="palette-list" autofocus
      placeholder="Type what you want to do or open"
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
