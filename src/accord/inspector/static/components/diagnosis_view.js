// @ts-check
/** The steps of `accord doctor` for one server. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";

/** @typedef {import("../main.js").Context} Context */

/** @type {Record<string, [mark: string, word: string]>} */
const STATES = {
  passed: ["✓", "passed"],
  failed: ["✗", "failed"],
  warning: ["!", "warning"],
  "not-checked": ["·", "not checked"],
};

/** The last diagnosis of each server, or "running". @type {Map<string, any>} */
const diagnoses = new Map();
/** The failures that were diagnosed without a request of the user. @type {Set<string>} */
const diagnosed = new Set();

/**
 * Diagnoses each server whose connection failed, once for a failure. A command that needs an approval is not started.
 *
 * @param {Context} context
 */
export function diagnoseFailures(context) {
  for (const server of context.servers) {
    const failure = `${server.name} ${server.connections} ${server.error}`;
    if (server.state !== "failed" || server.needsApproval || server.transport === "memory" || diagnosed.has(failure)) continue;
    diagnosed.add(failure);
    void diagnose(server, context);
  }
}

/**
 * A button that runs the steps. For a server in the inspector's process there are none.
 *
 * @param {any} server
 * @param {Context} context
 */
export function diagnosisButton(server, context) {
  if (server.transport === "memory") return nothing;
  const isRunning = diagnoses.get(server.name) === "running";
  return html`<button type="button" class="quiet" ?disabled=${isRunning} @click=${() => diagnose(server, context)}>
    ${isRunning ? "Diagnosis runs…" : "Diagnose"}
  </button>`;
}

/**
 * The results of the steps.
 *
 * @param {any} server
 */
export function diagnosisView(server) {
  const found = diagnoses.get(server.name);
  if (!found || found === "running") return nothing;
  return html`<div class="diagnosis"><ol aria-label="Diagnosis of ${server.name}">${found.steps.map(stepView)}</ol></div>`;
}

/**
 * @param {any} server
 * @param {Context} context
 */
function diagnose(server, context) {
  if (diagnoses.get(server.name) === "running") return;
  return context.attempt(async () => {
    diagnoses.set(server.name, "running");
    context.announce(server.needsApproval ? "Approve the command in the terminal" : `The diagnosis of ${server.name} runs`);
    context.update();
    try {
      const found = await context.send("servers/diagnose", { server: server.name });
      diagnoses.set(server.name, found);
      context.announce(found.failed ? `The step ${found.failed} failed` : "No step failed");
    } catch (error) {
      diagnoses.delete(server.name);
      throw error;
    }
  });
}

/** @param {any} step */
function stepView(step) {
  const [mark, word] = STATES[step.state];
  return html`<li class="step-${step.state}">
    <strong><span aria-hidden="true">${mark}</span> ${step.step}: ${word}</strong>
    ${step.evidence.length ? html`<ul>${step.evidence.map((/** @type {string} */ line) => html`<li>${line}</li>`)}</ul>` : nothing}
    ${step.remedy ? html`<p><strong>Remedy:</strong> ${step.remedy}</p>` : nothing}
  </li>`;
}
