// The rules for the page's source, its tests and its tools.

import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import globals from "globals";
import ts from "typescript-eslint";

export default ts.config(
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  js.configs.recommended,
  {
    files: ["src/**/*.{ts,tsx}"],
    extends: [ts.configs.strictTypeChecked, ts.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    plugins: { "react-hooks": hooks },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      // Off: profiles and call trees are computed anew where their result changes, and not wherever an object
      // that they read was made anew for a drawing.
      "react-hooks/exhaustive-deps": "off",
      // Numbers read the same in a template as elsewhere.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // `() => store.set(…)` is how the panels write their handlers.
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      // An empty text is none: `name || role`.
      "@typescript-eslint/prefer-nullish-coalescing": ["error", { ignorePrimitives: { string: true } }],
      // Off: over a typed array of 5 million numbers, `for (const x of array)` takes ten times as long as an
      // index.
      "@typescript-eslint/prefer-for-of": "off",
    },
  },
  {
    files: ["test/**/*.mjs", "*.mjs"],
    // The functions that tests hand to a page run there.
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
    rules: {
      // Debian 12 has Node 18.
      "no-restricted-properties": [
        "error",
        ...["toReversed", "toSorted", "toSpliced", "groupBy", "withResolvers", "fromAsync"].map((property) => ({
          property,
          message: "Node 18 has no such function.",
        })),
      ],
    },
  },
  {
    files: ["test/**/*.test.mjs"],
    rules: {
      "no-restricted-globals": [
        "error",
        { name: "setTimeout", message: "Wait for a state: eventually, link or settled of harness.mjs." },
      ],
    },
  },
);
