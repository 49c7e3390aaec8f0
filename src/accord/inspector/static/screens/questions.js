// @ts-check
/** The screen Server requests: elicitation, sampling and roots that wait for an answer; each may be declined. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { CallForm, storeDraft, storedDraft } from "../components/call_form.js";
import { JsonDocument, encodeString, formatJson } from "../components/json_text.js";
import { safeLink } from "../components/safe_link.js";
import { modelsView, rootsView, loadSettings } from "../components/question_settings.js";

/** @typedef {import("../main.js").Context} Context */

/**
 * An open request, with what the user typed so far.
 *
 * @typedef {object} Draft
 * @property {any} detail The answer of `questions/get`.
 * @property {string} key Where the text of the user is stored, for a reload of the page.
 * @property {number} expiresAt By the clock of the page, in milliseconds.
 * @property {CallForm | null} form
 * @property {string} request The params of a sampling request, which the user may edit.
 * @property {string} answer
 * @property {string} model
 * @property {boolean} isAsking
 * @property {string[]} problems
 */

const TITLES = /** @type {Record<string, string>} */ ({
  form: "Elicitation: a form",
  url: "Elicitation: a page to visit",
  sampling: "Sampling: a request to the model",
  roots: "Roots: which folders the server may use",
});
const ANSWERS = /** @type {Record<string, string>} */ ({
  sampling: '{"role": "assistant", "content": {"type": "text", "text": ""}, "model": "me", "stopReason": "endTurn"}',
  roots: '{"roots": []}',
});
const CLOSED_SHOWN = 20;

/** @type {{ drafts: Map<number, Draft>, closed: any[], models: string[], timer: number }} */
const state = { drafts: new Map(), closed: [], models: [], timer: 0 };

/** @type {import("../main.js").Screen} */
export const screen = {
  topics: ["questions"],
  load,
  view: (context) => {
    tick(context);
    const drafts = [...state.drafts.values()];
    return html`
      ${drafts.length ? nothing : html`<p>No request of a server waits for an answer. New ones appear here.</p>`}
      ${repeat(drafts, ({ detail }) => detail.id, (draft) => questionView(context, draft))}
      ${closedView()} ${context.server ? rootsView(context) : nothing} ${modelsView(context)}
    `;
  },
  actions: (context) =>
    [...state.drafts.values()].map((draft) => ({
      title: `Decline the request ${draft.detail.id} of ${draft.detail.server}`,
      run: () => void answer(context, draft, "decline"),
    })),
};

/** @param {Context} context */
async function load(context) {
  const { open, closed } = await context.send("questions/list");
  state.closed = closed.slice(0, CLOSED_SHOWN);
  const ids = new Set(open.map((/** @type {any} */ each) => each.id));
  for (const id of state.drafts.keys()) if (!ids.has(id)) state.drafts.delete(id);
  for (const each of open) {
    if (state.drafts.has(each.id)) continue;
    const draft = newDraft(context, await context.send("questions/get", { id: each.id }));
    state.drafts.set(each.id, draft);
    context.announce(`${draft.detail.server} sent a request: ${TITLES[draft.detail.kind]}`);
  }
  state.models = await loadSettings(context);
  context.update();
}

/**
 * @param {Context} context
 * @param {any} detail
 * @returns {Draft}
 */
function newDraft(context, detail) {
  const hasForm = detail.kind === "form" && detail.schemaJson;
  const key = `answer ${detail.id} ${detail.server} ${detail.paramsJson.slice(0, 2000)}`;
  const words = { title: "Answer", action: "Accept", key };
  const isWhole = detail.paramsLength <= detail.paramsJson.length;
  return {
    detail,
    key,
    expiresAt: performance.now() + detail.remainingSeconds * 1000,
    form: hasForm ? new CallForm(context, detail.schemaJson, "{}", words) : null,
    request: storedDraft(`request ${key}`) || (isWhole ? formatJson(detail.paramsJson) : detail.paramsJson),
    answer: (!hasForm && storedDraft(key)) || ANSWERS[detail.kind] || "",
    model: "",
    isAsking: false,
    problems: [],
  };
}

/**
 * Renders again every second while the remaining time is shown.
 *
 * @param {Context} context
 */
