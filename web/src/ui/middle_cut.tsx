// A text whose middle is cut where it has no room: packages, tests and files differ at their ends.

/** So many letters of a text's end always show; of a short one no more than its half. */
const MAX_TAIL_CHARS = 14;

export function MiddleCut({ text }: { text: string }) {
  const letters = Array.from(text);
  const cut = letters.length - Math.min(MAX_TAIL_CHARS, letters.length >> 1);
  return (
    <span class="middle-cut" title={text}>
      <span class="head">{letters.slice(0, cut).join("")}</span>
      {cut < letters.length && <span class="tail">{letters.slice(cut).join("")}</span>}
    </span>
  );
}
