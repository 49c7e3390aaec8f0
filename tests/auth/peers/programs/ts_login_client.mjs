// A client on an official TypeScript SDK (see login_story.py):
//
//     node ts_login_client.mjs ts1|ts2 CLOCK URL PYTHON BROWSER

import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";

const [sdk, clock, url, python, browser] = process.argv.slice(2);
const REDIRECT_URI = "http://127.0.0.1:33419/callback";
const EXPIRY = 700;

const from = {
  ts1: async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
    ...(await import("@modelcontextprotocol/sdk/client/auth.js")),
  }),
  ts2: () => import("@modelcontextprotocol/client"),
};
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = await from[sdk]();

/** What the user's browser comes back with, for the transport of the request that needs it. */
let callback;
const stored = {};
const authProvider = {
  redirectUrl: REDIRECT_URI,
  clientMetadata: {
    client_name: sdk,
    redirect_uris: [REDIRECT_URI],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  clientInformation: () => stored.client,
  saveClientInformation: (client) => void (stored.client = client),
  tokens: () => stored.tokens,
  saveTokens: (tokens) => void (stored.tokens = tokens),
  saveCodeVerifier: (verifier) => void (stored.verifier = verifier),
  codeVerifier: () => stored.verifier,
  saveDiscoveryState: (state) => void (stored.discovery = state),
  discoveryState: () => stored.discovery,
  redirectToAuthorization: async (target) => {
    // Not the Sync one: meanwhile the event loop has to see that a server closes a connection, before it is used again.
    const { stdout } = await promisify(execFile)(python, [browser, String(target), "--print"], { encoding: "utf8" });
    callback = new URL(stdout.trim()).searchParams;
  },
};

let transport, client;

/** The outcome of an operation; where the SDK wants a login of the user, after it. */
async function authorized(operation) {
  try {
    return await operation();
  } catch (error) {
    const unauthorized = error instanceof UnauthorizedError || error.cause instanceof UnauthorizedError;
    if (!unauthorized || !callback) throw error;
    await (sdk === "ts1" ? transport.finishAuth(callback.get("code")) : transport.finishAuth(callback));
    callback = undefined;
    return await operation();
  }
}

async function connect() {
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
  client = new Client({ name: sdk, version: "1" }, sdk === "ts2" ? { versionNegotiation: { mode: "auto" } } : {});
  await client.connect(transport);
}

async function call(name, given = {}) {
  const { content } = await authorized(() => client.callTool({ name, arguments: given }));
  return content[0].text;
}

await authorized(connect);
const { tools } = await authorized(() => client.listTools());
const seen = { tools: tools.map(({ name }) => name), calls: [await call("who")] };
writeFileSync(clock, String(Number(readFileSync(clock)) + EXPIRY));
seen.calls.push(await call("who"));
seen.calls.push(await call("write_note", { text: "milk" }).catch(({ message }) => message));
await client.close();
console.log(JSON.stringify(seen));
