//! From the device's files to the output here: pulled, verified, converted.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

use super::target::before_ending;
use crate::cli::host::merge::conversion_error;
use crate::cli::host::progress_bar::ProgressBar;
use crate::cli::host::size;
use crate::console::complain;
use crate::export::OutputFormat;
use crate::export::convert::{Conversion, ConvertRequest, Converted};
use crate::output_file::{ScratchDir, dir_of};
use crate::remote::{Device, Verified};

/// An output that is here.
pub(super) struct Delivered {
    /// Its path.
    pub(super) path: PathBuf,
    /// Its length.
    pub(super) bytes: u64,
    /// The name of its format.
    format: &'static str,
    /// Whether the device could tell a file's SHA-256.
    verified: Verified,
    /// Whether the input or the output lacks something.
    pub(super) is_lossy: bool,
    /// What was pulled, as long as this value lives: the capture, and the method trace of a launch.
    pub(super) pulled: Vec<PathBuf>,
    /// The directory of these files, where they are not the output.
    _scratch: Option<ScratchDir>,
}

impl Delivered {
    /// `x.pftrace (perfetto, 1.2 MB)`
    pub(super) fn text(&self) -> String {
        let verified = match self.verified {
            Verified::Sha256 => "",
            Verified::Size => "; compared by its length alone: the device has no sha256sum",
        };
        format!("{} ({}, {}{verified})", self.path.display(), self.format, size(self.bytes))
    }

    /// The fields of a JSON object.
    pub(super) fn json(&self) -> Value {
        let verified = if self.verified == Verified::Sha256 { "sha256" } else { "size" };
        json!({
            "output": self.path.to_string_lossy(), "bytes": self.bytes, "format": self.format, "verified": verified
        })
    }
}

/// Fails if `output` cannot become the output of a recording: no format has its ending, or its directory does
/// not exist. To be asked before anything is recorded.
pub(super) fn check_output(output: &Path) -> anyhow::Result<()> {
    use crate::cli::exit::UsageError;
    if crate::output_file::is_stdout(output) {
        return Err(UsageError::from("-o -: name a file; its ending names the format").into());
    }
    if OutputFormat::of_path(output).is_none() {
        let why =
            crate::export::convert::ConvertError::UnknownEnding { output: output.display().to_string() };
        return Err(conversion_error(why));
    }
    let dir = dir_of(output);
    match fs::metadata(dir).with_context(|| dir.display().to_string())?.is_dir() {
        true => Ok(()),
        false => anyhow::bail!("{}: is no directory", dir.display()),
    }
}

/// Whether the output is a capture itself.
fn is_capture(output: &Path) -> bool {
    output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("dat"))
}

/// Whether the output is a method trace itself.
pub(super) fn is_method_trace(output: &Path) -> bool {
    output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("trace"))
}

/// Whether the output is the first of these files of a device itself.
fn is_copied(files: &[String], output: &Path) -> bool {
    let first_is = |ending: &str| files.first().is_some_and(|file| file.ends_with(ending));
    is_capture(output) && first_is(".dat") || is_method_trace(output) && first_is(".trace")
}

/// The files that [`deliver`] writes here of these files of a device, the output first: those themselves if
/// the output is a `.dat` or a `.trace`, else what its ending names.
pub(super) fn written_files(files: &[String], output: &Path) -> Vec<PathBuf> {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    // What else a launch has left goes beside the capture.
    let others = files.iter().skip(1).filter(|_| is_copied(files, output));
    let others = others.map(|file| output.with_file_name(capture_name(&stem, file)));
    std::iter::once(output.to_owned()).chain(others).collect()
}

/// The output, or with a number before its ending where one of its files is here already: what was recorded
/// takes no other file's place.
pub(super) fn free_output(files: &[String], output: &Path) -> PathBuf {
    let is_free = |output: &PathBuf| {
        written_files(files, output).iter().all(|path| fs::symlink_metadata(path).is_err())
    };
    numbered(output, 2).find(is_free).unwrap_or_else(|| output.to_owned())
}

/// The path, and then the path with each number from `first` on before its ending.
fn numbered(path: &Path, first: u32) -> impl Iterator<Item = PathBuf> {
    let others = (first..=u32::MAX).map(|number| before_ending(path, &number.to_string()));
    std::iter::once(path.to_owned()).chain(others)
}

