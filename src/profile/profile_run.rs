//! One trace of a request, from its file to the names, the selection and the clock that its outputs are
//! made from; and the place where results, output files and messages go.

use std::io::{self, BufWriter, Write};
use std::ops::BitOrAssign;
use std::path::{Path, PathBuf};

use super::count::selection::ProfileSelection;
use super::count::tree::CallTree;
use super::error::ProfileError;
use super::figures::duration;
use super::names::TraceNames;
use super::request::{PrintForm, ProfileRequest, RecordFilter, SortKey};
use super::rows::ProfileRows;
use super::source::{ProfileSource, SampleProfile};
use crate::formats::art_method::{CallAnomalies, MethodTrace, TracedThread};
use crate::formats::input::Input;
use crate::formats::symbols::SymbolDirectory;
use crate::formats::unpack_budget::UnpackLimit;
use crate::formats::{self, FormatId, InputSet, OpenedInput, ReadReport, files_of, open_all_with_copies};
use crate::ids::Pid;
use crate::output_file::{OutputFile, Readers, SameFile, check_distinct, is_stdout};

/// The number of rows in a table where the request gives none.
const TABLE_ROWS: usize = 40;

/// One trace of a request.
pub(super) struct ProfileRun<'t, 'a> {
    pub request: &'t ProfileRequest,
    pub input: &'t Input,
    pub trace: ProfileSource<'t, 'a>,
    pub names: TraceNames<'t, 'a>,
    pub selection: ProfileSelection,
    /// The clock to sort, draw and cut by: an index into [`crate::formats::art_method::Ticks`].
    pub clock: usize,
}

