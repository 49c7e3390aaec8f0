// @ts-check
/** The screen Timeline: all messages as rows and as spans on a time axis, filtered, with the bytes of the selected one. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { download } from "../connection.js";
import { formatSeconds, spanLabel, tickLabels, timeAxis } from "../components/time_axis.js";
import { VirtualList } from "../components/virtual_list.js";
import { currentRoute } from "../router.js";

/** @typedef {import("../main.js").Context} Context */

const LIVE = "live";
/** What stands for a secret (`accord.redaction`). */
const REDACTED = "[redacted]";
const FILTER_PAUSE = 150;
const LOAD_PAUSE = 400;
const MAX_PINNED = 20;
const SPANS = 200;

const state = {
  session: LIVE,
  filter: "",
  /** The text in the field of the filter, which becomes the filter after a pause. */
  typed: "",
  /** @type {{ error: string, cure: string } | null} */
  filterError: null,
  total: 0,
  all: 0,
  remark: "",
  /** @type {any} */
  detail: null,
  /** @type {any} */
  span: null,
  /** @type {any[]} */
  pinned: [],
  /** @type {any} */
  timeline: null,
  /** @type {[number, number]} */
  range: [0, 0],
  /** @type {[number, number] | null} */
  drawn: null,
  /** @type {any[] | null} */
  latencies: null,
  byName: false,
  isRaw: false,
  isTable: false,
  /** @type {any[]} */
  sessions: [],
  shownRow: "",
};

/** @type {Context | null} */
let current = null;
/** @type {VirtualList | null} */
let list = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let filterTimer;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let loadTimer;
let lastLoad = -Infinity;

const columns = [
  { id: "at", title: "Time", text: (/** @type {any} */ row) => row.at.toFixed(3) },
  { id: "connection", title: "Conn.", text: (/** @type {any} */ row) => String(row.connection || "") },
  { id: "direction", title: "Dir.", text: (/** @type {any} */ row) => ({ sent: "→", received: "←" })[/** @type {string} */ (row.direction)] ?? "" },
  { id: "kind", title: "Kind", text: (/** @type {any} */ row) => row.kind },
  { id: "method", title: "Method", text: (/** @type {any} */ row) => [row.method, row.name].filter(Boolean).join(" ") || row.kind },
  { id: "status", title: "Status", text: statusText },
  { id: "time", title: "Latency", text: (/** @type {any} */ row) => (row.duration === null ? "" : formatSeconds(row.duration)) },
  { id: "size", title: "Bytes", text: (/** @type {any} */ row) => (row.size ? row.size.toLocaleString("en") : "") },
  { id: "preview", title: "Content", text: (/** @type {any} */ row) => row.preview },
];

/** @param {any} row */
function statusText(row) {
  const code = row.code ? ` ${row.code}` : "";
  const mark = row.kind === "other" ? "⚠ not JSON " : "⚠ type ";
  return `${row.mismatch ? mark : ""}${row.outcome}${code}`.trim();
}

/**
 * Returns the session to show at first: this one, or while it is empty the file that was opened last.
 *
 * @param {Context} context
 */
function firstSession({ topics }) {
  const opened = (topics.session?.sessions ?? []).filter((/** @type {string} */ id) => id !== LIVE);
  return topics.traffic?.rows ? LIVE : (opened.at(-1) ?? LIVE);
}

