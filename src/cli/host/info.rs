//! `info`: prints what a file is, what is in it, and what is missing.

use std::cmp::Reverse;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser;
use schemars::JsonSchema;
use serde::Serialize;

use super::progress_bar::ProgressBar;
use super::{MemoryArgs, print_list};
use crate::cli::{Exit, exit};
use crate::console::{TerminalWriter, complain};
use crate::export::ConversionLosses;
use crate::file_access;
use crate::formats::archive::ArchiveError;
use crate::formats::samples::{SampleEvent, SampleRate, SampleThread};
use crate::formats::video_time;
use crate::formats::{Damage, OpenError, ReadReport, input_files};
use crate::inspect::container::{self, ContainerReport};
use crate::inspect::{
    self, Contents, InputReport, InspectError, MethodTraceReport, RecordingReport, SampleCounts,
    SamplesReport, ThreadReport, VideoReport,
};
use crate::measure::{Deadline, FrameSummary, Launch, LaunchType, Percentiles, TimelineCounts};
use crate::text::{byte_size, utc_time};

/// Say what a file is: format, clocks, counts, losses, damage
///
/// Every file is named by its format. Of a file that tracebridge reads, info prints the clocks, events per
/// CPU, losses, threads, methods and damage. A directory or a zip archive (a bug report, the additional
/// output of a benchmark) is searched, and the traces in it are listed.
///
/// Exit status: 0 whole, 1 cannot be read or is nothing that is read here, 3 read, but events were lost or it
/// is damaged.
#[derive(Parser)]
pub struct InfoArgs {
    /// The files; - is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Write one JSON object a file (docs/schemas/info.json describes it)
    #[arg(long)]
    json: bool,
    /// With --json, add every frame of a recording
    #[arg(long, requires = "json")]
    frames: bool,
    /// Exit with 3 also where nothing is missing, but irregular records had to be interpreted
    #[arg(long)]
    strict: bool,
}

/// Runs `info`.
pub fn run(args: InfoArgs) -> anyhow::Result<Exit> {
    print_reports(&args, &mut TerminalWriter::new(io::stdout().lock())).context("standard output")
}

fn print_reports(args: &InfoArgs, out: &mut dyn Write) -> io::Result<Exit> {
    let mut exit = Exit::Complete;
    for files in input_files(&args.files) {
        let path = &files.path;
        if file_access::is_dir(path) {
            match container::search_directory(path) {
                Ok(found) => {
                    print_container(out, &found, args.json)?;
                    if found.traces.is_empty() {
                        exit = Exit::Failed;
                    }
                }
                Err(error) => {
                    exit = Exit::Failed;
                    print_error(out, path, &format!("{}: {error}", path.display()), args.json)?;
                }
            }
            continue;
        }
        let bar = ProgressBar::of(&files.files());
        let inspected = inspect::inspect_files(&files, &args.memory.limit());
        drop(bar);
        if let Some(archive) = &inspected.archive {
            print_container(out, archive, args.json)?;
        }
        print_reports_of(out, inspected.reports, args, &mut exit)?;
        match (inspected.error, inspected.archive) {
            // The list of its files says what is in the archive.
            (
                Some(InspectError::Open(
                    OpenError::NotRead { .. } | OpenError::Archive(ArchiveError::SeveralTraces { .. }),
                )),
                Some(archive),
            ) => {
                if archive.traces.is_empty() {
                    exit = Exit::Failed;
                }
            }
            (Some(error), _) => {
                exit = Exit::Failed;
                print_error(out, path, &exit::message(&error.into()), args.json)?;
            }
            (None, _) => {}
        }
    }
    out.flush()?;
    Ok(exit)
}

fn print_reports_of(
    out: &mut dyn Write,
    reports: Vec<InputReport>,
    args: &InfoArgs,
    exit: &mut Exit,
) -> io::Result<()> {
    for mut report in reports {
        let is_lossy = report.is_lossy() || args.strict && report.is_irregular();
        if is_lossy && *exit == Exit::Complete {
            *exit = Exit::Lossy;
        }
        if args.json {
            if let (false, Contents::Recording(recording)) = (args.frames, &mut report.contents) {
                recording.every_frame = None;
            }
            print_json(out, &InfoLine::Input(&report))?;
        } else {
            print_report(out, &report)?;
        }
    }
    Ok(())
}

