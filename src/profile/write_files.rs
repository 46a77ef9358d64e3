//! Writes the requested output files of a profile.

use std::io::Write;

use super::call_events::call_events;
use super::dmtracedump::{MethodDump, dot};
use super::error::ProfileError;
use super::output::{ProfileOutput, ProfileReport};
use super::profile_run::ProfileRun;
use super::writer::ProfileWriter;
use super::{firefox, folded, speedscope};
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
        let lines = folded::differential(
            &folded::fold(&before, &earlier.names, earlier.clock, files.merge_threads),
            &folded::fold(&after, &later.names, later.clock, files.merge_threads),
        );
        if let Some(path) = &files.folded {
            output.write_file(path, |out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        }
        if let Some(path) = &files.flamegraph {
            let title = format!("{} against {}", later.input.name, earlier.input.name);
            output.write_file(path, |out| folded::draw(&lines, &title, later.tick_unit(), out))?;
        }
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
    let lines = folded::fold(&tree, &profile.names, profile.clock, files.merge_threads);
    if let Some(path) = &files.folded {
        output.write_file(path, |out| folded::write_folded(&lines, out))?;
    }
    if let Some(path) = &files.flamegraph {
        let clock = if profile.clock == WALL { "wall time" } else { "thread-CPU time" };
        let lines: Vec<_> = lines.iter().map(|(path, time)| format!("{path} {time}")).collect();
        let title = format!("{}, {clock}", profile.input.name);
        output.write_file(path, |out| folded::draw(&lines, &title, profile.tick_unit(), out))?;
    }
    Ok(tree.anomalies)
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
            dot::draw(&graph, picture, path)
                .map_err(|source| ProfileError::Draw { path: path.display().to_string(), source })?;
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
