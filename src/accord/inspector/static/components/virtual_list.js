// @ts-check
/**
 * A list of any length in which only the visible rows are elements: a grid for the keyboard and for screen readers.
 *
 * The rows are requested in pages, one request at a time. Scrolling moves a fixed set of elements and changes their
 * texts; the rest of the page is not rendered for it.
 */

/**
 * @typedef {object} Column
 * @property {string} id The class of its cells.
 * @property {string} title
 * @property {(row: any) => string} text
 */

/**
 * @typedef {object} VirtualListOptions
 * @property {string} label
 * @property {Column[]} columns
 * @property {(first: number, count: number) => Promise<{ rows: any[], total: number }>} request
 * @property {(row: any, position: number) => void} onSelect
 * @property {(row: any) => string} rowClass
 * @property {(error: unknown) => void} onError
 */

const ROW_HEIGHT = 26;
const PAGE = 100;
const MARGIN = 6;
const MAX_PAGES = 30;
/** Browsers limit the height of an element; a longer list is scrolled in proportion. */
const MAX_HEIGHT = 8_000_000;

export class VirtualList {
  /** @param {VirtualListOptions} options */
  constructor(options) {
    this.options = options;
    this.total = 0;
    /** The position of the row that has the focus; -1 for none. */
    this.active = -1;
    this.follows = false;
    /** @type {Map<number, any[]>} */
    this.pages = new Map();
    /** @type {HTMLElement[]} */
    this.elements = [];
    this.isRequesting = false;
    this.isScheduled = false;
    this.generation = 0;
    this.build();
  }

