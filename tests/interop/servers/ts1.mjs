// The official TypeScript SDK 1.x as the stories need it (see ts_client.mjs); ts2.mjs is the other one.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

export const version = "1.32.2";

const NOTIFICATIONS = {
  "notifications/message": types.LoggingMessageNotificationSchema,
  "notifications/resources/updated": types.ResourceUpdatedNotificationSchema,
  "notifications/tools/list_changed": types.ToolListChangedNotificationSchema,
};

export const transport = (url) => new (url.endsWith("/sse") ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(url));

/** A client with the callbacks of `host`, open; it speaks the SDK's newest revision, whatever is asked for. */
export async function open(transport, revision, host = {}) {
  const { person, model, roots, heard } = host;
  const capabilities = {
    ...(person && { elicitation: { form: {}, url: {} } }),
    ...(model && { sampling: { tools: {} } }),
    ...(roots && { roots: {} }),
  };
  const client = new Client({ name: "ts1", version }, { capabilities });
  if (person) client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => person(params));
  if (model) client.setRequestHandler(types.CreateMessageRequestSchema, ({ params }) => model(params));
  if (roots) client.setRequestHandler(types.ListRootsRequestSchema, () => roots());
  for (const [method, schema] of Object.entries(NOTIFICATIONS))
    if (heard) client.setNotificationHandler(schema, ({ params }) => heard(method, params));
  await client.connect(transport);
  return {
    client,
    revision: transport.protocolVersion ?? transport._protocolVersion,
    call: (params, options) => client.callTool(params, undefined, options),
    watch: (uri) => client.subscribeResource({ uri }),
    setLevel: (level) => client.setLoggingLevel(level),
  };
}

/** A client that goes on with a session which another has opened. */
export async function reopen(url, sessionId, protocolVersion) {
  const transport = new StreamableHTTPClientTransport(new URL(url), { sessionId, protocolVersion });
  transport.setProtocolVersion(protocolVersion);
  const client = new Client({ name: "ts1", version });
  await client.connect(transport); // no handshake where there is a session
  return { client, transport, call: (params, options) => client.callTool(params, undefined, options) };
}
