// @ts-check
/** The other side of an app: JSON-RPC over postMessage with the frame (MCP Apps, 2026-01-26). */

import { CommandError } from "../connection.js";

/** @typedef {import("../main.js").Context} Context */

/**
 * @typedef {object} Approval
 * @property {string} question
 * @property {string} argumentsJson
 * @property {boolean} isReady Whether it may be approved: the user has had the time to read it.
 * @property {(approved: boolean) => void} answer
 */

const PROTOCOL = "2026-01-26";
const MOST_MESSAGES = 200;
const MOST_CHARACTERS = 500;
const MOST_MESSAGES_PER_SECOND = 200;
const MOST_CHARACTERS_PER_SECOND = 20_000_000;
const MOST_MILLISECONDS_PER_SECOND = 500;
const MOST_ARGUMENTS = 200_000;
const MOST_BETWEEN_TICKS = 1000;
const TICK_MILLISECONDS = 500;
const LEAST_TICKS = 3;
const STARVED_MILLISECONDS = 5000;
const MOST_BETWEEN_MESSAGES = 1000;
const MOST_VALUES = 500_000;
const CHARACTERS_PER_VALUE = 40; // To copy a value takes as long as to copy so many characters.
const MOST_RUNNING = 2;
const MOST_WAITING = 50;
const READING_MILLISECONDS = 500;
const LEAST_HEIGHT = 80;
const MOST_HEIGHT = 2000;
const NEEDS_APPROVAL = 428;
const METHOD_NOT_FOUND = -32601;
const FAILED = -32000;
const TEARDOWN = "teardown";
const TEARDOWN_MILLISECONDS = 10_000;

/** What an app asks of its host; what it asks of its server goes through Python. */
export class AppBridge {
  /** @type {HTMLIFrameElement | null} */
  #frame = null;
  /** @type {Approval | null} */
  approval = null;
  /** @type {{ method: string, text: string }[]} */
  messages = [];
  #received = { count: 0, characters: 0, milliseconds: 0, since: 0 };
  /** A time in which timers of the page ran only a few times, and its messages, also those of frames in the app: of the
   * timers that are due, a browser may run one between thousands of messages. */
  #tick = newTick();
  #wasCalled = false;
  #running = 0;
  /** Starts the next command of the app, for each that waits.
   * @type {(() => void)[]} */
  #waiting = [];
  #scheme = matchMedia("(prefers-color-scheme: dark)");
  /** Ends the wait for the answer of an app that was asked to end. */
  #onTeardown = () => {};

  /**
   * @param {any} opened
   * @param {string} argumentsText
   * @param {Context} context
   * @param {() => void} end Closes the app.
   */
  constructor(opened, argumentsText, context, end) {
    this.end = end;
    this.opened = opened;
    this.argumentsText = argumentsText;
    this.context = context;
    this.tool = JSON.parse(opened.toolJson);
    this.onMessage = (/** @type {MessageEvent} */ event) => {
      const begun = performance.now();
      void this.#receive(event);
      this.#tick.last = performance.now();
      this.#received.milliseconds += this.#tick.last - begun;
    };
    addEventListener("message", this.onMessage);
    this.ticks = setInterval(() => {
      this.#tick.ticks += 1;
      if (this.#tick.ticks >= LEAST_TICKS) this.#tick = newTick();
    }, TICK_MILLISECONDS);
    this.onScheme = () => this.#send({ method: "ui/notifications/host-context-changed", params: { theme: this.#theme } });
    this.#scheme.addEventListener("change", this.onScheme);
  }

  /** @param {HTMLIFrameElement} frame */
  attach(frame) {
    this.#frame = frame;
  }

  get #theme() {
    return this.#scheme.matches ? "dark" : "light";
  }

