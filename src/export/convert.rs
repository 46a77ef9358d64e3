//! `merge` and `convert` as one library call: opens inputs, puts them on one clock, and writes one file.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;

use super::{ConversionLosses, Create, FORMATS, Out, OutputFormat, formats_that_hold};
use crate::art::Mapping;
use crate::formats::input::{Input, InputError};
use crate::formats::{self, OpenError, art_method};
use crate::timeline::{self, DataKind, Deobfuscator, MergeError, MergeOptions, MergeSummary};

/// A request to convert inputs to one output file.
#[derive(Debug, Clone, Copy)]
pub struct ConvertRequest<'a> {
    /// Paths of the inputs; `-` is standard input.
    pub inputs: &'a [PathBuf],
    /// Where to write; `-` is standard output.
    pub output: &'a Path,
    /// The name of the format to write; `None` chooses the format by the output's ending.
    pub format: Option<&'a str>,
    /// A mapping file of R8 or ProGuard, with which obfuscated names are replaced.
    pub mapping: Option<&'a Path>,
    /// Compresses the output with gzip, whatever its ending.
    pub gzip: bool,
    /// The user's decisions about the place of method traces.
    pub options: MergeOptions,
}

/// A request whose inputs are open: nothing is written yet.
pub struct Conversion<'a> {
    request: ConvertRequest<'a>,
    format: &'static OutputFormat,
    inputs: Vec<Input>,
    mapping: Option<Input>,
    /// Notes about inputs that are given more than once.
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
        let MergeSummary { report, problems, .. } = &self.summary;
        report.is_lossy() || problems.are_lossy() || !self.losses.dropped.is_empty()
    }

    /// Whether the inputs are irregular, or the output lacks details. Nothing is missing because of that.
    pub fn is_irregular(&self) -> bool {
        !self.summary.report.irregular.is_empty() || !self.losses.reduced.is_empty()
    }
}

