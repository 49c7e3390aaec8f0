// @ts-check
/** The screen Authorization: the login at a server, one step at a time, with evidence, settings and tokens. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { download } from "../connection.js";
import { currentRoute } from "../router.js";
import { safeLink } from "../components/safe_link.js";
import { stepEvidence, token } from "../components/step_evidence.js";

/** @typedef {import("../main.js").Context} Context */

/** @typedef {{ run: any, page: { url: string, userCode: string } | null, evidence: any }} Shown */

/** @type {Map<string, Shown>} */
const shown = new Map();
let loads = 0;

const MARKS = /** @type {Record<string, string>} */ ({
  pending: "○",
  running: "…",
  waiting: "…",
  done: "✓",
  failed: "✗",
  stopped: "■",
});

const GRANTS = [
  ["code", "a user, in a browser"],
  ["device", "a user, on another device (--device)"],
  ["program", "a program, with its client ID and secret"],
];

/** @type {import("../main.js").Screen} */
export const screen = {
  perServer: true,
  offline: true,
  topics: ["authorization"],
  load,
  view: (context) => {
    if (context.server.transport !== "HTTP") return html`<p>Only servers at a URL have logins.</p>`;
    const state = shown.get(context.server.name);
    if (state === undefined) return nothing;
    return state.run === null ? startView(context) : runView(context, state);
  },
  actions: (context) => {
    if (!shown.get(context.server?.name)?.run) return [];
    return [
      { title: "Authorization: next step", run: () => void act(context, "step") },
      { title: "Authorization: run all steps", run: () => void act(context, "run") },
    ];
  },
};

/** @param {Context} context */
async function load(context) {
  const server = context.server.name;
  if (context.server.transport !== "HTTP") return;
  const number = ++loads;
  const found = await context.send("authorization/state", { server });
  const run = found.steps ? found : null;
  const hasPage = run && (isDone(run, "authorization request") || isDone(run, "device authorization"));
  const page = hasPage ? await context.send("authorization/url", { server }) : null;
  const step = run && selected(run, context);
  const evidence = step ? await context.send("authorization/evidence", { server, step }) : null;
  if (number === loads) shown.set(server, { run, page, evidence });
}

/**
 * @param {any} run
 * @param {string} step
 */
function isDone(run, step) {
  return run.steps.some((/** @type {any} */ each) => each.step === step && each.state === "done");
}

/**
 * Returns the step of the address, else the one that failed, else the last that was performed.
 *
 * @param {any} run
 * @param {Context} context
 * @returns {string}
 */
function selected(run, context) {
  const all = [...run.steps, ...run.actions];
  const [chosen] = context.rest;
  if (all.some((each) => each.step === chosen)) return chosen;
  const performed = run.steps.filter((/** @type {any} */ each) => each.state !== "pending");
  return (performed.find((/** @type {any} */ each) => each.state === "failed") ?? performed.at(-1))?.step ?? "";
}

/**
 * Sends a command of the debugger, and shows the new state.
 *
 * @param {Context} context
 * @param {string} command
 * @param {object} [params]
 */
function act(context, command, params = {}) {
  return context.attempt(async () => {
    const run = await context.send(`authorization/${command}`, { server: context.server.name, ...params });
    const failed = run.steps.find((/** @type {any} */ each) => each.state === "failed");
    context.announce(failed ? `${failed.step} failed: ${failed.text}` : `next step: ${run.nextStep ?? "none"}`);
    const { rest } = currentRoute();
    if (String(rest) !== String(context.rest)) return load({ ...context, rest }); // The user chose a step meanwhile.
    if (rest.length) context.navigate("authorization", context.server.name);
    await load({ ...context, rest: [] });
  });
}

/**
 * @param {Context} context
 * @param {string} title
 * @param {string} command
 * @param {{ params?: object, disabled?: boolean, quiet?: boolean }} [options]
 */
function button(context, title, command, { params = {}, disabled = false, quiet = false } = {}) {
  return html`<button
    type="button" class=${quiet ? "quiet" : ""} ?disabled=${disabled} @click=${() => act(context, command, params)}
  >${title}</button>`;
}

/** @param {Context} context */
function startView(context) {
  return html`<p>
      The debugger logs in at this server as a client does, one step at a time, and shows what each step sends, receives
      and compares. The stored login changes only when you save.
    </p>
    <p class="buttons">${button(context, "Start", "start")}</p>`;
}

/**
 * @param {Context} context
 * @param {Shown} state
 */
