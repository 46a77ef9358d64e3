//! Launches of an app in lines and JSON: one launch, the spread of several, and two sets compared.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::convert::{ConvertError, ConvertRequest};
use super::explain::{FIRST_LAUNCH, explain, known_launches};
use super::runs::{measure, runs_of};
use crate::clock::Timestamp;
use crate::measure::{Comparison, LINES_OF_A_KIND, LaunchSpan, LaunchType, MeasureKind, MeasuredRun, RunSet};
use crate::statistics::{Spread, median};
use crate::why::{Explanation, ExplanationJson, summed_lines};

/// The causes that are printed of launches.
const CAUSE_LINES: usize = 5;
/// The methods and slices that JSON holds.
const JSON_ROWS: usize = 100;

/// A launch and its measures.
pub struct MeasuredLaunch {
    /// The measures of the part between the launch's begin and its end, if there is a launch.
    run: MeasuredRun,
    /// The reasons for the launch's length, where a launch is marked and its main thread's scheduling was
    /// recorded.
    explanation: Option<Explanation>,
}

impl MeasuredLaunch {
    /// Reads a recording with or without its method trace, and measures the first launch in it: up to the end
    /// of the first slice whose name contains `until`, where that is given, else to that of the first frame.
    ///
    /// # Errors
    /// [`ConvertError`] where an input cannot be read.
    pub fn measure(inputs: &[PathBuf], until: Option<&str>) -> Result<MeasuredLaunch, ConvertError> {
        let request = ConvertRequest::to_read(inputs);
        let (run, _) = measure(request.clone(), until)?;
        let explanation = match &run.launch {
            Some(_) => known_launches(explain(request, &FIRST_LAUNCH))?.into_iter().next(),
            None => None,
        };
        Ok(MeasuredLaunch { run, explanation })
    }

    /// Whether the launch ended with the slice that was named.
    pub fn has_named_end(&self) -> bool {
        self.run.launch.as_ref().is_some_and(|span| span.is_named)
    }

    /// The length of what was measured in one line: `a cold launch, 512.000 ms`.
    pub fn short_text(&self) -> String {
        let of_launch = |span: &LaunchSpan| {
            let launch_type = span.launch_type.map(|launch_type| format!("a {} launch", launch_type.name()));
            launch_type.unwrap_or_else(|| "a launch".to_owned())
        };
        let what = self.run.launch.as_ref().map_or_else(|| "no launch is marked".to_owned(), of_launch);
        format!("{what}, {}", ms(self.run.total_ns))
    }

    /// The launch in lines for people: what it was, its times to display and its largest causes. Where no
    /// causes are known, the main thread's states, and what took most.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", self.extent_text(), ms(self.run.total_ns))];
        lines.extend(self.display_line());
        lines.extend(where_time_went(std::slice::from_ref(self)));
        lines
    }

    /// The type of the launch, and its times to display, as far as they are known.
    fn display_line(&self) -> Option<String> {
        let span = self.run.launch.as_ref()?;
        let launch_type = span.launch_type.map(|launch_type| format!("a {} launch", launch_type.name()));
        let ttid = span.ttid.map(|ns| format!("TTID {}", ms(ns)));
        let ttfd = span.ttfd.map(|ns| format!("TTFD {}", ms(ns)));
        let parts: Vec<String> = [launch_type, ttid, ttfd].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("  {}", parts.join(", ")))
    }

    /// The launch for scripts.
    fn json(&self) -> MeasuredLaunchJson<'_> {
        let span = self.run.launch.as_ref();
        let (from, to) =
            span.map_or(("first slice", "last slice"), |span| (span.begins_with, span.ends_with));
        let rows = |kind| rows(std::slice::from_ref(self), kind).into_iter().take(JSON_ROWS).collect();
        MeasuredLaunchJson {
            total_ns: self.run.total_ns,
            from,
            to,
            launch_type: span.and_then(|span| span.launch_type),
            ttid_ns: span.and_then(|span| span.ttid),
            ttfd_ns: span.and_then(|span| span.ttfd),
            main_thread: rows(MeasureKind::State),
            methods: rows(MeasureKind::Method),
            slices: rows(MeasureKind::Slice),
            why: self.explanation.as_ref().map(ExplanationJson::new),
        }
    }

    /// The part of the run that the total time is of.
    fn extent_text(&self) -> String {
        let Some(span) = &self.run.launch else {
            return "no launch is marked; from the main thread's first section to its last".to_owned();
        };
        let from = match span.begins_with {
            "request" => "the request",
            "bind" => "the binding of the app's process",
            _ => "the start of the activity",
        };
        let to = match span.ends_with {
            "named slice" => "the named slice",
            "launch end" => "the end of the launch",
            "activity resumed" => "the end of activityResume (no frame is marked)",
            _ => "its first frame",
        };
        format!("from {from} to {to}")
    }
}

