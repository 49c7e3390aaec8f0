// A peer client on the official TypeScript SDK whose calls last: plays sessions_story.py, and more of it.
//
//     node ts_sessions_client.mjs ts1|ts2 [--revision REVISION] -- URL

import { argument, outcome, print } from "./ts_program.mjs";

const { sdk, url, revision } = await argument();
const text = (result) => result.content[0].text;
const transport = sdk.transport(url);
const { client, call, revision: spoken } = await sdk.open(transport, revision);
const seen = { revision: spoken };

const giveUp = new AbortController();
const waiting = outcome(call({ name: "wait", arguments: {} }, { signal: giveUp.signal }));
await call({ name: "begun", arguments: {} });
giveUp.abort("given up");
await waiting;
seen.cancelled = text(await call({ name: "ended", arguments: {} }));
seen.polled = text(await call({ name: "poll", arguments: {} }));

if (transport.sessionId) {
  const { sessionId } = transport;
  seen.resumed = await resumed(sessionId);
  await transport.terminateSession();
  const late = await sdk.reopen(url, sessionId, spoken);
  seen.afterwards = await outcome(late.client.ping());
}
await client.close();
print(seen);

/** A call whose connection is lost after its first step, and taken up by another. */
async function resumed(sessionId) {
  const first = await sdk.reopen(url, sessionId, spoken);
  let token;
  const steps = [];
  const begun = new Promise((resolve) => {
    const onprogress = ({ message }) => resolve(steps.push(message));
    const lost = first.call({ name: "steps", arguments: {} }, { onprogress, onresumptiontoken: (at) => (token = at) });
    lost.catch(() => {});
  });
  await begun;
  await first.client.close();

  const second = await sdk.reopen(url, sessionId, spoken);
  await call({ name: "go", arguments: {} });
  const heard = (at) => steps.push(at.message);
  const result = await second.call({ name: "steps", arguments: {} }, { resumptionToken: token, onprogress: heard });
  await second.client.close();
  return { steps, answer: text(result) };
}
