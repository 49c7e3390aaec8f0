// @ts-check
/** The page: header, navigation, and the screen of the address. Everything else is in `screens/`. */

import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
import { CommandError, hasToken, listen, send, takeToken } from "./connection.js";
import { openPalette, paletteView } from "./components/palette.js";
import { address, currentRoute, navigate } from "./router.js";
import { screens } from "./screens/index.js";

/**
 * @typedef {object} Action
 * @property {string} title
 * @property {() => void} run
 */

/**
 * What a screen gets.
 *
 * @typedef {object} Context
 * @property {any} server The description of the selected server, or null.
 * @property {any[]} servers The descriptions of all servers.
 * @property {string[]} revisions The revisions of the protocol, the newest first.
 * @property {string[]} rest The parts of the address after the server.
 * @property {Record<string, any>} topics The current value of each topic.
 * @property {typeof send} send
 * @property {typeof navigate} navigate
 * @property {typeof address} address
 * @property {() => void} update Renders the page again, in the next frame.
 * @property {() => void} redraw Renders the page at once: what the user types next is for what is drawn now.
 * @property {(work: () => Promise<void>, kind?: "action" | "load") => Promise<void>} attempt Runs work, and shows its
 *   error, until the next work of this kind.
 * @property {(text: string) => void} announce Tells a screen reader.
 */

/**
 * One screen. `load` is called when it is opened, and when one of its topics or its server changed.
 *
 * @typedef {object} Screen
 * @property {boolean} [perServer] Whether it is about one server.
 * @property {boolean} [offline] Whether it needs no connection to that server.
 * @property {(context: Context) => boolean} [isKnown] Whether it shows something that stays when the connection is lost.
 * @property {string[]} [topics]
 * @property {(context: Context) => Promise<void> | void} [load]
 * @property {(context: Context) => unknown} view
 * @property {(context: Context) => Action[]} [actions]
 */

/**
 * A screen in the navigation; its module is loaded when it is opened.
 *
 * @typedef {object} ScreenEntry
 * @property {string} id
 * @property {string} title
 * @property {() => Promise<{ screen: Screen }>} open
 * @property {(context: Context) => number} [badge] A number beside its name: what waits there.
 */

/** @type {Map<string, Screen>} */
const opened = new Map();

/** The errors of the connection, of the last action of the user, and of loading the screen.
 * @type {{ connection: CommandError | null, action: CommandError | null, load: CommandError | null }} */
const errors = { connection: null, action: null, load: null };

/** @type {{ servers: any[], revisions: string[], topics: Record<string, any>, isScheduled: boolean, loaded: string,
 *   opening: number, screen: string }} `opening` counts the screens that are being opened. */
const state = { servers: [], revisions: [], topics: {}, isScheduled: false, loaded: "", opening: 0, screen: "" };

function update() {
  if (state.isScheduled) return;
  state.isScheduled = true;
  requestAnimationFrame(() => {
    state.isScheduled = false;
    draw();
  });
}

/** @param {string} text */
function announce(text) {
  const place = document.getElementById("announcements");
  if (place) place.textContent = text;
}

/** How often something of each kind was attempted. */
const attempts = { action: 0, load: 0, connection: 0 };

/**
 * @param {() => Promise<void>} work
 * @param {"action" | "load" | "connection"} kind
 */
async function attempt(work, kind = "action") {
  const number = (attempts[kind] += 1);
  try {
    errors[kind] = null;
    await work();
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if (kind === "load" && number !== attempts.load) return; // What was loaded since is newer than this error.
    errors[kind] = error;
    announce(error.error);
  }
  update();
}

function currentEntry() {
  const { screen } = currentRoute();
  return screens.find(({ id }) => id === screen) ?? screens[0];
}

/** Returns the screen of the address, whose module is loaded when it is first opened. */
async function openedScreen() {
  const entry = currentEntry();
  const screen = opened.get(entry.id) ?? (await loadedModule(entry)).screen;
  opened.set(entry.id, screen);
  return screen;
}

/** @param {ScreenEntry} entry */
async function loadedModule(entry) {
  try {
    return await entry.open();
  } catch {
    throw new CommandError(`${entry.title} could not be loaded`, "start accord inspect again, or reload the page", 0);
  }
}

/** @returns {Context} */
function context() {
  const route = currentRoute();
  const server = state.servers.find((each) => each.name === route.server) ?? null;
  const { servers, revisions, topics } = state;
  return { server, servers, revisions, rest: route.rest, topics, send, navigate, address, update, redraw: draw, attempt, announce };
}

/** @param {boolean} always Whether the screen is loaded even if it is the same. */
async function loadScreen(always) {
  const { server } = context();
  const key = `${location.hash} ${server?.state} ${server?.connections}`;
  if (!always && key === state.loaded) return;
  state.loaded = key;
  await attempt(async () => {
    const screen = await openedScreen();
    if (screen !== opened.get(currentEntry().id)) return; // Meanwhile another one was opened.
    const current = context();
    const isReady = !screen.perServer || (current.server && !needsConnection(screen, current));
    if (isReady || hasContent(screen, current)) await screen.load?.(current);
  }, "load");
}

