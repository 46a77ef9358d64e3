//! The part of a running recording that is kept in memory, as a recording of its own.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::export::convert::{Conversion, ConvertError, ConvertRequest};
use crate::export::{FORMATS, OutputFormat};
use crate::formats::trace_dat::FollowedPage;
use crate::formats::unpack_budget::UnpackLimit;
use crate::output_file::{OutputFile, Readers, ScratchDir};
use crate::trace_dat::RecorderInfo;
use crate::trace_dat::recorder_stream::StreamedHead;

/// The name of the format of a recording itself.
const DAT: &str = "trace-dat";
/// The name of the format of report pages.
const PAGE: &str = "report";
/// Most bytes that a page of the kept part may take in memory: it is made while the recording goes on.
const PAGE_BYTES: u64 = 256 << 20;
/// The shortest part that a page is made of instead of all: one of so many.
const MAX_PARTS: u64 = 64;
/// The longest name of a temporary file, characters.
const MAX_NAME: usize = 60;

/// The head of a recording and the pages of its last seconds, which it shares with the recording.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    pub(super) head: Option<Arc<StreamedHead>>,
    pub(super) cpus: Vec<Vec<FollowedPage>>,
    /// Whether pages of the recording are missing.
    pub(super) is_cut: bool,
    pub(super) title: String,
    /// The session's start and its last time, in the recording's clock.
    pub(super) times: Option<(Timestamp, Timestamp)>,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// The name of its format.
    pub format: &'static str,
    /// Its size, bytes; `None` where it is no regular file.
    pub bytes: Option<u64>,
    /// Whether events are missing in the recording, or data in the file.
    pub is_lossy: bool,
}