/// One line of `info --json`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum InfoLine<'a> {
    /// A file.
    Input(&'a InputReport),
    /// A directory or an archive.
    Container(&'a ContainerReport),
    /// A file that cannot be read.
    Unread {
        /// The path as given.
        path: &'a Path,
        /// The reason.
        error: &'a str,
    },
}

fn print_json(out: &mut dyn Write, line: &InfoLine<'_>) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_value(line)?)
}

fn print_error(out: &mut dyn Write, path: &Path, error: &str, json: bool) -> io::Result<()> {
    if json {
        print_json(out, &InfoLine::Unread { path, error })
    } else {
        complain(format_args!("tracebridge: {error}"));
        Ok(())
    }
}

/// Prints the traces in a directory or an archive.
fn print_container(out: &mut dyn Write, found: &ContainerReport, json: bool) -> io::Result<()> {
    if json {
        return print_json(out, &InfoLine::Container(found));
    }
    let traces = found.traces.len();
    writeln!(out, "{}: {}, {} files searched, {traces} traces", found.path, found.container, found.files)?;
    for trace in &found.traces {
        writeln!(out, "  {}: {}, {}", trace.path, trace.format, byte_size(trace.bytes))?;
        if let Some(hint) = trace.hint {
            writeln!(out, "    not read here: {hint}")?;
        }
    }
    for note in &found.notes {
        writeln!(out, "  note: {note}")?;
    }
    Ok(())
}

fn print_report(out: &mut dyn Write, report: &InputReport) -> io::Result<()> {
    let packed = report.packed.map(|p| format!(", packed with {p}")).unwrap_or_default();
    writeln!(out, "{}: {}{packed}", report.path, byte_size(report.bytes))?;
    match &report.contents {
        Contents::Recording(recording) => print_recording(out, recording)?,
        Contents::MethodTrace(trace) => print_method_trace(out, trace)?,
        Contents::Samples(samples) => print_samples(out, samples)?,
    }
    print_list(out, report.unpacking_damage.iter().map(damage_line))
}

fn print_recording(out: &mut dyn Write, recording: &RecordingReport) -> io::Result<()> {
    writeln!(out, "  format: {}", recording.format)?;
    writeln!(out, "  clock: {}, {} decimals of a second", recording.clock, recording.precision)?;
    let recorded_on: Vec<&str> =
        [&recording.device, &recording.machine].into_iter().flatten().map(String::as_str).collect();
    if !recorded_on.is_empty() {
        writeln!(out, "  recorded on: {}", recorded_on.join("; "))?;
    }
    if recording.snapshots > 0 {
        let names: Vec<_> = recording.snapshot_clocks.iter().map(|clock| clock.name()).collect();
        writeln!(out, "  clock snapshots: {} of {}", recording.snapshots, names.join(", "))?;
    }
    for (cpu, count) in &recording.report.cpus {
        let gaps =
            if count.gaps > 0 { format!(", {} gaps of unknown size", count.gaps) } else { String::new() };
        writeln!(out, "  CPU {cpu}: {} events, {} lost{gaps}", count.events, count.lost)?;
    }
    if let Some(video) = &recording.video {
        print_video(out, video)?;
        return print_problems(out, &recording.report);
    }
    writeln!(out, "  events: {} of {} kinds", recording.events, recording.event_types.len())?;
    let kinds = recording.event_types.iter().map(|(name, count)| format!("    {count:>10} {name}"));
    print_list(out, kinds)?;
    for line in super::track_event_lines(&recording.report.track_events) {
        writeln!(out, "  {line}")?;
    }
    if !recording.report.unread.is_empty() {
        let packets = ConversionLosses::list(&recording.report.unread);
        writeln!(out, "  only Perfetto outputs can hold: {packets}")?;
    }
    writeln!(out, "  threads known: {}, processes: {}", recording.thread_count, recording.process_count)?;
    if let Some(samples) = &recording.samples {
        print_sample_counts(out, samples)?;
    }
    print_launches(out, recording)?;
    print_frames(out, &recording.frames)?;
    if let Some(TimelineCounts { actual, late }) = recording.timeline_frames {
        writeln!(
            out,
            "    SurfaceFlinger calls {late} of {actual} actual frames late, with those of the display"
        )?;
    }
    print_problems(out, &recording.report)
}

/// Prints the frames of a video of the screen in numbers.
fn print_video(out: &mut dyn Write, video: &VideoReport) -> io::Result<()> {
    let track = match video.track_frames {
        Some(count) => format!("{count} in the video track"),
        None => "no whole index of a video track".to_owned(),
    };
    writeln!(out, "  frames: {} with a time, {track}", video.frames)?;
    writeln!(out, "  length: {}", video_time(video.length_ns))?;
    let seconds = video.wall_start_ns.map(|ts| ts.0 / 1_000_000_000);
    seconds.map_or(Ok(()), |seconds| writeln!(out, "  first frame: {} UTC", utc_time(seconds)))
}

/// Prints the launches of apps: a line each.
fn print_launches(out: &mut dyn Write, recording: &RecordingReport) -> io::Result<()> {
    let launches = &recording.launches;
    let cancelled = recording.cancelled_launches.len();
    if launches.is_empty() && cancelled == 0 {
        return Ok(());
    }
    let by = launches.first().map_or(String::new(), |launch| format!(", found {}", launch.rule.sentence()));
    writeln!(out, "  launches: {}{by}", launches.len())?;
    let ms = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e6));
    let name = |launch: &Launch| match launch.package.as_str() {
        "" => "(no name)".to_owned(),
        package => package.to_owned(),
    };
    let width = launches.iter().map(|launch| name(launch).len()).max().unwrap_or(0).max("app".len());
    if !launches.is_empty() {
        let [at, total, ttid, ttfd] = ["at s", "total ms", "TTID ms", "TTFD ms"];
        writeln!(out, "    {:width$}  type {at:>14} {total:>12} {ttid:>12} {ttfd:>12}", "app")?;
    }
    let first = recording.report.first_ts.unwrap_or_default();
    let line = |launch: &Launch| {
        let launch_type = launch.launch_type.map_or("-", LaunchType::name);
        let at = launch.begin.since(first) as f64 / 1e9;
        let [total, ttid, ttfd] = [launch.duration(), launch.ttid, launch.ttfd].map(ms);
        let cut = launch.cut.map(|cut| format!("  cut at its {}", cut.name())).unwrap_or_default();
        let overlapped = if launch.is_overlapped { "  at the same time as another launch" } else { "" };
        let package = name(launch);
        format!(
            "    {package:width$}  {launch_type:4} {at:>14.6} {total:>12} {ttid:>12} {ttfd:>12}{cut}{overlapped}"
        )
    };
    print_list(out, launches.iter().map(line))?;
    if cancelled > 0 {
        writeln!(out, "    and {cancelled} that came to nothing")?;
    }
    Ok(())
}

