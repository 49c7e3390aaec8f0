// A peer client on the official client for tasks: runs the tools of examples/tasks.py as tasks, and prints what it saw.
//
//     node client.mjs REVISION COMMAND...

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient, toolDeclarationFromMcpTool } from "@modelcontextprotocol/ext-tasks/client";

const [revision, command, ...args] = process.argv.slice(2);
const PER_REQUEST = "2026-07-28";
const TASK = { task: { preference: "prefer" } }; // in 2025-11-25 the client decides
const clientInfo = { name: "ext-tasks", version: "0.2.2" };
const clientCapabilities = { elicitation: { form: {} } };

/** Sends the requests about tasks, with ids of their own, since the SDK does not know the shape of their results. */
function rawDispatchOn(transport) {
  const waiting = new Map();
  const { onmessage } = transport;
  transport.onmessage = (message, extra) => {
    const answer = waiting.get(message.id);
    if (!answer) return onmessage(message, extra);
    waiting.delete(message.id);
    answer("error" in message ? { kind: "error", error: message.error } : { kind: "result", result: message.result });
  };
  let count = 0;
  return (request) =>
    new Promise((answer, fail) => {
      const id = `task-${++count}`;
      waiting.set(id, answer);
      transport.send({ jsonrpc: "2.0", id, ...request }).catch(fail);
    });
}

/** The error of a request, as code and message; null for a result. */
async function refusal(answer) {
  try {
    await answer;
    return null;
  } catch (error) {
    return [error.code ?? null, error.message];
  }
}

/** The statuses of a call in their order, and its text or its error. */
async function settled(tool, given = {}) {
  const execution = await session.callTool(tool, given, TASK);
  const statuses = new Set();
  const onEvent = ({ task }) => void (task && statuses.add(task.status));
  const { outcome } = await execution.settle({ onEvent });
  statuses.add(outcome.status);
  const { result, error } = outcome;
  return [execution.kind, [...statuses], result?.content[0].text ?? [error.code ?? null, error.message]];
}

/** A question of 2025-11-25: what the client has asked the user until it gave up, and the status of the task. */
async function question() {
  const { handle } = await session.callTool("confirm_delete", {}, TASK);
  const task = session.task(handle.taskId);
  await task.result({ signal: AbortSignal.timeout(500) }).catch(() => undefined);
  const { status } = await task.snapshot();
  await task.cancel();
  return [asked, status, (await task.snapshot()).status];
}

const speaking =
  revision === PER_REQUEST
    ? { versionNegotiation: { mode: { pin: revision } } }
    : { supportedProtocolVersions: [revision] };
const client = new Client(clientInfo, { capabilities: clientCapabilities, ...speaking });
const transport = new StdioClientTransport({ command, args });
await client.connect(transport);
const tools = new Map((await client.listTools()).tools.map((tool) => [tool.name, toolDeclarationFromMcpTool(tool)]));
let asked = 0;
const session = createTaskSessionFromClient(client, {
  endpointId: "example",
  tools: { currentTool: (name) => tools.get(name) },
  onInputRequest: ({ params }) => {
    asked += 1;
    return { action: "accept", content: { confirm: params.message === "Delete a.txt?" } };
  },
  ...(revision === PER_REQUEST && {
    rawDispatch: rawDispatchOn(transport),
    v2RequestFraming: { protocolVersion: revision, clientInfo, clientCapabilities },
  }),
});

const seen = { revision: client.getNegotiatedProtocolVersion() };
seen.greet = await settled("greet", { name: "Ada" });
seen.slow_compute = await settled("slow_compute", { seconds: 0.5, label: "x" });
seen.confirm_delete = revision === PER_REQUEST ? await settled("confirm_delete") : await question();
seen.failing_job = await settled("failing_job");
seen.protocol_error_job = await settled("protocol_error_job");
const endless = await session.callTool("slow_compute", { seconds: 50 }, TASK);
await endless.cancel();
const task = session.task(endless.handle.taskId);
seen.cancel = (await task.snapshot()).status;
seen["cancel again"] = await refusal(task.cancel());
seen.unknown = [await refusal(session.task("unknown").snapshot()), await refusal(session.cancelTask("unknown"))];
await session.close();
await client.close();
process.stdout.write(`${JSON.stringify(seen)}\n`);
