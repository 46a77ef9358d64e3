//! Opens the inputs of a command. Which files belong together, which files hold traces inside of them, and
//! which contents are given twice is decided here, for every command.
//!
//! To add a kind of file that holds traces: write a function that opens it, and add one row to
//! [`CONTAINERS`].

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use super::archive::{self, ArchiveError, is_archive};
use super::art_method::is_text_section;
use super::contained::{self, ContainedTrace, may_hold_a_dump};
use super::format_id::{FormatId, UnreadFile};
use super::input::{Input, InputError, InputSet, Omission, OmissionReason};
use super::input_format::{identify, reader};
use super::recording::{FormatError, OpenedInput, Recording};
use super::samples::SampleRecording;
use super::unpack_budget::{BudgetShare, UnpackLimit};
use super::video_frames::ScreenVideo;
use super::{Head, Order, ReadReport, Sink};
use crate::file_access::{self, ArchiveMember, MEMBER_SEPARATOR};
use crate::progress::Pass;

/// Why an input cannot be read. Every error names the input.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The input cannot be opened, read or decompressed.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An archive of traces cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// No reader accepts the file.
    #[error("{name}: this is {}; it is not read here: {}", file.what, file.hint)]
    NotRead {
        /// The path as given.
        name: String,
        /// The kind of file, and the program that opens it.
        file: UnreadFile,
    },
    /// The file has the format of a reader, but this reader cannot open it.
    #[error("{name}: {source}")]
    Format {
        /// The path as given.
        name: String,
        /// The error of the format's reader.
        source: FormatError,
    },
}

/// A kind of file that holds traces inside of it, and that no reader accepts: a row of [`CONTAINERS`].
struct ContainerKind {
    /// Whether these are the bytes of such a file.
    detect: fn(&[u8]) -> bool,
    /// Opens the traces inside. A file without any is no container.
    open: fn(&Input) -> Result<InputSet, OpenError>,
}

const CONTAINERS: &[ContainerKind] = &[
    ContainerKind { detect: is_archive, open: |input| Ok(archive::inputs_in(input)?) },
    ContainerKind {
        detect: may_hold_a_dump,
        open: |input| Ok(InputSet { inputs: contained::inputs_in(input), omissions: Vec::new() }),
    },
];

/// The file or the files of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFiles {
    /// The file, or the key file of a pair.
    pub path: PathBuf,
    /// The data file that is named together with the key file. Without it, the data file beside the key file
    /// is meant.
    data: Option<PathBuf>,
}

/// Opens the inputs in these files. `-` is standard input.
///
/// - A name that no file has stands for `NAME.trace`, or else for `NAME.key`.
/// - A key file `NAME.key` is joined with `NAME.data`, or with the data file behind it in the list.
/// - A file that holds traces is replaced by these: an archive or a directory by the files that its manifest
///   lists, or by the only trace in it, with the videos of the screen beside it; a bug report by its system
///   traces and the method traces in its dumps.
/// - `ARCHIVE//MEMBER` is a file in an archive, which stands before the first `//`.
/// - Of inputs with the same contents the first one is taken.
///
/// # Errors
/// [`OpenError`] where a file cannot be read, or no reader accepts it.
pub fn open_all(paths: &[PathBuf], limit: &UnpackLimit) -> Result<InputSet, OpenError> {
    Ok(open_all_with_copies(paths, limit)?.without_copies())
}

/// Does the same as [`open_all`], but inputs with the same contents stay: for commands that look at each
/// input by itself.
///
/// # Errors
/// [`OpenError`] where a file cannot be read, or no reader accepts it.
pub fn open_all_with_copies(paths: &[PathBuf], limit: &UnpackLimit) -> Result<InputSet, OpenError> {
    let mut all = InputSet::default();
    let mut has_stdin = false;
    for files in input_files(paths) {
        let is_stdin = files.path.as_os_str() == "-";
        if is_stdin && has_stdin {
            let reason = OmissionReason::SameContents { first: "-".to_owned() };
            all.omissions.push(Omission { name: "-".to_owned(), reason });
            continue;
        }
        has_stdin |= is_stdin;
        all.extend(files.open_all(limit)?);
    }
    for input in &all.inputs {
        format_of(input)?;
    }
    Ok(all)
}

/// The traces inside of a file that holds traces, or else the file itself.
///
/// # Errors
/// [`OpenError`] where an archive cannot be read.
pub fn expand(input: Input) -> Result<InputSet, OpenError> {
    if identify(&input).is_err() {
        for container in CONTAINERS.iter().filter(|container| (container.detect)(&input)) {
            let inside = (container.open)(&input)?;
            if !inside.inputs.is_empty() {
                return Ok(inside);
            }
        }
    }
    Ok(InputSet::from_input(input))
}

