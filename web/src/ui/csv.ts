// Fields of CSV files, as the program writes them: crates/tracebridge-core/src/text.

/** Spreadsheets take a field that begins so for a formula. */
const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^[+-]?[\d.]*\d[\d.]*$/;

/** A field by RFC 4180; one that a spreadsheet would run gets a `'` in front. */
export function csvField(text: string): string {
  const guarded = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}
