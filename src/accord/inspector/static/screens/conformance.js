// @ts-check
/** The screen Conformance: runs `accord check`, shows results by rule while they come, and findings with their bytes. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { checkForm, chosenOptions } from "../components/check_form.js";
import { download } from "../connection.js";
import { findingView, loadFinding } from "../components/finding_view.js";
import { perServer } from "../components/per_server.js";

/** @typedef {import("../main.js").Context} Context */

/**
 * What the screen shows of one server.
 *
 * @typedef {object} CheckScreen
 * @property {any} results The answer of `check/results`, or null.
 * @property {Set<string>} verdicts The verdicts that are shown; empty for all.
 * @property {string} revision
 * @property {string} text
 * @property {number} count How many rules are shown.
 * @property {Set<string>} open The rules whose details are shown.
 * @property {Map<string, any>} details The answers of `check/finding`.
 * @property {number} run The run that the details are about.
 * @property {string} state The state that was announced.
 */

const ROWS = 100;
const FORMATS = [
  ["html", "HTML"],
  ["json", "JSON"],
  ["markdown", "Markdown"],
  ["junit", "JUnit"],
  ["sarif", "SARIF"],
  ["badge", "badge"],
  ["baseline", "baseline that accepts the findings"],
];
const PAUSE_MILLISECONDS = 400;
/** @type {Record<string, [mark: string, word: string]>} */
export const VERDICTS = {
  fail: ["✗", "failed"],
  warn: ["!", "warned"],
  pass: ["✓", "passed"],
  "not-observed": ["?", "not observed"],
  "not-applicable": ["·", "not applicable"],
};

/** @type {{ isRunning: boolean, wanted: Context | null, at: number }} */
const loading = { isRunning: false, wanted: null, at: 0 };

const screenOf = perServer(
  /** @returns {CheckScreen} */
  ({ rest }) => ({
    results: null, verdicts: new Set(), revision: "", text: "", count: ROWS, open: new Set(rest[0] ? [rest[0]] : []),
    details: new Map(), run: 0, state: "",
  }),
);

/** @type {import("../main.js").Screen} */
export const screen = {
  perServer: true,
  offline: true,
  topics: ["check"],
  load: (context) => loadSoon(context),
  view: (context) => {
    const shown = screenOf(context);
    const isRunning = ["running", "stopping"].includes(progressOf(shown)?.state);
    return html`
      ${checkForm(context, isRunning, () => start(context), () => stop(context, shown))}
      ${shown.results === null ? nothing : shown.results.progress ? resultsView(context, shown, isRunning) : html`<p>This server was not checked yet.</p>`}
    `;
  },
  actions: (context) => {
    if (!context.server) return [];
    const shown = screenOf(context);
    return progressOf(shown)?.state === "running"
      ? [{ title: `Stop the check of ${context.server.name}`, run: () => void stop(context, shown) }]
      : [{ title: `Check ${context.server.name}`, run: () => void start(context) }];
  },
};

/** @param {CheckScreen} shown */
function progressOf(shown) {
  return shown.results?.progress ?? null;
}

/** Loads now, or after a pause: a running check changes many times a second. @param {Context} context */
async function loadSoon(context) {
  loading.wanted = context;
  if (loading.isRunning) return;
  loading.isRunning = true;
  try {
    while (loading.wanted) {
      const wait = loading.at + PAUSE_MILLISECONDS - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      const wanted = loading.wanted;
      loading.wanted = null;
      loading.at = performance.now();
      await load(wanted);
      wanted.update();
    }
  } finally {
    loading.isRunning = false;
  }
}

/** @param {Context} context */
async function load(context) {
  const shown = screenOf(context);
  const { server, announce, send } = context;
  shown.results = await send("check/results", {
    server: server.name,
    verdicts: [...shown.verdicts],
    revision: shown.revision,
    text: shown.text,
    count: shown.count,
  });
  const progress = progressOf(shown);
  if (!progress) return;
  if (progress.run !== shown.run) {
    shown.state = shown.run ? "running" : "";
    shown.run = progress.run;
    shown.details.clear();
  }
  if (progress.state !== shown.state) {
    if (shown.state) announce(`The check of ${server.name}: ${progress.state}, ${progress.failed} failed`);
    shown.state = progress.state;
  }
  for (const rule of shown.open) await loadDetails(context, shown, rule);
}

