//! The times of the traces of a dataset, from its tables: the same that `export::runs` measures in
//! files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;

use super::dataset_dir::{DatasetDir, Part};
use super::error::DatasetError;
use crate::measure::{FrameFigures, MeasureFilter, MeasureKind, RunTimes, state_name};
use crate::tables::{Cell, Rows, TableFile, TableId};

/// The times of the traces of a dataset that have all of these tags, by day and part.
///
/// # Errors
/// [`DatasetError`].
pub fn run_times(
    dataset: &Path,
    tags: &[(String, String)],
    wanted: &mut MeasureFilter<'_>,
) -> Result<Vec<RunTimes>, DatasetError> {
    let mut all = Vec::new();
    for part in DatasetDir::open(dataset)?.parts()? {
        let mut runs = runs_of(&part, tags)?;
        if runs.is_empty() {
            continue;
        }
        let launches = add_launches(&part, &mut runs, wanted)?;
        let wants = |figure| wanted.kinds.contains(&figure);
        let slices = wants(MeasureKind::Slice) || wants(MeasureKind::Stage);
        let states = wants(MeasureKind::State);
        let methods = wants(MeasureKind::Method);
        if slices {
            add_slices(&part, &launches, &mut runs, wanted)?;
        }
        if states {
            add_states(&part, &launches, &mut runs, wanted)?;
        }
        if wants(MeasureKind::Frame) {
            add_frames(&part, &launches, &mut runs, wanted)?;
        }
        if methods {
            add_methods(&part, &mut runs, wanted)?;
        }
        all.extend(runs.into_runs());
    }
    Ok(all)
}

/// Runs of one part, by the id of the trace, in the order of the part.
#[derive(Default)]
struct PartRuns {
    order: Vec<String>,
    runs: HashMap<String, RunTimes>,
}

impl PartRuns {
    fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn into_runs(mut self) -> Vec<RunTimes> {
        let PartRuns { order, runs } = &mut self;
        order.iter().filter_map(|id| runs.remove(id)).collect()
    }
}

/// The launch of a trace.
struct LaunchRow {
    /// ns of the trace's clock.
    extent: Range<i64>,
    /// The app's main thread; `None` for a warm start.
    utid: Option<i64>,
}

/// A row of some columns of a table.
struct TableRow<'a> {
    table: TableId,
    rows: &'a Rows,
    at: usize,
}

impl<'a> TableRow<'a> {
    fn cell(&self, column: &str) -> Cell<'a> {
        let number = self.table.table().column(column);
        debug_assert!(number.is_some(), "{} has no column {column}", self.table.table().name);
        number.map_or(Cell::Null, |column| self.rows.cell(self.at, column))
    }

    fn text(&self, column: &str) -> &'a str {
        match self.cell(column) {
            Cell::Text(text) => text,
            _ => "",
        }
    }

    fn int(&self, column: &str) -> Option<i64> {
        match self.cell(column) {
            Cell::Int(value) => Some(value),
            _ => None,
        }
    }

    /// From `ts_abs` on as long as `dur`, ns.
    fn span(&self) -> Range<i64> {
        let begin = self.int("ts_abs").unwrap_or(0);
        begin..begin.saturating_add(self.int("dur").unwrap_or(0))
    }
}

/// How long a span is within a launch, ns; the whole span where there is none.
fn length_in(launch: Option<&LaunchRow>, span: Range<i64>) -> u64 {
    let (from, to) = match launch {
        Some(LaunchRow { extent, .. }) => (span.start.max(extent.start), span.end.min(extent.end)),
        None => (span.start, span.end),
    };
    u64::try_from(to.saturating_sub(from)).unwrap_or(0)
}

