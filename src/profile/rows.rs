//! The profile as rows: by method, class, package or thread.

use std::borrow::Cow;
use std::collections::HashMap;

use super::drive::{CPU, Selection, WALL};
use super::flat::{Flat, Stat};
use super::machine::{Ticks, add, since};
use super::names::Names;
use crate::formats::art_method::{CallAnomalies, MethodTrace};

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// One method (overloads apart).
    Method,
    /// All methods of a class.
    Class,
    /// All methods of a package, without those of packages in it.
    Package,
    /// One thread.
    Thread,
}

/// What rows are sorted by, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Time in it alone.
    Exclusive,
    /// Time in it and what it called.
    Inclusive,
    /// Calls, recursive ones included.
    Calls,
}

/// One row; times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Which: dense method or thread index, or the group's number.
    pub id: u32,
    /// Its figures.
    pub stat: Stat,
}

/// A profile in rows.
#[derive(Debug)]
pub struct Rows {
    /// What a row stands for.
    pub by: By,
    /// Sorted; those without calls are left out.
    pub rows: Vec<Row>,
    /// All selected threads' times from first event to last, ns.
    pub total: Ticks,
    /// Which of the clocks the trace has.
    pub clocks: [bool; 2],
    /// What did not fit together.
    pub problems: CallAnomalies,
    groups: Vec<String>,
}

/// Which of [`CPU`] and [`WALL`] a trace has.
pub fn clocks(trace: &MethodTrace<'_>) -> [bool; 2] {
    let mut clocks = [false; 2];
    clocks[CPU] = trace.header().clock.has_cpu();
    clocks[WALL] = trace.header().clock.has_wall();
    clocks
}

/// The clock to sort by and to draw, where none is asked for: wall where the trace has it.
pub fn main_clock(trace: &MethodTrace<'_>) -> usize {
    if trace.header().clock.has_wall() { WALL } else { CPU }
}

impl Rows {
    /// Profiles the selected records.
    pub fn of(
        trace: &MethodTrace<'_>,
        names: &Names<'_, '_>,
        selection: &Selection,
        by: By,
        (sort, clock): (Sort, usize),
    ) -> Rows {
        let (flat, groups) = match by {
            By::Method | By::Thread => (Flat::of(trace, selection), Vec::new()),
            By::Class => grouped(trace, selection, |method| names.class(method)),
            By::Package => grouped(trace, selection, |method| names.package(method).into()),
        };
        let mut total = [0; 2];
        flat.threads.iter().for_each(|thread| add(&mut total, thread.total));
        let stats = match by {
            By::Thread => flat.threads.iter().map(thread_row).collect(),
            _ => flat.methods,
        };
        let tick_ns = trace.header().tick_ns;
        let mut rows: Vec<Row> = stats
            .into_iter()
            .enumerate()
            .filter(|(_, stat)| !stat.is_empty())
            .map(|(id, stat)| Row { id: id as u32, stat: in_ns(stat, tick_ns) })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(figure(&row.stat, sort, clock)));
        let total = total.map(|ticks| ticks.saturating_mul(tick_ns));
        Rows { by, rows, total, clocks: clocks(trace), problems: flat.problems, groups }
    }

    /// What a row is called, briefly.
    pub fn label(&self, names: &Names<'_, '_>, row: &Row) -> String {
        match self.by {
            By::Method => names.long(row.id),
            By::Thread => names.thread(row.id),
            By::Class | By::Package => self.groups.get(row.id as usize).cloned().unwrap_or_default(),
        }
    }
}

/// What `sort` looks at.
pub fn figure(stat: &Stat, sort: Sort, clock: usize) -> u64 {
    match sort {
        Sort::Exclusive => stat.exclusive[clock],
        Sort::Inclusive => stat.inclusive[clock],
        Sort::Calls => stat.calls + stat.recursive,
    }
}

fn in_ns(stat: Stat, tick_ns: u64) -> Stat {
    let ns = |ticks: Ticks| ticks.map(|t| t.saturating_mul(tick_ns));
    Stat { exclusive: ns(stat.exclusive), inclusive: ns(stat.inclusive), ..stat }
}

/// A thread's inclusive time is all of it; its exclusive time is that in traced methods.
fn thread_row(thread: &super::flat::ThreadStat) -> Stat {
    let exclusive = since(thread.total, thread.idle);
    Stat { calls: thread.calls, recursive: 0, exclusive, inclusive: thread.total }
}

fn grouped<'n>(
    trace: &MethodTrace<'_>,
    selection: &Selection,
    name: impl Fn(u32) -> Cow<'n, str>,
) -> (Flat, Vec<String>) {
    let mut numbers: HashMap<Cow<'n, str>, u32> = HashMap::new();
    let mut labels = Vec::new();
    let mut groups = Vec::with_capacity(trace.methods().len());
    for method in 0..trace.methods().len() as u32 {
        let name = name(method);
        let next = labels.len() as u32;
        let number = *numbers.entry(name.clone()).or_insert(next);
        if number == next {
            labels.push(name.into_owned());
        }
        groups.push(number);
    }
    (Flat::of_groups(trace, selection, &groups, labels.len()), labels)
}
