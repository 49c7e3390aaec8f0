// A page with the official SDK: it shows its input and result, and calls a tool.
import { App } from "@modelcontextprotocol/ext-apps";

const show = (text) => document.querySelector("output").append(`${text}; `);
const app = new App({ name: "official", version: "1" });
app.ontoolinput = ({ arguments: input }) => show(`input ${input.year}`);
app.ontoolresult = ({ content }) => show(`result ${content[0].text}`);
await app.connect();
show(`theme ${app.getHostContext().theme}`);
const { structuredContent } = await app.callServerTool({ name: "refresh", arguments: { year: 7 } });
show(`call ${JSON.stringify(structuredContent)}`);