impl<'t, 'a> ProfileRun<'t, 'a> {
    /// Prepares the profile of `trace`, which was read from `input`.
    pub(super) fn new(
        request: &'t ProfileRequest,
        input: &'t Input,
        trace: ProfileSource<'t, 'a>,
        mapping: Option<&Input>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<Self, ProfileError> {
        let clock = request.clock.unwrap_or_else(|| trace.main_clock());
        let name = || input.name.clone();
        match trace {
            ProfileSource::Calls(trace) => {
                let has_times = trace.header().has_times();
                if !has_times && request.filter.window_ns.is_some() {
                    return Err(ProfileError::NoTimes { name: name(), purpose: "a window of time" });
                }
                if !has_times && request.clock.is_some() {
                    return Err(ProfileError::NoTimes { name: name(), purpose: "--clock" });
                }
                if has_times && !ProfileSource::Calls(trace).columns().has(clock) {
                    let recorded = trace.header().clock.name();
                    return Err(ProfileError::NoSuchClock { name: name(), recorded });
                }
            }
            ProfileSource::Samples(_) if request.clock.is_some() => {
                return Err(ProfileError::SamplesHaveNoClocks { name: name() });
            }
            ProfileSource::Samples(_) => {}
        }
        let names = match mapping {
            Some(mapping) => TraceNames::mapped(trace, mapping)
                .map_err(|source| ProfileError::Mapping { name: mapping.name.clone(), source })?,
            None => TraceNames::new(trace),
        };
        if mapping.is_some() && names.mapped_count() == 0 {
            (output.message)(&input.name, "the mapping file knows none of its methods");
        }
        let selection = selection(&request.filter, input, trace)?;
        for unmatched in
            request.filter.threads.iter().filter(|name| !matching_threads(trace, name).contains(&true))
        {
            (output.message)(&input.name, &format!("no thread is called {unmatched}"));
        }
        if let Some(window) = &selection.window {
            let end = trace.end_ns();
            if window.start >= end {
                let from_s = window.start as f64 / 1e9;
                let end_s = end as f64 / 1e9;
                let text = format!("nothing lies behind --from {from_s} s: the trace ends at {end_s} s");
                (output.message)(&input.name, &text);
            }
        }
        Ok(ProfileRun { request, input, trace, names, selection, clock })
    }

    pub(super) fn rows(&self) -> ProfileRows {
        let kind = self.request.rows.kind;
        ProfileRows::new(self.trace, &self.names, &self.selection, kind, self.sort(), self.clock)
    }

    /// The figure to sort by: without times, calls in place of exclusive times.
    pub(super) fn sort(&self) -> SortKey {
        match self.request.rows.sort {
            SortKey::Exclusive if !self.trace.has_figures() => SortKey::Calls,
            sort => sort,
        }
    }

    /// The unit of times, ns; `None` in a trace without times, where they are numbers of calls.
    pub(super) fn tick_ns(&self) -> Option<u64> {
        self.trace.has_times().then_some(self.trace.tick_ns())
    }

    pub(super) fn tree(&self) -> CallTree {
        self.trace.tree(&self.selection)
    }

    /// The number of rows to print of `all`.
    pub(super) fn shown_rows(&self, all: usize) -> usize {
        match (self.request.rows.limit, self.request.form) {
            (Some(0), _) | (None, PrintForm::Json | PrintForm::Csv) => all,
            (Some(limit), _) => limit.min(all),
            (None, PrintForm::Text) => TABLE_ROWS.min(all),
        }
    }

    /// Says why the selection has no calls; `None` where a message has said so before.
    pub(super) fn no_calls(&self) -> Option<String> {
        let selection = &self.selection;
        if self.trace.records() == 0 {
            return Some("the trace has no records".to_owned());
        }
        let whose = if selection.threads.is_some() { " of the selected threads" } else { "" };
        let Some(window) = &selection.window else {
            return Some(format!(
                "no call{whose} is in the trace; --by thread lists the threads that have calls"
            ));
        };
        let end = self.trace.end_ns();
        let time = |ns: u64| duration(ns).trim_end().to_owned();
        let until = if window.end < u64::MAX { time(window.end) } else { "the end".to_owned() };
        (window.start < end).then(|| {
            let from = time(window.start);
            let end = time(end);
            format!("no call{whose} lies between {from} and {until}; the trace ends at {end}")
        })
    }

    /// The error of an output file of a selection that has no calls.
    pub(super) fn no_calls_to_write(&self) -> ProfileError {
        let reason = self.no_calls().unwrap_or_else(|| "there is no call to write".to_owned());
        ProfileError::NothingToWrite { name: self.input.name.clone(), reason }
    }

    /// The error of a request that needs times, for a trace that has none.
    pub(super) fn no_times(&self, purpose: &'static str) -> ProfileError {
        ProfileError::NoTimes { name: self.input.name.clone(), purpose }
    }

    /// The unit of the trace's ticks.
    pub(super) fn tick_unit(&self) -> String {
        match (self.trace, self.tick_ns()) {
            (ProfileSource::Samples(samples), _) => samples.unit(),
            (_, None) => "calls".to_owned(),
            (_, Some(1)) => "ns".to_owned(),
            (_, Some(_)) => "µs".to_owned(),
        }
    }
}

fn selection(
    filter: &RecordFilter,
    input: &Input,
    trace: ProfileSource<'_, '_>,
) -> Result<ProfileSelection, ProfileError> {
    let mut selection = ProfileSelection { threads: None, window: filter.window_ns.clone() };
    if !filter.threads.is_empty() {
        let mut threads = vec![false; trace.threads().len()];
        for wanted in &filter.threads {
            let matching = matching_threads(trace, wanted);
            threads.iter_mut().zip(matching).for_each(|(selected, matches)| *selected |= matches);
        }
        if !threads.contains(&true) {
            return Err(ProfileError::NoSuchThread {
                name: input.name.clone(),
                requested: filter.threads.join(", "),
            });
        }
        selection.threads = Some(threads);
    }
    if filter.window_ns.as_ref().is_some_and(|window| window.is_empty()) {
        return Err(ProfileError::EmptyWindow);
    }
    Ok(selection)
}

/// The word that selects the main thread.
const MAIN: &str = "main";

/// For each thread of the trace whether `wanted` names it: a part of its name, its id in the trace, or `main`
/// for the main thread.
fn matching_threads(trace: ProfileSource<'_, '_>, wanted: &str) -> Vec<bool> {
    let threads = trace.threads();
    if wanted == MAIN {
        let main = main_thread(threads, trace.pid());
        return (0..threads.len()).map(|thread| Some(thread) == main).collect();
    }
    let matches =
        |thread: &TracedThread<'_>| thread.label().contains(wanted) || wanted.parse() == Ok(thread.id);
    threads.iter().map(matches).collect()
}

/// The index of the main thread: the thread whose id is the process's; without one the thread that is called
/// `main`; without one the thread with the lowest id. Runtimes from before May 2023 write the kernel's tids,
/// cut to 16 bits, and the main thread's tid is the pid. Later ones count threads from 1 as they start.
fn main_thread(threads: &[TracedThread<'_>], pid: Option<Pid>) -> Option<usize> {
    let pid = pid.and_then(|Pid(pid)| u32::try_from(pid).ok());
    let is_process =
        |t: &TracedThread<'_>| !t.reused_id && pid.is_some_and(|pid| t.id == pid || t.id == pid & 0xffff);
    let by_id = || (0..threads.len()).min_by_key(|thread| threads[*thread].id);
    threads
        .iter()
        .position(is_process)
        .or_else(|| threads.iter().position(|thread| thread.name == MAIN))
        .or_else(by_id)
}

/// The size of an output file's buffer, bytes: 256 KiB.
const FILE_BUFFER_BYTES: usize = 1 << 18;

/// Receives the results and the messages of a profile.
pub struct ProfileOutput<'o> {
    /// Receives the printed results: tables, JSON, CSV, and output files whose path is `-`.
    pub results: &'o mut dyn Write,
    /// Receives one message after another: damage, irregularities and notes. The first text is the file's
    /// name.
    pub message: &'o mut dyn FnMut(&str, &str),
}

/// The outcome of a profile that was made and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfileReport {
    /// Whether a trace is damaged, or records had to be left out. The messages name the damage.
    pub lossy: bool,
    /// Whether irregular records had to be interpreted. The messages name the irregularities with their
    /// counts; nothing is missing because of them.
    pub irregular: bool,
    /// Whether there was anything to show or write. The messages say why there was not.
    pub has_results: bool,
}

