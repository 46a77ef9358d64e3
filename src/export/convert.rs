//! `merge` and `convert` as one library call: opens inputs, puts them on one clock, and writes one file.

use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;

use super::critical_path::WithCriticalPaths;
use super::held_memory::{HeldLimit, is_over_held_limit};
use super::report_page::PageVideos;
use super::{
    ConversionLosses, Create, FORMATS, NamedOut, Out, OutputFormat, TABLES_ENDING, formats_that_hold,
    perfetto,
};
use crate::art::{Mapping, MappingError};
use crate::clock::Clock;
use crate::formats::chrome_json::ChromeJsonTrace;
use crate::formats::input::{Input, InputError};
use crate::formats::unpack_budget::UnpackLimit;
use crate::formats::{
    Damage, FormatId, InputSet, OpenError, ReadReport, Recording, files_of, has_format, open_all,
};
use crate::output_file::{OutputFile, Readers, SameFile, check_distinct, is_stdout};
use crate::timeline::{
    self, DataKind, Deobfuscator, InputSummary, MergeError, MergeOptions, MergeSummary, PlaceBasis,
    TimelineSink, Verdict, WindowError, WindowFilter, WindowRequest,
};
use crate::tracks::TrackBuilder;
use crate::why::ModelCollector;

impl ConvertError {
    /// Whether the output would have to keep more in memory than it may.
    pub(crate) fn is_over_held_limit(&self) -> bool {
        matches!(self, ConvertError::Merge(MergeError::Io(error)) if is_over_held_limit(error))
    }
}

/// A request to convert inputs to one output file.
#[derive(Debug, Clone)]
pub struct ConvertRequest<'a> {
    /// Paths of the inputs; `-` is standard input.
    pub inputs: &'a [PathBuf],
    /// Path of the output; `-` is standard output.
    pub output: &'a Path,
    /// The name of the format to write; `None` chooses the format by the output's ending.
    pub format: Option<&'a str>,
    /// A mapping file of R8 or ProGuard, with which obfuscated names are replaced.
    pub mapping: Option<&'a Path>,
    /// Writes only what tracebridge reads of a Perfetto trace to a Perfetto trace, in place of passing all of
    /// its packets through.
    pub only_ftrace: bool,
    /// Compresses the output with gzip, whatever its ending.
    pub gzip: bool,
    /// The user's limit on what all inputs may unpack to, and on what the output may keep in memory.
    pub unpack_limit: UnpackLimit,
    /// The user's decisions about the place of method traces.
    pub options: MergeOptions,
    /// The part of the timeline to write.
    pub window: WindowRequest,
    /// Adds the critical path of each launch and of each late frame as a track.
    pub critical_paths: bool,
    /// Puts the videos among the inputs into the page, in place of naming their files.
    pub embed_videos: bool,
    /// The app's packages, for explanations; empty to tell them by the app's name and the known libraries.
    pub app_packages: &'a [String],
}

impl<'a> ConvertRequest<'a> {
    /// All of `inputs` into the format of the output's ending, with nothing else asked for.
    pub fn new(inputs: &'a [PathBuf], output: &'a Path) -> ConvertRequest<'a> {
        ConvertRequest {
            inputs,
            output,
            format: None,
            mapping: None,
            only_ftrace: false,
            gzip: false,
            unpack_limit: UnpackLimit::default(),
            options: MergeOptions::default(),
            window: WindowRequest::default(),
            critical_paths: false,
            embed_videos: false,
            app_packages: &[],
        }
    }

    /// A request that is only read: nothing is written. Its output is no file, which no input can be, and its
    /// format holds everything.
    pub fn to_read(inputs: &'a [PathBuf]) -> ConvertRequest<'a> {
        ConvertRequest { format: Some("perfetto"), ..ConvertRequest::new(inputs, Path::new("")) }
    }
}

/// A request whose inputs are open: nothing is written yet.
pub struct Conversion<'a> {
    request: ConvertRequest<'a>,
    format: &'static OutputFormat,
    inputs: Vec<Input>,
    mapping: Option<Input>,
    /// Notes about parts of the files that are not among the inputs.
    notes: Vec<String>,
}