/// Prints the frames of each app and layer in numbers.
fn print_frames(out: &mut dyn Write, frames: &[FrameSummary]) -> io::Result<()> {
    if frames.is_empty() {
        return Ok(());
    }
    let count: u64 = frames.iter().map(|of_app| of_app.count).sum();
    let deadline = match frames.iter().find_map(|of_app| of_app.deadline) {
        Some(Deadline::FrameTimeline) => "deadlines of FrameTimeline",
        Some(Deadline::Vsync) => "deadlines worked out from the period of VSYNC",
        None => "no deadlines recorded",
    };
    writeln!(out, "  frames: {count}, {deadline}")?;
    let name = |of_app: &FrameSummary| {
        let layer = of_app.layer.as_ref().map(|layer| format!(" {layer}")).unwrap_or_default();
        format!("{}{layer}", of_app.package)
    };
    let width = frames.iter().map(|of_app| name(of_app).len()).max().unwrap_or(0).max("app".len());
    let columns = format!("{:>7} {:>7} {:>5}", "count", "janky", "slow");
    let spread = |title: &str| format!("{:>27}", format!("{title} 50/90/95/99 % ms"));
    let cpu = spread("CPU");
    let overrun = spread("overrun");
    writeln!(out, "    {:width$} {columns} {cpu} {overrun}", "app")?;
    let spread = |Percentiles { p50, p90, p95, p99 }| {
        [p50, p90, p95, p99].map(|ns: f64| format!("{:.1}", ns / 1e6)).join(" ")
    };
    let line = |of_app: &FrameSummary| {
        let janky = of_app.janky_share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        let cpu = of_app.duration_cpu_ns.map_or("-".to_owned(), spread);
        let overrun = of_app.overrun_ns.map_or("-".to_owned(), spread);
        let name = name(of_app);
        let count = of_app.count;
        let slow = of_app.slow;
        format!("    {name:width$} {count:>7} {janky:>7} {slow:>5} {cpu:>27} {overrun:>27}")
    };
    print_list(out, frames.iter().map(line))
}

