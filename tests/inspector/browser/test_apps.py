"""Apps: they get input and result, reach only their own server, and change nothing without the user."""

from __future__ import annotations

import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from playwright.async_api import Frame, Page, expect

from tests.inspector.browser.browser import stop_clock
from tests.inspector.browser.conftest import Inspect, OpenPage, ProblemsOfTest

BLOCKED = r"Content Security Policy|Unsafe attempt|Failed to navigate|sandboxed|another host: .*evil|Failed to load"


@pytest.fixture(scope="module")
def inspected() -> tuple[str, ...]:
    return ("tests/inspector/browser/app_server.py",)


async def open_app(page: Page) -> None:
    await page.goto("#/apps/app_server.py")
    await page.reload()  # without the app that another test opened
    await page.get_by_role("button", name="Call the tool and open its app").click()


OpenOwnApp = Callable[[], Coroutine[Any, Any, Page]]


@pytest.fixture
def open_own_app(
    inspect: Inspect, open_page: OpenPage, inspected: tuple[str, ...], problems: ProblemsOfTest
) -> OpenOwnApp:
    """Open the app in a page that no other test uses, and wait until it has asked its host."""

    async def open_own() -> Page:
        page = await open_page((await inspect(*inspected)).link)
        problems.expect(BLOCKED)
        await expect(page.get_by_role("link", name="clock")).to_be_visible()
        await open_app(page)
        await expect(page.frame_locator("iframe").locator("output")).to_contain_text("origin null")
        return page

    return open_own


async def frame_of(page: Page) -> Frame:
    """Return the frame of the app that is open."""
    frame = await (await page.locator("iframe").element_handle()).content_frame()
    assert frame is not None
    return frame


async def test_an_app_gets_its_data_and_nothing_else(page: Page, problems: ProblemsOfTest) -> None:
    problems.expect(BLOCKED)
    await page.goto("#/apps/app_server.py")
    await page.get_by_role("textbox").first.fill('{"zone": "Oslo"}')
    await page.get_by_role("button", name="Call the tool and open its app").click()
    output = page.frame_locator("iframe").locator("output")
    await expect(output).to_contain_text("origin null")
    for text in (
        "tool clock",
        'input {"zone":"Oslo"}',
        "result noon in Oslo",
        "now noon",
        "model_only apps cannot call 'model_only'",
        "storage refused",
        "parent refused",
        "top refused",
        "127.0.0.1 refused",
        "localhost refused",
    ):
        await expect(output).to_contain_text(text)
    assert await page.locator("iframe").get_attribute("height") == "300"
    await expect(page.get_by_text("Ignored, because they are not origins")).to_contain_text("'unsafe-eval'")
    await page.get_by_role("button", name="Show what it blocked").click()
    await expect(page.get_by_text("connect-src: http://127.0.0.1")).to_be_visible()


@pytest.mark.parametrize(("button", "outcome"), [("Decline", "the user declined"), ("Approve this call", "to 1.5")])
async def test_the_user_approves_a_call_that_may_change_something(
    page: Page, problems: ProblemsOfTest, button: str, outcome: str
) -> None:
    problems.expect(BLOCKED)
    await open_app(page)
    frame = page.frame_locator("iframe")
    await expect(frame.locator("output")).to_contain_text("origin null")
    await frame.get_by_role("button", name="Change").click()
    dialog = page.get_by_role("alertdialog")
    await expect(dialog).to_contain_text("the app wants to call change")
    await expect(dialog).to_contain_text('{"to":1.5}')
    await dialog.get_by_role("button", name=button).click()
    await expect(frame.locator("output")).to_contain_text(f"change {outcome}" if button == "Decline" else outcome)


async def test_an_app_cannot_exchange_the_call_that_the_user_approves(open_own_app: OpenOwnApp) -> None:
    page = await open_own_app()
    frame = page.frame_locator("iframe")
    await stop_clock(page)
    async with page.expect_response("**/apps/call"):
        await (await frame_of(page)).evaluate(ASK, 1)
    await (await frame_of(page)).evaluate(ASK, 2)
    await expect(frame.locator("output")).to_contain_text("2 another call waits for the user")
    await page.clock.run_for(400)
    dialog = page.get_by_role("alertdialog")
    await expect(dialog).to_contain_text('{"to":1}')
    approve = dialog.get_by_role("button", name="Approve this call")
    await expect(approve).to_be_disabled()
    await page.clock.run_for(1_000)
    await approve.click()
    await expect(frame.locator("output")).to_contain_text("1 changed to 1")


