//! AOSP's dmtracedump in its own layout: the profile as text and HTML, the difference of two traces, the raw
//! records, the call graph.

mod diff;
pub(crate) mod dot;
mod dump;
mod html;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use self::dot::Picture;
use self::dump::{MethodDump, default_clock, write_records};
use super::error::ProfileError;
use super::profile_run::{ProfileOutput, ProfileReport, check_outputs, open_earlier, open_inputs};
use crate::formats::art_method::{CPU, MethodTrace};
use crate::formats::unpack_budget::UnpackLimit;

/// A request to profile one trace as dmtracedump did.
#[derive(Debug, Clone, Default)]
pub struct DumpRequest {
    /// One trace; or a key file and its data file.
    pub traces: Vec<PathBuf>,
    /// The user's limit on what each file may unpack to.
    pub unpack_limit: UnpackLimit,
    /// Another trace to compare with. It is the first one in the listing.
    pub earlier: Option<PathBuf>,
    /// Prints HTML in place of text.
    pub html: bool,
    /// Prints every record in place of a profile.
    pub records: bool,
    /// The clock: [`CPU`] or [`WALL`](crate::formats::art_method::WALL).
    /// `None` selects thread-CPU time where the trace has it, as the old tool did.
    pub clock: Option<usize>,
    /// A PNG file to draw the call graph into.
    pub graph: Option<PathBuf>,
    /// Keeps the graph's source beside the PNG file, with the ending `.dot`.
    pub keep_graph_source: bool,
    /// Draws methods that have at least this share of their caller's inclusive time, percent.
    pub threshold_percent: u64,
}

/// Makes the outputs that `request` describes, and passes results and messages to `output`.
pub fn run(request: &DumpRequest, output: &mut ProfileOutput<'_>) -> Result<ProfileReport, ProfileError> {
    let source = request.graph.as_deref().filter(|_| request.keep_graph_source).map(source_of);
    let outputs: Vec<&Path> = request.graph.iter().chain(&source).map(PathBuf::as_path).collect();
    check_outputs(&[&request.traces, request.earlier.as_slice()], None, &outputs)?;
    let inputs = open_inputs(&request.traces, &request.unpack_limit, false, output)?;
    let [input] = &inputs[..] else { return Err(ProfileError::SeveralTracesToDump) };
    let mut report = ProfileReport::default();
    let trace = output.read(input, &mut report)?;
    let clock = request.clock.unwrap_or_else(|| default_clock(&trace));
    if request.records {
        output.print(|mut out| write_records(&trace, clock, &mut out))?;
        input.check_whole()?;
        return Ok(report);
    }
    check_times(&input.name, &trace)?;
    let dump = MethodDump::from_trace(&trace, clock);
    let name = &input.name;
    report |= output.report_anomalies(input, &dump.anomalies);
    input.check_whole()?;
    match &request.earlier {
        Some(path) => {
            let input = open_earlier(path, &request.unpack_limit, false, output)?;
            let trace = output.read(&input, &mut report)?;
            check_times(&input.name, &trace)?;
            let earlier = MethodDump::from_trace(&trace, clock);
            report |= output.report_anomalies(&input, &earlier.anomalies);
            input.check_whole()?;
            output.print(|mut out| {
                if request.html {
                    diff::write_html_diff(&earlier, &dump, [&input.name, name], &mut out)
                } else {
                    diff::write_text_diff(&earlier, &dump, &mut out)
                }
            })?;
        }
        None => output.print(|mut out| {
            if request.html {
                html::write_html(&dump, name, &facts(&trace, clock), &mut out)
            } else {
                text::write_text(&dump, &mut out)
            }
        })?,
    }
    if let Some(path) = &request.graph {
        let graph = dot::to_dot(&dump, request.threshold_percent);
        if let Some(source) = &source {
            output.write_file(&[input], source, |out| out.write_all(graph.as_bytes()))?;
        }
        output.write_file(&[input], path, |out| Ok(dot::draw(&graph, Picture::Png, out)?))?;
    }
    Ok(report)
}

/// Every figure of the old tool is a time.
fn check_times(name: &str, trace: &MethodTrace<'_>) -> Result<(), ProfileError> {
    if !trace.header().has_times() {
        return Err(ProfileError::NoTimes { name: name.to_owned(), purpose: "dmtracedump" });
    }
    Ok(())
}

/// A line about a trace.
fn facts(trace: &MethodTrace<'_>, clock: usize) -> String {
    let threads = trace.threads().len();
    let methods = trace.methods().len();
    let clock = if clock == CPU { "CPU time" } else { "wall time" };
    format!("{clock} in µs · {threads} threads · {methods} methods")
}

/// The path of a graph's source: the picture's path with `.dot` appended.
fn source_of(picture: &Path) -> PathBuf {
    let mut source = picture.to_owned().into_os_string();
    source.push(".dot");
    source.into()
}
