//! The inputs of a command. Opens one: maps a file into memory or reads standard input, and decompresses gzip
//! and zstd.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::OnceLock;

use super::Damage;
use super::format_id::{FormatId, UnreadFile};
use super::mapped_file::MappedFile;
use super::spill::{FileBytes, Release, SpillWriter, is_of_temporary_file};
use super::unpack::Packing;
use super::unpack_budget::{OverUnpackLimit, UnpackBudget, UnpackLimit, is_over_limit};
use super::utf16::{SHOWING_BYTES, UnitOrder, Utf16Reader};
use crate::clock::Clock;
use crate::file_access;
use crate::progress::{self, Pass};
use crate::trace_dat::recorder_stream;
use crate::trace_dat::recorder_stream::{RecorderStream, StreamError};

/// Without a limit of the user's, the most data that is read from a pipe, bytes.
const MAX_PIPE_BYTES: u64 = 4 << 30;

/// The number of bytes at the start of a text or an unknown file that decide the file's format.
pub(crate) const DETECTION_BYTES: usize = 64 << 10;

/// The unpacked bytes of an input, and where they came from.
#[derive(Debug)]
pub struct Input {
    /// The path as given; `-` for standard input.
    pub name: String,
    /// Size on disk, or of the data from the pipe, before decompression, bytes.
    pub size: u64,
    /// The encoding that was undone: `gzip`, `zstd`, `UTF-16` or `tracebridge's stream`.
    pub packed: Option<&'static str>,
    /// Damage that was found while the input was decompressed.
    pub damage: Vec<Damage>,
    /// The offset to add to the input's times, ns, where the archive that it came in says so.
    pub offset_ns: Option<i64>,
    /// The clocks and the machine that the manifest of its archive states.
    pub place: Option<Box<ManifestPlace>>,
    /// Whether the file is in an archive.
    pub is_member: bool,
    /// The file's format, once somebody has asked for it.
    format: OnceLock<Result<FormatId, UnreadFile>>,
    /// The bytes that the file may still unpack to.
    pub(crate) unpack_budget: UnpackBudget,
    bytes: FileBytes,
}

/// The place of an input on the timeline, as the manifest of its archive states it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManifestPlace {
    /// The timeline's clock.
    pub trace_time: Option<Clock>,
    /// The machine that the file is of.
    pub machine: Option<String>,
    /// The clock that [`Input::offset_ns`] is added to; `None` is the only clock of a file that names none.
    pub clock: Option<Clock>,
    /// The name of the input whose clock reads `offset_ns` more.
    pub other: Option<String>,
    /// The clock of the other input; `None` as above.
    pub other_clock: Option<Clock>,
    /// Keys and values that describe the archive.
    pub attributes: Vec<(String, String)>,
}

/// The reason why the bytes of an input cannot be read. Every error names the input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The system refused to open or read the file.
    #[error("{name}: {source}{}", unreadable_cure(source))]
    Io {
        /// The path as given.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The path is a directory.
    #[error("{name}: is a directory: name a file in it; `tracebridge info {name}` lists the traces in it")]
    Directory {
        /// The path as given.
        name: String,
    },
    /// The input has no bytes.
    #[error("{name}: is empty (0 bytes): the recording was never written, or the copy failed")]
    Empty {
        /// The path as given.
        name: String,
    },
    /// The input decompresses to more than it may.
    #[error("{name}: {source}")]
    TooBig {
        /// The path as given.
        name: String,
        /// The limit.
        source: OverUnpackLimit,
    },
    /// A stream of `record -o -` that cannot be read.
    #[error("{name}: {source}")]
    Stream {
        /// The path as given.
        name: String,
        /// The offset and the cause.
        source: StreamError,
    },
    /// Another program has shortened the file since it was opened.
    #[error("{name}: another program shortened this file while it was read: run this again")]
    Shrunk {
        /// The path as given.
        name: String,
    },
    /// Compressed data of which not one byte could be decompressed.
    #[error("{name}: {packed} data that can't be unpacked: {source}")]
    Packed {
        /// The path as given.
        name: String,
        /// `gzip` or `zstd`.
        packed: &'static str,
        /// The decoder's error.
        source: io::Error,
    },
}