ASK = """(to) => {
  void ask("tools/call", { name: "change", arguments: { to } })
    .then((result) => show(`${to} ${result.failed ?? result.content[0].text}`));
}"""


async def test_an_app_does_not_call_the_tool_of_the_user_again(page: Page, problems: ProblemsOfTest) -> None:
    problems.expect(BLOCKED)
    await open_app(page)
    output = page.frame_locator("iframe").locator("output")
    await expect(output).to_contain_text("origin null")
    called: list[str] = []
    page.on("request", lambda request: called.append(request.url) if request.url.endswith("apps/call") else None)
    await (await frame_of(page)).evaluate(AGAIN)
    await expect(output).to_contain_text("answered")
    assert called == []


AGAIN = """async () => {
  for (let at = 0; at < 20; at += 1) send({ method: "ui/notifications/initialized" });
  await ask("ping");
  show("answered");
}"""


async def test_an_app_cannot_disguise_what_the_user_approves(page: Page, problems: ProblemsOfTest) -> None:
    problems.expect(BLOCKED)
    await open_app(page)
    await expect(page.frame_locator("iframe").locator("output")).to_contain_text("origin null")
    await (await frame_of(page)).evaluate(DISGUISE)
    dialog = page.get_by_role("alertdialog")
    await expect(dialog).to_contain_text('{"to":"\\u202e1\\u200b"}')
    await dialog.get_by_role("button", name="Decline").click()
    await expect(page.get_by_role("list", name="Messages of the app")).to_contain_text("not JSON")


DISGUISE = """() => {
  const cycle = { to: 1n };
  cycle.self = cycle;
  send({ method: "notifications/message", params: cycle });
  void ask("tools/call", { name: "change", arguments: { to: "\u202e1\u200b" } });
}"""


async def test_an_app_that_does_not_answer_its_end_is_closed_by_the_user(open_own_app: OpenOwnApp) -> None:
    page = await open_own_app()
    await stop_clock(page)  # the wait for the answer has no end
    await page.get_by_role("button", name="Close", exact=True).click()
    await page.clock.run_for(40)
    await expect(page.locator("iframe")).to_have_count(1)
    await page.get_by_role("button", name="Close now").click()
    await page.clock.run_for(40)
    await expect(page.locator("iframe")).to_have_count(0)


async def test_an_app_never_has_the_frame_of_the_last_one(open_own_app: OpenOwnApp) -> None:
    page = await open_own_app()
    last = await page.locator("iframe").element_handle()
    await stop_clock(page)  # nothing is drawn until the new app is there
    async with page.expect_response("**/api/apps/open"):
        await page.get_by_role("button", name="Call the tool and open its app").click()
    await page.wait_for_function(OPENED, polling=100)
    await page.clock.run_for(40)
    await expect(page.frame_locator("iframe").locator("output")).to_contain_text("origin null")
    assert not await last.evaluate("(frame) => frame.isConnected")


OPENED = "() => document.getElementById('announcements').textContent.includes('is open')"


async def test_a_flood_of_an_app_is_not_answered(page: Page, problems: ProblemsOfTest) -> None:
    problems.expect(BLOCKED)
    await open_app(page)
    await expect(page.frame_locator("iframe").locator("output")).to_contain_text("origin null")
    count, milliseconds = await (await frame_of(page)).evaluate(FLOOD)
    assert count <= 200 * (2 + milliseconds / 1_000)  # 200 in each second
    await expect(page.get_by_text("Messages of the app: 200")).to_be_visible()


FLOOD = """async () => {
  let count = 0;
  const begun = performance.now();
  for (let at = 0; at < 2000; at += 1) void ask("ping", { at }).then(() => { count += 1; });
  for (let isAnswered = false; !isAnswered;) {
    void ask("ping").then(() => { isAnswered = true; });
    await new Promise((resolve) => setTimeout(resolve, 1200));
  }
  return [count, performance.now() - begun];
}"""