function runView(context, state) {
  const { run } = state;
  const isIdle = run.activity === "idle";
  const exported = () => context.attempt(() => download("authorization/export", { server: context.server.name }));
  return html`
    <p class="target"><code>${run.url}</code></p>
    ${run.isLoginNeeded ? nothing : html`<p>The server answers without a login. The next step looks for one nevertheless.</p>`}
    <p class="buttons">
      ${button(context, run.nextStep ? `Next step: ${run.nextStep}` : "All steps are done", "step", { disabled: !isIdle || !run.nextStep })}
      ${button(context, "Run all", "run", { disabled: !isIdle || !run.nextStep })}
      ${button(context, "Stop", "stop", { disabled: isIdle, quiet: true })}
      ${button(context, "Start again", "start", { quiet: true })}
      <button type="button" class="quiet" @click=${exported}>Export the evidence</button>
    </p>
    ${browserView(context, state)}
    <section aria-labelledby="authorization-steps">
      <h2 id="authorization-steps">Steps</h2>
      <ol class="authorization-steps">${run.steps.map((/** @type {any} */ each) => stepLine(each, context, state, isIdle))}</ol>
      ${run.actions.length ? html`<ul class="authorization-steps">${run.actions.map((/** @type {any} */ each) => stepLine(each, context, state, false))}</ul>` : nothing}
    </section>
    ${state.evidence
      ? html`<section aria-labelledby="authorization-evidence">
          <h2 id="authorization-evidence">Evidence: ${state.evidence.step}</h2>
          ${stepEvidence(state.evidence)}
        </section>`
      : nothing}
    ${tokensView(context, run, isIdle)} ${settingsView(context, run, isIdle)}
  `;
}

/**
 * @param {any} each
 * @param {Context} context
 * @param {Shown} state
 * @param {boolean} canRepeat
 */
function stepLine(each, context, state, canRepeat) {
  const isSelected = state.evidence?.step === each.step;
  return html`<li class="step-${each.state}">
    <span aria-hidden="true">${MARKS[each.state]}</span>
    <a href=${context.address("authorization", context.server.name, each.step)} aria-current=${isSelected ? "step" : nothing}>${each.step}</a>
    <span class="muted">${each.state}</span>
    ${canRepeat && each.state !== "pending"
      ? html`<button type="button" class="quiet" aria-label="Repeat from ${each.step}" @click=${() => act(context, "repeat", { step: each.step })}>Repeat</button>`
      : nothing}
    ${each.text ? html`<div>${each.text}</div>` : nothing} ${each.cure ? html`<div><strong>${each.cure}</strong></div>` : nothing}
  </li>`;
}

/**
 * @param {Context} context
 * @param {Shown} state
 */
function browserView(context, state) {
  const { page, run } = state;
  if (!page || isDone(run, "callback") || isDone(run, "login on another device")) return nothing;
  if (page.userCode) return deviceView(page, run.isWaiting);
  const paste = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    void act(context, "callback", { url: String(new FormData(form).get("url") ?? "") }).then(() => form.reset());
  };
  return html`<section class="card" aria-labelledby="authorization-browser">
    <h2 id="authorization-browser">Log in with your browser</h2>
    <p>${safeLink(page.url)}</p>
    ${run.isWaiting
      ? html`<p role="status">The callback step waits for your browser at <code>${run.redirectUri}</code>.</p>
          <form class="authorization-callback" @submit=${paste}>
            <label><span>Or paste the URL that a browser elsewhere shows at the end</span>
              <input name="url" type="text" required autocomplete="off" spellcheck="false"></label>
            <p class="buttons"><button type="submit">Use this URL</button></p>
          </form>`
      : html`<p>Run the callback step before you return here.</p>`}
  </section>`;
}

/**
 * @param {{ url: string, userCode: string }} page
 * @param {boolean} isWaiting
 */
function deviceView({ url, userCode }, isWaiting) {
  return html`<section class="card" aria-labelledby="authorization-device">
    <h2 id="authorization-device">Log in on any device</h2>
    <p>Open ${safeLink(url)} and check or enter the code <strong><code>${userCode}</code></strong></p>
    <p role="status">${isWaiting ? "The debugger asks for the result until you have decided." : "Run the next step, which waits for you."}</p>
  </section>`;
}

/**
 * @param {Context} context
 * @param {any} run
 * @param {boolean} isIdle
 */