/// A launch for scripts: times in ns.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MeasuredLaunchJson<'a> {
    total_ns: u64,
    /// The mark at which the launch begins.
    from: &'a str,
    /// The mark at which the launch ends.
    to: &'a str,
    /// Null where no mark names the type.
    #[serde(rename = "type")]
    launch_type: Option<LaunchType>,
    /// Time to initial display.
    ttid_ns: Option<u64>,
    /// Time to full display.
    ttfd_ns: Option<u64>,
    /// The main thread's states.
    main_thread: Vec<FigureRow<'a>>,
    /// Own time on all threads.
    methods: Vec<FigureRow<'a>>,
    /// Own time on all threads.
    slices: Vec<FigureRow<'a>>,
    /// The causes; null where no launch is marked, or nothing tells them.
    why: Option<ExplanationJson<'a>>,
}

/// Several launches for scripts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LaunchSetJson<'a> {
    launches: Vec<MeasuredLaunchJson<'a>>,
    /// Null without launches.
    spread: Option<SpreadJson>,
}

#[derive(Serialize, JsonSchema)]
struct SpreadJson {
    least_ns: u64,
    quarter_ns: u64,
    median_ns: u64,
    three_quarters_ns: u64,
    most_ns: u64,
    /// Numbers of runs, from 1.
    outliers: Vec<usize>,
}

/// Several launches of one app.
#[derive(Default)]
pub struct LaunchSet {
    /// In the order in which they were recorded.
    pub launches: Vec<MeasuredLaunch>,
}

impl LaunchSet {
    /// The launches in these files. Files of one directory whose names differ in their endings alone are one
    /// launch: a recording and its method trace.
    ///
    /// # Errors
    /// [`ConvertError`] where a file cannot be read.
    pub fn of_files(files: &[PathBuf]) -> Result<LaunchSet, ConvertError> {
        let launches = runs_of(files).into_iter().map(|inputs| MeasuredLaunch::measure(&inputs, None));
        Ok(LaunchSet { launches: launches.collect::<Result<_, _>>()? })
    }

    /// The median, the spread and the outliers in lines for people.
    pub fn lines(&self) -> Vec<String> {
        let [launch] = &self.launches[..] else { return self.spread_lines() };
        launch.lines()
    }

    fn spread_lines(&self) -> Vec<String> {
        let (Some(first), Some(spread)) = (self.launches.first(), self.spread()) else { return Vec::new() };
        let Spread { least, quarter, median, three_quarters, most, .. } = spread;
        let mut lines = vec![format!(
            "{} launches, {}: median {}, {} to {}, the middle half {} to {}",
            self.launches.len(),
            first.extent_text(),
            ms(median),
            ms(least),
            ms(most),
            ms(quarter),
            ms(three_quarters)
        )];
        let outlier = |run: &usize| format!("run {} ({})", run + 1, ms(self.launches[*run].run.total_ns));
        if !spread.outliers.is_empty() {
            let outliers: Vec<String> = spread.outliers.iter().map(outlier).collect();
            lines.push(format!("  outliers: {}", outliers.join(", ")));
        }
        lines.extend(self.display_lines());
        lines.extend(where_time_went(&self.launches));
        lines
    }

    /// The types of the launches, and their times to display, as far as they are known.
    fn display_lines(&self) -> Vec<String> {
        let spans = || self.launches.iter().filter_map(|launch| launch.run.launch.as_ref());
        let mut types: BTreeMap<&str, usize> = BTreeMap::new();
        for launch_type in spans().filter_map(|span| span.launch_type) {
            *types.entry(launch_type.name()).or_default() += 1;
        }
        let types: Vec<String> = types.into_iter().map(|(name, count)| format!("{count} {name}")).collect();
        let spread = |name: &str, times: Vec<u64>| {
            let Spread { least, median, most, .. } = Spread::new(&times)?;
            Some(format!("{name} median {}, {} to {}", ms(median), ms(least), ms(most)))
        };
        let ttid = spread("TTID", spans().filter_map(|span| span.ttid).collect());
        let ttfd = spread("TTFD", spans().filter_map(|span| span.ttfd).collect());
        let types = (!types.is_empty()).then(|| types.join(", "));
        [types, ttid, ttfd].into_iter().flatten().map(|line| format!("  {line}")).collect()
    }

