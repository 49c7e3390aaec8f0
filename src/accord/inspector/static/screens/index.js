// @ts-check
/** All screens, in the order of the navigation. A page loads only the modules of the screens that it shows. */

/** @typedef {import("../main.js").Context} Context */

/** @param {Context} context */
function failedRules({ server, topics }) {
  return topics.check?.runs?.find((/** @type {any} */ each) => each.server === server?.name)?.failed ?? 0;
}

/** @param {Context} context */
function openQuestions({ topics }) {
  return topics.questions?.open ?? 0;
}

/** @type {import("../main.js").ScreenEntry[]} */
export const screens = [
  { id: "servers", title: "Servers", open: () => import("./servers.js") },
  { id: "tools", title: "Tools", open: () => import("./tools.js") },
  { id: "resources", title: "Resources", open: () => import("./resources.js") },
  { id: "prompts", title: "Prompts", open: () => import("./prompts.js") },
  { id: "questions", title: "Server requests", open: () => import("./questions.js"), badge: openQuestions },
  { id: "timeline", title: "Timeline", open: () => import("./timeline.js") },
  { id: "notifications", title: "Notifications", open: () => import("./notifications.js") },
  { id: "raw", title: "Raw requests", open: () => import("./raw.js") },
  { id: "conformance", title: "Conformance", open: () => import("./conformance.js"), badge: failedRules },
  { id: "model", title: "Model view", open: () => import("./model_view.js") },
  { id: "apps", title: "Apps", open: () => import("./apps.js") },
  { id: "authorization", title: "Authorization", open: () => import("./authorization.js") },
  { id: "sessions", title: "Sessions", open: () => import("./sessions.js") },
  { id: "compare", title: "Comparison", open: () => import("./compare.js") },
];