async def test_messages_of_an_app_take_half_of_the_time_of_the_page_at_most(open_own_app: OpenOwnApp) -> None:
    """Some values take much longer than others of as many characters: an app held up the page for seconds on end."""
    page = await open_own_app()
    await page.evaluate(JSON_TAKES_LONG)
    frame = await frame_of(page)
    await frame.evaluate(PING_5_TIMES)
    await page.wait_for_function("() => received === 5")
    await page.evaluate("() => { now += 2000; }")
    await frame.evaluate("() => ask('ping')")
    assert await frame.evaluate("() => answers") <= 2  # of which one uses the time of the second before


PING_5_TIMES = """() => {
  window.answers = 0;
  for (let at = 0; at < 5; at += 1) void ask("ping").then(() => { window.answers += 1; });
}"""
JSON_TAKES_LONG = """() => {
  window.now = performance.now();
  window.received = 0;
  performance.now = () => window.now;
  addEventListener("message", () => { window.received += 1; });
  const stringify = JSON.stringify;
  JSON.stringify = function (...given) {
    if (given.length > 1) window.now += 700;
    return stringify.apply(this, given);
  };
}"""


async def test_an_app_that_waits_for_its_answers_loses_none(open_own_app: OpenOwnApp) -> None:
    """On a slow page, a few tables took half of its time: the next one had no answer, and the app waited forever."""
    page = await open_own_app()
    await page.evaluate(JSON_TAKES_LONG)
    await page.evaluate(TIMERS_MOVE_THE_CLOCK)
    frame = await frame_of(page)
    await frame.evaluate(PING_IN_TURN)
    await frame.wait_for_function("() => answers === 5")


PING_IN_TURN = """() => {
  window.answers = 0;
  void (async () => {
    for (let at = 0; at < 5; at += 1) {
      await ask("ping");
      window.answers += 1;
    }
  })();
}"""
TIMERS_MOVE_THE_CLOCK = """() => {
  const later = window.setTimeout;
  window.setTimeout = (work, milliseconds = 0, ...given) => later(() => {
    window.now += Math.max(0, milliseconds);
    work(...given);
  });
}"""


@pytest.mark.parametrize("sender", ["parent", "top"], ids=["the app", "a frame in the app"])
async def test_an_app_that_leaves_no_time_for_the_page_is_closed(open_own_app: OpenOwnApp, sender: str) -> None:
    """Ignored messages take time too: the user could not close an app that never stopped."""
    page = await open_own_app()
    await page.evaluate(NO_TIMER_RUNS)
    await (await frame_of(page)).evaluate(MANY[sender])
    await expect(page.locator("iframe")).to_have_count(0)
    await expect(page.get_by_role("strong").filter(has_text="the app was closed: it sent more")).to_be_visible()


async def test_an_app_that_leaves_little_time_for_the_page_is_closed(open_own_app: OpenOwnApp) -> None:
    """Between thousands of messages, a browser runs one of the timers that are due: the page seemed to have time."""
    page = await open_own_app()
    await page.evaluate(FEW_TIMERS_RUN)
    await page.get_by_role("button", name="Call the tool and open its app").click()
    await page.wait_for_function("() => window.tick")
    await expect(page.frame_locator("iframe").locator("output")).to_contain_text("origin null")
    await (await frame_of(page)).evaluate(
        "() => { for (let at = 0; at < 3000; at += 1) send({ method: 'ui/message' }); }"
    )
    await expect(page.locator("iframe")).to_have_count(0)
    await expect(page.get_by_role("strong").filter(has_text="the app was closed: it sent more")).to_be_visible()


FEW_TIMERS_RUN = """() => {
  let now = performance.now();
  performance.now = () => now;
  window.setInterval = (work) => { window.tick = work; };
  addEventListener("message", () => {
    now += 2;
    if (now % 4000 < 2) window.tick?.();
  });
}"""


async def test_the_user_closes_an_app_before_the_page_is_drawn(open_own_app: OpenOwnApp) -> None:
    """While an app sends messages without a pause, the page is not drawn: the app went on after it was closed."""
    page = await open_own_app()
    frame = await page.locator("iframe").element_handle()
    close = await page.get_by_role("button", name="Close", exact=True).element_handle()
    await stop_clock(page)
    for _ in range(2):  # "Close", and "Close now", which is not drawn
        await close.dispatch_event("click")
    assert not await frame.evaluate("(frame) => frame.isConnected")
    await page.clock.run_for(40)
    await expect(page.get_by_role("button", name="Close")).to_have_count(0)


