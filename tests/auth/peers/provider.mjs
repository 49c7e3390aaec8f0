// oidc-provider on a free port of loopback, which it prints. Options are one JSON object in the first argument:
// resource (the identifier that tokens are for), scopes, lifetime (seconds), clients, documents (client ID metadata
// documents by their URLs, which are not fetched).
import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import Provider, { errors } from 'oidc-provider';

const { resource, scopes = ['read', 'write'], lifetime = 3600, clients = [], documents = {} } = JSON.parse(
  process.argv[2] ?? '{}',
);

function key(kid, type, options, alg) {
  return { ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg };
}

function resourceServer(indicator) {
  if (resource !== undefined && indicator !== resource) throw new errors.InvalidTarget();
  return {
    scope: scopes.join(' '),
    audience: indicator,
    accessTokenTTL: lifetime,
    accessTokenFormat: 'jwt',
    jwt: { sign: { alg: 'ES256' } },
  };
}

async function fetchDocument(url, options) {
  const document = documents[String(url)];
  if (document === undefined) return new Response('', { status: 404 });
  return Response.json(document);
}

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients,
    jwks: { keys: [key('es', 'ec', { namedCurve: 'P-256' }, 'ES256'), key('rs', 'rsa', { modulusLength: 2048 }, 'RS256')] },
    cookies: { keys: ['a key for tests'] },
    scopes: ['openid', 'offline_access', ...scopes],
    fetch: fetchDocument,
    features: {
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (ctx, indicator) => resourceServer(indicator),
        useGrantedResource: () => true,
      },
      registration: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      deviceFlow: { enabled: true },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    },
    pkce: { required: () => true },
    issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    ttl: { AccessToken: lifetime, ClientCredentials: lifetime, RefreshToken: 86_400, Session: 86_400, Grant: 86_400, Interaction: 600 },
  });
  server.on('request', provider.callback());
  console.log(`serves at ${issuer}`);
});
process.on('SIGTERM', () => process.exit(0));
