import type { Trace } from "../data/trace";
export function spanColor(_trace: Trace, _kind: "calls" | "slices", label: number): string {
  return ["#77aadd", "#ee8866", "#44bb99", "#eedd88", "#ffaabb", "#99ddff", "#bbcc33", "#cc99cc", "#aaaa00"][label % 9];
}