function tick(context) {
  clearTimeout(state.timer);
  if (state.drafts.size) state.timer = setTimeout(context.update, 1000);
}

/**
 * @param {Context} context
 * @param {Draft} draft
 * @param {string} action
 * @param {string} [json]
 * @param {boolean} [unchecked]
 */
function answer(context, draft, action, json = "", unchecked = false) {
  return context.attempt(async () => {
    const { id } = draft.detail;
    const { problems } = await context.send("questions/answer", { id, action, json, unchecked });
    draft.problems = problems;
    if (problems.length) return context.announce("the answer does not fit the request, and was not sent");
    state.drafts.delete(id);
    for (const key of [draft.key, `request ${draft.key}`]) storeDraft(key, "");
    context.announce(`request ${id}: ${action} sent`);
    return load(context);
  });
}

// --- view ------------------------------------------------------------------------------------------------------

/**
 * @param {Context} context
 * @param {Draft} draft
 */
function questionView(context, draft) {
  const { detail } = draft;
  return html`<section class="card question" aria-labelledby="question-${detail.id}">
    <h2 id="question-${detail.id}">${TITLES[detail.kind]}</h2>
    ${factsView(draft)}
    ${detail.message ? html`<p class="message">${detail.message}</p>` : nothing}
    ${detail.kind === "url" ? urlView(detail.url) : nothing}
    ${detail.kind === "sampling" ? samplingView(context, draft) : nothing}
    ${draft.form ? draft.form.view(context, (text) => answer(context, draft, "accept", text, draft.form?.hasErrors), refuseButtons(context, draft)) : nothing}
    ${detail.kind === "url" || draft.form ? nothing : answerText(context, draft)}
    ${problemsView(context, draft)} ${draft.form ? nothing : buttons(context, draft)}
    ${detail.kind === "sampling" ? nothing : html`<details>
      <summary>The whole request</summary>
      <pre tabindex="0">${detail.paramsJson}</pre>
      ${cutNote(detail)}
    </details>`}
  </section>`;
}

