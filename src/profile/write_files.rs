//! Writes the requested output files of a profile.

use std::io::Write;

use super::call_events::call_events;
use super::dmtracedump::{MethodDump, dot};
use super::error::ProfileError;
use super::folded::{self, FoldedStacks, MAX_DRAWN_BYTES};
use super::output::{ProfileOutput, ProfileReport};
use super::profile_run::ProfileRun;
use super::writer::ProfileWriter;
use super::{firefox, speedscope};
use crate::formats::art_method::{CallAnomalies, WALL};

/// Writes the requested output files.
pub(super) struct ProfileFileWriter;

impl ProfileWriter for ProfileFileWriter {
    fn write(
        &mut self,
        profile: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<ProfileReport, ProfileError> {
        let files = &profile.request.files;
        let mut anomalies = CallAnomalies::default();
        if files.folded.is_some() || files.flamegraph.is_some() {
            anomalies = write_stacks(profile, output)?;
        }
        if files.dot.is_some() || files.png.is_some() || files.svg.is_some() {
            anomalies = write_graphs(profile, output)?;
        }
        if files.speedscope.is_some() || files.firefox.is_some() {
            anomalies = write_viewer_files(profile, output)?;
        }
        Ok(output.report_anomalies(profile.input, &anomalies))
    }

    /// Writes folded stacks with the times of both traces, and a differential flame graph.
    fn compare(
        &mut self,
        earlier: &ProfileRun<'_, '_>,
        later: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<ProfileReport, ProfileError> {
        let files = &later.request.files;
        if files.folded.is_none() && files.flamegraph.is_none() {
            return Err(ProfileError::NoComparisonInThisOutput);
        }
        let (before, after) = (earlier.tree(), later.tree());
        let mut stacks = FoldedStacks::of(&before, &earlier.names, earlier.clock, files.merge_threads);
        stacks.add(&after, &later.names, later.clock, files.merge_threads, 1);
        let title = format!("{} against {}", later.input.name, earlier.input.name);
        write_folded_files(later, &stacks, true, &title, output)?;
        let (before, after) = (&before.anomalies, &after.anomalies);
        Ok(output.report_anomalies_of_both((earlier.input, before), (later.input, after)))
    }

    fn finish(&mut self, _: &mut ProfileOutput<'_>) -> Result<(), ProfileError> {
        Ok(())
    }
}

/// Writes folded stacks and the flame graph.
fn write_stacks(
    profile: &ProfileRun<'_, '_>,
    output: &mut ProfileOutput<'_>,
) -> Result<CallAnomalies, ProfileError> {
    let files = &profile.request.files;
    let tree = profile.tree();
    let stacks = FoldedStacks::of(&tree, &profile.names, profile.clock, files.merge_threads);
    let clock = if profile.clock == WALL { "wall time" } else { "thread-CPU time" };
    let title = format!("{}, {clock}", profile.input.name);
    write_folded_files(profile, &stacks, false, &title, output)?;
    Ok(tree.anomalies)
}

/// Writes folded stacks and the flame graph of one profile, or of two that are compared. A note says where
/// paths end early.
fn write_folded_files(
    profile: &ProfileRun<'_, '_>,
    stacks: &FoldedStacks,
    compared: bool,
    title: &str,
    output: &mut ProfileOutput<'_>,
) -> Result<(), ProfileError> {
    let files = &profile.request.files;
    if let Some(path) = &files.folded {
        let depth = stacks.written_depth();
        output.write_file(path, |out| folded::write_folded(stacks, depth, compared, out))?;
        report_cut_paths(profile, stacks, depth, "the file of folded stacks", output);
    }
    if let Some(path) = &files.flamegraph {
        let depth = stacks.depth_within(MAX_DRAWN_BYTES);
        let unit = profile.tick_unit();
        output.write_file(path, |out| folded::draw(stacks, depth, compared, title, unit, out))?;
        report_cut_paths(profile, stacks, depth, "the flame graph", output);
    }
    Ok(())
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
        (output.message)(&format!("{name}: {file} has {depth} levels of calls; {rule}"));
    }
}

/// Writes the call graph and draws it.
fn write_graphs(
    profile: &ProfileRun<'_, '_>,
    output: &mut ProfileOutput<'_>,
) -> Result<CallAnomalies, ProfileError> {
    let files = &profile.request.files;
    let dump = MethodDump::of(profile.trace, profile.clock);
    let threshold =
        profile.request.threshold_percent.map_or(dot::DEFAULT_THRESHOLD_PERCENT, |percent| percent as u64);
    let graph = dot::to_dot(&dump, threshold);
    if let Some(path) = &files.dot {
        output.write_file(path, |out| out.write_all(graph.as_bytes()))?;
    }
    for (path, picture) in [(&files.png, dot::Picture::Png), (&files.svg, dot::Picture::Svg)] {
        if let Some(path) = path {
            output.write_file(path, |out| Ok(dot::draw(&graph, picture, out)?))?;
        }
    }
    Ok(dump.anomalies)
}

/// Writes the files for speedscope.app and profiler.firefox.com.
fn write_viewer_files(
    profile: &ProfileRun<'_, '_>,
    output: &mut ProfileOutput<'_>,
) -> Result<CallAnomalies, ProfileError> {
    let files = &profile.request.files;
    let (trace, names, title) = (profile.trace, &profile.names, profile.input.name.as_str());
    let (threads, anomalies) = call_events(trace, &profile.selection, profile.clock);
    let tick_ns = trace.header().tick_ns;
    if let Some(path) = &files.speedscope {
        let methods = trace.methods().len();
        output.write_file(path, |out| speedscope::write(&threads, names, methods, title, tick_ns, out))?;
    }
    if let Some(path) = &files.firefox {
        let pid = trace.header().pid.unwrap_or(0);
        output.write_file(path, |out| firefox::write(&threads, names, title, pid, tick_ns, out))?;
    }
    Ok(anomalies)
}