    /// All launches for scripts, and their spread.
    pub(crate) fn json(&self) -> LaunchSetJson<'_> {
        let spread = self.spread().map(|spread| SpreadJson {
            least_ns: spread.least,
            quarter_ns: spread.quarter,
            median_ns: spread.median,
            three_quarters_ns: spread.three_quarters,
            most_ns: spread.most,
            outliers: spread.outliers.iter().map(|run| run + 1).collect(),
        });
        LaunchSetJson { launches: self.launches.iter().map(MeasuredLaunch::json).collect(), spread }
    }

    fn spread(&self) -> Option<Spread> {
        Spread::new(&self.launches.iter().map(|launch| launch.run.total_ns).collect::<Vec<_>>())
    }

    /// Compares `self` with `old`.
    pub fn compare(self, old: LaunchSet, [old_name, new_name]: [&str; 2]) -> LaunchComparison {
        let set = |set: LaunchSet, title: &str| {
            let runs: Vec<MeasuredRun> = set.launches.into_iter().map(|launch| launch.run).collect();
            RunSet { title: title.to_owned(), shown: RunSet::typical(&runs), runs, start: Timestamp::MIN }
        };
        LaunchComparison(Comparison::new(&set(old, old_name), &set(self, new_name)))
    }
}

/// Two sets of launches compared.
pub struct LaunchComparison(Comparison);

impl LaunchComparison {
    /// The largest changes, in lines for people.
    pub fn lines(&self) -> Vec<String> {
        self.0.lines()
    }

    /// All changes, for scripts: the comparison of docs/report-format.md.
    ///
    /// # Errors
    /// None but those of memory.
    pub fn to_json(&self) -> serde_json::Result<Value> {
        serde_json::to_value(&self.0)
    }
}

/// A measure of all launches: medians.
#[derive(Serialize, JsonSchema)]
struct FigureRow<'a> {
    name: &'a str,
    ns: u64,
    count: u64,
}

/// The rows of a kind, the longest first.
fn rows(launches: &[MeasuredLaunch], kind: MeasureKind) -> Vec<FigureRow<'_>> {
    let names = launches.iter().flat_map(|launch| launch.run.measures.keys());
    let mut names: Vec<&str> = names.filter(|(of, _)| *of == kind).map(|(_, name)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let row = |name| {
        let key = (kind, String::from(name));
        let measures = launches.iter().map(|launch| launch.run.measures.get(&key).copied());
        let (times, counts): (Vec<u64>, Vec<u64>) =
            measures.map(|measure| measure.unwrap_or_default()).map(|m| (m.ns, m.count)).unzip();
        let ns = median(times).unwrap_or_default();
        FigureRow { name, ns, count: median(counts).unwrap_or_default() }
    };
    let mut rows: Vec<FigureRow<'_>> = names.into_iter().map(row).collect();
    rows.sort_by_key(|row| (Reverse(row.ns), row.name));
    rows
}

/// The lines that say where the time went: the causes, where they are known.
fn where_time_went(launches: &[MeasuredLaunch]) -> Vec<String> {
    let causes = why_lines(launches);
    if causes.is_empty() { figures(launches) } else { causes }
}

/// The main thread's states, and the methods and slices that took most.
fn figures(launches: &[MeasuredLaunch]) -> Vec<String> {
    let total = median(launches.iter().map(|launch| launch.run.total_ns)).unwrap_or_default();
    let percent = |ns: u64| if total == 0 { 0.0 } else { ns as f64 * 100.0 / total as f64 };
    let mut lines = Vec::new();
    let states = rows(launches, MeasureKind::State);
    if states.is_empty() {
        lines.push("  main thread: no scheduling events tell its states".to_owned());
    } else {
        let state = |row: &FigureRow<'_>| format!("{} {} ({:.0} %)", row.name, ms(row.ns), percent(row.ns));
        let states: Vec<String> = states.iter().map(state).collect();
        lines.push(format!("  main thread: {}", states.join(", ")));
    }
    for (kind, title) in [(MeasureKind::Method, "methods"), (MeasureKind::Slice, "slices")] {
        let rows = rows(launches, kind);
        if !rows.is_empty() {
            // Threads run beside each other: together they may take longer than the launch.
            lines.push(format!("  {title}, own time on all threads together:"));
        }
        lines.extend(
            rows.iter()
                .take(LINES_OF_A_KIND)
                .map(|row| format!("  {:>14} {:>7}  {}", ms(row.ns), row.count, row.name)),
        );
    }
    lines
}

