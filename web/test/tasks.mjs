// Fifteen tasks of people who look into a trace, each done with the mouse and with the keyboard alone. tasks.test.mjs
// checks their answers and counts the clicks; task_seconds.mjs measures how long the page takes to answer.

import assert from "node:assert/strict";

import { gridRows } from "./pages.mjs";
import { settled } from "./waiting.mjs";

/** More presses of the Tab key lead through the whole page, several times. */
const MAX_TABS = 600;

/** The page's state, and what its timeline tells tests. */
export class Look {
  constructor(page) {
    this.page = page;
  }

  state(member) {
    return this.page.evaluate((member) => window.__tracebridge.timeline.store.state[member], member);
  }

  /** Track and item of the first slice of the launched main thread whose name begins so. */
  slice(name) {
    return this.page.evaluate((name) => {
      const { trace } = window.__tracebridge.timeline.store.state;
      const { thread } = trace.index.launches[0];
      const track = trace.tracks.find((one) => one.thread === thread && one.role === "atrace");
      const item = track.spans.label.findIndex((id) => trace.strings[id].startsWith(name));
      return { kind: "span", track: track.id, item, from: track.spans.start[item], to: track.spans.end[item] };
    }, name);
  }

  /** The first row's texts. */
  async first(label) {
    const rows = await this.page.$$eval(`.grid[aria-label^="${label}"] .grid-row`, (all) =>
      all.map((row) => [...row.querySelectorAll(".text")].map((cell) => cell.textContent)),
    );
    assert.ok(rows.length > 0, `${label} has rows`);
    return rows[0];
  }

  rows() {
    return gridRows(this.page);
  }

  line() {
    return this.page.$eval(".window-line", (line) => line.textContent);
  }
}

/** Uses the page with the mouse; counts the clicks. A drag is a click. */
export class Mouse extends Look {
  clicks = 0;

  async at(x, y) {
    this.clicks++;
    await this.page.mouse.click(x, y);
    await settled(this.page);
  }

  /** Clicks what is seen of the first element that matches, and has the text. */
  async on(selector, text = "") {
    const place = await this.page.evaluate(
      (selector, text) => {
        const found = [...document.querySelectorAll(selector)].find((one) => one.textContent.trim().startsWith(text));
        if (!found) return null;
        found.scrollIntoView({ block: "nearest" });
        const { x, y, width, height } = found.getBoundingClientRect();
        const at = { x: x + Math.min(width / 2, 60), y: y + height / 2 };
        return found.contains(document.elementFromPoint(at.x, at.y)) ? at : null;
      },
      selector,
      text,
    );
    assert.ok(place, `${selector} "${text}" can be clicked`);
    await this.at(place.x, place.y);
  }

  tab(name) {
    return this.on("[role=tab]", name);
  }

  question(title) {
    return this.on(".questions button", title);
  }

  /** Clicks an item of the timeline. */
  async item(selection) {
    const box = await this.page.evaluate((selection) => window.__tracebridge.timeline.box(selection), selection);
    assert.ok(box, "the item is in view");
    await this.at(box.x + box.width / 2, box.y + box.height / 2);
  }

  /** Drags over a part of the timeline's width with Shift, which chooses a period. */
  async period(from, to) {
    this.clicks++;
    const plot = await this.page.$eval(".tl-plot", (element) => element.getBoundingClientRect().toJSON());
    const { keyboard, mouse } = this.page;
    await keyboard.down("Shift");
    await mouse.move(plot.x + from * plot.width, plot.y + 40);
    await mouse.down();
    await mouse.move(plot.x + to * plot.width, plot.y + 44, { steps: 4 });
    await mouse.up();
    await keyboard.up("Shift");
    await settled(this.page);
  }

  /** Types into the search field, and waits for its answer. */
  async search(text) {
    await this.page.keyboard.type(text);
    await this.page.waitForFunction(() => document.querySelector(".search .count").textContent !== "");
    await settled(this.page);
  }
}

/** Uses the page with the keyboard alone. */
export class Keys extends Look {
  presses = 0;

  async press(...keys) {
    for (const key of keys) {
      this.presses++;
      await this.page.keyboard.press(key);
    }
    await settled(this.page);
  }

