//! A trace.dat as a [`Recording`], for the table of formats.

use std::io;

use super::TraceDat;
use crate::formats::input::Input;
use crate::formats::{FormatError, Head, OpenedInput, Order, ReadReport, Recording, Sink};

struct DatRecording<'a> {
    dat: TraceDat<'a>,
    head: Head,
}

/// Opens `input` as a trace.dat. Parts of the file that have been read are released from memory.
pub(in crate::formats) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    let mut dat = TraceDat::open_within(input, &input.unpack_budget)?;
    dat.set_release(input);
    let head = dat.head();
    Ok(OpenedInput::Recording(Box::new(DatRecording { dat, head })))
}

impl Recording for DatRecording<'_> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn read(&self, order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
        self.dat.read(order, sink)
    }
}