/// The cure for a file that the system does not open; it follows the system's text, and is empty where
/// that is enough.
pub(crate) fn unreadable_cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            ": it is not yours to read: run this as its owner, or have the owner make it readable (`chmod a+r`)"
        }
        _ => "",
    }
}

impl Deref for Input {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Release for Input {
    fn release(&self, range: Range<usize>) {
        self.release_pages(range);
    }
}

impl Input {
    /// Opens `path` (`-` is standard input) and decompresses it if it is a gzip or zstd file. A text in
    /// UTF-16 is read as UTF-8. The file may unpack to as many bytes as are usual for its size.
    pub fn open(path: &Path) -> Result<Input, InputError> {
        Input::open_within(path, &UnpackLimit::default())
    }

    /// The same as [`Input::open`], with a limit on what the file may unpack to.
    pub fn open_within(path: &Path, limit: &UnpackLimit) -> Result<Input, InputError> {
        let name = path.display().to_string();
        let io_error = |source| InputError::Io { name: name.clone(), source };
        if name == "-" {
            let bytes = read_all(io::stdin().lock(), limit).map_err(io_error)?;
            return Input::of_bytes(name, FileBytes::Owned(bytes), limit);
        }
        Input::of_file(file_access::open(path).map_err(io_error)?, path, limit)
    }

    /// The same as [`Input::open_within`], of a file that is open already.
    pub(super) fn of_file(file: File, path: &Path, limit: &UnpackLimit) -> Result<Input, InputError> {
        let name = path.display().to_string();
        let io_error = |source| InputError::Io { name: name.clone(), source };
        let meta = file.metadata().map_err(io_error)?;
        let bytes = if meta.is_dir() {
            return Err(InputError::Directory { name });
        } else if !meta.is_file() {
            FileBytes::Owned(read_all(file, limit).map_err(io_error)?)
        } else if meta.len() == 0 {
            FileBytes::Owned(Vec::new())
        } else {
            FileBytes::Mapped(MappedFile::new(file, &name).map_err(io_error)?)
        };
        Input::of_bytes(name, bytes, limit)
    }

    fn of_bytes(name: String, bytes: FileBytes, limit: &UnpackLimit) -> Result<Input, InputError> {
        if bytes.is_empty() {
            return Err(InputError::Empty { name });
        }
        let size = bytes.len() as u64;
        Input::new(name, size, bytes, limit.budget(size)).unpack()?.unstream()
    }

    /// A file in an archive, which is decompressed if it is a gzip or zstd file. It shares the budget of the
    /// archive.
    pub(super) fn open_member(
        name: String,
        bytes: FileBytes,
        unpack_budget: UnpackBudget,
    ) -> Result<Input, InputError> {
        let size = bytes.len() as u64;
        let mut input = Input::new(name, size, bytes, unpack_budget).unpack()?.unstream()?;
        input.is_member = true;
        Ok(input)
    }

    /// An input of bytes that are already in memory and not compressed.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Input {
        let size = bytes.len() as u64;
        let unpack_budget = UnpackLimit::default().budget(size);
        Input::new(name.to_owned(), size, FileBytes::Owned(bytes), unpack_budget)
    }

    fn new(name: String, size: u64, bytes: FileBytes, unpack_budget: UnpackBudget) -> Input {
        Input {
            name,
            size,
            packed: None,
            damage: Vec::new(),
            offset_ns: None,
            place: None,
            is_member: false,
            format: OnceLock::new(),
            unpack_budget,
            bytes,
        }
    }

    /// Releases the memory that holds `range` of a mapped file. The system reads the pages from the file
    /// again when they are accessed.
    pub(crate) fn release_pages(&self, range: Range<usize>) {
        self.bytes.release(range);
    }

    /// The input's format. The first call asks `decide` for it.
    pub(super) fn format_or_else(
        &self,
        decide: impl FnOnce(&[u8]) -> Result<FormatId, UnreadFile>,
    ) -> Result<FormatId, UnreadFile> {
        *self.format.get_or_init(|| {
            let format = decide(self);
            match &format {
                Ok(format) => log::debug!("{}: {} bytes, read as {format}", self.name, self.size),
                Err(unread) => log::debug!("{}: {} bytes, not read: {unread:?}", self.name, self.size),
            }
            format
        })
    }