  /** Presses Tab until what has the focus matches, and begins with the text. */
  async tabTo(selector, text = "") {
    for (let n = 0; n < MAX_TABS; n++) {
      const isThere = await this.page.evaluate(
        (selector, text) =>
          document.activeElement.matches(selector) && document.activeElement.textContent.trim().startsWith(text),
        selector,
        text,
      );
      if (isThere) return;
      this.presses++;
      await this.page.keyboard.press("Tab");
    }
    assert.fail(`the Tab key does not lead to ${selector} "${text}"`);
  }

  /** Goes to a tab by its number, as the help says. */
  async tab(name) {
    const names = await this.page.$$eval("[role=tab]", (tabs) => tabs.map((tab) => tab.textContent));
    const at = names.findIndex((one) => one.startsWith(name));
    assert.ok(at >= 0, name);
    await this.press(String(at + 1));
  }

  async question(title) {
    await this.tabTo(".questions button", title);
    await this.press("Enter");
  }

  async firstRow(label) {
    await this.tabTo(`.grid[aria-label^="${label}"]`);
    await this.press("Home", "Enter");
  }

  async button(selector, text) {
    await this.tabTo(selector, text);
    await this.press("Enter");
  }

  /** Selects the first match of a search. */
  async find(text) {
    await this.press("/");
    await this.page.keyboard.type(text);
    await settled(this.page);
    // The first Enter takes the text over where the search rests still.
    await this.press("Enter");
    if ((await this.state("selection")) === null) await this.press("Enter");
  }
}

/** The item that a selection is: its track's kind, its times, its name. */
function chosen(look) {
  return look.page.evaluate(() => {
    const { selection, trace } = window.__tracebridge.timeline.store.state;
    if (!selection || !("track" in selection)) return null;
    const track = trace.tracks[selection.track];
    const { spans, states } = track;
    const { start, end } = spans ?? states;
    const name = spans ? trace.spanName(track, selection.item) : trace.strings[states.state[selection.item]];
    return { role: track.role, thread: track.thread, from: start[selection.item], to: end[selection.item], name };
  });
}

/** The longest wait of a cause on any thread: its begin. */
function longestWait(look, cause) {
  return look.page.evaluate((cause) => {
    const { trace } = window.__tracebridge.timeline.store.state;
    let longest = null;
    for (const { thread, causes } of trace.tracks) {
      if (!causes) continue;
      causes.cause.forEach((id, i) => {
        const ns = causes.end[i] - causes.start[i];
        // A wait for a lock is one that the runtime's marker names, and not that of a worker without work.
        const isNamed = cause !== "lock" || trace.strings[causes.subject[i] - 1]?.includes("contention");
        if (trace.strings[id] === cause && isNamed && (!longest || ns > longest.ns))
          longest = { ns, thread, from: causes.start[i] };
      });
    }
    // Where no cause names a marker of the runtime, the markers themselves are listed.
    for (const track of cause === "lock" && !longest ? trace.tracks : []) {
      if (track.kind !== "slices" || !track.spans) continue;
      const { start, end } = track.spans;
      start.forEach((from, i) => {
        const ns = end[i] - from;
        if (trace.spanName(track, i).includes("contention") && (!longest || ns > longest.ns))
          longest = { ns, thread: track.thread, from };
      });
    }
    return longest;
  }, cause);
}

const isMain = (look) =>
  look.page.evaluate(() => {
    const { selection, trace } = window.__tracebridge.timeline.store.state;
    return trace.tracks[selection.track].thread === trace.index.launches[0].thread;
  });

async function checkWait(look, cause) {
  const [{ from, thread }, wanted] = [await chosen(look), await longestWait(look, cause)];
  assert.deepEqual({ from, thread }, { from: wanted.from, thread: wanted.thread }, `the longest wait: ${cause}`);
}

/**
 * `perfetto` counts the clicks of the same task in ui.perfetto.dev, from its documentation alone: a query of SQL that has
 * to be typed counts as one click, whatever its length. `how` is the way there.
 */
