//! The way from a device's files to the output on the host: pulled, verified, converted.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::device::{RoomKeeper, StreamEnd, Verification, is_video};
use super::device_json::DeliveredJson;
use super::error::DeskError;
use super::output_names::{is_capture, is_copy, local_name, numbered, stem, video_beside, written_files};
use super::targets::TargetDevice;
use crate::export::convert::{Conversion, ConvertError, ConvertRequest, Converted};
use crate::export::{FORMATS, OutputFormat};
use crate::formats::input::Input;
use crate::formats::{self, OpenError};
use crate::output_file::{ScratchDir, check_replaceable, dir_of, is_stdout, rename_to_new};
use crate::text::byte_size;
use crate::trace_dat::recorder_stream;

/// So many names are tried for a file that is kept beside the output.
const MAX_NAMES_TRIED: usize = 1000;

/// Size of the buffer of a stream that is received, bytes.
const STREAM_BUFFER_BYTES: usize = 1 << 20;

/// An output of a recording on the host.
pub struct DeliveredOutput {
    /// Its path.
    path: PathBuf,
    /// Its length.
    bytes: u64,
    /// The name of its format.
    format: &'static str,
    /// The comparison with the device's files.
    verification: Verification,
    /// Whether the input or the output lacks something.
    pub is_lossy: bool,
    /// The pulled files, as long as this value lives: the capture, and the method trace of a launch.
    pub pulled: Vec<PathBuf>,
    /// The directory of these files, where they are not the output.
    _scratch: Option<ScratchDir>,
}

impl DeliveredOutput {
    /// `x.pftrace (perfetto, 1.2 MB)`; `x.dat, x.trace (trace.dat, 1.2 MB together)` where the method trace
    /// of a launch stands beside the recording.
    pub fn text(&self) -> String {
        let is_copy = self._scratch.is_none();
        let beside = self.pulled.iter().filter(|file| is_copy && **file != self.path);
        let beside: String = beside.map(|file| format!(", {}", file.display())).collect();
        let together = if beside.is_empty() { "" } else { " together" };
        let verified = match self.verification {
            Verification::Sha256 => "",
            Verification::Size => "; compared by its length alone: the device has no sha256sum",
        };
        let size = byte_size(self.bytes);
        let video = self.video().filter(|_| !is_copy);
        let video = video.map(|file| format!("; its video: {}", file.display())).unwrap_or_default();
        format!("{}{beside} ({}, {size}{together}{verified}){video}", self.path.display(), self.format)
    }

    /// The video of the screen.
    pub fn video(&self) -> Option<&Path> {
        self.pulled.iter().map(PathBuf::as_path).find(|file| is_video(&file.to_string_lossy()))
    }

    /// The fields of a JSON object.
    pub fn json(&self) -> DeliveredJson {
        DeliveredJson {
            output: self.path.to_string_lossy().into_owned(),
            bytes: self.bytes,
            format: self.format.to_owned(),
            verified: self.verification,
            video: self.video().map(|video| video.to_string_lossy().into_owned()),
        }
    }
}

/// Returns a function that turns an error of the system into one of this file.
pub fn local_error(path: &Path) -> impl Fn(io::Error) -> DeskError {
    move |source| DeskError::LocalFile { path: path.display().to_string(), source }
}

/// Fails if `output` cannot become the output of a recording: no format has its ending, or its directory does
/// not exist. To be asked before anything is recorded.
///
/// # Errors
/// [`DeskError`].
pub fn check_output(output: &Path) -> Result<(), DeskError> {
    if is_stdout(output) {
        return Err(DeskError::Request("-o -: name a file; its ending names the format".into()));
    }
    if output.is_dir() {
        return Err(ConvertError::OutputIsDirectory { output: output.display().to_string() }.into());
    }
    if OutputFormat::of_path(output).is_none() {
        let endings: Vec<&str> = FORMATS.iter().flat_map(|format| format.endings.iter().copied()).collect();
        let output = output.display().to_string();
        return Err(DeskError::UnknownEnding { output, endings: endings.join(" ") });
    }
    check_replaceable(output).map_err(local_error(output))?;
    let dir = dir_of(output);
    if !fs::metadata(dir).map_err(local_error(dir))?.is_dir() {
        return Err(DeskError::NoDirectory { path: dir.display().to_string() });
    }
    Ok(())
}

