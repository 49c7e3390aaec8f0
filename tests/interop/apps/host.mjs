// A host of MCP Apps in a browser, by the official SDK: it opens a page in a frame, and notes what that sends.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const capabilities = { openLinks: {}, serverTools: {}, logging: {} };

window.openApp = async ({ url, input, result, context }) => {
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.title = "app";
  frame.style.cssText = "display: none; border: 0; width: 600px; height: 10px";
  document.body.replaceChildren(frame);
  const bridge = new AppBridge(null, { name: "host", version: "1" }, capabilities, { hostContext: context });
  const seen = (window.seen = { sizes: [], links: [], messages: [], calls: [], answers: [], failed: [] });
  bridge.onerror = (error) => seen.failed.push(String(error));
  bridge.oncalltool = async (params) => {
    seen.calls.push(params);
    const result = await window.callTool(params.name, params.arguments ?? {});
    seen.answers.push(result);
    return result;
  };
  bridge.onopenlink = async ({ url }) => (seen.links.push(url), {});
  bridge.onmessage = async (params) => (seen.messages.push(params), {});
  bridge.onsizechange = ({ height }) => {
    seen.sizes.push(height);
    frame.style.height = `${height}px`;
  };
  bridge.oninitialized = async () => {
    seen.app = bridge.getAppVersion();
    frame.style.display = "block"; // a page without a handshake stays hidden
    if (input) await bridge.sendToolInput({ arguments: input });
    if (result) await bridge.sendToolResult(result);
  };
  window.bridge = bridge;
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.src = url;
};