/// Calls `visit` with each row of a table, of which these columns are read.
fn for_each(
    part: &Part,
    table: TableId,
    columns: &[&str],
    mut visit: impl FnMut(&TableRow<'_>),
) -> Result<(), DatasetError> {
    let file = TableFile::open(&part.dir, table.table())?;
    for rows in file.batches_of(columns) {
        let rows = rows?;
        (0..rows.len()).for_each(|at| visit(&TableRow { table, rows: &rows, at }));
    }
    Ok(())
}

/// The traces of a part that have all of these tags, without their times.
fn runs_of(part: &Part, tags: &[(String, String)]) -> Result<PartRuns, DatasetError> {
    let mut found: HashMap<String, BTreeSet<usize>> = HashMap::new();
    for_each(part, TableId::Tag, &["trace_id", "key", "value"], |row| {
        let is_it = |(_, (key, value)): &(usize, &(String, String))| {
            key == row.text("key") && value == row.text("value")
        };
        for (number, _) in tags.iter().enumerate().filter(is_it) {
            found.entry(row.text("trace_id").to_owned()).or_default().insert(number);
        }
    })?;
    let mut runs = PartRuns::default();
    let columns = ["trace_id", "name", "lost_events", "loss_gaps", "damaged_places"];
    for_each(part, TableId::Trace, &columns, |row| {
        let id = row.text("trace_id");
        if found.get(id).map_or(0, BTreeSet::len) == tags.len() {
            let is_lossy = columns[2..].iter().any(|column| row.int(column) > Some(0));
            let run = RunTimes {
                name: row.text("name").to_owned(),
                identity: id.to_owned(),
                is_lossy,
                ..RunTimes::default()
            };
            runs.order.push(id.to_owned());
            runs.runs.insert(id.to_owned(), run);
        }
    })?;
    Ok(runs)
}

fn add_launches(
    part: &Part,
    runs: &mut PartRuns,
    wanted: &mut MeasureFilter<'_>,
) -> Result<HashMap<String, LaunchRow>, DatasetError> {
    let mut launches = HashMap::new();
    let columns =
        ["trace_id", "utid", "ts_abs", "dur", "begins_with", "ends_with", "type", "ttid_ns", "ttfd_ns"];
    for_each(part, TableId::Launch, &columns, |row| {
        let id = row.text("trace_id");
        let extent = row.span();
        // The first launch of a trace, as in a recording.
        if let Some(run) = runs.runs.get_mut(id)
            && extent.start < extent.end
            && !launches.contains_key(id)
        {
            run.launch_type = Some(row.text("type")).filter(|text| !text.is_empty()).map(str::to_owned);
            for (figure, column) in [(MeasureKind::Ttid, "ttid_ns"), (MeasureKind::Ttfd, "ttfd_ns")] {
                if let Some(ns) = row.int(column).and_then(|ns| u64::try_from(ns).ok()) {
                    run.add(figure, "", ns, wanted);
                }
            }
            run.launch_extent = Some(["begins_with", "ends_with"].map(|column| row.text(column).to_owned()));
            run.add(MeasureKind::Launch, "", length_in(None, extent.clone()), wanted);
            launches.insert(id.to_owned(), LaunchRow { extent, utid: row.int("utid") });
        }
    })?;
    Ok(launches)
}

fn add_frames(
    part: &Part,
    launches: &HashMap<String, LaunchRow>,
    runs: &mut PartRuns,
    wanted: &mut MeasureFilter<'_>,
) -> Result<(), DatasetError> {
    let mut frames: HashMap<String, FrameFigures> = HashMap::new();
    for_each(part, TableId::Frame, &["trace_id", "pid", "duration_cpu_ns", "overrun_ns"], |row| {
        let id = row.text("trace_id");
        let main = launches.get(id).and_then(|launch| launch.utid);
        // A main thread has the number of its process.
        let is_of_app = main.is_none_or(|main| row.int("pid") == Some(main));
        if is_of_app && let Some(ns) = row.int("duration_cpu_ns").and_then(|ns| u64::try_from(ns).ok()) {
            frames.entry(id.to_owned()).or_default().add(ns, row.int("overrun_ns"));
        }
    })?;
    for (id, frames) in frames {
        if let Some(run) = runs.runs.get_mut(&id) {
            run.add_frames(&frames, wanted);
        }
    }
    Ok(())
}

/// A slice whose time is counted without those of the slices in it.
struct TableSlice {
    name: usize,
    ns: u64,
    parent: Option<i64>,
}

/// The slices of one trace: those in a slice may stand before or behind it.
#[derive(Default)]
struct TraceSlices {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    slices: HashMap<i64, TableSlice>,
}

impl TraceSlices {
    fn add(&mut self, row: &TableRow<'_>, ns: u64) {
        let Some(id) = row.int("slice_id") else { return };
        let name = match self.numbers.get(row.text("name")) {
            Some(name) => *name,
            None => {
                self.names.push(row.text("name").to_owned());
                self.numbers.insert(row.text("name").to_owned(), self.names.len() - 1);
                self.names.len() - 1
            }
        };
        self.slices.insert(id, TableSlice { name, ns, parent: row.int("parent_id") });
    }

    fn end(self, run: &mut RunTimes, wanted: &mut MeasureFilter<'_>) {
        let mut inside: HashMap<i64, u64> = HashMap::new();
        for slice in self.slices.values() {
            if let Some(parent) = slice.parent {
                *inside.entry(parent).or_default() += slice.ns;
            }
        }
        let mut times: BTreeMap<usize, u64> = BTreeMap::new();
        for (id, slice) in &self.slices {
            *times.entry(slice.name).or_default() +=
                slice.ns.saturating_sub(inside.get(id).copied().unwrap_or(0));
        }
        for (name, ns) in times {
            run.add(MeasureKind::Slice, &self.names[name], ns, wanted);
        }
    }
}

fn add_slices(
    part: &Part,
    launches: &HashMap<String, LaunchRow>,
    runs: &mut PartRuns,
    wanted: &mut MeasureFilter<'_>,
) -> Result<(), DatasetError> {
    let columns = ["trace_id", "slice_id", "parent_id", "kind", "utid", "name", "depth", "ts_abs", "dur"];
    let mut trace = String::new();
    let mut slices = TraceSlices::default();
    for_each(part, TableId::Slice, &columns, |row| {
        let id = row.text("trace_id");
        if id != trace {
            if let Some(run) = runs.runs.get_mut(&trace) {
                std::mem::take(&mut slices).end(run, wanted);
            }
            id.clone_into(&mut trace);
        }
        let Some(run) = runs.runs.get_mut(id) else { return };
        let launch = launches.get(id);
        let ns = length_in(launch, row.span());
        if launch.is_some() && ns == 0 {
            return;
        }
        match row.text("kind") {
            "thread" => {
                slices.add(row, ns);
                let main = launch.and_then(|launch| launch.utid);
                if row.int("depth") == Some(0) && main.is_some() && row.int("utid") == main {
                    run.add(MeasureKind::Stage, row.text("name"), ns, wanted);
                }
            }
            // A track of a Perfetto trace: its slices need not lie within each other.
            "track" => run.add(MeasureKind::Slice, row.text("name"), ns, wanted),
            _ => {}
        }
    })?;
    if let Some(run) = runs.runs.get_mut(&trace) {
        slices.end(run, wanted);
    }
    Ok(())
}

fn add_states(
    part: &Part,
    launches: &HashMap<String, LaunchRow>,
    runs: &mut PartRuns,
    wanted: &mut MeasureFilter<'_>,
) -> Result<(), DatasetError> {
    for_each(part, TableId::ThreadState, &["trace_id", "utid", "state", "ts_abs", "dur"], |row| {
        let id = row.text("trace_id");
        if let Some((run, launch)) = runs.runs.get_mut(id).zip(launches.get(id))
            && launch.utid.is_some()
            && row.int("utid") == launch.utid
        {
            let ns = length_in(Some(launch), row.span());
            if ns > 0 {
                run.add(MeasureKind::State, state_name(row.text("state")), ns, wanted);
            }
        }
    })
}

fn add_methods(part: &Part, runs: &mut PartRuns, wanted: &mut MeasureFilter<'_>) -> Result<(), DatasetError> {
    let columns = ["trace_id", "method", "wall_exclusive_ns", "cpu_exclusive_ns"];
    for_each(part, TableId::MethodProfile, &columns, |row| {
        if let Some(run) = runs.runs.get_mut(row.text("trace_id")) {
            let ns = row.int("wall_exclusive_ns").or_else(|| row.int("cpu_exclusive_ns"));
            let ns = ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
            run.add(MeasureKind::Method, row.text("method"), ns, wanted);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(extent: Range<i64>) -> LaunchRow {
        LaunchRow { extent, utid: Some(1) }
    }

    #[test]
    fn a_span_counts_as_far_as_it_lies_in_the_launch() {
        assert_eq!(length_in(None, 5..9), 4);
        let launch = launch(10..20);
        for (span, ns) in [(12..15, 3), (5..12, 2), (18..30, 2), (0..100, 10), (0..10, 0), (25..30, 0)] {
            assert_eq!(length_in(Some(&launch), span.clone()), ns, "{span:?}");
        }
        // A damaged table may have a row that ends before it begins.
        assert_eq!(length_in(None, Range { start: 9, end: 5 }), 0);
    }

    /// The times of slices: id, name, ns and parent.
    fn slice_times(slices: &[(i64, &str, u64, Option<i64>)]) -> BTreeMap<String, i64> {
        let mut of_trace = TraceSlices::default();
        for (id, name, ns, parent) in slices {
            let known = of_trace.names.iter().position(|known| known == name);
            let number = known.unwrap_or(of_trace.names.len());
            if known.is_none() {
                of_trace.names.push((*name).to_owned());
            }
            of_trace.slices.insert(*id, TableSlice { name: number, ns: *ns, parent: *parent });
        }
        let mut run = RunTimes::default();
        let kinds = BTreeSet::from([MeasureKind::Slice]);
        of_trace.end(&mut run, &mut MeasureFilter { kinds: &kinds, keep: &mut |_, name| name != "unwanted" });
        assert_eq!(run.measured, kinds);
        run.times.into_iter().map(|((_, name), ns)| (name, ns)).collect()
    }

    #[test]
    fn the_time_of_a_slice_is_without_the_slices_in_it() {
        let times = slice_times(&[
            (1, "outer", 100, None),
            (2, "inner", 30, Some(1)),
            (3, "inner", 20, Some(1)),
            (4, "leaf", 5, Some(3)),
            (5, "unwanted", 7, None),
        ]);
        let expected = [("inner", 45), ("leaf", 5), ("outer", 50)];
        assert_eq!(times, expected.map(|(name, ns)| (name.to_owned(), ns)).into());
    }

    #[test]
    fn a_slice_that_is_shorter_than_the_slices_in_it_took_no_time_of_its_own() {
        // Cut at the launch: of the outer slice less is inside than of the inner one.
        let times =
            slice_times(&[(1, "outer", 10, None), (2, "inner", 30, Some(1)), (3, "orphan", 4, Some(99))]);
        let expected = [("inner", 30), ("orphan", 4), ("outer", 0)];
        assert_eq!(times, expected.map(|(name, ns)| (name.to_owned(), ns)).into());
    }

    #[test]
    fn runs_come_in_the_order_of_their_part() {
        let mut runs = PartRuns::default();
        for id in ["c", "a", "b"] {
            runs.order.push(id.to_owned());
            runs.runs.insert(id.to_owned(), RunTimes { name: id.to_owned(), ..RunTimes::default() });
        }
        runs.order.push("lost".to_owned());
        let names: Vec<String> = runs.into_runs().into_iter().map(|run| run.name).collect();
        assert_eq!(names, ["c", "a", "b"]);
    }
}