impl BitOrAssign for ProfileReport {
    fn bitor_assign(&mut self, other: ProfileReport) {
        self.lossy |= other.lossy;
        self.irregular |= other.irregular;
        self.has_results |= other.has_results;
    }
}

impl ProfileOutput<'_> {
    /// Opens the trace in `input` and reports its damage, its irregularities and its notes.
    pub(super) fn read<'i>(
        &mut self,
        input: &'i Input,
        report: &mut ProfileReport,
    ) -> Result<MethodTrace<'i>, ProfileError> {
        let trace = MethodTrace::parse(input)
            .map_err(|source| ProfileError::Trace { name: input.name.clone(), source })?;
        *report |= self.report_reading(input, trace.report());
        Ok(trace)
    }

    /// Reports the damage, the irregularities and the notes from reading a file.
    pub(super) fn report_reading(&mut self, input: &Input, report: &ReadReport) -> ProfileReport {
        for damage in input.damage.iter().chain(&report.damage) {
            (self.message)(&input.name, &format!("damaged at offset {}: {}", damage.offset, damage.what));
        }
        for loss in report.account().iter() {
            (self.message)(&input.name, &loss.to_string());
        }
        for line in report.irregular.iter().chain(&report.notes) {
            (self.message)(&input.name, line);
        }
        ProfileReport {
            lossy: !input.damage.is_empty() || report.is_lossy(),
            irregular: !report.irregular.is_empty(),
            has_results: false,
        }
    }

    /// Reports the irregularities of the calls.
    pub(super) fn report_anomalies(&mut self, input: &Input, anomalies: &CallAnomalies) -> ProfileReport {
        let mut report = ReadReport::default();
        report.add_anomalies(anomalies);
        report.losses.iter().for_each(|loss| (self.message)(&input.name, &loss.to_string()));
        report.irregular.iter().for_each(|line| (self.message)(&input.name, line));
        ProfileReport { lossy: anomalies.are_lossy(), irregular: anomalies.any(), has_results: true }
    }

    /// Prints results.
    pub(super) fn print(
        &mut self,
        print: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), ProfileError> {
        print(self.results).and_then(|()| self.results.flush()).map_err(ProfileError::Print)
    }

    /// Writes an output file about the traces in `inputs`; `-` prints it.
    ///
    /// The file is left as it was if one of the traces has become shorter since it was opened: some of what
    /// was read may have been zeros.
    pub(super) fn write_file(
        &mut self,
        inputs: &[&Input],
        path: &Path,
        write: impl FnOnce(&mut BufWriter<Box<dyn Write + '_>>) -> io::Result<()>,
    ) -> Result<(), ProfileError> {
        let failed = |source| ProfileError::write_file(path, source);
        let begin = || OutputFile::create(path, Readers::AsTarget);
        let file = if is_stdout(path) { None } else { Some(begin().map_err(failed)?) };
        let out: Box<dyn Write + '_> = match &file {
            Some(file) => Box::new(file.file()),
            None => Box::new(&mut *self.results),
        };
        let mut out = BufWriter::with_capacity(FILE_BUFFER_BYTES, out);
        let written = write(&mut out).and_then(|()| out.flush());
        drop(out);
        inputs.iter().try_for_each(|input| input.check_whole())?;
        written.and_then(|()| file.map_or(Ok(()), OutputFile::commit)).map_err(failed)
    }
}

