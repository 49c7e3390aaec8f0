// @ts-check
/** A link to a URL that a peer chose: it shows the whole target, and opens only https, or http on this machine. */

import { html } from "../vendor/lit-html/lit-html.js";

const LOOPBACK = /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * Returns whether a URL may be opened.
 *
 * @param {string} url
 */
export function isSafe(url) {
  let parts;
  try {
    parts = new URL(url);
  } catch {
    return false;
  }
  if (parts.username || parts.password || /[\s\u0000-\u001f\u007f\\]/.test(url)) return false;
  return parts.protocol === "https:" || (parts.protocol === "http:" && LOOPBACK.test(parts.hostname));
}

/**
 * Returns a link whose text is its target, with the host and hidden characters encoded; a text, if the target may not be opened.
 *
 * @param {string} url
 */
export function safeLink(url) {
  if (!isSafe(url)) return html`<code class="target">${url}</code> <span class="muted">(no link: neither https nor this machine)</span>`;
  return html`<a class="target" href=${url} target="_blank" rel="noopener noreferrer">${new URL(url).href}</a>`;
}
