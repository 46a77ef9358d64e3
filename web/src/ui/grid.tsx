// A table of which only the visible rows are in the page, for tables and trees of any length. It is operated with
// the mouse, or with the arrow keys as trees are: up, down, right unfolds, left folds, Enter chooses.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { mounted } from "./mounted";

export interface GridColumn {
  id: string;
  title: string;
  /** The meaning of the column's figures, for a tooltip. */
  meaning: string;
  /** Pixels; the name's column takes what is left. */
  width?: number;
  /** Pixels that the name's column has at least. */
  least?: number;
  sortable?: boolean;
  /** Texts that do not fit are cut; else the column becomes as wide as they are. */
  cut?: boolean;
}

export interface GridCell {
  text: ComponentChildren;
  /** The exact figure, for a tooltip. */
  exact?: string;
  /** Draws a bar behind the text, from 0 to 1. */
  bar?: number;
  className?: string;
}

export interface GridRow {
  /** Unique in the grid. */
  id: string;
  level: number;
  /** Absent where the row has nothing to unfold. */
  unfolded?: boolean;
  className?: string;
  /** The colour of the swatch before the name. */
  colour?: string;
  selected?: boolean;
  /** One for each column. */
  cells: GridCell[];
}

export interface GridProps {
  label: string;
  columns: GridColumn[];
  count: number;
  row: (at: number) => GridRow;
  /** Shown in place of rows. */
  empty: string;
  sort?: { id: string; down: boolean };
  onSort?: (id: string) => void;
  /** A row is chosen by a click or Enter. */
  onChoose?: (at: number) => void;
  /** A row is opened by a double click or Shift+Enter: shown in the timeline. */
  onOpen?: (at: number) => void;
  onUnfold?: (at: number) => void;
  /** Brings this row into view whenever `revealed` changes to another value than null. */
  reveal?: { at: number; token: unknown } | null;
}

const ROW_PX = 22;
const MIN_NAME_PX = 240;
/** The width of a figure in the widest of the system's fonts, and what is left free beside a cell's text. */
const FIGURE_PX = 8.3;
const CELL_PADDING_PX = 8;
/** The same for letters of the head, and what the mark of the sorted column takes. */
const LETTER_PX = 6.7;
const SORT_MARK_PX = 20;
/** Firefox draws no element higher than some 17.8 million pixels. */
const MAX_ROWS = 700_000;

export function Grid(props: GridProps) {
  const { columns, onSort, sort } = props;
  const count = Math.min(props.count, MAX_ROWS);
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const [cursor, setCursor] = useState(0);
  const at = Math.min(cursor, Math.max(count - 1, 0));

  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setHeight(mounted(scroller).clientHeight));
    observer.observe(mounted(scroller));
    return () => observer.disconnect();
  }, []);

  const moveTo = (row: number) => {
    const to = Math.max(0, Math.min(count - 1, row));
    setCursor(to);
    const view = mounted(scroller);
    const head = ROW_PX + 4;
    if (to * ROW_PX < view.scrollTop) view.scrollTop = to * ROW_PX;
    const below = (to + 1) * ROW_PX + head - view.clientHeight;
    if (below > view.scrollTop) view.scrollTop = below;
  };

  const reveal = props.reveal;
  useEffect(() => {
    if (!reveal || reveal.at < 0) return;
    setCursor(reveal.at);
    const view = mounted(scroller);
    const y = reveal.at * ROW_PX;
    if (y < view.scrollTop || y + 3 * ROW_PX > view.scrollTop + view.clientHeight) {
      view.scrollTop = Math.max(0, y - view.clientHeight / 3);
    }
  }, [reveal?.token]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || count === 0) return;
    // The buttons of the head have these keys for themselves.
    if (event.target instanceof HTMLButtonElement && (event.key === "Enter" || event.key === " ")) return;
    const row = props.row(at);
    const page = Math.max(1, Math.floor(height / ROW_PX) - 2);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -count,
      End: count,
    };
    if (event.key in steps) moveTo(at + steps[event.key]);
    else if (event.key === "ArrowRight" && row.unfolded === false) props.onUnfold?.(at);
    else if (event.key === "ArrowRight" && row.unfolded) moveTo(at + 1);
    else if (event.key === "ArrowLeft" && row.unfolded) props.onUnfold?.(at);
    else if (event.key === "ArrowLeft") moveTo(above(props, at));
    else if (event.key === "Enter" && event.shiftKey) props.onOpen?.(at);
    else if (event.key === "Enter" || event.key === " ") props.onChoose?.(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const first = Math.max(0, Math.floor(top / ROW_PX) - 4);
  const last = Math.min(count, Math.ceil((top + height) / ROW_PX) + 4);
  const visible = Array.from({ length: Math.max(0, last - first) }, (_, n) => props.row(first + n));
  const fitting = useFittingWidths(columns, visible, sort?.id);
  const template = fitting.map((c) => (c.width ? `${c.width}px` : "minmax(0, 1fr)")).join(" ");
  const least = fitting.reduce((sum, { width, least = MIN_NAME_PX }) => sum + (width ?? least), 0);
  const rows = [];
  for (let n = first; n < last; n++) {
    const row = visible[n - first];
    rows.push(<Row key={n} props={props} row={row} at={n} cursor={n === at} onPoint={() => setCursor(n)} />);
  }
  return (
    <div
      class="grid"
      role="treegrid"
      aria-label={props.label}
      aria-rowcount={count + 1}
      tabIndex={0}
      aria-activedescendant={at >= first && at < last ? idOf(props.label, at) : undefined}
      ref={scroller}
      onScroll={() => setTop(mounted(scroller).scrollTop)}
      onKeyDown={onKeyDown}
      style={{ "--columns": template, "--least": `${least}px` }}
      onMouseDown={() => mounted(scroller).focus({ preventScroll: true })}
    >
      <div class="grid-head" role="row" aria-rowindex={1}>
        {columns.map((column) => (
          <div
            role="columnheader"
            class={column.cut ? "cell texts" : "cell"}
            title={column.meaning}
            aria-sort={sort?.id === column.id ? (sort.down ? "descending" : "ascending") : undefined}
          >
            {column.sortable ? (
              <button type="button" onClick={() => onSort?.(column.id)}>
                {column.title}
                <span class="sort" aria-hidden="true">
                  {sort?.id === column.id ? (sort.down ? " ▾" : " ▴") : ""}
                </span>
              </button>
            ) : (
              column.title
            )}
          </div>
        ))}
      </div>
      <div class="grid-body" role="rowgroup" style={{ height: `${count * ROW_PX}px` }}>
        {rows}
      </div>
      {count === 0 && <p class="empty">{props.empty}</p>}
      {props.count > MAX_ROWS && <p class="empty">Only the first {MAX_ROWS} rows are shown. Filter to see others.</p>}
    </div>
  );
}

