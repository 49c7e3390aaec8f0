// @ts-check
/**
 * The result of a call: blocks of content, structured content with its errors, and the JSON.
 *
 * Content of a server is text. Images and audio are shown from a `blob:` address, with the type that Python found in
 * their first bytes; SVG and HTML are never rendered.
 */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { JsonView } from "./json_view.js";
import { isSafe, safeLink } from "./safe_link.js";

/** @typedef {import("../main.js").Context} Context */

/** The result of one call, with the addresses of its images, which are revoked with it. */
export class Result {
  /**
   * @param {any} result What `calls/read` returned.
   * @param {() => void} update
   */
  constructor(result, update) {
    this.result = result;
    /** @type {Map<any, string>} */
    this.urls = new Map();
    this.structured = result.structuredJson ? new JsonView(result.structuredJson, update, "Structured content") : null;
    this.json = result.isShortened ? null : new JsonView(result.resultJson, update, "JSON of the result");
  }

  close() {
    for (const url of this.urls.values()) URL.revokeObjectURL(url);
    this.urls.clear();
  }

  /** @param {any} block */
  url(block) {
    let url = this.urls.get(block);
    if (url === undefined) {
      const bytes = Uint8Array.from(atob(block.data), (character) => character.charCodeAt(0));
      url = URL.createObjectURL(new Blob([bytes], { type: block.mediaType }));
      this.urls.set(block, url);
    }
    return url;
  }

  /** @param {Context} context */
  view(context) {
    const { result } = this;
    return html`
      ${result.blocks.map((/** @type {any} */ block) => this.blockView(block, context))}
      ${result.blocks.length === 0 ? html`<p class="muted">The result has no content.</p>` : nothing}
      ${this.structured ? html`<h4>Structured content</h4>${this.structured.view()}` : nothing} ${checkView(result)}
      <details>
        <summary>JSON of the result (${result.size.toLocaleString("en")} bytes)</summary>
        ${result.isShortened
          ? html`<p class="note">This is its beginning. Save the result to see all of it.</p><pre tabindex="0">${result.resultJson}</pre>`
          : this.json?.view()}
      </details>
    `;
  }

  /**
   * @param {any} block
   * @param {Context} context
   */
  blockView(block, context) {
    return html`<div class="block">
      ${block.role ? html`<p class="mark">${block.role}</p>` : nothing} ${block.title ? html`<p><bdi>${block.title}</bdi></p>` : nothing}
      ${block.uri ? uriView(block, context) : nothing} ${this.contentView(block)}
      ${block.note ? html`<p class="note">${block.note}</p>` : nothing}
    </div>`;
  }

  /** @param {any} block */
  contentView(block) {
    if (block.data && block.mediaType.startsWith("image/")) {
      return html`<img class="content-image" src=${this.url(block)} alt="Image of the server, ${block.mediaType}">`;
    }
    if (block.data) return html`<audio controls src=${this.url(block)} aria-label="Audio of the server, ${block.mediaType}"></audio>`;
    if (block.blockJson) return html`<p>A block of the kind <code>${block.kind}</code>:</p><pre tabindex="0">${block.blockJson}</pre>`;
    return block.text || block.kind === "text" ? html`<pre class="content-text" tabindex="0" dir="auto">${block.text ?? ""}</pre>` : nothing;
  }
}

/**
 * @param {any} block
 * @param {Context} context
 */
function uriView(block, context) {
  const server = context.server?.name ?? "";
  return html`<p>
    ${block.kind === "link" ? "Link to" : "Resource"} ${isSafe(block.uri) ? safeLink(block.uri) : html`<code class="target">${block.uri}</code>`} ${block.mimeType ? html`<span class="muted">${block.mimeType}</span>` : nothing}
    ${block.kind === "link" ? html`<a href=${context.address("resources", server, block.uri)}>Read it as a resource</a>` : nothing}
  </p>`;
}

/** @param {any} result */
function checkView(result) {
  if (result.errors?.length) {
    return html`<div class="error">
      <strong>The structured content does not match the output schema of the tool.</strong>
      <ul>${result.errors.map((/** @type {any} */ each) => html`<li><code>${each.pointer || "the value"}</code>: ${each.reason}</li>`)}</ul>
    </div>`;
  }
  return result.problem ? html`<p class="note">${result.problem}</p>` : nothing;
}