/// Pulls files of a recording, and makes the output of them: see [`written_files`].
pub(super) fn deliver(
    device: &Device,
    files: &[String],
    output: &Path,
    shows_bar: bool,
) -> anyhow::Result<Delivered> {
    if is_copied(files, output) {
        let written = written_files(files, output);
        let Pulled { files: pulled, bytes, verified } = pull_all(device, files, written, shows_bar)?;
        let format = if is_capture(output) { "trace.dat" } else { "method trace" };
        let path = output.to_owned();
        return Ok(Delivered { path, bytes, format, verified, is_lossy: false, pulled, _scratch: None });
    }
    let dir = dir_of(output);
    let scratch = ScratchDir::create(dir).with_context(|| dir.display().to_string())?;
    // The summary of the conversion and the page of a report name their inputs.
    let name = |file: &String| scratch.path().join(capture_name(&stem_of(output), file));
    let locals = files.iter().map(name).collect();
    let Pulled { files: inputs, verified, .. } = pull_all(device, files, locals, shows_bar)?;
    convert_or_keep(inputs, scratch, output, verified, shows_bar)
}

/// Files of a recording that are here.
struct Pulled {
    files: Vec<PathBuf>,
    /// Their length together.
    bytes: u64,
    verified: Verified,
}

/// Pulls each file to its place here.
fn pull_all(
    device: &Device,
    files: &[String],
    locals: Vec<PathBuf>,
    shows_bar: bool,
) -> anyhow::Result<Pulled> {
    let mut all = Pulled { files: Vec::new(), bytes: 0, verified: Verified::Sha256 };
    for (file, local) in files.iter().zip(locals) {
        let bar = shows_bar.then(|| ProgressBar::of(std::slice::from_ref(&local)));
        let pulled = device.pull(file, &local, device.privilege())?;
        drop(bar);
        all.bytes += pulled.bytes;
        if pulled.verified == Verified::Size {
            all.verified = Verified::Size;
        }
        all.files.push(local);
    }
    Ok(all)
}

/// Has `receive` write a recording's stream, and makes the output of it.
pub(super) fn deliver_stream(
    output: &Path,
    shows_bar: bool,
    receive: &mut dyn FnMut(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<Delivered> {
    let dir = dir_of(output);
    let scratch = ScratchDir::create(dir).with_context(|| dir.display().to_string())?;
    let stream = scratch.path().join(capture_name(&stem_of(output), "x.stream"));
    let file = File::create_new(&stream).with_context(|| stream.display().to_string())?;
    let mut buffered = BufWriter::with_capacity(1 << 20, file);
    receive(&mut buffered)?;
    buffered.flush().with_context(|| stream.display().to_string())?;
    convert_or_keep(vec![stream], scratch, output, Verified::Sha256, shows_bar)
}

/// Makes the output of what was recorded. Where that fails, keeps what was recorded beside it.
fn convert_or_keep(
    inputs: Vec<PathBuf>,
    scratch: ScratchDir,
    output: &Path,
    verified: Verified,
    shows_bar: bool,
) -> anyhow::Result<Delivered> {
    let converted = convert(&inputs, output, shows_bar)
        .inspect_err(|_| inputs.iter().for_each(|input| keep(input, output)))?;
    Ok(Delivered {
        path: output.to_owned(),
        bytes: converted.bytes.unwrap_or_default(),
        format: converted.format.name,
        verified,
        is_lossy: converted.is_lossy(),
        pulled: inputs,
        _scratch: Some(scratch),
    })
}

/// Moves a file of the recording beside the output, where no file has its name.
fn keep(input: &Path, output: &Path) {
    let beside = dir_of(output).join(input.file_name().unwrap_or_default());
    let Some(kept) = numbered(&beside, 1).take(1000).find(|path| !path.exists()) else { return };
    match fs::rename(input, &kept) {
        Ok(()) => complain(format_args!("tracebridge: kept what was recorded: {}", kept.display())),
        Err(error) => complain(format_args!("tracebridge: {}: {error}", kept.display())),
    }
}

/// Converts what was recorded.
fn convert(inputs: &[PathBuf], output: &Path, shows_bar: bool) -> anyhow::Result<Converted> {
    let bar = shows_bar.then(|| ProgressBar::of(inputs));
    let result = Conversion::prepare(ConvertRequest::of(inputs, output)).and_then(Conversion::run);
    drop(bar);
    result.map_err(conversion_error)
}

/// The output's name without its endings.
fn stem_of(output: &Path) -> String {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("capture").to_owned()
}

/// The name here of a file of the recording: `stem` in place of `capture` (`capture.trace`,
/// `capture-app-1.pftrace`), or before the ending of another name.
fn capture_name(stem: &str, file: &str) -> PathBuf {
    let file = file.rsplit('/').next().unwrap_or(file);
    let ending = || file.rfind('.').map_or(".dat", |at| &file[at..]);
    let rest = file.strip_prefix("capture").unwrap_or_else(ending);
    PathBuf::from(format!("{stem}{rest}"))
}