/// Pulls files of a recording, and makes the output of them: see [`written_files`].
pub fn deliver(
    target: &TargetDevice<'_>,
    files: &[String],
    output: &Path,
) -> Result<DeliveredOutput, DeskError> {
    if is_copy(files, output) {
        let pulled = pull_all(target, files, written_files(files, output))?;
        return Ok(DeliveredOutput {
            path: output.to_owned(),
            bytes: pulled.bytes,
            format: if is_capture(output) { "trace.dat" } else { "method trace" },
            verification: pulled.verification,
            is_lossy: tell_unreadable_videos(target, &pulled.files),
            pulled: pulled.files,
            _scratch: None,
        });
    }
    let dir = dir_of(output);
    let scratch = ScratchDir::create(dir).map_err(local_error(dir))?;
    // The summary of the conversion and the page of a report name their inputs.
    let local = |file: &String| {
        let inside = || scratch.path().join(local_name(&stem(output), file));
        video_beside(file, output).unwrap_or_else(inside)
    };
    let locals = files.iter().map(local).collect();
    let pulled = pull_all(target, files, locals)?;
    convert_or_keep(target, pulled, scratch, output)
}

/// Files of a recording on the host.
struct PulledFiles {
    files: Vec<PathBuf>,
    /// Their length together.
    bytes: u64,
    /// The weakest comparison of all.
    verification: Verification,
}

/// Pulls each file to its path on the host.
fn pull_all(
    target: &TargetDevice<'_>,
    files: &[String],
    locals: Vec<PathBuf>,
) -> Result<PulledFiles, DeskError> {
    let device = &target.device;
    let mut all = PulledFiles { files: Vec::new(), bytes: 0, verification: Verification::Sha256 };
    for (file, local) in files.iter().zip(locals) {
        let progress = target.show_progress(std::slice::from_ref(&local));
        let pulled = device.pull(file, &local, device.privilege())?;
        drop(progress);
        all.bytes += pulled.bytes;
        if pulled.verification == Verification::Size {
            all.verification = Verification::Size;
        }
        all.files.push(local);
    }
    Ok(all)
}

/// Has `receive` write a recording's stream, and makes the output of it. What was received of a stream that
/// ends before its first event is not kept: nothing can be read in it.
pub fn deliver_stream(
    target: &TargetDevice<'_>,
    output: &Path,
    receive: &mut dyn FnMut(&mut dyn Write) -> Result<StreamEnd, DeskError>,
) -> Result<(DeliveredOutput, StreamEnd), DeskError> {
    let dir = dir_of(output);
    let scratch = ScratchDir::create(dir).map_err(local_error(dir))?;
    let stream = scratch.path().join(local_name(&stem(output), "x.stream"));
    let file = File::create_new(&stream).map_err(local_error(&stream))?;
    let buffered = BufWriter::with_capacity(STREAM_BUFFER_BYTES, RoomKeeper::new(dir).around(file));
    let mut checked = StreamChecker { out: buffered, seen: 0 };
    let end = receive(&mut checked)?;
    checked.flush().map_err(local_error(&stream))?;
    let ends_before_events =
        File::open(&stream).and_then(|mut file| recorder_stream::ends_before_events(&mut file));
    if ends_before_events.map_err(local_error(&stream))? {
        let serial = target.device.serial().to_owned();
        let reason = end.lost.map_or_else(|| "the stream ended".to_owned(), |lost| lost.to_string());
        return Err(DeskError::NoEventCame { serial, reason });
    }
    let received = PulledFiles { files: vec![stream], bytes: 0, verification: Verification::Sha256 };
    Ok((convert_or_keep(target, received, scratch, output)?, end))
}

/// A writer that passes on what begins as the stream of a recording does: of anything else a device could
/// send without end.
struct StreamChecker<W> {
    out: W,
    /// So many bytes of the beginning have been seen.
    seen: usize,
}

/// A device sends something else than what was asked for.
#[derive(Debug, thiserror::Error)]
#[error("the device sends something else than the stream of a recording")]
struct NoStream;

impl<W: Write> Write for StreamChecker<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let expected = &recorder_stream::MAGIC[self.seen..];
        let length = expected.len().min(bytes.len());
        if bytes[..length] != expected[..length] {
            return Err(io::Error::other(NoStream));
        }
        let written = self.out.write(bytes)?;
        self.seen += written.min(length);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Makes the output of the pulled files. Where that fails, moves them beside it.
fn convert_or_keep(
    target: &TargetDevice<'_>,
    inputs: PulledFiles,
    scratch: ScratchDir,
    output: &Path,
) -> Result<DeliveredOutput, DeskError> {
    let has_unread = tell_unreadable_videos(target, &inputs.files);
    let is_read = |file: &&PathBuf| !has_unread || !is_video(&file.to_string_lossy());
    let read: Vec<PathBuf> = inputs.files.iter().filter(is_read).cloned().collect();
    let converted = convert(target, &read, output).inspect_err(|_| {
        let inside = inputs.files.iter().filter(|input| input.starts_with(scratch.path()));
        for message in inside.filter_map(|input| keep_beside(input, output)) {
            target.ui.show_message(&format!("tracebridge: {message}"));
        }
    })?;
    Ok(DeliveredOutput {
        path: output.to_owned(),
        bytes: converted.bytes.unwrap_or_default(),
        format: converted.format.name,
        verification: inputs.verification,
        is_lossy: converted.is_lossy() || has_unread,
        pulled: inputs.files,
        _scratch: Some(scratch),
    })
}