/**
 * @param {Context} context
 * @param {CheckScreen} shown
 * @param {string} rule
 */
async function loadDetails(context, shown, rule) {
  const isListed = shown.results.rows.some((/** @type {any} */ row) => row.rule === rule);
  if (isListed) shown.details.set(rule, await loadFinding(context, shown.run, rule));
}

/** @param {Context} context */
function start(context) {
  return context.attempt(async () => {
    const { server, announce, send } = context;
    const shown = screenOf(context);
    if (server.needsApproval) announce("Approve the command in the terminal");
    await send("check/start", { server: server.name, ...(await chosenOptions()) });
    shown.open.clear();
    announce(`The check of ${server.name} runs`);
    await loadSoon(context);
  });
}

/**
 * @param {Context} context
 * @param {CheckScreen} shown
 */
function stop(context, shown) {
  return context.attempt(async () => {
    await context.send("check/stop", { run: shown.run });
    context.announce("The check ends");
  });
}

// --- results ---------------------------------------------------------------------------------------------------

/**
 * @param {Context} context
 * @param {CheckScreen} shown
 * @param {boolean} isRunning
 */
function resultsView(context, shown, isRunning) {
  const { results } = shown;
  const { run, state, done } = results.progress;
  return html`
    <section aria-labelledby="check-results">
      <h2 id="check-results">Results</h2>
      <p>
        <strong>Check ${run}: ${state}</strong>${isRunning ? `, ${done} cases done` : nothing}${results.score === null ? nothing : html`, score ${results.score}, ${results.seconds.toFixed(1)} s`}
        ${results.sdk ? html` (made with ${results.sdk})` : nothing}
      </p>
      ${results.error ? html`<p class="error">${results.error}</p>` : nothing} ${visitsView(results.visits)}
      ${results.remarks.length
        ? html`<details><summary>Remarks: ${results.remarks.length}</summary>
            <ul>${results.remarks.map((/** @type {string} */ each) => html`<li>${each}</li>`)}</ul></details>`
        : nothing}
      ${results.score === null ? nothing : reportView(context, shown)} ${filterView(context, shown)} ${rulesView(context, shown)}
    </section>
  `;
}

/**
 * @param {Context} context
 * @param {CheckScreen} shown
 */
function reportView(context, shown) {
  const save = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const format = new FormData(/** @type {HTMLFormElement} */ (event.target)).get("format");
    void context.attempt(() => download("check/report", { run: shown.run, format }));
  };
  return html`<form class="buttons" @submit=${save}>
    <label><span>Report</span><select name="format">
      ${FORMATS.map(([value, label]) => html`<option value=${value}>${label}</option>`)}
    </select></label>
    <button type="submit" class="quiet">Save the report</button>
  </form>`;
}

/** @param {any[]} visits */
function visitsView(visits) {
  if (!visits.length) return nothing;
  return html`<table class="check-visits">
    <caption class="visually-hidden">Visits: each revision over each transport</caption>
    <thead><tr><th scope="col">Revision</th><th scope="col">Transport</th><th scope="col">Cases</th>
      <th scope="col">Failed</th><th scope="col">Warned</th><th scope="col">Score</th></tr></thead>
    <tbody>${visits.map(
      (each) => html`<tr>
        <th scope="row">${each.revision}</th><td>${each.transport}</td>
        <td><progress max=${each.total} value=${each.visit ? each.total : Math.min(each.done, each.total)}
          aria-label="${each.revision} over ${each.transport}"></progress> ${each.done} of ${each.total}</td>
        <td>${each.failed}</td><td>${each.warned}</td>
        <td>${each.visit ? `${each.visit.score}${each.visit.error ? ", it ended early" : ""}` : "runs"}</td>
      </tr>`,
    )}</tbody>
  </table>`;
}