fn print_method_trace(out: &mut dyn Write, trace: &MethodTraceReport) -> io::Result<()> {
    let counts = &trace.counts;
    writeln!(out, "  format: {}", trace.format)?;
    match trace.start_clock {
        _ if trace.clock_mode == "none" => {}
        Some(clock) => writeln!(out, "  start: {} ns of {clock}", trace.start_ns)?,
        None => writeln!(out, "  start: {} ns of a clock that the file does not name", trace.start_ns)?,
    }
    if let Some(elapsed) = trace.elapsed_ns {
        writeln!(out, "  duration: {:.6} s, as the header says", elapsed as f64 / 1e9)?;
    }
    if let Some(vm) = &trace.vm {
        writeln!(out, "  runtime: {vm}")?;
    }
    if let Some(pid) = trace.pid {
        writeln!(out, "  process: {pid}")?;
    }
    writeln!(
        out,
        "  records: {} ({} enters, {} exits, {} unrolls)",
        counts.records, counts.enters, counts.exits, counts.unrolls
    )?;
    writeln!(out, "  methods: {} ({} undeclared)", trace.methods, counts.undeclared_methods)?;
    writeln!(out, "  threads: {} ({} undeclared)", trace.threads.len(), counts.undeclared_threads)?;
    if counts.non_ascii_names > 0 {
        writeln!(out, "  names beyond ASCII: {}", counts.non_ascii_names)?;
    }
    let mut threads: Vec<_> = trace.threads.iter().filter(|thread| thread.records > 0).collect();
    threads.sort_by_key(|thread| Reverse(thread.records));
    let line = |thread: &ThreadReport| {
        format!("    {:>10} records: {} (id {})", thread.records, thread.label, thread.id)
    };
    print_list(out, threads.into_iter().map(line))?;
    if trace.overflow {
        let cause = "the buffer was full before the end: methods are missing (data-file-overflow=true)";
        writeln!(out, "  {cause}")?;
    }
    print_problems(out, &trace.report)
}

fn print_samples(out: &mut dyn Write, report: &SamplesReport) -> io::Result<()> {
    writeln!(out, "  format: {}", report.format)?;
    writeln!(out, "  clock: {}", report.clock)?;
    print_sample_counts(out, &report.samples)?;
    print_list(out, report.facts.iter().map(|(key, value)| format!("  {key}: {value}")))?;
    print_problems(out, &report.report)
}

/// Prints the samples of a file in numbers.
fn print_sample_counts(out: &mut dyn Write, samples: &SampleCounts) -> io::Result<()> {
    let throttled = match samples.throttled {
        0 => String::new(),
        times => format!(", sampling was throttled {times} times"),
    };
    writeln!(out, "  samples: {}, {} records lost{throttled}", samples.count, samples.lost)?;
    let event = |event: &SampleEvent| {
        let rate = match event.rate {
            SampleRate::Hz(hz) => format!(", {hz} a second"),
            SampleRate::Period(period) if event.is_time && !event.is_off_cpu => {
                format!(", one in {period} ns")
            }
            SampleRate::Period(period) => format!(", one in {period}"),
            SampleRate::Unknown => String::new(),
        };
        let sum = match (event.is_off_cpu, event.is_time) {
            (true, _) => format!("; {:.6} s not running", event.period as f64 / 1e9),
            (false, true) => format!("; {:.6} s", event.period as f64 / 1e9),
            (false, false) => format!("; {} events", event.period),
        };
        format!("    {:>10} samples: {}{rate}{sum}", event.samples, event.name)
    };
    print_list(out, samples.events.iter().map(event))?;
    writeln!(
        out,
        "  functions: {}, stacks: {}; {:.1} % of the samples lie in a function without a symbol",
        samples.functions, samples.stacks, samples.unsymbolised_percent
    )?;
    writeln!(out, "  sampled threads: {}", samples.threads.len())?;
    let mut threads: Vec<&SampleThread> = samples.threads.iter().collect();
    threads.sort_by_key(|thread| Reverse(thread.samples));
    let line = |thread: &SampleThread| {
        let name = if thread.name.is_empty() { "(no name)" } else { &thread.name };
        format!(
            "    {:>10} samples: {name} (thread {} of process {})",
            thread.samples, thread.tid, thread.pid
        )
    };
    print_list(out, threads.into_iter().map(line))
}

/// Prints the time range, and what is irregular, noteworthy or damaged.
fn print_problems(out: &mut dyn Write, report: &ReadReport) -> io::Result<()> {
    if let (Some(first), Some(last)) = (report.first_ts, report.last_ts) {
        let seconds = last.since(first) as f64 / 1e9;
        writeln!(out, "  from {first} to {last} ns: {seconds:.6} s")?;
    }
    print_list(out, report.losses.iter().map(|loss| format!("  {loss}")))?;
    print_list(out, report.irregular.iter().map(|line| format!("  irregular: {line}")))?;
    print_list(out, report.notes.iter().map(|note| format!("  note: {note}")))?;
    print_list(out, report.damage.iter().map(damage_line))
}

fn damage_line(damage: &Damage) -> String {
    format!("  damage at byte {}: {}", damage.offset, damage.what)
}
