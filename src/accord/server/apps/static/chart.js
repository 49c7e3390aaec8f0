// @ts-nocheck: joined with page.js
/* Bars or lines of the rows of a result, and the same data as a table. */
const COLORS = [
  "light-dark(#0550ae, #79b8ff)", "light-dark(#9a3b00, #ffab70)", "light-dark(#1a6b32, #85e89d)",
  "light-dark(#8a1c7c, #f0a6e8)", "light-dark(#6b5200, #e8c547)", "light-dark(#005f6b, #7ddfe8)",
];
const MOST_ROWS = 500, WIDTH = 640, HEIGHT = 320, LEFT = 64, BOTTOM = 36, TOP = 12;
const figure = element("div");

const numberOf = (value) => (typeof value === "number" ? value : typeof value === "string" && value.trim() ? Number(value) : NaN);
const stepOf = (range) => {
  const rough = range / 5, power = 10 ** Math.floor(Math.log10(rough)), part = rough / power;
  return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
};
const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

const axes = (values) => {
  let low = Math.min(0, ...values), high = Math.max(0, ...values);
  if (low === high) high = 1;
  const step = stepOf(high - low);
  low = Math.floor(low / step) * step;
  high = Math.ceil(high / step) * step;
  const at = (value) => TOP + ((high - value) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const marks = Array.from({ length: Math.round((high - low) / step) + 1 }, (_, index) => low + index * step);
  return { at, marks: marks.map((mark) => Number(mark.toPrecision(12))) };
};

const seriesShapes = (name, index, rows, at, place, slot) => {
  const color = `fill:${COLORS[index % COLORS.length]};stroke:${COLORS[index % COLORS.length]}`;
  const points = rows.map((row, position) => ({ row, value: numberOf(row[name]), position })).filter((each) => Number.isFinite(each.value));
  const note = ({ row, value }) => drawn("title", {}, `${textOf(row[options.x])}, ${titled(name)}: ${textOf(value)}`);
  if (options.kind === "line") {
    const path = points.map(({ value, position }, order) => `${order ? "L" : "M"}${place(position).toFixed(1)} ${at(value).toFixed(1)}`);
    return [
      drawn("path", { d: path.join(" "), style: `${color};fill:none;stroke-width:2` }),
      ...points.map((each) => drawn("circle", { cx: place(each.position), cy: at(each.value), r: 3, style: color }, note(each))),
    ];
  }
  const width = Math.max(1, (slot * 0.8) / options.y.length);
  return points.map((each) => drawn("rect", {
    x: place(each.position) - slot * 0.4 + index * width, y: Math.min(at(each.value), at(0)),
    width: Math.max(0.5, width - 1), height: Math.max(0.5, Math.abs(at(each.value) - at(0))), style: color,
  }, note(each)));
};

const chart = (rows) => {
  const values = rows.flatMap((row) => options.y.map((name) => numberOf(row[name]))).filter(Number.isFinite);
  const { at, marks } = axes(values);
  const slot = (WIDTH - LEFT - 8) / Math.max(1, rows.length), place = (position) => LEFT + slot * (position + 0.5);
  const every = Math.ceil(rows.length / 10);
  const summary = `${options.kind === "line" ? "Line" : "Bar"} chart of ${options.y.map(titled).join(", ")} by ${titled(options.x)}: `
    + `${rows.length} rows, from ${textOf(values.length ? Math.min(...values) : 0)} to ${textOf(values.length ? Math.max(...values) : 0)}.`;
  return drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${summary} The table below has the data.` },
    ...marks.flatMap((mark) => [
      drawn("line", { x1: LEFT, x2: WIDTH - 8, y1: at(mark), y2: at(mark), class: mark === 0 ? "axis" : "grid" }),
      drawn("text", { x: LEFT - 8, y: at(mark) + 4, "text-anchor": "end" }, shortened(textOf(mark), 9)),
    ]),
    ...options.y.flatMap((name, index) => seriesShapes(name, index, rows, at, place, slot)),
    ...rows.flatMap((row, position) => (position % every ? [] : [
      drawn("text", { x: place(position), y: HEIGHT - 12, "text-anchor": "middle" }, shortened(textOf(row[options.x]), 12)),
    ])));
};

const dataTable = (rows) => {
  const names = [options.x, ...options.y];
  return element("details", {}, element("summary", {}, "Data as a table"),
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Data" }, element("table", {},
      element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, titled(name))))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, element("th", { scope: "row" }, textOf(row[options.x])),
        ...options.y.map((name) => element("td", { class: "number" }, textOf(row[name])))))))));
};

const refresh = follow((result) => {
  const all = rowsOf(result), rows = all.slice(0, MOST_ROWS);
  if (!rows.length) { figure.replaceChildren(); return say("The result has no rows."); }
  if (rows.length < all.length) say(`The first ${rows.length} of ${all.length} rows are shown.`);
  const legend = options.y.length > 1 && element("ul", { class: "legend" }, ...options.y.map((name, index) =>
    element("li", {}, element("span", { class: "swatch", style: `background:${COLORS[index % COLORS.length]}` }), titled(name))));
  figure.replaceChildren(...[legend, chart(rows), dataTable(rows)].filter(Boolean));
});
main.append(element("h1", {}, document.title), ...(refresh ? [element("div", { class: "bar" }, refresh)] : []), problem, state, figure);