/** Loads the screen of a new address, and moves the focus to it, unless the user moved it meanwhile. */
async function openScreen() {
  const focused = document.activeElement;
  state.opening += 1;
  try {
    await loadScreen(false);
  } finally {
    state.opening -= 1;
    draw();
  }
  if ([focused, document.body].includes(document.activeElement)) document.getElementById("main")?.focus({ preventScroll: true });
}

/** @param {Record<string, any>} topics */
async function onTopics(topics) {
  Object.assign(state.topics, topics);
  update(); // the navigation shows how many requests are open, on every screen
  if ("servers" in topics) await attempt(loadServers, "connection");
  const shown = opened.get(currentEntry().id);
  if (shown?.topics?.some((topic) => topic in topics)) await reloadScreen();
  else await loadScreen(false);
}

/** The screens that are being loaded again, by address, and whether something changed meanwhile. A server may change
 * something all the time: of one screen, one load runs at once, except for a load that waits for a server.
 * @type {Map<string, { again: boolean, since: number }>} */
const reloading = new Map();
const PATIENCE_MILLISECONDS = 2000;

async function reloadScreen() {
  const address = location.hash;
  const running = reloading.get(address);
  if (running && performance.now() - running.since < PATIENCE_MILLISECONDS) {
    running.again = true;
    return;
  }
  const current = { again: true, since: 0 };
  reloading.set(address, current);
  while (current.again && location.hash === address) {
    Object.assign(current, { again: false, since: performance.now() });
    await loadScreen(true);
  }
  if (reloading.get(address) === current) reloading.delete(address);
}

let serverLoads = 0;

async function loadServers() {
  const number = (serverLoads += 1);
  const { servers, revisions } = await send("servers/list");
  if (number !== serverLoads) return; // What a later request returns is newer.
  const isFirst = state.servers.length === 0;
  state.servers = servers;
  state.revisions = revisions.toReversed();
  if (isFirst) await openFirst(location.hash === "");
}

/**
 * Shows the session file that the user named; or else connects the first server, and shows its tools. A server that was
 * connected before stays as the user left it, and so does a screen that was opened meanwhile.
 *
 * @param {boolean} navigates
 */
async function openFirst(navigates) {
  const [, session] = state.topics.session?.sessions ?? [];
  const [first] = state.servers;
  const isOwn = ["command line", "program"].includes(first?.origin);
  if (navigates) {
    if (session) navigate("timeline", "", session);
    else if (first) navigate(isOwn ? "tools" : "servers", isOwn ? first.name : "");
  }
  if (session || !isOwn || first.state !== "idle" || (first.connections && !navigates)) return;
  await attempt(() => send("servers/connect", { server: first.name }));
}

// --- view ------------------------------------------------------------------------------------------------------

function draw() {
  const entry = currentEntry();
  const current = context();
  document.title = `${entry.title}${current.server ? ` · ${current.server.name}` : ""} · accord inspector`;
  const focused = document.activeElement;
  render(pageView(entry, current), /** @type {HTMLElement} */ (document.getElementById("page")));
  keepFocus(focused);
}

/** The element that lost the focus because it is disabled.
 * @type {Element | null} */
let disabled = null;

/**
 * Keeps the focus where the user left it: an element that moves loses it, and a button that is disabled while its work
 * runs gets it back at the end.
 *
 * @param {Element | null} before What had the focus before the page was rendered.
 */
function keepFocus(before) {
  const owner = before === document.body ? disabled : before;
  const now = document.activeElement;
  disabled = null;
  if (!(owner instanceof HTMLElement) || !owner.isConnected || (now !== owner && now !== document.body)) return;
  if (owner.matches(":disabled")) disabled = owner;
  else if (now !== owner) owner.focus({ preventScroll: true });
}

/**
 * @param {ScreenEntry} entry
 * @param {Context} current
 */
function pageView(entry, current) {
  const screen = opened.get(entry.id);
  return html`
    <header class="page-header">
      <p class="brand">accord <span>inspector</span></p>
      ${serverChoice(entry, current)}
      <button type="button" class="quiet" @click=${() => openPalette(draw)}>
        Commands <kbd>Ctrl K</kbd>
      </button>
    </header>
    <nav class="page-nav" aria-label="Screens">
      <ul>
        ${screens.map((each) => navigationItem(each, entry, current))}
      </ul>
    </nav>
    <main id="main" tabindex="-1" aria-labelledby="title" aria-busy=${state.opening ? "true" : nothing}>
      <h1 id="title">${entry.title}${screen?.perServer && current.server ? html` <small>${current.server.name}</small>` : nothing}</h1>
      ${differentErrors().map(errorView)}
      ${screen ? contentView(screen, current) : nothing}
    </main>
    ${paletteView(() => actions(entry, current), update)}
  `;
}

/**
 * @param {Screen} screen
 * @param {Context} current
 */
function contentView(screen, current) {
  if (!hasToken()) return nothing;
  if (!screen.perServer) return screen.view(current);
  if (!current.server) return noServer(current);
  if (!needsConnection(screen, current)) return screen.view(current);
  return html`${notConnected(current)} ${hasContent(screen, current) ? screen.view(current) : nothing}`;
}

