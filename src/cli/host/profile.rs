//! `profile`: a method trace as a profile, in every form that is wanted of it.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use serde_json::{Value, json};

use super::dmtracedump::ClockArg;
use super::method_input;
use crate::cli::{Exit, units};
use crate::formats::art_method::{CallAnomalies, MethodTrace};
use crate::formats::input::Input;
use crate::profile::diff::{self, diff};
use crate::profile::dmtracedump::{Dump, DumpOptions};
use crate::profile::drive::{Selection, WALL};
use crate::profile::graph::CallGraph;
use crate::profile::names::Names;
use crate::profile::print::{self, Calls, Style};
use crate::profile::rows::{By, Row, Rows, Sort, clocks, main_clock};
use crate::profile::tree::{CallTree, TreeOptions};
use crate::profile::tree_print::{self, Threshold};
use crate::profile::{dot, firefox, folded, speedscope, timeline};

/// Profile method traces: where the time goes, by method, class, package or thread
///
/// Reads what Debug.startMethodTracing, `am profile`, DDMS and Android Studio write: versions 1 to 5, streaming or not,
/// gzip or not, damaged or not; NAME.key takes NAME.data along. Prints a table unless another output is asked for;
/// times of a dual-clock trace come in wall and thread-CPU time. "excl" is time in a method alone, "incl" with what
/// it called; of a recursion the outermost call counts. Exit status 3: the trace is damaged, or something had to be worked
/// out (calls without an end, thread ids used twice); stderr says what and how often.
#[derive(Parser)]
#[command(after_help = "Examples:\n  \
    tracebridge profile app.trace --thread main --top 20\n  \
    tracebridge profile app.trace --tree --threshold 5\n  \
    tracebridge profile app.trace --flamegraph flame.svg --clock cpu\n  \
    tracebridge profile after.trace --diff before.trace --by class\n  \
    tracebridge profile release.trace --mapping mapping.txt --method 'com.example.*' --calls")]
pub struct Args {
    /// Method traces, each profiled by itself
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// What a row stands for
    #[arg(long, value_enum, default_value_t = ByArg::Method, help_heading = "Rows")]
    by: ByArg,
    /// What to sort by, largest first
    #[arg(long, value_enum, default_value_t = SortArg::Exclusive, help_heading = "Rows")]
    sort: SortArg,
    /// The clock to sort, draw and cut by; without it wall time where the trace has it
    #[arg(long, value_enum, value_name = "CLOCK", help_heading = "Rows")]
    clock: Option<ClockArg>,
    /// Show this many rows; 0 is all [default: 40 in a table, else all]
    #[arg(long, value_name = "N", help_heading = "Rows")]
    top: Option<usize>,
    /// Show callers and callees of each method, with their shares of its inclusive time
    #[arg(long, help_heading = "Rows")]
    calls: bool,

    /// Only threads whose name has this in it, or whose trace id it is; can be given several times
    #[arg(long, value_name = "NAME", help_heading = "Filters")]
    thread: Vec<String>,
    /// Only time from here on, counted from the trace's start (1.5s, 200ms, 0.75ms)
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Filters")]
    from: Option<Duration>,
    /// Only time up to here, counted from the trace's start (1.5s, 200ms, 0.75ms)
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Filters")]
    to: Option<Duration>,
    /// Only rows whose name has this in it; * stands for anything
    #[arg(long, value_name = "PATTERN", help_heading = "Filters")]
    method: Option<String>,

    /// Compare with this earlier trace: what got slower, faster, new, gone, largest change first
    #[arg(long, value_name = "TRACE")]
    diff: Option<PathBuf>,
    /// R8's or ProGuard's mapping.txt: gives obfuscated names back, with inlined methods and lines
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,

