//! Writes the requested output files of a profile: folded stacks, flame graphs, call graphs, and files for
//! other viewers.

mod flame_graph;
mod folded;
mod graph_picture;
mod viewers;

use std::io::Write;

use self::flame_graph::FlameGraph;
use self::folded::{FoldedStacks, MAX_DRAWN_BYTES};
use self::graph_picture::GraphPicture;
use self::viewers::{FirefoxUnit, write_firefox, write_speedscope};
use super::count::tree::{CallGraph, CallTree, ROOT};
use super::error::ProfileError;
use super::graphviz;
use super::names::TraceNames;
use super::profile_run::{ProfileOutput, ProfileReport, ProfileRun};
use super::source::ProfileSource;
use crate::formats::art_method::{CPU, CallAnomalies, WALL};
use crate::formats::input::Input;
use crate::text::file_name;

/// Writes the requested output files of one trace.
pub(super) fn write(
    profile: &ProfileRun<'_, '_>,
    output: &mut ProfileOutput<'_>,
) -> Result<ProfileReport, ProfileError> {
    let files = &profile.request.files;
    let mut anomalies = CallAnomalies::default();
    if files.folded.is_some() || files.flamegraph.is_some() {
        let tree = profile.tree();
        check_calls(profile, &tree)?;
        write_stacks(&[ProfiledTree { run: profile, tree: &tree }], output)?;
        anomalies = tree.anomalies;
    }
    if files.dot.is_some() || files.png.is_some() || files.svg.is_some() {
        anomalies = write_graphs(profile, output)?;
    }
    if let Some(path) = &files.pprof {
        let tree = profile.tree();
        check_calls(profile, &tree)?;
        let mut cut = 0;
        output.write_file(&[profile.input], path, |out| {
            cut = viewers::write(profile, &tree, out)?;
            Ok(())
        })?;
        if cut > 0 {
            let most = viewers::MAX_DEPTH;
            let what =
                format!("pprof's file has the innermost {most} levels of calls alone of {cut} deeper paths");
            (output.message)(&profile.input.name, &what);
        }
        anomalies = tree.anomalies;
    }
    if files.speedscope.is_some() || files.firefox.is_some() {
        anomalies = write_viewer_files(profile, output)?;
    }
    Ok(output.report_anomalies(profile.input, &anomalies))
}

/// Writes folded stacks with the times of both traces, and a differential flame graph.
pub(super) fn compare(
    earlier: &ProfileRun<'_, '_>,
    later: &ProfileRun<'_, '_>,
    output: &mut ProfileOutput<'_>,
) -> Result<ProfileReport, ProfileError> {
    let files = &later.request.files;
    if files.folded.is_none() && files.flamegraph.is_none() {
        return Err(ProfileError::NoComparisonInThisOutput);
    }
    let before = earlier.tree();
    let after = later.tree();
    let trees = [ProfiledTree { run: earlier, tree: &before }, ProfiledTree { run: later, tree: &after }];
    if !before.has_calls() {
        check_calls(later, &after)?;
    }
    write_stacks(&trees, output)?;
    let mut report = output.report_anomalies(earlier.input, &before.anomalies);
    report |= output.report_anomalies(later.input, &after.anomalies);
    Ok(report)
}

/// Refuses to write a file of a tree in which there are no calls.
fn check_calls(profile: &ProfileRun<'_, '_>, tree: &CallTree) -> Result<(), ProfileError> {
    if tree.has_calls() { Ok(()) } else { Err(profile.no_calls_to_write()) }
}

/// The error of a flame graph of calls that take no time in its clock.
fn no_time_to_draw(
    profile: &ProfileRun<'_, '_>,
    profiles: &[ProfiledTree<'_, '_, '_>],
    clock: usize,
) -> ProfileError {
    let takes_time = |clock: usize| profiles.iter().any(|p| p.tree.nodes.iter().any(|n| n.own[clock] > 0));
    let names = if clock == WALL { ["wall", "cpu"] } else { ["cpu", "wall"] };
    let reason = if takes_time(1 - clock) {
        format!("no call takes {} time: --clock {} has times to draw", names[0], names[1])
    } else {
        "every call begins and ends at one reading of the clock, so there is no time to draw; \
         `tracebridge profile` without an output counts the calls"
            .to_owned()
    };
    ProfileError::NothingToWrite { name: profile.input.name.clone(), reason }
}

/// A profile and its call tree.
#[derive(Clone, Copy)]
struct ProfiledTree<'r, 't, 'a> {
    run: &'r ProfileRun<'t, 'a>,
    tree: &'r CallTree,
}