/// Opens `input` with the reader of its format.
///
/// # Errors
/// [`OpenError::NotRead`] and [`OpenError::Format`].
pub fn open(input: &Input) -> Result<OpenedInput<'_>, OpenError> {
    let format = format_of(input)?;
    let bytes = input.len() as u64;
    let _pass = Pass::begin("opening", bytes);
    let (opened, share) = input.unpack_budget.share_of(|| (reader(format).open)(input));
    match opened.map_err(|source| OpenError::Format { name: input.name.clone(), source })? {
        OpenedInput::Recording(recording) => {
            Ok(OpenedInput::Recording(Box::new(RecordingWithProgress { recording, bytes, _share: share })))
        }
        trace => Ok(trace),
    }
}

/// A recording that shows the progress of each reading.
struct RecordingWithProgress<'a> {
    recording: Box<dyn Recording + 'a>,
    /// The size of the unpacked file.
    bytes: u64,
    /// The share of the file's budget that the recording holds.
    _share: BudgetShare,
}

impl Recording for RecordingWithProgress<'_> {
    fn head(&self) -> &Head {
        self.recording.head()
    }

    fn read(&self, order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
        let _pass = Pass::begin("reading events", self.bytes);
        self.recording.read(order, sink)
    }

    fn method_traces(&self) -> Vec<ContainedTrace> {
        self.recording.method_traces()
    }

    fn video(&self) -> Option<&ScreenVideo> {
        self.recording.video()
    }

    fn samples(&self) -> Option<Box<dyn SampleRecording + '_>> {
        self.recording.samples()
    }
}

fn format_of(input: &Input) -> Result<FormatId, OpenError> {
    identify(input).map_err(|file| OpenError::NotRead { name: input.name.clone(), file })
}

/// The inputs that these paths name, in the order of the paths.
pub fn input_files(paths: &[PathBuf]) -> Vec<InputFiles> {
    let paths: Vec<Cow<'_, Path>> = paths.iter().map(|path| completed(path)).collect();
    let mut data_of_key: Vec<Option<usize>> = vec![None; paths.len()];
    let mut is_joined = vec![false; paths.len()];
    let is_key = |at: &usize| has_ending(&paths[*at], "key");
    for key in (0..paths.len()).filter(is_key) {
        let data = paths[key].with_extension("data");
        for at in (0..paths.len()).filter(|at| *paths[*at] == *data) {
            data_of_key[key] = Some(at);
            is_joined[at] = true;
        }
    }
    for key in (0..paths.len()).filter(is_key) {
        let next = key + 1;
        let is_free = paths.get(next).is_some_and(|path| has_ending(path, "data")) && !is_joined[next];
        if data_of_key[key].is_none() && is_free {
            data_of_key[key] = Some(next);
            is_joined[next] = true;
        }
    }
    let files = |at: usize| InputFiles {
        path: paths[at].to_path_buf(),
        data: data_of_key[at].map(|data| paths[data].to_path_buf()),
    };
    (0..paths.len()).filter(|at| !is_joined[*at]).map(files).collect()
}

/// Every file that [`open_all`] reads for these paths.
pub fn files_of(paths: &[PathBuf]) -> Vec<PathBuf> {
    input_files(paths).iter().flat_map(InputFiles::files).collect()
}

impl InputFiles {
    /// Its files: one, or the key file and its data file.
    pub fn files(&self) -> Vec<PathBuf> {
        if let Some(member) = ArchiveMember::open(&self.path) {
            return vec![member.archive];
        }
        let data = has_ending(&self.path, "key").then(|| self.data_file());
        [self.path.clone()].into_iter().chain(data).collect()
    }

    /// The files of it that were named.
    pub fn named(&self) -> Vec<PathBuf> {
        [self.path.clone()].into_iter().chain(self.data.clone()).collect()
    }

