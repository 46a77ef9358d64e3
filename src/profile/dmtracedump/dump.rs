//! The profile that dmtracedump printed, equal to the microsecond (AOSP art `tools/dmtracedump/tracedump.cc`,
//! removed from AOSP in July 2023).
//!
//! Deliberate differences, each of which was a defect of the old tool: it read only the first time of a
//! record; here the caller chooses the clock. It stopped at the first exit that does not match; here such
//! exits are counted. It read no streaming files and no versions 4 and 5. It had limits of 32,768 threads
//! and 10,000 frames. Its times wrapped after 71.6 minutes. It counted two threads with the same id as one
//! thread.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::art::Action;
use crate::formats::art_method::{CPU, CallAnomalies, MethodTrace, WALL};
use crate::profile::count::selection::ProfileSelection;
use crate::profile::count::tree::{CallEdgeKey, CallGraph, CallTree, ROOT, TreeOptions};

/// The clock that the old tool read: the first time of a record.
pub(super) fn default_clock(trace: &MethodTrace<'_>) -> usize {
    if trace.header().clock.has_cpu() { CPU } else { WALL }
}

/// One method in the old tool's list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DumpRow {
    /// Dense method index; [`ROOT`] for `(toplevel)`. All undeclared methods together are `(unknown)`.
    pub method: u32,
    /// The method id, by which the old tool sorts: -2 for `(toplevel)`, -1 for `(unknown)`.
    pub id: i64,
    /// The class; for `(toplevel)` and `(unknown)` the whole name.
    pub class: String,
    /// The method name; `None` for `(toplevel)` and `(unknown)`.
    pub name: Option<String>,
    /// The signature. Where the method list has five columns, the source file follows after a tab, as in the
    /// old tool.
    pub signature: String,
    /// Calls, and recursive calls.
    pub calls: [u64; 2],
    /// Time in the method and not in the methods it called, µs.
    pub exclusive: u64,
    /// The part of `exclusive` in calls that are not recursive, µs.
    pub outermost_exclusive: u64,
    /// Time in the method and in all methods it called, µs.
    pub inclusive: u64,
    /// The number in the listing: the rank by inclusive time.
    pub index: usize,
}

impl DumpRow {
    /// `class.name signature`, or the class alone.
    pub(super) fn full_name(&self) -> String {
        match &self.name {
            Some(name) => format!("{}.{} {}", self.class, name, self.signature),
            None => self.class.clone(),
        }
    }

    fn by_name(&self, other: &DumpRow) -> Ordering {
        self.class.cmp(&other.class).then_with(|| match (&self.name, &other.name) {
            (Some(a), Some(b)) => a.cmp(b).then_with(|| self.signature.cmp(&other.signature)),
            _ => self.id.cmp(&other.id),
        })
    }
}

/// A caller or callee of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DumpRelative {
    /// Index into [`MethodDump::rows`].
    pub row: usize,
    /// Calls between the two methods.
    pub calls: u64,
    /// All calls of the callee, whoever called it.
    pub of_calls: u64,
    /// Time of those calls, µs.
    pub total: u64,
}

/// The profile of the old tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct MethodDump {
    /// Sorted by inclusive time. The index is the number that the listing shows in brackets.
    pub rows: Vec<DumpRow>,
    /// By row: callers of calls that are not recursive, and callers of recursive calls.
    pub parents: Vec<[Vec<DumpRelative>; 2]>,
    /// By row: callees of calls that are not recursive, and callees of recursive calls.
    pub children: Vec<[Vec<DumpRelative>; 2]>,
    /// Time of all threads, µs.
    pub total: u64,
    /// Irregularities of the records.
    pub anomalies: CallAnomalies,
}