/// The result of a conversion.
pub struct Converted {
    /// The format that was written.
    pub format: &'static OutputFormat,
    /// Size of the output, bytes; `None` where the output is no regular file.
    pub bytes: Option<u64>,
    /// The summary of the timeline.
    pub summary: MergeSummary,
    /// The data of the timeline that the output does not hold.
    pub losses: ConversionLosses,
}

impl Converted {
    /// Whether anything is missing: in the inputs, or in the output.
    pub fn is_lossy(&self) -> bool {
        self.summary.report.is_lossy() || !self.losses.dropped.is_empty()
    }

    /// Whether the inputs are irregular, or the output lacks details. Nothing is missing because of that.
    pub fn is_irregular(&self) -> bool {
        !self.summary.report.irregular.is_empty() || !self.losses.reduced.is_empty()
    }
}

impl<'a> Conversion<'a> {
    /// Chooses the format and opens the inputs.
    ///
    /// # Errors
    /// [`ConvertError`]; no output has been created.
    pub fn prepare(request: ConvertRequest<'a>) -> Result<Conversion<'a>, ConvertError> {
        let files = files_of(request.inputs);
        let read: Vec<&Path> = files.iter().map(PathBuf::as_path).chain(request.mapping).collect();
        check_distinct(&read, &[request.output])?;
        if request.output.is_dir() {
            return Err(ConvertError::OutputIsDirectory { output: request.output.display().to_string() });
        }
        let format = match request.format {
            Some(name) => OutputFormat::of_name(name)
                .ok_or_else(|| ConvertError::UnknownFormat { name: name.to_owned() })?,
            None => OutputFormat::of_path(request.output).ok_or_else(|| ConvertError::UnknownEnding {
                output: request.output.display().to_string(),
            })?,
        };
        if request.embed_videos && !matches!(format.create, Create::Page(_)) {
            return Err(ConvertError::NoPage { format: format.name });
        }
        let InputSet { inputs, omissions } = open_all(request.inputs, &request.unpack_limit)?;
        // The traces of a directory have names of their own.
        let opened: Vec<&Path> = inputs.iter().filter(|i| !i.is_member).map(|i| Path::new(&i.name)).collect();
        check_distinct(&opened, &[request.output])?;
        let notes = omissions.iter().map(ToString::to_string).collect();
        let mapping =
            request.mapping.map(|path| Input::open_within(path, &request.unpack_limit)).transpose()?;
        Ok(Conversion { request, format, inputs, mapping, notes })
    }

    /// Writes the output. It appears under its name once it is complete; if anything fails, the file that had
    /// the name before is as it was.
    ///
    /// # Errors
    /// [`ConvertError`].
    pub fn run(self) -> Result<Converted, ConvertError> {
        if !self.format.holds(DataKind::Methods)
            && self.inputs.iter().all(|input| has_format(input, FormatId::MethodTrace))
        {
            return Err(self.nothing_to_hold(DataKind::Methods, DataKind::Methods.name().to_owned()));
        }
        let mapping = self.parse_mapping()?;
        if let Create::Archive(check, _) = self.format.create {
            if is_stdout(self.request.output) || self.request.gzip {
                return Err(ConvertError::ArchiveNeedsFile);
            }
            if mapping.is_some() {
                return Err(ConvertError::ArchiveWithMapping);
            }
            check(&self.inputs).map_err(ConvertError::ArchiveInputs)?;
        }
        let output = ConversionOutput::create(self.request.output, self.request.gzip)?;
        let written = match (self.unchanged(FormatId::Perfetto), self.unchanged(FormatId::ChromeJson)) {
            (Some(input), _) => {
                self.copy(input, output.stream()?).map(|summary| (summary, ConversionLosses::default()))
            }
            (None, Some(input)) => self.write_json(input, output.stream()?),
            (None, None) => self.merge(&output, mapping.as_ref()),
        };
        self.check_whole()?;
        let (mut summary, losses) = written?;
        // Those of a part of the timeline are in its summary.
        let omitted = self.notes.iter().filter(|note| !summary.report.notes.contains(note)).cloned();
        let omitted: Vec<String> = omitted.collect();
        summary.report.notes.extend(omitted);
        Ok(Converted { format: self.format, bytes: output.commit()?, summary, losses })
    }

    /// Fails if an input has shrunk since it was opened, which is then the cause of other errors.
    pub(super) fn check_whole(&self) -> Result<(), ConvertError> {
        Ok(self.inputs.iter().chain(&self.mapping).try_for_each(Input::check_whole)?)
    }

    /// Puts the inputs on one clock and writes them to `output`.
    /// How much the output may keep in memory.
    pub(super) fn held_limit(&self) -> HeldLimit {
        HeldLimit::of_inputs(&self.request.unpack_limit, self.inputs.iter().map(|input| input.size).sum())
    }

    fn merge(
        &self,
        output: &ConversionOutput<'_>,
        mapping: Option<&Mapping<'_>>,
    ) -> Result<(MergeSummary, ConversionLosses), ConvertError> {
        let mut writer = match self.format.create {
            Create::PassThrough(_, create) if self.passes_packets() => {
                create(output.stream()?, &self.inputs, mapping)
            }
            Create::Stream(create) | Create::PassThrough(create, _) => create(output.stream()?),
            Create::Holding(create) => create(output.stream()?, self.held_limit()),
            Create::Page(create) => {
                let ConvertRequest { output: page, embed_videos, .. } = &self.request;
                let videos = PageVideos::new(&self.inputs, page, *embed_videos);
                create(output.stream()?, self.held_limit(), videos)
            }
            Create::Archive(_, create) => {
                let out = output.seekable()?.ok_or(ConvertError::ArchiveNeedsFile)?;
                create(out, &self.inputs).map_err(MergeError::Io)?
            }
        };
        let summary = if self.request.critical_paths {
            let mut tracks = TrackBuilder::new(ModelCollector::default());
            self.push_part(&mut tracks, mapping)?;
            let model = std::mem::take(tracks.sink()).into_model();
            self.push_part(&mut WithCriticalPaths::new(writer.as_mut(), &model), mapping)?
        } else {
            self.push_part(writer.as_mut(), mapping)?
        };
        drop(writer);
        let mut losses = ConversionLosses::new(self.format, &summary);
        if matches!(self.format.create, Create::PassThrough(..)) && !self.request.window.is_whole() {
            // The format would hold them, but nothing says which part of the timeline they belong to.
            losses.dropped.extend(summary.report.unread.clone());
        }
        if self.request.window.is_whole() && summary.contents.iter().all(|(kind, _)| kind.is_detail()) {
            return Err(self.no_data(&summary.report.damage));
        }
        match only_dropped_kind(self.format, &summary) {
            Some(kind) => Err(self.nothing_to_hold(kind, ConversionLosses::list(&losses.dropped))),
            None => Ok((summary, losses)),
        }
    }

    fn no_data(&self, damage: &[Damage]) -> ConvertError {
        let names: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        let damage = damage.first().map(|damage| format!(" (offset {}: {})", damage.offset, damage.what));
        ConvertError::NoData { names: names.join(", "), damage: damage.unwrap_or_default() }
    }

    /// Size of all inputs on disk, bytes.
    pub(super) fn input_bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.size).sum()
    }

    /// The mapping file's contents.
    pub(super) fn parse_mapping(&self) -> Result<Option<Mapping<'_>>, ConvertError> {
        let Some(file) = &self.mapping else { return Ok(None) };
        let parsed = Mapping::parse(file);
        parsed.map(Some).map_err(|source| ConvertError::Mapping { name: file.name.clone(), source })
    }

    /// Puts the inputs on one clock, and pushes the part that the request asks for to `writer`.
    pub(super) fn push_part(
        &self,
        writer: &mut dyn TimelineSink,
        mapping: Option<&Mapping<'_>>,
    ) -> Result<MergeSummary, ConvertError> {
        let window = self.request.window;
        let mut summary = if window.is_whole() {
            self.push(writer, mapping)?
        } else {
            let (first, last) = timeline::extent(&self.inputs, &self.request.options)?;
            let mut part = WindowFilter::new(writer, window.of_timeline(first, last)?);
            let mut summary = self.push(&mut part, mapping)?;
            part.restrict(&mut summary);
            summary
        };
        summary.report.notes.extend(self.notes.iter().cloned());
        Ok(summary)
    }

    /// Puts the inputs on one clock and pushes them to `writer`.
    fn push(
        &self,
        writer: &mut dyn TimelineSink,
        mapping: Option<&Mapping<'_>>,
    ) -> Result<MergeSummary, MergeError> {
        let options = &self.request.options;
        match mapping {
            Some(mapping) => timeline::merge(&self.inputs, &mut Deobfuscator::new(writer, mapping), options),
            None => timeline::merge(&self.inputs, writer, options),
        }
    }

    fn nothing_to_hold(&self, data_kind: DataKind, data: String) -> ConvertError {
        ConvertError::NothingToHold { format: self.format.name, data, data_kind }
    }

    /// Whether Perfetto's packets may pass through whole. They cannot for a part of the timeline, nor with
    /// times that the manifest of an archive changes.
    fn passes_packets(&self) -> bool {
        let changes_times = |input: &Input| {
            let is_moved = input.offset_ns.is_some_and(|offset| offset != 0);
            let trace_time = input.place.as_ref().and_then(|place| place.trace_time);
            is_moved && !has_format(input, FormatId::MethodTrace)
                || trace_time.is_some_and(|clock| clock != Clock::Boottime)
        };
        !self.request.only_ftrace && self.request.window.is_whole() && !self.inputs.iter().any(changes_times)
    }

    /// The only input, if it has this format, and the output is to hold all of its events and nothing else,
    /// as packets.
    fn unchanged(&self, format: FormatId) -> Option<&Input> {
        let passes = matches!(self.format.create, Create::PassThrough(..))
            && self.passes_packets()
            && !self.request.critical_paths;
        match self.inputs.as_slice() {
            [input] if passes && self.mapping.is_none() => {
                Some(input).filter(|input| has_format(input, format))
            }
            _ => None,
        }
    }

    /// Writes the packets of `input` as they are.
    fn copy(&self, input: &Input, mut out: Out) -> Result<MergeSummary, ConvertError> {
        let scan = perfetto::copy(input, &mut out).map_err(MergeError::Io)?;
        let clock = scan.clock();
        let markers = scan.markers;
        let threads = scan.threads();
        let track_events = scan.track_events();
        let mut report = scan.finish();
        if track_events > 0 {
            report.notes.push(format!("{track_events} track events are copied, and not counted as slices"));
        }
        report.damage.extend(input.damage.iter().cloned());
        report.unread.clear();
        let copied = whole_input(input, FormatId::Perfetto, clock, &report, PlaceBasis::CopiedPackets);
        Ok(MergeSummary { markers, threads, ..MergeSummary::new(clock, vec![copied], report) })
    }

    /// Writes the events of `input` as packets.
    fn write_json(
        &self,
        input: &Input,
        mut out: Out,
    ) -> Result<(MergeSummary, ConversionLosses), ConvertError> {
        let json = ChromeJsonTrace::from_input(input).map_err(MergeError::Io)?;
        let clock = json.head().clock;
        let mut report = perfetto::write_json(&json, &mut out).map_err(MergeError::Io)?;
        report.damage.extend(input.damage.iter().cloned());
        // What is not read is not in the output either.
        if report.events() + report.track_events.total() == 0 {
            return Err(self.no_data(&report.damage));
        }
        let losses = ConversionLosses { dropped: report.unread.clone(), ..ConversionLosses::default() };
        let written = whole_input(input, FormatId::ChromeJson, clock, &report, PlaceBasis::SameTimes);
        let threads = json.threads().len() as u64;
        Ok((MergeSummary { threads, ..MergeSummary::new(clock, vec![written], report) }, losses))
    }
}

