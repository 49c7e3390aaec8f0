// A peer client on the official TypeScript SDK: plays the story, as story.py tells it, over HTTP.
//
//     node ts_client.mjs ts1|ts2 [--revision REVISION] -- URL

import { argument, outcome, pages, print } from "./ts_program.mjs";

const CALLS = { echo: { text: "héllo\u2028wörld" }, add: { a: 2, b: 3 }, fail: {}, slow: { steps: 3 }, picture: {} };
const LISTS = {
  tools: "listTools",
  resources: "listResources",
  resourceTemplates: "listResourceTemplates",
  prompts: "listPrompts",
};

const { sdk, url, revision } = await argument();
const { client, call, revision: spoken } = await sdk.open(sdk.transport(url), revision);
const seen = {
  client: sdk.version,
  revision: spoken,
  server: client.getServerVersion() ?? {},
  capabilities: Object.keys(client.getServerCapabilities() ?? {}).sort(),
  instructions: client.getInstructions() ?? null,
  ping: await outcome(client.ping()),
  progress: [],
  calls: {},
  reads: {},
};
for (const [kind, list] of Object.entries(LISTS)) seen[kind] = await pages((cursor) => client[list]({ cursor }), kind);

const onprogress = ({ progress, total, message }) => seen.progress.push([progress, total, message ?? null]);
for (const [name, given] of Object.entries(CALLS))
  seen.calls[name] = await outcome(call({ name, arguments: given }, { onprogress }));
seen.together = await Promise.all(
  [...Array(20).keys()].map((number) => outcome(call({ name: "echo", arguments: { text: `${number}` } }))),
);
for (const uri of ["notes://today", "notes://monday"]) seen.reads[uri] = await outcome(client.readResource({ uri }));
seen.prompt = await outcome(client.getPrompt({ name: "plan", arguments: { city: "Oslo" } }));
seen.missing = {
  argument: await outcome(call({ name: "echo", arguments: {} })),
  tool: await outcome(call({ name: "nothing", arguments: {} })),
  resource: await outcome(client.readResource({ uri: "nothing://here" })),
  prompt: await outcome(client.getPrompt({ name: "nothing", arguments: {} })),
};
await client.close();
print(seen);