/// Why the kept part of a recording was not written.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// No page has come yet.
    #[error("nothing has been recorded yet")]
    Nothing,
    /// A file could not be written or read.
    #[error("{path}: {source}")]
    File {
        /// The file's path.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The conversion failed.
    #[error(transparent)]
    Convert(#[from] Box<ConvertError>),
}

impl From<ConvertError> for KeptError {
    fn from(error: ConvertError) -> KeptError {
        KeptError::Convert(Box::new(error))
    }
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> KeptError {
    move |source| KeptError::File { path: path.display().to_string(), source }
}

impl Kept {
    /// Whether there is no page.
    pub fn is_empty(&self) -> bool {
        self.cpus.iter().all(Vec::is_empty)
    }

    /// The times of the session, ns, from the begin of the first page to the last time that is known.
    pub fn extent_ns(&self) -> Option<(u64, u64)> {
        let (start, end) = self.times?;
        let first = self.cpus.iter().filter_map(|pages| pages.first()).map(|page| page.ts).min()?;
        Some((first.since(start), end.since(start)))
    }

    /// The pages with events between two times of the session, ns from its start.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Kept {
        let start = self.times.map_or(Timestamp::MIN, |(start, _)| start);
        let from = start.saturating_add(from_ns);
        let to = start.saturating_add(to_ns);
        let mut left_out = false;
        let part = |pages: &Vec<FollowedPage>| {
            let first = pages.partition_point(|page| page.ts <= from).saturating_sub(1);
            let end = pages.partition_point(|page| page.ts <= to).max(first);
            left_out |= end - first < pages.len();
            pages[first..end].to_vec()
        };
        let cpus = self.cpus.iter().map(part).collect();
        Kept {
            head: self.head.clone(),
            cpus,
            is_cut: self.is_cut || left_out,
            title: self.title.clone(),
            times: self.times,
        }
    }

    /// Writes a trace.dat.
    fn write_dat(&self, out: &mut dyn Write) -> Option<io::Result<()>> {
        let head = self.head.as_ref().filter(|_| !self.is_empty())?;
        let cpus: Vec<Vec<&[u8]>> =
            self.cpus.iter().map(|pages| pages.iter().map(|page| &*page.bytes).collect()).collect();
        Some(whole(head, self.is_cut).write_dat(&cpus, out))
    }

    /// The bytes of a trace.dat.
    ///
    /// # Errors
    /// [`KeptError::Nothing`].
    pub fn dat(&self) -> Result<Vec<u8>, KeptError> {
        let mut out = Vec::new();
        let written = self.write_dat(&mut out).ok_or(KeptError::Nothing)?;
        written.map_err(file_error(Path::new("memory")))?;
        Ok(out)
    }

    /// Writes a file in the format of this name, or without one in that of the path's ending.
    ///
    /// # Errors
    /// [`KeptError`]; no file is left behind.
    pub fn write(&self, path: &Path, format: Option<&str>) -> Result<WrittenFile, KeptError> {
        let is_dat = match format {
            Some(name) => name == DAT,
            None => {
                OutputFormat::of_path(path).is_some_and(|format| format.name == DAT)
                    && path.extension().is_none_or(|ending| ending != "gz")
            }
        };
        if is_dat { self.copy(path) } else { self.convert(path, format, UnpackLimit::default()) }
    }

    /// Writes the pages as they are.
    fn copy(&self, path: &Path) -> Result<WrittenFile, KeptError> {
        let file = OutputFile::create(path, Readers::AsTarget).map_err(file_error(path))?;
        let mut out = io::BufWriter::new(file.file());
        self.write_dat(&mut out).ok_or(KeptError::Nothing)?.map_err(file_error(path))?;
        out.flush().map_err(file_error(path))?;
        drop(out);
        let bytes = file.file().metadata().ok().filter(|meta| meta.is_file()).map(|meta| meta.len());
        file.commit().map_err(file_error(path))?;
        let format = FORMATS.iter().map(|format| format.name).find(|name| *name == DAT).unwrap_or(DAT);
        let is_lossy = self.cpus.iter().flatten().any(|page| page.has_losses);
        Ok(WrittenFile { format, bytes, is_lossy })
    }

    fn convert(
        &self,
        path: &Path,
        format: Option<&str>,
        unpack_limit: UnpackLimit,
    ) -> Result<WrittenFile, KeptError> {
        let dir = std::env::temp_dir();
        let scratch = ScratchDir::create(&dir).map_err(file_error(&dir))?;
        let dat = scratch.path().join(self.file_name());
        let file = std::fs::File::create(&dat).map_err(file_error(&dat))?;
        let mut out = io::BufWriter::new(file);
        self.write_dat(&mut out).ok_or(KeptError::Nothing)?.map_err(file_error(&dat))?;
        out.flush().map_err(file_error(&dat))?;
        drop(out);
        let inputs: [PathBuf; 1] = [dat];
        let request = ConvertRequest { format, unpack_limit, ..ConvertRequest::new(&inputs, path) };
        let converted = Conversion::prepare(request)?.run()?;
        let is_lossy = converted.is_lossy();
        Ok(WrittenFile { format: converted.format.name, bytes: converted.bytes, is_lossy })
    }

    /// A report page. If a page of all would take too much memory, it is a page of the last part, whose title
    /// says so.
    ///
    /// # Errors
    /// [`KeptError`].
    pub fn page(&self) -> Result<Vec<u8>, KeptError> {
        self.page_within(UnpackLimit::new(Some(PAGE_BYTES)))
    }

    fn page_within(&self, limit: UnpackLimit) -> Result<Vec<u8>, KeptError> {
        let dir = std::env::temp_dir();
        let scratch = ScratchDir::create(&dir).map_err(file_error(&dir))?;
        let path = scratch.path().join("page.html");
        let whole = self.extent_ns();
        let mut part = self.clone();
        let mut parts = 1;
        loop {
            let Err(error) = part.convert(&path, Some(PAGE), limit.afresh()) else {
                return std::fs::read(&path).map_err(file_error(&path));
            };
            let is_over = matches!(&error, KeptError::Convert(error) if error.is_over_held_limit());
            let Some((start, end)) = whole.filter(|_| is_over && parts < MAX_PARTS) else {
                return Err(error);
            };
            parts *= 2;
            let from = end - end.saturating_sub(start) / parts;
            part = self.between(from, end);
            part.title = format!("last {} ms of {}", (end - from) / 1_000_000, self.title);
        }
    }

    /// The title as the name of a file, which pages have as their title.
    fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let name: String = self.title.chars().map(plain).take(MAX_NAME).collect();
        let name = name.trim_matches('.');
        let name = name.strip_suffix(".dat").unwrap_or(name);
        if name.is_empty() { "live.dat".to_owned() } else { format!("{name}.dat") }
    }
}

/// The head of a recording that ends here. Counts of the whole recording do not hold for a part of it.
fn whole(head: &StreamedHead, is_cut: bool) -> StreamedHead {
    let mut head = head.clone();
    let facts: Option<RecorderInfo> = serde_json::from_slice(head.facts().trim_ascii()).ok();
    let facts = facts.unwrap_or_default();
    if !facts.complete || is_cut {
        let recorded = if is_cut { Vec::new() } else { facts.recorded.clone() };
        let facts = RecorderInfo { complete: true, recorded, ..facts };
        // Where they have no place, the file says that its recorder has not ended it.
        let _ = serde_json::to_vec(&facts).map(|text| head.end(&text));
    }
    head
}
