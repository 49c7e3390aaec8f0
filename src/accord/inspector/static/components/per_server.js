// @ts-check
/** What a screen has of each server, for as long as the page is open. */

/** @typedef {import("../main.js").Context} Context */

/**
 * Returns the function that finds what a screen has of the server of a context, created when it is first asked for.
 *
 * @template T
 * @param {(context: Context) => T} create
 * @returns {(context: Context) => T}
 */
export function perServer(create) {
  /** @type {Map<string, T>} */
  const servers = new Map();
  return (context) => {
    const { name } = context.server;
    const found = servers.get(name) ?? create(context);
    servers.set(name, found);
    return found;
  };
}