/// The summary of the only input, all of which is in the output.
fn whole_input(
    input: &Input,
    format: FormatId,
    clock: Clock,
    report: &ReadReport,
    basis: PlaceBasis,
) -> InputSummary {
    InputSummary {
        name: input.name.clone(),
        size: input.size,
        format: format.name().into(),
        clock,
        why: basis.into(),
        offset_ns: 0,
        verdict: Verdict::Consistent,
        error_ns: None,
        confidence: None,
        residual_median_ns: None,
        residual_p99_ns: None,
        explain: Vec::new(),
        events: report.events(),
        duplicates: 0,
        method_edges: 0,
        samples: 0,
        header: Vec::new(),
        video: None,
    }
}

/// The kind of data that `format` does not hold, if the timeline has no data that it holds.
fn only_dropped_kind(format: &OutputFormat, summary: &MergeSummary) -> Option<DataKind> {
    let counts = || summary.contents.iter().map(|(kind, _)| kind).filter(|kind| !kind.is_detail());
    let dropped = counts().find(|kind| !format.holds(*kind))?;
    counts().all(|kind| !format.holds(kind)).then_some(dropped)
}

/// The reason why a conversion was not done.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// No format has the name that the user gave.
    #[error("--format {name}: no format has this name or ending: {}", format_list())]
    UnknownFormat {
        /// The name as given.
        name: String,
    },
    /// The output's ending names no format.
    #[error("{output}: its ending names no format; use --format, or one of: {}", format_list())]
    UnknownEnding {
        /// The output's path as given.
        output: String,
    },
    /// The output's name is that of a directory.
    #[error("{output}: is a directory: name a file in it, whose ending names the format")]
    OutputIsDirectory {
        /// The output's path as given.
        output: String,
    },
    /// Writing would destroy an input.
    #[error(transparent)]
    SameFile(#[from] SameFile),
    /// An input cannot be opened or unpacked, or no reader accepts it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The mapping file cannot be opened, or an input has become shorter since it was opened.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The mapping file cannot be used: it is not a mapping file of R8 or ProGuard.
    #[error("{name}: {source}")]
    Mapping {
        /// The mapping file's path as given.
        name: String,
        /// The fault of the mapping file.
        source: MappingError,
    },
    /// Standard output is a terminal, which would show binary data.
    #[error("standard output is a terminal: redirect it, or name a file with -o")]
    OutputIsTerminal,
    /// An archive was requested on standard output, or compressed with gzip.
    #[error("a zip is written to a file, and packed no further: name one with -o")]
    ArchiveNeedsFile,
    /// An archive was requested with `--mapping`, but an archive holds the method traces unchanged.
    #[error("the method traces go into a zip as they are: --mapping needs one file (-o OUT.pftrace)")]
    ArchiveWithMapping,
    /// No archive can be made of these inputs.
    #[error("{0}")]
    ArchiveInputs(&'static str),
    /// A video was to be put into something else than a page.
    #[error("--embed-video puts videos into a page, and {format} is none: name the output .html")]
    NoPage {
        /// The name of the output's format.
        format: &'static str,
    },
    /// The output would be empty: its format holds none of the data of the inputs.
    #[error(
        "{format} has no place for {data}, and the inputs hold nothing else: nothing is written. Outputs that \
         hold {}: {}",
        data_kind.name(),
        formats_that_hold(*.data_kind)
    )]
    NothingToHold {
        /// The name of the output's format.
        format: &'static str,
        /// The data of the inputs, for people.
        data: String,
        /// The kind of the data.
        data_kind: DataKind,
    },
    /// The output would be empty: the inputs hold no data.
    #[error(
        "{names}: no event, call, sample or frame could be read{damage}: nothing is written; `tracebridge info` says \
         what the file holds"
    )]
    NoData {
        /// The names of the inputs, for people.
        names: String,
        /// The first damaged place, in brackets, or nothing.
        damage: String,
    },
    /// The output could not be created, or not be completed.
    #[error("{path}: {source}")]
    Output {
        /// The output's path as given.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The timeline has no such part.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// The merge failed; no output is left behind.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

impl ConvertError {
    /// Whether another command line mends the error, whatever the inputs are.
    pub fn is_usage(&self) -> bool {
        use ConvertError::*;
        let is_window = matches!(self, Window(WindowError::Empty { .. }));
        is_window
            || matches!(
                self,
                UnknownFormat { .. }
                    | UnknownEnding { .. }
                    | OutputIsDirectory { .. }
                    | ArchiveNeedsFile
                    | ArchiveWithMapping
                    | NoPage { .. }
            )
    }
}

/// Every format's name and endings, for messages.
pub(crate) fn format_list() -> String {
    let formats = FORMATS.iter().map(|format| format!("{} ({})", format.name, format.endings.join(" ")));
    let tables = format!("tables ({TABLES_ENDING})");
    formats.chain([tables]).collect::<Vec<_>>().join(", ")
}

/// The output of a conversion: a file that appears under its name once it is complete, or standard output.
pub(super) struct ConversionOutput<'a> {
    path: &'a Path,
    gzip: bool,
    /// `None` for standard output.
    file: Option<OutputFile>,
}

