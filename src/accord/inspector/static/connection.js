// @ts-check
/** The connection of the page to the inspector: commands, and the stream of what changed. */

const TOKEN_KEY = "accord-inspector-token";
const HEADER = "accord-inspector-token";
const FILE_HEADER = "accord-inspector-file";
const RETRY_MILLISECONDS = 1000;
const MOST_WAITING = 4; // A browser has six connections per origin: one is for what changed, and one for a new command.
const PATIENCE_MILLISECONDS = 5000;

/** An error of a command: what happened, and what to do. */
export class CommandError extends Error {
  /**
   * @param {string} error
   * @param {string} cure
   * @param {number} status
   */
  constructor(error, cure, status) {
    super(error);
    this.error = error;
    this.cure = cure;
    this.status = status;
  }
}

/** Moves a token from the address to the storage of this tab, and returns whether there was one. */
export function takeToken() {
  const match = /^#token=([A-Za-z0-9_-]+)$/.exec(location.hash);
  if (match === null) return false;
  sessionStorage.setItem(TOKEN_KEY, match[1]);
  history.replaceState(null, "", location.pathname);
  return true;
}

export function hasToken() {
  return sessionStorage.getItem(TOKEN_KEY) !== null;
}

/** The commands that were not answered yet, the oldest first.
 * @type {Set<{ since: number, stopped: AbortController }>} */
const waiting = new Set();

/** Ends the oldest commands if many wait for long: a server may never answer, and would leave no connection for others. */
function endOldest() {
  const since = performance.now() - PATIENCE_MILLISECONDS;
  const old = [...waiting].filter((each) => each.since < since);
  for (const { stopped } of old.slice(0, -MOST_WAITING)) stopped.abort();
}

/**
 * Sends a command that ends if it waits for long, and so do too many others.
 *
 * @param {string} command
 * @param {string} body
 */
async function postBounded(command, body) {
  const each = { since: performance.now(), stopped: new AbortController() };
  waiting.add(each);
  try {
    return await post(command, body, each.stopped.signal);
  } catch (error) {
    if (!each.stopped.signal.aborted) throw error;
    throw new CommandError(`${command} was not answered for some seconds, and other commands wait`, "repeat it later", 0);
  } finally {
    waiting.delete(each);
  }
}

/**
 * @param {string} command
 * @param {string | Blob} body
 * @param {AbortSignal} [signal]
 */
async function post(command, body, signal) {
  endOldest();
  const type = typeof body === "string" ? "application/json" : "application/octet-stream";
  /** @type {Record<string, string>} */
  const headers = { "content-type": type, [HEADER]: sessionStorage.getItem(TOKEN_KEY) ?? "" };
  if (body instanceof File) headers[FILE_HEADER] = encodeURIComponent(body.name);
  let response;
  try {
    response = await fetch(`api/${command}`, { method: "POST", headers, body, signal, cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new CommandError("the inspector does not answer", "start accord inspect again, and open its new link", 0);
  }
  if (!response.ok) throw await failure(response);
  return response;
}

/** @param {Response} response */
async function failure(response) {
  let error = `HTTP ${response.status}`;
  let cure = "";
  try {
    ({ error, cure } = await response.json());
  } catch {
    // The response is none of the inspector's own.
  }
  return new CommandError(error, cure, response.status);
}

/**
 * Sends a command and returns its result. Values of a server in it are texts of JSON (`...Json`): see `json_text.js`.
 *
 * @param {string} command
 * @param {object} [params]
 * @returns {Promise<any>}
 */
export async function send(command, params = {}) {
  return (await postBounded(command, JSON.stringify(params))).json();
}

/**
 * Sends a file, with its name.
 *
 * @param {string} command
 * @param {File} file
 * @returns {Promise<any>}
 */
export async function upload(command, file) {
  return (await post(command, file)).json();
}

/**
 * Sends a command whose result is a file, and saves that.
 *
 * @param {string} command
 * @param {object} params
 */
export async function download(command, params) {
  const response = await post(command, JSON.stringify(params));
  const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? "file";
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/**
 * Listens to what changed, until the page is closed. A hidden tab closes its stream, because a browser has six
 * connections per origin; the first line of a new stream has all topics.
 *
 * @param {(topics: Record<string, any>) => void} onTopics
 * @param {(error: CommandError | null) => void} onState
 */
export async function listen(onTopics, onState) {
  for (;;) {
    await visible();
    const stopped = new AbortController();
    const hide = () => document.hidden && stopped.abort();
    let pause = 0; // The stream ends after some seconds, and another one begins at once.
    document.addEventListener("visibilitychange", hide);
    try {
      const response = await post("events", "{}", stopped.signal);
      onState(null);
      for await (const line of lines(response)) onTopics(JSON.parse(line).topics);
    } catch (error) {
      if (error instanceof CommandError) onState(error);
      pause = document.hidden ? 0 : RETRY_MILLISECONDS;
      if (error instanceof CommandError && error.status === 401) return; // a new link loads the page again
    } finally {
      document.removeEventListener("visibilitychange", hide);
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** @returns {Promise<void>} */
function visible() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", () => resolve(), { once: true });
  });
}

/** @param {Response} response */
async function* lines(response) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) if (line) yield line;
  }
}
