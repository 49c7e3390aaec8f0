// @ts-nocheck: a page has its own types
/* The connection of a page to its host (MCP Apps 2026-01-26), as `accord`. */
var accord = (() => {
  "use strict";
  const EVENTS = {
    "ui/notifications/tool-input": "input",
    "ui/notifications/tool-input-partial": "partial",
    "ui/notifications/tool-result": "result",
    "ui/notifications/tool-cancelled": "cancelled",
    "ui/notifications/host-context-changed": "context",
  };
  const root = document.documentElement, fonts = document.createElement("style");
  const waiting = new Map(), listeners = new Map(), last = new Map();
  let ids = 0, size = "";

  const post = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const notify = (method, params = {}) => post({ method, params });
  const request = (method, params = {}) => new Promise((resolve, reject) => {
    waiting.set(++ids, { resolve, reject });
    post({ id: ids, method, params });
  });

  const call = async (listener, value) => {
    try { await listener(value); } catch (error) { reportError(error); }
  };
  const emit = (event, value) => {
    last.set(event, value);
    return Promise.all([...(listeners.get(event) ?? [])].map((listener) => call(listener, value)));
  };
  const on = (event, listener) => {
    if (!listeners.has(event)) listeners.set(event, new Set());
    listeners.get(event).add(listener);
    if (last.has(event)) void call(listener, last.get(event));
    return () => listeners.get(event).delete(listener);
  };

  const setContext = (changes) => {
    const context = { ...last.get("context"), ...changes }, { theme, styles } = changes;
    if (theme) root.style.colorScheme = root.dataset.theme = theme;
    for (const [name, value] of Object.entries(styles?.variables ?? {})) {
      if (name.startsWith("--") && value != null) root.style.setProperty(name, value);
    }
    if (styles?.css?.fonts) {
      fonts.textContent = styles.css.fonts;
      document.head.append(fonts);
    }
    return emit("context", context);
  };

  const reportSize = () => {
    const before = root.style.height;
    root.style.height = "max-content"; /* a page may be as high as its frame, which must be able to shrink */
    const height = Math.ceil(root.getBoundingClientRect().height), width = innerWidth;
    root.style.height = before;
    if (size === (size = `${width} ${height}`)) return;
    notify("ui/notifications/size-changed", { width, height });
  };

  const respond = async (id, method, params) => {
    if (method === "ui/resource-teardown") await emit("teardown", params);
    else if (method !== "ping") return post({ id, error: { code: -32601, message: `no method ${method}` } });
    post({ id, result: {} });
  };
  const receive = ({ source, data }) => {
    if (source !== parent || source === window || data?.jsonrpc !== "2.0") return;
    const { id, method, params = {}, result, error } = data;
    if (method === undefined) {
      const { resolve, reject } = waiting.get(id) ?? {};
      waiting.delete(id);
      if (error) reject?.(Object.assign(new Error(error.message), { code: error.code, data: error.data }));
      else resolve?.(result);
    } else if (id !== undefined) void respond(id, method, params);
    else if (EVENTS[method] === "context") void setContext(params);
    else if (EVENTS[method]) void emit(EVENTS[method], method.includes("tool-input") ? params.arguments ?? {} : params);
  };

  const textOf = (result) => result.content.filter((each) => each.type === "text").map((each) => each.text).join("\n");
  const data = (result) => {
    let value = result.structuredContent;
    if (value === undefined) {
      try { value = JSON.parse(textOf(result)); } catch { return textOf(result); }
    }
    return value && typeof value === "object" && Object.keys(value).join() === "result" ? value.result : value;
  };

  const start = async () => {
    const { hostContext = {}, ...host } = await request("ui/initialize", {
      appInfo: { name: document.title || "app", version: "1" },
      appCapabilities: { availableDisplayModes: ["inline"] },
      protocolVersion: "2026-01-26",
    });
    accord.host = host;
    await setContext(hostContext);
    notify("ui/notifications/initialized");
    new ResizeObserver(() => requestAnimationFrame(reportSize)).observe(root);
    if (document.body) new ResizeObserver(() => requestAnimationFrame(reportSize)).observe(document.body);
    return accord;
  };

  addEventListener("message", receive);
  const ready = new Promise((resolve, reject) => {
    const begin = () => parent === window || start().then(resolve, reject);
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", begin);
    else queueMicrotask(begin);
  });
  return {
    ready, on, request, notify, data,
    callTool: async (name, args = {}) => {
      const result = await request("tools/call", { name, arguments: args });
      if (result.isError) throw new Error(textOf(result));
      return result;
    },
    openLink: (url) => request("ui/open-link", { url }),
    sendMessage: (text) => request("ui/message", { role: "user", content: [{ type: "text", text }] }),
  };
})();
