// A server on one release of the TypeScript SDK, in the way of its own README: sdk.mjs SDK [WAY HOST:PORT]
//
// over stdio without a way; `sessions`: a transport for each session; `shared`: one transport for everybody

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

const [sdk, way, address] = process.argv.slice(2);
const { McpServer, ResourceTemplate } = await import(`${sdk}/server/mcp.js`);
const { StdioServerTransport } = await import(`${sdk}/server/stdio.js`);
const { StreamableHTTPServerTransport } = await import(`${sdk}/server/streamableHttp.js`);

const REST = 300; // milliseconds

function server() {
  const made = new McpServer({ name: sdk, version: "1" });
  const content = [{ type: "text", text: "rested" }];
  made.tool("rest", "Take a rest.", () => new Promise((done) => setTimeout(done, REST, { content })));
  const template = new ResourceTemplate("items://all{/id*}", { list: undefined });
  made.resource("items", template, (uri) => ({ contents: [{ uri: uri.href, text: "an item" }] }));
  return made;
}

async function opened(transport) {
  await server().connect(transport);
  return transport;
}

const sessions = new Map();
let shared;

function transportOf(id) {
  if (way === "shared") return (shared ??= opened(new StreamableHTTPServerTransport({})));
  if (id) return sessions.get(id);
  const onsessioninitialized = (given) => sessions.set(given, transport);
  const onsessionclosed = (ended) => sessions.delete(ended);
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized, onsessionclosed });
  return opened(transport);
}

async function serve(request, response) {
  const transport = await transportOf(request.headers["mcp-session-id"]);
  if (transport) await transport.handleRequest(request, response);
  else response.writeHead(404).end();
}

if (way) {
  const [host, port] = address.split(":");
  const web = createServer(serve);
  web.listen(Number(port), host, () => console.log(`http://${host}:${web.address().port}/mcp`));
} else await opened(new StdioServerTransport());
