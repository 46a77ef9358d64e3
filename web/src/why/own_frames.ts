// The app's own frame of running code: the innermost method or slice of the app that holds a share of the span,
// whatever library it called. The rules are those of `tracebridge why` (src/why/own_frame.rs).

import CODE from "./code_packages.json";

/** The frames around a moment of running code, by their names; empty where there is none. */
export interface OwnFrame {
  name: string;
  kind: CodeKind;
  /** The app's frame around it, else the one that called it. */
  caller: string;
  /** The frame that it called. */
  callee: string;
}

export type CodeKind = "method" | "slice";

interface Node {
  /** -1 for the root of a path. */
  parent: number;
  name: string;
  kind: CodeKind;
  path: number;
  ns: number;
}

/** An own frame holds at least one part in this many of the span. */
const LEAST_SHARE = 20;
/** Recursion is looked for in this many frames around one. */
const RECURSION_FRAMES = 64;
/** Labels of frames are smaller than this. */
const LABELS = 2 ** 26;

const FOREIGN = 0;
const UNLISTED = 1;
const OWN = 2;

/** The frames of running code, each within those around it, for each path of a span. */
export class CodeTree {
  private readonly nodes: Node[] = [];
  private readonly children = new Map<number, number>();

  /** A node outside of every frame. */
  root(path: number): number {
    this.nodes.push({ parent: -1, name: "", kind: "slice", path, ns: 0 });
    return this.nodes.length - 1;
  }

  /** The node of a frame within another one; `label` is the number of its name. */
  child(parent: number, label: number, kind: CodeKind, name: () => string): number {
    const key = (parent * 2 + (kind === "method" ? 1 : 0)) * LABELS + label;
    let node = this.children.get(key);
    if (node === undefined) {
      node = this.nodes.length;
      this.nodes.push({ parent, name: name(), kind, path: this.nodes[parent].path, ns: 0 });
      this.children.set(key, node);
    }
    return node;
  }

  /** The thread ran in a node. */
  add(node: number, ns: number): void {
    this.nodes[node].ns += ns;
  }

  name(node: number): string {
    return this.nodes[node].name;
  }

  /** The own frame of each node; null where the app has none. `processOf` names the process that ran on a path. */
  ownFrames(spanNs: number, processOf: (path: number) => string): (OwnFrame | null)[] {
    const { nodes } = this;
    const packages = new Map<string, string[]>();
    const ownership = nodes.map((node) => {
      if (node.parent < 0) return FOREIGN;
      const process = processOf(node.path);
      let own = packages.get(process);
      if (!own) packages.set(process, (own = this.packagesOf(process)));
      return ownershipOf(node, own);
    });
    const held = this.heldTimes(ownership);
    const least = Math.max(spanNs / LEAST_SHARE, 1);
    const around: Around[] = [];
    return nodes.map((node, at) => {
      const outer = around.at(node.parent);
      if (node.parent < 0 || !outer) {
        around.push({ own: -1, unlisted: -1, outermostOwn: -1, outermostUnlisted: -1, above: -1, callee: -1 });
        return null;
      }
      const here = { ...outer };
      if (ownership[node.parent] > FOREIGN) here.above = node.parent;
      const isHeld = (held.get(frameKey(node)) ?? 0) >= least;
      if (ownership[at] === OWN) {
        if (here.outermostOwn < 0) here.outermostOwn = at;
        if (isHeld) here.own = at;
      } else if (ownership[at] === UNLISTED) {
        if (here.outermostUnlisted < 0) here.outermostUnlisted = at;
        if (isHeld) here.unlisted = at;
      }
      const chosen = chosenOf(here);
      if (chosen === node.parent && chosen >= 0) here.callee = at;
      else if (chosen === at || chosen !== chosenOf(outer)) here.callee = -1;
      around.push(here);
      if (chosen < 0) return null;
      const { above } = around[chosen];
      const caller = above >= 0 ? above : nodes[chosen].parent;
      return {
        name: nodes[chosen].name,
        kind: nodes[chosen].kind,
        caller: nodes[caller].name,
        callee: nodes[here.callee]?.name ?? "",
      };
    });
  }

  /** How long each frame of the app was open on each path. A recursive call counts once. */
  private heldTimes(ownership: number[]): Map<string, number> {
    const { nodes } = this;
    const open = nodes.map(({ ns }) => ns);
    for (let at = nodes.length - 1; at >= 0; at--) if (nodes[at].parent >= 0) open[nodes[at].parent] += open[at];
    const held = new Map<string, number>();
    nodes.forEach((node, at) => {
      if (ownership[at] === FOREIGN) return;
      let outer = node.parent;
      for (let frames = 0; outer >= 0 && frames < RECURSION_FRAMES; frames++, outer = nodes[outer].parent)
        if (nodes[outer].name === node.name && nodes[outer].kind === node.kind) return;
      const key = frameKey(node);
      held.set(key, (held.get(key) ?? 0) + open[at]);
    });
    return held;
  }

  /** The packages of the app with this process name. */
  private packagesOf(process: string): string[] {
    const methods = new Set<string>();
    const packages = new Set<string>();
    for (const { kind, name } of this.nodes) {
      if (kind === "method") methods.add(name);
      else if (name.startsWith("performCreate:") && name.includes("."))
        packages.add(name.slice("performCreate:".length, name.lastIndexOf(".")));
    }
    const names = [process.split(":")[0]];
    for (let shorter = 0; shorter < 2; shorter++)
      names.push(names[shorter].slice(0, Math.max(names[shorter].lastIndexOf("."), 0)));
    const isPackage = (name: string) =>
      name.includes(".")
      && !name.startsWith("/")
      && ![...CODE.framework, ...CODE.libraries].some((known) => isWithin(known, name));
    const own = names.find((name) => isPackage(name) && [...methods].some((method) => isWithin(method, name)));
    if (own !== undefined) packages.add(own);
    return [...packages];
  }
}

/** Numbers of nodes around a node; -1 is none. */
interface Around {
  own: number;
  unlisted: number;
  outermostOwn: number;
  outermostUnlisted: number;
  /** The innermost one of the app, the node itself aside. */
  above: number;
  callee: number;
}

const chosenOf = ({ own, unlisted, outermostOwn, outermostUnlisted }: Around): number =>
  [own, unlisted, outermostOwn, outermostUnlisted].find((node) => node >= 0) ?? -1;

const frameKey = ({ path, kind, name }: Node): string => `${path} ${kind} ${name}`;

/** A name is this package, or lies in it. */
const isWithin = (name: string, wanted: string): boolean =>
  name.startsWith(wanted) && (name.length === wanted.length || ".$".includes(name[wanted.length]));

function ownershipOf({ kind, name }: Node, packages: string[]): number {
  if (kind === "slice") return isPlatformSlice(name) ? FOREIGN : OWN;
  if (packages.some((own) => isWithin(name, own))) return OWN;
  return [...CODE.framework, ...CODE.libraries].some((known) => isWithin(name, known)) ? FOREIGN : UNLISTED;
}

/** `drawChart` is no `draw`. */
const isPlatformSlice = (name: string): boolean =>
  CODE.platform_slices.some(
    (begin) => name.startsWith(begin) && !(/\w$/.test(begin) && /^[\p{L}\p{N}_]/u.test(name.slice(begin.length))),
  );

/** The class and the method of a full name, without the package. */
export function shortMethod(name: string): string {
  const parts = name.split(".");
  return parts.length > 2 ? parts.slice(-2).join(".") : name;
}