    fn data_file(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| self.path.with_extension("data"))
    }

    /// Opens the traces in the files: of an archive, a directory or a dump those inside.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_all(&self, limit: &UnpackLimit) -> Result<InputSet, OpenError> {
        let mut all = InputSet::default();
        if file_access::is_dir(&self.path) {
            let inside = archive::inputs_in_directory(&self.path, limit)?;
            if inside.inputs.is_empty() {
                return Err(InputError::Directory { name: self.path.display().to_string() }.into());
            }
            return Ok(inside);
        }
        for input in self.open_unexpanded(limit)? {
            all.extend(expand(input)?);
        }
        Ok(all)
    }

    /// Opens the files themselves, or the file of an archive that is named.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_unexpanded(&self, limit: &UnpackLimit) -> Result<Vec<Input>, OpenError> {
        let Some(ArchiveMember { archive, file, member }) = ArchiveMember::open(&self.path) else {
            return Ok(self.open(limit)?);
        };
        let mut input = Input::of_file(file, &archive, limit)?;
        for member in member.split(MEMBER_SEPARATOR) {
            input = archive::member(&input, member)?;
        }
        Ok(vec![input])
    }

    /// Opens the input. A file that is named like a key file, but is whole, is an input of its own, and so is
    /// the data file that is named together with it.
    ///
    /// # Errors
    /// [`InputError`].
    pub fn open(&self, limit: &UnpackLimit) -> Result<Vec<Input>, InputError> {
        let input = Input::open_within(&self.path, limit)?;
        let is_whole = match identify(&input) {
            Ok(FormatId::MethodTrace) => !is_text_section(&input),
            Ok(_) => true,
            Err(_) => false,
        };
        let data = match &self.data {
            Some(data) => Some(Input::open_within(data, limit)?),
            None if has_ending(&self.path, "key") && !is_whole => {
                Some(Input::open_within(&self.data_file(), limit)?)
            }
            None => None,
        };
        match data {
            Some(data) if !is_whole => Ok(vec![input.joined(&data, limit)?]),
            data => Ok([input].into_iter().chain(data).collect()),
        }
    }
}

/// The file that the name of an input stands for.
fn completed(path: &Path) -> Cow<'_, Path> {
    let with = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    if path.as_os_str() == "-" || file_access::exists(path) {
        return Cow::Borrowed(path);
    }
    let candidates = [with(".trace"), with(".key")];
    candidates.into_iter().find(|file| file_access::is_file(file)).map_or(Cow::Borrowed(path), Cow::Owned)
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|e| e == ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_its_ending_finds_the_trace_or_the_key_file_with_its_data() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("app.1");
        let write = |ending: &str, text: &str| std::fs::write(dir.path().join(ending), text).unwrap();
        let paths = [base.clone()];
        let content = || {
            let [files] = &input_files(&paths)[..] else { return None };
            let inputs = files.open(&UnpackLimit::default()).ok()?;
            assert_eq!(inputs.len(), 1);
            Some(inputs[0].to_vec())
        };
        assert_eq!(content(), None);
        write("app.1.key", "key,");
        assert_eq!(content(), None, "the data file is missing");
        write("app.1.data", "data");
        assert_eq!(content().as_deref(), Some(&b"key,data"[..]));
        assert_eq!(files_of(&paths), ["app.1.key", "app.1.data"].map(|name| dir.path().join(name)));
        write("app.1.trace", "trace");
        assert_eq!(content().as_deref(), Some(&b"trace"[..]));
        write("app.1", "base");
        assert_eq!(content().as_deref(), Some(&b"base"[..]));
    }

    fn joined(paths: &[&str]) -> Vec<String> {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let names = |files: &InputFiles| {
            files.files().iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join("+")
        };
        input_files(&paths).iter().map(names).collect()
    }

    #[test]
    fn a_key_file_takes_the_data_file_of_its_name_or_the_one_behind_it() {
        assert_eq!(joined(&["a.key", "a.data", "b.trace"]), ["a.key+a.data", "b.trace"]);
        assert_eq!(joined(&["a.data", "b.trace", "a.key"]), ["b.trace", "a.key+a.data"]);
        assert_eq!(joined(&["a.key", "other.data"]), ["a.key+other.data"]);
        assert_eq!(joined(&["a.key", "b.data", "b.key", "a.data"]), ["a.key+a.data", "b.key+b.data"]);
        assert_eq!(joined(&["a.key", "a.key"]), ["a.key+a.data", "a.key+a.data"]);
        assert_eq!(joined(&["perf.data", "a.key"]), ["perf.data", "a.key+a.data"]);
        assert_eq!(joined(&["-", "-"]), ["-", "-"]);
    }

    #[test]
    fn a_whole_trace_that_is_named_like_a_key_file_is_an_input_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.key");
        let open =
            || open_all(std::slice::from_ref(&path), &UnpackLimit::default()).map(|set| set.inputs.len());
        std::fs::write(&path, "# tracer: nop\n").unwrap();
        assert_eq!(open().unwrap(), 1);
        std::fs::write(&path, "*version\n3\n*end\nSLOW").unwrap();
        assert_eq!(open().unwrap(), 1);
        std::fs::write(&path, "*version\n3\n*end\n").unwrap();
        assert!(open().unwrap_err().to_string().contains("a.data: "));
    }
}
