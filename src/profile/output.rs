//! The destinations of a profile's results, and of the messages about the traces.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::error::ProfileError;
use crate::formats::ReadReport;
use crate::formats::art_method::{CallAnomalies, MethodTrace};
use crate::formats::input::Input;

/// The size of an output file's buffer, bytes: 256 KiB.
const FILE_BUFFER_BYTES: usize = 1 << 18;

/// Receives the results and the messages of a profile.
pub struct ProfileOutput<'o> {
    /// Receives the printed results: tables, JSON, CSV, and output files whose path is `-`.
    pub results: &'o mut dyn Write,
    /// Receives one message after another: damage, irregularities and notes, each with the file's name.
    pub message: &'o mut dyn FnMut(&str),
}

/// The outcome of a profile that was made and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfileReport {
    /// Whether a trace is damaged, or irregular records had to be interpreted. The messages name the
    /// damage, and the irregularities with their counts.
    pub lossy: bool,
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
        report.lossy |= self.report_reading(input, trace.report());
        Ok(trace)
    }

    /// Reports the damage, the irregularities and the notes from reading a file. Returns whether anything is
    /// damaged, irregular or lost.
    fn report_reading(&mut self, input: &Input, report: &ReadReport) -> bool {
        for damage in input.damage.iter().chain(&report.damage) {
            (self.message)(&format!("{}: damaged at offset {}: {}", input.name, damage.offset, damage.what));
        }
        for line in report.irregular.iter().chain(&report.notes) {
            (self.message)(&format!("{}: {line}", input.name));
        }
        !input.damage.is_empty() || report.is_lossy()
    }

    /// Reports the irregularities of the calls. Returns whether there are any.
    pub(super) fn report_anomalies(&mut self, input: &Input, anomalies: &CallAnomalies) -> bool {
        let lines = anomalies.lines();
        for line in &lines {
            (self.message)(&format!("{}: {line}", input.name));
        }
        !lines.is_empty()
    }

    /// Prints results.
    pub(super) fn print(
        &mut self,
        print: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), ProfileError> {
        print(self.results).and_then(|()| self.results.flush()).map_err(ProfileError::Print)
    }

    /// Writes an output file; `-` prints it.
    pub(super) fn write_file(
        &mut self,
        path: &Path,
        write: impl FnOnce(&mut BufWriter<Box<dyn Write + '_>>) -> io::Result<()>,
    ) -> Result<(), ProfileError> {
        let failed = |source| ProfileError::write_file(path, source);
        let file: Box<dyn Write + '_> = match path == Path::new("-") {
            true => Box::new(&mut *self.results),
            false => Box::new(File::create(path).map_err(failed)?),
        };
        let mut out = BufWriter::with_capacity(FILE_BUFFER_BYTES, file);
        write(&mut out).and_then(|()| out.flush()).map_err(failed)
    }
}