/// Opens the method traces in these files. Files that are not profiled are named in messages.
pub(super) fn open_inputs(
    paths: &[PathBuf],
    limit: &UnpackLimit,
    takes_samples: bool,
    output: &mut ProfileOutput<'_>,
) -> Result<Vec<Input>, ProfileError> {
    let InputSet { inputs, omissions } = open_all_with_copies(paths, limit)?;
    for omission in omissions {
        (output.message)(&omission.name, &omission.reason.to_string());
    }
    let mut traces = Vec::new();
    let mut recordings = Vec::new();
    for input in inputs {
        match formats::identify(&input) {
            Ok(FormatId::MethodTrace) | Err(_) => traces.push(input),
            Ok(format) if takes_samples && format.holds_samples() => traces.push(input),
            Ok(format) => {
                let contents = |opened: OpenedInput<'_>| {
                    (opened.contained_inputs(&input.name), takes_samples && opened.samples().is_some())
                };
                let (inside, has_samples) = formats::open(&input).map_or((Vec::new(), false), contents);
                match (inside.is_empty(), has_samples) {
                    (true, true) => traces.push(input),
                    (true, false) => recordings.push((input, format)),
                    (false, true) => (output.message)(
                        &input.name,
                        "its method traces are profiled; the samples that it also holds are left out",
                    ),
                    (false, false) => {}
                }
                traces.extend(inside);
            }
        }
    }
    for (input, format) in recordings {
        // An archive is opened for its method traces; the recording beside them is not meant.
        if !input.is_member || traces.is_empty() {
            return Err(ProfileError::NoMethodTrace { name: input.name, format });
        }
        (output.message)(
            &input.name,
            &format!("is left out: a file of the format {format} holds no method calls"),
        );
    }
    Ok(traces)
}

/// Opens the trace that others are compared with.
pub(super) fn open_earlier(
    path: &Path,
    limit: &UnpackLimit,
    takes_samples: bool,
    output: &mut ProfileOutput<'_>,
) -> Result<Input, ProfileError> {
    let mut inputs = open_inputs(&[path.to_owned()], limit, takes_samples, output)?;
    match inputs.pop() {
        Some(input) if inputs.is_empty() => Ok(input),
        _ => Err(ProfileError::SeveralTracesToCompare),
    }
}

/// An input, opened and read as far as its kind needs it.
pub(super) enum ProfileInput<'i> {
    Calls(Box<MethodTrace<'i>>),
    Samples(Box<SampleProfile>),
}