impl<'a> ConversionOutput<'a> {
    /// Begins the output. It is compressed with `gzip` set, or if the path ends in `.gz`.
    pub(super) fn create(path: &'a Path, gzip: bool) -> Result<ConversionOutput<'a>, ConvertError> {
        let mut output = ConversionOutput { path, gzip, file: None };
        if !is_stdout(path) {
            let file = OutputFile::create(path, Readers::AsTarget);
            output.file = Some(file.map_err(|source| output.error(source))?);
        } else if io::stdout().is_terminal() {
            return Err(ConvertError::OutputIsTerminal);
        }
        Ok(output)
    }

    /// For a writer that writes from front to back.
    pub(super) fn stream(&self) -> Result<Out, ConvertError> {
        let out: Out = match &self.file {
            Some(file) => Box::new(self.named(file)?),
            None => Box::new(NamedOut { name: "standard output".to_owned(), out: io::stdout() }),
        };
        let gzip = self.gzip || self.path.extension().is_some_and(|ending| ending == "gz");
        Ok(if gzip { Box::new(GzipOut(GzEncoder::new(out, flate2::Compression::fast()))) } else { out })
    }

    /// For a writer that goes back to earlier places in the file; `None` where the output is no regular file.
    pub(super) fn seekable(&self) -> Result<Option<NamedOut<File>>, ConvertError> {
        self.file.as_ref().filter(|file| !file.is_direct()).map(|file| self.named(file)).transpose()
    }

    /// Gives the output its name. Returns its size in bytes; `None` where it is no regular file.
    pub(super) fn commit(mut self) -> Result<Option<u64>, ConvertError> {
        let Some(file) = self.file.take() else { return Ok(None) };
        let meta = file.file().metadata().ok();
        file.commit().map_err(|source| self.error(source))?;
        log::debug!("{}: written", self.path.display());
        Ok(meta.filter(Metadata::is_file).map(|meta| meta.len()))
    }

    fn named(&self, file: &OutputFile) -> Result<NamedOut<File>, ConvertError> {
        let out = file.file().try_clone().map_err(|source| self.error(source))?;
        Ok(NamedOut { name: self.path.display().to_string(), out })
    }

    fn error(&self, source: io::Error) -> ConvertError {
        ConvertError::Output { path: self.path.display().to_string(), source }
    }
}

/// A gzip stream whose end is written by `flush`, which exporters call once, at the end.
struct GzipOut(GzEncoder<Out>);

impl Write for GzipOut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.try_finish()?;
        self.0.get_mut().flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::formats::IDENTIFICATIONS;

