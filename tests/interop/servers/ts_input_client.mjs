// A peer client with callbacks on the official TypeScript SDK: plays input_story.py over HTTP.
//
//     node ts_input_client.mjs ts1|ts2 [--revision REVISION] -- URL

import { argument, outcome, print } from "./ts_program.mjs";

const TOOLS = ["buy", "refuse", "think", "reckon", "folders", "together", "number", "visit", "tell"];
const WATCHED = ["notifications/resources/updated", "notifications/tools/list_changed"];

const asked = [];
const logs = [];
const told = [];
const both = Promise.withResolvers?.() ?? withResolvers();

const host = {
  person(params) {
    asked.push(["person", params.message, params.url ?? Object.keys(params.requestedSchema.properties)]);
    if (params.message === "Really?") return { action: "decline" };
    if (params.url) return { action: "accept" };
    const answers = { size: "large", count: 3, value: true };
    const keys = Object.keys(params.requestedSchema.properties);
    return { action: "accept", content: Object.fromEntries(keys.map((key) => [key, answers[key]])) };
  },
  model(params) {
    asked.push(["model", params.systemPrompt ?? null, params.maxTokens, params.messages.length]);
    const wants = params.tools && params.messages.length === 1;
    const use = { type: "tool_use", id: "use-1", name: "add", input: { a: 1, b: 2 } };
    const content = wants ? use : { type: "text", text: "42" };
    return { role: "assistant", content, model: "m-1", stopReason: wants ? "toolUse" : "endTurn" };
  },
  roots() {
    asked.push(["roots"]);
    return { roots: [{ uri: "file:///srv/a" }, { uri: "file:///srv/b" }] };
  },
  heard(method, params) {
    if (method === "notifications/message") logs.push([params.level, params.data]);
    if (WATCHED.includes(method)) told.push(method);
    if (told.length === 2) both.resolve();
  },
};

function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve) => (made.resolve = resolve));
  return made;
}

/** The text of a result, whatever it is the result of; the error that came instead of it. */
async function words(answer) {
  const result = await outcome(answer);
  if (result.error) return result.error;
  return (result.content ?? result.contents ?? result.messages.map((message) => message.content))[0].text;
}

const { sdk, url, revision } = await argument();
const peer = await sdk.open(sdk.transport(url), revision, host);
const { client } = peer;
await peer.setLevel("info");
const seen = { revision: peer.revision, calls: {}, asked, logs };
for (const name of TOOLS) seen.calls[name] = await words(peer.call({ name, arguments: {} }));
seen.calls.delete = await words(peer.call({ name: "delete", arguments: { path: "a.txt" } }));
seen.read = await words(client.readResource({ uri: "vault://key" }));
seen.prompt = await words(client.getPrompt({ name: "letter", arguments: { to: "Åse" } }));
seen.completed = await outcome(
  client.complete({
    ref: { type: "ref/prompt", name: "plan" },
    argument: { name: "city", value: "O" },
    context: { arguments: { country: "no" } },
  }),
);
await peer.watch("notes://today");
await peer.call({ name: "change", arguments: {} });
await both.promise;
seen.watched = told.sort();
await client.close();
print(seen);