/** @param {Draft} draft */
function factsView({ detail, expiresAt }) {
  const seconds = Math.max(0, Math.round((expiresAt - performance.now()) / 1000));
  const calls = detail.calls.length > 1 ? `one of: ${detail.calls.join(", ")}` : (detail.calls[0] ?? "not known");
  const facts = [
    ["Server", detail.server],
    ["Call", calls],
    ["Remaining time", `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`],
    ["Method", detail.method],
    ["Revision", detail.revision],
  ];
  return html`<dl class="facts">
    ${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** @param {string} url */
function urlView(url) {
  return html`<p>${safeLink(url)}</p>
    <p class="muted">The page is never opened by itself. Accept means: the user agreed to visit it.</p>`;
}

/** @param {any} detail */
function cutNote(detail) {
  if (detail.paramsLength <= detail.paramsJson.length) return nothing;
  return html`<p>Shortened: ${detail.paramsLength} characters in all; the timeline has all of it.</p>`;
}

/**
 * @param {Context} context
 * @param {Draft} draft
 */
function samplingView(context, draft) {
  const edit = (/** @type {Event} */ event) => {
    draft.request = /** @type {HTMLTextAreaElement} */ (event.target).value;
    storeDraft(`request ${draft.key}`, draft.request);
  };
  const choose = (/** @type {Event} */ event) => {
    draft.model = /** @type {HTMLSelectElement} */ (event.target).value;
  };
  return html`
    <label><span>Request, as it goes to the model</span>
      <textarea rows="8" spellcheck="false" .value=${draft.request} @input=${edit}></textarea>
    </label>
    ${cutNote(draft.detail)}
    <p class="buttons">
      <label><span>Model of the host</span>
        <select @change=${choose} ?disabled=${!state.models.length}>
          <option value="">${state.models.length ? "the best for the request" : "none: add one below"}</option>
          ${state.models.map((name) => html`<option value=${name} ?selected=${name === draft.model}>${name}</option>`)}
        </select>
      </label>
      <button type="button" class="quiet" ?disabled=${draft.isAsking || !state.models.length} @click=${() => askModel(context, draft)}>
        ${draft.isAsking ? "The model answers" : "Ask the model"}
      </button>
    </p>`;
}

/**
 * Puts the answer of a model into the field of the answer; the user sends it.
 *
 * @param {Context} context
 * @param {Draft} draft
 */
async function askModel(context, draft) {
  draft.isAsking = true;
  context.update();
  await context.attempt(async () => {
    const params = { id: draft.detail.id, paramsJson: draft.request, model: draft.model };
    const { model, resultJson } = await context.send("questions/ask-model", params);
    setAnswer(draft, resultJson);
    context.announce(`${model} answered; the answer was not sent yet`);
  });
  draft.isAsking = false;
  context.update();
}

/**
 * @param {Context} context
 * @param {Draft} draft
 */
function answerText(context, draft) {
  const edit = (/** @type {Event} */ event) => {
    setAnswer(draft, /** @type {HTMLTextAreaElement} */ (event.target).value);
    context.update();
  };
  return html`${draft.detail.kind === "sampling" ? messageText(context, draft) : nothing}
    <label><span>Answer, as JSON</span>
    <textarea rows="6" spellcheck="false" .value=${draft.answer} @input=${edit}></textarea>
  </label>`;
}

/**
 * @param {Draft} draft
 * @param {string} answer
 */
function setAnswer(draft, answer) {
  draft.answer = answer;
  draft.problems = [];
  storeDraft(draft.key, answer);
}

/**
 * A field for the text of a message, which is a part of the JSON below; nothing while the JSON has no such part.
 *
 * @param {Context} context
 * @param {Draft} draft
 */
function messageText(context, draft) {
  const json = new JsonDocument(draft.answer);
  const content = json.indexOf([], "content");
  const path = [content, json.indexOf([content], "text")];
  const text = path.includes(-1) ? null : json.at(path);
  if (text === null || !json.raw(text).startsWith('"')) return nothing;
  const type = (/** @type {Event} */ event) => {
    json.replace(path, encodeString(/** @type {HTMLTextAreaElement} */ (event.target).value));
    setAnswer(draft, json.text);
    context.update();
  };
  return html`<label><span>Text of the answer</span>
    <textarea rows="3" .value=${json.string(text)} @input=${type}></textarea>
  </label>`;
}

/**
 * @param {Context} context
 * @param {Draft} draft
 */
function problemsView(context, draft) {
  if (!draft.problems.length) return nothing;
  const text = draft.form ? draft.form.form.text : draft.answer;
  return html`<div class="error" role="alert">
    <strong>The answer does not fit the request, and was not sent.</strong>
    <ul>${draft.problems.map((problem) => html`<li>${problem}</li>`)}</ul>
    <button type="button" class="quiet" @click=${() => answer(context, draft, "accept", text, true)}>Send anyway</button>
  </div>`;
}

/**
 * @param {Context} context
 * @param {Draft} draft
 */
function buttons(context, draft) {
  const { kind } = draft.detail;
  const accept = () => answer(context, draft, "accept", draft.answer);
  return html`<p class="buttons">
    <button type="button" @click=${accept}>${kind === "url" ? "Accept" : "Send the answer"}</button>
    ${refuseButtons(context, draft)}
  </p>`;
}

/**
 * @param {Context} context
 * @param {Draft} draft
 */
function refuseButtons(context, draft) {
  const { kind } = draft.detail;
  return html`<button type="button" class="quiet" @click=${() => answer(context, draft, "decline")}>Decline</button>
    ${kind === "form" || kind === "url"
      ? html`<button type="button" class="quiet" @click=${() => answer(context, draft, "cancel")}>Cancel</button>`
      : nothing}`;
}

function closedView() {
  if (!state.closed.length) return nothing;
  return html`<details>
    <summary>Answered, expired and withdrawn requests</summary>
    <table>
      <caption class="visually-hidden">The last requests that no longer wait</caption>
      <thead><tr><th scope="col">Request</th><th scope="col">Server</th><th scope="col">Outcome</th><th scope="col">Seconds</th></tr></thead>
      <tbody>
        ${state.closed.map((each) => html`<tr>
          <td>${each.id}: ${TITLES[each.kind]}</td><td>${each.server}</td>
          <td>${each.outcome}${each.reason ? `: ${each.reason}` : ""}${each.isCompleted ? "; the user has finished on the page" : ""}</td>
          <td>${each.seconds}</td>
        </tr>`)}
      </tbody>
    </table>
  </details>`;
}
