// @ts-nocheck: joined with the bridge, which is `accord`
/* What the ready-made pages share: elements with text only, rows of a result, a status, and the button that refreshes. */
const options = JSON.parse(document.getElementById("options").textContent);
const main = document.querySelector("main");
const SVG = "http://www.w3.org/2000/svg";

const fill = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, String(value));
  }
  made.append(...children.filter((each) => each !== undefined && each !== null));
  return made;
};
const element = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const drawn = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

const isRecord = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const rowsOf = (result) => {
  let value = accord.data(result);
  if (options.rows) value = isRecord(value) ? value[options.rows] : undefined;
  else if (isRecord(value)) value = Object.values(value).find(Array.isArray) ?? [value];
  return Array.isArray(value) ? value.filter(isRecord) : [];
};

let locale;
accord.on("context", (context) => { locale = context.locale; });
const textOf = (value) => {
  if (typeof value === "number") {
    try { return new Intl.NumberFormat(locale).format(value); } catch { return String(value); }
  }
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};
const titled = (name) => String(options.titles?.[name] ?? name);

const problem = element("p", { role: "alert" });
const state = element("p", { role: "status", class: "quiet" });
const say = (text, failed = false) => {
  problem.textContent = failed ? text : "";
  state.textContent = failed ? "" : text;
};
const contentText = (result) => result.content.filter((each) => each.type === "text").map((each) => each.text).join("\n");

const follow = (show) => {
  let input = {};
  const refresh = options.refresh && element("button", { type: "button" }, "Refresh");
  const update = (result) => (result.isError ? say(contentText(result) || "The call failed.", true) : (say(""), show(result)));
  refresh?.addEventListener("click", async () => {
    refresh.disabled = true;
    say("Loading");
    try { update(await accord.callTool(options.refresh, input)); } catch (error) { say(error.message, true); }
    refresh.disabled = false;
    refresh.focus();
  });
  accord.on("input", (given) => { input = given; });
  accord.on("cancelled", () => say("The call was cancelled."));
  accord.on("result", update);
  say("Waiting for the result");
  return refresh;
};