    /// This file with the contents of `rest` behind its own, as one input with the name of this file.
    ///
    /// # Errors
    /// [`InputError::Shrunk`].
    pub(super) fn joined(self, rest: &Input, limit: &UnpackLimit) -> Result<Input, InputError> {
        let bytes = [&self[..], &rest[..]].concat();
        self.check_whole()?;
        rest.check_whole()?;
        let size = self.size + rest.size;
        let behind = self.len() as u64;
        let rest_damage =
            rest.damage.iter().map(|damage| Damage { offset: behind + damage.offset, ..damage.clone() });
        let damage = self.damage.iter().cloned().chain(rest_damage).collect();
        let packed = self.packed.or(rest.packed);
        let joined = Input::new(self.name, size, FileBytes::Owned(bytes), limit.budget(size));
        Ok(Input { packed, damage, ..joined })
    }

    /// Checks that the file has not become shorter since it was opened. If it has, some of the bytes that
    /// were read may be zeros.
    ///
    /// # Errors
    /// [`InputError::Shrunk`].
    pub(crate) fn check_whole(&self) -> Result<(), InputError> {
        match &self.bytes {
            FileBytes::Mapped(map) if map.has_shrunk() => Err(InputError::Shrunk { name: self.name.clone() }),
            _ => Ok(()),
        }
    }

    fn unpack(mut self) -> Result<Input, InputError> {
        let Some(packing) = Encoding::from_first_bytes(&self) else { return Ok(self) };
        let mut out = SpillWriter::default();
        let _pass = Pass::begin("unpacking", self.size);
        let result = packing.unpack(&self, &self.unpack_budget, &mut out);
        let packed = packing.name();
        match result {
            Err(error) if is_over_limit(&error) => {
                return Err(InputError::TooBig { name: self.name, source: self.unpack_budget.error() });
            }
            Err(source) if is_of_temporary_file(&source) => {
                return Err(InputError::Io { name: self.name, source });
            }
            Err(source) if out.is_empty() => {
                return Err(InputError::Packed { name: self.name, packed, source });
            }
            Err(error) => self.damage.push(Damage {
                offset: out.len() as u64,
                what: format!(
                    "the {packed} data is cut or damaged after {} unpacked bytes: {error}",
                    out.len()
                ),
            }),
            Ok(_) if out.is_empty() => return Err(InputError::Empty { name: self.name }),
            Ok(_) => {}
        }
        self.packed = Some(packed);
        self.bytes = match out.finish() {
            Ok(bytes) => bytes,
            Err(source) => return Err(InputError::Io { name: self.name, source }),
        };
        Ok(self)
    }
}

/// How a whole file is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Packed(Packing, &'static str),
    Utf16(UnitOrder),
}

impl Encoding {
    /// The encoding that the first bytes of a file show.
    fn from_first_bytes(bytes: &[u8]) -> Option<Encoding> {
        match bytes.get(..4)? {
            [0x1f, 0x8b, 8, _] => Some(Encoding::Packed(Packing::Gzip, "gzip")),
            [0x28, 0xb5, 0x2f, 0xfd] => Some(Encoding::Packed(Packing::Zstd, "zstd")),
            _ => UnitOrder::from_start(bytes).map(Encoding::Utf16),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Encoding::Packed(_, name) => name,
            Encoding::Utf16(_) => "UTF-16",
        }
    }

    fn unpack(self, bytes: &[u8], budget: &UnpackBudget, out: &mut SpillWriter) -> io::Result<()> {
        match self {
            Encoding::Packed(packing, _) => budget.unpack(packing, BytesWithProgress(bytes), out),
            Encoding::Utf16(order) => budget.read_to_end(Utf16Reader::new(bytes, order), out),
        }
    }
}

/// A reader of the contents of a file that is read from `from`, decompressed if it is a gzip or zstd file. It
/// ends with an error at the end of the budget.
pub(crate) fn unpacking_reader<'a>(
    mut from: impl Read + 'a,
    budget: &UnpackBudget,
) -> io::Result<Box<dyn Read + 'a>> {
    let mut magic = Vec::new();
    from.by_ref().take(MAGIC_BYTES).read_to_end(&mut magic)?;
    let encoding = Encoding::from_first_bytes(&magic);
    let whole = io::Cursor::new(magic).chain(from);
    let packing = match encoding {
        Some(Encoding::Utf16(order)) => return start_of_text(whole, order),
        Some(Encoding::Packed(packing, _)) => Some(packing),
        None => None,
    };
    budget.reader(packing, io::BufReader::new(whole))
}