    /// Print the call tree from the threads down
    #[arg(long, help_heading = "Outputs", conflicts_with = "bottom_up")]
    tree: bool,
    /// Print the methods that take the time, each with who called it
    #[arg(long, help_heading = "Outputs")]
    bottom_up: bool,
    /// Leave out of --tree and --bottom-up what is below this share of the whole, and of --dot, --png and --svg what is
    /// below this share of its caller, percent [default: 1 in trees, 20 in graphs]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, help_heading = "Outputs")]
    threshold: Option<f64>,
    /// Print JSON; times in ns
    #[arg(long, help_heading = "Outputs", conflicts_with = "csv")]
    json: bool,
    /// Print CSV; times in ns
    #[arg(long, help_heading = "Outputs")]
    csv: bool,
    /// Write folded stacks to FILE (`-`: stdout), one line a path; times in µs (ns if the trace has ns)
    #[arg(long, value_name = "FILE", help_heading = "Outputs")]
    folded: Option<PathBuf>,
    /// Draw a flame graph; with --diff red is slower and blue is faster
    #[arg(long, value_name = "SVG", help_heading = "Outputs")]
    flamegraph: Option<PathBuf>,
    /// Take all threads together in --folded and --flamegraph
    #[arg(long, help_heading = "Outputs")]
    merge_threads: bool,
    /// Write the call graph for Graphviz
    #[arg(long, value_name = "FILE", help_heading = "Outputs")]
    dot: Option<PathBuf>,
    /// Draw the call graph as PNG (needs Graphviz)
    #[arg(long, value_name = "FILE", help_heading = "Outputs")]
    png: Option<PathBuf>,
    /// Draw the call graph as SVG (needs Graphviz)
    #[arg(long, value_name = "FILE", help_heading = "Outputs")]
    svg: Option<PathBuf>,
    /// Write a file for speedscope.app, calls in time order
    #[arg(long, value_name = "FILE", help_heading = "Outputs")]
    speedscope: Option<PathBuf>,
    /// Write a file for profiler.firefox.com, calls in time order
    #[arg(long, value_name = "FILE", help_heading = "Outputs")]
    firefox: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ByArg {
    /// One method a row, overloads apart
    Method,
    /// All methods of a class together
    Class,
    /// All methods of a package together
    Package,
    /// One thread a row
    Thread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Time in it alone
    #[value(alias = "excl")]
    Exclusive,
    /// Time in it and what it called
    #[value(alias = "incl")]
    Inclusive,
    /// Number of calls
    Calls,
}

/// Rows in a table, where no number is given.
const TABLE_ROWS: usize = 40;

fn parse_percent(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|p| (0.0..=100.0).contains(p)).ok_or_else(|| "percent, 0 to 100".to_owned())
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let mapping = args.mapping.as_deref().map(Input::open).transpose()?;
    let inputs = method_input::open_all(&args.traces)?;
    let before = args.diff.as_deref().map(method_input::open).transpose()?;
    if before.is_some() && inputs.len() > 1 {
        anyhow::bail!("--diff compares one trace with another: name one trace beside it");
    }
    let writes_file = args.writes_file();
    if writes_file && inputs.len() > 1 {
        anyhow::bail!("an output file holds one trace: name one, or print a table, JSON or CSV of several");
    }
    let mut lossy = false;
    let mut all = Vec::new();
    for input in &inputs {
        let trace = method_input::parse(input)?;
        lossy |= method_input::tell(input, trace.report());
        let one = One::new(args, input, &trace, mapping.as_ref())?;
        lossy |= match &before {
            Some(before) => {
                let earlier = method_input::parse(before)?;
                lossy |= method_input::tell(before, earlier.report());
                let earlier = One::new(args, before, &earlier, mapping.as_ref())?;
                one.compare(&earlier, &mut all)?
            }
            None if writes_file => one.write_files()?,
            None => one.print(inputs.len() > 1, &mut all)?,
        };
    }
    if args.json && !writes_file {
        let value = if all.len() == 1 { all.remove(0) } else { Value::Array(all) };
        let mut out = BufWriter::new(std::io::stdout().lock());
        serde_json::to_writer_pretty(&mut out, &value)?;
        writeln!(out)?;
        out.flush()?;
    }
    Ok(if lossy { Exit::Lossy } else { Exit::Complete })
}

impl Args {
    fn writes_file(&self) -> bool {
        let outputs = [
            &self.folded,
            &self.flamegraph,
            &self.dot,
            &self.png,
            &self.svg,
            &self.speedscope,
            &self.firefox,
        ];
        outputs.iter().any(|path| path.is_some())
    }

    fn by(&self) -> By {
        match self.by {
            ByArg::Method => By::Method,
            ByArg::Class => By::Class,
            ByArg::Package => By::Package,
            ByArg::Thread => By::Thread,
        }
    }

    fn style(&self) -> Style {
        let terminal = console::Term::stdout();
        let width = terminal.size_checked().map(|(_, columns)| usize::from(columns));
        Style { width, colour: std::io::stdout().is_terminal() && console::colors_enabled() }
    }
}

