// A text whose middle is cut where it has no room: packages, tests and files differ at their ends.

/** So many letters of a long text's end always show. */
const TAIL_CHARS = 14;

export function MiddleCut({ text }: { text: string }) {
  const letters = Array.from(text);
  const cut = letters.length > 2 * TAIL_CHARS ? letters.length - TAIL_CHARS : letters.length;
  return (
    <span class="middle-cut" title={text}>
      <span class="head">{letters.slice(0, cut).join("")}</span>
      {cut < letters.length && <span class="tail">{letters.slice(cut).join("")}</span>}
    </span>
  );
}