    const TEXT: &str = "# tracer: nop\n#\n a-7 (    7) [000] ...1 1.5: tracing_mark_write: I|7|x\n";

    /// Converts the files. Returns how often the bytes of a file were asked for their format meanwhile.
    fn identifications(inputs: &[PathBuf], output: &Path) -> usize {
        let before = IDENTIFICATIONS.get();
        Conversion::prepare(ConvertRequest::new(inputs, output)).and_then(Conversion::run).unwrap();
        IDENTIFICATIONS.get() - before
    }

    #[test]
    fn each_input_is_identified_once_however_many_ask_for_its_format() {
        let dir = tempfile::tempdir().unwrap();
        let texts = [dir.path().join("1.txt"), dir.path().join("2.txt")];
        std::fs::write(&texts[0], TEXT).unwrap();
        std::fs::write(&texts[1], format!("{TEXT}{TEXT}")).unwrap();
        let archive = dir.path().join("x.zip");
        let mut zip = ZipWriter::new(std::fs::File::create(&archive).unwrap());
        let manifest = r#"{"perfetto_manifest":{"version":1,"files":[{"path":"1.txt"}]}}"#;
        for (name, text) in [("perfetto_manifest.json", manifest), ("1.txt", TEXT)] {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
        for output in ["out.html", "out.pftrace", "out.csv"] {
            let output = dir.path().join(output);
            assert_eq!(identifications(&texts[..1], &output), 1, "{output:?}");
            assert_eq!(identifications(&texts, &output), 2, "{output:?}");
            assert_eq!(
                identifications(std::slice::from_ref(&archive), &output),
                3,
                "the archive, the first bytes of its member, and the member: {output:?}"
            );
        }
    }
}
