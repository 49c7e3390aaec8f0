// @ts-check
/** The options of a check. Tools are called only if the user allows it. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { keyed } from "../vendor/lit-html/directives/keyed.js";

/** @typedef {import("../main.js").Context} Context */

const TRANSPORTS = ["stdio", "http", "sse"];
const TOOL_CALLS = [
  ["none", "call no tool"],
  ["read-only", "call tools that are annotated as read-only"],
  ["named", "call these tools"],
  ["all", "call all tools, also with generated arguments"],
];

/** The options in the form; where it is not shown, those that it has at first. @returns {Promise<Record<string, any>>} */
export async function chosenOptions() {
  const form = document.querySelector(".check-form");
  if (!(form instanceof HTMLFormElement)) return { storedLogin: true };
  const file = new FormData(form).get("baseline");
  return { ...read(form), baseline: file instanceof File ? await file.text() : "" };
}

/** @param {HTMLFormElement} form */
function read(form) {
  const data = new FormData(form);
  const words = (/** @type {string} */ name) => String(data.get(name) ?? "").split(/[\s,]+/).filter(Boolean);
  const number = (/** @type {string} */ name) => Number(data.get(name));
  return {
    revisions: data.getAll("revision"),
    transports: data.getAll("transport"),
    full: data.has("full"),
    passive: data.has("passive"),
    only: words("only"),
    skip: words("skip"),
    level: data.get("level"),
    timeout: number("timeout"),
    jobs: number("jobs"),
    toolCalls: data.get("toolCalls"),
    tools: words("tools"),
    cases: number("cases"),
    seed: number("seed"),
    sequence: String(data.get("sequence") ?? "").trim(),
    tokens: data.getAll("token").map(String).filter(Boolean),
    issuer: String(data.get("issuer") ?? "").trim(),
    audience: String(data.get("audience") ?? "").trim(),
    storedLogin: data.has("storedLogin"),
  };
}

/**
 * @param {Context} context
 * @param {boolean} isRunning
 * @param {() => void} start
 * @param {() => void} stop
 */
export function checkForm({ server, revisions }, isRunning, start, stop) {
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    start();
  };
  return keyed(server.name, html`<form class="card check-form" @submit=${submit}>
    <p class="buttons">
      <button type="submit" ?disabled=${isRunning}>Check</button>
      <button type="button" class="quiet" ?disabled=${!isRunning} @click=${stop}>Stop</button>
    </p>
    <p class="muted">The check opens its own connections${server.transport === "process" ? " and processes" : nothing}.
      It calls no tool unless you allow it below.</p>
    <details>
      <summary>Options</summary>
      ${extentFields(revisions)} ${callFields()} ${server.transport === "HTTP" ? tokenFields() : nothing}
    </details>
  </form>`);
}

/**
 * @param {string} name
 * @param {string} label
 * @param {string} [value]
 */
function box(name, label, value = "on") {
  return html`<label class="check-option"><input type="checkbox" name=${name} value=${value}> ${label}</label>`;
}

/** @param {string[]} revisions */
function extentFields(revisions) {
  return html`<fieldset>
      <legend>Revisions (without a choice: the newest of both kinds)</legend>
      ${revisions.map((each) => box("revision", each, each))} ${box("full", "every revision, with every rule")}
    </fieldset>
    <fieldset>
      <legend>Transports (without a choice: all that reach the server)</legend>
      ${TRANSPORTS.map((each) => box("transport", each, each))}
    </fieldset>
    <fieldset class="check-fields">
      <legend>Rules</legend>
      <label><span>Only these rules or areas</span><input name="only" autocomplete="off" spellcheck="false" placeholder="tools http/*"></label>
      <label><span>Skip these</span><input name="skip" autocomplete="off" spellcheck="false"></label>
      <label><span>Level</span><select name="level">
        <option value="may">MUST, SHOULD and MAY</option><option value="should">MUST and SHOULD</option><option value="must">MUST</option>
      </select></label>
      <label><span>Seconds for a response</span><input name="timeout" type="number" min="0.1" max="600" step="any" value="5"></label>
      <label><span>Concurrent connections</span><input name="jobs" type="number" min="1" max="16" value="2"></label>
      <label><span>Baseline: the file of accepted findings</span><input name="baseline" type="file" accept=".json"></label>
      ${box("passive", "only connect, ping and list")}
    </fieldset>`;
}

function callFields() {
  return html`<fieldset class="check-fields">
    <legend>Tool calls</legend>
    ${TOOL_CALLS.map(
      ([value, label]) => html`<label class="check-option"><input type="radio" name="toolCalls" value=${value} ?checked=${value === "none"}> ${label}</label>`,
    )}
    <label><span>Names of tools</span><input name="tools" autocomplete="off" spellcheck="false"></label>
    <label><span>Generated calls</span><input name="cases" type="number" min="0" max="100000" value="700"></label>
    <label><span>Seed</span><input name="seed" type="number" step="1" value="0"></label>
    <label><span>Only this sequence of calls (JSON)</span><input name="sequence" autocomplete="off" spellcheck="false"></label>
  </fieldset>`;
}

function tokenFields() {
  return html`<fieldset class="check-fields">
    <legend>Bearer tokens, of one or two principals</legend>
    <label class="check-option"><input type="checkbox" name="storedLogin" checked> without one: that of the stored login</label>
    <label><span>First token</span><input name="token" type="password" autocomplete="off"></label>
    <label><span>Second token</span><input name="token" type="password" autocomplete="off"></label>
    <label><span>Or be the issuer at this port of loopback</span><input name="issuer" autocomplete="off" spellcheck="false" placeholder=":9400"></label>
    <label><span>Audience of its tokens</span><input name="audience" autocomplete="off" spellcheck="false"></label>
  </fieldset>`;
}