const idOf = (label: string, at: number) => `${label}-${at}`.replace(/\W+/g, "-");

/** The columns, as wide as what was seen in them since they are these columns. */
function useFittingWidths(columns: GridColumn[], rows: GridRow[], sorted: string | undefined): GridColumn[] {
  const seen = useRef<{ ids: string; widths: number[] }>({ ids: "", widths: [] });
  const ids = `${columns.map(({ id, title }) => `${id} ${title}`).join()} ${sorted}`;
  const headWidth = ({ id, title }: GridColumn) =>
    title.length * LETTER_PX + 2 * CELL_PADDING_PX + (id === sorted ? SORT_MARK_PX : 0);
  if (seen.current.ids !== ids) {
    const widths = columns.map((column) => (column.width ? Math.max(column.width, headWidth(column)) : 0));
    seen.current = { ids, widths };
  }
  const { widths } = seen.current;
  for (const { cells } of rows) {
    cells.forEach(({ text }, n) => {
      if (columns[n].cut !== true && typeof text === "string")
        widths[n] = Math.max(widths[n], text.length * FIGURE_PX + 2 * CELL_PADDING_PX);
    });
  }
  return columns.map((column, n) =>
    column.width
      ? { ...column, width: Math.ceil(widths[n]) }
      : { ...column, least: Math.ceil(Math.max(column.least ?? MIN_NAME_PX, headWidth(column))) },
  );
}

interface RowProps {
  props: GridProps;
  row: GridRow;
  at: number;
  cursor: boolean;
  onPoint: () => void;
}

function Row({ props, row, at, cursor, onPoint }: RowProps) {
  const className = ["grid-row", row.className, row.selected && "selected", cursor && "cursor"];
  const click = () => {
    onPoint();
    props.onChoose?.(at);
  };
  return (
    <div
      role="row"
      id={idOf(props.label, at)}
      aria-rowindex={at + 2}
      aria-level={row.level + 1}
      aria-expanded={row.unfolded}
      aria-selected={row.selected ?? false}
      class={className.filter(Boolean).join(" ")}
      style={{ top: `${at * ROW_PX}px` }}
      onClick={click}
      onDblClick={() => props.onOpen?.(at)}
    >
      {row.cells.map((cell, n) => (
        <div
          role="gridcell"
          class={`cell ${cell.className ?? ""}`}
          title={cell.exact}
          style={n === 0 ? { paddingLeft: `${4 + 16 * Math.min(row.level, 40)}px` } : undefined}
        >
          {cell.bar !== undefined && cell.bar > 0 && (
            <span class="bar" style={{ width: `${(100 * Math.min(1, cell.bar)).toFixed(2)}%` }} />
          )}
          {n === 0 && <Twisty row={row} onClick={() => props.onUnfold?.(at)} />}
          {n === 0 && row.colour && <span class="swatch" style={{ background: row.colour }} />}
          <span class="text">{cell.text}</span>
        </div>
      ))}
    </div>
  );
}

function Twisty({ row, onClick }: { row: GridRow; onClick: () => void }) {
  if (row.unfolded === undefined) return <span class="twisty" aria-hidden="true" />;
  const click = (event: MouseEvent) => {
    event.stopPropagation();
    onClick();
  };
  // The keyboard and screen readers have the row's own state, aria-expanded.
  return (
    <span class="twisty open" aria-hidden="true" onClick={click}>
      {row.unfolded ? "▾" : "▸"}
    </span>
  );
}

/** The row that encloses row `at`. */
function above(props: GridProps, at: number): number {
  const { level } = props.row(at);
  let row = at - 1;
  while (row > 0 && props.row(row).level >= level) row--;
  return Math.max(row, 0);
}
