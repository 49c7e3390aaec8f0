// @ts-check
/** Texts that a server suggests for arguments of prompts and for variables of templates. */

/** @typedef {import("../main.js").Context} Context */

/**
 * Returns the JSON Schema of arguments that are texts.
 *
 * @param {{ name: string, title?: string, description?: string, required?: boolean }[]} given
 */
export function schemaOf(given) {
  const properties = Object.fromEntries(given.map(({ name, title, description }) => [name, { type: "string", title, description }]));
  const required = given.filter((each) => each.required).map(({ name }) => name);
  return JSON.stringify({ type: "object", properties, required });
}

/**
 * @param {Context} context
 * @param {{ prompt: string } | { template: string }} of
 * @param {string} argument
 * @param {string} value
 * @param {Record<string, string>} others The arguments that have a value.
 * @returns {Promise<string[]>}
 */
export async function complete(context, of, argument, value, others) {
  try {
    const found = await context.send("completion/complete", { server: context.server.name, argument, value, context: others, ...of });
    return found.values;
  } catch {
    return [];
  }
}