/** @type {import("../main.js").Screen} */
export const screen = {
  topics: ["traffic", "session"],
  load: async (context) => {
    current = context;
    const session = context.rest[0] || firstSession(context);
    if (session !== state.session) changeSession(session);
    else if (isTooSoon(context)) return;
    lastLoad = performance.now();
    state.sessions = (await context.send("session/list")).sessions;
    await Promise.all([rows().refresh(), loadTimeline(context)]);
    const wanted = context.rest[1] ?? "";
    const isNew = wanted !== state.shownRow;
    state.shownRow = wanted;
    if (wanted && isNew) await showRow(Number(wanted), context);
  },
  view: (context) => {
    current = context;
    return html`
      ${controls(context)} ${filterView(context)} ${axisView(context)}
      <div class="traffic">
        <div>${rows().element}</div>
        ${detailView(context)}
      </div>
      ${pinnedView(context)} ${latencyView(context)}
    `;
  },
  actions: (context) => [
    { title: "Timeline: focus the filter", run: () => document.getElementById("traffic-filter")?.focus() },
    { title: "Timeline: errors only", run: () => setFilter("status:error", context) },
    { title: "Timeline: all messages", run: () => setFilter("", context) },
    { title: "Timeline: whole session on the axis", run: () => zoom([0, 0], context) },
    ...(state.detail ? [{ title: "Timeline: pin the selected message", run: () => pin(state.detail.summary, context) }] : []),
  ],
};

/**
 * Says whether the screen was loaded a moment ago; it is then loaded a little later, once for all changes until then.
 *
 * @param {Context} context
 */
function isTooSoon(context) {
  const wait = lastLoad + LOAD_PAUSE - performance.now();
  if (wait <= 0 || (context.rest[1] ?? "") !== state.shownRow) return false;
  loadTimer ??= setTimeout(() => {
    loadTimer = undefined;
    // A load, not an action: the error of what the user did stays in sight.
    if (current && currentRoute().screen === "timeline") void current.attempt(async () => screen.load?.(/** @type {Context} */ (current)), "load");
  }, wait);
  return true;
}

function rows() {
  list ??= new VirtualList({
    label: "Messages",
    columns,
    request: requestRows,
    rowClass: (row) => `outcome-${row.outcome || "none"} direction-${row.direction || "none"} ${row.mismatch ? "mismatch" : ""}`,
    onSelect: (row) => void (current && select(row.row, current)),
    onError: (error) => void current?.attempt(() => Promise.reject(error)),
  });
  return list;
}

/**
 * @param {number} first
 * @param {number} count
 */
async function requestRows(first, count) {
  const context = /** @type {Context} */ (current);
  const params = { session: state.session, filter: state.filter, first, count, view: "timeline" };
  const found = await context.send("traffic/rows", params);
  if (found.replaced) return { rows: [], total: state.total };
  const { total, all, remark, error, cure } = found;
  Object.assign(state, { total, all, remark, filterError: error ? { error, cure } : null });
  context.update();
  return found;
}

/** @param {string} session */
function changeSession(session) {
  clearTimeout(filterTimer);
  Object.assign(state, { session, filter: "", typed: "", filterError: null, detail: null, span: null, range: [0, 0], latencies: null, shownRow: "" });
  rows().reset().catch((error) => current?.attempt(() => Promise.reject(error)));
}

/** @param {Context} context */
async function loadTimeline(context) {
  const [begin, end] = state.range;
  state.timeline = await context.send("traffic/timeline", { session: state.session, begin, end, most: SPANS, parts: 120 });
  context.update();
}

// --- controls --------------------------------------------------------------------------------------------------

/** @param {Context} context */
function controls(context) {
  const choose = (/** @type {Event} */ event) => {
    context.navigate("timeline", context.server?.name ?? "", /** @type {HTMLSelectElement} */ (event.target).value);
  };
  return html`<p class="buttons">
    <label>
      <span>Session</span>
      <select @change=${choose} .value=${state.session}>
        ${state.sessions.map((each) => html`<option value=${each.id} ?selected=${each.id === state.session}>${each.name}</option>`)}
      </select>
    </label>
    <label class="check">
      <input type="checkbox" .checked=${rows().follows} @change=${(/** @type {Event} */ event) => follow(event, context)}>
      Follow new messages
    </label>
    <button type="button" class="quiet" @click=${() => context.attempt(() => download("session/save", { session: state.session, filter: state.filter }))}>
      ${state.filter ? "Save what matches" : "Save this session"}
    </button>
    <span class="muted">${state.total.toLocaleString("en")} of ${state.all.toLocaleString("en")} entries</span>
    ${state.remark ? html`<strong class="warning" role="status">${state.remark}</strong>` : nothing}
  </p>`;
}