/// Writes folded stacks and the flame graph of one profile, or of an earlier and a later one that are
/// compared. A note says where paths end early.
fn write_stacks(
    profiles: &[ProfiledTree<'_, '_, '_>],
    output: &mut ProfileOutput<'_>,
) -> Result<(), ProfileError> {
    let Some(ProfiledTree { run: profile, .. }) = profiles.last().copied() else { return Ok(()) };
    let files = &profile.request.files;
    let inputs: Vec<&Input> = profiles.iter().map(|profile| profile.run.input).collect();
    let compared = profiles.len() > 1;
    if let Some(path) = &files.folded {
        let mut stacks = FoldedStacks::default();
        for (side, ProfiledTree { run, tree }) in profiles.iter().enumerate() {
            let first_names = |thread| thread_names(run, thread);
            stacks.add(tree, &run.names, run.clock, first_names, side);
        }
        let depth = stacks.written_depth();
        output.write_file(&inputs, path, |out| folded::write_folded(&stacks, depth, compared, out))?;
        report_cut_paths(profile, &stacks, depth, "the file of folded stacks", output);
    }
    if let Some(path) = &files.flamegraph {
        let clock = picture_clock(profiles);
        let mut stacks = FoldedStacks::default();
        let mut opens_at = None;
        for (side, ProfiledTree { run, tree }) in profiles.iter().enumerate() {
            let has_groups =
                !compared && clock == WALL && run.tick_ns().is_some() && !run.trace.columns().is_sampled;
            let groups = if has_groups { ThreadGroups::new(run, tree) } else { None };
            let first_names = |thread: u32| {
                let group = groups.as_ref().map(|groups| groups.name(thread).to_owned());
                group.into_iter().chain(thread_names(run, thread)).collect()
            };
            stacks.add(tree, &run.names, clock, first_names, side);
            opens_at = groups.map(|groups| groups.running);
        }
        if stacks.is_empty() {
            return Err(no_time_to_draw(profile, profiles, clock));
        }
        let graph = FlameGraph {
            title: &picture_title(profiles, clock),
            unit: &profile.tick_unit(),
            app: &files.app,
            opens_at: opens_at.as_deref(),
            compared,
        };
        let depth = stacks.depth_within(MAX_DRAWN_BYTES);
        output.write_file(&inputs, path, |out| graph.draw(&stacks, depth, out))?;
        report_cut_paths(profile, &stacks, depth, "the flame graph", output);
    }
    Ok(())
}

/// The names before the outermost method of a thread's paths.
fn thread_names(run: &ProfileRun<'_, '_>, thread: u32) -> Vec<String> {
    if run.request.files.merge_threads { Vec::new() } else { vec![run.names.thread(thread)] }
}

/// The clock of a picture: the requested one, else thread-CPU time where all traces have it and spend it,
/// because most threads wait for most of the wall time.
fn picture_clock(profiles: &[ProfiledTree<'_, '_, '_>]) -> usize {
    let spends_cpu = |ProfiledTree { run, tree }: &ProfiledTree<'_, '_, '_>| {
        run.trace.has_cpu_time() && tree.nodes.iter().any(|node| node.own[CPU] > 0)
    };
    match profiles.last() {
        Some(last) if last.run.request.clock.is_some() => last.run.clock,
        _ if profiles.iter().all(spends_cpu) => CPU,
        Some(last) => last.run.clock,
        None => WALL,
    }
}

/// The files, the threads and the clock of a picture.
fn picture_title(profiles: &[ProfiledTree<'_, '_, '_>], clock: usize) -> String {
    let threads = profiles.last().map_or(String::new(), |ProfiledTree { run, .. }| {
        let all = 0..run.trace.threads().len() as u32;
        let counted: Vec<u32> = all.filter(|thread| run.selection.has_thread(*thread)).collect();
        match &counted[..] {
            [thread] => format!("thread {}", run.names.thread(*thread)),
            several => format!("{} threads", several.len()),
        }
    });
    let has_times = profiles.iter().all(|profile| profile.run.tick_ns().is_some());
    let is_sampled = profiles.iter().any(|profile| profile.run.trace.columns().is_sampled);
    let clock = match clock {
        _ if is_sampled => profiles.last().map_or(String::new(), |profile| profile.run.tick_unit()),
        _ if !has_times => "number of calls".to_owned(),
        WALL => "wall time".to_owned(),
        _ => "CPU time".to_owned(),
    };
    let files: Vec<_> = profiles.iter().rev().map(|profile| file_name(&profile.run.input.name)).collect();
    format!("{} · {threads} · {clock}", files.join(" against "))
}

/// The threads of a profile in two groups, which are the roots of a flame graph.
struct ThreadGroups {
    waiting: Vec<bool>,
    /// The names of the two groups, in the order in which they are drawn.
    running: String,
    idle: String,
}

impl ThreadGroups {
    /// `None` where all threads would be in one group.
    fn new(run: &ProfileRun<'_, '_>, tree: &CallTree) -> Option<ThreadGroups> {
        let waiting = waiting_threads(tree, &run.names, run.trace.has_cpu_time());
        let recorded = |waits: bool| {
            let with_time = waiting.iter().zip(&tree.nodes).filter(|(_, root)| root.recorded[WALL] > 0);
            with_time.filter(|(waiting, _)| **waiting == waits).count()
        };
        let running = recorded(false);
        let idle = recorded(true);
        (running > 0 && idle > 0).then(|| ThreadGroups {
            waiting,
            running: format!("running threads: {running}"),
            idle: format!("waiting threads: {idle}"),
        })
    }

    fn name(&self, thread: u32) -> &str {
        if self.waiting[thread as usize] { &self.idle } else { &self.running }
    }
}

/// Says that paths of an output end at `depth`, if they do.
fn report_cut_paths(
    profile: &ProfileRun<'_, '_>,
    stacks: &FoldedStacks,
    depth: u32,
    file: &str,
    output: &mut ProfileOutput<'_>,
) {
    if stacks.is_deeper_than(depth) {
        let name = &profile.input.name;
        let rule =
            "calls below that are added up as `(deeper calls)`, because each line names its whole path";
        (output.message)(name, &format!("{file} has {depth} levels of calls; {rule}"));
    }
}

/// Writes the call graph and draws it.
fn write_graphs(
    profile: &ProfileRun<'_, '_>,
    output: &mut ProfileOutput<'_>,
) -> Result<CallAnomalies, ProfileError> {
    let files = &profile.request.files;
    let tree = profile.tree();
    check_calls(profile, &tree)?;
    let drawn = [ProfiledTree { run: profile, tree: &tree }];
    let clock = picture_clock(&drawn);
    let picture = GraphPicture {
        graph: &CallGraph::from_tree(&tree, profile.trace.methods().len()),
        names: &profile.names,
        clock,
        tick_ns: profile.tick_ns(),
        title: &picture_title(&drawn, clock),
        threshold_percent: profile.request.threshold_percent,
    };
    let graph = picture.to_dot();
    if let Some(path) = &files.dot {
        output.write_file(&[profile.input], path, |out| out.write_all(graph.as_bytes()))?;
    }
    for (path, picture) in [(&files.png, graphviz::Picture::Png), (&files.svg, graphviz::Picture::Svg)] {
        if let Some(path) = path {
            output.write_file(&[profile.input], path, |out| Ok(graphviz::draw(&graph, picture, out)?))?;
        }
    }
    Ok(tree.anomalies)
}

/// Writes the files for speedscope.app and profiler.firefox.com.
fn write_viewer_files(
    profile: &ProfileRun<'_, '_>,
    output: &mut ProfileOutput<'_>,
) -> Result<CallAnomalies, ProfileError> {
    let files = &profile.request.files;
    let trace = profile.trace;
    let names = &profile.names;
    let title = profile.input.name.as_str();
    let (threads, anomalies) = trace.call_events(&profile.selection, profile.clock);
    if threads.iter().all(|thread| thread.events.is_empty()) {
        return Err(profile.no_calls_to_write());
    }
    if let Some(path) = &files.speedscope {
        let tick_ns = profile.tick_ns();
        let methods = trace.methods().len();
        output.write_file(&[profile.input], path, |out| {
            write_speedscope(&threads, names, methods, title, tick_ns, out)
        })?;
    }
    if let Some(path) = &files.firefox {
        let unit = match (profile.tick_ns(), trace) {
            (Some(tick_ns), _) => FirefoxUnit::Times { tick_ns },
            (None, ProfileSource::Samples(_)) => FirefoxUnit::Counts,
            (None, ProfileSource::Calls(_)) => return Err(profile.no_times("--firefox")),
        };
        let pid = trace.pid().unwrap_or_default();
        output.write_file(&[profile.input], path, |out| {
            write_firefox(&threads, names, title, pid, unit, out)
        })?;
    }
    Ok(anomalies)
}

/// The methods in which a thread sleeps until something happens or a time has passed.
const WAITING_METHODS: [&str; 8] = [
    "android.os.MessageQueue.nativePollOnce",
    "java.lang.Object.wait",
    "java.lang.Thread.parkFor$",
    "java.lang.Thread.sleep",
    "java.lang.VMThread.sleep",
    "jdk.internal.misc.Unsafe.park",
    "libcore.io.Linux.poll",
    "sun.misc.Unsafe.park",
];

/// A thread only waits if it works in less than one part in this many of its wall time.
const MIN_WAITING_RATIO: u64 = 100;

/// For each thread whether it only waits. A thread works while it uses a processor; in a trace without
/// thread-CPU time it works in every method that does not wait by its name.
fn waiting_threads(tree: &CallTree, names: &TraceNames<'_, '_>, has_cpu: bool) -> Vec<bool> {
    let roots = tree.nodes.iter().take_while(|node| node.method == ROOT);
    let (wall, mut work): (Vec<u64>, Vec<u64>) =
        roots.map(|root| (root.recorded[WALL], if has_cpu { root.recorded[CPU] } else { 0 })).unzip();
    if !has_cpu {
        for node in tree.nodes.iter().filter(|node| node.method != ROOT && node.own[WALL] > 0) {
            if !WAITING_METHODS.contains(&names.full(node.method).as_str()) {
                work[node.thread as usize] += node.own[WALL];
            }
        }
    }
    wall.into_iter().zip(work).map(|(wall, work)| work < wall / MIN_WAITING_RATIO).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::art_method::MethodTrace;
    use crate::profile::count::selection::ProfileSelection;
    use crate::profile::count::tree::TreeOptions;
    use crate::profile::source::ProfileSource;

    /// A trace with wall time alone: thread 1 computes for 50 ms of 1 s, thread 2 for 5 ms.
    #[test]
    fn without_cpu_time_the_names_of_methods_say_which_threads_wait() {
        let text = "*version\n3\nclock=wall\nelapsed-time-usec=1000000\n*threads\n1\tmain\n2\tworker\n*methods\n\
                    0x4\ta.B\tc\t()V\tB.java\n0x8\tjava.lang.Object\twait\t()V\tObject.java\n*end\n";
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend_from_slice(b"SLOW\x03\0\x20\0");
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&10u16.to_le_bytes());
        bytes.extend_from_slice(&[0; 14]);
        for thread in [1u16, 2] {
            let wakes = if thread == 1 { 950_000u32 } else { 995_000 };
            for (method, at) in [(4u32, 0), (8, 0), (9, wakes), (5, 1_000_000)] {
                bytes.extend_from_slice(&thread.to_le_bytes());
                bytes.extend_from_slice(&method.to_le_bytes());
                bytes.extend_from_slice(&at.to_le_bytes());
            }
        }
        let trace = MethodTrace::parse(&bytes).unwrap();
        let tree = CallTree::from_trace(&trace, &ProfileSelection::default(), TreeOptions::default());
        assert_eq!(
            waiting_threads(&tree, &TraceNames::new(ProfileSource::Calls(&trace)), false),
            [false, true]
        );
    }
}
