// oidc-provider on a free port of loopback, which it prints. Options are one JSON object in the first argument:
// resource (the identifier that tokens are for), scopes, lifetime (seconds), clients, documents (client ID metadata
// documents by their URLs, which are not fetched), opaque (no JSON Web Tokens), dpop, nonces (whether proofs of possession need
// a nonce), trusted (JWK sets of other issuers by their URLs, whose assertions are accepted, and whose ID tokens are
// exchanged), clock (a file with the seconds by which the time is ahead), journal (a file that gets one line of JSON for
// each grant: its type, and all that is secret of it).
import { createServer } from 'node:http';
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { createLocalJWKSet, decodeJwt, importJWK, jwtVerify, SignJWT } from 'jose';
import Provider, { errors } from 'oidc-provider';

const {
  resource,
  scopes = ['read', 'write'],
  lifetime = 3600,
  clients = [],
  documents = {},
  opaque = false,
  dpop = true,
  nonces = false,
  trusted = {},
  clock,
  journal,
} = JSON.parse(process.argv[2] ?? '{}');
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag';
const keys = [key('es', 'ec', { namedCurve: 'P-256' }, 'ES256'), key('rs', 'rsa', { modulusLength: 2048 }, 'RS256')];

if (clock !== undefined) {
  const trueTime = Date.now;
  Date.now = () => trueTime() + 1000 * Number(readFileSync(clock));
}

// Clients register the scopes that they know of, and request others later.
function allowAllScopes(ctx, name, value, metadata) {
  delete metadata.scope;
}

function write({ oidc: { params }, body }) {
  const { code, code_verifier, refresh_token } = params;
  const secrets = [code, code_verifier, refresh_token, body.access_token, body.refresh_token, body.id_token];
  const line = { grant: params.grant_type, scope: body.scope, secrets: secrets.filter(Boolean) };
  appendFileSync(journal, `${JSON.stringify(line)}\n`);
}

function key(kid, type, options, alg) {
  return { ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg };
}

function resourceServer(indicator) {
  if (resource !== undefined && indicator !== resource) throw new errors.InvalidTarget();
  return {
    scope: scopes.join(' '),
    audience: indicator,
    accessTokenTTL: lifetime,
    ...(opaque ? { accessTokenFormat: 'opaque' } : { accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } } }),
  };
}

async function fetchDocument(url, options) {
  const document = documents[String(url)];
  if (document === undefined) return new Response('', { status: 404 });
  return Response.json(document);
}

async function verified(token) {
  const issuer = decodeJwt(token).iss;
  if (trusted[issuer] === undefined) throw new errors.InvalidGrant(`${issuer} is not trusted`);
  try {
    return await jwtVerify(token, createLocalJWKSet(trusted[issuer]));
  } catch (error) {
    throw new errors.InvalidGrant(error.message);
  }
}

// RFC 7523, 2.1: the token of a workload, or an ID-JAG, which names the client and the resource.
async function acceptAssertion(provider, ctx) {
  const { client, params } = ctx.oidc;
  const { payload, protectedHeader } = await verified(params.assertion);
  if (payload.aud !== provider.issuer) throw new errors.InvalidGrant('aud is not this issuer');
  const isGrant = protectedHeader.typ === 'oauth-id-jag+jwt';
  if (isGrant && payload.client_id !== client.clientId) throw new errors.InvalidGrant('client_id is another one');
  const grant = new provider.Grant({ accountId: payload.sub, clientId: client.clientId });
  const token = new provider.AccessToken({
    accountId: payload.sub, client, grantId: await grant.save(), gty: 'assertion',
  });
  const target = isGrant ? payload.resource : params.resource;
  token.resourceServer = new provider.ResourceServer(target, resourceServer(target));
  token.scope = isGrant ? payload.scope : params.scope;
  ctx.body = { access_token: await token.save(), token_type: 'Bearer', expires_in: token.expiration, scope: token.scope };
}

// RFC 8693 as Enterprise-Managed Authorization profiles it: an ID token becomes an ID-JAG.
async function exchange(ctx) {
  const { client, params } = ctx.oidc;
  if (params.requested_token_type !== ID_JAG) throw new errors.InvalidRequest('only ID-JAGs are issued');
  const { payload } = await verified(params.subject_token);
  if (payload.aud !== client.clientId) throw new errors.InvalidGrant('the ID token is for another client');
  const { resource: target, scope } = params;
  const assertion = await new SignJWT({ client_id: client.clientId, resource: target, scope })
    .setProtectedHeader({ alg: 'ES256', kid: 'es', typ: 'oauth-id-jag+jwt' })
    .setIssuer(ctx.oidc.issuer).setSubject(payload.sub).setAudience(params.audience)
    .setIssuedAt().setExpirationTime('5m').setJti(randomUUID())
    .sign(await importJWK(keys[0], 'ES256'));
  ctx.body = { access_token: assertion, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: 300, scope };
}

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients,
    jwks: { keys },
    cookies: { keys: ['a key for tests'] },
    scopes: ['openid', 'offline_access', ...scopes],
    fetch: fetchDocument,
    extraClientMetadata: { properties: ['all_scopes'], validator: allowAllScopes },
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
      dPoP: { enabled: dpop, nonceSecret: randomBytes(32), requireNonce: () => nonces },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    },
    pkce: { required: () => true },
    issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    ttl: { AccessToken: lifetime, ClientCredentials: lifetime, RefreshToken: 86_400, Session: 86_400, Grant: 86_400, Interaction: 600 },
  });
  if (journal !== undefined) provider.on('grant.success', write);
  trusted[issuer] = { keys: keys.map(({ kty, crv, x, y, n, e, kid, alg }) => ({ kty, crv, x, y, n, e, kid, alg })) };
  provider.registerGrantType(JWT_BEARER, (ctx) => acceptAssertion(provider, ctx), ['assertion', 'resource', 'scope']);
  provider.registerGrantType(
    TOKEN_EXCHANGE, exchange, ['audience', 'requested_token_type', 'resource', 'scope', 'subject_token', 'subject_token_type'],
  );
  server.on('request', provider.callback());
  console.log(`serves at ${issuer}`);
});
process.on('SIGTERM', () => process.exit(0));
