// What the peer programs on the TypeScript SDKs share: their command line, and their words.

/** The SDK, the URL and the revision that the command line names. */
export async function argument() {
  const [name, ...rest] = process.argv.slice(2);
  const at = rest.indexOf("--revision");
  return { sdk: await import(`./${name}.mjs`), url: rest.at(-1), revision: at < 0 ? undefined : rest[at + 1] };
}

/** A result, or the error that came instead of it. */
export async function outcome(answer) {
  try {
    return await answer;
  } catch (error) {
    const message = error.message.replace(/^MCP error -?\d+: /, "");
    return { error: { type: error.name, code: error.code ?? null, message } };
  }
}

/** One whole list, through its pages; the error where the server has no such list. */
export async function pages(list, kind) {
  const items = [];
  for (let cursor; ; ) {
    const page = await outcome(list(cursor));
    if (page.error) return page;
    items.push(...page[kind]);
    if (page.nextCursor === undefined) return items;
    cursor = page.nextCursor;
  }
}

/** The one line that a peer program writes. */
export function print(seen) {
  process.stdout.write(`${JSON.stringify(seen)}\n`);
}
