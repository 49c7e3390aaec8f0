// @ts-check
/** The details of a rule: its sentence, the findings with their messages and commands, and all cases. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { download } from "../connection.js";
import { safeLink } from "./safe_link.js";

/** @typedef {import("../main.js").Context} Context */

/** The messages that were loaded, by run and entries. @type {Map<string, any>} */
const messages = new Map();

/**
 * @param {Context} context
 * @param {number} run
 * @param {string} rule
 */
export function loadFinding(context, run, rule) {
  return context.send("check/finding", { run, rule });
}

/**
 * @param {any} detail
 * @param {number} run
 * @param {Context} context
 */
export function findingView(detail, run, context) {
  return html`<div class="finding-details">
    <p><strong>${detail.level.toUpperCase()}:</strong> ${detail.says}</p>
    ${detail.findings.map((/** @type {any} */ each) => oneFinding(each, run, context))}
    <details>
      <summary>Cases: ${detail.cases.length + detail.leftOut}</summary>
      <ul>${detail.cases.map(
        (/** @type {any} */ each) => html`<li><strong>${each.verdict}</strong> ${each.case} <span class="muted">${each.revision} over ${each.transport}</span>
          ${each.text ? html`<br>${each.text}` : nothing}</li>`,
      )}</ul>
      ${detail.leftOut ? html`<p class="muted">and ${detail.leftOut} more</p>` : nothing}
    </details>
  </div>`;
}

/**
 * @param {any} finding
 * @param {number} run
 * @param {Context} context
 */
function oneFinding(finding, run, context) {
  const key = `${run}:${finding.entries.join()}`;
  const loaded = messages.get(key);
  const show = () =>
    context.attempt(async () => {
      messages.set(key, await context.send("check/evidence", { run, entries: finding.entries }));
    });
  return html`<section class="finding" aria-label="Finding of ${finding.rule}">
    <dl>
      <dt>Seen</dt><dd>${finding.text}</dd>
      ${finding.known ? html`<dt>Baseline</dt><dd>accepts it</dd>` : nothing}
      ${finding.cause ? html`<dt>Likely cause</dt><dd>${finding.cause}</dd>` : nothing}
      <dt>Where</dt><dd>${finding.places.map((/** @type {any} */ each) => `${each.revision} over ${each.transport}`).join(", ")}</dd>
      ${finding.sdk ? html`<dt>Known bug of</dt><dd>${finding.sdk}</dd>` : nothing}
      ${finding.also?.length ? html`<dt>Also breaks</dt><dd>${finding.also.join(", ")}</dd>` : nothing}
      <dt>Specification</dt><dd>${finding.sources.map((/** @type {string} */ url) => html`<p>${safeLink(url)}</p>`)}</dd>
      ${finding.repeat ? html`<dt>Repeat it</dt><dd>${commandView(finding.repeat, context)}</dd>` : nothing}
    </dl>
    ${loaded ? messagesView(loaded) : html`<pre tabindex="0" aria-label="Evidence">${(finding.evidence ?? []).join("\n")}</pre>`}
    <p class="buttons">
      ${finding.entries?.length && !loaded
        ? html`<button type="button" class="quiet" @click=${show}>Show the bytes of ${finding.entries.length} entries</button>`
        : nothing}
      ${finding.entries?.length
        ? html`<button type="button" class="quiet" @click=${() => openTimeline(finding, run, context)}>Show on the timeline</button>`
        : nothing}
      <button type="button" class="quiet" @click=${() => context.attempt(() => download("check/session", { run }))}>Save the session of the check</button>
    </p>
  </section>`;
}

/**
 * @param {any} finding
 * @param {number} run
 * @param {Context} context
 */
function openTimeline(finding, run, context) {
  return context.attempt(async () => {
    const { session } = await context.send("check/open", { run });
    context.navigate("timeline", context.server.name, session, String(finding.entries[0]));
  });
}

/**
 * @param {string} command
 * @param {Context} context
 */
function commandView(command, context) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(command);
      context.announce("The command was copied");
    } catch {
      context.announce("The browser refused to copy: select the command instead");
    }
  };
  return html`<code class="target">${command}</code> <button type="button" class="quiet" @click=${copy}>Copy</button>`;
}

/** @param {any} evidence */
function messagesView(evidence) {
  return html`${evidence.leftOut ? html`<p class="muted">${evidence.leftOut} more entries are not shown</p>` : nothing}
    <ol class="check-messages" aria-label="Messages">
      ${evidence.entries.map(
        (/** @type {any} */ each) => html`<li>
          <p class="muted">entry ${each.number}, ${each.at.toFixed(3)} s, connection ${each.connection}${each.exchange ? `, exchange ${each.exchange}` : ""}:
            ${each.kind} ${each.direction}, ${each.size} bytes${each.isShortened ? ", shortened; the saved session has all" : ""}</p>
          <pre tabindex="0">${each.text}</pre>
        </li>`,
      )}
    </ol>`;
}
