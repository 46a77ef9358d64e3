// axe-core in a page of a test.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const AXE = readFileSync(fileURLToPath(new URL("../node_modules/axe-core/axe.min.js", import.meta.url)), "utf8");

/** Loads axe-core into a page. */
export const useAxe = (page) => page.evaluate(AXE);

/** What axe-core finds wrong with what a page shows, a line for each violation. */
export const findViolations = (page) =>
  page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(
      ({ id, impact, nodes }) =>
        `${impact} ${id}: ${nodes
          .slice(0, 3)
          .map((n) => n.html)
          .join(" | ")}`,
    );
  });