export const TASKS = [
  {
    title: "Find the slowest frame, and what its main thread waited for",
    how: "*Launches and frames*, the first late frame, *Why*",
    perfetto: "6, with a query",
    async mouse(hand) {
      await hand.tab("Launches");
      await hand.on('.grid[aria-label="Late frames"] .grid-row:first-child');
      await hand.on(".details button", "Why");
    },
    async keys(hand) {
      await hand.tab("Launches");
      await hand.firstRow("Late frames");
      await hand.button(".details button", "Why");
    },
    async check(look) {
      const { role } = await chosen(look);
      assert.equal(role, "frames");
      assert.match((await look.first("Causes"))[0], /\w/);
      const text = await look.page.$eval(".panel", (panel) => panel.textContent);
      assert.match(text, /frame of com\.example\.app/);
    },
  },
  {
    title: "Get the method profile of one slice",
    how: "the slice, *Profile it*",
    perfetto: "3",
    async mouse(hand) {
      await hand.item(await hand.slice("bindApplication"));
      await hand.on(".details button", "Profile it");
    },
    async keys(hand) {
      await hand.find("bindApplication");
      await hand.button(".details button", "Profile it");
    },
    async check(look) {
      const { from, to } = await look.slice("bindApplication");
      assert.equal(await look.page.$eval(".window-line", (line) => line.dataset.window), `${from}-${to}`);
      assert.ok((await look.rows()).length > 5);
    },
  },
  {
    title: "Who ran while the main thread was ready",
    how: "*Table*, *Who ran while it was ready*",
    perfetto: "2, with a query",
    async mouse(hand) {
      await hand.tab("Table");
      await hand.question("Who ran while");
    },
    async keys(hand) {
      await hand.tab("Table");
      await hand.question("Who ran while");
    },
    async check(look) {
      assert.match((await look.first("Table by ran meanwhile"))[0], /\(\d+\)$/);
    },
  },
  {
    title: "Compare two launches, and see where the largest difference lies",
    how: "opens with it, a click on the row",
    perfetto: "two windows",
    page: "comparison",
    async mouse(hand) {
      await hand.on('.grid[aria-label="Comparison of stages"] .grid-row:first-child');
    },
    async keys(hand) {
      await hand.firstRow("Comparison of stages");
    },
    async check(look) {
      assert.notEqual(await look.state("selection"), null);
    },
  },
  {
    title: "Find the longest binder call",
    how: "*Table*, *Longest binder calls*, the first row",
    perfetto: "3, with a query",
    async mouse(hand) {
      await hand.tab("Table");
      await hand.question("Longest binder calls");
      await hand.on(".table-panel .grid-row:first-child");
    },
    async keys(hand) {
      await hand.tab("Table");
      await hand.question("Longest binder calls");
      await hand.firstRow("Table");
    },
    check: (look) => checkWait(look, "binder"),
  },
  {
    title: "What woke the main thread, and after how long",
    how: "*Table*, *Who woke the main thread*",
    perfetto: "2, with a query",
    async mouse(hand) {
      await hand.tab("Table");
      await hand.question("Who woke");
    },
    async keys(hand) {
      await hand.tab("Table");
      await hand.question("Who woke");
    },
    async check(look) {
      assert.match((await look.first("Table by woken by"))[0], /\(\d+\)$/);
    },
  },
  {
    title: "The CPU share of each process over a period",
    how: "Shift and drag, *Table*, *CPU by process*",
    perfetto: "2",
    async mouse(hand) {
      await hand.period(0.3, 0.5);
      await hand.tab("Table");
      await hand.question("CPU by process");
    },
    async keys(hand) {
      await hand.find("bindApplication");
      await hand.button(".details button", "Choose period");
      await hand.tab("Table");
      await hand.question("CPU by process");
    },
    async check(look) {
      assert.match(await look.line(), /^Chosen period/);
      const rows = await look.rows();
      const shares = rows.map(({ text }) => Number(text[3]));
      assert.ok(Math.abs(shares.reduce((a, b) => a + b) - 100) < 0.5, shares.join());
    },
  },
  {
    title: "The cause of a slow launch",
    how: "*Why*",
    perfetto: "3, with a query",
    async mouse(hand) {
      await hand.tab("Why");
    },
    async keys(hand) {
      await hand.tab("Why");
    },
    async check(look) {
      assert.match(await look.page.$eval(".panel", (panel) => panel.textContent), /launch of com\.example\.app, cold/);
      assert.match((await look.first("Causes"))[0], /\w/);
    },
  },
  {
    title: "Which methods cost the main thread most CPU",
    how: "opens with it",
    perfetto: "3",
    async mouse() {},
    async keys() {},
    async check(look) {
      assert.ok((await look.rows()).length > 5);
      const sorted = await look.page.$eval(".grid-head [aria-sort]", (head) => head.textContent);
      assert.match(sorted, /^Incl CPU/);
    },
  },
  {
    title: "Find the longest wait for a lock, and whose it was",
    how: "*Table*, *Contended locks*, the first row",
    perfetto: "3, with a query",
    async mouse(hand) {
      await hand.tab("Table");
      await hand.question("Contended locks");
      await hand.on(".table-panel .grid-row:first-child");
    },
    async keys(hand) {
      await hand.tab("Table");
      await hand.question("Contended locks");
      await hand.firstRow("Table");
    },
    check: (look) => checkWait(look, "lock"),
  },
  {
    title: "Find the longest sleep of the main thread",
    how: "*Table*, *Longest waits of the main thread*, the first row",
    perfetto: "3, with a query",
    async mouse(hand) {
      await hand.tab("Table");
      await hand.question("Longest waits of the main");
      await hand.on(".table-panel .grid-row:first-child");
    },
    async keys(hand) {
      await hand.tab("Table");
      await hand.question("Longest waits of the main");
      await hand.firstRow("Table");
    },
    async check(look) {
      const { role, name } = await chosen(look);
      assert.deepEqual([role, await isMain(look)], ["states", true]);
      assert.match(name, /Sleep/);
    },
  },
  {
    title: "How long threads wait for a CPU: 95 % of their waits",
    how: "*Table*, *Time ready, by thread*, *p95*",
    perfetto: "2, with a query",
    async mouse(hand) {
      await hand.tab("Table");
      await hand.question("Time ready");
      await hand.on(".grid-head button", "p95");
    },
    async keys(hand) {
      await hand.tab("Table");
      await hand.question("Time ready");
      await hand.button(".grid-head button", "p95");
    },
    async check(look) {
      assert.match(await look.page.$eval(".grid-head [aria-sort]", (head) => head.textContent), /^p95/);
      assert.match((await look.first("Table by thread"))[0], /\(\d+\)$/);
    },
  },
  {
    title: "Find a slice by its name, and go from one to the next",
    how: "the search field, the name, ▼",
    perfetto: "2",
    async mouse(hand) {
      await hand.on(".search input");
      await hand.search("activityResume");
      await hand.on('.search [aria-label="Next match"]');
    },
    keys: (hand) => hand.find("activityResume"),
    async check(look) {
      assert.equal((await chosen(look)).name, "activityResume");
    },
  },
  {
    title: "How many frames were late, and the 95th percentile of all",
    how: "*Launches and frames*",
    perfetto: "2, with a query",
    async mouse(hand) {
      await hand.tab("Launches");
    },
    async keys(hand) {
      await hand.tab("Launches");
    },
    async check(look) {
      const [app, count, , , p95, , , janky] = await look.first("Frames of apps");
      assert.equal(app, "com.example.app");
      assert.ok(Number(count) > 10 && Number(p95) > 1, `${count} ${p95}`);
      assert.match(janky, /^\d+ · [\d.]+ %$/);
    },
  },
  {
    title: "Save the slices of a period, summed up by name, for a spreadsheet",
    how: "Shift and drag, *Table*, *Save CSV*",
    perfetto: "3, with a query",
    async mouse(hand) {
      await hand.period(0.2, 0.6);
      await hand.tab("Table");
      await hand.on(".table-panel button", "Save CSV");
    },
    async keys(hand) {
      await hand.find("bindApplication");
      await hand.button(".details button", "Choose period");
      await hand.tab("Table");
      await hand.button(".table-panel button", "Save CSV");
    },
    async check(look) {
      assert.match(await look.line(), /^Chosen period/);
      const saved = await look.page.evaluate(async () => (await window.__saved?.text()) ?? "");
      assert.ok(saved.split("\n").length > 3, saved);
    },
  },
];

/** In the page, before its script: keeps the last file that the page saves, and saves none. */
export function keepSaved() {
  URL.createObjectURL = (blob) => {
    if (blob.type.startsWith("text/csv")) window.__saved = blob;
    return "blob:none";
  };
  const { click } = HTMLAnchorElement.prototype;
  HTMLAnchorElement.prototype.click = function () {
    if (!this.download) click.call(this);
  };
}
