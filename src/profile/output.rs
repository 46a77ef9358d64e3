//! The destinations of a profile's results, and of the messages about the traces.

use std::io::{self, BufWriter, Write};
use std::ops::BitOrAssign;
use std::path::{Path, PathBuf};

use super::error::ProfileError;
use crate::formats::art_method::open_files::files_of;
use crate::formats::art_method::{self, CallAnomalies, MethodTrace};
use crate::formats::input::Input;
use crate::formats::{self, OpenError, ReadReport};
use crate::output_file::{OutputFile, Readers, SameFile, check_distinct, is_stdout};

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
        let name = || input.name.clone();
        let trace = match MethodTrace::parse(input) {
            Err(art_method::Error::NotATrace) => match formats::identify(input) {
                Ok(format) => return Err(ProfileError::NoMethodTrace { name: name(), format: format.name }),
                Err(file) => return Err(OpenError::NotRead { name: name(), file }.into()),
            },
            result => result.map_err(|source| ProfileError::Trace { name: name(), source })?,
        };
        *report |= self.report_reading(input, trace.report());
        Ok(trace)
    }

    /// Reports the damage, the irregularities and the notes from reading a file.
    fn report_reading(&mut self, input: &Input, report: &ReadReport) -> ProfileReport {
        for damage in input.damage.iter().chain(&report.damage) {
            (self.message)(&input.name, &format!("damaged at offset {}: {}", damage.offset, damage.what));
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
        for line in anomalies.lines() {
            (self.message)(&input.name, &line);
        }
        ProfileReport { lossy: anomalies.are_lossy(), irregular: anomalies.any(), has_results: true }
    }

    /// Reports the irregularities of the calls of two traces.
    pub(super) fn report_anomalies_of_both(
        &mut self,
        earlier: (&Input, &CallAnomalies),
        later: (&Input, &CallAnomalies),
    ) -> ProfileReport {
        let mut report = self.report_anomalies(earlier.0, earlier.1);
        report |= self.report_anomalies(later.0, later.1);
        report
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

/// Checks that no output is an input, and that no two outputs have one name.
///
/// # Errors
/// [`SameFile`].
pub(super) fn check_outputs<'p>(
    inputs: impl Iterator<Item = &'p PathBuf>,
    outputs: &[&Path],
) -> Result<(), SameFile> {
    let inputs: Vec<PathBuf> = inputs.flat_map(|path| files_of(path)).collect();
    check_distinct(&inputs.iter().map(PathBuf::as_path).collect::<Vec<_>>(), outputs)
}
