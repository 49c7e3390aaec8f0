// The official TypeScript SDK 2.x as the stories need it (see ts_client.mjs); ts1.mjs is the other one.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

export const version = "2.4.0";

const PER_REQUEST = "2026-07-28";
const NOTIFICATIONS = ["notifications/message", "notifications/resources/updated", "notifications/tools/list_changed"];

export const transport = (url) => new (url.endsWith("/sse") ? SSEClientTransport : StreamableHTTPClientTransport)(new URL(url));

function speaking(revision) {
  if (!revision) return { versionNegotiation: { mode: "auto" } };
  if (revision === PER_REQUEST) return { versionNegotiation: { mode: { pin: revision } } };
  return { supportedProtocolVersions: [revision] };
}

/** A client with the callbacks of `host`, open; without a revision it finds the newest by itself. */
export async function open(transport, revision, host = {}) {
  const { person, model, roots, heard } = host;
  const capabilities = {
    ...(person && { elicitation: { form: {}, url: {} } }),
    ...(model && { sampling: { tools: {} } }),
    ...(roots && { roots: {} }),
  };
  const client = new Client({ name: "ts2", version }, { capabilities, ...speaking(revision) });
  if (person) client.setRequestHandler("elicitation/create", ({ params }) => person(params));
  if (model) client.setRequestHandler("sampling/createMessage", ({ params }) => model(params));
  if (roots) client.setRequestHandler("roots/list", () => roots());
  for (const method of NOTIFICATIONS)
    if (heard) client.setNotificationHandler(method, ({ params }) => heard(method, params));
  await client.connect(transport);
  const spoken = client.getNegotiatedProtocolVersion();
  const perRequest = spoken === PER_REQUEST;
  let level;
  const wanted = (params) => (level ? { ...params, _meta: { "io.modelcontextprotocol/logLevel": level } } : params);
  return {
    client,
    revision: spoken,
    call: (params, options) => client.callTool(wanted(params), options),
    watch: (uri) =>
      perRequest
        ? client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] })
        : client.subscribeResource({ uri }),
    setLevel: (name) => (perRequest ? void (level = name) : client.setLoggingLevel(name)),
  };
}

/** A client that goes on with a session which another has opened. */
export async function reopen(url, sessionId, protocolVersion) {
  const transport = new StreamableHTTPClientTransport(new URL(url), { sessionId, protocolVersion });
  transport.setProtocolVersion(protocolVersion);
  const client = new Client({ name: "ts2", version });
  await client.connect(transport); // no handshake where there is a session
  return { client, transport, call: (params, options) => client.callTool(params, options) };
}