/**
 * @param {Screen} screen
 * @param {Context} current
 */
function needsConnection(screen, { server }) {
  return screen.perServer && !screen.offline && server.state !== "connected";
}

/**
 * What was called before the connection was lost stays in sight: its error may be why.
 *
 * @param {Screen} screen
 * @param {Context} current
 */
function hasContent(screen, current) {
  return Boolean(current.server && screen.isKnown?.(current));
}

/** @param {Context} current */
function notConnected({ server }) {
  const connect = () => attempt(() => send("servers/connect", { server: server.name, revision: server.onlyRevision }));
  return html`
    <p>${server.name} is not connected (${server.state}).</p>
    ${server.error && !errors.action ? html`<p class="error"><strong>${server.error}</strong> ${server.cure}</p>` : nothing}
    <p class="buttons">
      <button type="button" ?disabled=${server.state === "connecting"} @click=${connect}>Connect</button>
      <a href=${address("servers")}>All servers</a>
      ${server.transport === "HTTP" ? html`<a href=${address("authorization", server.name)}>Log in step by step</a>` : nothing}
    </p>
  `;
}

/**
 * @param {ScreenEntry} each
 * @param {ScreenEntry} entry
 * @param {Context} current
 */
function navigationItem(each, entry, current) {
  const badge = each.badge?.(current) ?? 0;
  return html`<li>
    <a href=${address(each.id, chosenServer(current))} aria-current=${each === entry ? "page" : nothing}>
      ${each.title}${badge ? html` <span class="badge">${badge}<span class="visually-hidden"> open</span></span>` : nothing}
    </a>
  </li>`;
}

/**
 * The name of the selected server: until the servers are known, the one of the address.
 *
 * @param {Context} current
 */
function chosenServer({ server, servers }) {
  return servers.length ? (server?.name ?? "") : currentRoute().server;
}

/**
 * @param {ScreenEntry} entry
 * @param {Context} current
 */
function serverChoice(entry, current) {
  if (!current.servers.length) return nothing;
  const choose = (/** @type {Event} */ event) => {
    navigate(entry.id, /** @type {HTMLSelectElement} */ (event.target).value);
  };
  return html`<label class="server-choice">
    <span>Server</span>
    <select @change=${choose} .value=${current.server?.name ?? ""}>
      ${current.server ? nothing : html`<option value="">none</option>`}
      ${current.servers.map(
        (each) => html`<option value=${each.name} ?selected=${each === current.server}>${each.name} (${each.state})</option>`,
      )}
    </select>
  </label>`;
}

/** The errors with different texts: a replaced token is one error, whatever it broke. */
function differentErrors() {
  const found = [errors.connection, errors.action, errors.load].filter((error) => error !== null);
  return found.filter((error, at) => found.findIndex((each) => each.error === error.error) === at);
}

/** @param {CommandError | null} error */
function errorView(error) {
  if (error === null) return nothing;
  return html`<div class="error" role="alert">
    <strong>${error.error}</strong>${error.cure ? html`<p>${error.cure}</p>` : nothing}
  </div>`;
}

/** @param {Context} current */
function noServer(current) {
  return html`<p>Choose a server: ${current.servers.map(
    (each) => html`<a href=${address(currentRoute().screen || "tools", each.name)}>${each.name}</a> `,
  )}</p>`;
}

/**
 * @param {ScreenEntry} entry
 * @param {Context} current
 * @returns {Action[]}
 */
function actions(entry, current) {
  const open = screens.map((each) => ({
    title: `Open ${each.title}`,
    run: () => navigate(each.id, chosenServer(current)),
  }));
  const servers = current.servers.map((each) => ({
    title: `Server ${each.name}`,
    run: () => navigate(entry.id, each.name),
  }));
  return [...(opened.get(entry.id)?.actions?.(current) ?? []), ...open, ...servers];
}

// --- start -----------------------------------------------------------------------------------------------------

function start() {
  takeToken();
  addEventListener("hashchange", () => {
    if (takeToken()) location.reload(); // A new link was opened in this tab.
  });
  if (!hasToken()) {
    errors.connection = new CommandError("this page needs the link that accord inspect printed", "open that link", 401);
    return draw();
  }
  document.querySelector(".skip")?.addEventListener("click", (event) => {
    event.preventDefault(); // the fragment is the address of a screen
    document.getElementById("main")?.focus();
  });
  addEventListener("hashchange", () => {
    errors.action = errors.load = null;
    update();
    const { screen, server } = currentRoute();
    if (`${screen}/${server}` !== state.screen) scrollTo(0, 0);
    state.screen = `${screen}/${server}`;
    void openScreen();
  });
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette(draw);
    }
  });
  addEventListener("dragover", (event) => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  });
  addEventListener("drop", (event) => {
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault(); // the browser would leave the page and show the file
    void import("./screens/sessions.js").then(({ openDropped }) => openDropped(file));
  });
  void listen(
    (topics) => void onTopics(topics),
    (error) => {
      errors.connection = error;
      update();
    },
  );
  draw();
}

start();
