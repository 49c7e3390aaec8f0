// A server on the official TypeScript SDK 1.x that accepts the tokens of one issuer:
//
//     node ts1_protected.mjs CLOCK remote|proxy ISSUER 127.0.0.1:PORT
//
// remote: it publishes its authorization server; proxy: it is one itself, before the other.

import { readFileSync } from "node:fs";
import express from "express";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { ProxyOAuthServerProvider } from "@modelcontextprotocol/sdk/server/auth/providers/proxyProvider.js";
import {
  getOAuthProtectedResourceMetadataUrl,
  mcpAuthMetadataRouter,
  mcpAuthRouter,
} from "@modelcontextprotocol/sdk/server/auth/router.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const [clock, way, issuer, address] = process.argv.slice(2);
const resource = new URL(`http://${address}/mcp`);
const trueTime = Date.now;
Date.now = () => trueTime() + 1000 * Number(readFileSync(clock));

const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));

async function verifyAccessToken(token) {
  const options = { issuer, audience: resource.href, currentDate: new Date(Date.now()) };
  const { payload } = await jwtVerify(token, keys, options).catch((error) => {
    throw new InvalidTokenError(error.message);
  });
  const { client_id: clientId, scope, exp: expiresAt, sub } = payload;
  return { token, clientId, scopes: scope.split(" "), expiresAt, extra: { sub } };
}

function routes() {
  if (way === "proxy") {
    const endpoints = { authorizationUrl: `${issuer}/auth`, tokenUrl: `${issuer}/token`, registrationUrl: `${issuer}/reg` };
    const getClient = async (id) => ({ client_id: id, redirect_uris: ["http://127.0.0.1:33418/callback"] });
    const provider = new ProxyOAuthServerProvider({ endpoints, verifyAccessToken, getClient });
    return mcpAuthRouter({
      provider,
      issuerUrl: new URL(resource.origin),
      resourceServerUrl: resource,
      scopesSupported: ["read"],
    });
  }
  const oauthMetadata = {
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
    response_types_supported: ["code"],
  };
  return mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: resource, scopesSupported: ["read"] });
}

function server() {
  const made = new McpServer({ name: "ts1", version: "1" });
  made.registerTool("who", {}, ({ authInfo }) => ({ content: [{ type: "text", text: authInfo.extra.sub }] }));
  made.registerTool("write_note", { inputSchema: { text: z.string() } }, ({ text }) => ({
    content: [{ type: "text", text: `wrote ${text}` }],
  }));
  return made;
}

const app = express();
app.use(express.json());
app.use(routes());
app.post(
  "/mcp",
  requireBearerAuth({
    verifier: { verifyAccessToken },
    requiredScopes: ["read"],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
  }),
  async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on("close", () => transport.close());
    await server().connect(transport);
    await transport.handleRequest(request, response, request.body);
  },
);
app.listen(Number(resource.port), "127.0.0.1", () => console.log(`serves at http://${address}`));
