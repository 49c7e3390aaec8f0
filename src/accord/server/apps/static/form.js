// @ts-nocheck: joined with page.js
/* A form for the arguments of a tool, which it calls; the result of the call that opened the page fills it in. */
const TYPES = { integer: "number", number: "number", date: "date", "date-time": "datetime-local", email: "email", uri: "url" };
const inputs = new Map();
const submit = element("button", { type: "button" }, options.submit);
const outcome = element("div", { class: "scroll" });

const label = (field, id) => element("label", { for: id }, field.title + (field.required ? " (required)" : ""));
const described = (field, id) => (field.description ? element("div", { id: `${id}-about`, class: "quiet" }, field.description) : null);
const about = (field, id) => ({ id, name: field.name, "aria-describedby": [field.description && `${id}-about`, `${id}-error`].filter(Boolean).join(" ") });
const wrong = (id) => element("div", { id: `${id}-error`, class: "error" });

const choiceBox = (field, id, [, text], position, type) => element("div", { class: "choice" },
  element("input", { type, id: `${id}-${position}`, name: id, value: position, "aria-describedby": `${id}-error` }),
  element("label", { for: `${id}-${position}` }, text));
const group = (field, id, type) => {
  const boxes = field.choices.map((choice, position) => choiceBox(field, id, choice, position, type));
  const made = element("fieldset", {}, element("legend", {}, field.title + (field.required ? " (required)" : "")), described(field, id), ...boxes, wrong(id));
  const all = () => [...made.querySelectorAll("input")];
  const chosen = () => all().filter((each) => each.checked).map((each) => field.choices[Number(each.value)][0]);
  const set = (value) => all().forEach((each) => {
    const own = field.choices[Number(each.value)][0];
    each.checked = Array.isArray(value) ? value.includes(own) : value === own;
  });
  return { made, read: type === "checkbox" ? chosen : () => chosen()[0], set, first: () => all()[0] };
};
const single = (field, id) => {
  if (field.kind === "boolean") {
    const box = element("input", { type: "checkbox", ...about(field, id) });
    const made = element("div", { class: "field" }, element("div", { class: "choice" }, box, element("label", { for: id }, field.title)), described(field, id), wrong(id));
    return { made, read: () => box.checked, set: (value) => { box.checked = value === true; }, first: () => box };
  }
  const long = field.kind === "text" && (field.maxLength ?? 0) > 200;
  const input = element(long ? "textarea" : "input", {
    ...about(field, id), type: long ? undefined : TYPES[field.kind] ?? "text", required: field.required,
    min: field.minimum, max: field.maximum, step: field.kind === "number" ? "any" : undefined,
    minlength: field.minLength, maxlength: field.maxLength, rows: long ? 4 : undefined,
  });
  const read = () => {
    if (input.value === "") return undefined;
    if (TYPES[field.kind] === "number") return Number(input.value);
    return field.kind === "date-time" ? new Date(input.value).toISOString() : input.value;
  };
  const set = (value) => {
    if (value === null || value === undefined) return;
    const shift = (date) => new Date(date - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
    input.value = field.kind === "date-time" ? shift(new Date(value)) : String(value);
  };
  return { made: element("div", { class: "field" }, label(field, id), described(field, id), input, wrong(id)), read, set, first: () => input };
};

/* not <form>: the sandbox of a host blocks the submission of forms */
const form = element("div", { class: "form", role: "form", "aria-label": document.title });
options.fields.forEach((field, position) => {
  const id = `field-${position}`;
  const made = field.choices.length ? group(field, id, field.kind === "choices" ? "checkbox" : "radio") : single(field, id);
  if (field.default !== undefined) made.set(field.default);
  inputs.set(field.name, { field, id, ...made });
  form.append(made.made);
});
form.append(element("div", {}, submit));

const checked = () => {
  const values = {};
  let first = null;
  for (const [name, { field, id, read, first: target }] of inputs) {
    const value = read(), missing = value === undefined && field.required, input = target();
    const text = missing ? "Please enter a value." : input.willValidate && !field.choices.length ? input.validationMessage : "";
    document.getElementById(`${id}-error`).textContent = text;
    input.setAttribute("aria-invalid", String(text !== ""));
    if (text && !first) first = input;
    if (value !== undefined) values[name] = value;
  }
  first?.focus();
  return first ? null : values;
};
const send = async () => {
  const values = checked();
  if (!values) return say("Some fields need another value.", true);
  submit.disabled = true;
  say("Sending");
  try {
    const result = await accord.callTool(options.tool, values);
    say("Done");
    outcome.textContent = contentText(result);
  } catch (error) {
    say(error.message, true);
  }
  submit.disabled = false;
};
submit.addEventListener("click", send);
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("input:not([type=checkbox], [type=radio])")) submit.click();
});

accord.on("result", (result) => {
  const data = result.isError ? null : accord.data(result);
  if (isRecord(data)) for (const [name, { set }] of inputs) if (name in data) set(data[name]);
});
main.append(element("h1", {}, document.title), form, problem, state, outcome);