impl MethodDump {
    /// Profiles a trace as the old tool did, in one clock.
    pub(crate) fn from_trace(trace: &MethodTrace<'_>, clock: usize) -> MethodDump {
        let tree_options = TreeOptions { merge_undeclared: true, unentered_from_zero: true };
        let tree = CallTree::from_trace(trace, &ProfileSelection::default(), tree_options);
        let declared = trace.counts().declared_methods as usize;
        let graph = CallGraph::from_tree(&tree, declared + 1);
        let micros = |ticks: [u64; 2]| ticks[clock].saturating_mul(trace.header().tick_ns) / 1_000;
        let mut rows = names(trace, declared);
        for row in &mut rows {
            let stat = if row.method == ROOT { &graph.outside } else { &graph.methods[row.method as usize] };
            row.calls = stat.calls;
            row.exclusive = micros(stat.exclusive);
            row.outermost_exclusive = micros(stat.outermost_exclusive);
            row.inclusive = micros(stat.inclusive);
        }
        rows.sort_by_key(|row| row.id);
        rows.sort_by(|a, b| b.inclusive.cmp(&a.inclusive).then_with(|| a.by_name(b)));
        let mut place = vec![0; declared + 2];
        for (n, row) in rows.iter_mut().enumerate() {
            row.index = n;
            place[(row.method as usize).min(declared + 1)] = n;
        }
        let place = |method: u32| place[(method as usize).min(declared + 1)];
        let mut dump = MethodDump {
            parents: vec![Default::default(); rows.len()],
            children: vec![Default::default(); rows.len()],
            total: micros(graph.outside.inclusive),
            anomalies: tree.anomalies,
            rows,
        };
        // Each list distinguishes recursive calls on one side only, so edges that differ on the other side
        // add up.
        let mut parents = BTreeMap::new();
        let mut children = BTreeMap::new();
        for (CallEdgeKey { caller, callee, caller_recursive, callee_recursive }, edge) in &graph.edges {
            let caller = place(*caller);
            let callee = place(*callee);
            let total = micros(edge.total);
            let of_calls = dump.rows[callee].calls.iter().sum();
            for (list, key) in [
                (&mut parents, (callee, *callee_recursive, caller)),
                (&mut children, (caller, *caller_recursive, callee)),
            ] {
                let sum: &mut DumpRelative =
                    list.entry(key).or_insert(DumpRelative { row: key.2, calls: 0, of_calls, total: 0 });
                sum.calls += edge.calls;
                sum.total += total;
            }
        }
        for (lists, sums) in [(&mut dump.parents, parents), (&mut dump.children, children)] {
            for ((row, recursive, _), relative) in sums {
                lists[row][usize::from(recursive)].push(relative);
            }
            for list in lists.iter_mut().flatten() {
                list.sort_by(|a, b| {
                    b.total.cmp(&a.total).then_with(|| dump.rows[a.row].by_name(&dump.rows[b.row]))
                });
            }
        }
        dump
    }

    /// The rows sorted by exclusive time.
    pub(super) fn by_exclusive(&self) -> Vec<&DumpRow> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by(|a, b| b.exclusive.cmp(&a.exclusive).then_with(|| a.by_name(b)));
        rows
    }

    /// The methods of each class.
    pub(super) fn by_class(&self) -> Vec<DumpGroup<'_>> {
        self.groups(|row| (&row.class, ""))
    }

    /// The methods of each method name.
    pub(super) fn by_name(&self) -> Vec<DumpGroup<'_>> {
        self.groups(|row| (row.name.as_deref().unwrap_or_default(), &row.class))
    }

    /// The rows of methods, grouped by the first part of `key`. Groups and rows are sorted by exclusive time.
    fn groups<'a>(&'a self, key: impl Fn(&'a DumpRow) -> (&'a str, &'a str)) -> Vec<DumpGroup<'a>> {
        let mut sorted: Vec<&DumpRow> = self.rows.iter().filter(|row| row.name.is_some()).collect();
        sorted.sort_by_key(|row| (key(row), row.id));
        let mut groups: Vec<DumpGroup<'a>> = Vec::new();
        for row in sorted {
            let name = key(row).0;
            if groups.last().is_none_or(|g| g.name != name) {
                groups.push(DumpGroup { name, calls: [0; 2], exclusive: 0, rows: Vec::new() });
            }
            if let Some(group) = groups.last_mut() {
                group.exclusive += row.exclusive;
                group.calls = [group.calls[0] + row.calls[0], group.calls[1] + row.calls[1]];
                group.rows.push(row);
            }
        }
        // Ties go by the first method's class and id, before the methods themselves are sorted.
        for group in &mut groups {
            group.rows.sort_by(|a, b| b.exclusive.cmp(&a.exclusive).then_with(|| a.by_name(b)));
        }
        groups.sort_by_key(|g| (Reverse(g.exclusive), g.rows.first().map(|row| (&row.class, row.id))));
        groups
    }
}

