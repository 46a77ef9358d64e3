//! A recording in a file that is shown while it grows: the stream of a recorder, or a trace.dat.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::request::{LiveRequest, OUTPUT, check_directory};
use super::result::outcome;
use super::view::{LiveControls, LiveView};
use crate::desk::device::StreamEnd;
use crate::desk::error::DeskError;
use crate::desk::outcome::DeviceOutcome;
use crate::desk::user_interface::UserInterface;
use crate::file_access;
use crate::formats::input::unreadable_cure;
use crate::formats::trace_dat::{self, GrowingDat, GrowingStep};
use crate::trace_dat::MAGIC as DAT_MAGIC;
use crate::trace_dat::recorder_stream::MAGIC as STREAM_MAGIC;

/// Time between two looks whether a file has grown.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a file may be empty.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a stream that are read at once.
const PART_BYTES: usize = 256 << 10;
/// The exit status of a recorder that has lost something.
const LOSSY: u8 = 3;

/// A recording that nothing can be done to.
struct OnlyShown;

impl LiveControls for OnlyShown {
    fn can(&self) -> Vec<&'static str> {
        vec!["save", "stop"]
    }

    fn mark(&self, _: &str) -> Result<(), DeskError> {
        Err(DeskError::Request("a recording in a file gets no markers from here".into()))
    }

    fn switch(&self, _: &[String], _: &[String]) -> Result<(), DeskError> {
        Err(DeskError::Request("the categories of a recording in a file are what they are".into()))
    }
}

/// Why a file is not followed.
#[derive(Debug, thiserror::Error)]
enum NotFollowed {
    #[error("is a directory: name the file that is being written")]
    Directory,
    #[error(
        "is no regular file: a recording can be followed in a file that grows (`tracebridge record -o - --live … > \
         x.stream`, `tracebridge record -o x.dat …`)"
    )]
    NotRegular,
    #[error("at byte 0: nothing has been written to the file for {} s", BEGIN_TIMEOUT.as_secs())]
    Empty,
    #[error(
        "at byte 0: neither a trace.dat nor the stream of a recorder. `tracebridge record -o x.dat …` and \
         `tracebridge record -o - --live … > x.stream` write what can be followed; `tracebridge report` shows other \
         recordings"
    )]
    Unknown,
    #[error(
        "no such file. {} is there: trace-cmd writes the file itself when it ends, and until then nothing can be \
         followed. `tracebridge record -o x.dat …` writes a file that can",
        .0.display()
    )]
    TraceCmd(PathBuf),
    #[error("{error}{}", unreadable_cure(error))]
    Unreadable { error: io::Error },
    #[error("at byte {len}: the file was cut while it was followed: {len} bytes are left of {had}")]
    Shrunk { len: u64, had: u64 },
}

impl From<NotFollowed> for io::Error {
    fn from(error: NotFollowed) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// A file that is followed.
enum FollowedFile {
    Stream(GrowingStream),
    Dat(Box<GrowingDat>),
}

/// The stream of a recorder in a file.
struct GrowingStream {
    file: File,
    had: u64,
    part: Vec<u8>,
}

impl GrowingStream {
    fn step(&mut self, out: &mut dyn Write) -> io::Result<GrowingStep> {
        let read = self.file.read(&mut self.part)?;
        if read == 0 {
            let len = self.file.metadata()?.len();
            return if len < self.had {
                Err(NotFollowed::Shrunk { len, had: self.had }.into())
            } else {
                Ok(GrowingStep::Waits)
            };
        }
        self.had += read as u64;
        out.write_all(&self.part[..read])?;
        Ok(GrowingStep::Goes)
    }
}

impl FollowedFile {
    fn step(&mut self, out: &mut dyn Write) -> io::Result<GrowingStep> {
        match self {
            FollowedFile::Stream(stream) => stream.step(out),
            FollowedFile::Dat(dat) => Ok(dat.step(out)?),
        }
    }

    fn notes(&self) -> &[String] {
        match self {
            FollowedFile::Stream(_) => &[],
            FollowedFile::Dat(dat) => dat.notes(),
        }
    }
}

/// Shows a recording in a file, as far as it is there and as it grows, until it is complete. `show` is given
/// the page's address.
///
/// # Errors
/// [`DeskError`] for a file that cannot be read, or is no recording that can be followed.
pub fn follow_file(
    path: &Path,
    request: &LiveRequest,
    ui: &dyn UserInterface,
    show: &dyn Fn(&str),
) -> Result<DeviceOutcome, DeskError> {
    check_directory(&request.output_dir)?;
    let local_error = |source| DeskError::LocalFile { path: path.display().to_string(), source };
    let Some(mut followed) = open(path, ui).map_err(local_error)? else {
        return Ok(outcome(&StreamEnd { status: Some(0), log: String::new(), lost: None }, 0, &[]));
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let view = LiveView::start(request, Path::new(OUTPUT), &name)?;
    show(&view.address());
    let read = view.run(&OnlyShown, |out| {
        loop {
            if ui.wants_end() || view.wants_end() {
                return Ok(());
            }
            match followed.step(out)? {
                GrowingStep::Ended => return Ok(()),
                GrowingStep::Waits if view.has_ended() => return Ok(()),
                GrowingStep::Waits => std::thread::sleep(POLL_INTERVAL),
                GrowingStep::Goes => {}
            }
        }
    });
    let written = view.written();
    view.finish("the recording has ended");
    read.map_err(local_error)?;
    let notes = followed.notes();
    let log: String = notes.iter().map(|note| format!("tracebridge: {}: {note}\n", path.display())).collect();
    let status = if notes.is_empty() { 0 } else { LOSSY };
    Ok(outcome(&StreamEnd { status: Some(status), log, lost: None }, 0, &written))
}

/// Opens a file by what it begins with. `None` where the user ends the wait for that.
fn open(path: &Path, ui: &dyn UserInterface) -> io::Result<Option<FollowedFile>> {
    let kind = file_access::metadata(path).map_err(|error| {
        let mut part = path.as_os_str().to_owned();
        part.push(".cpu0");
        let part = PathBuf::from(part);
        let is_trace_cmd = error.kind() == io::ErrorKind::NotFound && file_access::exists(&part);
        if is_trace_cmd { NotFollowed::TraceCmd(part).into() } else { error }
    })?;
    // A pipe that nobody writes to would not even be opened.
    if kind.is_dir() {
        return Err(NotFollowed::Directory.into());
    }
    if !kind.is_file() {
        return Err(NotFollowed::NotRegular.into());
    }
    let mut file = file_access::open(path).map_err(|error| NotFollowed::Unreadable { error })?;
    let deadline = Instant::now() + BEGIN_TIMEOUT;
    loop {
        let mut begin = Vec::new();
        file.rewind()?;
        (&file).take(DAT_MAGIC.len() as u64).read_to_end(&mut begin)?;
        if begin.starts_with(STREAM_MAGIC) {
            file.rewind()?;
            return Ok(Some(FollowedFile::Stream(GrowingStream { file, had: 0, part: vec![0; PART_BYTES] })));
        }
        if trace_dat::detect(&begin) {
            return Ok(Some(FollowedFile::Dat(Box::new(GrowingDat::open(file)?))));
        }
        if !STREAM_MAGIC.starts_with(&begin) && !DAT_MAGIC.starts_with(&begin) {
            return Err(NotFollowed::Unknown.into());
        }
        // Somebody is about to write it.
        if Instant::now() > deadline {
            return Err(NotFollowed::Empty.into());
        }
        if ui.wants_end() {
            return Ok(None);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