/// One trace and what is wanted of it.
struct One<'t, 'a> {
    args: &'t Args,
    input: &'t Input,
    trace: &'t MethodTrace<'a>,
    names: Names<'t, 'a>,
    selection: Selection,
    clock: usize,
}

impl<'t, 'a> One<'t, 'a> {
    fn new(
        args: &'t Args,
        input: &'t Input,
        trace: &'t MethodTrace<'a>,
        mapping: Option<&Input>,
    ) -> anyhow::Result<Self> {
        let clock = args.clock.map_or(main_clock(trace), ClockArg::place);
        if !clocks(trace)[clock] {
            let (other, name) = (trace.header().clock.name(), &input.name);
            anyhow::bail!("{name}: has no such clock; it was recorded with {other}: leave --clock out");
        }
        let names = match mapping {
            Some(mapping) => Names::mapped(trace, mapping).with_context(|| mapping.name.clone())?,
            None => Names::new(trace),
        };
        if mapping.is_some() && names.mapped_count() == 0 {
            eprintln!("tracebridge: {}: the mapping file knows none of its methods", input.name);
        }
        Ok(One { args, input, trace, names, selection: selection(args, input, trace)?, clock })
    }

    fn sort(&self) -> (Sort, usize) {
        let sort = match self.args.sort {
            SortArg::Exclusive => Sort::Exclusive,
            SortArg::Inclusive => Sort::Inclusive,
            SortArg::Calls => Sort::Calls,
        };
        (sort, self.clock)
    }

    fn rows(&self) -> Rows {
        Rows::of(self.trace, &self.names, &self.selection, self.args.by(), self.sort())
    }

    fn tree(&self) -> CallTree {
        CallTree::of(self.trace, &self.selection, TreeOptions::default())
    }

    /// How many rows to show of `all`.
    fn top(&self, all: usize) -> usize {
        let machine = self.args.json || self.args.csv;
        match self.args.top {
            Some(0) => all,
            Some(top) => top.min(all),
            None if machine => all,
            None => TABLE_ROWS.min(all),
        }
    }

    fn print(&self, several: bool, all: &mut Vec<Value>) -> anyhow::Result<bool> {
        let mut out = BufWriter::new(std::io::stdout().lock());
        if self.args.tree || self.args.bottom_up {
            let tree = self.tree();
            self.print_tree(&tree, all, &mut out)?;
            out.flush()?;
            return Ok(self.tell(&tree.problems));
        }
        let rows = self.rows();
        let matching: Vec<Row> = match &self.args.method {
            Some(pattern) => rows
                .rows
                .iter()
                .filter(|row| matches(pattern, &rows.label(&self.names, row)))
                .copied()
                .collect(),
            None => rows.rows.clone(),
        };
        let shown = &matching[..self.top(matching.len())];
        let graph = (self.args.calls && rows.by == By::Method)
            .then(|| CallGraph::of(&self.tree(), self.trace.methods().len()));
        let tick_ns = self.trace.header().tick_ns;
        let calls = graph.as_ref().map(|graph| Calls::new(graph, tick_ns, self.clock));
        if self.args.json {
            let mut value = self.summary(&rows);
            value["rows"] = print::to_json(&rows, shown, &self.names, calls.as_ref());
            all.push(value);
        } else if self.args.csv {
            print::csv(&rows, shown, &self.names, &mut out)?;
        } else {
            let style = self.args.style();
            if several {
                writeln!(out, "\n{}", style.bold(&self.input.name))?;
            }
            self.head(&rows, style, &mut out)?;
            print::table(&rows, shown, &self.names, calls.as_ref(), style, &mut out)?;
            if let Some(more) = matching.len().checked_sub(shown.len()).filter(|n| *n > 0) {
                writeln!(out, "{}", style.dim(&format!("… and {more} more (--top 0 shows all)")))?;
            }
        }
        out.flush()?;
        Ok(self.tell(&rows.problems))
    }

