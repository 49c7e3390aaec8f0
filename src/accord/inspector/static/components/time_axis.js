// @ts-check
/** Spans on a time axis, as an SVG: one band for each connection, a bar for each span, the number of messages above. */

import { nothing, svg } from "../vendor/lit-html/lit-html.js";

const WIDTH = 1000;
const BAR = 12;
const GAP = 3;
const COUNTS = 40;
const AXIS = 18;
const MAX_BARS_IN_BAND = 10;

/**
 * @typedef {object} AxisOptions
 * @property {any} timeline The answer to `traffic/timeline`.
 * @property {number | null} selected The selected span.
 * @property {[number, number] | null} drawn The range that is being drawn, in seconds.
 * @property {(span: any) => void} onSpan
 * @property {(event: PointerEvent, seconds: number) => void} onPointer
 */

/** @param {number} seconds */
export function formatSeconds(seconds) {
  if (seconds === 0) return "0 s";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${Number((seconds * 1000).toPrecision(3))} ms`;
  if (seconds < 120) return `${Number(seconds.toPrecision(4))} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** @param {any} span */
export function spanLabel(span) {
  const what = span.kind === "connection" ? `connection ${span.connection} ${span.name}` : `${span.method} ${span.name}`;
  const rounds = span.rounds > 1 ? `, ${span.rounds} rounds` : "";
  const time = span.end === null ? "open" : formatSeconds(span.end - span.begin);
  return `${what.trim()} (${span.kind}, ${span.outcome || "open"}${rounds}, ${time})`;
}

/**
 * Places each span in a line of the band of its connection, so that spans that overlap are below each other.
 *
 * @param {any[]} spans
 * @param {number} end
 */
export function layOut(spans, end) {
  /** @type {Map<number, number[]>} */
  const bands = new Map();
  const placed = spans.map((span) => {
    const lines = bands.get(span.connection) ?? [];
    bands.set(span.connection, lines);
    let line = lines.findIndex((until) => until <= span.begin);
    if (line < 0) line = lines.length < MAX_BARS_IN_BAND ? lines.length : MAX_BARS_IN_BAND - 1;
    lines[line] = Math.max(lines[line] ?? 0, span.end ?? end);
    return { span, line };
  });
  /** @type {Map<number, number>} */
  const tops = new Map();
  let top = COUNTS + GAP;
  for (const [connection, lines] of [...bands].sort(([one], [other]) => one - other)) {
    tops.set(connection, top);
    top += lines.length * (BAR + GAP) + 2 * GAP;
  }
  return { placed: placed.map(({ span, line }) => ({ span, top: (tops.get(span.connection) ?? 0) + line * (BAR + GAP) })), height: top + AXIS };
}

/** @param {AxisOptions} options */
export function timeAxis({ timeline, selected, drawn, onSpan, onPointer }) {
  const { begin, end } = timeline;
  const length = Math.max(end - begin, 1e-6);
  const x = (/** @type {number} */ seconds) => ((Math.min(Math.max(seconds, begin), end) - begin) / length) * WIDTH;
  const { placed, height } = layOut(timeline.spans, end);
  const at = (/** @type {PointerEvent} */ event) => {
    const box = /** @type {Element} */ (event.currentTarget).getBoundingClientRect();
    onPointer(event, begin + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * length);
  };
  return svg`<svg
    class="time-axis" viewBox="0 0 ${WIDTH} ${height}" preserveAspectRatio="none" height=${height} role="img"
    aria-label="${timeline.spans.length} spans from ${formatSeconds(begin)} to ${formatSeconds(end)}; the table below has them"
    @pointerdown=${at} @pointermove=${at} @pointerup=${at}
  >
    ${countBars(timeline.parts)}
    ${placed.map(({ span, top }) => spanBar(span, top, x, end, span.span === selected, onSpan))}
    ${ticks(begin, length, height)}
    ${drawn ? svg`<rect class="drawn-range" x=${x(Math.min(...drawn))} y="0" width=${Math.abs(x(drawn[1]) - x(drawn[0]))} height=${height}></rect>` : nothing}
  </svg>`;
}

/** @param {{ rows: number, errors: number }[]} parts */
function countBars(parts) {
  const most = Math.max(1, ...parts.map(({ rows }) => rows));
  const width = WIDTH / parts.length;
  return parts.map(({ rows, errors }, index) => {
    if (!rows) return nothing;
    const size = Math.max(1, (rows / most) * COUNTS);
    const bad = (errors / most) * COUNTS;
    return svg`<rect class="count" x=${index * width} y=${COUNTS - size} width=${width * 0.9} height=${size}></rect>${
      errors ? svg`<rect class="count-errors" x=${index * width} y=${COUNTS - Math.max(1, bad)} width=${width * 0.9} height=${Math.max(1, bad)}></rect>` : nothing
    }`;
  });
}

/**
 * @param {any} span
 * @param {number} top
 * @param {(seconds: number) => number} x
 * @param {number} end
 * @param {boolean} isSelected
 * @param {(span: any) => void} onSpan
 */
function spanBar(span, top, x, end, isSelected, onSpan) {
  const left = x(span.begin);
  const width = Math.max(2, x(span.end ?? end) - left);
  const kind = span.kind.replace(" ", "-");
  return svg`<rect
    class="span span-${kind} outcome-${span.outcome || "none"} ${isSelected ? "selected" : ""}"
    x=${left} y=${top} width=${width} height=${BAR} @click=${() => onSpan(span)}
  ><title>${spanLabel(span)}</title></rect>`;
}

/**
 * @param {number} begin
 * @param {number} length
 * @param {number} height
 */
function ticks(begin, length, height) {
  const step = niceStep(length / 8);
  const found = [];
  for (let at = Math.ceil(begin / step) * step; at <= begin + length && found.length < 20; at += step) {
    found.push(svg`<line class="tick" x1=${((at - begin) / length) * WIDTH} x2=${((at - begin) / length) * WIDTH} y1="0" y2=${height - AXIS}></line>`);
  }
  return found;
}

/**
 * The least of 1, 2, 5, 10, ... that is at least `size`, in units of a power of ten.
 *
 * @param {number} size
 */
export function niceStep(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= size * 0.999_999) ?? size;
}

/**
 * The labels of the ticks, which are text beside the image: text in it would be stretched.
 *
 * @param {number} begin
 * @param {number} end
 */
export function tickLabels(begin, end) {
  const length = Math.max(end - begin, 1e-6);
  const step = niceStep(length / 8);
  const found = [];
  for (let at = Math.ceil(begin / step) * step; at <= end && found.length < 20; at += step) {
    found.push({ text: formatSeconds(Number(at.toPrecision(10))), share: (at - begin) / length });
  }
  return found;
}
