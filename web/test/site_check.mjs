// Opens the site that scripts/site has built in Chromium, as a visitor does: the pages load without errors, the report in
// the tour draws its timeline and tells causes, and nothing is asked of another host.
//
// usage: node web/test/site_check.mjs [SITE [PICTURE.png]]     (out/site; the picture is of the tour)

import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

import { close, launch } from "./browsers.mjs";
import { LIMIT_MS, settled, within } from "./waiting.mjs";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const VISITED = ["index.html", "docs/install.html", "docs/commands.html", "ARCHITECTURE.html"];

const root = join(import.meta.dirname, "..", "..");
const [site = join(root, "out/site"), picture] = process.argv.slice(2);
if (!existsSync(join(site, "docs/tour.html"))) {
  console.error(`${site} holds no site: ./scripts/site builds it`);
  process.exit(1);
}

/** A server of the site's files, below a directory, as most hosts have it. */
async function serve() {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://site").pathname);
    const file = join(site, normalize(path).replace(/^\/tracebridge\//, ""));
    if (!file.startsWith(site) || !existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });
  await within("the server listens", new Promise((done) => server.listen(0, "127.0.0.1", done)));
  return server;
}

/** In the report: how many colours the largest canvas has. One that nothing was drawn on has one. */
function coloursOfCanvas() {
  const canvases = [...document.querySelectorAll("canvas")].sort((a, b) => b.width * b.height - a.width * a.height);
  const copy = new OffscreenCanvas(canvases[0].width, canvases[0].height).getContext("2d");
  copy.drawImage(canvases[0], 0, 0);
  const { data } = copy.getImageData(0, 0, canvases[0].width, canvases[0].height);
  return new Set(new Uint32Array(data.buffer)).size;
}

const server = await serve();
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await launch();
const problems = [];
const page = await browser.newPage();
page.setDefaultTimeout(LIMIT_MS);
await page.setViewport({ width: 1440, height: 1000 });
page.on("console", (message) => {
  if (message.type() === "error") problems.push(`console: ${message.text()}`);
});
page.on("pageerror", (error) => problems.push(`uncaught: ${error.message}`));
page.on("request", (request) => {
  const url = request.url();
  if (![`${origin}/`, "data:", "blob:"].some((start) => url.startsWith(start))) problems.push(`asked for ${url}`);
});
page.on("response", (response) => {
  if (response.status() >= 400) problems.push(`${response.status()}: ${response.url()}`);
});
for (const name of VISITED) await page.goto(`${origin}/tracebridge/${name}`, { waitUntil: "load" });

await page.goto(`${origin}/tracebridge/docs/tour.html`, { waitUntil: "load" });
const iframe = await page.waitForSelector("iframe.report");
const report = await iframe.contentFrame();
await report.waitForSelector(".panels, .failed");
await settled(report);
const colours = await report.evaluate(coloursOfCanvas);
if (colours < 10) problems.push(`the timeline has ${colours} colours: nothing is drawn`);
// The wheel over the timeline, with the key that zooms in place of scrolling.
const before = await report.evaluate(() => location.hash);
const box = await iframe.boundingBox();
await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
await page.keyboard.down("Control");
await page.mouse.wheel({ deltaY: -400 });
await page.keyboard.up("Control");
await report
  .waitForFunction((before) => location.hash !== before, { timeout: LIMIT_MS }, before)
  .catch(() => {
    problems.push("the timeline does not zoom");
  });
if (picture) await page.screenshot({ path: picture });
await report.evaluate(() => {
  [...document.querySelectorAll("button, [role=tab]")].find(({ textContent }) => textContent.trim() === "Why")?.click();
});
await settled(report);
const causes = await report.evaluate(() => document.querySelector(".why")?.innerText ?? "");
if (!/\d+ %/.test(causes)) problems.push(`the tab Why tells no causes: ${causes.slice(0, 200)}`);
await close(browser);
server.close();
if (problems.length > 0) throw new Error(`${site}: ${problems.join("\n")}`);
console.log(
  `${site}: the report draws ${colours} colours, and its first cause is: ${causes.split("\n").slice(0, 6).join(" | ")}`,
);