function tokensView(context, run, isIdle) {
  const disabled = !isIdle;
  const isProgram = run.settings.grant === "program";
  return html`<section aria-labelledby="authorization-tokens">
    <h2 id="authorization-tokens">Tokens</h2>
    <h3>Of this run</h3>
    ${run.tokens ? tokenView(run.tokens) : html`<p>There are none yet.</p>`}
    ${run.tokens
      ? html`<p class="buttons">
            ${button(context, "Refresh", "refresh", { disabled: disabled || !run.tokens.isRefreshable })}
            ${button(context, "Simulate expiry", "expire", { disabled })}
            ${button(context, "Log out", "logout", { disabled, quiet: true })}
            ${isProgram ? nothing : button(context, run.isSaved ? "Saved" : "Save as the stored login", "save", { disabled: disabled || run.isSaved })}
          </p>
          ${isProgram
            ? html`<p>A program gets its tokens anew. To connect the server with this login, name it in the configuration.</p>`
            : run.isSaved
            ? html`<p>The server is connected with it: <a href=${context.address("tools", context.server.name)}>connect</a>.</p>`
            : html`<p>${run.storedTokens ? "The stored login is another one until you save." : "To connect the server with this login, save it."}</p>`} ${stepUpForm(context, run.neededScopes, disabled)}`
      : nothing}
    <h3>Stored login</h3>
    ${run.storedTokens
      ? html`${tokenView(run.storedTokens)}
          <p class="buttons">${button(context, "Log out of the stored login", "logout", { params: { stored: true }, disabled, quiet: true })}</p>`
      : html`<p>There is none.</p>`}
  </section>`;
}

/** @param {any} tokens */
function tokenView(tokens) {
  const expiry = tokens.expiresAt === null ? "not stated" : new Date(tokens.expiresAt * 1000).toLocaleString();
  const facts = [
    ["State", tokens.isExpired ? "expired" : "valid, as far as the client knows"],
    ["Expires", expiry],
    ["Refreshable", tokens.isRefreshable ? "yes" : "no"],
    ["Issuer", tokens.issuer],
    ["Resource", tokens.resource],
    ["Scopes", tokens.scopes.join(" ") || "none"],
    ["Requested scopes", tokens.requested.join(" ") || "none"],
    ["Client", `${tokens.clientId} (${tokens.clientSource})`],
    ["Type", tokens.isBoundToKey ? "DPoP: bound to a key" : tokens.tokenType],
    ["Relaxed rules", tokens.relaxed.join(" ")],
    ["Secrets", tokens.isInKeyring ? "in the keyring" : ""],
  ];
  return html`<dl class="facts">
      ${facts.filter(([, value]) => value).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>
    ${tokens.jwt ? token(tokens.jwt) : nothing}`;
}

/** @param {FormDataEntryValue | null} text */
function words(text) {
  return String(text ?? "").split(/\s+/).filter(Boolean);
}

/**
 * @param {Context} context
 * @param {string[]} needed
 * @param {boolean} disabled
 */
function stepUpForm(context, needed, disabled) {
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
    void act(context, "step-up", { scopes: words(data.get("scopes")) });
  };
  return html`<form @submit=${submit}>
    <label><span>Further scopes, separated by blanks</span>
      <input name="scopes" autocomplete="off" spellcheck="false" .value=${needed.join(" ")}></label>
    <button type="submit" ?disabled=${disabled}>Step up</button>
  </form>`;
}

/**
 * @param {Context} context
 * @param {any} run
 * @param {boolean} isIdle
 */
function settingsView(context, run, isIdle) {
  const { settings, hasSecret } = run;
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const text = (/** @type {string} */ name) => String(data.get(name) ?? "").trim();
    const secret = text("clientSecret");
    void act(context, "settings", {
      clientId: text("clientId"),
      ...(secret ? { clientSecret: secret } : {}),
      scopes: words(data.get("scopes")),
      resource: text("resource"),
      issuer: text("issuer"),
      assumePkce: data.has("assumePkce"),
      newClient: data.has("newClient"),
      grant: text("grant"),
    });
  };
  /** @type {(name: string, label: string, value: string) => unknown} */
  const field = (name, label, value) => html`<label><span>${label}</span>
    <input name=${name} autocomplete="off" spellcheck="false" .value=${value}></label>`;
  return html`<details>
    <summary>Settings of this run</summary>
    <form class="card" @submit=${submit}>
      <label><span>Grant</span><select name="grant">
        ${GRANTS.map(([value, label]) => html`<option value=${value} ?selected=${value === settings.grant}>${label}</option>`)}
      </select></label>
      ${field("clientId", "Client ID", settings.clientId ?? "")}
      <label><span>Client secret${hasSecret ? " (one is set; empty leaves it)" : ""}</span>
        <input name="clientSecret" type="password" autocomplete="off"></label>
      ${field("scopes", "Scopes, separated by blanks", (settings.scopes ?? []).join(" "))}
      ${field("resource", "Resource, if the server publishes a wrong one (--resource)", settings.resource ?? "")}
      ${field("issuer", "Issuer, if the server names a wrong one (--issuer)", settings.issuer ?? "")}
      <p><label><input type="checkbox" name="assumePkce" .checked=${settings.assumePkce}> Accept an authorization server that does not state S256 (--assume-pkce)</label></p>
      <p><label><input type="checkbox" name="newClient" .checked=${settings.newClient}> Register a new client, also if one is stored</label></p>
      <button type="submit" ?disabled=${!isIdle}>Use these settings</button>
    </form>
  </details>`;
}