/// Why a conversion was not done.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// No format has the name that the user gave.
    #[error("--format {name}: not one of {}", format_list())]
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
    /// Writing would destroy an input.
    #[error("{path}: is an input and the output: name another output")]
    OutputIsInput {
        /// The input's path as given.
        path: String,
    },
    /// An input cannot be opened or unpacked.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The mapping file cannot be used: it is not a mapping file of R8 or ProGuard.
    #[error("{name}: {source}")]
    Mapping {
        /// The mapping file's path as given.
        name: String,
        /// What is wrong with the mapping file.
        source: crate::art::MappingError,
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
    /// The output would be empty: its format holds none of the data of the inputs.
    #[error(
        "{format} has no place for {data}, and the inputs hold nothing else: nothing is written. Outputs that \
         hold {data}: {}",
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
    /// The output could not be created.
    #[error("{path}: {source}")]
    Create {
        /// The output's path as given.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The merge failed; no output is left behind.
    #[error(transparent)]
    Merge(#[from] MergeError),
}

/// Every format's name and endings, for messages.
fn format_list() -> String {
    let formats = FORMATS.iter().map(|format| format!("{} ({})", format.name, format.endings.join(" ")));
    formats.collect::<Vec<_>>().join(", ")
}

impl<'a> Conversion<'a> {
    /// Chooses the format and opens the inputs.
    ///
    /// # Errors
    /// [`ConvertError`]; no output has been created.
    pub fn prepare(request: ConvertRequest<'a>) -> Result<Conversion<'a>, ConvertError> {
        let format = match request.format {
            Some(name) => OutputFormat::of_name(name)
                .ok_or_else(|| ConvertError::UnknownFormat { name: name.to_owned() })?,
            None => OutputFormat::of_path(request.output).ok_or_else(|| ConvertError::UnknownEnding {
                output: request.output.display().to_string(),
            })?,
        };
        let (inputs, notes) = open_each_once(request.inputs)?;
        if let Some(same) = request.inputs.iter().find(|path| is_same_file(path, request.output)) {
            return Err(ConvertError::OutputIsInput { path: same.display().to_string() });
        }
        for input in &inputs {
            let not_read = |file| OpenError::NotRead { name: input.name.clone(), file };
            formats::identify(input).map_err(|file| MergeError::from(not_read(file)))?;
        }
        let mapping = request.mapping.map(Input::open).transpose()?;
        Ok(Conversion { request, format, inputs, mapping, notes })
    }

    /// How many inputs there are.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// Size of all inputs together as they are on disk, bytes.
    pub fn input_bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.size).sum()
    }

    /// Writes the output. Where writing fails half-way, the output is removed, so that nobody takes half a
    /// file for a whole one.
    ///
    /// # Errors
    /// [`ConvertError`].
    pub fn run(self) -> Result<Converted, ConvertError> {
        if !self.format.holds(DataKind::Methods) && self.inputs.iter().all(|i| art_method::detect(i)) {
            return Err(self.nothing_to_hold(DataKind::Methods, DataKind::Methods.name().to_owned()));
        }
        let mapping = match &self.mapping {
            Some(file) => {
                let parsed = Mapping::parse(file);
                Some(parsed.map_err(|source| ConvertError::Mapping { name: file.name.clone(), source })?)
            }
            None => None,
        };
        let mut writer = match self.format.create {
            Create::Stream(create) => create(self.stream()?),
            Create::Archive(check, create) => {
                if self.is_stdout() || self.request.gzip {
                    return Err(ConvertError::ArchiveNeedsFile);
                }
                if mapping.is_some() {
                    return Err(ConvertError::ArchiveWithMapping);
                }
                check(&self.inputs).map_err(ConvertError::ArchiveInputs)?;
                create(self.file()?, &self.inputs).map_err(|source| self.create_error(source))?
            }
        };
        let options = &self.request.options;
        let result = match &mapping {
            Some(mapping) => {
                timeline::merge(&self.inputs, &mut Deobfuscator::new(writer.as_mut(), mapping), options)
            }
            None => timeline::merge(&self.inputs, writer.as_mut(), options),
        };
        drop(writer);
        let output = self.request.output;
        let size = || fs::metadata(output).ok().filter(|m| m.is_file()).map(|m| m.len());
        let remove = || size().is_some().then(|| fs::remove_file(output));
        let mut summary = result.inspect_err(|_| drop(remove()))?;
        summary.report.notes.extend(self.notes.iter().cloned());
        let losses = ConversionLosses::of(self.format, &summary);
        if let Some(kind) = only_dropped_kind(self.format, &summary) {
            remove();
            return Err(self.nothing_to_hold(kind, ConversionLosses::list(&losses.dropped)));
        }
        Ok(Converted { format: self.format, bytes: size(), summary, losses })
    }

    fn nothing_to_hold(&self, data_kind: DataKind, data: String) -> ConvertError {
        ConvertError::NothingToHold { format: self.format.name, data, data_kind }
    }

    fn is_stdout(&self) -> bool {
        self.request.output.as_os_str() == "-"
    }

    /// Creates the output for a writer that writes from front to back.
    fn stream(&self) -> Result<Out, ConvertError> {
        let out: Out = if !self.is_stdout() {
            Box::new(self.file()?)
        } else if io::stdout().is_terminal() {
            return Err(ConvertError::OutputIsTerminal);
        } else {
            Box::new(io::stdout())
        };
        let gzip = self.request.gzip || self.request.output.extension().is_some_and(|e| e == "gz");
        Ok(if gzip { Box::new(GzipOut(GzEncoder::new(out, flate2::Compression::fast()))) } else { out })
    }

    fn file(&self) -> Result<File, ConvertError> {
        File::create(self.request.output).map_err(|source| self.create_error(source))
    }

    fn create_error(&self, source: io::Error) -> ConvertError {
        ConvertError::Create { path: self.request.output.display().to_string(), source }
    }
}

/// The kind of data that `format` does not hold, if the timeline has no data that it holds.
fn only_dropped_kind(format: &OutputFormat, summary: &MergeSummary) -> Option<DataKind> {
    let counts = || summary.contents.iter().map(|(kind, _)| kind).filter(|kind| !kind.is_detail());
    let dropped = counts().find(|kind| !format.holds(*kind))?;
    counts().all(|kind| !format.holds(kind)).then_some(dropped)
}

/// Opens the inputs. An input with the same bytes as one before it is left out, and a note says so.
fn open_each_once(paths: &[PathBuf]) -> Result<(Vec<Input>, Vec<String>), InputError> {
    let (mut inputs, mut notes): (Vec<Input>, Vec<String>) = (Vec::new(), Vec::new());
    for (at, path) in paths.iter().enumerate() {
        let is_stdin_again = path.as_os_str() == "-" && paths[..at].contains(path);
        let input = if is_stdin_again { None } else { Some(Input::open(path)?) };
        let first = inputs.iter().find(|first| match &input {
            Some(input) => first[..] == input[..],
            None => first.name == "-",
        });
        match (first, input) {
            (Some(first), _) => notes.push(format!(
                "{}: has the same contents as {}: it is taken once",
                path.display(),
                first.name
            )),
            (None, Some(input)) => inputs.push(input),
            (None, None) => {}
        }
    }
    Ok((inputs, notes))
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b && a.is_file())
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