  build() {
    this.element = document.createElement("div");
    this.element.className = "virtual-list";
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "grid");
    this.element.setAttribute("aria-label", this.options.label);
    this.element.setAttribute("aria-colcount", String(this.options.columns.length));
    this.head = this.makeRow("columnheader");
    this.head.classList.add("virtual-head");
    this.head.setAttribute("aria-rowindex", "1");
    this.options.columns.forEach((column, index) => {
      /** @type {HTMLElement} */ (this.headRow().children[index]).textContent = column.title;
    });
    this.space = document.createElement("div");
    this.space.className = "virtual-space";
    this.space.setAttribute("role", "rowgroup");
    this.element.append(this.head, this.space);
    this.element.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.schedule()).observe(this.element);
  }

  headRow() {
    return /** @type {HTMLElement} */ (this.head);
  }

  /** @param {string} role */
  makeRow(role) {
    const row = document.createElement("div");
    row.setAttribute("role", "row");
    for (const column of this.options.columns) {
      const cell = document.createElement("span");
      cell.className = `cell-${column.id}`;
      cell.setAttribute("role", role);
      row.append(cell);
    }
    return row;
  }

  /** Forgets all rows: another filter, or another session. */
  reset() {
    this.generation += 1;
    this.pages.clear();
    this.active = -1;
    this.total = 0;
    this.list().scrollTop = 0;
    this.schedule();
    return this.request(0);
  }

  /** Requests the visible rows again: rows were added, or changed. */
  async refresh() {
    const visible = this.visiblePages();
    for (const page of this.pages.keys()) if (!visible.includes(page)) this.pages.delete(page);
    await this.request(this.follows ? Math.max(0, Math.floor((this.total - 1) / PAGE)) : visible[0]);
    if (this.follows) this.scrollTo(this.total - 1);
  }

  list() {
    return /** @type {HTMLElement} */ (this.element);
  }

  // --- scrolling -----------------------------------------------------------------------------------------------

  /** The number of rows that fit. */
  get capacity() {
    return Math.max(1, Math.floor((this.list().clientHeight - ROW_HEIGHT) / ROW_HEIGHT));
  }

  get height() {
    return Math.min(this.total * ROW_HEIGHT, MAX_HEIGHT);
  }

  /** The position of the first visible row, with a fraction. */
  get first() {
    const list = this.list();
    if (this.total * ROW_HEIGHT <= MAX_HEIGHT) return list.scrollTop / ROW_HEIGHT;
    const range = list.scrollHeight - list.clientHeight;
    return range > 0 ? (list.scrollTop / range) * Math.max(0, this.total - this.capacity) : 0;
  }

  visiblePages() {
    const first = Math.max(0, Math.floor(this.first) - MARGIN);
    const last = Math.min(Math.max(0, this.total - 1), first + this.capacity + 2 * MARGIN);
    const pages = [];
    for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page += 1) pages.push(page);
    return pages;
  }

  /** @param {number} position */
  scrollTo(position) {
    const list = this.list();
    const first = this.first;
    if (position < first) this.setFirst(position);
    else if (position > first + this.capacity - 1) this.setFirst(position - this.capacity + 1);
    else return;
    list.dispatchEvent(new Event("scroll"));
  }

  /** @param {number} position */
  setFirst(position) {
    const list = this.list();
    if (this.total * ROW_HEIGHT <= MAX_HEIGHT) list.scrollTop = position * ROW_HEIGHT;
    else list.scrollTop = (position / Math.max(1, this.total - this.capacity)) * (list.scrollHeight - list.clientHeight);
  }

  schedule() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      this.draw();
    });
  }

  // --- drawing -------------------------------------------------------------------------------------------------

  draw() {
    const space = /** @type {HTMLElement} */ (this.space);
    const list = this.list();
    const height = `${this.height}px`;
    if (space.style.height !== height) space.style.height = height;
    list.setAttribute("aria-rowcount", String(this.total + 1));
    const start = this.first;
    const first = Math.max(0, Math.floor(start) - MARGIN);
    const count = Math.min(this.total - first, this.capacity + 2 * MARGIN + 1);
    while (this.elements.length < count) this.addElement(space);
    const offset = list.scrollTop - start * ROW_HEIGHT;
    this.elements.forEach((element, index) => {
      // Each element has the rows of its remainder: scrolling by one row changes one element.
      const size = this.elements.length;
      const position = first + ((((index - first) % size) + size) % size);
      this.drawRow(element, position, position < first + count, offset + position * ROW_HEIGHT);
    });
    this.requestMissing();
  }

  /** @param {HTMLElement} space */
  addElement(space) {
    const element = this.makeRow("gridcell");
    element.className = "virtual-row";
    element.addEventListener("click", () => this.select(Number(element.dataset.position)));
    this.elements.push(element);
    space.append(element);
  }

  /**
   * @param {HTMLElement} element
   * @param {number} position
   * @param {boolean} isShown
   * @param {number} top
   */
  drawRow(element, position, isShown, top) {
    element.hidden = !isShown;
    if (!isShown) return;
    const row = this.row(position);
    const transform = `translateY(${top}px)`;
    if (element.style.transform !== transform) element.style.transform = transform;
    const isActive = position === this.active;
    const drawn = /** @type {any} */ (element);
    if (drawn.drawnRow === row && drawn.drawnPosition === position && drawn.drawnActive === isActive) return;
    Object.assign(drawn, { drawnRow: row, drawnPosition: position, drawnActive: isActive });
    element.dataset.position = String(position);
    element.id = `row-${position}`;
    element.className = `virtual-row ${row ? this.options.rowClass(row) : ""} ${isActive ? "active" : ""}`;
    element.setAttribute("aria-rowindex", String(position + 2));
    element.setAttribute("aria-selected", String(isActive));
    const cells = element.children;
    this.options.columns.forEach((column, index) => {
      const text = row ? column.text(row) : index === 0 ? "…" : "";
      if (cells[index].textContent !== text) cells[index].textContent = text;
    });
  }

  /** @param {number} position */
  row(position) {
    return this.pages.get(Math.floor(position / PAGE))?.[position % PAGE];
  }

  // --- rows ----------------------------------------------------------------------------------------------------

  requestMissing() {
    const missing = this.visiblePages().find((page) => !this.pages.has(page) && page * PAGE < this.total);
    if (missing !== undefined && !this.isRequesting) this.request(missing).catch(this.options.onError);
  }

  /** @param {number} page */
  async request(page) {
    const { generation } = this;
    this.isRequesting = true;
    try {
      const { rows, total } = await this.options.request(page * PAGE, PAGE);
      if (generation !== this.generation) return;
      this.total = total;
      this.pages.delete(page);
      this.pages.set(page, rows);
      if (this.pages.size > MAX_PAGES) this.pages.delete(/** @type {number} */ (this.pages.keys().next().value));
    } finally {
      this.isRequesting = false;
    }
    this.schedule();
  }

  // --- selection -----------------------------------------------------------------------------------------------

  /** @param {number} position */
  select(position) {
    if (this.total === 0) return;
    this.active = Math.max(0, Math.min(this.total - 1, position));
    this.list().setAttribute("aria-activedescendant", `row-${this.active}`);
    this.scrollTo(this.active);
    this.schedule();
    const row = this.row(this.active);
    if (row) this.options.onSelect(row, this.active);
    else void this.selectLater().catch(this.options.onError);
  }

  /** Selects the active row once it is there. */
  async selectLater() {
    await this.request(Math.floor(this.active / PAGE));
    if (this.row(this.active)) this.select(this.active);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const steps = {
      ArrowDown: 1, ArrowUp: -1, PageDown: this.capacity, PageUp: -this.capacity, Home: -Infinity, End: Infinity,
    };
    const step = /** @type {Record<string, number>} */ (steps)[event.key];
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.select(this.active < 0 && Number.isFinite(step) ? Math.floor(this.first) : this.active + step);
  }
}