/// The start of a text in UTF-16, which shows what the file is, as UTF-8.
fn start_of_text<'a>(from: impl Read, order: UnitOrder) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = Vec::new();
    // Each of its characters has two bytes or more.
    from.take(2 * DETECTION_BYTES as u64).read_to_end(&mut start)?;
    let mut text = Vec::new();
    match Utf16Reader::new(&start, order).read_to_end(&mut text) {
        Err(error) if text.is_empty() => Err(error),
        _ => Ok(Box::new(io::Cursor::new(text))),
    }
}

/// The bytes that show how a file is compressed.
const MAGIC_BYTES: u64 = SHOWING_BYTES as u64;

/// The first [`DETECTION_BYTES`] that `from` gives. An error counts only where there is not one byte before
/// it: what was cut off may still show its format.
pub(crate) fn first_bytes(from: impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    match from.take(DETECTION_BYTES as u64).read_to_end(&mut start) {
        Err(error) if start.is_empty() => Err(error),
        _ => Ok(start),
    }
}

/// Bytes in memory. Reading them reports the progress.
struct BytesWithProgress<'a>(&'a [u8]);

/// The most bytes that are read at once, so that there is a progress.
const PROGRESS_STEP_BYTES: usize = 64 << 10;

impl Read for BytesWithProgress<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(out)?;
        progress::advance(count as u64);
        Ok(count)
    }
}

impl BufRead for BytesWithProgress<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(&self.0[..self.0.len().min(PROGRESS_STEP_BYTES)])
    }

    fn consume(&mut self, count: usize) {
        progress::advance(count as u64);
        self.0.consume(count);
    }
}

impl Input {
    /// Turns a stream of `record -o -` into the trace.dat that it describes. Other inputs stay as they are.
    fn unstream(mut self) -> Result<Input, InputError> {
        if !self.starts_with(recorder_stream::MAGIC) {
            return Ok(self);
        }
        let name = self.name.clone();
        let stream = RecorderStream::parse(&self)
            .map_err(|source| InputError::Stream { name: name.clone(), source })?;
        let mut dat = Vec::new();
        stream.write_dat(&mut dat).map_err(|source| InputError::Io { name, source })?;
        let cut = stream.cut.map(|cut| {
            let what = format!("the stream is cut: {}; what came before is there", cut.fault);
            Damage { offset: cut.offset, what }
        });
        self.damage.extend(cut);
        self.packed = Some("tracebridge's stream");
        self.bytes = FileBytes::Owned(dat);
        Ok(self)
    }
}

/// A pipe has more data than is kept in memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "more than {limit} bytes, the limit for data that is kept in memory: write it to a file and name that, or set \
     another limit with --max-memory BYTES"
)]
struct OverMemoryLimit {
    limit: u64,
}

fn read_all(from: impl Read, limit: &UnpackLimit) -> io::Result<Vec<u8>> {
    let limit = limit.max().unwrap_or(MAX_PIPE_BYTES);
    let mut out = Vec::new();
    from.take(limit.saturating_add(1)).read_to_end(&mut out)?;
    if out.len() as u64 > limit {
        return Err(io::Error::other(OverMemoryLimit { limit }));
    }
    Ok(out)
}

/// The inputs that one or several files hold.
#[derive(Debug, Default)]
pub struct InputSet {
    /// The inputs, in the order of the files.
    pub inputs: Vec<Input>,
    /// The parts of the files that are not among the inputs.
    pub omissions: Vec<Omission>,
}

/// A file, or a part of one, that is not among the inputs. Its text for people follows its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// The path as given; for a file in an archive that of the archive and the file's own behind it.
    pub name: String,
    /// Why it is not among the inputs.
    pub reason: OmissionReason,
}

/// The reason why a file is not among the inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OmissionReason {
    /// An earlier input has the same contents.
    SameContents {
        /// The name of the earlier input.
        first: String,
    },
    /// The trace is in an archive from which only the method traces of dumps are taken.
    BesideDumps {
        /// The trace's format.
        format: FormatId,
    },
    /// The file unpacks to more than the archive still may.
    TooBig(OverUnpackLimit),
    /// The directory is inside of too many others.
    TooDeep,
    /// The directory cannot be read.
    Unreadable(String),
    /// The archive or directory has more files than are searched.
    TooMany {
        /// The number of files that are searched.
        limit: usize,
    },
}