/// Tells of each video of the screen among the files that cannot be put on the timeline. Returns whether
/// there is one: the recording beside it is worth more.
fn tell_unreadable_videos(target: &TargetDevice<'_>, files: &[PathBuf]) -> bool {
    let videos = files.iter().filter(|file| is_video(&file.to_string_lossy()));
    let open = |file: &PathBuf| formats::open(&Input::open(file)?).map(drop);
    let errors: Vec<OpenError> = videos.filter_map(|file| open(file).err()).collect();
    for error in &errors {
        target
            .ui
            .show_message(&format!("tracebridge: {error}; the file is kept, and is not on the timeline"));
    }
    !errors.is_empty()
}

/// Moves a file of the recording beside the output, where no file has its name. Returns a message about that.
fn keep_beside(input: &Path, output: &Path) -> Option<String> {
    let beside = dir_of(output).join(input.file_name().unwrap_or_default());
    let free = numbered(&beside, 1).take(MAX_NAMES_TRIED).find(|path| !path.exists())?;
    Some(match rename_to_new(input, &free) {
        Ok(()) => format!("kept what was recorded: {}", free.display()),
        Err(error) => format!("{}: {error}", free.display()),
    })
}

/// Converts the pulled files.
fn convert(target: &TargetDevice<'_>, inputs: &[PathBuf], output: &Path) -> Result<Converted, DeskError> {
    let progress = target.show_progress(inputs);
    let result = Conversion::prepare(ConvertRequest::new(inputs, output)).and_then(Conversion::run);
    drop(progress);
    Ok(result?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_cannot_be_converted_is_kept_under_a_free_name() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().join("scratch");
        fs::create_dir(&scratch).unwrap();
        fs::write(scratch.join("x.dat"), "capture").unwrap();
        fs::write(dir.path().join("x.dat"), "mine").unwrap();
        let output = dir.path().join("x.pftrace");
        let message = keep_beside(&scratch.join("x.dat"), &output).unwrap();
        let kept = dir.path().join("x-1.dat");
        assert_eq!(message, format!("kept what was recorded: {}", kept.display()));
        assert_eq!(fs::read_to_string(kept).unwrap(), "capture");
        assert_eq!(fs::read_to_string(dir.path().join("x.dat")).unwrap(), "mine");
    }

    #[test]
    fn only_what_begins_as_a_stream_is_written() {
        let mut stream = StreamChecker { out: Vec::new(), seen: 0 };
        for piece in [&b"TBS"[..], b"TRM1\n\x01", b"TBS", b"anything"] {
            stream.write_all(piece).unwrap();
        }
        assert_eq!(stream.out, b"TBSTRM1\n\x01TBSanything");
        let mut other = StreamChecker { out: Vec::new(), seen: 0 };
        other.write_all(b"TBST").unwrap();
        let error = other.write_all(b"xxxx").unwrap_err().to_string();
        assert!(error.contains("something else"), "{error}");
    }

    #[test]
    fn an_output_is_refused_before_anything_is_recorded() {
        let dir = tempfile::tempdir().unwrap();
        check_output(&dir.path().join("x.pftrace")).unwrap();
        let refused = |output: &Path| check_output(output).unwrap_err();
        assert!(refused(Path::new("-")).is_usage());
        assert!(refused(&dir.path().join("x.xyz")).is_usage());
        assert!(!refused(&dir.path().join("missing/x.dat")).is_usage());
        fs::write(dir.path().join("file"), "").unwrap();
        let error = refused(&dir.path().join("file/x.dat")).to_string();
        assert!(error.ends_with("file: is no directory"), "{error}");
    }

    #[test]
    fn an_output_tells_how_it_was_compared_with_the_devices_file() {
        let mut output = DeliveredOutput {
            path: PathBuf::from("x.pftrace"),
            bytes: 12_345,
            format: "perfetto",
            verification: Verification::Sha256,
            is_lossy: false,
            pulled: Vec::new(),
            _scratch: None,
        };
        assert_eq!(output.text(), "x.pftrace (perfetto, 12.3 kB)");
        output.pulled = vec!["x.pftrace".into(), "x.trace".into()];
        assert_eq!(output.text(), "x.pftrace, x.trace (perfetto, 12.3 kB together)");
        assert_eq!(output.json().verified, Verification::Sha256);
        output.verification = Verification::Size;
        assert!(output.text().contains("compared by its length alone"), "{}", output.text());
        assert_eq!(output.json().verified, Verification::Size);
    }
}