@pytest.mark.parametrize("is_hidden", [False, True], ids=["a long task", "a hidden page"])
async def test_an_app_is_not_to_blame_for_messages_that_waited(open_own_app: OpenOwnApp, is_hidden: bool) -> None:
    """After a dialog, or a time in the background, what it had sent arrived before the first timer: it was closed."""
    page = await open_own_app()
    await page.evaluate(NO_TIMER_RUNS if is_hidden else TIME_HAS_PASSED)
    await page.evaluate("() => { window.received = 0; addEventListener('message', () => { window.received += 1; }); }")
    await page.evaluate(
        f"Object.defineProperty(document, 'hidden', {{ value: {str(is_hidden).lower()}, writable: true }})"
    )
    await (await frame_of(page)).evaluate(MANY["parent"])
    await page.evaluate(RECEIVED, 1500)
    await page.evaluate("() => { document.hidden = false; }")
    await (await frame_of(page)).evaluate("() => send({ method: 'ui/message' })")
    await page.evaluate(RECEIVED, 1501)
    await expect(page.locator("iframe")).to_have_count(1)


NO_TIMER_RUNS = """() => {
  for (let timer = setInterval(() => {}, 1000); timer > 0; timer -= 1) clearInterval(timer);
  let now = performance.now();
  performance.now = () => (now += 10);
}"""
RECEIVED = """async (count) => {
  while (window.received < count && document.querySelector("iframe")) await new Promise(requestAnimationFrame);
}"""
TIME_HAS_PASSED = """() => {
  for (let timer = setInterval(() => {}, 1000); timer > 0; timer -= 1) clearInterval(timer);
  const now = performance.now.bind(performance);
  performance.now = () => now() + 10_000;
}"""
MANY = {
    "parent": "() => { for (let at = 0; at < 1500; at += 1) send({ method: 'ui/message' }); }",
    "top": """() => {
      const frame = document.createElement("iframe");
      frame.srcdoc = "<script>for (let at = 0; at < 1500; at += 1) top.postMessage(at, '*');</script>";
      document.body.append(frame);
    }""",
}


async def test_long_messages_of_an_app_do_not_hold_up_the_page(open_own_app: OpenOwnApp) -> None:
    """The page escaped all of a message, and showed 500 characters: one app stopped it for half a minute."""
    page = await open_own_app()
    await page.evaluate(COUNT_REPLACED)
    await (await frame_of(page)).evaluate("() => ask('ui/message', { text: '\u202e'.repeat(1_000_000) })")
    assert await page.evaluate("replaced") < 100_000
    frame = await frame_of(page)
    refused = await frame.evaluate(
        "() => ask('tools/call', { name: 'change', arguments: { to: 'a'.repeat(300_000) } })"
    )
    assert refused["failed"] == "the arguments are too long to be shown to the user"


async def test_a_message_that_is_too_long_is_copied_and_no_more(open_own_app: OpenOwnApp) -> None:
    """Its JSON was made, shown in part, and sent to the inspector, which refused it."""
    page = await open_own_app()
    await page.evaluate(COUNT_JSON)
    await (await frame_of(page)).evaluate("() => void ask('tools/call', { name: 'a'.repeat(30_000_000) })")
    await expect(page.get_by_text("not JSON, or too long")).to_be_visible()
    assert await page.evaluate("characters") < 1_000_000


COUNT_JSON = """() => {
  window.characters = 0;
  const stringify = JSON.stringify;
  JSON.stringify = function (...given) {
    const json = stringify.apply(this, given);
    window.characters += json?.length ?? 0;
    return json;
  };
}"""


COUNT_REPLACED = """() => {
  window.replaced = 0;
  const replace = String.prototype.replace;
  String.prototype.replace = function (...given) {
    window.replaced += this.length;
    return replace.apply(this, given);
  };
}"""


@pytest.mark.parametrize("name", ["text", "values"])
async def test_an_app_is_not_answered_for_a_while_after_very_long_messages(open_own_app: OpenOwnApp, name: str) -> None:
    page = await open_own_app()
    await stop_clock(page)
    await page.clock.run_for(2_000)
    output = page.frame_locator("iframe").locator("output")
    await page.evaluate(RECEIVE)
    await (await frame_of(page)).evaluate(VERY_LONG[name])
    await page.evaluate("() => received")
    await page.clock.run_for(1_500)
    await (await frame_of(page)).evaluate("() => void ask('ping').then(() => show('early'))")
    await page.clock.run_for(2_000)
    await (await frame_of(page)).evaluate("() => void ask('ping').then(() => show('later'))")
    await expect(output).to_contain_text("later")
    await expect(output).not_to_contain_text("early")