  /** Asks the app to end, and waits for its answer: on a busy machine, for some seconds. */
  teardown() {
    return new Promise((resolve) => {
      this.#onTeardown = () => resolve(undefined);
      setTimeout(this.#onTeardown, TEARDOWN_MILLISECONDS);
      this.#send({ id: TEARDOWN, method: "ui/resource-teardown", params: {} });
    });
  }

  close() {
    removeEventListener("message", this.onMessage);
    clearInterval(this.ticks);
    this.#scheme.removeEventListener("change", this.onScheme);
    this.approval?.answer(false);
    this.#frame?.remove(); // At once: what it has sent already would hold up the next drawing of the page.
    this.#frame = null;
    this.#waiting = [];
  }

  /** @param {object} message */
  #send(message) {
    // The origin of a sandboxed frame is opaque, so "*" is the only target; the window is that of this frame.
    this.#frame?.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  /** @param {MessageEvent} event */
  async #receive(event) {
    if (this.#isStarved()) return this.#stop();
    if (event.source === null || event.source !== this.#frame?.contentWindow || this.#isFlooded()) return;
    const { data } = event; // This copies all of it: not for what is too much.
    const size = sizeOf(data);
    this.#received.characters += size;
    if (data?.id === TEARDOWN && data.method === undefined) this.#onTeardown();
    if (typeof data !== "object" || data === null || typeof data.method !== "string") return;
    const isTooLong = size > MOST_CHARACTERS_PER_SECOND; // Its JSON would take as long as its copy did, several times.
    this.#note(data.method, isTooLong ? null : jsonOf(data.params), size);
    if (isTooLong) return;
    if (data.id === undefined) return this.#notified(data.method, data.params);
    if (typeof data.id !== "string" && typeof data.id !== "number") return; // Not each other value can be sent back.
    const answer = await this.#answer(data.method, data.params ?? {});
    await this.#rest();
    this.#send({ id: data.id, ...answer });
    this.context.update();
  }

  /**
   * @param {string} method
   * @param {any} params
   */
  async #answer(method, params) {
    try {
      return { result: await this.#result(method, params) };
    } catch (error) {
      const code = error instanceof UnknownMethod ? METHOD_NOT_FOUND : FAILED;
      return { error: { code, message: error instanceof Error ? error.message : "failed" } };
    }
  }

  /** Waits until another message of the app would be received: one that waits for its answers loses none, however slow
   * the page is. */
  async #rest() {
    const { count, characters, milliseconds, since } = this.#received;
    const used = Math.max(characters / MOST_CHARACTERS_PER_SECOND, milliseconds / MOST_MILLISECONDS_PER_SECOND);
    if (count < MOST_MESSAGES_PER_SECOND && used <= 1) return;
    const end = since + 1000 * Math.max(1, used - 1);
    await new Promise((resolve) => setTimeout(resolve, end - performance.now() + 1));
  }

  /** Returns whether the page does nothing any more but receive messages: not even those that are ignored are free. An
   * app is not to blame for what waited while the page was hidden, where timers rest, or did something long itself. */
  #isStarved() {
    if (document.hidden || performance.now() - this.#tick.last > MOST_BETWEEN_MESSAGES) this.#tick = newTick();
    this.#tick.messages += 1;
    return this.#tick.messages > MOST_BETWEEN_TICKS && performance.now() - this.#tick.at > STARVED_MILLISECONDS;
  }

  #stop() {
    this.end();
    void this.context.attempt(async () => {
      throw new CommandError("the app was closed: it sent more messages than the page can receive", "tell its author", 0);
    });
  }