impl<'i> ProfileInput<'i> {
    pub(super) fn read(
        input: &'i Input,
        request: &ProfileRequest,
        symbols: Option<&SymbolDirectory>,
        output: &mut ProfileOutput<'_>,
        report: &mut ProfileReport,
    ) -> Result<ProfileInput<'i>, ProfileError> {
        if !formats::identify(input).is_ok_and(|format| format != FormatId::MethodTrace) {
            if symbols.is_some() {
                return Err(ProfileError::SymbolsForCalls { name: input.name.clone() });
            }
            return Ok(ProfileInput::Calls(Box::new(output.read(input, report)?)));
        }
        let opened = formats::open(input)?;
        let Some(recording) = opened.samples() else {
            let format = formats::identify(input).unwrap_or(FormatId::PerfData);
            return Err(ProfileError::NoMethodTrace { name: input.name.clone(), format });
        };
        let samples = SampleProfile::read(recording.as_ref(), input, request, symbols)?;
        *report |= output.report_reading(input, &samples.report);
        Ok(ProfileInput::Samples(Box::new(samples)))
    }

    pub(super) fn source(&self) -> ProfileSource<'_, 'i> {
        match self {
            ProfileInput::Calls(trace) => ProfileSource::Calls(trace),
            ProfileInput::Samples(samples) => ProfileSource::Samples(samples),
        }
    }
}

/// Checks that no output is the mapping file or a file of one of these lists of traces, and that no two
/// outputs have one name.
///
/// # Errors
/// [`SameFile`].
pub(super) fn check_outputs(
    traces: &[&[PathBuf]],
    mapping: Option<&Path>,
    outputs: &[&Path],
) -> Result<(), SameFile> {
    let files: Vec<PathBuf> = traces.iter().flat_map(|paths| files_of(paths)).collect();
    let read: Vec<&Path> = files.iter().map(PathBuf::as_path).chain(mapping).collect();
    check_distinct(&read, outputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::IDENTIFICATIONS;

    fn main_of(threads: &[(u32, &'static str)], pid: Option<Pid>) -> Option<&'static str> {
        let traced = |(id, name): &(u32, &'static str)| TracedThread {
            id: *id,
            name: (*name).into(),
            declared: true,
            reused_id: false,
            records: 1,
        };
        let traced: Vec<_> = threads.iter().map(traced).collect();
        main_thread(&traced, pid).map(|thread| threads[thread].1)
    }

    #[test]
    fn the_main_thread_is_found_whatever_its_name() {
        assert_eq!(
            main_of(&[(3_171, "main"), (3_142, "com.example.app")], Some(Pid(3_142))),
            Some("com.example.app")
        );
        assert_eq!(
            main_of(&[(9, "x"), (4_464, "cut to 16 bits")], Some(Pid(70_000))),
            Some("cut to 16 bits")
        );
        assert_eq!(
            main_of(&[(1, "Signal Catcher"), (2, "main"), (3, "mainloop")], Some(Pid(70_000))),
            Some("main")
        );
        assert_eq!(main_of(&[(4, "worker"), (2, "example.app"), (3, "pool")], None), Some("example.app"));
        assert_eq!(main_of(&[], Some(Pid(1))), None);
    }

    #[test]
    fn each_trace_is_identified_once() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["1.trace", "2.trace"].map(|name| dir.path().join(name));
        for path in &paths {
            std::fs::write(path, format!("*version\n3\npid={}\n*end\n", path.display())).unwrap();
        }
        let mut message = |_: &str, _: &str| {};
        let mut output = ProfileOutput { results: &mut std::io::sink(), message: &mut message };
        let before = IDENTIFICATIONS.get();
        let inputs = open_inputs(&paths, &UnpackLimit::default(), true, &mut output).unwrap();
        for input in &inputs {
            output.read(input, &mut ProfileReport::default()).unwrap();
        }
        assert_eq!((inputs.len(), IDENTIFICATIONS.get() - before), (2, 2));
    }
}
