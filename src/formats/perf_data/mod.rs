//! Reads perf.data: the samples of Linux `perf record` and of Android's `simpleperf record`, as a file or as
//! it comes from a pipe, with or without compressed records, of machines of both byte orders.
//!
//! The format is described in torvalds/linux tools/perf/Documentation/perf.data-file-format.txt, its records
//! in linux/perf_event.h, and simpleperf's additions in android platform/system/extras,
//! simpleperf/{record.h,record_file_format.h,record_file.proto}.
//!
//! The crate `linux-perf-data` reads the format too. It takes the sizes of sections and texts as they stand
//! in the file, refuses a file that is cut, and copies each record; so the tests alone use it, as a second
//! reader to compare with.

mod attribute;
mod aux_data;
mod bytes;
mod features;
mod file;
mod read;
mod records;
mod resolver;

use std::io;

pub use file::PerfDataError;

use features::feature;
use file::PerfFile;

use super::input::Input;
use super::recording::{FormatError, OpenedInput};
use super::samples::{SampleReading, SampleRecording, SampleSink};
use super::unpack_budget::UnpackBudget;
use crate::clock::{Clock, Timestamp};

/// Whether a file with these bytes is a perf.data file.
pub fn detect(bytes: &[u8]) -> bool {
    bytes.starts_with(file::MAGIC) || bytes.starts_with(file::SWAPPED_MAGIC)
}

/// Opens a perf.data file.
pub(super) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    Ok(OpenedInput::Samples(Box::new(PerfData::parse(input, &input.unpack_budget)?)))
}

/// An opened perf.data file.
#[derive(Debug, Clone)]
pub struct PerfData<'a> {
    file: PerfFile<'a>,
}

impl<'a> PerfData<'a> {
    /// Opens a file from its bytes.
    ///
    /// # Errors
    /// [`PerfDataError`] where the head or all event types are missing. Whatever else is damaged is in the
    /// report of [`SampleRecording::read`].
    pub fn parse(data: &'a [u8], budget: &UnpackBudget) -> Result<PerfData<'a>, PerfDataError> {
        Ok(PerfData { file: PerfFile::parse(data, budget)? })
    }

    fn fact(&self, number: u32) -> Option<String> {
        features::text(self.file.features.get(&number)?, self.file.is_big_endian)
    }
}

impl SampleRecording for PerfData<'_> {
    fn format(&self) -> String {
        let mut format =
            format!("perf.data of {}", if self.file.is_simpleperf() { "simpleperf" } else { "perf" });
        for (holds, what) in [
            (self.file.is_pipe, "from a pipe"),
            (self.file.is_compressed, "compressed"),
            (self.file.is_big_endian, "big-endian"),
        ] {
            if holds {
                format += ", ";
                format += what;
            }
        }
        format
    }

    fn clock(&self) -> Clock {
        let section = self.file.features.get(&feature::CLOCK_DATA);
        let stated = section.and_then(|section| features::clock_data(section, self.file.is_big_endian));
        match stated {
            Some((clock, ..)) => clock,
            None => self.file.attributes.first().map_or(Clock::Unknown, attribute::Attribute::clock),
        }
    }

    fn clock_pair(&self) -> Option<(Timestamp, Timestamp)> {
        let section = self.file.features.get(&feature::CLOCK_DATA)?;
        features::clock_data(section, self.file.is_big_endian)
            .map(|(_, realtime, clock)| (Timestamp(realtime), Timestamp(clock)))
    }

    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        for (name, number) in [
            ("machine", feature::HOSTNAME),
            ("kernel", feature::OSRELEASE),
            ("architecture", feature::ARCH),
            ("perf", feature::VERSION),
        ] {
            facts.extend(self.fact(number).map(|value| (name.to_owned(), value)));
        }
        let command = self.file.features.get(&feature::CMDLINE);
        let command = command.and_then(|section| features::command_line(section, self.file.is_big_endian));
        facts.extend(command.map(|value| ("command".to_owned(), value)));
        let info = self.file.meta_info().into_iter();
        facts.extend(info.filter(|(key, value)| key != "event_type_info" && !value.is_empty()));
        facts
    }

    fn read(&self, sink: &mut dyn SampleSink) -> io::Result<SampleReading> {
        read::read(&self.file, sink)
    }
}
