// @ts-check
/** The evidence of one step of an authorization: values compared, sentences of the specification, HTTP exchanges. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { safeLink } from "./safe_link.js";

/** @param {any} evidence */
export function stepEvidence(evidence) {
  return html`
    ${evidence.text ? html`<p class=${evidence.state === "failed" ? "error" : ""}>${evidence.text}</p>` : nothing}
    ${evidence.cure ? html`<p><strong>What to do:</strong> ${evidence.cure}</p>` : nothing}
    ${comparisons(evidence.comparisons)} ${sentences(evidence.sentences)}
    ${evidence.exchanges.map((/** @type {any} */ each, /** @type {number} */ index) => exchange(each, index))}
    ${evidence.omitted ? html`<p class="muted">${evidence.omitted} further exchanges are not shown.</p>` : nothing}
  `;
}

/** @param {any[]} values */
function comparisons(values) {
  if (!values.length) return nothing;
  return html`<table>
    <caption class="visually-hidden">Values compared</caption>
    <thead><tr><th scope="col">Value</th><th scope="col">Expected</th><th scope="col">Found</th><th scope="col">Outcome</th></tr></thead>
    <tbody>
      ${values.map(
        (each) => html`<tr>
          <th scope="row">${each.name}</th>
          <td><code>${each.expected}</code></td>
          <td><code>${each.found}</code></td>
          <td class=${each.isAsExpected ? "outcome-good" : "outcome-bad"}>${each.isAsExpected ? "✓ as expected" : "✗ not as expected"}</td>
        </tr>`,
      )}
    </tbody>
  </table>`;
}

/** @param {any[]} values */
function sentences(values) {
  return values.map(
    (each) => html`<blockquote class="sentence">
      <p>${each.text}</p>
      <footer>${each.source}: ${safeLink(each.url)}</footer>
    </blockquote>`,
  );
}

/**
 * @param {any} each
 * @param {number} index
 */
function exchange(each, index) {
  const outcome = each.status === null ? "no response" : `HTTP ${each.status}`;
  return html`<details class="card" ?open=${index === 0}>
    <summary><code class="target">${each.method} ${each.url}</code> <strong>${outcome}</strong></summary>
    ${each.error ? html`<p>${each.error}</p>` : nothing}
    ${message("Request", each.requestHeaders, each.requestBody)}
    ${each.status === null ? nothing : message("Response", each.responseHeaders, each.responseBody)}
    ${each.jwts.map(token)}
  </details>`;
}

/**
 * @param {string} title
 * @param {Record<string, string>} headers
 * @param {string} body
 */
function message(title, headers, body) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  if (!lines.length && !body) return nothing;
  return html`<h3>${title}</h3>
    <pre tabindex="0" aria-label="${title}">${[...lines, ...(body ? ["", body] : [])].join("\n")}</pre>`;
}

/** @param {any} content */
export function token(content) {
  return html`<h3>${content.name}: header and claims, without the signature</h3>
    <pre tabindex="0" aria-label="Header and claims of ${content.name}">${content.headerJson}${content.claimsJson === null ? "" : `\n${content.claimsJson}`}</pre>`;
}