/**
 * @param {Context} context
 * @param {CheckScreen} shown
 */
function filterView(context, shown) {
  const again = () => void context.attempt(() => loadSoon(context));
  const toggle = (/** @type {string} */ verdict) => {
    if (!shown.verdicts.delete(verdict)) shown.verdicts.add(verdict);
    again();
  };
  const set = (/** @type {"text" | "revision"} */ field) => (/** @type {Event} */ event) => {
    shown[field] = /** @type {HTMLInputElement} */ (event.target).value;
    again();
  };
  const revisions = [...new Set(shown.results.visits.map((/** @type {any} */ each) => each.revision))];
  return html`<div class="check-filter" role="group" aria-label="Filter">
    ${Object.entries(VERDICTS).map(
      ([verdict, [mark, word]]) => html`<button type="button" class="quiet" aria-pressed=${shown.verdicts.has(verdict)} @click=${() => toggle(verdict)}>
        <span aria-hidden="true">${mark}</span> ${word} ${shown.results.counts[verdict]}
      </button>`,
    )}
    <label><span>Revision</span>
      <select @change=${set("revision")}>
        <option value="">all</option>
        ${revisions.map((each) => html`<option value=${each} ?selected=${each === shown.revision}>${each}</option>`)}
      </select></label>
    <label><span>Rule</span><input type="search" .value=${shown.text} @input=${set("text")} autocomplete="off" spellcheck="false"></label>
  </div>`;
}

/**
 * @param {Context} context
 * @param {CheckScreen} shown
 */
function rulesView(context, shown) {
  const { rows, matching } = shown.results;
  if (!rows.length) return html`<p>No rule has such a result yet.</p>`;
  const more = () => {
    shown.count += ROWS;
    void context.attempt(() => loadSoon(context));
  };
  return html`<ul class="check-rules" aria-label="Rules">
      ${repeat(rows, (row) => row.rule, (row) => ruleView(row, context, shown))}
    </ul>
    ${matching > rows.length
      ? html`<p class="buttons"><button type="button" class="quiet" @click=${more}>Show more of ${matching} rules</button></p>`
      : html`<p class="muted">${matching} rules</p>`}`;
}

/**
 * @param {any} row
 * @param {Context} context
 * @param {CheckScreen} shown
 */
function ruleView(row, context, shown) {
  const [mark, word] = VERDICTS[row.verdict];
  const isOpen = shown.open.has(row.rule);
  const id = `rule-${row.rule.replace("/", "-")}`;
  const toggle = () => {
    if (shown.open.delete(row.rule)) return context.update();
    shown.open.add(row.rule);
    void context.attempt(() => loadDetails(context, shown, row.rule));
  };
  return html`<li class="check-rule verdict-${row.verdict}">
    <button type="button" class="quiet" aria-expanded=${isOpen} aria-controls=${id} @click=${toggle}>
      <span class="verdict"><span aria-hidden="true">${mark}</span> ${word}</span>
      <code>${row.rule}</code> <span class="muted">${row.level.toUpperCase()}</span>
    </button>
    <span class="check-cells">${row.cells.map(cellView)}</span>
    ${row.accepted ? html`<span class="mark">accepted by the baseline</span>` : nothing}
    <span class="check-text">${row.verdict === "pass" ? row.says : row.text}</span>
    <div id=${id} ?hidden=${!isOpen}>
      ${isOpen && shown.details.has(row.rule) ? findingView(shown.details.get(row.rule), shown.run, context) : nothing}
    </div>
  </li>`;
}

/** @param {any} cell */
function cellView(cell) {
  const [mark, word] = VERDICTS[cell.verdict];
  return html`<span class="check-cell verdict-${cell.verdict}">
    <span aria-hidden="true">${mark}</span> <span class="visually-hidden">${word} in</span> ${cell.revision} ${cell.transport}
  </span>`;
}
