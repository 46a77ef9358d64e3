//! What dmtracedump printed, in its layout and to the microsecond (AOSP art `tools/dmtracedump/tracedump.cc`, removed
//! from AOSP in July 2023).
//!
//! Deliberate differences, each a defect of the old tool: it reads the first time of a record alone, here
//! [`DumpOptions::clock`] chooses; it stops at the first exit that does not match, here those are counted; it knows
//! no streaming files and no versions 4 and 5; it has limits of 32,768 threads and 10,000 frames; times of traces over
//! 71.6 minutes wrap; two threads under one id are one to it.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::art::Action;
use crate::formats::art_method::{CallAnomalies, MethodTrace};
use crate::profile::drive::{CPU, Selection, WALL};
use crate::profile::graph::{CallGraph, EdgeKey};
use crate::profile::tree::{CallTree, ROOT, TreeOptions};

/// How to print.
#[derive(Debug, Clone, Copy, Default)]
pub struct DumpOptions {
    /// Place of the clock in [`crate::profile::machine::Ticks`]: [`CPU`] or [`WALL`].
    pub clock: usize,
    /// HTML instead of text.
    pub html: bool,
}

/// The clock that the old tool would have read: the first one of the record.
pub fn default_clock(trace: &MethodTrace<'_>) -> usize {
    if trace.header().clock.has_cpu() { CPU } else { WALL }
}

/// One method as the old tool lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Its dense index, [`ROOT`] for `(toplevel)`; undeclared ones are all `(unknown)`.
    pub method: u32,
    /// Sorts as the old tool's method ids do: `(toplevel)` -2, `(unknown)` -1.
    pub id: i64,
    /// Class, or the whole name where there is no method name.
    pub class: String,
    /// Method name; `None` for the two that are no methods.
    pub name: Option<String>,
    /// Signature, with the source file behind a tab where the list has five columns, as the old tool prints it.
    pub signature: String,
    /// Calls, and recursive calls.
    pub calls: [u64; 2],
    /// µs in the method and not in what it called.
    pub exclusive: u64,
    /// Of that, outermost calls alone.
    pub outermost_exclusive: u64,
    /// µs in the method and all it called.
    pub inclusive: u64,
    /// Its number in the listing: its place by inclusive time.
    pub index: usize,
}

impl Row {
    /// `class.name signature`, or the class alone.
    pub fn full_name(&self) -> String {
        match &self.name {
            Some(name) => format!("{}.{} {}", self.class, name, self.signature),
            None => self.class.clone(),
        }
    }

    fn by_name(&self, other: &Row) -> Ordering {
        self.class.cmp(&other.class).then_with(|| match (&self.name, &other.name) {
            (Some(a), Some(b)) => a.cmp(b).then_with(|| self.signature.cmp(&other.signature)),
            _ => self.id.cmp(&other.id),
        })
    }
}

/// A caller or callee of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relative {
    /// Place in [`Dump::rows`].
    pub row: usize,
    /// Calls between the two.
    pub calls: u64,
    /// Their µs.
    pub total: u64,
}

/// All that the old tool's profile shows.
#[derive(Debug, Clone, Default)]
pub struct Dump {
    /// By inclusive time: the index is the number in brackets.
    pub rows: Vec<Row>,
    /// By row: callers, outermost and recursive calls apart.
    pub parents: Vec<[Vec<Relative>; 2]>,
    /// By row: callees, of outermost and recursive calls apart.
    pub children: Vec<[Vec<Relative>; 2]>,
    /// µs of all threads.
    pub total: u64,
    /// What did not fit together.
    pub problems: CallAnomalies,
}

