// Pages that are too large to open at once: what they say while the browser reads them, and before they are opened.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { writeFixture } from "./fixture.mjs";
import { browserTest, openPage, scratch, settled, texts } from "./harness.mjs";
import { LIMIT_MS } from "./waiting.mjs";

const FILE = join(scratch(), "tasks.html");
writeFixture("tasks", FILE);
const HTML = readFileSync(FILE, "utf8");

browserTest("chromium", "a page that holds too much says what to cut, and opens all the same", async (browser) => {
  const lowered = () => (window.__tracebridgeMaxBytes = 1e6);
  const { page, problems } = await openPage(browser, FILE, { before: lowered, wait: ".too-large" }).catch(async () => {
    assert.fail("the page does not ask");
  });
  const [said] = await texts(page, ".too-large [role=alert]");
  assert.match(said, /^This page holds 30,000 method calls and [\d,]+ other events in 3\.000 s\./);
  const [command] = await texts(page, ".too-large code");
  const [, from, to] = /^tracebridge report launch\.dat --from ([\d.]+)s --to ([\d.]+)s -o part\.html$/.exec(command);
  assert.ok(Number(from) < Number(to) && Number(to) <= 3, command);
  assert.ok((await texts(page, ".too-large li")).some((line) => line.startsWith("com.example.app (1000): ")));
  await page.click(".too-large button");
  await page.waitForSelector(".panels");
  await settled(page);
  assert.ok((await page.evaluate(() => window.__tracebridge.timeline.rows().length)) > 10);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "while a large page is read it says how to make a smaller one", async (browser) => {
  const at = HTML.indexOf('<script type="application/json" id="tracebridge-directory">');
  assert.ok(at > 0);
  let finish = null;
  const server = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html; charset=utf-8");
    answer.write(HTML.slice(0, at));
    // Comments that are no blocks: as much as a large page has.
    for (let n = 0; n < 45; n++) answer.write(`<!--${"x".repeat(1e6)}-->\n`);
    finish = () => answer.end(HTML.slice(at));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  try {
    const page = await browser.newPage();
    const loaded = page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.waitForFunction(
      () =>
        /^This page is large: 4\d MB are read so far\. .* --from 2s --to 4s -o part\.html$/.test(
          document.querySelector(".opening")?.textContent ?? "",
        ),
      { timeout: LIMIT_MS },
    );
    finish();
    await loaded;
    await page.waitForSelector(".panels");
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
