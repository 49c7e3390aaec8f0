// @ts-check
/** The address of a screen: `#/SCREEN/SERVER/REST...`; each part is encoded. */

/**
 * @typedef {object} Route
 * @property {string} screen
 * @property {string} server
 * @property {string[]} rest
 */

/** @returns {Route} */
export function currentRoute() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  return { screen: parts[0] ?? "", server: parts[1] ?? "", rest: parts.slice(2) };
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

/**
 * @param {string} screen
 * @param {string} [server]
 * @param {string[]} rest
 */
export function address(screen, server = "", ...rest) {
  return `#/${[screen, server, ...rest].map(encodeURIComponent).join("/").replace(/\/+$/, "")}`;
}

/**
 * @param {string} screen
 * @param {string} [server]
 * @param {string[]} rest
 */
export function navigate(screen, server = "", ...rest) {
  location.hash = address(screen, server, ...rest);
}