/// The largest causes of the launches, of all together where there are several.
fn why_lines(launches: &[MeasuredLaunch]) -> Vec<String> {
    let explained: Vec<Explanation> =
        launches.iter().filter_map(|launch| launch.explanation.clone()).collect();
    let Some(mut lines) = summed_lines(&explained, CAUSE_LINES) else { return Vec::new() };
    let title = match explained.len() {
        1 => "  why it took so long (`tracebridge why` says more):".to_owned(),
        several => format!("  why they took so long, all {several} together (`tracebridge why` says more):"),
    };
    lines.insert(0, title);
    lines
}

fn ms(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Tid;
    use crate::measure::Measure;

    fn launch(total_ns: u64, measures: &[(MeasureKind, &str, u64)]) -> MeasuredLaunch {
        let measure = |ns: u64| Measure { ns, count: 1, longest: (ns, Timestamp(0)) };
        let measures = measures.iter().map(|(kind, name, ns)| ((*kind, (*name).to_owned()), measure(*ns)));
        let span = LaunchSpan {
            from: Timestamp(0),
            to: Timestamp(total_ns),
            begins_with: "request",
            ends_with: "launch end",
            is_named: false,
            launch_type: Some(LaunchType::Cold),
            main_tid: Some(Tid(7)),
            ttid: Some(9_000_000),
            ttfd: None,
        };
        let measures = measures.collect();
        let run = MeasuredRun { total_ns, launch: Some(span), measures, ..MeasuredRun::default() };
        MeasuredLaunch { run, explanation: None }
    }

    #[test]
    fn one_launch_without_known_causes_says_where_its_time_went() {
        let measures = [
            (MeasureKind::State, "running", 6_000_000),
            (MeasureKind::State, "sleeping", 4_000_000),
            (MeasureKind::Method, "a.B.run", 3_000_000),
            (MeasureKind::Slice, "inflate", 1_000_000),
        ];
        let lines = launch(10_000_000, &measures).lines();
        assert_eq!(
            lines,
            [
                "from the request to the end of the launch: 10.000 ms",
                "  a cold launch, TTID 9.000 ms",
                "  main thread: running 6.000 ms (60 %), sleeping 4.000 ms (40 %)",
                "  methods, own time on all threads together:",
                "        3.000 ms       1  a.B.run",
                "  slices, own time on all threads together:",
                "        1.000 ms       1  inflate",
            ]
        );
    }

    #[test]
    fn the_spread_of_launches_names_those_that_lie_far_out() {
        let spread = Spread::new(&[10, 11, 12, 13, 14, 60]).unwrap();
        assert_eq!((spread.least, spread.median, spread.most), (10, 12, 60));
        assert_eq!((spread.quarter, spread.three_quarters, spread.outliers), (11, 14, vec![5]));
        assert_eq!(Spread::new(&[10, 11, 60]).unwrap().outliers, Vec::<usize>::new());
        assert_eq!(Spread::new(&[]), None);
        let set =
            LaunchSet { launches: [10, 11, 12, 13, 14, 60].map(|ns| launch(ns * 1_000_000, &[])).into() };
        let lines = set.lines();
        assert!(
            lines[0].starts_with("6 launches, from the request to the end of the launch: median 12.500 ms"),
            "{lines:?}"
        );
        assert_eq!(lines[1], "  outliers: run 6 (60.000 ms)");
        assert_eq!(lines[2], "  6 cold");
        assert_eq!(lines[3], "  TTID median 9.000 ms, 9.000 ms to 9.000 ms");
        assert_eq!(set.launches[5].short_text(), "a cold launch, 60.000 ms");
    }

    #[test]
    fn two_sets_are_compared_by_their_runs() {
        let set = |times: [u64; 5]| LaunchSet { launches: times.map(|ns| launch(ns, &[])).into() };
        let compared = set([20, 21, 22, 23, 24]).compare(set([10, 11, 12, 13, 14]), ["old", "new"]);
        let value = compared.to_json().unwrap();
        assert_eq!((&value["total"]["delta_ns"], &value["total"]["verdict"]), (&10.into(), &"slower".into()));
        assert_eq!(compared.lines()[0], "old: old (5 runs)");
    }
}
