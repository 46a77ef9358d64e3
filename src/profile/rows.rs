//! The rows of a profile: by method, class, package or thread.

use std::borrow::Cow;
use std::collections::HashMap;

use super::count::flat::{FlatProfile, MethodStat, ThreadStat};
use super::count::selection::ProfileSelection;
use super::count::{add, since};
use super::figures::FigureColumns;
use super::names::{ShownName, TraceNames};
use super::request::{RowKind, SortKey};
use super::source::ProfileSource;
use crate::formats::art_method::{CallAnomalies, Ticks};

/// One row; times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProfileRow {
    /// Dense method index, dense thread index, or number of the class or package.
    pub id: u32,
    pub stat: MethodStat,
}

/// A profile in rows.
#[derive(Debug)]
pub(super) struct ProfileRows {
    pub by: RowKind,
    /// Sorted. Rows without calls are left out.
    pub rows: Vec<ProfileRow>,
    /// The sum over all selected threads of the time from first record to last, ns.
    pub total: Ticks,
    pub columns: FigureColumns,
    pub anomalies: CallAnomalies,
    groups: Vec<String>,
}

impl ProfileRows {
    /// Profiles the selected records. The rows are sorted by `sort`, as a time in `clock`.
    pub(super) fn new(
        trace: ProfileSource<'_, '_>,
        names: &TraceNames<'_, '_>,
        selection: &ProfileSelection,
        by: RowKind,
        sort: SortKey,
        clock: usize,
    ) -> ProfileRows {
        let (flat, groups) = match by {
            RowKind::Method | RowKind::Thread => (trace.flat(selection), Vec::new()),
            RowKind::Class => grouped(trace, selection, |method| names.class(method)),
            RowKind::Package => grouped(trace, selection, |method| names.package(method).into()),
        };
        let mut total = [0; 2];
        flat.threads.iter().for_each(|thread| add(&mut total, thread.total));
        let stats = match by {
            RowKind::Thread => flat.threads.iter().map(thread_row).collect(),
            _ => flat.methods,
        };
        let tick_ns = trace.tick_ns();
        let mut rows: Vec<ProfileRow> = stats
            .into_iter()
            .enumerate()
            .filter(|(_, stat)| !stat.is_empty())
            .map(|(id, stat)| ProfileRow { id: id as u32, stat: in_ns(stat, tick_ns) })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(figure(&row.stat, sort, clock)));
        let total = total.map(|ticks| ticks.saturating_mul(tick_ns));
        ProfileRows { by, rows, total, columns: trace.columns(), anomalies: flat.anomalies, groups }
    }

    /// The name of a row for people. Methods have their parameters as Java types, or their JVM descriptors.
    pub(super) fn shown(&self, names: &TraceNames<'_, '_>, row: &ProfileRow, descriptors: bool) -> ShownName {
        match self.by {
            RowKind::Method => names.shown(row.id, descriptors),
            RowKind::Thread => ShownName::plain(&names.thread(row.id)),
            RowKind::Class | RowKind::Package => ShownName::dotted(&self.label(names, row)),
        }
    }

    /// The name of a row in JSON and CSV. Patterns are matched with it, and comparisons match rows by it.
    pub(super) fn label(&self, names: &TraceNames<'_, '_>, row: &ProfileRow) -> String {
        match self.by {
            RowKind::Method => names.long(row.id),
            RowKind::Thread => names.thread(row.id),
            RowKind::Class | RowKind::Package => {
                self.groups.get(row.id as usize).cloned().unwrap_or_default()
            }
        }
    }
}

/// The figure that `sort` names.
pub(super) fn figure(stat: &MethodStat, sort: SortKey, clock: usize) -> u64 {
    match sort {
        SortKey::Exclusive => stat.exclusive[clock],
        SortKey::Inclusive => stat.inclusive[clock],
        SortKey::Calls => stat.calls + stat.recursive,
    }
}

fn in_ns(stat: MethodStat, tick_ns: u64) -> MethodStat {
    let ns = |ticks: Ticks| ticks.map(|t| t.saturating_mul(tick_ns));
    MethodStat { exclusive: ns(stat.exclusive), inclusive: ns(stat.inclusive), ..stat }
}

/// The figures of a thread: its inclusive time is the whole time, its exclusive time the time in traced
/// methods.
fn thread_row(thread: &ThreadStat) -> MethodStat {
    let exclusive = since(thread.total, thread.idle);
    MethodStat { calls: thread.calls, recursive: 0, exclusive, inclusive: thread.total }
}

/// The flat profile of the groups of methods that `name` gives one name, and the names of the groups.
fn grouped<'n>(
    trace: ProfileSource<'_, '_>,
    selection: &ProfileSelection,
    name: impl Fn(u32) -> Cow<'n, str>,
) -> (FlatProfile, Vec<String>) {
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
    (trace.flat_of_groups(selection, &groups, labels.len()), labels)
}