    fn head(&self, rows: &Rows, style: Style, out: &mut impl Write) -> anyhow::Result<()> {
        let (trace, counts) = (self.trace, self.trace.counts());
        let threads = trace.threads().iter().filter(|t| t.records > 0).count();
        let mut line = format!("{}; {} records, {threads} threads", trace.format(), counts.records);
        for (clock, name) in print::CLOCKS.into_iter().filter(|(clock, _)| rows.clocks[*clock]) {
            line += &format!("; {} ms {name} in all threads", print::ms(rows.total[clock]));
        }
        writeln!(out, "{}", style.fit(&line))?;
        let (before, after) = (rows.problems.exits_without_enter, rows.problems.open_at_end);
        if before + after > 0 {
            let line = format!("{before} calls had begun before the trace did, {after} were open at its end");
            writeln!(out, "{}", style.fit(&line))?;
        }
        Ok(())
    }

    fn print_tree(&self, tree: &CallTree, all: &mut Vec<Value>, out: &mut impl Write) -> anyhow::Result<()> {
        let threshold = Threshold { percent: self.args.threshold.unwrap_or(1.0), clock: self.clock };
        let branches = match self.args.tree {
            true => tree_print::top_down(tree, &self.names, threshold),
            false => tree_print::bottom_up(tree, &self.names, threshold),
        };
        let (has, tick_ns) = (clocks(self.trace), self.trace.header().tick_ns);
        if self.args.json {
            all.push(
                json!({ "file": self.input.name, "tree": tree_print::to_json(&branches, has, tick_ns) }),
            );
            return Ok(());
        }
        let whole = tree.nodes.iter().map(|node| node.own[self.clock]).sum();
        tree_print::write(&branches, has, self.clock, whole, tick_ns, self.args.style(), out)?;
        Ok(())
    }

    fn summary(&self, rows: &Rows) -> Value {
        let header = self.trace.header();
        let report = self.trace.report();
        let mut value = json!({
            "file": self.input.name, "format": self.trace.format(), "version": header.version,
            "streaming": header.streaming, "clock": header.clock.name(), "pid": header.pid, "vm": header.vm,
            "counts": self.trace.counts(), "problems": rows.problems, "damage": report.damage, "notes": report.notes,
        });
        for (clock, name) in print::CLOCKS.into_iter().filter(|(clock, _)| rows.clocks[*clock]) {
            value[format!("{name}_total_ns")] = json!(rows.total[clock]);
        }
        value
    }

    /// Says what did not fit together in the records; whether there was anything.
    fn tell(&self, problems: &CallAnomalies) -> bool {
        method_input::tell_problems(self.input, problems)
    }

    fn compare(&self, before: &One<'_, '_>, all: &mut Vec<Value>) -> anyhow::Result<bool> {
        if self.args.writes_file() {
            return self.write_differential(before);
        }
        let (earlier, rows) = (before.rows(), self.rows());
        let mut changes = diff((&earlier, &before.names), (&rows, &self.names), self.sort());
        if let Some(pattern) = &self.args.method {
            changes.retain(|row| matches(pattern, &row.name));
        }
        changes.truncate(self.top(changes.len()));
        let has = [0, 1].map(|clock| rows.clocks[clock] && earlier.clocks[clock]);
        let mut out = BufWriter::new(std::io::stdout().lock());
        if self.args.json {
            let (from, to) = (before.summary(&earlier), self.summary(&rows));
            all.push(json!({ "before": from, "after": to, "rows": diff::to_json(&changes, has) }));
        } else if self.args.csv {
            diff::csv(&changes, has, &mut out)?;
        } else {
            diff::table(&changes, self.sort(), self.args.style(), &mut out)?;
        }
        out.flush()?;
        Ok(before.tell(&earlier.problems) | self.tell(&rows.problems))
    }

    fn write_differential(&self, before: &One<'_, '_>) -> anyhow::Result<bool> {
        let Args { folded: to_folded, flamegraph, merge_threads, .. } = self.args;
        let (earlier, later) = (before.tree(), self.tree());
        let lines = folded::differential(
            &folded::fold(&earlier, &before.names, before.clock, *merge_threads),
            &folded::fold(&later, &self.names, self.clock, *merge_threads),
        );
        if to_folded.is_none() && flamegraph.is_none() {
            anyhow::bail!("--diff goes with a table, --json, --csv, --folded and --flamegraph");
        }
        if let Some(path) = to_folded {
            write_to(path, |out| Ok(lines.iter().try_for_each(|line| writeln!(out, "{line}"))?))?;
        }
        if let Some(path) = flamegraph {
            let title = format!("{} against {}", self.input.name, before.input.name);
            write_to(path, |out| Ok(folded::draw(&lines, &title, self.unit(), out)?))?;
        }
        Ok(before.tell(&earlier.problems) | self.tell(&later.problems))
    }