/**
 * @param {Event} event
 * @param {Context} context
 */
function follow(event, context) {
  rows().follows = /** @type {HTMLInputElement} */ (event.target).checked;
  if (rows().follows) rows().scrollTo(rows().total - 1);
  context.update();
}

/** @param {Context} context */
function filterView(context) {
  const onInput = (/** @type {Event} */ event) => {
    state.typed = /** @type {HTMLInputElement} */ (event.target).value;
    clearTimeout(filterTimer);
    filterTimer = setTimeout(() => setFilter(state.typed, context), FILTER_PAUSE);
  };
  return html`<search class="filter">
    <label>
      <span>Filter</span>
      <input
        id="traffic-filter" type="search" autocomplete="off" spellcheck="false" maxlength="1000"
        placeholder="method:tools/call status:error time>500ms text" aria-describedby="filter-error"
        aria-invalid=${state.filterError ? "true" : "false"} .value=${state.typed} @input=${onInput}
      >
    </label>
    <p id="filter-error" class=${state.filterError ? "error" : "visually-hidden"} role="status">
      ${state.filterError ? html`<strong>${state.filterError.error}</strong> ${state.filterError.cure}` : nothing}
    </p>
    <details>
      <summary>The language of filters</summary>
      <dl class="facts">
        ${FILTERS.map(([example, meaning]) => html`<div><dt><code>${example}</code></dt><dd>${meaning}</dd></div>`)}
      </dl>
    </details>
  </search>`;
}

const FILTERS = [
  ["bread", "the entry contains this text"],
  ['"two words"', "a text with spaces"],
  ["method:tools/*", "the method; * is any text; responses have the method of their request"],
  ["name:price", "the tool, prompt or resource"],
  ["kind:request,http", "request, response, notification, http, stderr, lost…"],
  ["status:error", "ok, error, pending, input, cancelled, lost; also 404, 4xx, -32602"],
  ["time>500ms", "the time until the response"],
  ["at:10s..20s", "seconds since the beginning"],
  ["type:invalid", "messages that do not match the types of their revision"],
  ["direction:sent", "sent or received"],
  ["connection:2", "the number of the connection; also id:, span:, row:, size>10kB"],
  ["-kind:stderr", "not"],
];

/**
 * @param {string} text
 * @param {Context} context
 */
function setFilter(text, context) {
  clearTimeout(filterTimer);
  Object.assign(state, { filter: text, typed: text });
  void context.attempt(async () => {
    await rows().reset();
    context.announce(`${state.total} entries match`);
  }, "load");
}

// --- time axis -------------------------------------------------------------------------------------------------

/** @param {Context} context */
function axisView(context) {
  const { timeline } = state;
  if (!timeline || !timeline.spans.length) return html`<p class="muted">No message was recorded yet.</p>`;
  const { begin, end } = timeline;
  const length = end - begin;
  const part = (/** @type {number} */ first, /** @type {number} */ last) => () => zoom([Math.max(0, begin + first * length), begin + last * length], context);
  return html`<section aria-label="Time axis" class="axis">
    <p class="buttons">
      <button type="button" class="quiet" @click=${part(0.25, 0.75)}>Zoom in</button>
      <button type="button" class="quiet" @click=${part(-0.5, 1.5)}>Zoom out</button>
      <button type="button" class="quiet" aria-label="Earlier" @click=${part(-0.5, 0.5)}>←</button>
      <button type="button" class="quiet" aria-label="Later" @click=${part(0.5, 1.5)}>→</button>
      <button type="button" class="quiet" @click=${() => zoom([0, 0], context)}>Whole session</button>
      <button type="button" class="quiet" @click=${() => filterRange(begin, end, context)}>Filter to this range</button>
      <span class="muted">${formatSeconds(begin)} to ${formatSeconds(end)}${timeline.hidden ? `; ${timeline.hidden.toLocaleString("en")} shorter spans are hidden: zoom in` : ""}</span>
    </p>
    ${timeAxis({
      timeline,
      selected: state.span?.span.span ?? null,
      drawn: state.drawn,
      onSpan: (span) => void selectSpan(span.span, context),
      onPointer: (event, seconds) => onPointer(event, seconds, context),
    })}
    <div class="axis-labels" aria-hidden="true">${tickLabels(begin, end).map(tickLabel)}</div>
    <details @toggle=${(/** @type {Event} */ event) => toggleTable(event, context)}>
      <summary>Spans as a table</summary>
      ${state.isTable ? spanTable(timeline.spans, context) : nothing}
    </details>
  </section>`;
}

