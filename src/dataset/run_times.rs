//! The measures of the traces of a dataset, from its table `measure`: those that `export::runs` measures in
//! files.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::dataset_dir::{DatasetDir, Part};
use super::error::DatasetError;
use crate::formats::{Loss, LossCount, LossKind, LossPlace, Losses};
use crate::measure::{MeasureFilter, MeasureKind, RunTimes};
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
        if !runs.is_empty() {
            add_launches(&part, &mut runs)?;
            add_measures(&part, &mut runs, wanted)?;
            all.extend(runs.into_runs());
        }
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
            let mut losses = Losses::default();
            let [count, gaps] = [columns[2], columns[3]].map(|column| row.int(column).unwrap_or(0));
            let [count, gaps] = [count, gaps].map(|number| u64::try_from(number).unwrap_or(0));
            losses.add_loss(Loss {
                kind: LossKind::CpuEvents,
                place: LossPlace::Recording,
                input: None,
                count: LossCount { count, gaps },
            });
            let run = RunTimes {
                losses,
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

/// Adds the extents and the types of the measured launches: the first one of each trace that has a length.
fn add_launches(part: &Part, runs: &mut PartRuns) -> Result<(), DatasetError> {
    let mut seen = HashSet::new();
    for_each(part, TableId::Launch, &["trace_id", "dur", "begins_with", "ends_with", "type"], |row| {
        let id = row.text("trace_id");
        if let Some(run) = runs.runs.get_mut(id)
            && seen.insert(id.to_owned())
            && row.int("dur") > Some(0)
        {
            run.launch_type = Some(row.text("type")).filter(|text| !text.is_empty()).map(str::to_owned);
            run.launch_extent = Some(["begins_with", "ends_with"].map(|column| row.text(column).to_owned()));
        }
    })
}

fn add_measures(
    part: &Part,
    runs: &mut PartRuns,
    wanted: &mut MeasureFilter<'_>,
) -> Result<(), DatasetError> {
    for_each(part, TableId::Measure, &["trace_id", "kind", "name", "value"], |row| {
        let kind = MeasureKind::ALL.into_iter().find(|kind| kind.name() == row.text("kind"));
        if let Some((run, kind)) = runs.runs.get_mut(row.text("trace_id")).zip(kind) {
            run.add(kind, row.text("name"), row.int("value").unwrap_or(0), wanted);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