    fn unit(&self) -> &'static str {
        if self.trace.header().tick_ns == 1 { "ns" } else { "µs" }
    }

    fn write_files(&self) -> anyhow::Result<bool> {
        let args = self.args;
        let mut problems = CallAnomalies::default();
        if args.folded.is_some() || args.flamegraph.is_some() {
            let tree = self.tree();
            problems = tree.problems;
            let lines = folded::fold(&tree, &self.names, self.clock, args.merge_threads);
            if let Some(path) = &args.folded {
                write_to(path, |out| Ok(folded::write_folded(&lines, out)?))?;
            }
            if let Some(path) = &args.flamegraph {
                let clock = if self.clock == WALL { "wall time" } else { "thread-CPU time" };
                let lines: Vec<_> = lines.iter().map(|(path, time)| format!("{path} {time}")).collect();
                let title = format!("{}, {clock}", self.input.name);
                write_to(path, |out| Ok(folded::draw(&lines, &title, self.unit(), out)?))?;
            }
        }
        if args.dot.is_some() || args.png.is_some() || args.svg.is_some() {
            problems = self.write_graphs()?;
        }
        if args.speedscope.is_some() || args.firefox.is_some() {
            let (lanes, found) = timeline::lanes(self.trace, &self.selection, self.clock);
            problems = found;
            let (names, tick_ns) = (&self.names, self.trace.header().tick_ns);
            if let Some(path) = &args.speedscope {
                let methods = self.trace.methods().len();
                write_to(path, |out| {
                    Ok(speedscope::write(&lanes, names, methods, &self.input.name, tick_ns, out)?)
                })?;
            }
            if let Some(path) = &args.firefox {
                let pid = self.trace.header().pid.unwrap_or(0);
                write_to(path, |out| {
                    Ok(firefox::write(&lanes, names, &self.input.name, pid, tick_ns, out)?)
                })?;
            }
        }
        Ok(self.tell(&problems))
    }

    fn write_graphs(&self) -> anyhow::Result<CallAnomalies> {
        let dump = Dump::of(self.trace, DumpOptions { clock: self.clock, html: false });
        let threshold = self.args.threshold.map_or(dot::DEFAULT_THRESHOLD, |percent| percent as u64);
        let mut graph = Vec::new();
        dot::write_dot(&dump, threshold, &mut graph)?;
        if let Some(path) = &self.args.dot {
            write_to(path, |out| Ok(out.write_all(&graph)?))?;
        }
        for (path, picture) in [(&self.args.png, dot::Picture::Png), (&self.args.svg, dot::Picture::Svg)] {
            if let Some(path) = path {
                dot::draw(&graph, picture, path).with_context(|| path.display().to_string())?;
            }
        }
        Ok(dump.problems)
    }
}

fn selection(args: &Args, input: &Input, trace: &MethodTrace<'_>) -> anyhow::Result<Selection> {
    let mut selection = Selection::default();
    if !args.thread.is_empty() {
        let wanted = |label: &str, id: u32| {
            args.thread.iter().any(|want| label.contains(want.as_str()) || want.parse() == Ok(id))
        };
        let threads: Vec<bool> = trace.threads().iter().map(|t| wanted(&t.label(), t.id)).collect();
        if !threads.contains(&true) {
            let wanted = args.thread.join(", ");
            anyhow::bail!("{}: no thread is called {wanted}; --by thread lists them", input.name);
        }
        selection.threads = Some(threads);
    }
    if args.from.is_some() || args.to.is_some() {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let window: Range<u64> = args.from.map_or(0, ns)..args.to.map_or(u64::MAX, ns);
        anyhow::ensure!(window.start < window.end, "--from must lie before --to");
        selection.window = Some(window);
    }
    Ok(selection)
}

/// Whether `name` has `pattern` in it; `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let mut rest = name;
    pattern.split('*').filter(|part| !part.is_empty()).all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

fn write_to(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<Box<dyn Write>>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let to: Box<dyn Write> = match path == Path::new("-") {
        true => Box::new(std::io::stdout().lock()),
        false => Box::new(File::create(path).with_context(|| path.display().to_string())?),
    };
    let mut out = BufWriter::with_capacity(1 << 18, to);
    write(&mut out)?;
    out.flush().with_context(|| path.display().to_string())
}