RECEIVE = """() => {
  window.received = new Promise((resolve) => addEventListener("message", () => resolve(true), { once: true }));
}"""

VERY_LONG = {
    "text": "() => send({ method: 'ui/message', params: { text: 'a'.repeat(60_000_000) } })",
    "values": "() => send({ params: new Map(Array.from({ length: 750_000 }, (_, at) => [at, at])) })",
}


@pytest.mark.parametrize("params", ["{ name: 'now', arguments: value }", "{ name: value }", "value"])
async def test_a_short_message_with_very_long_json_does_not_hold_up_the_page(
    open_own_app: OpenOwnApp, params: str
) -> None:
    """What occurs several times in a message is sent once: in JSON, these 40 arrays have a trillion."""
    page = await open_own_app()
    refused = await (await frame_of(page)).evaluate(f"""() => {{
      let value = [];
      for (let at = 0; at < 40; at += 1) value = [value, value];
      return ask("tools/call", {params});
    }}""")
    assert "failed" in refused


async def test_calls_that_are_not_answered_leave_connections_for_the_page(open_own_app: OpenOwnApp) -> None:
    """A browser has six connections per origin: some calls of an app stopped every command of the page."""
    page = await open_own_app()
    await (await frame_of(page)).evaluate(NEVER)
    refused = await (await frame_of(page)).evaluate("() => ask('tools/call', { name: 'never' })")
    assert refused["failed"] == "too many requests of the app wait for its server"
    assert await page.evaluate(LIST_SERVERS) == ["app_server.py"]


NEVER = "() => { for (let at = 0; at < 60; at += 1) void ask('tools/call', { name: 'never' }); }"
LIST_SERVERS = """async () => {
  const { send } = await import("./connection.js");
  return (await send("servers/list")).servers.map(({ name }) => name);
}"""


async def test_a_new_command_ends_old_ones_that_wait_for_a_server(open_own_app: OpenOwnApp) -> None:
    page = await open_own_app()
    await stop_clock(page)
    await page.evaluate(SEND_MANY, (await frame_of(page)).url.rpartition("/")[2])
    await page.clock.run_for(6_000)
    assert await page.evaluate(LIST_SERVERS) == ["app_server.py"]
    errors = await page.evaluate("errors")
    assert len(errors) >= 4
    assert set(errors) == {"apps/call was not answered for some seconds, and other commands wait"}


SEND_MANY = """async (app) => {
  const { send } = await import("./connection.js");
  window.errors = [];
  for (let at = 0; at < 8; at += 1)
    send("apps/call", { app, name: "never" }).catch(({ error }) => window.errors.push(error));
}"""


async def test_an_id_that_cannot_be_sent_back_is_no_error_of_the_page(open_own_app: OpenOwnApp) -> None:
    page = await open_own_app()
    await (await frame_of(page)).evaluate(PORT_AS_ID)
    await expect(page.frame_locator("iframe").locator("output")).to_contain_text("answered")


PORT_AS_ID = """async () => {
  const { port1 } = new MessageChannel();
  parent.postMessage({ jsonrpc: "2.0", id: port1, method: "ping" }, "*", [port1]);
  await ask("ping");
  show("answered");
}"""


async def test_no_connection_of_an_app_leaves_its_policy(open_own_app: OpenOwnApp) -> None:
    """WebRTC is not bounded by a policy."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.setblocking(False)
        page = await open_own_app()
        await (await frame_of(page)).evaluate(LEAK, listener.getsockname()[1])
        with pytest.raises(BlockingIOError):
            listener.recv(2_000)


LEAK = """async (port) => {
  const connection = new RTCPeerConnection({ iceServers: [{ urls: `stun:127.0.0.1:${port}` }] });
  connection.createDataChannel("leak");
  const gathered = new Promise((resolve) => {
    connection.onicegatheringstatechange = () => connection.iceGatheringState === "complete" && resolve();
  });
  await connection.setLocalDescription(await connection.createOffer());
  await gathered;
}"""