impl Dump {
    /// Profiles a trace the old way.
    pub fn of(trace: &MethodTrace<'_>, options: DumpOptions) -> Dump {
        let tree_options = TreeOptions { merge_undeclared: true, orphans_from_zero: true };
        let tree = CallTree::of(trace, &Selection::default(), tree_options);
        let declared = trace.counts().declared_methods as usize;
        let graph = CallGraph::of(&tree, declared + 1);
        let micros = |ticks: [u64; 2]| ticks[options.clock].saturating_mul(trace.header().tick_ns) / 1_000;
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
        let mut dump = Dump {
            parents: vec![Default::default(); rows.len()],
            children: vec![Default::default(); rows.len()],
            total: micros(graph.outside.inclusive),
            problems: tree.problems,
            rows,
        };
        // Both lists leave out one of the two marks that the edges have: sum over it.
        let (mut parents, mut children) = (BTreeMap::new(), BTreeMap::new());
        for (EdgeKey { caller, callee, caller_recursive, callee_recursive }, edge) in &graph.edges {
            let (caller, callee, total) = (place(*caller), place(*callee), micros(edge.total));
            for (list, key) in [
                (&mut parents, (callee, *callee_recursive, caller)),
                (&mut children, (caller, *caller_recursive, callee)),
            ] {
                let sum: &mut Relative =
                    list.entry(key).or_insert(Relative { row: key.2, calls: 0, total: 0 });
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

    /// Rows by exclusive time.
    pub fn by_exclusive(&self) -> Vec<&Row> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by(|a, b| b.exclusive.cmp(&a.exclusive).then_with(|| a.by_name(b)));
        rows
    }

    /// Rows with a method name, grouped by `key`, groups and rows by exclusive time.
    pub fn groups<'a>(&'a self, key: impl Fn(&'a Row) -> (&'a str, &'a str)) -> Vec<Group<'a>> {
        let mut sorted: Vec<&Row> = self.rows.iter().filter(|row| row.name.is_some()).collect();
        sorted.sort_by_key(|row| (key(row), row.id));
        let mut groups: Vec<Group<'a>> = Vec::new();
        for row in sorted {
            let name = key(row).0;
            if groups.last().is_none_or(|g| g.name != name) {
                groups.push(Group { name, calls: [0; 2], exclusive: 0, rows: Vec::new() });
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

/// Methods of one class, or of one name.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// The class or the method name.
    pub name: &'a str,
    /// Calls, and recursive calls.
    pub calls: [u64; 2],
    /// µs.
    pub exclusive: u64,
    /// By exclusive time.
    pub rows: Vec<&'a Row>,
}

fn names(trace: &MethodTrace<'_>, declared: usize) -> Vec<Row> {
    let special =
        |method: u32, id: i64, class: &str| Row { method, id, class: class.into(), ..Row::default() };
    let mut rows = vec![special(ROOT, -2, "(toplevel)"), special(declared as u32, -1, "(unknown)")];
    for (n, method) in trace.methods().iter().take(declared).enumerate() {
        rows.push(Row {
            method: n as u32,
            id: method.id as i64,
            class: method.class.clone().into_owned(),
            name: Some(method.name.clone().into_owned()),
            signature: signature(method.signature.as_ref(), method.file.as_ref(), method.line),
            ..Row::default()
        });
    }
    rows
}

/// With five columns the old tool takes the fifth for a part of the fourth.
fn signature(signature: &str, file: &str, line: Option<i32>) -> String {
    if file.is_empty() || line.is_some() { signature.to_owned() } else { format!("{signature}\t{file}") }
}

/// `-o`: the threads and then every record, in file order. Times are µs as recorded.
pub fn write_records(trace: &MethodTrace<'_>, options: DumpOptions, out: &mut impl Write) -> io::Result<()> {
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
    // The old tool begins at 2: the first two exits of a thread return from the method that started the trace.
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
        let dots = usize::try_from(*depth).unwrap_or(0);
        let time = if options.clock == CPU { record.cpu } else { record.wall };
        let thread = trace.threads()[record.thread as usize].id;
        let time = time.unwrap_or(0) / 1_000;
        write!(out, "{thread:2} {action}  {time:8}{note}{:.<dots$}", "")?;
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
