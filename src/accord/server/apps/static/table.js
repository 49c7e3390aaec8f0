// @ts-nocheck: joined with page.js
/* The rows of a result as a table, which can be sorted and filtered. */
const PAGE_ROWS = 200, MOST_COLUMNS = 40;
let rows = [], sorted = null, shown = PAGE_ROWS;
const view = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": document.title });
const filter = element("input", { id: "filter", type: "search", input: () => { shown = PAGE_ROWS; draw(); } });
const more = element("button", { type: "button", click: () => { shown += PAGE_ROWS; draw(); } });

const columnsOf = () => options.columns ?? [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, MOST_COLUMNS);
const compared = (one, other) => {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return textOf(one).localeCompare(textOf(other), locale, { numeric: true });
};
const sortBy = (name) => {
  sorted = { name, down: sorted?.name === name && !sorted.down };
  draw();
  [...view.querySelectorAll("th button")].find((each) => each.dataset.name === name)?.focus();
};

const draw = () => {
  const columns = columnsOf(), wanted = filter.value.trim().toLocaleLowerCase();
  let found = rows.filter((row) => !wanted || columns.some((name) => textOf(row[name]).toLocaleLowerCase().includes(wanted)));
  if (sorted) found = [...found].sort((one, other) => compared(one[sorted.name], other[sorted.name]) * (sorted.down ? -1 : 1));
  const head = columns.map((name) => {
    const direction = sorted?.name === name ? (sorted.down ? "descending" : "ascending") : "none";
    const mark = { none: "", ascending: " ▲", descending: " ▼" }[direction];
    return element("th", { scope: "col", "aria-sort": direction },
      element("button", { type: "button", "data-name": name, click: () => sortBy(name) }, titled(name), element("span", { "aria-hidden": "true" }, mark)));
  });
  const body = found.slice(0, shown).map((row) => element("tr", {}, ...columns.map((name) =>
    element("td", { class: typeof row[name] === "number" ? "number" : undefined }, textOf(row[name])))));
  view.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body)));
  const left = found.length - body.length;
  more.hidden = left <= 0;
  more.textContent = `Show ${Math.min(left, PAGE_ROWS)} more of ${found.length}`;
  say(wanted ? `${found.length} of ${rows.length} rows` : `${rows.length} ${rows.length === 1 ? "row" : "rows"}`);
};

const refresh = follow((result) => {
  rows = rowsOf(result);
  shown = PAGE_ROWS;
  draw();
});
more.hidden = true;
main.append(element("h1", {}, document.title),
  element("div", { class: "bar" }, element("div", { class: "field" }, element("label", { for: "filter" }, "Filter"), filter), refresh || null),
  problem, state, view, more);