impl InputSet {
    /// A set of one input.
    pub fn from_input(input: Input) -> InputSet {
        InputSet { inputs: vec![input], omissions: Vec::new() }
    }

    /// Adds another set.
    pub(super) fn extend(&mut self, others: InputSet) {
        self.inputs.extend(others.inputs);
        self.omissions.extend(others.omissions);
    }

    /// Leaves out each input with the same contents as an earlier input.
    pub(super) fn without_copies(self) -> InputSet {
        let mut set = InputSet { inputs: Vec::new(), omissions: self.omissions };
        for input in self.inputs {
            match set.inputs.iter().find(|first| first[..] == input[..]) {
                Some(first) => {
                    let reason = OmissionReason::SameContents { first: first.name.clone() };
                    set.omissions.push(Omission { name: input.name, reason });
                }
                None => set.inputs.push(input),
            }
        }
        set
    }
}

impl fmt::Display for Omission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

impl fmt::Display for OmissionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OmissionReason::SameContents { first } => {
                write!(f, "has the same contents as {first}: it is taken once")
            }
            OmissionReason::BesideDumps { format } => write!(
                f,
                "is left out: of an archive without a manifest only the method traces in dumps are read; this is \
                 a file of the format {format}: unzip it and name it"
            ),
            OmissionReason::TooBig(over_limit) => write!(f, "is left out: {over_limit}"),
            OmissionReason::TooDeep => f.write_str("too deep, not searched"),
            OmissionReason::Unreadable(error) => f.write_str(error),
            OmissionReason::TooMany { limit } => write!(f, "only the first {limit} files were searched"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut f = tempfile::NamedTempFile::new().unwrap();
        f.write_all(bytes).unwrap();
        f
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        e.write_all(bytes).unwrap();
        e.finish().unwrap()
    }

    #[test]
    fn compressed_inputs_are_decompressed_and_name_their_compression() {
        let text = b"some text that is long enough to be worth packing, packing, packing";
        for (packed, how) in [(gzip(text), "gzip"), (zstd::encode_all(&text[..], 1).unwrap(), "zstd")] {
            let f = file(&packed);
            let input = Input::open(f.path()).unwrap();
            assert_eq!(&input[..], text);
            assert_eq!((input.packed, input.size), (Some(how), packed.len() as u64));
        }
    }

    #[test]
    fn what_is_read_of_a_member_counts_whether_it_is_packed_or_not() {
        let text = [b'x'; 100];
        let read = |content: &[u8], limit| {
            let budget = UnpackLimit::new(Some(limit)).budget(0);
            unpacking_reader(content, &budget).unwrap().read_to_end(&mut Vec::new())
        };
        for content in [&text[..], &gzip(&text)] {
            assert_eq!(read(content, 100).unwrap(), text.len());
            assert!(is_over_limit(&read(content, 99).unwrap_err()));
        }
    }

    #[test]
    fn a_cut_gzip_file_gives_the_bytes_before_the_cut_and_reports_damage() {
        let text: Vec<u8> =
            (0..60_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let mut packed = gzip(&text);
        packed.truncate(packed.len() / 2);
        let input = Input::open(file(&packed).path()).unwrap();
        assert!(!input.is_empty() && text.starts_with(&input));
        assert_eq!(input.damage.len(), 1);
    }

    #[test]
    fn empty_files_and_directories_are_refused_with_their_name() {
        let f = file(b"");
        let said = Input::open(f.path()).unwrap_err().to_string();
        assert!(said.contains("is empty") && said.contains(&f.path().display().to_string()), "{said}");
        let said = Input::open(Path::new("/")).unwrap_err().to_string();
        assert!(said.contains("is a directory"), "{said}");
    }

    /// As text only: root, as whom the tests may run, is refused no file.
    #[test]
    fn a_file_of_somebody_else_is_refused_with_a_cure() {
        let of =
            |kind: io::ErrorKind| InputError::Io { name: "x.dat".into(), source: kind.into() }.to_string();
        let said = of(io::ErrorKind::PermissionDenied);
        assert!(said.starts_with("x.dat: permission denied: ") && said.contains("`chmod a+r`"), "{said}");
        assert_eq!(of(io::ErrorKind::NotFound), "x.dat: entity not found");
    }
}