  /** Returns whether the app sends more than a page can show: what is too much gets no answer. After a message that is
   * longer, or takes longer, than those of a second may, this lasts as many seconds. The characters say before a message
   * is copied that it is too much; the time, that values of this kind or this machine are slower. */
  #isFlooded() {
    const now = performance.now();
    const { characters, milliseconds, since } = this.#received;
    if (now - since > 1000) {
      const left = (/** @type {number} */ sum, /** @type {number} */ most) =>
        Math.max(0, sum - ((now - since) / 1000) * most);
      this.#received = {
        count: 0,
        characters: left(characters, MOST_CHARACTERS_PER_SECOND),
        milliseconds: left(milliseconds, MOST_MILLISECONDS_PER_SECOND),
        since: now,
      };
    }
    this.#received.count += 1;
    return (
      this.#received.count > MOST_MESSAGES_PER_SECOND ||
      this.#received.characters > MOST_CHARACTERS_PER_SECOND ||
      this.#received.milliseconds > MOST_MILLISECONDS_PER_SECOND
    );
  }

  /**
   * @param {string} method
   * @param {string | null} json
   * @param {number} size
   */
  #note(method, json, size) {
    this.#received.characters += Math.max(0, (json === null ? MOST_CHARACTERS_PER_SECOND / 2 : json.length) - size);
    const text = escaped((json ?? "not JSON, or too long").slice(0, MOST_CHARACTERS));
    this.messages = [...this.messages.slice(1 - MOST_MESSAGES), { method: method.slice(0, MOST_CHARACTERS), text }];
    this.context.update();
  }

  /**
   * @param {string} method
   * @param {any} params
   */
  #notified(method, params) {
    if (method === "ui/notifications/initialized") void this.#callTool();
    if (method === "ui/notifications/size-changed" && this.#frame && Number.isFinite(params?.height)) {
      this.#frame.height = String(Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, params.height)));
    }
  }

  /** Calls the tool for the user, who pressed the button, and gives the app its input and its result. Only once: an app
   * could call it again and again, without the approval of the user. */
  async #callTool() {
    if (this.#wasCalled) return;
    this.#wasCalled = true;
    await this.context.attempt(async () => {
      const call = { app: this.opened.id, name: this.tool.name, argumentsJson: this.argumentsText, byUser: true };
      this.#send({ method: "ui/notifications/tool-input", params: { arguments: parsed(this.argumentsText) } });
      try {
        const { resultJson } = await this.context.send("apps/call", call);
        this.#send({ method: "ui/notifications/tool-result", params: JSON.parse(resultJson) });
      } catch (error) {
        this.#send({ method: "ui/notifications/tool-cancelled", params: { reason: "the call failed" } });
        throw error;
      }
    });
  }

  /**
   * @param {string} method
   * @param {any} params
   */
  async #result(method, params) {
    switch (method) {
      case "ui/initialize":
        return this.#initialized();
      case "tools/call":
        return this.#call(textOf(params.name), argumentsOf(params));
      case "resources/read": {
        const { resultJson } = await this.#command("apps/read", { app: this.opened.id, uri: textOf(params.uri) });
        return JSON.parse(resultJson);
      }
      case "ui/request-display-mode":
        return { mode: "inline" };
      case "ui/open-link": // It is shown among the messages: the inspector opens nothing.
      case "ui/message":
      case "ui/update-model-context":
      case "ping":
        return {};
      default:
        throw new UnknownMethod(`the inspector has no ${method.slice(0, MOST_CHARACTERS)}`);
    }
  }

  /**
   * Sends a command of the app. Some run at once, and the others wait: a browser has six connections per origin, and
   * the server may never answer.
   *
   * @param {string} command
   * @param {object} params
   */
  async #command(command, params) {
    if (this.#waiting.length >= MOST_WAITING) throw new Error("too many requests of the app wait for its server");
    if (this.#running < MOST_RUNNING) this.#running += 1;
    else await /** @type {Promise<void>} */ (new Promise((resolve) => this.#waiting.push(resolve)));
    try {
      return await this.context.send(command, params);
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }

  #initialized() {
    return {
      protocolVersion: PROTOCOL,
      hostInfo: { name: "accord inspector", version: "1" },
      hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, message: { text: {} } },
      hostContext: {
        toolInfo: { tool: this.tool },
        theme: this.#theme,
        displayMode: "inline",
        availableDisplayModes: ["inline"],
        locale: navigator.language,
        platform: "web",
      },
    };
  }

  /**
   * @param {string} name
   * @param {string} argumentsJson
   */
  async #call(name, argumentsJson) {
    const call = { app: this.opened.id, name, argumentsJson };
    try {
      return JSON.parse((await this.#command("apps/call", call)).resultJson);
    } catch (error) {
      if (!(error instanceof CommandError && error.status === NEEDS_APPROVAL)) throw error;
      if (!(await this.#ask(error.error, argumentsJson))) throw new Error("the user declined the call");
    }
    return JSON.parse((await this.#command("apps/call", { ...call, approved: true })).resultJson);
  }

  /**
   * @param {string} question
   * @param {string} argumentsJson
   * @returns {Promise<boolean>}
   */
  #ask(question, argumentsJson) {
    // One at a time, and none at the first moment: an app could exchange the question under the pointer of the user.
    if (this.approval) throw new Error("another call waits for the user");
    if (argumentsJson.length > MOST_ARGUMENTS) throw new Error("the arguments are too long to be shown to the user");
    return new Promise((resolve) => {
      const answer = (/** @type {boolean} */ approved) => {
        this.approval = null;
        resolve(approved);
      };
      const approval = { question, argumentsJson: escaped(argumentsJson), isReady: false, answer };
      this.approval = approval;
      setTimeout(() => {
        approval.isReady = true;
        this.context.update();
      }, READING_MILLISECONDS);
      this.context.announce(question);
      this.context.update();
    });
  }
}

class UnknownMethod extends Error {}

/** Returns when a time began, the timers and messages since then, and when the last message was received. */
function newTick() {
  const now = performance.now();
  return { at: now, ticks: 0, messages: 0, last: now };
}

/**
 * Returns a JSON text in which characters that cannot be seen, or that change the order of others, are escapes.
 *
 * @param {string} json
 */
function escaped(json) {
  return json.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    [...Array(character.length).keys()].map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
}

/**
 * Returns about how many characters a message has; what occurs several times in it was sent once, and counts once.
 *
 * @param {any} message
 */
function sizeOf(message) {
  let size = 0;
  const objects = new Set();
  const add = (/** @type {any} */ value) => {
    size += CHARACTERS_PER_VALUE + (typeof value === "string" ? value.length : 0);
    if (typeof value === "object" && value !== null) objects.add(value);
  };
  add(message);
  for (const each of objects) {
    if (each instanceof String) size += each.length;
    else if (each instanceof ArrayBuffer) size += each.byteLength;
    else if (ArrayBuffer.isView(each)) add(each.buffer);
    else if (Array.isArray(each)) Object.values(each).forEach(add); // Its length can be far beyond its values.
    else if (each instanceof Set) each.forEach(add);
    else if (each instanceof Map) each.forEach((value, key) => [key, value].forEach(add));
    else {
      for (const name in each) {
        size += name.length;
        add(each[name]);
      }
    }
  }
  return size;
}

/**
 * Returns a value that an app sent as JSON; null for one that is no JSON, such as one that contains itself, and for one
 * with very many values. What occurs several times in a value was sent once: a short message can have long JSON.
 *
 * @param {unknown} value
 */
function jsonOf(value) {
  let values = 0;
  let characters = 0;
  const counted = (/** @type {string} */ name, /** @type {any} */ each) => {
    values += 1;
    characters += name.length + (typeof each === "string" || each instanceof String ? each.length : 0);
    const isTooLong = values > MOST_VALUES || characters > 10 * MOST_CHARACTERS_PER_SECOND;
    if (isTooLong || ArrayBuffer.isView(each)) throw new TypeError("no JSON for an app");
    return each;
  };
  try {
    return JSON.stringify(value, counted) ?? "";
  } catch {
    return null;
  }
}

/** @param {unknown} value */
function textOf(value) {
  if (typeof value !== "string") throw new Error("the name of the tool or the URI of the resource is not a string");
  return value;
}

/** @param {any} params */
function argumentsOf(params) {
  const json = jsonOf(params.arguments ?? {});
  if (json === null) throw new Error("the arguments are not JSON, or have too many values");
  return json;
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