/**
 * @param {Event} event
 * @param {Context} context
 */
function toggleTable(event, context) {
  state.isTable = /** @type {HTMLDetailsElement} */ (event.target).open;
  context.update();
}

/**
 * @param {any[]} spans
 * @param {Context} context
 */
function spanTable(spans, context) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Spans">
    <table>
      <thead><tr><th>Span</th><th>Begin</th><th>Length</th><th>Status</th><th>Rounds</th></tr></thead>
      <tbody>${spans.map((span) => spanRow(span, context))}</tbody>
    </table>
  </div>`;
}

/** @param {{ text: string, share: number }} label */
function tickLabel({ text, share }) {
  return html`<svg class="tick-label" width="100%" height="16"><text x="${share * 100}%" y="12">${text}</text></svg>`;
}

/**
 * @param {any} span
 * @param {Context} context
 */
function spanRow(span, context) {
  return html`<tr>
    <td><button type="button" class="link" @click=${() => selectSpan(span.span, context)}>${span.kind} ${span.method} ${span.name}</button></td>
    <td>${formatSeconds(span.begin)}</td>
    <td>${span.end === null ? "open" : formatSeconds(span.end - span.begin)}</td>
    <td>${span.outcome}</td>
    <td>${span.rounds}</td>
  </tr>`;
}

/**
 * @param {[number, number]} range
 * @param {Context} context
 */
function zoom(range, context) {
  state.range = range;
  void context.attempt(() => loadTimeline(context));
}

/**
 * @param {number} begin
 * @param {number} end
 * @param {Context} context
 */
function filterRange(begin, end, context) {
  const others = state.filter.replace(/(^|\s)at:\S+/g, "").trim();
  setFilter(`at:${begin.toFixed(6)}s..${end.toFixed(6)}s ${others}`.trim(), context);
}

/**
 * Draws a range with the pointer, which is then zoomed; a click selects a span.
 *
 * @param {PointerEvent} event
 * @param {number} seconds
 * @param {Context} context
 */
function onPointer(event, seconds, context) {
  if (event.type === "pointerdown") state.drawn = [seconds, seconds];
  else if (!state.drawn) return;
  else if (event.type === "pointermove") state.drawn = [state.drawn[0], seconds];
  else {
    const [first, last] = [Math.min(...state.drawn), Math.max(...state.drawn)];
    state.drawn = null;
    if (last - first > (state.timeline.end - state.timeline.begin) / 100) zoom([first, last], context);
  }
  context.update();
}

/**
 * @param {number} number
 * @param {Context} context
 */
function selectSpan(number, context) {
  return context.attempt(async () => {
    state.span = await context.send("traffic/span", { session: state.session, span: number });
    context.announce(spanLabel(state.span.span));
    const row = state.span.rows.find((/** @type {any} */ each) => each.kind === "request") ?? state.span.rows[0];
    if (row) await showRow(row.row, context);
  });
}

// --- the selected message --------------------------------------------------------------------------------------

/**
 * @param {number} row
 * @param {Context} context
 */
function select(row, context) {
  return context.attempt(async () => {
    state.detail = await context.send("traffic/entry", { session: state.session, row });
    const { span } = state.detail.summary;
    state.span = span === null ? null : await context.send("traffic/span", { session: state.session, span });
  });
}

/**
 * Shows a row in the list, if the filter allows it, and its content.
 *
 * @param {number} row
 * @param {Context} context
 */
async function showRow(row, context) {
  const params = { session: state.session, filter: state.filter, near: row, count: 1, view: "show" };
  const found = await context.send("traffic/rows", params);
  if (found.rows[0]?.row === row) {
    if (rows().total !== found.total) rows().total = found.total;
    rows().schedule();
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))));
    rows().select(found.first);
  } else await select(row, context);
}

/** @param {Context} context */
function detailView(context) {
  if (!state.detail) return html`<aside class="entry"><p class="muted">Select a message: click it, or use the arrow keys in the list.</p></aside>`;
  const { summary, raw, pretty, complete, heads } = state.detail;
  return html`<aside class="entry" aria-label="Selected message">
    <h2>${summary.kind} ${summary.method} ${summary.name}</h2>
    ${factsView(summary)}
    ${summary.mismatch ? html`<p class="error"><strong>⚠ ${summary.mismatch}</strong></p>` : nothing}
    <p class="buttons">
      ${summary.partner === null ? nothing : html`<button type="button" class="quiet" @click=${() => context.attempt(() => showRow(summary.partner, context))}>Show its ${summary.partner > summary.row ? "response" : "request"}</button>`}
      <button type="button" class="quiet" @click=${() => pin(summary, context)}>Pin</button>
      <button type="button" class="quiet" @click=${() => context.attempt(() => download("traffic/download", { session: state.session, row: summary.row }))}>Download</button>
      ${pretty ? html`<label class="check"><input type="checkbox" .checked=${state.isRaw} @change=${() => toggleRaw(context)}> Raw bytes</label>` : nothing}
    </p>
    ${compareButtons(summary, context)}
    ${complete ? nothing : html`<p class="warning">This is the beginning; the download has all ${summary.size.toLocaleString("en")} bytes.</p>`}
    ${state.session === LIVE && raw.includes(REDACTED) ? html`<p class="muted">${REDACTED} stands for a secret, which was not recorded; <code>accord inspect --unredacted</code> records it.</p>` : nothing}
    <pre tabindex="0" aria-label="Content">${pretty && !state.isRaw ? pretty : raw}</pre>
    ${heads.map(headView)} ${spanView(context)}
  </aside>`;
}

/** @param {Context} context */
function toggleRaw(context) {
  state.isRaw = !state.isRaw;
  context.update();
}

/** @param {any} summary */
function factsView(summary) {
  const facts = [
    ["Entry", summary.row], ["Time", `${summary.at.toFixed(6)} s`], ["Connection", summary.connection],
    ["Direction", summary.direction], ["Id", summary.idJson], ["Status", `${summary.outcome} ${summary.code || ""}`.trim()],
    ["Latency", summary.duration === null ? "" : formatSeconds(summary.duration)], ["Bytes", summary.size.toLocaleString("en")],
    ["Revision", summary.revision],
  ];
  return html`<dl class="facts">
    ${facts.filter(([, value]) => value !== "").map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** @param {any} head */
function headView(head) {
  return html`<details>
    <summary>HTTP ${head.direction === "sent" ? "request" : "response"}: ${head.line}</summary>
    <dl class="headers">${head.headers.map((/** @type {[string, string]} */ [name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
  </details>`;
}

/** @param {Context} context */
function spanView(context) {
  if (!state.span || state.span.rows.length < 2) return nothing;
  return html`<details open>
    <summary>${spanLabel(state.span.span)}: ${state.span.rows.length} entries</summary>
    <p class="buttons"><button type="button" class="quiet" @click=${() => setFilter(`span:${state.span.span.span}`, context)}>Show only these</button></p>
    <ol class="span-rows">
      ${state.span.rows.slice(0, 100).map((/** @type {any} */ row) => html`<li>
        <button type="button" class="link" aria-current=${row.row === state.detail.summary.row ? "true" : nothing} @click=${() => context.attempt(() => showRow(row.row, context))}>
          ${row.at.toFixed(3)} ${row.direction} ${row.kind} ${row.method} ${statusText(row)}
        </button>
      </li>`)}
    </ol>
  </details>`;
}

// --- pinned messages -------------------------------------------------------------------------------------------

/**
 * @param {any} summary
 * @param {Context} context
 */
function pin(summary, context) {
  const others = state.pinned.filter((each) => each.session !== state.session || each.summary.row !== summary.row);
  state.pinned = [...others, { session: state.session, summary }].slice(-MAX_PINNED);
  context.announce(`entry ${summary.row} is pinned`);
  context.update();
}

/** @param {any} pinned */
function pinnedLabel({ session, summary }) {
  return `${session === LIVE ? "" : `session ${session}, `}${summary.row}: ${summary.kind} ${summary.method} ${summary.name}`;
}

/**
 * @param {any} summary
 * @param {Context} context
 */
function compareButtons(summary, context) {
  const others = state.pinned.filter((each) => each.session !== state.session || each.summary.row !== summary.row);
  if (!others.length) return nothing;
  return html`<p class="buttons">
    ${others.map((each) => html`<a href=${compareAddress(each, { session: state.session, summary }, context)}>Compare with ${pinnedLabel(each)}</a>`)}
  </p>`;
}

/**
 * @param {any} left
 * @param {any} right
 * @param {Context} context
 */
function compareAddress(left, right, context) {
  const parts = [left.session, String(left.summary.row), right.session, String(right.summary.row)];
  return context.address("compare", context.server?.name ?? "", "messages", ...parts);
}

/** @param {Context} context */
function pinnedView(context) {
  if (!state.pinned.length) return nothing;
  const unpin = (/** @type {any} */ pinned) => {
    state.pinned = state.pinned.filter((each) => each !== pinned);
    context.update();
  };
  return html`<section class="card" aria-labelledby="pinned-title">
    <h2 id="pinned-title">Pinned</h2>
    <ul>
      ${state.pinned.map((each) => html`<li>
        <a href=${context.address("timeline", context.server?.name ?? "", each.session, String(each.summary.row))}>${pinnedLabel(each)}</a>
        <button type="button" class="quiet" @click=${() => unpin(each)}>Unpin<span class="visually-hidden"> ${each.summary.row}</span></button>
      </li>`)}
    </ul>
    ${state.pinned.length >= 2 ? html`<p><a href=${compareAddress(state.pinned[state.pinned.length - 2], state.pinned[state.pinned.length - 1], context)}>Compare the last two</a></p>` : nothing}
  </section>`;
}

// --- latencies -------------------------------------------------------------------------------------------------

/** @param {Context} context */
function latencyView(context) {
  const load = () => context.attempt(async () => {
    const params = { session: state.session, filter: state.filter, byName: state.byName };
    state.latencies = (await context.send("traffic/latencies", params)).methods;
  });
  const change = (/** @type {Event} */ event) => {
    state.byName = /** @type {HTMLInputElement} */ (event.target).checked;
    void load();
  };
  const time = (/** @type {number | null} */ seconds) => (seconds === null ? "" : formatSeconds(seconds));
  return html`<section class="card" aria-labelledby="latency-title">
    <h2 id="latency-title">Latencies of the requests that match</h2>
    <p class="buttons">
      <button type="button" class="quiet" @click=${load}>${state.latencies ? "Compute again" : "Compute"}</button>
      <label class="check"><input type="checkbox" .checked=${state.byName} @change=${change}> Each tool, prompt and resource on its own</label>
    </p>
    ${state.latencies === null ? nothing : html`<table>
      <thead><tr><th>Method</th><th>Requests</th><th>Errors</th><th>Open</th><th>p50</th><th>p95</th><th>Longest</th></tr></thead>
      <tbody>${state.latencies.map((line) => html`<tr>
        <td>${line.method}</td><td>${line.count}</td><td>${line.errors}</td><td>${line.pending}</td>
        <td>${time(line.p50)}</td><td>${time(line.p95)}</td><td>${time(line.max)}</td>
      </tr>`)}</tbody>
    </table>`}
  </section>`;
}