/// The methods of one class, or the methods of one name.
#[derive(Debug, Clone)]
pub(super) struct DumpGroup<'a> {
    /// The class, or the method name.
    pub name: &'a str,
    /// Calls, and recursive calls.
    pub calls: [u64; 2],
    /// Exclusive time of all methods, µs.
    pub exclusive: u64,
    /// By exclusive time.
    pub rows: Vec<&'a DumpRow>,
}

fn names(trace: &MethodTrace<'_>, declared: usize) -> Vec<DumpRow> {
    let special =
        |method: u32, id: i64, class: &str| DumpRow { method, id, class: class.into(), ..DumpRow::default() };
    let mut rows = vec![special(ROOT, -2, "(toplevel)"), special(declared as u32, -1, "(unknown)")];
    for (n, method) in trace.methods().iter().take(declared).enumerate() {
        rows.push(DumpRow {
            method: n as u32,
            id: method.id as i64,
            class: method.class.clone().into_owned(),
            name: Some(method.name.clone().into_owned()),
            signature: signature(method.signature.as_ref(), method.file.as_ref(), method.line),
            ..DumpRow::default()
        });
    }
    rows
}

/// The signature as the old tool prints it. In a method list with five columns the old tool reads the
/// fourth and the fifth column as one.
fn signature(signature: &str, file: &str, line: Option<i32>) -> String {
    if file.is_empty() || line.is_some() { signature.to_owned() } else { format!("{signature}\t{file}") }
}

/// The most dots before a method's name in the output of option `-o`. A deeper call has this many dots and
/// its depth.
const MAX_DOTS: usize = 1_000;

/// Writes the output of option `-o`: the threads, then every record in file order. Times are µs as recorded.
pub(super) fn write_records(trace: &MethodTrace<'_>, clock: usize, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "VERSION: {}", trace.header().version)?;
    let mut threads: Vec<_> = trace.threads().iter().filter(|t| t.declared).collect();
    threads.sort_by_key(|t| t.id);
    writeln!(out, "Threads ({}):", threads.len())?;
    for thread in threads {
        writeln!(out, "{:2} {}", thread.id, thread.name)?;
    }
    writeln!(out, "Trace (threadID action usecs class.method signature):")?;
    let names: Vec<_> =
        trace.methods().iter().map(|m| (signature(&m.signature, &m.file, m.line), m)).collect();
    // The old tool prints ids as records have them.
    let id_bits = if trace.has_fixed_records() { u32::from(u16::MAX) } else { u32::MAX };
    // The old tool begins at depth 2, because a thread's first two exits may leave the methods that started
    // the trace.
    let mut depths = vec![2i64; trace.threads().len()];
    for record in trace.records().as_written() {
        let action = match record.action {
            Action::Enter => "ent",
            Action::Exit => "xit",
            Action::Unroll => "unr",
        };
        let depth = &mut depths[record.thread as usize];
        *depth += i64::from(record.action == Action::Enter);
        let note = if *depth < 0 { '-' } else { ' ' };
        let dots = usize::try_from(*depth).unwrap_or(0).min(MAX_DOTS);
        let time = if clock == CPU { record.cpu } else { record.wall };
        let thread = trace.threads()[record.thread as usize].id & id_bits;
        let time = time.unwrap_or(0) / 1_000;
        write!(out, "{thread:2} {action}  {time:8}{note}{:.<dots$}", "")?;
        if *depth > MAX_DOTS as i64 {
            write!(out, "({depth}) ")?;
        }
        let (signature, method) = &names[record.method as usize];
        match (method.declared, method.id) {
            (true, _) => writeln!(out, "{}.{} {signature}", method.class, method.name)?,
            (false, 0) => writeln!(out, "???.??? methodId: 0")?,
            (false, id) => writeln!(out, "???.??? methodId: {id:#x}")?,
        }
        *depth -= i64::from(record.action != Action::Enter);
    }
    Ok(())
}
