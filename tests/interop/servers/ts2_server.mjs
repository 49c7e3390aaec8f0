// A peer server on the official TypeScript SDK 2.x, over Streamable HTTP: what story.py expects of one.
//
//     node ts2_server.mjs HOST:PORT

import { createServer } from "node:http";

import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, ResourceTemplate, createMcpHandler, fromJsonSchema } from "@modelcontextprotocol/server";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

const text = (words) => ({ type: "text", text: words });
const said = (words) => ({ content: [text(words)] });

/** The schema of an object that needs each of these. */
function object(properties) {
  const typed = Object.fromEntries(Object.entries(properties).map(([name, type]) => [name, { type }]));
  return fromJsonSchema({ type: "object", properties: typed, required: Object.keys(properties) });
}

function build() {
  const server = new McpServer({ name: "ts2", version: "2.4.0" }, { instructions: "A peer on TypeScript 2." });
  const tool = (name, description, inputSchema, call, more = {}) =>
    server.registerTool(name, { description, inputSchema: object(inputSchema), ...more }, call);
  tool("echo", "Give back the text.", { text: "string" }, ({ text }) => said(text));
  const sum = ({ a, b }) => ({ ...said(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } });
  tool("add", "Add two numbers.", { a: "integer", b: "integer" }, sum, { outputSchema: object({ sum: "integer" }) });
  tool("fail", "Fail.", {}, () => {
    throw new Error("it went wrong");
  });
  tool("slow", "Take a few steps and say so.", { steps: "integer" }, async ({ steps }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= steps; progress++) {
      const params = { progressToken, progress, total: steps, message: `step ${progress}` };
      await mcpReq.notify({ method: "notifications/progress", params });
    }
    return said("done");
  });
  tool("picture", "Show a picture.", {}, () => ({ content: [{ type: "image", data: PNG, mimeType: "image/png" }] }));

  const plain = { mimeType: "text/plain" };
  const read = (uri, words) => ({ contents: [{ uri: uri.href, ...plain, text: words }] });
  const today = { description: "What there is to do today.", ...plain };
  server.registerResource("today", "notes://today", today, (uri) => read(uri, "buy milk"));
  const days = new ResourceTemplate("notes://{day}", { list: undefined });
  server.registerResource("notes", days, { description: "What there is to do on a day.", ...plain }, (uri, { day }) =>
    read(uri, `notes of ${day}`),
  );
  const plan = { description: "Plan a day.", argsSchema: object({ city: "string" }) };
  server.registerPrompt("plan", plan, ({ city }) => ({
    description: "Plan a day.",
    messages: [{ role: "user", content: text(`Plan a day in ${city}.`) }],
  }));
  return server;
}

const [host, port] = process.argv.at(-1).split(":");
const listening = createServer(toNodeHandler(createMcpHandler(build))).listen(Number(port), host, () => {
  process.stderr.write(`listening at http://${host}:${listening.address().port}\n`);
});
